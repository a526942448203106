"""How often each value of a field occurs at each step, over the episodes that are still alive."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import FromStart
from trajlab.analysis.alignment.places import count_alive, place_of
from trajlab.analysis.common import inner_coords, made_by, require_free_dims
from trajlab.analysis.discrete import as_discrete, require_discrete, require_few
from trajlab.analysis.grouping.groups import Groups, refuse_time
from trajlab.analysis.kernels.counting import ValueCounter
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import iter_flat
from trajlab.errors import warn_user
from trajlab.names import AGENT, NUM_NAN_ATTR, RATE_NAMES, TIME, N


@dataclasses.dataclass(frozen=True, eq=False)
class Counted:
    """How often each value occurred at each step.

    Attributes
    ----------
    values : array (value,)
        Those that occurred, ascending.
    counts : array (group * time, component, value) int64
    alive : array (group * time * agent,) int64
        How many transitions stand at each place.
    num_nan : int
    """

    values: np.ndarray
    counts: np.ndarray
    alive: np.ndarray
    num_nan: int


def count_steps(ds: xr.Dataset, name: str, groups: Groups, what: str) -> Counted:
    """Count each value at each step; `what` names the function in messages."""
    kind = require_discrete(ds, name, what)
    refuse_time(groups, what)
    require_free_dims(ds, name, (*groups.dims, *RATE_NAMES), what)
    steps, alive = FromStart.of(ds), AliveRows.of(ds, name)
    components = component_count(ds.variables[name])
    check = functools.partial(require_few, name=name, what=what)
    counter = ValueCounter(groups.size * len(steps.labels), components, check)
    num_nan = 0
    for batch in iter_flat(ds, [name, *groups.fields, *alive.needed]):
        values, missing = as_discrete(batch.values[name], kind)
        dead = alive.missing(batch, batch.values[name].shape)
        num_nan += count_set(missing, dead)
        counter.add(values, place_of(batch, groups, steps), either(missing, dead))
    if num_nan:
        warn_user(f"{what}: {num_nan} values of {name!r} are NaN and counted in attrs['num_nan'] only")
    return Counted(*counter.result(), count_alive(ds, groups, steps, alive), num_nan)


def labelled_steps(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    counted: Counted,
    variables: dict[str, Any],
    coords: dict[str, Any],
    what: str,
) -> xr.Dataset:
    """Return variables as a Dataset, with `n`, steps, groups and components."""
    alive = AliveRows.of(ds, name)
    of_agents = {} if alive.axis is None else {AGENT: alive.num_agents}
    n = counted.alive.reshape(*groups.shape, ds.sizes[TIME], *of_agents.values())
    long_name = "episodes alive" if groups.is_per_episode else "transitions"
    return xr.Dataset(
        variables | {N: ((*groups.dims, TIME, *of_agents), n, {"long_name": long_name})},
        {
            TIME: (TIME, np.sort(ds[TIME].values), ds.variables[TIME].attrs),
            **groups.coords(),
            **inner_coords(ds, name),
            **coords,
        },
        made_by(ds, what, name) | {NUM_NAN_ATTR: counted.num_nan},
    )
