"""How long episodes last, also where some were cut: the Kaplan-Meier estimate."""

import numbers
import warnings
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import made_by
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups
from trajlab.dataset.schema import validate
from trajlab.errors import is_bool
from trajlab.names import (
    DONE,
    END_REASON,
    LEFT_OUT_ATTR,
    LENGTH,
    LOWER,
    MEDIAN,
    RESTRICTED_MEAN,
    START_SEEN,
    SURVIVAL,
    TERMINATED,
    TIME,
    UPPER,
    N,
)


def survival(
    ds: xr.Dataset,
    *,
    by: str | None = None,
    groups: GroupsArgument = None,
    confidence: float = 0.95,
) -> xr.Dataset:
    r"""Estimate the share of episodes that last longer than each number of steps.

    An episode that was cut or truncated is no short one: it lasted at least as long as it was seen. It counts among
    those at risk until then, and not as an end (Kaplan & Meier):

    .. math:: S(t) = \prod_{u \le t} \left( 1 - \frac{d_u}{n_u} \right)

    with the `n_u` episodes of at least `u` steps, of which `d_u` terminated (or ended for a reason not recorded)
    with exactly `u`.

    Parameters
    ----------
    ds : Dataset
    by, groups
        As in `action_histogram`, but a coordinate or variable over `episode` only.
    confidence : float
        Level of the interval, between 0 and 1.

    Returns
    -------
    Dataset
        Dims (by, time), `time` from 0 to the longest length: `survival`, with `lower` and `upper` limits of its
        pointwise interval (log-log; NaN where it is not defined), float64, and `n`, int64, the episodes at risk: those
        of at least so many steps. Beyond a group's longest episode all but `n` are NaN, unless that one terminated.
        Dims (by): `median`, the first step at which no more than half are left, NaN where it is not reached; and
        `restricted_mean`, the mean of the length up to the step `horizon` (an attribute): the largest that every group
        has an episode for. Episodes whose start was not seen have no known length and are left out (`left_out`).

    Raises
    ------
    KeyError
        When there is no such coordinate.
    ValueError
        When `ds` is not valid, `by` is a matter of the transition, or `confidence` is not between 0 and 1.

    References
    ----------
    Kaplan & Meier, "Nonparametric estimation from incomplete observations", Journal of the American Statistical
    Association 53 (1958). Interval: Kalbfleisch & Prentice, "The statistical analysis of failure time data" (1980),
    section 1.3.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> reasons = ["terminated", "terminated", "cut", "terminated"]
    >>> ds = tl.from_episodes([{"reward": np.zeros(n)} for n in (1, 2, 2, 3)], end_reason=reasons)
    >>> tl.survival(ds)["survival"].values
    array([1.  , 0.75, 0.5 , 0.  ])
    """
    check_confidence(confidence)
    validate(ds)
    chosen = make_episode_groups(ds, by, groups)
    return grouped_survival(ds, chosen, confidence)


def check_confidence(confidence: Any) -> None:
    """Raise ValueError unless a level of confidence is between 0 and 1."""
    if not isinstance(confidence, numbers.Real) or is_bool(confidence) or not 0 < float(confidence) < 1:
        raise ValueError(f"confidence={confidence!r}; expected a level between 0 and 1, such as 0.95")


def grouped_survival(ds: xr.Dataset, groups: Groups, confidence: float) -> xr.Dataset:
    """Return `survival` for groups that were made already."""
    seen = ds[START_SEEN].values.astype(bool)
    length = ds[LENGTH].values
    is_end = np.isin(ds[END_REASON].values.astype(str), (TERMINATED, DONE))
    group = np.zeros(len(length), np.intp) if groups.of_episode is None else groups.of_episode
    members = [(group == code) & seen for code in range(groups.size)]
    steps = int(length[seen].max(initial=0)) + 1
    curves = [_curves(length[mine], is_end[mine], steps, confidence) for mine in members]
    values, lower, upper = np.array([curve[:3] for curve in curves]).reshape(groups.size, 3, steps).swapaxes(0, 1)
    at_risk = np.array([curve[3] for curve in curves], np.int64).reshape(groups.size, steps)
    horizon = min((int(length[mine].max()) for mine in members if mine.any()), default=0)
    return _labelled(ds, groups, values, lower, upper, at_risk, horizon, int((~seen).sum()))


def _curves(
    length: np.ndarray, is_end: np.ndarray, steps: int, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the estimate, its limits and the numbers at risk (steps,) of one group."""
    from scipy import stats

    time = np.arange(steps)
    at_risk = len(length) - np.searchsorted(np.sort(length), time, side="left")
    if not len(length):
        nothing = np.full(steps, np.nan)
        return nothing, nothing, nothing, at_risk
    found = stats.ecdf(stats.CensoredData(uncensored=length[is_end], right=length[~is_end])).sf
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The confidence interval is undefined")
        limits = found.confidence_interval(confidence, method="log-log")
    out = [curve.evaluate(time) for curve in (found, limits.low, limits.high)]
    unknown = time > length.max()
    if unknown.any() and out[0][length.max()] > 0:
        for curve in out:
            curve[unknown] = np.nan
    return out[0], out[1], out[2], at_risk


def _labelled(
    ds: xr.Dataset,
    groups: Groups,
    values: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    at_risk: np.ndarray,
    horizon: int,
    left_out: int,
) -> xr.Dataset:
    """Return curves (group, time) and what follows from them as a Dataset."""
    is_half = values <= 0.5
    median = np.where(is_half.any(axis=1), is_half.argmax(axis=1), np.nan)
    restricted = np.where(at_risk[:, 0] > 0, values[:, :horizon].sum(axis=1), np.nan)
    dims = (*groups.dims, TIME)
    lead = slice(None) if groups.dims else 0
    share = {"units": "1"}
    variables: dict[str, Any] = {
        SURVIVAL: (dims, values[lead], {"long_name": "share of episodes that last longer", **share}),
        LOWER: (dims, lower[lead], {"long_name": "lower limit", **share}),
        UPPER: (dims, upper[lead], {"long_name": "upper limit", **share}),
        N: (dims, at_risk[lead], {"long_name": "episodes at risk"}),
        MEDIAN: (groups.dims, median[lead], {"long_name": "median episode length", "units": "steps"}),
        RESTRICTED_MEAN: (groups.dims, restricted[lead], {"long_name": "mean length up to horizon", "units": "steps"}),
    }
    time = np.arange(values.shape[1])
    coords = {TIME: (TIME, time, {"long_name": "time since the start", "units": "steps"}), **groups.coords()}
    attrs = made_by(ds, "survival", LENGTH) | {"horizon": horizon, LEFT_OUT_ATTR: left_out}
    return xr.Dataset(variables, coords, attrs)
