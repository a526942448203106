"""Groups of episodes over training, and where along it they stand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.cut import GroupsArgument
from trajlab.analysis.groups import Groups, is_category, make_episode_groups
from trajlab.names import ENV, EPISODE, FIRST, LAST

MAX_SINGLE = 40
"""Up to so many distinct numbers each is a group of its own."""
RANGES = 20
"""More are cut into so many ranges of about equal episode count."""


def make_training_groups(ds: xr.Dataset, by: str | None, groups: GroupsArgument = None) -> Groups:
    """Return groups of episodes that are fine enough for a curve over training.

    As `make_episode_groups`, but that without `groups` each number is a group where there are up to 40, and more are
    cut into 20 ranges of about equal episode count.
    """
    if by is not None and groups is None and by in ds.variables and ds[by].dims == (EPISODE,):
        values = ds[by].values
        if values.dtype.kind in "iuf" and not is_category(ds, by):
            groups = MAX_SINGLE if len(np.unique(values)) <= MAX_SINGLE else RANGES
    return make_episode_groups(ds, by, groups)


def group_ends(groups: Groups) -> dict[str, Any]:
    """Return the smallest and the largest value in each group as coordinates; nothing where they are no numbers.

    They are float64 where a group is empty, and NaN there.
    """
    if groups.name is None or groups.values.dtype.kind not in "iuf":
        return {}
    members = [groups.values[groups.codes == code] for code in range(groups.size)]
    dtype = np.float64 if any(not len(one) for one in members) else groups.values.dtype
    ends = {FIRST: "smallest", LAST: "largest"}
    return {
        key: (
            groups.name,
            np.array([one[place] if len(one) else np.nan for one in members], dtype),
            {**groups.attrs, "long_name": f"{which} {groups.attrs['long_name']}"},
        )
        for (key, which), place in zip(ends.items(), (0, -1), strict=True)
    }


def edges_along(ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return edges (group + 1,) halfway between each group's largest value and the next one's smallest.

    The outer ones are as far from their group as the nearest inner edge, or one half where there is none.

    Parameters
    ----------
    ends : pair of arrays (group,)
        Smallest and largest values, at least one, ascending.
    """
    first, last = (np.asarray(one, np.float64) for one in ends)
    inner = (last[:-1] + first[1:]) / 2
    if not len(inner):
        return np.array([first[0] - 0.5, last[0] + 0.5])
    return np.concatenate([[first[0] - (inner[0] - last[0])], inner, [last[-1] + (first[-1] - inner[-1])]])


def is_along(ds: xr.Dataset, groups: Groups, asked: GroupsArgument) -> bool:
    """Say whether groups stand one after another along an axis of numbers.

    Those that a mapping names do not, and neither do environments, runs and seeds, whose numbers only tell them apart.
    """
    if groups.name in (None, ENV) or isinstance(asked, Mapping) or is_category(ds, groups.name):
        return False
    return groups.values.dtype.kind in "iuf"
