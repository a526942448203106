"""Plots of what the functions of `trajlab.analysis` with the same noun return, and beside it of single episodes.

A module called as a public function, without its `plot_`, holds it. The others are shared:

- `_figure`, `_style`: Axes to draw in, and colours;
- `_text`, `_labels`, `_legend`, `_legend_fit`: what is written, and where there is room for it;
- `_panels`, `_strip`, `_training`: panels for groups and components, the strip beneath, axes along training;
- `_areas`, `_curves`, `_dots`, `_grid`, `_incidence`, `_path_points`, `_pixels`, `_single_episodes`, `_state_means`:
  what is drawn;
- `_page`, `_overview_parts`: the page of `plot_overview`.
"""
