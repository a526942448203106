"""Distinct values put into groups: each by itself, ranges of about equal weight, edges, or what a mapping says."""

import itertools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trajlab.errors import has_bool, unknown_name
from trajlab.names import END_REASON, END_REASONS

MAX_GROUPS = 8
"""More distinct numbers than this are cut into `DEFAULT_GROUPS` ranges."""
DEFAULT_GROUPS = 4

Numbers = Sequence[float | int] | np.ndarray
GroupsArgument = int | Sequence[Any] | np.ndarray | Mapping[str, Any] | None


def cut_values(
    values: np.ndarray, weights: np.ndarray, groups: GroupsArgument, by: str, what: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Put distinct values into groups.

    Parameters
    ----------
    values : array (value,)
        Ascending numbers, bools or texts.
    weights : array (value,) of int
        How many of `what` have each value.
    groups
        As in `trajlab.analysis.grouping.groups.make_groups`.
    by, what : str
        The name of the values, and of what they are values of, for texts.

    Returns
    -------
    labels : array (group,)
        The values themselves, or texts.
    codes : array (value,) of int
        The group of each value, -1 for none.
    text : str
        How they were cut.
    """
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
    if groups is None or (isinstance(groups, int | np.integer) and not isinstance(groups, bool)):
        return _by_number(values, weights, DEFAULT_GROUPS if groups is None else int(groups), by, what)
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise TypeError(f"groups={groups!r}; expected a number of groups, edges, a list of values, or a mapping")
    if is_text:
        return _by_mapping(values, {str(value): value for value in groups}, by)
    if has_bool(groups):
        raise ValueError(f"groups={groups!r}; expected at least two ascending numbers as edges of ranges, no bools")
    return _by_edges(values, np.asarray(groups), by)


def choose_kinds(
    values: np.ndarray, weights: np.ndarray, groups: GroupsArgument, by: str, what: str, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """Put distinct values that name kinds, as labels of runs do, into groups: each by itself, however many.

    As `cut_values`, but that a sequence chooses values, of numbers too. Texts come in the order of `first`
    (value,), where each occurs first.
    """
    if groups is None:
        order = np.argsort(first) if values.dtype.kind == "U" else np.arange(len(values))
        return values[order], np.argsort(order), f"each value of {by}"
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray) or values.dtype.kind == "U":
        return cut_values(values, weights, groups, by, what)
    unknown = [value for value in groups if value not in values and len(values)]
    if unknown:
        raise unknown_name(f"value of {by}", str(unknown[0]), map(str, values))
    chosen = {str(value): value for value in groups}
    _, codes, text = _by_mapping(values, chosen, by)
    return np.array([*chosen.values()], values.dtype), codes, text


def _by_number(
    values: np.ndarray, weights: np.ndarray, number: int, by: str, what: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Cut ascending values into ranges of about equal weight; equal values stay together."""
    if values.dtype.kind == "U":
        raise TypeError(f"groups={number}: by={by!r} is text, which has no ranges; give a list of values or a mapping")
    if values.dtype.kind not in "biuf":
        raise _no_ranges(values, by)
    if number < 1:
        raise ValueError(f"groups={number}; expected at least 1")
    if len(values) <= number:
        return values, np.arange(len(values)), f"each value of {by}"
    codes = fair_codes(weights, number)
    ends = [(values[codes == code][0], values[codes == code][-1]) for code in range(number)]
    return range_labels(ends), codes, f"{by} cut into {len(ends)} ranges with about as many {what} each"


def _no_ranges(values: np.ndarray, by: str) -> TypeError:
    """Return the error for values that are neither text nor numbers, such as times."""
    some = f"groups={{'early': slice(None, {str(values[0])!r})}}" if values.dtype.kind in "mM" else "a mapping, groups="
    return TypeError(
        f"by={by!r} has {len(values)} different values of dtype {values.dtype}, which are not cut into ranges; say "
        f"which with {some}, or group by numbers made of them"
    )


def fair_codes(weights: np.ndarray, number: int) -> np.ndarray:
    """Return which of `number` ranges each value belongs to, when each takes its share of what is still left."""
    passed = np.cumsum(weights)
    codes = np.zeros(len(weights), np.intp)
    stop, done = 0, 0
    for left in range(number, 1, -1):
        share = done + (passed[-1] - done) / left
        nearest = int(np.argmin(np.abs(passed - share))) + 1
        stop = min(max(nearest, stop + 1), len(weights) - left + 1)
        done = int(passed[stop - 1])
        codes[stop:] += 1
    return codes


def _by_edges(values: np.ndarray, edges: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray, str]:
    if values.dtype.kind not in "biuf":
        raise _no_ranges(values, by)
    if edges.ndim != 1 or len(edges) < 2 or edges.dtype.kind not in "iuf" or not (np.diff(edges) > 0).all():
        raise ValueError(f"groups={edges.tolist()}; expected at least two ascending numbers as edges of ranges")
    codes = np.searchsorted(edges, values, side="right") - 1
    codes[values == edges[-1]] = len(edges) - 2
    codes[codes > len(edges) - 2] = -1
    whole = values.dtype.kind in "iu" and edges.dtype.kind in "iu"
    ends = list(itertools.pairwise(edges))
    if whole:
        ends = [(first, last - 1) for first, last in ends[:-1]] + ends[-1:]
    return range_labels(ends), codes, f"{by} cut at {', '.join(map(str, edges))}"


def _by_mapping(values: np.ndarray, groups: Mapping[str, Any], by: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Put into each group the values that its selector, as `sel` takes them, names."""
    if not groups:
        raise ValueError(f"groups={groups!r} names no group; expected at least one, or None for one of each value")
    codes = np.full(len(values), -1, np.intp)
    for code, (label, selector) in enumerate(groups.items()):
        try:
            chosen = _selected(values, selector)
        except TypeError as error:
            raise TypeError(
                f"groups[{label!r}]={selector!r} does not compare with the values of {by}, which are of dtype "
                f"{values.dtype} ({', '.join(map(str, values[:3]))}, ...)"
            ) from error
        if (codes[chosen] >= 0).any():
            raise ValueError(f"groups[{label!r}]={selector!r} shares values with another group; expected none in two")
        if values.dtype.kind == "U" and not isinstance(selector, slice):
            _check_texts(values, chosen, selector, by)
        codes[chosen] = code
    return np.array(list(groups), str), codes, f"chosen values of {by}"


def _check_texts(values: np.ndarray, chosen: np.ndarray, selector: Any, by: str) -> None:
    """Raise KeyError where a selector names a text that is not there; a legal end reason that none has is no error."""
    wanted = [str(text) for text in np.atleast_1d(np.asarray(selector))]
    known = [str(value) for value in values]
    if by == END_REASON:
        known += [reason for reason in END_REASONS if reason not in known]
        unknown = [text for text in wanted if text not in known]
    else:
        unknown = wanted if len(values) and not chosen.any() else []
    if unknown:
        raise unknown_name(f"value of {by}", unknown[0], known)


def _selected(values: np.ndarray, selector: Any) -> np.ndarray:
    if isinstance(selector, slice):
        if values.dtype.kind in "mM":
            ends = (None if end is None else np.asarray(end, values.dtype) for end in (selector.start, selector.stop))
            selector = slice(*ends)
        chosen = np.ones(len(values), bool)
        if selector.start is not None:
            chosen &= values >= selector.start
        if selector.stop is not None:
            chosen &= values <= selector.stop
        return chosen
    wanted = np.atleast_1d(np.asarray(selector))
    if wanted.dtype.kind == "U" and values.dtype.kind in "biuf" and len(values):
        raise TypeError("text among numbers")
    return np.isin(values, wanted)


def range_labels(ends: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """Return ``"0–124"`` for each range, with as many digits as keep them apart."""
    to = " to " if any(first < 0 for first, _ in ends) else "–"
    for digits in (3, 4, 6, 9, 17):
        text = {end: _number(end, digits) for pair in ends for end in pair}
        if len(set(text.values())) == len(text):
            break
    return np.array([text[a] if a == b else f"{text[a]}{to}{text[b]}" for a, b in ends], str)


def _number(value: Any, digits: int) -> str:
    return str(int(value)) if isinstance(value, numbers.Integral | np.integer) else f"{value:.{digits}g}"
