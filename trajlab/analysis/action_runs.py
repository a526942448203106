"""How long the same action is repeated."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.coded_rows import CodedColumns, CodedRows, reduce_coded
from trajlab.analysis.common import field_of, inner_coords, inner_dims, made_by, require_free_dims
from trajlab.analysis.discrete import require_discrete
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.runs import RunCounter, RunFinder
from trajlab.analysis.labels import MAX_RANGE, LabelsArgument, check_labels, list_values, value_coords
from trajlab.dataset.cells import Cells
from trajlab.errors import warn_user
from trajlab.names import (
    ACTION_RUN_NAMES,
    COUNT,
    DONE,
    END_REASON,
    LENGTH,
    MEAN,
    MEDIAN,
    NUM_NAN_ATTR,
    NUM_OPEN,
    RUN_LENGTH,
    START_SEEN,
    TERMINATED,
    VALUE,
    N,
)


def action_runs(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
) -> xr.Dataset:
    """Count how long each action is repeated: the runs of each action, by their length in steps.

    A run is a stretch of consecutive steps of one episode with the same action, as long as it is: before and after it
    there is another action, or the episode's edge. After a slice of `time` only neighbouring steps are consecutive.
    Where several agents share an environment, a run ends with the agent (`alive`).

    A run is open where it might have gone on: the last one of an episode that was cut or truncated, the first one of an
    episode whose start was not seen, and one beside a step that was sliced away or a NaN. Its length is a lower bound:
    it counts with what was seen of it, and `num_open` says of how many this is true.

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field of integers, bools or text; each of its components is counted by itself.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, the first action of a run decides.
    labels : sequence or mapping, optional
        As in `action_histogram`.

    Returns
    -------
    Dataset
        `count`, int64, dims (by, ..., value, run_length) with the field's own dims between: how many runs of that
        action have that length. `run_length` goes from 1 to the longest, or lists only those seen where that is more
        than 1,024. Dims (by, ..., value): `n`, int64, the number of runs; `num_open`, int64, how many of them are open;
        `mean` and `median`, float64, of their lengths as far as seen (NaN where there are none). `value` is as in
        `action_histogram`, with the coordinate `label` where there are `labels`. A NaN is in no run; the attribute
        `num_nan` and a warning say how many there are.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When `labels` is a single text.
    ValueError
        When the field is continuous or has more than 1,024 distinct values, `labels` or `groups` do not fit it, or a
        dim of it has a name that the result uses itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([0, 1, 1, 1, 0])}, {"action": np.array([1, 0])}])
    >>> runs = tl.action_runs(ds)
    >>> runs["count"].values, runs["mean"].values
    (array([[3, 0, 0],
           [1, 0, 1]]), array([1., 2.]))
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    return grouped_runs(ds, name, make_groups(ds, by, groups), labels)


def grouped_runs(ds: xr.Dataset, name: str, groups: Groups, labels: Any) -> xr.Dataset:
    """Return `action_runs` of the field called `name` for groups that were made already."""
    names = check_labels(labels)
    kind = require_discrete(ds, name, "action_runs")
    require_free_dims(ds, name, (*groups.dims, *ACTION_RUN_NAMES), "action_runs")
    rows, (lengths, counts, num_open, num_nan) = reduce_coded(ds, name, groups, kind, "action_runs", _count)
    if num_nan:
        warn_user(f"action_runs: {num_nan} values of {name!r} are NaN, and in no run; attrs['num_nan'] says so")
    occurs = counts.any(axis=(0, 1, 3))
    seen, attrs = rows.values[occurs], ds.variables[name].attrs
    values, num_open = list_values(seen, num_open[..., occurs], names, attrs, name)
    _, counts = list_values(seen, counts[..., occurs, :].swapaxes(-1, -2), names, attrs, name)
    counts = np.ascontiguousarray(counts.swapaxes(-1, -2))
    return _labelled(ds, name, groups, values, lengths, counts, num_open, names, num_nan)


