"""Which actions are taken at each step, over the episodes that are still alive."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of, inner_dims
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.labels import LabelsArgument, check_labels, list_values, value_coords
from trajlab.analysis.step_counts import count_steps, labelled_steps
from trajlab.names import COUNT, SHARE, TIME, VALUE


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
    values, counts = list_values(counted.values, counted.counts, names, ds.variables[name].attrs, name)
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=-1, keepdims=True)
    dims = (*groups.dims, TIME, *inner_dims(ds, name), VALUE)
    shape = (*groups.shape, ds.sizes[TIME], *ds.variables[name].shape[2:], len(values))
    variables: dict[str, Any] = {
        COUNT: (dims, counts.reshape(shape), {"long_name": "transitions"}),
        SHARE: (dims, share.reshape(shape), {"long_name": "share of transitions", "units": "1"}),
    }
    return labelled_steps(ds, name, groups, counted, variables, value_coords(ds, name, values, names), "action_rates")
