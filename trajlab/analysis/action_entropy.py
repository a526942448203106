"""How evenly actions are spread: at each step over the episodes that are still alive, or within each episode."""

import dataclasses
from typing import Any, Literal

import numpy as np
import xarray as xr

from trajlab.analysis.coded_rows import CodedRows, reduce_coded
from trajlab.analysis.common import (
    episode_coords,
    field_of,
    inner_coords,
    inner_dims,
    made_by,
    require_free_dims,
    steps_number,
    title_of,
)
from trajlab.analysis.discrete import require_discrete
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.counting import places_dtype
from trajlab.analysis.kernels.numbers import NumberCounter
from trajlab.analysis.step_counts import Counted, count_steps, labelled_steps
from trajlab.dataset.cells import Cells
from trajlab.errors import check_option, warn_user, whole_number
from trajlab.names import ENTROPY, EPISODE, NUM_NAN_ATTR, RATE_NAMES, TIME, WINDOW_ATTR, N

Per = Literal["step", "episode"]
"""What has an entropy each."""


def action_entropy(
    ds: xr.Dataset,
    field: str = "action",
    *,
    per: Per = "step",
    window: int = 1,
    by: str | None = None,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    r"""Return how evenly actions are spread, in bits: at each step over the episodes alive, or within each episode.

    With the part `p` that each action has of those taken at a step, as `action_rates` returns it, or in an episode:

    .. math:: H = -\sum_a p_a \log_2 p_a

    0 bits: all of them are the same action; :math:`\log_2 K` bits: each of `K` actions equally often. It is not the
    entropy of the policy at a state: episodes are in different states at the same step, and an episode goes through
    many. Few actions make it too small: `n` of them reach :math:`\log_2 n` bits at most. Read it together with `n`.

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field of integers, bools or text; each of its components is counted by itself.
    per : {"step", "episode"}
        What has an entropy each: a step, over all episodes, or an episode, over its steps. The latter tells a policy
        that does the same again and again from one whose episodes differ from each other.
    window : int
        How many steps around each one are taken together, for ``per="step"``: with more actions in each the curve is
        smoother and less too small. They are centred (an even number has one more before than after); at both ends
        only those are taken that are there.
    by, groups
        As in `action_rates`, for ``per="step"``.

    Returns
    -------
    Dataset
        `entropy`, float64 in bits, dims (by, time, ...) with the field's own dims last, NaN where no action was
        counted at that step; and `n`, int64, as in `action_rates`, with a `window` that of all its steps. Or with
        ``per="episode"`` both with dims (episode, ...) and the coordinates of the episodes, `n` the actions counted. A
        NaN counts for no action; the attribute `num_nan` and a warning say how many there are.

    Raises
    ------
    KeyError
        As `action_rates`.
    TypeError
        When `window` is no whole number.
    ValueError
        As `action_rates`; when `per` is neither, `window` is below 1, or `by`, `groups` or a `window` are given with
        ``per="episode"``.

    References
    ----------
    Shannon, "A mathematical theory of communication", Bell System Technical Journal 27 (1948), section 6.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([0, 1])}, {"action": np.array([1])}])
    >>> tl.action_entropy(ds)["entropy"].values, tl.action_entropy(ds, per="episode")["entropy"].values
    (array([1., 0.]), array([1., 0.]))
    """
    check_entropy_options(per, window, by, groups)
    ds, name = field_of(ds, field, like=np.int64, along=by)
    if per == "episode":
        return episode_entropy(ds, name)
    return grouped_entropy(ds, name, make_groups(ds, by, groups), window)


def check_entropy_options(per: Any, window: Any, by: str | None, groups: Any) -> None:
    """Raise where the options of `action_entropy` do not go together."""
    check_option("per", per, Per)
    whole_number("window", window)
    if per == "step":
        return
    if window != 1:
        raise ValueError(f"window={window!r} takes steps together, and per='episode' has none; leave it out")
    if by is not None or groups is not None:
        given = f"by={by!r}" if by is not None else f"groups={groups!r}"
        raise ValueError(
            f"{given} does not go with per='episode', which has a value for each episode; group these: "
            f"trajlab.action_entropy(ds, per='episode')['entropy'].groupby({by or 'env'!r}).mean()"
        )


def grouped_entropy(ds: xr.Dataset, name: str, groups: Groups, window: int = 1) -> xr.Dataset:
    """Return `action_entropy` at each step of the field called `name` for groups that were made already."""
    window = steps_number("window", window, Cells.of(ds), least=1)
    counted = count_steps(ds, name, groups, "action_entropy")
    if window > 1 and len(counted.counts):
        counted = _pooled(counted, np.sort(ds[TIME].values), window)
    dims = (*groups.dims, TIME, *inner_dims(ds, name))
    bits = entropy_bits(counted.counts).reshape(*groups.shape, ds.sizes[TIME], *ds.variables[name].shape[2:])
    result = labelled_steps(ds, name, groups, counted, {ENTROPY: (dims, bits, _attrs(ds, name))}, {}, "action_entropy")
    if window > 1:
        result[N].attrs["long_name"] = f"transitions within {window} steps"
    return result.assign_attrs({WINDOW_ATTR: window})


def _pooled(counted: Counted, time: np.ndarray, window: int) -> Counted:
    """Return what was counted within a window around each step; nothing where nothing was at that step itself."""
    first = np.searchsorted(time, time - window // 2)
    last = np.searchsorted(time, time - window // 2 + window)

    def pooled(counts: np.ndarray, there: np.ndarray) -> np.ndarray:
        table = counts.reshape(len(counts) // len(time), len(time), *counts.shape[1:])
        until = np.concatenate([np.zeros_like(table[:, :1]), np.cumsum(table, axis=1)], axis=1)
        return np.where(there, (until[:, last] - until[:, first]).reshape(counts.shape), 0)

    alive = counted.alive.reshape(len(counted.counts), -1)
    return dataclasses.replace(
        counted,
        counts=pooled(counted.counts, counted.counts.sum(axis=-1, keepdims=True) > 0),
        alive=pooled(alive, alive > 0).reshape(-1),
    )


def episode_entropy(ds: xr.Dataset, name: str) -> xr.Dataset:
    """Return `action_entropy` within each episode of the field called `name`."""
    kind = require_discrete(ds, name, "action_entropy")
    require_free_dims(ds, name, (EPISODE, *RATE_NAMES), "action_entropy")
    _, (bits, n, num_nan) = reduce_coded(ds, name, make_groups(ds, None), kind, "action_entropy", _within_episodes)
    if num_nan:
        warn_user(f"action_entropy: {num_nan} values of {name!r} are NaN and counted in attrs['num_nan'] only")
    dims, shape = (EPISODE, *inner_dims(ds, name)), (ds.sizes[EPISODE], *ds.variables[name].shape[2:])
    return xr.Dataset(
        {
            ENTROPY: (dims, bits.reshape(shape), _attrs(ds, name)),
            N: (dims, n.reshape(shape), {"long_name": "transitions"}),
        },
        {**episode_coords(ds, (ENTROPY, N)), **inner_coords(ds, name)},
        made_by(ds, "action_entropy", name) | {NUM_NAN_ATTR: num_nan},
    )


def _within_episodes(rows: CodedRows) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the entropy and the number of values of each episode and component (episode * component,), and of NaN."""
    size, components, width = rows.ds.sizes[EPISODE], rows.components, max(len(rows.values), 1)
    counter = NumberCounter(size * components * width, room=4 * len(Cells.of(rows.ds)) * components)
    num_nan = 0
    first = np.arange(size, dtype=places_dtype(size * components * width)) * (components * width)
    for first_number, codes, present, nan in rows.unordered(first):
        num_nan += nan
        numbers = codes + first_number[:, np.newaxis]
        if components > 1:
            numbers += np.arange(components) * width
        counter.add(numbers, present)
    numbers, counts = counter.result()
    del counter  # it holds a table, and what follows is as large
    numbers //= width
    n = np.bincount(numbers, counts, minlength=size * components)
    share = counts / n[numbers]
    bits = np.bincount(numbers, -share * np.log2(share), minlength=len(n))
    return np.where(n > 0, bits, np.nan), n.astype(np.int64), num_nan


def _attrs(ds: xr.Dataset, name: str) -> dict[str, str]:
    return {"long_name": f"entropy of {title_of(ds, name)}", "units": "bits"}


def entropy_bits(counts: np.ndarray) -> np.ndarray:
    """Return the entropy (...) in bits of counts (..., value), NaN where all of them are 0.

    >>> entropy_bits(np.array([[2, 2, 0], [4, 0, 0]]))
    array([1., 0.])
    """
    total = counts.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts / total[..., np.newaxis]
        bits = -(share * np.log2(np.where(counts > 0, share, 1.0))).sum(axis=-1)
    return np.where(total > 0, bits + 0.0, np.nan)  # 0.0 instead of -0.0
