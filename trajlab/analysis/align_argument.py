"""What `align=`, `window=` and `parts=` of a trace mean."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment import Align, Alignment, FromEvent, FromStart, InWindows
from trajlab.analysis.common import field_of
from trajlab.analysis.cut import GroupsArgument
from trajlab.analysis.events import event_times
from trajlab.analysis.fraction import InParts
from trajlab.analysis.groups import Groups, make_episode_groups, make_groups
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import resolve_field
from trajlab.dataset.schema import require_whole
from trajlab.dataset.windows import as_steps, is_windows
from trajlab.errors import check_option
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

AlignArgument = Align | xr.Dataset | xr.DataArray | Callable[[xr.Dataset], xr.DataArray]
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
    kind = align if isinstance(align, str) else "event"
    if isinstance(align, str):
        check_option("align", align, Align)
    if is_windows(ds):
        if kind != "start" or window is not None or parts is not None:
            raise ValueError("the Dataset is aligned already; expected no align=, window= or parts=")
        return ds, InWindows.of(ds), {ALIGN_ATTR: "event", LEFT_OUT_ATTR: int(ds.attrs.get(LEFT_OUT_ATTR, 0))}
    if window is not None and kind != "event":
        raise ValueError(f"window={window!r} goes with the times of an event: align=tl.event_times(ds, condition)")
    if parts is not None and kind != "fraction":
        raise ValueError(f"parts={parts!r} goes with align='fraction'")
    if kind == "start":
        return ds, FromStart.of(ds), {}
    if kind == "end":
        chosen, alignment, left_out = _at_end(ds)
    elif kind == "fraction":
        chosen, alignment, left_out = _in_parts(ds, name, parts)
    else:
        chosen, alignment, left_out = _at_event(ds, event_origins(ds, align, "align=: "), window)
    return chosen, alignment, {ALIGN_ATTR: kind, LEFT_OUT_ATTR: left_out}


def _in_parts(ds: xr.Dataset, name: str, parts: Any) -> tuple[xr.Dataset, Alignment, int]:
    """Return the complete episodes, cut into parts."""
    number = _check_parts(parts)
    chosen, left_out = _chosen(ds, ds[COMPLETE].values & (ds[LENGTH].values > 0))
    require_whole(chosen, "align='fraction'")
    return chosen, InParts(Cells.of(chosen), number, 0, number, name, AliveRows.of(chosen, name)), left_out


def _check_parts(parts: Any) -> int:
    number = PARTS if parts is None else parts
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"parts={parts!r}; expected how many equal parts an episode is cut into, such as {PARTS}")
    return int(number)


def check_window(window: Any) -> tuple[int, int] | None:
    """Return how many steps before and after an event are meant; None for the default."""
    if window is None:
        return None
    try:
        before, after = (operator.index(steps) for steps in window)
    except (TypeError, ValueError):
        before = after = -1
    if before < 0 or after < 0:
        raise ValueError(f"window={window!r}; expected whole steps before and after the event, as in (20, 50)")
    return before, after


def _at_end(ds: xr.Dataset) -> tuple[xr.Dataset, Alignment, int]:
    """Return the episodes that the environment ended, aligned by their last transition."""
    chosen, left_out = _chosen(ds, ds[END_REASON].values.astype(str) != CUT)
    cells = Cells.of(chosen)
    origin = chosen[LENGTH].values.astype(np.int64) - 1
    first = cells.labels[0] if len(cells.labels) else 0
    lags = np.arange(min(int(first - origin.max(initial=0)), 0), 1)
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
    given = check_window(window)
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
