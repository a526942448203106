"""The Dataset: lazy padded arrays over a log, its schema, and the views made from it.

- `lazy`, `source`, `labels`, `description`, `build`: a Dataset over the log of a recording;
- `from_episodes`, `episode_input`: one from arrays that are given;
- `schema`, `schema_values`, `fields`, `padding_attrs`: what is in one, and whether it is right;
- `views`, `stack`, `windows`: episodes, transitions and components as Datasets and arrays;
- `concat`, `concat_checks`, `concat_runs`, `joined`, `flatten`: several put together;
- `alive`, `alive_rows`: agents, some of whom are done;
- `cells`, `ranges`, `parts`: where transitions lie, and Datasets in parts that fit into memory;
- `flat` and those called `flat_...`, `ordered`, `successive`, `cell_episodes`: all transitions, batch by batch;
- `flat_array`, `made`: what was made for each transition, without padding.
"""
