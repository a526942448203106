"""How much a field still has in common with itself some steps later."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import (
    field_of,
    inner_coords,
    inner_dims,
    made_by,
    report_overflow,
    require_free_dims,
    require_numeric,
    steps_number,
    title_of,
)
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.lagged_sums import LagSums, PairSums, sum_pairs
from trajlab.analysis.kernels.spacing import Spacing, alike_in_length
from trajlab.analysis.spaced import SpacedEpisodes, SpacedTile
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count
from trajlab.dataset.ordered import iter_whole
from trajlab.errors import warn_user
from trajlab.names import AGENT, AUTOCORRELATION, AUTOCORRELATION_NAMES, LAG, N

DEFAULT_LAGS = 50
MAX_ROWS = 2**16
"""Transitions taken at once: a few arrays of more would be memory the system hands out anew each time."""
MAX_THREADS = 8
"""Each holds a few arrays of a tile."""


def autocorrelation(
    ds: xr.Dataset,
    field: str,
    *,
    max_lag: int | None = None,
    by: str | None = None,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    r"""Return how much a field correlates with itself `lag` steps later in the same episode.

    It is Pearson's correlation over all `n` pairs of a step and the one `lag` steps later, both of one episode:

    .. math:: r_k = \frac{\sum (x_t - \bar x_k)(x_{t+k} - \bar y_k)}
              {\sqrt{\sum (x_t - \bar x_k)^2 \sum (x_{t+k} - \bar y_k)^2}}

    where the sums and both means, :math:`\bar x_k` of the earlier values and :math:`\bar y_k` of the later ones, run
    over the pairs of that lag. The means are not those of all steps, since long lags have pairs in long episodes
    only. An episode of `L` steps has `L - k` pairs; read the curve together with `n`.

    What differs from episode to episode counts as correlation: where each episode has a level of its own, the curve
    does not fall to 0. To see fluctuations alone, take each episode's mean off first:
    ``ds.assign(x=ds["x"] - ds["x"].where(ds.mask).mean("time"))``, which in turn makes short episodes look as if they
    swung back. A trend over the steps counts as correlation, too.

    Parameters
    ----------
    ds : Dataset
    field : str
        Of bools or numbers; each of its components is correlated with itself. Numbers that only name something, as
        those of actions do, have no meaningful correlation: see `action_transitions`.
    max_lag : int, optional
        The longest lag in steps; by default 50, or less where no episode is so long.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, the earlier step of a pair decides.

    Returns
    -------
    Dataset
        `autocorrelation`, float64, dims (by, lag, ...) with the field's own dims last: 1 at lag 0, NaN where there are
        no pairs, or the values on either side do not vary; `n`, int64, dims (by, lag), and `agent` for a field of
        agents: the number of pairs. A NaN or an infinite value makes it NaN at each lag of which it is in a pair, and
        a warning says so, and likewise of values so large (about 1e150 and beyond) that their squares are no floats.
        After a slice of `time`, steps count by their labels: pairs are `lag` of these apart.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When the field does not hold numbers, or `max_lag` is no whole number.
    ValueError
        When `max_lag` is negative, `groups` does not fit, or a dim of the field has a name that the result uses
        itself.

    Notes
    -----
    Episodes of groups by episode are summed in as many threads as there are processors, at most eight.

    References
    ----------
    Box, Jenkins, Reinsel & Ljung, "Time Series Analysis", 5th edition (2015), section 2.1, there with one mean and
    variance for all lags, which a population that changes with the lag does not allow.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"x": np.array([1.0, -1.0, 1.0, -1.0])}, {"x": np.array([1.0, -1.0])}])
    >>> result = tl.autocorrelation(ds, "x", max_lag=2)
    >>> result["autocorrelation"].values, result["n"].values
    (array([ 1., -1.,  1.]), array([6, 4, 2]))
    """
    ds, name = field_of(ds, field, along=by)
    return grouped_autocorrelation(ds, name, make_groups(ds, by, groups), max_lag)


def grouped_autocorrelation(ds: xr.Dataset, name: str, groups: Groups, max_lag: Any) -> xr.Dataset:
    """Return `autocorrelation` of the field called `name` for groups that were made already."""
    lags = _check_lag(max_lag, Cells.of(ds))
    require_numeric(ds.variables[name], name, "autocorrelation")
    require_free_dims(ds, name, (*groups.dims, *AUTOCORRELATION_NAMES), "autocorrelation")
    sums = _add_up(ds, name, groups, lags)
    undefined = sum(int(one.undefined.any(axis=1).sum()) for one in sums)
    if undefined:
        total = groups.size * component_count(ds.variables[name])
        what = "groups and components" if groups.dims else "components"
        warn_user(
            f"autocorrelation: {name!r} has NaN or infinite values, and so NaN as its autocorrelation at some lags, in "
            f"{undefined} of {total} {what}"
        )
    report_overflow("autocorrelation", name, np.stack([one.overflown() for one in sums]))
    return _labelled(ds, name, groups, sums)


def _check_lag(max_lag: Any, cells: Cells) -> int:
    """Return the longest lag."""
    if max_lag is None:
        longest = int(cells.counts.max(initial=0))
        return min(DEFAULT_LAGS, int(cells.labels[longest - 1] - cells.labels[0])) if longest else 0
    return steps_number("max_lag", max_lag, cells)


def _add_up(ds: xr.Dataset, name: str, groups: Groups, lags: int) -> list[LagSums]:
    """Return the sums over pairs, one for each agent where the field has an axis of them, else a single one."""
    cells, alive = Cells.of(ds), AliveRows.of(ds, name)
    components = component_count(ds.variables[name]) // max(alive.num_agents, 1)
    sums = [LagSums(groups.size, components, lags) for _ in range(alive.num_agents)]
    if groups.is_per_episode and not alive.needed and not cells.has_gaps:
        _add_episodes(sums[0], SpacedEpisodes(ds, name, groups.of_episode), ds.variables[name].dtype)
    else:
        _add_rows(sums, ds, name, groups)
    return sums


def _add_episodes(sums: LagSums, episodes: SpacedEpisodes, dtype: np.dtype) -> None:
    """Add whole episodes, whose every transition counts, with all processors."""
    fill = np.full(sums.shift.shape, np.nan if dtype.kind in "fVO" else 0, dtype)
    for group, rows in episodes.samples():
        places = sums.meet(group, rows.astype(np.float64))
        is_met = places >= 0
        fill[group, is_met] = rows[places[is_met], is_met.nonzero()[0]]

    def summed(tile: SpacedTile) -> PairSums | None:
        return sum_pairs(tile.values, sums.shift[tile.group], tile.starts, tile.stops, tile.gap)

    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        for tiles in episodes.tiles(sums.most, fill):
            for tile, pairs in zip(tiles, _mapped(pool, summed, tiles), strict=True):
                if pairs is not None:
                    sums.add(tile.group, pairs)
                else:
                    spacing = Spacing.of(tile.stops - tile.starts, tile.gap)
                    rows = tile.values[spacing.place].astype(np.float64)
                    sums.add_rows(rows, spacing, np.full(len(rows), tile.group))


def _mapped(
    pool: ThreadPoolExecutor, function: Callable[[SpacedTile], PairSums | None], tiles: list[SpacedTile]
) -> Iterator[PairSums | None]:
    """Return what a function makes of each tile, with other threads where there are several and these can be had."""
    if len(tiles) > 1:
        try:
            return pool.map(function, tiles)
        except RuntimeError:  # memory or a limit allows no further thread, or the interpreter is about to end
            pool.shutdown(cancel_futures=True)
    return map(function, tiles)


def _add_rows(sums: list[LagSums], ds: xr.Dataset, name: str, groups: Groups) -> None:
    """Add transitions, each of a group of its own, those of each agent that takes part to its sums."""
    cells, alive = Cells.of(ds), AliveRows.of(ds, name)
    for batch, span in iter_whole(ds, [name, *groups.fields, *alive.needed], MAX_ROWS):
        values = alive.by_agent(batch.values[name].astype(np.float64))
        rows = values.reshape(len(batch.values[name]), alive.num_agents, values.shape[1])
        mask, index = alive.mask(batch), groups.index(batch)
        counts = span.counts[span.counts > 0]
        for chosen, gap in alike_in_length(cells.labels[counts - 1] - cells.labels[0] + 1, sums[0].most):
            own: Any = slice(None) if chosen is None else np.repeat(np.isin(np.arange(len(counts)), chosen), counts)
            spacing = Spacing.of(counts if chosen is None else counts[chosen], gap, steps=span.time[own])
            for agent, one in enumerate(sums):
                present = None if mask is None else mask[own, agent]
                one.add_rows(rows[own, agent], spacing, None if index is None else index[own], present)


def _labelled(ds: xr.Dataset, name: str, groups: Groups, sums: list[LagSums]) -> xr.Dataset:
    """Return the correlations as a Dataset."""
    alive = AliveRows.of(ds, name)
    lead = (*groups.shape, sums[0].n.shape[1])
    by_agent = np.stack([one.correlation() for one in sums], axis=2)
    values = alive.over_field(by_agent, lead, ds.variables[name].shape[2:])
    of_agents = () if alive.axis is None else (AGENT,)
    counts = np.stack([one.n for one in sums], axis=-1).reshape(*lead, *((alive.num_agents,) if of_agents else ()))
    dims = (*groups.dims, LAG)
    return xr.Dataset(
        {
            AUTOCORRELATION: (
                (*dims, *inner_dims(ds, name)),
                values,
                {"long_name": f"autocorrelation of {title_of(ds, name)}", "units": "1"},
            ),
            N: ((*dims, *of_agents), counts, {"long_name": "pairs"}),
        },
        {
            LAG: (LAG, np.arange(lead[-1]), {"long_name": "lag", "units": "steps"}),
            **groups.coords(),
            **inner_coords(ds, name),
        },
        made_by(ds, "autocorrelation", name),
    )
