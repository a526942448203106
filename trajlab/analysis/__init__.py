"""What the recorded transitions say: kernels on plain arrays, and functions from a Dataset to labelled data.

A module called as a public function holds it, and `tables` those that return pandas tables. The others are shared:

- `common`, `choice`, `episode_values`: what is asked for of a Dataset, and what results say of themselves;
- `grouping`, `alignment`, `events`: what `by=`, `align=` and conditions mean;
- `discrete`, `labels`, `coded_rows`, `step_counts`: values that are counted one by one;
- `components`, `grid`, `bounds`: numbers in bins, and at their bounds;
- `spaced`, `state_trace_result`: parts of `autocorrelation` and of `state_trace`;
- `kernels`: all that knows only arrays.
"""
