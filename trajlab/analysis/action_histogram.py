"""How often each action was taken."""

from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import (
    as_rows,
    field_of,
    inner_coords,
    inner_dims,
    made_by,
    require_free_dims,
    require_numeric,
    title_of,
    units_of,
)
from trajlab.analysis.discrete import as_discrete, discrete_kind
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.bins import BinCounter, RangeFinder
from trajlab.analysis.kernels.counting import MAX_PLACES, ValueCounter
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.analysis.labels import LabelsArgument, check_labels, list_values, value_coords
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import iter_flat
from trajlab.edges import as_edges, bin_middles, even_edges
from trajlab.errors import warn_user
from trajlab.names import (
    BIN,
    BIN_LEFT,
    BIN_RIGHT,
    COUNT,
    HISTOGRAM_NAMES,
    NUM_ABOVE_ATTR,
    NUM_BELOW_ATTR,
    NUM_NAN_ATTR,
    SHARE,
)

DEFAULT_BINS = 50


def action_histogram(
    ds: xr.Dataset,
    field: str = "action",
    *,
    by: str | None = None,
    bins: int | Numbers | None = None,
    labels: LabelsArgument = None,
    groups: GroupsArgument = None,
) -> xr.Dataset:
    """Count how often each action was taken, over all transitions, those of cut episodes too.

    Where several agents share an environment, those that are done do not count (`alive` is False).

    Bools, integers and text are counted one by one, also where `where` has made floats of integers; other
    numbers in bins.

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field; each of its components is counted by itself.
    by : str, optional
        What to group by: a coordinate over `episode` (``"start_iteration"``, ``"end_reason"``, ``"run"``), a
        discrete variable over transitions (``"iteration"``), ranges of steps (``"time"``), or the early, middle and
        late third of each complete episode (``"phase"``; the middle of a step decides). More than 8 distinct
        numbers are cut into 4 ranges with about as many episodes (transitions, for the latter) each. ``"run"`` names
        kinds: each run is a group, however many there are and also where the labels are numbers; named ones in the
        order of `concat`.
    bins : int or sequence of float, optional
        Number of bins over the range of finite values, 50 for continuous fields, or their edges: the same for all
        components. With it, integers are binned, too.
    labels : sequence or mapping, optional
        Names of the actions 0, 1, ..., or a mapping from each value to its name: the result then has all of
        them, seen or not.
    groups : int, sequence or mapping, optional
        Other groups than those of `by`: a number of ranges; edges (of phases from 0 to 1); a list of texts, or of
        runs; or a mapping from a label to a value, a list of values or a slice with both ends in it.

    Returns
    -------
    Dataset
        `count`, int64, and `share`, float64: the count as a part of all that were counted of that group and
        component (NaN where none were). Dims (by, ..., value) or (by, ..., bin), with the field's own dims
        between them. `value` runs from the smallest to the largest value seen, or lists only those seen where
        they span more than 1,024; where the field's attributes tell of a space of `n` actions from `start` on, it has
        all of them; with `labels` it has the coordinate `label`. `bin` is the middle of each bin,
        `bin_left` and `bin_right` its edges; the last bin holds its right edge. The attributes say how many
        values were NaN or outside of the bins (`num_nan`, `num_below`, `num_above`); a warning tells of NaN.

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When `bins` are asked for and the field does not hold numbers, or `labels` is a single text.
    ValueError
        When `bins`, `labels` or `groups` do not fit the field, or a dim of it has a name that the result uses
        itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([2, 0, 2])}, {"action": np.array([2])}])
    >>> tl.action_histogram(ds, labels=["left", "stay", "right"])["count"].values
    array([1, 0, 3])
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    return grouped_histogram(ds, name, make_groups(ds, by, groups), bins, labels)


def grouped_histogram(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    bins: Any,
    labels: Any = None,
    what: str = "action_histogram",
) -> xr.Dataset:
    """Return `action_histogram` of the field called `name` for groups that were made already.

    `what` names the function in messages and attributes.
    """
    names = check_labels(labels)
    kind = discrete_kind(ds, name) if bins is None else None
    if names is not None and kind is None:
        raise ValueError(f"labels= names actions 0, 1, ...; {name!r} is binned, expected a field of integers")
    require_free_dims(ds, name, (*groups.dims, *HISTOGRAM_NAMES), what)
    if kind is not None:
        counts, coords, attrs = _count_values(ds, name, groups, kind, names)
    else:
        require_numeric(ds.variables[name], name, what)
        counts, coords, attrs = _count_bins(ds, name, groups, DEFAULT_BINS if bins is None else bins)
    if num_nan := attrs[NUM_NAN_ATTR]:
        warn_user(f"{what}: {num_nan} values of {name!r} are NaN and counted in attrs['num_nan'] only")
    return _labelled(ds, name, groups, counts, coords, made_by(ds, what, name) | attrs)


def _labelled(
    ds: xr.Dataset, name: str, groups: Groups, counts: np.ndarray, coords: dict[str, Any], attrs: dict[str, Any]
) -> xr.Dataset:
    """Return counts (group, component, place) as a Dataset."""
    dims = (*groups.dims, *inner_dims(ds, name), next(iter(coords)))
    shape = (*groups.shape, *ds.variables[name].shape[2:], counts.shape[-1])
    counts = counts.reshape(shape)
    totals = counts.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        share = counts / totals
    return xr.Dataset(
        {
            COUNT: (dims, counts, {"long_name": "transitions"}),
            SHARE: (dims, share, {"long_name": "share of transitions", "units": "1"}),
        },
        {**inner_coords(ds, name), **groups.coords(), **coords},
        attrs,
    )


def _count_values(
    ds: xr.Dataset, name: str, groups: Groups, kind: str, labels: dict[Any, str] | None
) -> tuple[np.ndarray, dict[str, Any], dict[str, Any]]:
    """Count each value; return counts (group, component, value), the coordinates and attributes."""
    counter = ValueCounter(groups.size, component_count(ds.variables[name]))
    num_nan = 0
    alive = AliveRows.of(ds, name)
    for batch in iter_flat(ds, [name, *groups.fields, *alive.needed]):
        values, missing = as_discrete(batch.values[name], kind)
        dead = alive.missing(batch, batch.values[name].shape)
        num_nan += count_set(missing, dead)
        counter.add(values, groups.index(batch), either(missing, dead))
    values, counts = counter.result()
    values, counts = list_values(values, counts, labels, ds.variables[name].attrs, name)
    return counts, value_coords(ds, name, values, labels), {NUM_NAN_ATTR: num_nan}


def _count_bins(
    ds: xr.Dataset, name: str, groups: Groups, bins: Any
) -> tuple[np.ndarray, dict[str, Any], dict[str, Any]]:
    """Count in bins; return counts (group, component, bin), the coordinates and attributes."""
    places = groups.size * component_count(ds.variables[name])
    if isinstance(bins, int | np.integer) and int(bins) * max(places, 1) > MAX_PLACES:
        raise ValueError(f"bins={bins!r}; expected at most {MAX_PLACES:,} counts of all groups and components together")
    edges = _edges(ds, name, bins)
    counter = BinCounter(edges, groups.size, component_count(ds.variables[name]))
    alive = AliveRows.of(ds, name)
    for batch in iter_flat(ds, [name, *groups.fields, *alive.needed]):
        dead = alive.missing(batch, batch.values[name].shape)
        counter.add(as_rows(batch.values[name]), groups.index(batch), dead)
    attrs = {"long_name": title_of(ds, name), **units_of(ds, name)}
    coords = {
        BIN: (BIN, bin_middles(edges), attrs),
        BIN_LEFT: (BIN, edges[:-1], attrs),
        BIN_RIGHT: (BIN, edges[1:], attrs),
    }
    return (
        counter.counts,
        coords,
        {NUM_NAN_ATTR: counter.nan, NUM_BELOW_ATTR: counter.below, NUM_ABOVE_ATTR: counter.above},
    )


def _edges(ds: xr.Dataset, name: str, bins: Any) -> np.ndarray:
    """Return the edges that `bins` gives, or that it asks for over the range of finite values."""
    if np.ndim(bins) == 0:
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
            raise ValueError(f"bins={bins!r}; expected a number of bins, at least 1, or ascending edges")
        return even_edges(*find_range(ds, name), int(bins))
    edges = as_edges(bins)
    if edges is None:
        raise ValueError(f"bins={bins!r}; expected at least two finite edges, ascending")
    return edges


def find_range(ds: xr.Dataset, name: str) -> tuple[float, float]:
    """Return the smallest and the largest finite value of a field, NaN where there is none."""
    found = RangeFinder()
    alive = AliveRows.of(ds, name)
    for batch in iter_flat(ds, [name, *alive.needed]):
        dead = alive.missing(batch, batch.values[name].shape)
        rows = as_rows(batch.values[name])
        found.add(rows if dead is None else rows[~dead])
    return found.smallest, found.largest
