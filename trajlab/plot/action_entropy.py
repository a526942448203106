"""The entropy of actions: curves over the steps of an episode, or a dot for each episode."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from trajlab.analysis.action_entropy import Per, check_entropy_options, episode_entropy, grouped_entropy
from trajlab.analysis.common import field_of, inner_dims, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.names import COMPLETE, ENTROPY, EPISODE, NUM_TRANSITIONS_ATTR, TIME, N
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text
from trajlab.plot._curves import mark_lone_steps
from trajlab.plot._dots import Drawn, Points, along_of, draw_all, legend_of_all
from trajlab.plot._strip import draw_alive, split_strip

if TYPE_CHECKING:
    import matplotlib.axes


def plot_action_entropy(
    ds: xr.Dataset,
    field: str = "action",
    *,
    per: Per = "step",
    window: int = 1,
    by: str | None = None,
    groups: GroupsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    r"""Draw `action_entropy`: how evenly actions are spread at each step, and beneath how many episodes are alive.

    One panel per component. The dotted line is :math:`\log_2 n`, the most that `n` actions can reach, where it is
    within the panel: a curve near it tells of few episodes and not of what is done in them.

    With ``per="episode"`` each episode is a dot, over training, or a triangle where it is not complete; the line is the
    median of complete episodes that started one after the other.

    Parameters
    ----------
    ds, field, per, window, by, groups
        As in `action_entropy`. The legend gives the number of episodes in each group.
    ax : Axes or sequence of Axes, optional
        One per component, each of which, for steps, gives a strip at its bottom to the number of episodes; without, a
        figure is made.
    **kwargs
        For the line: `Axes.plot`; for the dots: `Axes.scatter`.

    Returns
    -------
    Axes or array of Axes
        An array, in the order of the components, where there is more than one. The strips with the number of
        episodes are further Axes of the figure, labelled ``"n"``.

    Raises
    ------
    KeyError
        As `action_entropy`.
    ValueError
        As `action_entropy`, and when the field has more than 24 components, or `ax` does not hold one Axes for each,
        or there are more than 24 groups that are no ranges of numbers.
    """
    check_entropy_options(per, window, by, groups)
    ds, name = field_of(ds, field, like=np.int64, along=by)
    components = _text.component_titles(ds, name)
    _figure.check_panels(ds, name, len(components))
    if per == "episode":
        return _plot_episodes(ds, name, components, ax, kwargs)
    chosen = make_groups(ds, by, groups)
    _style.check_groups(ds, chosen)
    result = grouped_entropy(ds, name, chosen, window)
    panels = _figure.make_panels(len(components), ax, mend=_figure.select_mend(ds, name))
    lines, has_limit = _draw(panels, ds, result, chosen, inner_dims(ds, name), kwargs)
    title = title_of(ds, name)
    texts = [f"entropy of {title}: {_text.count_text(result.attrs)}", f"n: {result[N].attrs['long_name']}"]
    texts += _text.not_shown(result.attrs)
    _panels.write_names(panels, components, texts + _legend.left_out(chosen))
    if lines and (by is not None or has_limit):
        handles, labels, legend_title = _entries(result, chosen, lines, window)
        if has_limit:
            grey = _style.neutral(panels.axes[0])
            handles.append(_legend.line(grey if by is not None else lines[0].get_color(), linestyle=":", linewidth=1.0))
            labels.append("most n can reach")
        _legend.write_legend(panels, handles, labels, legend_title)
    return panels.result()


def _entries(result: xr.Dataset, groups: Groups, lines: list[Any], window: int) -> _legend.Entries:
    """Return what the legend says of the lines."""
    if groups.name is None:
        return _legend.Entries(lines, ["entropy"])
    counts, what = _legend.member_counts(groups, _panels.total_along(result[N], groups.name))
    is_told = window == 1 or groups.is_per_episode  # else transitions are in several windows
    labels = _legend.group_labels(groups, counts if is_told else None)
    return _legend.Entries(lines, labels, _legend.groups_title(groups, what if is_told else None))


def _plot_episodes(
    ds: xr.Dataset, name: str, components: Sequence[str], ax: Any, kwargs: dict[str, Any]
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw the entropy within each episode."""
    result = episode_entropy(ds, name)
    panels = _figure.make_panels(len(components), ax, mend=_figure.select_mend(ds, name))
    along = along_of(ds, None)
    bits = result[ENTROPY].values.reshape(result.sizes[EPISODE], len(components))
    drawn: Drawn | None = None
    for number, ax_ in enumerate(panels.axes):
        there = np.isfinite(bits[:, number])
        if there.any():
            points = Points(along.values[there], bits[there, number], result[COMPLETE].values[there])
            drawn = draw_all(ax_, points, kwargs)
            ax_.set_ylim(bottom=-0.02 * max(float(points.values.max()), 1.0))
        else:
            _labels.write_empty(ax_)
        _labels.plain_numbers(ax_.xaxis, whole=True)
        if panels.is_left(number):
            _labels.write_ylabel(panels, ax_, "entropy [bits]")
        if panels.is_bottom(number):
            _labels.write_xlabel(ax_, _text.label_of(along))
    lines = [f"entropy of {title_of(ds, name)} within each episode: {_text.count_text(result.attrs)}"]
    _panels.write_names(panels, components, lines + _text.not_shown(result.attrs))
    if drawn is not None:
        _legend.write_legend(panels, *legend_of_all(drawn))
    return panels.result()


