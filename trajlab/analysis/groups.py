"""Groups of episodes or transitions: what `by=` and `groups=` mean."""

import dataclasses
import functools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.counting import ValueCounter
from trajlab.analysis.made import recorded_as_discrete, warn_user
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.errors import unknown_name
from trajlab.names import EPISODE, ITERATION, TIME

MAX_GROUPS = 8
"""More distinct numbers than this are cut into `DEFAULT_GROUPS` ranges."""
DEFAULT_GROUPS = 4
MAX_TABLE = 2**20
"""Whole numbers that span less than this are looked up in a table, others searched for."""

GroupsArgument = int | Sequence[Any] | np.ndarray | Mapping[str, Any] | None


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Which group each transition belongs to.

    Attributes
    ----------
    name : str or None
        What was grouped by; None for a single group of all.
    labels : array (group,)
        Values, or texts such as ``"0–124"`` for ranges of them.
    values : array (value,)
        Distinct values, ascending.
    codes : array (value,) intp
        Group of each; -1 for none.
    of_episode : array (episode,) intp or None
        Group of each episode; None where it is a matter of the transition.
    attrs : dict
        What to say about them on a result.
    """

    name: str | None
    labels: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    of_episode: np.ndarray | None
    attrs: dict[str, Any]

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @property
    def fields(self) -> list[str]:
        """Variables that a batch must hold for `index`."""
        return [self.name] if self.name is not None and self.of_episode is None else []

    def index(self, batch: FlatBatch) -> np.ndarray | None:
        """Return the group of each transition (M,), -1 for none; None where there is a single group."""
        if self.name is None:
            return None
        if self.of_episode is not None:
            return self.of_episode[batch.episode]
        values = batch.values[self.name]
        if self._table is not None:
            return self._table[values - self.values[0]]
        return self.codes[np.searchsorted(self.values, _plain(values))]

    @functools.cached_property
    def _table(self) -> np.ndarray | None:
        """Group of each whole number from the smallest value to the largest, where these are not too many."""
        if self.values.dtype.kind != "i" or not 0 <= self.values[-1] - self.values[0] < MAX_TABLE:
            return None
        table = np.full(self.values[-1] - self.values[0] + 1, -1, np.intp)
        table[self.values - self.values[0]] = self.codes
        return table

    @property
    def dims(self) -> tuple[str, ...]:
        """The dim that groups add to a result."""
        return () if self.name is None else (self.name,)

    def coords(self) -> dict[str, Any]:
        """Return the coordinate that labels the groups."""
        return {} if self.name is None else {self.name: (self.name, self.labels, self.attrs)}


def make_groups(ds: xr.Dataset, by: str | None, groups: GroupsArgument = None) -> Groups:
    """Return the groups that `by` and `groups` ask for.

    Parameters
    ----------
    ds : Dataset
    by : str or None
        A coordinate or variable over `episode`, or one over `episode` and `time` that is not continuous:
        above all `iteration`, or `action`.
    groups : int, sequence, mapping or None
        None: each value is a group; more than 8 distinct numbers are cut into 4 ranges. An int: so many ranges.
        Ranges hold about equal numbers of episodes, or of transitions where `by` is a matter of the
        transition. A sequence of numbers: edges, each range with its left one, the last with both. A sequence
        of texts, for a `by` that is text: these values, in this order. A mapping from a label to what `sel`
        would take: a value, a list of values, or a slice with both ends in it.

    Raises
    ------
    KeyError
        When `by` is unknown.
    ValueError, TypeError
        When `by` cannot be grouped by, or `groups` does not fit it.
    """
    if by is None:
        if groups is not None:
            raise ValueError(f"groups={groups!r} needs by=, the coordinate to group by")
        nothing = np.zeros(0, np.int64)
        return Groups(None, np.zeros(1, np.int64), nothing, nothing, None, {})
    of = _check_by(ds, by)
    per_episode = ds[of].values if ds[of].ndim == 1 else None
    if per_episode is not None:
        per_episode = _plain(per_episode)
        missing = _is_nan(per_episode)
        values, weights = np.unique(per_episode[~missing], return_counts=True)
        if missing.any():
            warn_user(f"by={by!r}: {missing.sum()} of {missing.size} episodes have NaN there and are in no group")
    else:
        values, weights = _transition_values(ds, of)
    labels, codes, text = _cut(values, weights, groups, by, "transitions" if per_episode is None else "episodes")
    of_episode = None
    if per_episode is not None:
        of_episode = np.full(len(per_episode), -1, np.intp)
        of_episode[~missing] = codes[np.searchsorted(values, per_episode[~missing])]
    attrs = {key: value for key, value in ds[of].attrs.items() if key in ("long_name", "units")}
    left_out = int(weights[codes < 0].sum())
    attrs |= {"groups": text} | ({"left_out": left_out} if left_out else {})
    return Groups(by, labels, values, codes, of_episode, attrs)


def _check_by(ds: xr.Dataset, by: str) -> str:
    """Return `by`, when it is something to group by."""
    known = [str(n) for n, v in ds.variables.items() if v.dims == (EPISODE,)] + [ITERATION]
    if by not in ds.variables:
        raise unknown_name("coordinate to group by", by, known)
    variable = ds.variables[by]
    if variable.dims not in ((EPISODE,), (EPISODE, TIME)):
        raise ValueError(
            f"by={by!r} has dims {variable.dims}; expected one value per episode or per transition: "
            f"{', '.join(map(repr, known))}"
        )
    if variable.ndim == 2 and (variable.dtype.kind == "f" or not recorded_as_discrete(variable)):
        raise ValueError(
            f"by={by!r} is continuous ({variable.dtype}) and differs from transition to transition; expected "
            "integers or text. Cut it first, as in ds.assign(near=(ds['x'] < 1).where(ds.mask, False))"
        )
    return by


def _plain(values: np.ndarray) -> np.ndarray:
    """Return text as NumPy text, whatever a file made of it."""
    return values.astype(str) if values.dtype.kind in "OTS" else values


def _is_nan(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)


def _transition_values(ds: xr.Dataset, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of a variable over transitions, and how many transitions have each."""
    counter = ValueCounter()
    for batch in iter_flat(ds, [by]):
        counter.add(_plain(batch.values[by])[:, None])
    values, counts = counter.result()
    return values, counts[0, 0]


