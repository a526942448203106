"""How often one action follows another within an episode."""

import functools
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of, inner_coords, inner_dims, made_by, require_free_dims, title_of, units_of
from trajlab.analysis.discrete import as_discrete, require_discrete, require_few
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.masks import but_not, count_set, either
from trajlab.analysis.kernels.pairs import PairCounter
from trajlab.analysis.labels import LabelsArgument, check_labels, list_values, value_coords
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count
from trajlab.dataset.successive import iter_successive
from trajlab.errors import warn_user
from trajlab.names import (
    COUNT,
    LABEL,
    NEXT_LABEL,
    NEXT_VALUE,
    NUM_NAN_ATTR,
    PAIR_NAMES,
    PROBABILITY,
    SHARE,
    VALUE,
)


def action_transitions(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
) -> xr.Dataset:
    r"""Count how often each action was followed by each other one, one step later in the same episode.

    The last action of an episode is followed by none: an episode of `L` steps has `L - 1` pairs. After a slice of
    `time` two actions are a pair only where their steps are neighbours. Where several agents share an environment, both
    actions must be of one that takes part (`alive`). With the counts :math:`n_{ij}` of `j` one step after `i`:

    .. math:: \mathrm{share}_{ij} = \frac{n_{ij}}{\sum_{kl} n_{kl}}, \qquad
              \mathrm{probability}_{ij} = \frac{n_{ij}}{\sum_{l} n_{il}}

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field of integers, bools or text; each of its components is counted by itself.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, the first action of a pair decides.
    labels : sequence or mapping, optional
        As in `action_histogram`.

    Returns
    -------
    Dataset
        Dims (by, ..., value, next_value), with the field's own dims between: `count`, int64; `share`, float64, the
        part of all pairs of that group and component (NaN where there are none); and `probability`, float64, the
        part of the pairs that begin with that `value`, so that rows sum to 1 (NaN where nothing followed it).
        `value` and `next_value` are the same, as in `action_histogram`, with the coordinates `label` and
        `next_label` where there are `labels`. A NaN is in no pair; the attribute `num_nan` and a warning say how
        many there are.

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
    >>> ds = tl.from_episodes([{"action": np.array([0, 0, 1])}, {"action": np.array([1, 1])}])
    >>> tl.action_transitions(ds)["count"].values
    array([[1, 1],
           [0, 1]])
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    return grouped_transitions(ds, name, make_groups(ds, by, groups), labels)


def grouped_transitions(ds: xr.Dataset, name: str, groups: Groups, labels: Any) -> xr.Dataset:
    """Return `action_transitions` of the field called `name` for groups that were made already."""
    names = check_labels(labels)
    kind = require_discrete(ds, name, "action_transitions")
    require_free_dims(ds, name, (*groups.dims, *PAIR_NAMES), "action_transitions")
    values, counts, num_nan = _count_pairs(ds, name, groups, kind)
    if num_nan:
        warn_user(f"action_transitions: {num_nan} values of {name!r} are NaN, and in no pair; attrs['num_nan'] says so")
    listed, counts = list_values(values, counts, names, ds.variables[name].attrs, name)
    _, counts = list_values(values, counts.swapaxes(-1, -2), names, ds.variables[name].attrs, name)
    return _labelled(ds, name, groups, listed, counts.swapaxes(-1, -2), names, num_nan)


def _count_pairs(ds: xr.Dataset, name: str, groups: Groups, kind: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the values, counts (group, component, value, next value), and how many values are NaN."""
    counter = PairCounter(
        groups.size,
        component_count(ds.variables[name]),
        functools.partial(require_few, name=name, what="action_transitions"),
    )
    num_nan = 0
    alive = AliveRows.of(ds, name)
    for one in iter_successive(ds, [name, *groups.fields, *alive.needed]):
        batch = one.batch
        values, missing = as_discrete(batch.values[name], kind)
        dead = alive.missing(batch, batch.values[name].shape)
        nan = but_not(missing, dead)
        num_nan += 0 if nan is None else count_set(nan[one.shared :])
        group = groups.index(batch)
        if group is not None and len(one.absent):
            group = group.copy()
            group[one.absent] = -1
        counter.add(values, one.last, group, either(missing, dead), one.ahead)
    return counter.values, counter.counts, num_nan


def _labelled(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    values: np.ndarray,
    counts: np.ndarray,
    labels: dict[Any, str] | None,
    num_nan: int,
) -> xr.Dataset:
    """Return counts (group, component, value, next value) as a Dataset."""
    dims = (*groups.dims, *inner_dims(ds, name), VALUE, NEXT_VALUE)
    counts = np.ascontiguousarray(counts).reshape(*groups.shape, *ds.variables[name].shape[2:], *counts.shape[-2:])
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=(-2, -1), keepdims=True)
        probability = counts / counts.sum(axis=-1, keepdims=True)
    coords = value_coords(ds, name, values, labels)
    coords[NEXT_VALUE] = (NEXT_VALUE, values, {"long_name": f"next {title_of(ds, name)}", **units_of(ds, name)})
    if labels is not None:
        coords[NEXT_LABEL] = (NEXT_VALUE, coords[LABEL][1])
    return xr.Dataset(
        {
            COUNT: (dims, counts, {"long_name": "pairs"}),
            SHARE: (dims, share, {"long_name": "share of pairs", "units": "1"}),
            PROBABILITY: (dims, probability, {"long_name": "probability of the next one", "units": "1"}),
        },
        {**inner_coords(ds, name), **groups.coords(), **coords},
        made_by(ds, "action_transitions", name) | {NUM_NAN_ATTR: num_nan},
    )
