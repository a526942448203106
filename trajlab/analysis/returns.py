"""Returns: what an episode's rewards add up to."""

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import (
    as_rows,
    episode_coords,
    field_of,
    inner_coords,
    inner_dims,
    made_by,
    report_overflow,
    require_free_dims,
    require_numeric,
    units_of,
)
from trajlab.analysis.grouping.cut import fair_codes
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.dataset.schema import require_whole
from trajlab.errors import is_bool, warn_user
from trajlab.names import COMPLETE, EPISODE, NUM_INCOMPLETE_ATTR, RETURN

MIN_FOR_MEDIAN = 10
"""Fewer values than this have no running median."""
MIN_WINDOW = 5
MAX_WINDOWS = 40
"""There are at most so many windows, each of at least so many values where these are spread out."""


def returns(ds: xr.Dataset, *, reward: str = "reward", discount: float | int = 1.0) -> xr.DataArray:
    r"""Return the sum of each episode's rewards.

    .. math:: G = \sum_{t=0}^{L-1} \gamma^t \, r_t

    with the length `L`, the discount γ and the reward `r_t` that transition t brought about.

    Parameters
    ----------
    ds : Dataset
        With whole episodes: not sliced in `time`.
    reward : str
        Field to add up, of numbers of any width; its own dims are kept (one return per objective or agent).
    discount : float
        γ, from 0 to 1.

    Returns
    -------
    DataArray
        float64, dims (episode, ...), with the coordinates of the episodes. Rewards of an agent that is done do not
        count (`alive` is False). The return of a cut episode, or of
        one whose start was not seen, is that of the part that was recorded: `complete` tells. A NaN among the
        rewards that count makes the return NaN, and a warning says how many there are; with a discount of 0 only
        the first reward counts.

    Raises
    ------
    KeyError
        When there is no such field.
    TypeError
        When it does not hold numbers, or `discount` is none.
    ValueError
        When `discount` is not within 0 and 1, or steps are missing.

    References
    ----------
    Sutton & Barto, "Reinforcement Learning: An Introduction", 2nd edition (2018), equation 3.8.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 2.0, 4.0])}, {"reward": np.array([8.0])}])
    >>> tl.returns(ds, discount=0.5).values
    array([3., 8.])
    """
    check_discount(discount)
    ds, name = field_of(ds, reward)
    require_free_dims(ds, name, {RETURN}, "returns")
    require_whole(ds, "returns")
    require_numeric(ds.variables[name], name, "returns")
    sums = sum_rewards(ds, name, discount)
    dims = (EPISODE, *inner_dims(ds, name))
    attrs = {"long_name": "return", **units_of(ds, name), "discount": float(discount)}
    made = made_by(ds, "returns", name) | {NUM_INCOMPLETE_ATTR: int((~ds[COMPLETE].values).sum())}
    return xr.DataArray(
        sums.reshape(ds.sizes[EPISODE], *ds.variables[name].shape[2:]),
        coords={**episode_coords(ds), **inner_coords(ds, name)},
        dims=dims,
        name=RETURN,
        attrs=attrs | made,
    )


def check_discount(discount: Any) -> None:
    """Raise unless a discount is a number from 0 to 1."""
    is_number = isinstance(discount, numbers.Real) or (np.ndim(discount) == 0 and hasattr(discount, "dtype"))
    if not is_number or is_bool(discount):
        raise TypeError(f"discount={discount!r}; expected a number from 0 to 1")
    if not 0 <= float(discount) <= 1:
        raise ValueError(f"discount={discount!r}; expected a number from 0 to 1")


def sum_rewards(ds: xr.Dataset, name: str, discount: Any = 1.0) -> np.ndarray:
    """Return the returns (episode, component) from a field of numbers, and warn of those that are NaN."""
    sums = np.zeros((ds.sizes[EPISODE], component_count(ds.variables[name])))
    has_nan = np.zeros(len(sums), bool)
    powers = None
    if 0 < discount < 1:
        powers = np.power(float(discount), np.arange(Cells.of(ds).counts.max(initial=0)))
    for batch, rows in _rewards(ds, name):
        _add_discounted(sums, has_nan, rows, batch, float(discount), powers)
    undefined = np.isnan(sums).any(axis=1) & ~has_nan
    for count, what in ((int(has_nan.sum()), "NaN"), (int(undefined.sum()), "both inf and -inf")):
        if count:
            warn_user(f"returns: {count} of {len(sums)} episodes have {what} in {name!r}, and so NaN as their return")
    if np.isinf(sums).any() and not any(np.isinf(rows.astype(np.float64)).any() for _, rows in _rewards(ds, name)):
        report_overflow("returns", name, np.isinf(sums))
    return sums


def _rewards(ds: xr.Dataset, name: str) -> Iterator[tuple[FlatBatch, np.ndarray]]:
    """Yield transitions and their rewards (M, component), 0 for an agent that takes no part."""
    alive = AliveRows.of(ds, name)
    for batch in iter_flat(ds, [name, *alive.needed]):
        rows, dead = as_rows(batch.values[name]), alive.missing(batch, batch.values[name].shape)
        yield batch, rows if dead is None else np.where(dead, rows.dtype.type(0), rows)


def _add_discounted(
    sums: np.ndarray,
    has_nan: np.ndarray,
    rewards: np.ndarray,
    batch: FlatBatch,
    discount: float,
    powers: np.ndarray | None,
) -> None:
    """Add rewards (M, component), times their discount, to the sums (episode, component) of their episodes.

    `powers` (time,) are those of the discount, None where it is 0 or 1.
    """
    episode = batch.episode
    if discount == 0:  # 0 * inf would be NaN
        counted = batch.time == 0
        episode, rewards = episode[counted], rewards[counted]
    first = int(episode.min(initial=len(sums)))
    index = episode - first
    weight = None if powers is None else powers.take(batch.time)
    with np.errstate(invalid="ignore"):
        for component in range(sums.shape[1]):
            column = rewards[:, component].astype(np.float64)
            added = np.bincount(index, column if weight is None else _weighted(column, weight))
            sums[first : first + len(added), component] += added
            if np.isnan(added).any():
                has_nan[episode[np.isnan(column)]] = True


def _weighted(column: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return rewards times their weights; an infinite one stays so where its weight is too small for a float."""
    product = column * weight
    if weight.min(initial=1.0) == 0:
        vanished = (weight == 0) & np.isinf(column)
        product[vanished] = column[vanished]
    return product


def running_median(along: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return medians of `values` in windows of about equal count along `along`, their places, and that count.

    Windows do not overlap; equal places stay together. Nothing where there are fewer than 10 values.
    """
    nothing = np.zeros(0), np.zeros(0), 0
    if len(values) < MIN_FOR_MEDIAN or along.dtype.kind not in "biuf":
        return nothing
    number = min(len(values) // MIN_WINDOW, MAX_WINDOWS)
    distinct, where, weights = np.unique(along, return_inverse=True, return_counts=True)
    number = min(number, len(distinct))
    if number < 2:
        return nothing
    window = fair_codes(weights, number)[where]
    chosen = [window == code for code in range(number)]
    places = np.array([np.median(along[one]) for one in chosen])
    medians = np.array([np.median(values[one]) for one in chosen])
    return places, medians, round(len(values) / number)
