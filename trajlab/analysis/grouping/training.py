"""Groups along an axis, above all training, and where they stand on it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, is_category, make_episode_groups, make_groups
from trajlab.analysis.grouping.steps import RangeOf
from trajlab.errors import require_text
from trajlab.names import ENV, EPISODE, FIRST, LAST, TIME

MAX_SINGLE = 40
"""Up to so many distinct numbers each is a group of its own."""
RANGES = 20
"""More are cut into so many ranges of about equal episode count."""


def make_training_groups(ds: xr.Dataset, by: Any, groups: GroupsArgument = None) -> Groups:
    """Return groups of episodes that are fine enough for a curve over training.

    As `make_episode_groups`, but that without `groups` each number is a group where there are up to 40, and more are
    cut into 20 ranges of about equal episode count.
    """
    if isinstance(by, str) and groups is None and by in ds.variables and ds.variables[by].dims == (EPISODE,):
        values = ds[by].values
        if values.dtype.kind in "iuf" and not is_category(ds, by):
            groups = MAX_SINGLE if len(np.unique(values)) <= MAX_SINGLE else RANGES
    return make_episode_groups(ds, by, groups)


def make_fine_groups(ds: xr.Dataset, over: Any, groups: GroupsArgument = None) -> Groups:
    """Return groups of episodes or transitions that are fine enough for an axis.

    As `make_groups`, but that without `groups` each number is a group where there are up to 40, and more are cut into
    40 ranges of about equal weight.
    """
    require_text("over", over, "a coordinate or variable")
    is_number = over == TIME or (
        over in ds.variables and ds.variables[over].dtype.kind in "iuf" and not is_category(ds, over)
    )
    return make_groups(ds, over, MAX_SINGLE if groups is None and is_number else groups)


def group_ends(groups: Groups) -> dict[str, Any]:
    """Return the smallest and the largest value in each group as coordinates; nothing where they are no numbers.

    They are float64 where a group is empty, and NaN there.
    """
    values, codes = _grouped_values(groups)
    if values is None or values.dtype.kind not in "iuf":
        return {}
    members = [values[codes == code] for code in range(groups.size)]
    dtype = np.float64 if any(not len(one) for one in members) else values.dtype
    ends = {FIRST: "smallest", LAST: "largest"}
    return {
        key: (
            groups.name,
            np.array([one[place] if len(one) else np.nan for one in members], dtype),
            {**groups.attrs, "long_name": f"{which} {groups.attrs['long_name']}"},
        )
        for (key, which), place in zip(ends.items(), (0, -1), strict=True)
    }


def _grouped_values(groups: Groups) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the distinct values that were grouped, ascending, and the group of each; None where there are none."""
    if isinstance(groups.locate, RangeOf):
        return groups.locate.cells.labels, groups.locate.codes
    return (None if groups.name is None or groups.locate is not None else groups.values), groups.codes


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
    values, _ = _grouped_values(groups)
    if values is None or groups.name in (None, ENV) or isinstance(asked, Mapping) or is_category(ds, groups.name):
        return False
    return values.dtype.kind in "iuf"
