"""Which actions are taken in which states."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.places import alive_index
from trajlab.analysis.common import (
    as_rows,
    filled,
    inner_coords,
    inner_dims,
    made_by,
    report_overflow,
    require_free_dims,
    require_numeric,
    title_of,
    units_of,
)
from trajlab.analysis.components import Component, components_of
from trajlab.analysis.discrete import as_discrete, discrete_kind, require_few
from trajlab.analysis.grid import BinsArgument, Grid, make_grid, report_nan
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.counting import MAX_PLACES, PlaceCounter, ValueCounter
from trajlab.analysis.kernels.masks import but_not, count_set, either
from trajlab.analysis.kernels.moments import Moments
from trajlab.analysis.labels import LabelsArgument, check_labels, list_values, value_coords
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count, resolve_field
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.dataset.schema import validate
from trajlab.errors import require_text, warn_user
from trajlab.names import (
    ACTION_GRID_NAMES,
    AGENT,
    COUNT,
    MEAN,
    NUM_NAN_ATTR,
    NUM_OUTSIDE_ATTR,
    NUM_STATE_NAN_ATTR,
    SHARE,
    STD,
    VALUE,
    N,
)

DEFAULT_BINS = 20
WHAT = "action_by_state"


def action_by_state(
    ds: xr.Dataset,
    state: str | Sequence[str],
    action: str = "action",
    *,
    bins: BinsArgument = None,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
) -> xr.Dataset:
    r"""Return which actions were taken in which states, over all transitions, those of cut episodes too.

    With the :math:`n_s` transitions whose state is in bin `s`, of which :math:`n_{s,a}` have the action `a`:

    .. math:: \mathrm{share}_{s,a} = \frac{n_{s,a}}{\sum_{b} n_{s,b}}

    That is an estimate of the policy there, averaged over all that the bin holds: of other components of the state,
    and of training. Read it together with `n`. Where there are several agents, those that are done do not count.

    Parameters
    ----------
    ds : Dataset
    state : str or pair of str
        One component or two, called as in `stack_fields`: ``"obs[x]"``, ``["obs[0]", "obs[1]"]``.
    action : str
        The action, or any other field; each of its components by itself.
    bins : int, edges or pair, optional
        As in `occupancy`, by default 20; for a single component also its edges.
    by, groups, labels
        As in `action_histogram`.

    Returns
    -------
    Dataset
        Dims (by, x_bin, ...) for one component, (by, x_bin, y_bin, ...) for two, with the action's own dims behind. Of
        bools, integers and text: `count`, int64, and `share`, float64 (NaN where nothing was counted), with `value`
        as last dim, as in `action_histogram`. Of other numbers: `mean` and `std` (population, ddof 0), float64, NaN
        in empty bins. And `n`, int64, the transitions in each bin, with `agent` for an action of agents. Bins are
        those of `occupancy`. Attributes: `num_nan` actions within bins are NaN (and count for none, or make the mean
        of their bin NaN), in `num_state_nan` transitions the state is, in `num_outside` it lies outside of the
        bins; warnings tell of NaN.

    Raises
    ------
    KeyError
        When there is no such component, field or coordinate.
    TypeError
        When a component of the state does not hold numbers, or `labels` is a single text.
    ValueError
        When `state` names none or more than two, `bins`, `groups` or `labels` do not fit, the action has more than
        1,024 distinct values that are counted, or a dim of it has a name that the result uses itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"cell": np.array([0, 0, 1]), "action": np.array([1, 1, 0])}])
    >>> tl.action_by_state(ds, "cell")["share"].values
    array([[0., 1.],
           [1., 0.]])
    """
    ds, components, name = state_and_action(ds, state, action, by)
    return grouped_by_state(ds, components, name, make_groups(ds, by, groups), bins, labels)


def state_and_action(ds: xr.Dataset, state: Any, action: Any, along: Any) -> tuple[xr.Dataset, list[Component], str]:
    """Return what `components_of` does for a state of one or two components, and the field of the action."""
    wanted = [state] if isinstance(state, str) or not isinstance(state, Iterable) else list(state)
    require_text("action", action, "a field")
    if not 1 <= len(wanted) <= 2:
        raise ValueError(f"{WHAT}: state={state!r}; expected one component, as 'obs[0]', or two: ['obs[0]', 'obs[1]']")
    validate(ds)
    ds = filled(ds, {**dict.fromkeys(map(str, wanted), np.float64), action: np.int64}, along)
    ds, components = components_of(ds, wanted, WHAT, along=along)
    return ds, components, resolve_field(ds, action)


def grouped_by_state(
    ds: xr.Dataset, components: Sequence[Component], name: str, groups: Groups, bins: Any, labels: Any
) -> xr.Dataset:
    """Return `action_by_state` for components, an action called `name` and groups that were found already."""
    names = check_labels(labels)
    kind = discrete_kind(ds, name)
    if names is not None and kind is None:
        raise ValueError(f"labels= names actions 0, 1, ...; {name!r} is continuous, expected a field of integers")
    require_free_dims(ds, name, (*groups.dims, *ACTION_GRID_NAMES), WHAT)
    grid = make_grid(ds, components, bins, DEFAULT_BINS, groups.size)
    binned = _Binned(ds, name, grid, groups)
    coords: dict[str, Any] = {}
    if kind is None:
        require_numeric(ds.variables[name], name, WHAT)
        variables = _moments(ds, binned)
    else:
        variables, coords = _counts(ds, binned, kind, names)
    report_nan(WHAT, grid)
    if binned.num_nan:
        warn_user(f"{WHAT}: {binned.num_nan} values of {name!r} are NaN; attrs['num_nan'] says so")
    attrs = made_by(ds, WHAT, name)
    attrs |= {NUM_NAN_ATTR: binned.num_nan, NUM_STATE_NAN_ATTR: grid.num_nan, NUM_OUTSIDE_ATTR: grid.num_outside}
    return xr.Dataset(
        variables | {N: binned.count()}, {**inner_coords(ds, name), **groups.coords(), **grid.coords(), **coords}, attrs
    )


class _Binned:
    """The actions of a Dataset, batch by batch, each with the place of its state.

    Attributes
    ----------
    num_nan : int
        Actions met in bins that are NaN.
    """

    def __init__(self, ds: xr.Dataset, name: str, grid: Grid, groups: Groups) -> None:
        self.ds, self.name, self.grid, self.groups = ds, name, grid, groups
        self.alive = AliveRows.of(ds, name)
        self.inner = ds.variables[name].shape[2:]
        self.size = groups.size * grid.size
        self.num_nan = 0
        self._n = PlaceCounter(self.size * self.alive.num_agents)

    def batches(self) -> Iterator[tuple[FlatBatch, np.ndarray]]:
        """Yield each batch and the places ``group * bin`` of its transitions, and count those of agents that act."""
        fields = [self.name, *self.grid.needed, *self.groups.fields, *self.alive.needed]
        for batch in iter_flat(self.ds, list(dict.fromkeys(fields))):
            index = self.grid.index(batch, self.groups.index(batch))
            cells = self.alive.cells(batch)
            self._n.add(index if cells is None else alive_index(index, cells, self.alive))
            yield batch, index

    @property
    def n(self) -> np.ndarray:
        """How many transitions stand at each place (place * agent,)."""
        return self._n.counts

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims (by, bins)."""
        return (*self.groups.dims, *self.grid.dims)

    @property
    def lead(self) -> tuple[int, ...]:
        """The sizes of `dims`."""
        return (*self.groups.shape, *self.grid.shape)

    def count(self) -> tuple[Any, ...]:
        """Return the variable `n`."""
        of_agents = {} if self.alive.axis is None else {AGENT: self.alive.num_agents}
        n = self.n.reshape(*self.lead, *of_agents.values())
        return (*self.dims, *of_agents), n, {"long_name": "transitions"}


