"""Returns to go: what the rewards from a transition to its episode's end add up to."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import (
    as_rows,
    field_of,
    inner_dims,
    made_by,
    report_overflow,
    require_free_dims,
    require_numeric,
    units_of,
)
from trajlab.analysis.kernels.backward_sums import WIDE, sum_backwards, sum_rows_backwards
from trajlab.analysis.returns import check_discount
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch
from trajlab.dataset.flat_array import flat_variable
from trajlab.dataset.flat_whole import read_flat
from trajlab.dataset.made import MadeRows
from trajlab.dataset.schema import require_whole
from trajlab.errors import warn_user
from trajlab.names import AGENT_ATTR, COMPLETE, EPISODE, NUM_INCOMPLETE_ATTR, RETURN_TO_GO, TIME


def return_to_go(ds: xr.Dataset, *, reward: str = "reward", discount: float | int = 1.0) -> xr.DataArray:
    r"""Return the sum of the rewards from each transition on to the end of its episode.

    .. math:: G_t = \sum_{k=0}^{L-1-t} \gamma^k \, r_{t+k} = r_t + \gamma \, G_{t+1}, \qquad G_L = 0

    with the length `L`, the discount γ and the reward `r_t` that transition t brought about. Nothing stands for what
    came after the last transition: an episode that was truncated or cut would have gone on, so that with rewards that
    are never negative its values are lower bounds, the more so the nearer the end. `complete` and `end_reason` are
    coordinates, to leave such episodes out.

    Parameters
    ----------
    ds : Dataset
        With whole episodes: not sliced in `time`.
    reward : str
        Field to add up, of numbers of any width; its own dims are kept (one per objective or agent).
    discount : float
        γ, from 0 to 1.

    Returns
    -------
    DataArray
        float64, dims (episode, time, ...), NaN where no transition is, with the coordinates of `ds` over its
        dims. At step 0 it is what `returns` gives. The values are computed at once, 8 bytes per transition and
        component, and the padding is made when read, so that ``ds.assign(return_to_go=tl.return_to_go(ds))`` costs
        no more. Rewards of an agent that is done do not count (`alive` is False), and it has NaN there. A NaN among
        the rewards makes all earlier steps of its episode NaN too, unless the discount is 0; a warning says in how
        many episodes.

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
    Sutton & Barto, "Reinforcement Learning: An Introduction", 2nd edition (2018), equations 3.8 and 3.9.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 2.0, 4.0])}, {"reward": np.array([8.0])}])
    >>> tl.return_to_go(ds, discount=0.5).values
    array([[ 3.,  4.,  4.],
           [ 8., nan, nan]])
    """
    check_discount(discount)
    ds, name = field_of(ds, reward)
    require_free_dims(ds, name, {RETURN_TO_GO}, "return_to_go")
    require_whole(ds, "return_to_go")
    require_numeric(ds.variables[name], name, "return_to_go")
    alive = AliveRows.of(ds, name)
    made = None if alive.needed else MadeRows.of(ds, name, np.float64, WIDE)
    sums = _InOrder(ds, name, alive) if made is None else _InLog(made)
    _sum_to_go(sums, name, float(discount))
    attrs = {"long_name": "return to go", **units_of(ds, name), "discount": float(discount)}
    if AGENT_ATTR in ds.variables[name].attrs:
        attrs[AGENT_ATTR] = ds.variables[name].attrs[AGENT_ATTR]
    attrs |= made_by(ds, "return_to_go", name) | {NUM_INCOMPLETE_ATTR: int((~ds[COMPLETE].values).sum())}
    inner = inner_dims(ds, name)
    coords = {key: coord for key, coord in ds.coords.items() if set(coord.dims) <= {EPISODE, TIME, *inner}}
    return xr.DataArray(sums.variable(inner, attrs), coords, name=RETURN_TO_GO)


class _InOrder:
    """Rewards of all transitions, episode after episode.

    Attributes
    ----------
    rows : array (M, component) float64
    dead : array (M, component) of bool or None
        Which of them are of an agent that is done.
    """

    def __init__(self, ds: xr.Dataset, name: str, alive: AliveRows) -> None:
        self._ds, self._cells, self._shape = ds, Cells.of(ds), ds.variables[name].shape[2:]
        cells, values = self._cells, read_flat(ds, [name, *alive.needed])
        self.rows = as_rows(values[name]).astype(np.float64)
        self.dead = None
        if alive.needed and len(cells):
            whole = cells.span(0, len(cells))
            self.dead = alive.missing(FlatBatch(values, lambda: whole.episode, lambda: whole.time), values[name].shape)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return len(self._cells.counts)

    def held(self) -> slice:
        """Return which rows are transitions."""
        return slice(None)

    def sum(self, discount: float) -> None:
        """Add to each row the discounted sum that follows it in its episode, in place."""
        sum_backwards(self.rows, self._cells.offsets, discount)

    def episodes_of(self, places: np.ndarray) -> np.ndarray:
        """Return the positions along `episode` of the rows at some places."""
        return np.searchsorted(self._cells.offsets, places, side="right") - 1

    def variable(self, dims: tuple[str, ...], attrs: dict[str, Any]) -> xr.Variable:
        """Return the rows as a variable over episode, time and `dims`."""
        return flat_variable(self.rows.reshape(len(self.rows), *self._shape), self._ds, dims, attrs)


class _InLog:
    """Rewards as they lie in a log, where those of many environments are next to each other; else as `_InOrder`.

    What is no transition is 0, and no agent is done.
    """

    dead = None

    def __init__(self, made: MadeRows) -> None:
        self._made = made
        self._width = made.values.shape[1]
        self.rows = made.values.reshape(made.values.shape[0] * self._width, -1)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return len(self._made.chosen)

    def held(self) -> np.ndarray:
        """Return which rows are transitions."""
        return self._made.episodes.are_held(0, len(self._made.values))

    def sum(self, discount: float) -> None:
        """Add to each row the discounted sum that follows it in its episode, in place."""
        episodes, rows = self._made.episodes, self.rows.reshape(-1, self._width, self.rows.shape[1])
        sum_rows_backwards(rows, episodes.end - 1, episodes.column, discount)

    def episodes_of(self, places: np.ndarray) -> np.ndarray:
        """Return the positions along `episode` of the rows at some places."""
        return self._made.episodes.locate(*np.divmod(places, self._width))[0]

    def variable(self, dims: tuple[str, ...], attrs: dict[str, Any]) -> xr.Variable:
        """Return the rows as a variable over episode, time and `dims`."""
        return self._made.variable(dims, attrs)


def _sum_to_go(sums: _InOrder | _InLog, name: str, discount: float) -> None:
    """Make the sums of the rewards, in place, and warn of those that are NaN."""
    rows, dead = sums.rows, sums.dead
    if dead is not None:
        rows[dead] = 0.0
    has_nan, is_infinite = _episodes_with_nan(sums), _has_infinite(rows)
    sums.sum(discount)
    undefined = np.setdiff1d(_episodes_with_nan(sums), has_nan)
    for episodes, what in ((has_nan, "NaN"), (undefined, "both inf and -inf")):
        if len(episodes):
            warn_user(
                f"return_to_go: {len(episodes)} of {sums.num_episodes} episodes have {what} in {name!r}, and so NaN as "
                "the return to go of some steps"
            )
    if not is_infinite and _has_infinite(rows):
        report_overflow("return_to_go", name, np.isinf(rows[sums.held()]))
    if dead is not None:
        rows[dead] = np.nan


def _episodes_with_nan(sums: _InOrder | _InLog) -> np.ndarray:
    """Return the positions of episodes that have a NaN among their sums, ascending."""
    if not np.isnan(sums.rows.min(initial=0.0)):
        return np.zeros(0, np.intp)
    return np.unique(sums.episodes_of(np.flatnonzero(np.isnan(sums.rows).any(axis=1))))


def _has_infinite(rows: np.ndarray) -> bool:
    edges = np.array([np.fmin.reduce(rows, axis=None, initial=0.0), np.fmax.reduce(rows, axis=None, initial=0.0)])
    return bool(np.isinf(edges).any())
