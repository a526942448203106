"""How a field is distributed, and how that drifts over time or training."""

import xarray as xr

from trajlab.analysis.action_histogram import DEFAULT_BINS, find_range, grouped_histogram
from trajlab.analysis.common import field_of, require_free_dims
from trajlab.analysis.discrete import discrete_kind
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.grouping.groups import Groups
from trajlab.analysis.grouping.training import group_ends, make_fine_groups
from trajlab.analysis.labels import MAX_RANGE
from trajlab.edges import whole_edges
from trajlab.names import FIRST, LAST, TIME

WHAT = "state_histogram"


def state_histogram(
    ds: xr.Dataset,
    field: str,
    *,
    over: str = TIME,
    bins: int | Numbers | None = None,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    """Count how a field is distributed within each range of steps, or of training.

    All transitions count, those of cut episodes too. Where several agents share an environment, those that are done
    do not (`alive` is False). Over ``"time"`` the population changes as episodes end: a distribution may move because
    those at its other end are gone.

    Parameters
    ----------
    ds : Dataset
    field : str
        Any field; each of its components is counted by itself.
    over : str
        What the distribution drifts over: ``"time"``, ``"iteration"``, or whatever `action_histogram` takes as `by`.
    bins : int or sequence of float, optional
        As in `action_histogram`: 50 by default, and a value for each integer, bool or text. Integers that span more
        than 1,024 come in bins, too, at most 50 that each span equally many. All components have the same bins: where
        their ranges differ, select one first.
    groups : int, sequence or mapping, optional
        As in `action_histogram`, but that by default each number is a group where there are up to 40, and more are cut
        into 40 ranges of about equal weight: so that each has as many transitions, or episodes, as the next.

    Returns
    -------
    Dataset
        As that of `action_histogram`, dims (over, ..., bin) or (over, ..., value): `count`, int64, and `share`,
        float64, the count as a part of all that were counted of that range and component (NaN where none were). Where
        `over` holds numbers, `first` and `last`, the smallest and the largest in each range, are coordinates.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When `bins` are asked for and the field does not hold numbers.
    ValueError
        When `bins` or `groups` do not fit, or a dim of the field has a name that the result uses itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"room": np.array([0, 1, 1])}, {"room": np.array([0, 0])}])
    >>> tl.state_histogram(ds, "room")["share"].values
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    ds, name = field_of(ds, field, along=over)
    return grouped_state_histogram(ds, name, make_fine_groups(ds, over, groups), bins)


def grouped_state_histogram(ds: xr.Dataset, name: str, groups: Groups, bins: int | Numbers | None) -> xr.Dataset:
    """Return `state_histogram` of the field called `name` for groups that were made already."""
    require_free_dims(ds, name, (FIRST, LAST), WHAT)
    if bins is None and discrete_kind(ds, name) in ("i", "u"):
        smallest, largest = find_range(ds, name)
        if largest - smallest >= MAX_RANGE:
            bins = whole_edges(int(smallest), int(largest), DEFAULT_BINS)
    result = grouped_histogram(ds, name, groups, bins, what=WHAT)
    return result.assign_coords(group_ends(groups))