def _draw(
    panels: _figure.Panels,
    ds: xr.Dataset,
    result: xr.Dataset,
    groups: Groups,
    inner: tuple[str, ...],
    kwargs: dict[str, Any],
) -> tuple[list[Any], bool]:
    """Draw and label each panel; return one line per group, and whether a dotted one is seen in a panel."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    looks = _style.looks_of(ds, panels, groups)
    bits, alive = (
        _panels.by_component(variable, groups, inner, (TIME,))
        for variable in (result[ENTROPY], result[N].broadcast_like(result[ENTROPY]))
    )
    time = result[TIME].values
    lines: list[Any] = []
    has_limit = False
    for number, ax in enumerate(panels.axes):
        strip = split_strip(ax)
        lines = []
        if not (result.attrs[NUM_TRANSITIONS_ATTR] and groups.size):
            _labels.write_empty(ax)
        else:
            top = max(1.1 * float(np.nanmax(bits, initial=0)), 1.0)
            for curve, n, look in zip(bits[number], alive[number], looks, strict=True):
                most = np.log2(np.maximum(n, 1), where=n > 0, out=np.full(len(n), np.nan))
                (limit,) = ax.plot(time, most, color=look.color, linewidth=1.0, linestyle=":", zorder=3)
                limit.set_clip_path(Rectangle((time[0] - 1, -1), np.ptp(time) + 2, top + 1, transform=ax.transData))
                pairs = np.stack([most[1:], most[:-1]])
                has_limit |= bool((np.isfinite(pairs).all(axis=0) & (pairs.min(axis=0) < top)).any())
                style = {"color": look.color, "linewidth": 1.6, "linestyle": look.linestyle, "zorder": 4}
                lines += ax.plot(time, curve, **_style.merged(Line2D, style, kwargs))
                mark_lone_steps(ax, time, curve, look.color)
            ax.set_ylim(-0.02 * top, top)
        draw_alive(strip, time, alive[number], groups.name is None, looks)
        _label(panels, number, ax, strip, result)
    return lines, has_limit


def _label(
    panels: _figure.Panels,
    number: int,
    ax: "matplotlib.axes.Axes",
    strip: "matplotlib.axes.Axes",
    result: xr.Dataset,
) -> None:
    if panels.is_left(number):
        _labels.write_ylabel(panels, ax, "entropy [bits]")
        strip.set_ylabel("n")
    if panels.is_bottom(number):
        _labels.write_xlabel(strip, _text.time_label(result[TIME]))
