"""Edges of bins: those of a range, those that a user gives, and the middles between them."""

from typing import Any

import numpy as np

from trajlab.errors import has_bool


def even_edges(smallest: float, largest: float, bins: int) -> np.ndarray:
    """Return `bins` + 1 evenly spaced edges over a range; as in NumPy one wide where it is a single value.

    A range with fewer than two floats per bin is widened to that, so that edges always ascend.

    >>> even_edges(2.0, 2.0, 2)
    array([1.5, 2. , 2.5])
    """
    if np.isnan(smallest):
        smallest, largest = 0.0, 1.0
    limit = float(np.finfo(np.float64).max)
    room = 4.0 * bins * float(np.spacing(min(max(abs(smallest), abs(largest)), limit / 2)))
    least = max(room, 1.0) if smallest == largest else room
    if largest / 2 - smallest / 2 < least / 2:
        smallest, largest = _widened(smallest, largest, least, limit)
    with np.errstate(over="ignore"):  # of the last edge before it is set, in NumPy 2.0
        if np.isfinite(largest - smallest):
            return np.linspace(smallest, largest, bins + 1)
        edges = np.linspace(smallest / 2, largest / 2, bins + 1) * 2
    edges[[0, -1]] = smallest, largest
    return edges


def whole_edges(smallest: int, largest: int, bins: int) -> np.ndarray:
    """Return edges of at most so many bins, which hold equally many whole numbers: else some would hold one more.

    >>> whole_edges(1, 5, 2)
    array([0.5, 3.5, 6.5])
    """
    width = -(-(largest - smallest + 1) // bins)
    bins = -(-(largest - smallest + 1) // width)
    return even_edges(smallest - 0.5, smallest + width * bins - 0.5, bins)


def _widened(smallest: float, largest: float, least: float, limit: float) -> tuple[float, float]:
    """Return a range `least` wide around another one, moved where it would go beyond the largest float."""
    lower, upper = largest / 2 + smallest / 2 - least / 2, largest / 2 + smallest / 2 + least / 2
    if upper > limit:
        lower, upper = limit - least, limit
    if lower < -limit:
        lower, upper = -limit, -limit + least
    return min(lower, smallest), max(upper, largest)


def as_edges(given: Any) -> np.ndarray | None:
    """Return edges (bin + 1,) as float64; None for what is not at least two finite numbers, ascending.

    >>> as_edges([0, 1]), as_edges([1, 0]), as_edges("ab")
    (array([0., 1.]), None, None)
    """
    try:
        edges = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return None
    if has_bool(given):
        return None
    is_fit = edges.ndim == 1 and len(edges) > 1 and np.isfinite(edges).all() and (np.diff(edges) > 0).all()
    return edges if is_fit else None


def bin_middles(edges: np.ndarray) -> np.ndarray:
    """Return the middle of each bin; halved before they are added, since their sum may be too large."""
    with np.errstate(over="ignore"):
        middles = (edges[:-1] + edges[1:]) / 2
    return np.where(np.isfinite(middles), middles, edges[:-1] / 2 + edges[1:] / 2)
