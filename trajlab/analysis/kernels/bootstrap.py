"""Mean, median and interquartile mean, and their percentile bootstrap intervals, on plain arrays."""

from typing import Literal, get_args

import numpy as np

Statistic = Literal["mean", "median", "iqm"]
STATISTICS: tuple[str, ...] = get_args(Statistic)

BLOCK = 2**16
"""About so many weights are held at a time."""


def weighted_statistics(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return mean, median and interquartile mean (statistic, sample) of samples that hold values several times.

    The interquartile mean leaves out the floor(m / 4) smallest and as many largest of a sample of m values.

    Parameters
    ----------
    values : array (n,) float64
        Ascending, without NaN.
    weights : array (sample, n) float64
        How often each value is in each sample: whole numbers, at least one of them above 0.
    """
    upto = np.cumsum(weights, axis=1)
    total = upto[:, -1].copy()
    cut = total // 4
    low, high, *middle = _ranked(upto, [cut, total - cut - 1, (total - 1) // 2, total // 2])
    with np.errstate(invalid="ignore"):
        median = np.where(middle[0] == middle[1], values[middle[0]], (values[middle[0]] + values[middle[1]]) / 2)
    # Values outside of every sample's middle half need no sums, and an extreme one among them costs no precision.
    inside = slice(int(low.min()), int(high.max()) + 1)
    inner = upto[:, inside].clip(cut[:, None], (total - cut)[:, None])
    inner = np.diff(inner, axis=1, prepend=cut[:, None])
    return np.stack([_dot(weights, values) / total, median, _dot(inner, values[inside]) / (total - 2 * cut)])


def _ranked(upto: np.ndarray, ranks: list[np.ndarray]) -> list[np.ndarray]:
    """Return the places of the values of ranks (sample,), from 0 on, where `upto` (sample, n) counts the values."""
    passed = np.concatenate([[0.0], np.cumsum(upto[:, -1])[:-1]])
    start = np.arange(len(upto)) * upto.shape[1]
    ascending = (upto + passed[:, None]).ravel()
    return [np.searchsorted(ascending, passed + rank, side="right") - start for rank in ranks]


def _dot(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the weighted sums; an infinite value that a sample does not hold counts for nothing."""
    if np.isfinite(values).all():
        return np.einsum("ij,j->i", weights, values)  # `@` would start threads, for as many products as samples
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weights > 0, weights * values, 0.0).sum(axis=1))


def bootstrap(
    values: np.ndarray, cluster: np.ndarray | None, confidence: float, num_resamples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return statistics of each component of values, and the limits of their percentile bootstrap intervals.

    The result does not depend on the order of the values.

    Parameters
    ----------
    values : array (n, component) float64
        Where a component has a NaN, all that is returned of it is NaN.
    cluster : array (n,) or None
        Values that are drawn together, always all of those with the same label; None where each is drawn by itself.
    confidence : float
        Level of the intervals.
    num_resamples : int
    rng : Generator

    Returns
    -------
    estimate, lower, upper : array (statistic, component) float64
        All NaN where there is no value, and the limits where there are not at least two to draw from.
    """
    estimate, lower, upper = np.full((3, len(STATISTICS), values.shape[1]), np.nan)
    order = np.lexsort(values.T[::-1]) if values.shape[1] else np.arange(len(values))
    values = values[order]
    member, size = (None, len(values)) if cluster is None else _members(cluster[order])
    usable = np.flatnonzero(~np.isnan(values).any(axis=0)) if len(values) else np.zeros(0, np.intp)
    ranks = {component: np.argsort(values[:, component], kind="stable") for component in usable}
    for component, rank in ranks.items():
        estimate[:, component] = weighted_statistics(values[rank, component], np.ones((1, len(rank))))[:, 0]
    if size < 2 or not len(usable):
        return estimate, lower, upper
    drawn = np.empty((len(STATISTICS), num_resamples, len(usable)))
    step, is_sorted = max(BLOCK // len(values), 1), values.shape[1] == 1
    for start in range(0, num_resamples, step):
        stop = min(start + step, num_resamples)
        weights = _draw(stop - start, size, rng)
        weights = weights if member is None else weights[:, member]
        for place, (component, rank) in enumerate(ranks.items()):
            own = weights if is_sorted else weights[:, rank]
            drawn[:, start:stop, place] = weighted_statistics(values[rank, component], own)
    tail = (1 - confidence) / 2
    # "nearest" is one of the statistics drawn: between two of them inf - inf would be NaN.
    lower[:, usable], upper[:, usable] = np.quantile(drawn, [tail, 1 - tail], axis=1, method="nearest")
    return estimate, lower, upper


def _members(cluster: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the number of each value's cluster (n,), counted as they first occur, and how many there are."""
    labels, first, member = np.unique(cluster, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[member.reshape(len(cluster))], len(labels)


def _draw(num_samples: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw samples of `size` out of as many, with replacement; return how often each is in them (sample, size)."""
    chosen = rng.integers(0, size, (num_samples, size)) + np.arange(num_samples)[:, None] * size
    return np.bincount(chosen.ravel(), minlength=num_samples * size).reshape(num_samples, size).astype(np.float64)
