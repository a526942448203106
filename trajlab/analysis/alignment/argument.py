"""What `align=`, `window=` and `parts=` of a trace mean."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Align, Alignment, FromEvent, FromStart, InWindows
from trajlab.analysis.alignment.fraction import InParts
from trajlab.analysis.common import check_steps, field_of, steps_number
from trajlab.analysis.event_times import event_times
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups, make_groups
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import field_names, is_per_transition, is_recorded_bool, resolve_field
from trajlab.dataset.schema import require_whole
from trajlab.dataset.windows import as_steps, is_windows
from trajlab.errors import did_you_mean, has_bool
from trajlab.names import (
    ALIGN_ATTR,
    COMPLETE,
    CUT,
    END_REASON,
    EPISODE,
    EVENT,
    EVENT_TIME,
    LEFT_OUT_ATTR,
    LENGTH,
    TIME,
)

WINDOW = (50, 50)
"""Steps before and after an event at most, where none are given."""
PARTS = 50
"""Into so many an episode is cut where no number is given."""

AlignArgument = str | xr.Dataset | xr.DataArray | Callable[[xr.Dataset], xr.DataArray]
WindowArgument = Sequence[int] | None


def traced_field(ds: xr.Dataset, field: str, by: str | None) -> tuple[xr.Dataset, str]:
    """Return the Dataset of a trace, once it has what that needs, and the field of it that is meant."""
    if is_windows(ds):
        return ds, resolve_field(as_steps(ds), field)
    return field_of(ds, field, along=by)


def trace_groups(ds: xr.Dataset, by: str | None, groups: GroupsArgument) -> Groups:
    """Return the groups of a trace; those of windows are of episodes."""
    return make_episode_groups(ds, by, groups) if is_windows(ds) else make_groups(ds, by, groups)


def choose_alignment(
    ds: xr.Dataset, name: str, align: Any, window: Any, parts: Any
) -> tuple[xr.Dataset, Alignment, dict[str, Any]]:
    """Return the episodes that take part, how the field `name` is aligned, and attributes that say so.

    Raises
    ------
    ValueError, TypeError
        When an argument does not fit.
    """
    kind = _kind_of(ds, align)
    if is_windows(ds):
        if kind != "start" or window is not None or parts is not None:
            raise ValueError("the Dataset is aligned already; expected no align=, window= or parts=")
        return ds, InWindows.of(ds), {ALIGN_ATTR: "event", LEFT_OUT_ATTR: int(ds.attrs.get(LEFT_OUT_ATTR, 0))}
    if window is not None and kind not in ("event", "end"):
        raise ValueError(
            f"window={window!r} goes with align='end', or with the times of an event: align=tl.event_times(ds, "
            "condition)"
        )
    if parts is not None and kind != "fraction":
        raise ValueError(f"parts={parts!r} goes with align='fraction'")
    if kind == "start":
        return ds, FromStart.of(ds), {}
    if kind == "end":
        chosen, alignment, left_out = _at_end(ds, window)
    elif kind == "fraction":
        chosen, alignment, left_out = _in_parts(ds, name, parts)
    else:
        chosen, alignment, left_out = _at_event(ds, event_origins(ds, align, "align=: "), window)
    return chosen, alignment, {ALIGN_ATTR: kind, LEFT_OUT_ATTR: left_out}


def _kind_of(ds: xr.Dataset, align: Any) -> str:
    """Return what a trace is aligned by: an option of `Align`, or "event", whose condition a field may be."""
    if not isinstance(align, str) or align in get_args(Align):
        return align if isinstance(align, str) else "event"
    steps = as_steps(ds)
    if not ds.sizes[EPISODE] or (align in steps.variables and is_per_transition(steps.variables[align])):
        return "event"  # a field that does not hold bools is refused where it is read
    flags = [name for name in field_names(steps) if is_recorded_bool(steps.variables[name])]
    there = f"{', '.join(map(repr, flags))}" if flags else "none here"
    raise ValueError(
        f"align={align!r}; expected one of {', '.join(map(repr, get_args(Align)))}, the times of an event, or the name "
        f"of a field of bools: {there}.{did_you_mean(align, [*get_args(Align), *flags])}"
    )


def _in_parts(ds: xr.Dataset, name: str, parts: Any) -> tuple[xr.Dataset, Alignment, int]:
    """Return the complete episodes, cut into parts."""
    number = PARTS if parts is None else steps_number("parts", parts, Cells.of(ds), least=1)
    chosen, left_out = _chosen(ds, ds[COMPLETE].values & (ds[LENGTH].values > 0))
    require_whole(chosen, "align='fraction'")
    return chosen, InParts(Cells.of(chosen), number, 0, number, name, AliveRows.of(chosen, name)), left_out


def check_window(window: Any, cells: Cells) -> tuple[int, int] | None:
    """Return how many steps before and after an event are meant; None for the default."""
    if window is None:
        return None
    steps = _whole_steps(window)
    if len(steps) != 2 or min(steps) < 0:
        raise ValueError(f"window={window!r}; expected whole steps before and after the event, as in (20, 50)")
    check_steps(f"window={window!r}", max(steps), cells)
    return steps[0], steps[1]


def _check_end_window(window: Any, cells: Cells) -> int | None:
    """Return how many steps before the last transition are meant; None for all."""
    if window is None:
        return None
    steps = _whole_steps(window)
    if len(steps) not in (1, 2) or steps[0] < 0 or any(steps[1:]):
        raise ValueError(
            f"window={window!r}; expected, with align='end', whole steps before the last transition and 0 after it, as "
            "in (20, 0)"
        )
    check_steps(f"window={window!r}", max(steps), cells)
    return steps[0]


def _whole_steps(window: Any) -> list[int]:
    """Return a window as ints, nothing where it is not of whole numbers."""
    try:
        return [] if has_bool(window) else [operator.index(steps) for steps in window]
    except TypeError:
        return []


def _at_end(ds: xr.Dataset, window: Any) -> tuple[xr.Dataset, Alignment, int]:
    """Return the episodes that the environment ended, aligned by their last transition."""
    chosen, left_out = _chosen(ds, ds[END_REASON].values.astype(str) != CUT)
    cells = Cells.of(chosen)
    origin = chosen[LENGTH].values.astype(np.int64) - 1
    first = cells.labels[0] if len(cells.labels) else 0
    before = _check_end_window(window, cells)
    lags = np.arange(min(int(first - origin.max(initial=0)), 0) if before is None else -before, 1)
    return chosen, FromEvent(cells, origin, lags, "steps to the end"), left_out


def _at_event(ds: xr.Dataset, times: np.ndarray, window: Any) -> tuple[xr.Dataset, Alignment, int]:
    """Return the episodes that have an event, aligned by its time."""
    chosen, left_out = _chosen(ds, ~np.isnan(times))
    origin = times[~np.isnan(times)].astype(np.int64)
    cells = Cells.of(chosen)
    lags = event_lags(cells, np.arange(len(origin)), origin, window)
    return chosen, FromEvent(cells, origin, lags, "steps from the event"), left_out


def event_lags(cells: Cells, episodes: np.ndarray, origin: np.ndarray, window: Any) -> np.ndarray:
    """Return the lags of a window; without one at most `WINDOW`, and not beyond what the episodes hold."""
    given = check_window(window, cells)
    if given is not None:
        return np.arange(-given[0], given[1] + 1)
    if not len(origin) or not len(cells.labels):
        return np.arange(1)
    first = int(cells.labels[0]) - int(origin.max())
    last = int((cells.labels[np.maximum(cells.counts[episodes] - 1, 0)] - origin).max())
    return np.arange(max(min(first, 0), -WINDOW[0]), min(max(last, 0), WINDOW[1]) + 1)


def _chosen(ds: xr.Dataset, kept: np.ndarray) -> tuple[xr.Dataset, int]:
    """Return some episodes, and how many others there are; all as they are where there are none."""
    left_out = int((~kept).sum())
    return (ds.isel({EPISODE: np.flatnonzero(kept)}) if left_out else ds), left_out


def event_origins(ds: xr.Dataset, events: Any, what: str) -> np.ndarray:
    """Return the time of an event in each episode (episode,), float64, NaN where there is none.

    Parameters
    ----------
    ds : Dataset
    events : Dataset, DataArray, or condition
        A result of `event_times` for one event, or its `event_time`; of at least the episodes of `ds`, by label. Or
        the condition of the event.
    what : str
        What asks, for texts.
    """
    is_array = isinstance(events, xr.DataArray)
    if isinstance(events, str) or (is_array and TIME in events.dims) or (callable(events) and not is_array):
        if not ds.sizes[EPISODE]:  # of a recorder that was off, which has no field to ask
            return np.zeros(0)
        events = event_times(ds, events)
    times = _single_event(events, what)
    numbers = ds[EPISODE].values
    places = times.indexes[EPISODE].get_indexer(numbers) if EPISODE in times.indexes else np.full(len(numbers), -1)
    if (places < 0).any():
        raise ValueError(
            f"{what}there is no time of the event for episode {numbers[places < 0][0]}; expected one (or NaN) for "
            "each episode, by label"
        )
    found = times.values.astype(np.float64)[places]
    known = found[~np.isnan(found)]
    if (known != np.floor(known)).any() or np.isinf(known).any():
        wrong = known[(known != np.floor(known)) | np.isinf(known)][0]
        raise ValueError(f"{what}the event has the time {wrong}; expected labels of time, whole numbers, or NaN")
    return found


def _single_event(events: Any, what: str) -> xr.DataArray:
    """Return the times of a single event, one per episode."""
    times = events[EVENT_TIME] if isinstance(events, xr.Dataset) and EVENT_TIME in events else events
    if not isinstance(times, xr.DataArray) or times.dtype.kind not in "iuf" or EPISODE not in times.dims:
        raise TypeError(
            f"{what}expected the times of an event, as tl.event_times(ds, condition) returns them, or its condition; "
            f"got {type(events).__name__}"
        )
    if times.dims != (EPISODE,):
        others = [dim for dim in times.dims if dim != EPISODE]
        one = {str(others[0]): times[others[0]].values[:1].tolist()[0] if len(times[others[0]]) else 0}
        mend = f".sel({one!r})" if EVENT in others else f".isel({ {str(others[0]): 0}!r})"
        raise ValueError(f"{what}the times have dims {times.dims}; expected those of one event: events{mend}")
    return times