def _cut(
    values: np.ndarray, weights: np.ndarray, groups: GroupsArgument, by: str, what: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return labels, the group of each value, and a text that says how they were cut."""
    is_text = values.dtype.kind == "U"
    if isinstance(groups, Mapping):
        return _by_mapping(values, groups, by)
    if groups is None and (len(values) <= MAX_GROUPS):
        return values, np.arange(len(values)), f"each value of {by}"
    if groups is None and is_text:
        raise ValueError(
            f"by={by!r} has {len(values)} different texts, more than {MAX_GROUPS}; say which with "
            f"groups={[str(v) for v in values[:2]]!r}, or join some: groups={{'some': {[str(values[0])]!r}}}"
        )
    if groups is None or isinstance(groups, numbers.Integral):
        return _by_number(values, weights, DEFAULT_GROUPS if groups is None else int(groups), by, what)
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise TypeError(f"groups={groups!r}; expected a number of groups, edges, a list of values, or a mapping")
    if is_text:
        return _by_mapping(values, {str(value): value for value in groups}, by)
    return _by_edges(values, np.asarray(groups), by)


def _by_number(
    values: np.ndarray, weights: np.ndarray, number: int, by: str, what: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Cut ascending values into ranges of about equal weight; equal values stay together."""
    if values.dtype.kind not in "biuf":
        raise TypeError(f"groups={number}: by={by!r} is text, which has no ranges; give a list of values or a mapping")
    if number < 1:
        raise ValueError(f"groups={number}; expected at least 1")
    if len(values) <= number:
        return values, np.arange(len(values)), f"each value of {by}"
    middle = np.cumsum(weights) - weights / 2
    codes = np.minimum((middle / weights.sum() * number).astype(np.intp), number - 1)
    codes = np.unique(codes, return_inverse=True)[1]
    ends = [(values[codes == code][0], values[codes == code][-1]) for code in range(codes[-1] + 1)]
    return _range_labels(ends), codes, f"{by} cut into {len(ends)} ranges with about as many {what} each"


def _by_edges(values: np.ndarray, edges: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray, str]:
    if edges.ndim != 1 or len(edges) < 2 or edges.dtype.kind not in "iuf" or not (np.diff(edges) > 0).all():
        raise ValueError(f"groups={edges.tolist()}; expected at least two ascending numbers as edges of ranges")
    codes = np.searchsorted(edges, values, side="right") - 1
    codes[values == edges[-1]] = len(edges) - 2
    codes[codes > len(edges) - 2] = -1
    whole = values.dtype.kind in "iu" and edges.dtype.kind in "iu"
    ends = [(a, b - 1 if whole and i < len(edges) - 2 else b) for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False))]
    return _range_labels(ends), codes, f"{by} cut at {', '.join(map(str, edges))}"


def _by_mapping(
    values: np.ndarray, groups: Mapping[str, Any], by: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Put into each group the values that its selector, as `sel` takes them, names."""
    codes = np.full(len(values), -1, np.intp)
    for code, (label, selector) in enumerate(groups.items()):
        chosen = _selected(values, selector)
        if twice := (codes[chosen] >= 0).any():
            raise ValueError(f"groups[{label!r}]={selector!r} shares values with another group; expected none in two")
        if not chosen.any() and not isinstance(selector, slice) and values.dtype.kind == "U":
            raise unknown_name(f"value of {by}", str(selector), [str(v) for v in values])
        codes[chosen] = code
    return np.array(list(groups), str), codes, f"chosen values of {by}"


def _selected(values: np.ndarray, selector: Any) -> np.ndarray:
    if isinstance(selector, slice):
        chosen = np.ones(len(values), bool)
        if selector.start is not None:
            chosen &= values >= selector.start
        if selector.stop is not None:
            chosen &= values <= selector.stop
        return chosen
    return np.isin(values, np.atleast_1d(np.asarray(selector)))


def _range_labels(ends: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """Return ``"0–124"`` for each range, with as many digits as keep them apart."""
    to = " to " if any(first < 0 for first, _ in ends) else "–"
    for digits in (3, 4, 6, 9, 17):
        text = {end: _number(end, digits) for pair in ends for end in pair}
        if len(set(text.values())) == len(text):
            break
    return np.array([text[a] if a == b else f"{text[a]}{to}{text[b]}" for a, b in ends], str)


def _number(value: Any, digits: int) -> str:
    return str(int(value)) if isinstance(value, numbers.Integral | np.integer) else f"{value:.{digits}g}"
