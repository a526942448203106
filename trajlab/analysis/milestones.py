"""The share of episodes that reached each of some events by each step, also where some were cut before."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import made_by
from trajlab.analysis.event_times import time_units
from trajlab.analysis.events.conditions import Conditions
from trajlab.analysis.events.first_times import FirstTimes, find_first
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_episode_groups
from trajlab.analysis.kernels.incidence import cumulative_incidence
from trajlab.dataset.schema import validate
from trajlab.names import (
    EPISODE,
    LEFT_OUT_ATTR,
    MEDIAN,
    MILESTONE_NAMES,
    NUM_REACHED,
    SHARE,
    START_SEEN,
    TIME,
    N,
)


def milestones(
    ds: xr.Dataset, conditions: Conditions, *, by: str | None = None, groups: GroupsArgument = None
) -> xr.Dataset:
    r"""Estimate the share of episodes that have reached each event by each step.

    An episode that ended without the event never reaches it. One that was cut or truncated might have: it counts
    among those at risk as long as it was seen, and says nothing of what comes then (Aalen & Johansen):

    .. math:: F(t) = \sum_{u \le t} S(u - 1) \frac{d_u}{n_u}, \qquad
              S(u) = \prod_{v \le u} \left( 1 - \frac{d_v + e_v}{n_v} \right)

    with the `n_u` episodes that have a transition at step `u` and had not reached the event before, of which `d_u`
    reach it there, and `e_u` end there without it. Where none was cut, it is the plain share of all episodes; where
    none ends without the event, one minus the estimate of Kaplan and Meier.

    Parameters
    ----------
    ds : Dataset
        With all steps.
    conditions
        As in `event_times`: one, or a mapping from the names of events to conditions.
    by, groups
        As in `action_histogram`, but a coordinate or variable over `episode` only.

    Returns
    -------
    Dataset
        Dims (by, event, ..., time), the conditions' own dims between: `share`, float64, and `n`, int64, the episodes at
        risk. Once none of a group is at risk any more, `share` stays as it is; it is NaN where one of the last was cut
        or truncated without the event. Dims (by, event, ...): `num_reached`, int64, the episodes seen to reach it; and
        `median`, the first step at which half of those that ever reach it have, NaN where none does. Episodes whose
        start was not seen are left out, since their steps are not known (`left_out`). For an agent it counts as long as
        the agent takes part.

    Raises
    ------
    KeyError, TypeError, ValueError
        As `event_times`; ValueError also when `by` is a matter of the transition.

    References
    ----------
    Aalen & Johansen, "An empirical transition matrix for non-homogeneous Markov chains based on censored
    observations", Scandinavian Journal of Statistics 5 (1978), section 3.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"key": np.arange(n) > 1} for n in (2, 3, 5)], end_reason=["terminated", "cut", "done"])
    >>> tl.milestones(ds, "key")["share"].round(2).values
    array([0.  , 0.  , 0.67, 0.67, 0.67])
    """
    validate(ds)
    chosen = make_episode_groups(ds, by, groups)
    first, text = find_first(ds, conditions, "milestones")
    return grouped_milestones(ds, first, text, chosen)


def grouped_milestones(ds: xr.Dataset, first: FirstTimes, text: str, groups: Groups) -> xr.Dataset:
    """Return `milestones` of events whose first times are known, for groups that were made already."""
    inner = tuple(dim for dim in first.dims if dim != EPISODE)
    _check_dims(inner, groups, text)
    seen = ds[START_SEEN].values.astype(bool)
    times, stop, is_open = (_columns(array, first) for array in (first.times, first.stop, first.is_open(ds)))
    steps = int(stop[seen].max(initial=0))
    group = np.zeros(len(seen), np.intp) if groups.of_episode is None else groups.of_episode
    members = [(group == code) & seen for code in range(groups.size)]
    found = [cumulative_incidence(times[mine], stop[mine], is_open[mine], steps) for mine in members]
    shape = tuple(size for dim, size in zip(first.dims, first.times.shape, strict=True) if dim != EPISODE)
    lead = (*groups.shape, *shape)
    share, at_risk = (np.array([one[place] for one in found]).reshape(*lead, steps) for place in range(2))
    reached = np.array([(~np.isnan(times[mine])).sum(axis=0) for mine in members], np.int64).reshape(lead)
    dims = (*groups.dims, *inner)
    variables: dict[str, Any] = {
        SHARE: ((*dims, TIME), share, {"long_name": "share of episodes that have reached it", "units": "1"}),
        N: ((*dims, TIME), at_risk, {"long_name": "episodes at risk"}),
        MEDIAN: (dims, _median(share), {"long_name": "median time of those that reach it", **time_units(ds)}),
        NUM_REACHED: (dims, reached, {"long_name": "episodes that reached it"}),
    }
    time = (TIME, np.arange(steps), ds.variables[TIME].attrs)
    left_out = int((~seen).sum())
    attrs = made_by(ds, "milestones", text) | {LEFT_OUT_ATTR: left_out}
    return xr.Dataset(variables, {TIME: time, **groups.coords(), **first.coords}, attrs)


def _columns(values: np.ndarray, first: FirstTimes) -> np.ndarray:
    """Return values over the dims of events as (episode, column)."""
    values = np.moveaxis(values, first.dims.index(EPISODE), 0)
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))


def _median(share: np.ndarray) -> np.ndarray:
    """Return the first step at which half of the last known share (..., step) is reached, NaN where that is 0."""
    if not share.shape[-1]:
        return np.full(share.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        last = np.fmax.reduce(share, axis=-1, keepdims=True)  # it never falls
        is_half = share >= last / 2 - 1e-12  # as sums of shares may be
    found = np.where(is_half.any(axis=-1), is_half.argmax(axis=-1), np.nan)
    return np.where(last[..., 0] > 0, found, np.nan)


def _check_dims(inner: tuple[str, ...], groups: Groups, text: str) -> None:
    """Raise ValueError where a condition's own dim is called as something that the result has for itself."""
    taken = [dim for place, dim in enumerate(inner) if dim in MILESTONE_NAMES - {"event"} or dim in groups.dims]
    if taken:
        raise ValueError(f"milestones: {text!r} has the dim {taken[0]!r}, a name that the result uses itself")