def _counts(
    ds: xr.Dataset, binned: _Binned, kind: str, labels: dict[Any, str] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return how often each value occurs in each bin, and the coordinates of values."""
    name, components = binned.name, component_count(ds.variables[binned.name])

    def check(number: int) -> None:
        require_few(number, name, WHAT)
        if number * components * binned.size > MAX_PLACES:
            raise ValueError(
                f"{WHAT}: {number} actions in {binned.size:,} bins of all groups are too many; expected at most "
                f"{MAX_PLACES:,} counts: give fewer bins="
            )

    counter = ValueCounter(binned.size, components, check)
    for batch, index in binned.batches():
        values, missing = as_discrete(batch.values[name], kind)
        dead = binned.alive.missing(batch, batch.values[name].shape)
        nan = but_not(missing, dead)
        binned.num_nan += 0 if nan is None else count_set(nan[index >= 0])
        counter.add(values, index, either(missing, dead))
    values, counts = list_values(*counter.result(), labels, ds.variables[name].attrs, name)
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=-1, keepdims=True)
    dims = (*binned.dims, *inner_dims(ds, name), VALUE)
    shape = (*binned.lead, *binned.inner, len(values))
    return {
        COUNT: (dims, counts.reshape(shape), {"long_name": "transitions"}),
        SHARE: (dims, share.reshape(shape), {"long_name": "share of transitions in the bin", "units": "1"}),
    }, value_coords(ds, name, values, labels)


def _moments(ds: xr.Dataset, binned: _Binned) -> dict[str, Any]:
    """Return mean and deviation in each bin."""
    name, alive = binned.name, binned.alive
    width = component_count(ds.variables[name]) // max(alive.num_agents, 1)
    moments = Moments(binned.size * alive.num_agents, width)
    for batch, index in binned.batches():
        cells = alive.cells(batch)
        rows = as_rows(batch.values[name])
        if cells is not None:
            index, rows = alive_index(index, cells, alive), alive.by_agent(batch.values[name]).take(cells, axis=0)
        if index.min(initial=0) < 0:
            index, rows = index[index >= 0], rows[index >= 0]
        binned.num_nan += int(np.isnan(rows).sum()) if rows.dtype.kind == "f" else 0
        moments.add(index, rows)
    found = moments.result(binned.n)
    report_overflow(WHAT, name, ~np.isnan(found[0]) & ~(np.isfinite(found[0]) & np.isfinite(found[1])))
    mean, std = (alive.over_field(values, binned.lead, binned.inner) for values in found)
    title, units = title_of(ds, name), units_of(ds, name)
    dims = (*binned.dims, *inner_dims(ds, name))
    return {
        MEAN: (dims, mean, {"long_name": f"mean of {title}", **units}),
        STD: (dims, std, {"long_name": f"standard deviation of {title}", **units}),
    }
