"""Which actions are taken at each step, over the episodes that are still alive."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.alignment.alignments import FromStart
from trajlab.analysis.alignment.places import count_alive, place_of
from trajlab.analysis.common import field_of, inner_coords, inner_dims, made_by, require_free_dims
from trajlab.analysis.discrete import as_discrete, require_discrete, require_few
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups, refuse_time
from trajlab.analysis.kernels.counting import ValueCounter
from trajlab.analysis.kernels.held_rows import HeldRows
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.analysis.labels import LabelsArgument, check_labels, list_values, value_coords
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import iter_flat
from trajlab.errors import warn_user
from trajlab.names import AGENT, COUNT, NUM_NAN_ATTR, RATE_NAMES, SHARE, TIME, VALUE, N


def action_rates(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
) -> xr.Dataset:
    """Return the share that each action has at each step, over the episodes that are still alive.

    At step `t` these are the `n` episodes longer than `t`, those cut later than `t` too; for a field of agents, those
    in which the agent still takes part. An episode recorded from mid-way (`start_seen` is False) counts from its first
    recorded step.

    The population changes as episodes end: a share may rise because those that acted otherwise are gone. Read it
    together with `n`.

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field of integers, bools or text; each of its components is counted by itself.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, `n` counts the transitions of a group.
    labels : sequence or mapping, optional
        As in `action_histogram`.

    Returns
    -------
    Dataset
        `count`, int64, and `share`, float64, dims (by, time, ..., value) with the field's own dims between: the count
        as a part of all that were counted at that step (NaN where none were). `n`, int64, dims (by, time), and
        `agent` for a field of agents. `value` is as in `action_histogram`, with the coordinate `label` where there
        are `labels`. A NaN counts for no action; the attribute `num_nan` and a warning say how many there are.

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
    >>> ds = tl.from_episodes([{"action": np.array([0, 1])}, {"action": np.array([1])}])
    >>> rates = tl.action_rates(ds)
    >>> rates["share"].values, rates["n"].values
    (array([[0.5, 0.5],
           [0. , 1. ]]), array([2, 1]))
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    return grouped_rates(ds, name, make_groups(ds, by, groups), labels)


def grouped_rates(ds: xr.Dataset, name: str, groups: Groups, labels: Any) -> xr.Dataset:
    """Return `action_rates` of the field called `name` for groups that were made already."""
    names = check_labels(labels)
    counted = count_steps(ds, name, groups, "action_rates")
    values, counts = list_values(counted.values, counted.counts, names, ds[name].attrs, name)
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=-1, keepdims=True)
    dims = (*groups.dims, TIME, *inner_dims(ds, name), VALUE)
    shape = (*groups.shape, ds.sizes[TIME], *ds[name].shape[2:], len(values))
    variables: dict[str, Any] = {
        COUNT: (dims, counts.reshape(shape), {"long_name": "transitions"}),
        SHARE: (dims, share.reshape(shape), {"long_name": "share of transitions", "units": "1"}),
    }
    return labelled_steps(ds, name, groups, counted, variables, value_coords(ds, name, values, names), "action_rates")


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
    components = component_count(ds[name].variable)
    check = functools.partial(require_few, name=name, what=what)
    counter = ValueCounter(groups.size * len(steps.labels), components, check)
    held = HeldRows(counter.add, lambda: counter.counts.size // max(components, 1))
    num_nan = 0
    for batch in iter_flat(ds, [name, *groups.fields, *alive.needed]):
        values, missing = as_discrete(batch.values[name], kind)
        dead = alive.missing(batch, batch.values[name].shape)
        num_nan += count_set(missing, dead)
        held.add(values, place_of(batch, groups, steps), either(missing, dead))
    held.flush()
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
            TIME: (TIME, np.sort(ds[TIME].values), ds[TIME].attrs),
            **groups.coords(),
            **inner_coords(ds, name),
            **coords,
        },
        made_by(ds, what, name) | {NUM_NAN_ATTR: counted.num_nan},
    )