def _count(rows: CodedRows) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return lengths of runs, counts (group, component, value, length), those open (…, value), how many are NaN."""
    cells = Cells.of(rows.ds)
    edges = _Edges(rows.ds, cells)
    counter = RunCounter((rows.groups.size, rows.components, len(rows.values)), int(cells.counts.max(initial=0)))
    finder = RunFinder(with_column=rows.components > 1)
    num_nan = 0
    for batch in rows.columns():
        if not batch.one.shared:
            counter.add(finder.finish())
        num_nan += batch.num_nan
        ends = batch.cells(batch.one.last)
        opens = edges.opens(batch, ends)
        counter.add(finder.add(batch.codes, ends, opens, present=batch.present, group=batch.group))
    counter.add(finder.finish())
    return *counter.result(MAX_RANGE), num_nan


class _Edges:
    """Which runs are open: those that begin or end where what was recorded does, and not what happened."""

    def __init__(self, ds: xr.Dataset, cells: Cells) -> None:
        """Note in which episodes the first, and the last, transition is where the environment began, and ended."""
        self._last = ds.variables[LENGTH].values - 1
        self._has_start = ds.variables[START_SEEN].values.astype(bool)
        self._has_end = np.isin(ds.variables[END_REASON].values.astype(str), (TERMINATED, DONE))
        steps = np.arange(self._last.max(initial=-1) + 1)
        self._is_whole = np.array_equal(cells.labels[: len(steps)], steps)

    def opens(self, batch: CodedColumns, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells at which a run that begins, and one that ends, is open; `ends` are those none follows."""
        one, size = batch.one, batch.one.ahead * batch.codes.shape[1]
        before = np.zeros(0, np.intp)
        if not (self._is_whole and self._has_start.all()):
            first = one.last + one.ahead
            first = np.concatenate([first[first < size], np.arange(0 if one.shared else one.ahead)])
            first = np.setdiff1d(first, one.absent)
            episode, time = one.batch.locate(first)
            before = batch.cells(first[~self._has_start[episode] | (time != 0)])
        last, is_over = one.last[: len(one.ended)], self._has_end[one.ended]
        if not self._is_whole:
            is_over &= one.batch.locate(last)[1] == self._last[one.ended]
        after = batch.cells(last[~is_over])
        if batch.nan is not None:
            behind, ahead = _beside_nan(batch.nan, ends)
            before, after = np.union1d(before, behind), np.union1d(after, ahead)
        return before, after


def _beside_nan(nan: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells of (column, row) that a NaN stands before, and behind; nothing follows the cells `ends`."""
    follows = np.ones(nan.shape, bool)
    follows.reshape(-1)[ends] = False
    beside = np.zeros((2, *nan.shape), bool)
    beside[0, :, 1:] = nan[:, :-1] & follows[:, :-1]
    beside[1, :, :-1] = nan[:, 1:] & follows[:, :-1]
    return np.flatnonzero(beside[0]), np.flatnonzero(beside[1])


def _labelled(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    values: np.ndarray,
    lengths: np.ndarray,
    counts: np.ndarray,
    num_open: np.ndarray,
    labels: dict[Any, str] | None,
    num_nan: int,
) -> xr.Dataset:
    """Return counts (group, component, value, length) and open ones (group, component, value) as a Dataset."""
    dims = (*groups.dims, *inner_dims(ds, name), VALUE)
    shape = (*groups.shape, *ds.variables[name].shape[2:], len(values))
    n = counts.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        mean = counts @ lengths / n
    coords = value_coords(ds, name, values, labels)
    coords[RUN_LENGTH] = (RUN_LENGTH, lengths, {"long_name": "length of the run", "units": "steps"})
    steps = {"units": "steps"}
    return xr.Dataset(
        {
            COUNT: ((*dims, RUN_LENGTH), counts.reshape(*shape, len(lengths)), {"long_name": "runs"}),
            N: (dims, n.reshape(shape), {"long_name": "runs"}),
            MEAN: (dims, mean.reshape(shape), {"long_name": "mean length of runs", **steps}),
            MEDIAN: (dims, _medians(counts, lengths).reshape(shape), {"long_name": "median length of runs", **steps}),
            NUM_OPEN: (dims, num_open.reshape(shape), {"long_name": "runs that might have gone on"}),
        },
        {**inner_coords(ds, name), **groups.coords(), **coords},
        made_by(ds, "action_runs", name) | {NUM_NAN_ATTR: num_nan},
    )


def _medians(counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the median length (...) of counts (..., length), NaN where there are none.

    >>> _medians(np.array([[1, 2, 1], [1, 0, 1], [0, 0, 0]]), np.array([1, 2, 3]))
    array([ 2.,  2., nan])
    """
    until = np.cumsum(counts, axis=-1)
    if not until.shape[-1]:
        return np.full(until.shape[:-1], np.nan)
    n = until[..., -1:]
    low, high = (lengths[(until > place).argmax(axis=-1)] for place in ((n - 1) // 2, n // 2))
    return np.where(n[..., 0] > 0, (low + high) / 2, np.nan)
