"""How episodes end, over training."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import made_by
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups
from trajlab.analysis.grouping.training import group_ends, make_training_groups
from trajlab.dataset.fields import as_text
from trajlab.dataset.schema import validate
from trajlab.names import COUNT, END_REASON, END_REASONS, SHARE, START_ITERATION


def outcomes(ds: xr.Dataset, *, by: str | None = START_ITERATION, groups: GroupsArgument = None) -> xr.Dataset:
    """Count how episodes end: the share of each end reason over training.

    Parameters
    ----------
    ds : Dataset
    by : str or None
        A coordinate or variable over `episode`; None puts all in one group.
    groups
        As in `action_histogram`, but that by default each number is a group where there are up to 40, and more are
        cut into 20 ranges of about equal episode count.

    Returns
    -------
    Dataset
        Dims (by, end_reason), the end reasons always ``terminated``, ``truncated``, ``done`` (ended, reason unknown)
        and ``cut``, in this order: `count`, int64, the episodes; `share`, float64, their part of the group, NaN in a
        group without an episode. Where `by` holds numbers, `first` and `last`, the smallest and the largest in each
        group, are coordinates.

    Raises
    ------
    KeyError
        When there is no such coordinate.
    ValueError
        When `ds` is not valid, `by` is a matter of the transition or the end reason itself, or `groups` does not fit.

    Notes
    -----
    All episodes count, those that were cut too: a cut one did not end, so where many are cut, as in the last
    iterations of a recording, the shares of the others are too small. Leaving cut ones out
    (``ds.isel(episode=ds.end_reason.values != "cut")``) gives those that ended soon too much weight there instead.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> reasons = ["terminated", "truncated", "truncated", "cut"]
    >>> ds = tl.from_episodes([{"reward": np.ones(2)}] * 4, end_reason=reasons, iteration=[0, 0, 1, 1])
    >>> tl.outcomes(ds)["count"].values
    array([[1, 1, 0, 0],
           [0, 1, 0, 1]])
    """
    return grouped_outcomes(ds, make_outcome_groups(ds, by, groups))


def make_outcome_groups(ds: xr.Dataset, by: Any, groups: GroupsArgument) -> Groups:
    """Return the groups of `outcomes`; raise where they cannot be had."""
    validate(ds)
    if by == END_REASON:
        raise ValueError(f"by={by!r} is what is counted; expected another coordinate over episode, or None")
    return make_training_groups(ds, by, groups)


def grouped_outcomes(ds: xr.Dataset, groups: Groups) -> xr.Dataset:
    """Return `outcomes` for groups that were made already."""
    reason = as_text(ds[END_REASON].values)
    group = np.zeros(len(reason), np.intp) if groups.of_episode is None else groups.of_episode
    count = np.stack([np.bincount(group[(reason == one) & (group >= 0)], minlength=groups.size) for one in END_REASONS])
    count = count.T.astype(np.int64)
    with np.errstate(invalid="ignore"):
        share = count / count.sum(axis=1, keepdims=True)
    dims, lead = (*groups.dims, END_REASON), slice(None) if groups.dims else 0
    return xr.Dataset(
        {
            COUNT: (dims, count[lead], {"long_name": "episodes"}),
            SHARE: (dims, share[lead], {"long_name": "share of episodes", "units": "1"}),
        },
        {**groups.coords(), **group_ends(groups), END_REASON: list(END_REASONS)},
        made_by(ds, "outcomes", END_REASON),
    )
