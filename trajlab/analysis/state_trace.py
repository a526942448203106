"""How a field goes over the steps of an episode."""

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import Alignment
from trajlab.analysis.alignment.argument import (
    AlignArgument,
    WindowArgument,
    choose_alignment,
    trace_groups,
    traced_field,
)
from trajlab.analysis.alignment.fraction import InParts
from trajlab.analysis.alignment.places import alive_index, count_alive, place_of
from trajlab.analysis.common import as_rows, report_overflow, require_free_dims, require_numeric
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.grouping.groups import Groups, make_groups, refuse_time
from trajlab.analysis.kernels.moments import Moments
from trajlab.analysis.kernels.quantiles import Packer
from trajlab.analysis.state_trace_result import Reduced, label_trace
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import FlatBatch
from trajlab.errors import warn_user
from trajlab.names import TIME, TRACE_NAMES

DEFAULT_QUANTILES = (0.1, 0.5, 0.9)
MAX_PACKED = 2**30
"""Bytes of rows held at once for quantiles; what is bigger is read by ranges of steps, one after the other."""


def state_trace(
    ds: xr.Dataset,
    field: str,
    *,
    by: str | None = None,
    quantiles: Numbers | Literal[False] | None = DEFAULT_QUANTILES,
    groups: GroupsArgument = None,
    align: AlignArgument = "start",
    window: WindowArgument = None,
    parts: int | None = None,
) -> xr.Dataset:
    r"""Return mean, deviation and quantiles of a field at each step, over the episodes that are still alive.

    At step `t` these are the `n` episodes longer than `t`, those cut later than `t` too; for a field of agents, those
    in which the agent still takes part:

    .. math:: \mathrm{mean}_t = \frac{1}{n_t} \sum_{e:\, L_e > t} x_{e,t}, \qquad
              \mathrm{std}_t^2 = \frac{1}{n_t} \sum_{e:\, L_e > t} (x_{e,t} - \mathrm{mean}_t)^2

    An episode recorded from mid-way (`start_seen` is False) counts from its first recorded step, which is not its
    first: where that matters leave it out, ``ds.sel(episode=ds["start_seen"])``. The attributes hold their number.

    The population changes as episodes end: a curve may rise because those that were low are gone. Read it
    together with `n`. Aligned by their ends or by an event, episodes come and go on both sides; aligned by fraction
    there are equally many everywhere.

    Parameters
    ----------
    ds : Dataset
        Or the windows that `align` made, over which the trace then goes.
    field : str
        Of bools or numbers, with any dims of its own.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, `n` counts the transitions of a group.
    quantiles : sequence of float or False, optional
        From 0 to 1, by default 0.1, 0.5 and 0.9; none of them (False or empty) is faster and needs no memory for
        the rows.
    align : "start", "end", "fraction", the times of an event, or its condition
        By what the steps of episodes stand side by side.

        "end": by their last transition, at `lag` 0, what is before it at -1, -2, ... Only episodes that the
        environment ended, since the end of one that was cut is not known.

        "fraction": each complete episode from 0 to 1, in equal parts. It has one value in each part, its mean there,
        where transition `t` of `L` counts as far as it covers the part, from ``t / L`` to ``(t + 1) / L``: an
        episode shorter than the parts has a value in each, too, and all weigh the same everywhere.

        The times of an event, as `event_times` returns them, or its condition (the name of a field of bools, a
        function, or an array of bools): by the event, at `lag` 0. Episodes that never reached it are left out.
    window : (int, int), optional
        Steps before and after an event, both with it; by default at most 50. With ``align="end"`` steps before the
        last transition, and 0 after it, as in ``(9, 0)``; by default all.
    parts : int, optional
        Into how many an episode is cut with ``align="fraction"``, by default 50.

    Returns
    -------
    Dataset
        `mean`, `std` (population, ddof 0) and `quantiles` (linear between the two nearest values), float64, dims
        (by, time, ...) and (quantile, by, time, ...) with the field's own dims last; `n`, int64, dims
        (by, time), and `agent` for a field of agents. Where `n` is 0 they are NaN. A NaN in the field makes all of
        them NaN at its step, and a warning says how many steps that concerns.

        With another `align` the dim is in place of `time` `lag`, in steps, or `fraction`, the middle of each part; the
        attribute `left_out` is the number of episodes that do not take part.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When the field does not hold numbers, `align` no times, or `parts` is no whole number.
    ValueError
        When a quantile is not within 0 and 1, `groups` does not fit, or a dim of the field has a name that the
        result uses itself; when `align`, `window` or `parts` do not fit, or steps of complete episodes are missing
        that a fraction needs.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"height": np.array([1.0, 5.0])}, {"height": np.array([3.0])}])
    >>> trace = tl.state_trace(ds, "height")
    >>> trace["mean"].values, trace["n"].values
    (array([2., 5.]), array([2, 1]))
    >>> tl.state_trace(ds, "height", align="end")["mean"].to_series().to_dict()
    {-1: 1.0, 0: 4.0}
    """
    ds, name = traced_field(ds, field, by)
    ds, alignment, attrs = choose_alignment(ds, name, align, window, parts)
    return grouped_trace(ds, name, trace_groups(ds, by, groups), quantiles, alignment).assign_attrs(attrs)


