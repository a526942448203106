"""Returns to go: what the rewards from a transition to its episode's end add up to."""

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
from trajlab.analysis.kernels.backward_sums import sum_backwards
from trajlab.analysis.returns import check_discount
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch, read_flat
from trajlab.dataset.flat_array import flat_variable
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
    require_numeric(ds[name].variable, name, "return_to_go")
    sums = _sum_to_go(ds, name, float(discount))
    attrs = {"long_name": "return to go", **units_of(ds, name), "discount": float(discount)}
    if AGENT_ATTR in ds[name].attrs:
        attrs[AGENT_ATTR] = ds[name].attrs[AGENT_ATTR]
    made = made_by(ds, "return_to_go", name) | {NUM_INCOMPLETE_ATTR: int((~ds[COMPLETE].values).sum())}
    values, inner = sums.reshape(len(sums), *ds[name].shape[2:]), inner_dims(ds, name)
    coords = {key: coord for key, coord in ds.coords.items() if set(coord.dims) <= {EPISODE, TIME, *inner}}
    return xr.DataArray(flat_variable(values, ds, inner, attrs | made), coords, name=RETURN_TO_GO)


def _sum_to_go(ds: xr.Dataset, name: str, discount: float) -> np.ndarray:
    """Return the sums (M, component) of all transitions, episode after episode, and warn of those that are NaN."""
    alive, cells = AliveRows.of(ds, name), Cells.of(ds)
    values = read_flat(ds, [name, *alive.needed])
    sums = as_rows(values[name]).astype(np.float64)
    whole = cells.span(0, len(cells)) if len(cells) else None
    dead = None
    if alive.needed and whole is not None:
        dead = alive.missing(FlatBatch(values, lambda: whole.episode, lambda: whole.time), values[name].shape)
    if dead is not None:
        sums[dead] = 0.0
    has_nan, is_infinite = _episodes_with_nan(sums, cells), bool(np.isinf(sums).any())
    sum_backwards(sums, cells.offsets, discount)
    undefined = np.setdiff1d(_episodes_with_nan(sums, cells), has_nan)
    for episodes, what in ((has_nan, "NaN"), (undefined, "both inf and -inf")):
        if len(episodes):
            warn_user(
                f"return_to_go: {len(episodes)} of {len(cells.counts)} episodes have {what} in {name!r}, and so NaN as "
                "the return to go of some steps"
            )
    if not is_infinite:
        report_overflow("return_to_go", name, np.isinf(sums))
    if dead is not None:
        sums[dead] = np.nan
    return sums


def _episodes_with_nan(rows: np.ndarray, cells: Cells) -> np.ndarray:
    """Return the positions of episodes that have a NaN in rows (M, component) of all transitions, ascending."""
    if not np.isnan(rows.min(initial=0.0)):
        return np.zeros(0, np.intp)
    found = np.flatnonzero(np.isnan(rows).any(axis=1))
    return np.unique(np.searchsorted(cells.offsets, found, side="right") - 1)
