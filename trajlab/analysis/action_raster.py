"""The actions of all episodes side by side, episodes in a telling order."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.choice import chosen_places
from trajlab.analysis.common import field_of, made_by
from trajlab.analysis.episode_values import episode_values
from trajlab.analysis.labels import LabelsArgument, check_labels
from trajlab.dataset.fields import missing_values
from trajlab.errors import require_text, unknown_name
from trajlab.names import EPISODE, LENGTH, RETURN, SORT_ATTR, TIME


def action_raster(
    ds: xr.Dataset,
    field: str = "action",
    *,
    sort: str | None = LENGTH,
    episodes: int | Iterable[int] | None = None,
    labels: LabelsArgument = None,
) -> xr.DataArray:
    """Return a field at each step of each episode, the episodes in a telling order: lazy, nothing is fetched.

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field.
    sort : str or None
        What to sort episodes by, ascending: ``"length"``, ``"return"``, or any coordinate or variable over `episode`;
        None for their own order. Equal ones keep their order; NaN stands last. The length and the return of a cut
        episode are those of the part that was recorded.
    episodes : int or iterable of int, optional
        How many to return: so many, evenly spread over the sorted ones; or the numbers of some (labels of
        `episode`). All by default.
    labels : sequence or mapping, optional
        Names of the actions 0, 1, ..., or a mapping from each value to its name, which become the attributes
        ``flag_values`` and ``flag_meanings``.

    Returns
    -------
    DataArray
        Dims (episode, time, ...), of the field's dtype and with its padding; `mask` and what else is known of the
        episodes are coordinates, what they are sorted by too.

    Raises
    ------
    KeyError
        When there is no such field, coordinate or episode.
    TypeError
        When `labels` is a single text, the reward is not a number, or `episodes` are no whole numbers.
    ValueError
        When `ds` is not valid, what to sort by is not one value per episode, or `episodes` is negative.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([0, 1, 1])}, {"action": np.array([1])}])
    >>> raster = tl.action_raster(ds)
    >>> raster["episode"].values, raster.where(raster["mask"]).values
    (array([1, 0]), array([[ 1., nan, nan],
           [ 0.,  1.,  1.]]))
    """
    ds, name = field_of(ds, field, like=np.int64, along=sort)
    names = check_labels(labels)
    order, key = order_of(ds, sort, episodes)
    flags = {} if names is None else {"flag_values": list(names), "flag_meanings": list(names.values())}
    out = ds[name] if sort is None else ds[name].assign_coords({sort: key.variable})
    return out.isel({EPISODE: order}).assign_attrs(raster_attrs(ds, name, order, sort) | flags)


def raster_attrs(ds: xr.Dataset, name: str, order: np.ndarray, sort: str | None) -> dict[str, Any]:
    """Return the attributes that say how a raster of some episodes, given by their positions, was made."""
    per_cell = [key for key, variable in ds.variables.items() if {EPISODE, TIME} <= set(variable.dims)]
    chosen = ds.drop_vars(per_cell).isel({EPISODE: order})
    return made_by(chosen, "action_raster", name) | {SORT_ATTR: sort or EPISODE}


def order_of(ds: xr.Dataset, sort: Any, episodes: Any) -> tuple[np.ndarray, xr.DataArray]:
    """Return the positions of the episodes asked for, sorted, and what all are sorted by, (episode,)."""
    key = ds[EPISODE] if sort is None else _key(ds, sort)
    order = np.arange(len(key)) if sort is None else _ascending(key)
    if episodes is not None:
        order = order[np.unique(chosen_places(ds[EPISODE].values[order], episodes))]
    return order, key


def _key(ds: xr.Dataset, sort: Any) -> xr.DataArray:
    """Return what to sort by, (episode,)."""
    require_text("sort", sort, "a coordinate over episode")
    if sort not in ds.variables and sort != RETURN:
        known = [RETURN, *(str(name) for name, variable in ds.variables.items() if variable.dims == (EPISODE,))]
        raise unknown_name("coordinate over episode to sort by", sort, dict.fromkeys(known))
    key = ds[sort] if sort in ds.variables else episode_values(ds, sort, (), "action_raster")
    if key.dims != (EPISODE,):
        own = [dim for dim in key.dims if dim != EPISODE]
        mend = f"; select one of {own[0]!r} first" if EPISODE in key.dims and TIME not in own else ""
        raise ValueError(f"sort={sort!r} has dims {key.dims}; expected one value per episode{mend}")
    return key


def _ascending(key: xr.DataArray) -> np.ndarray:
    """Return the order that sorts values of any kind, those that are missing last."""
    values = key.values
    missing = missing_values(key.variable, values)
    present = values[~missing]
    ranks = np.zeros(len(values), np.int64)
    ranks[~missing] = np.unique(present.astype(str) if present.dtype.kind == "O" else present, return_inverse=True)[1]
    ranks[missing] = len(values)
    return np.argsort(ranks, kind="stable")
