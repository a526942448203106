"""Episodes whose length or return is unlike that of the others."""

import numbers
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups
from trajlab.analysis.tables import return_columns
from trajlab.dataset.schema import require_whole, validate
from trajlab.errors import is_bool
from trajlab.names import COMPLETE, EPISODE, LEFT_OUT_ATTR, LENGTH

MIN_EPISODES = 8
"""Among fewer episodes than this none is called unusual."""
TINY = 1e-12
"""A spread that is a smaller part of the median than this is rounding."""


def outliers(
    ds: xr.Dataset, *, threshold: float = 3.5, by: str | None = None, groups: GroupsArgument = None
) -> pd.DataFrame:
    r"""Return the complete episodes of unusual length or return, the strangest first.

    How unusual a value `x` is says its robust score, which the outliers themselves hardly change:

    .. math:: z = \frac{x - \mathrm{median}}{1.4826 \; \mathrm{MAD}}

    with the median of the distances from the median, MAD. Where that is 0, since more than half of the values are
    equal, it is 1.2533 times the mean of the distances instead. For normal values either is the standard deviation.

    Parameters
    ----------
    ds : Dataset
        With whole episodes: not sliced in `time`.
    threshold : float
        The score, above 0, from which on, or from minus which down, a value is unusual.
    by, groups
        As in `action_histogram`, but a coordinate or variable over `episode` only: compare each episode with those of
        its group, such as those of about the same time in training: ``by="start_iteration"``.

    Returns
    -------
    pandas.DataFrame
        Index `episode`. Columns: ``length`` and, where there is a reward, ``return``, as in `episode_table`; ``score``,
        float64, the one farthest from 0; and ``reason``, text, which says it of each value that is unusual. An episode
        whose return is NaN is listed first, with the score NaN. `attrs` gives the number of episodes `left_out`: those
        that are not complete, are in no group, or are compared with fewer than 7 others.

    Raises
    ------
    KeyError
        When there is no such coordinate.
    TypeError, ValueError
        When `ds` is not valid, steps were sliced away, `by` cannot be grouped by, or `threshold` is no number above 0.

    Notes
    -----
    The median and the MAD are those of the majority: where up to half of the episodes are of another kind, as those of
    a later policy are, all of these are unusual. Group them by what tells the kinds apart.

    References
    ----------
    Iglewicz & Hoaglin, "How to detect and handle outliers" (1993).

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"obs": np.zeros(n)} for n in (9, 10, 11, 10, 9, 10, 50, 11)])
    >>> print(tl.outliers(ds)["reason"].item())
    length 50 is above the median 10 (score 27.0)
    """
    _check_threshold(threshold)
    validate(ds)
    require_whole(ds, "outliers")
    group = _compared(ds, make_episode_groups(ds, by, groups))
    columns = {LENGTH: ds[LENGTH].values, **return_columns(ds)}
    scores, centers = np.full((2, len(columns), len(group)), np.nan)
    for code in np.unique(group[group >= 0]):
        mine = group == code
        for place, values in enumerate(columns.values()):
            scores[place, mine], centers[place, mine] = robust_scores(values[mine].astype(np.float64))
    is_unusual = ((np.abs(scores) >= threshold) | np.isnan(scores)) & (group >= 0)
    worst = np.abs(scores).argmax(axis=0)  # a NaN where there is one
    score = scores[worst, np.arange(len(group))]
    found = np.flatnonzero(is_unusual.any(axis=0))
    found = found[np.lexsort((-np.abs(score[found]), ~np.isnan(score[found])))]
    reasons = [
        "; ".join(
            _reason(name, columns[name][one], scores[place, one], centers[place, one])
            for place, name in enumerate(columns)
            if is_unusual[place, one]
        )
        for one in found
    ]
    table = {name: values[found] for name, values in columns.items()}
    index = pd.Index(ds[EPISODE].values[found], name=EPISODE)
    out = pd.DataFrame({**table, "score": score[found], "reason": pd.Series(reasons, index, dtype=object)}, index)
    out.attrs[LEFT_OUT_ATTR] = int((group < 0).sum())
    return out


def _check_threshold(threshold: Any) -> None:
    if not isinstance(threshold, numbers.Real) or is_bool(threshold) or not float(threshold) > 0:
        raise ValueError(f"threshold={threshold!r}; expected a number above 0, such as 3.5")


def _compared(ds: xr.Dataset, groups: Groups) -> np.ndarray:
    """Return the group of each episode (episode,), -1 for those that are not compared with any other."""
    group = np.zeros(ds.sizes[EPISODE], np.intp) if groups.of_episode is None else groups.of_episode.copy()
    group[~ds[COMPLETE].values.astype(bool)] = -1
    counts = np.bincount(group[group >= 0], minlength=groups.size)
    is_enough = np.append(counts >= MIN_EPISODES, False)  # the last is that of the group -1
    return np.where(is_enough[group], group, -1)


def robust_scores(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the robust score of each of some values (n,), and their median.

    Infinite values are infinitely far from the median, which is that of the finite ones; NaN stays NaN.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.where(np.isinf(values), 0.0, np.nan), np.nan
    center = float(np.median(finite))
    distance = np.abs(finite - center)
    for spread in (1.4826 * np.median(distance), 1.2533 * distance.mean()):
        if spread > TINY * abs(center):
            return (values - center) / spread, center
    return np.where(np.isfinite(values), 0.0, values), center


def _reason(name: str, value: Any, score: float, center: float) -> str:
    """Return ``"length 812 is above the median 120 (score 9.3)"``."""
    if np.isnan(score):
        return f"{name} is NaN"
    where = "above" if score > 0 else "below"
    return f"{name} {value:,.6g} is {where} the median {center:,.6g} (score {score:,.1f})"