def grouped_trace(ds: xr.Dataset, name: str, groups: Groups, quantiles: Any, alignment: Alignment) -> xr.Dataset:
    """Return `state_trace` of the field called `name` for groups and an alignment that were made already."""
    levels = _check_quantiles(quantiles)
    require_numeric(ds.variables[name], name, "state_trace")
    require_free_dims(ds, name, (*groups.dims, alignment.dim, *TRACE_NAMES), "state_trace")
    _check_groups(groups, alignment)
    ranges = _ranges(ds, name, alignment, len(levels) > 0)
    parts = [_trace(part, name, groups, levels, narrowed) for part, narrowed in ranges]
    found = Reduced(*(np.concatenate(arrays, axis=-2) for arrays in zip(*parts, strict=True)))
    _report(found, name)
    return label_trace(ds, name, groups, alignment, levels, found)


def _check_groups(groups: Groups, alignment: Alignment) -> None:
    """Raise ValueError where groups cannot be told apart on the axis of the trace."""
    if alignment.dim == TIME:
        refuse_time(groups, "state_trace")
    if isinstance(alignment, InParts) and not groups.is_per_episode:
        raise ValueError(
            f"state_trace: by={groups.name!r} differs from transition to transition, and align='fraction' takes the "
            "mean of several; expected a coordinate over episode, such as 'start_iteration'"
        )


def _check_quantiles(quantiles: Any) -> np.ndarray:
    given = DEFAULT_QUANTILES if quantiles is None else () if quantiles is False else quantiles
    levels = np.asarray(given)
    are_numbers = levels.ndim == 1 and (levels.dtype.kind in "iuf" or not levels.size)
    if not are_numbers or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"quantiles={quantiles!r}; expected numbers from 0 to 1, or False for none")
    levels = levels.astype(np.float64)
    if len(np.unique(levels)) < len(levels):
        raise ValueError(f"quantiles={quantiles!r}; expected each only once")
    return levels


def _ranges(ds: xr.Dataset, name: str, alignment: Alignment, packs: bool) -> Iterator[tuple[xr.Dataset, Alignment]]:
    """Yield the Dataset in ranges of places whose rows can be held at once; whole where that is enough."""
    row = alignment.packs(ds.variables[name].dtype).itemsize * component_count(ds.variables[name])
    if not packs or alignment.most_rows * row <= MAX_PACKED:
        yield ds, alignment
        return
    there = count_alive(ds, make_groups(ds, None), alignment, AliveRows())
    which = (np.cumsum(there) - there) * row // MAX_PACKED
    edges = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(there)]
    for start, stop in itertools.pairwise(edges):
        yield alignment.narrowed(ds, start, stop)


def _trace(ds: xr.Dataset, name: str, groups: Groups, quantiles: np.ndarray, alignment: Alignment) -> Reduced:
    """Return what the field is reduced to at the places of an alignment."""
    alive = AliveRows.of(ds, name)
    variable = ds.variables[name]
    steps, width = len(alignment.labels), component_count(variable)
    size = groups.size * steps * alive.num_agents
    counts = count_alive(ds, groups, alignment, alive)
    moments = Moments(size, width // alive.num_agents)
    packer = Packer(counts, moments.width, alignment.packs(variable.dtype)) if len(quantiles) else None
    for batch in alignment.batches(ds, [name, *groups.fields, *alive.needed]):
        index, rows = _alive_rows(place_of(batch, groups, alignment), batch.values[name], batch, alive)
        if index.min(initial=0) < 0:
            kept = np.flatnonzero(index >= 0)
            index, rows = index.take(kept), rows.take(kept, axis=0)
        moments.add(index, rows)
        if packer is not None:
            packer.add(index, rows)
    mean, std = moments.result(counts)
    bands = packer.quantiles(quantiles) if packer is not None else np.zeros((0, size, moments.width))
    shape = (groups.size, steps)
    return Reduced(
        counts.reshape(*shape, alive.num_agents),
        mean.reshape(*shape, width),
        std.reshape(*shape, width),
        bands.reshape(len(quantiles), *shape, width),
    )


def _alive_rows(
    index: np.ndarray, values: np.ndarray, batch: FlatBatch, alive: AliveRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return places ``index * agents + agent`` and rows (K, component) of the agents that take part in transitions."""
    cells = alive.cells(batch)
    if cells is None:
        return index, as_rows(values)
    return alive_index(index, cells, alive), alive.by_agent(values).take(cells, axis=0)


def _report(found: Reduced, name: str) -> None:
    """Warn of NaN, and of what is beyond floats, in what was reduced."""
    counts, mean, std, _ = found
    of_agent = mean.reshape(*counts.shape, mean.shape[-1] // counts.shape[-1])
    steps = int((np.isnan(of_agent).any(axis=-1) & (counts > 0)).any(axis=(0, 2)).sum())
    if steps:
        warn_user(f"state_trace: {name!r} has NaN, and so has its trace, at {steps} of {mean.shape[1]} steps")
    there = np.broadcast_to((counts > 0)[..., np.newaxis], of_agent.shape)
    lost = ~np.isfinite(of_agent) | ~np.isfinite(std.reshape(of_agent.shape))
    report_overflow("state_trace", name, lost & there & ~np.isnan(of_agent))
