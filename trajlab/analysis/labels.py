"""Which values a histogram lists, and what they are called."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import title_of, units_of
from trajlab.names import LABEL, SPACE_SIZE_ATTR, SPACE_START_ATTR, VALUE

MAX_RANGE = 1024
"""Values that span more than this are listed only where they occurred."""

LabelsArgument = Sequence[str] | np.ndarray | Mapping[Any, str] | None


def check_labels(labels: Any) -> dict[Any, str] | None:
    """Return the name of each value: those of a mapping, or 0 to n-1 for those of a sequence; None for no names.

    Raises
    ------
    TypeError
        When `labels` is a single text, or has no order.
    ValueError
        When there is no label, or a key of a mapping is neither a whole number nor a text, or one of two equal ones.
    """
    if labels is None:
        return None
    if isinstance(labels, Mapping | list | tuple) and not len(labels):
        raise ValueError(f"labels={labels!r} names nothing; expected a name for each value, or None for no names")
    if isinstance(labels, Mapping):
        keys = [_key(value) for value in labels]
        if len(set(keys)) < len(keys) or len({type(key) for key in keys}) > 1:
            raise ValueError(f"labels={labels!r}; expected keys that are all numbers or all text, each only once")
        return dict(sorted(zip(keys, map(str, labels.values()), strict=True)))
    if isinstance(labels, str | bytes | set | frozenset) or not isinstance(labels, Iterable):
        raise TypeError(f"labels={labels!r}; expected a list of names, or a mapping from each value to its name")
    return dict(enumerate(map(str, labels)))


def _key(value: Any) -> int | str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_ | int | np.integer) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    raise ValueError(
        f"labels= has the key {value!r}; expected the values of the field, as in {{0: 'left', 1: 'right'}}"
    )


def list_values(
    values: np.ndarray, counts: np.ndarray, labels: dict[Any, str] | None, attrs: Mapping[Any, Any], name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return all values to list, and their counts (..., value): those that `labels` names, or else `on_space`."""
    if labels is None:
        return on_space(values, counts, attrs)
    return on_labels(values, counts, labels, name)


def value_coords(ds: xr.Dataset, name: str, values: np.ndarray, labels: dict[Any, str] | None) -> dict[str, Any]:
    """Return the coordinates of the dim `value` of a field's listed values: these, and what `labels` call them."""
    coords: dict[str, Any] = {VALUE: (VALUE, values, {"long_name": title_of(ds, name), **units_of(ds, name)})}
    if labels is not None:
        coords[LABEL] = (VALUE, np.array([labels[value] for value in values.tolist()], str))
    return coords


def spread_values(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all whole numbers from the smallest to the largest value, unless they are more than 1,024."""
    if values.dtype.kind not in "iu" or not len(values):
        return values, counts
    first, last = int(values[0]), int(values[-1])
    if last - first >= MAX_RANGE:
        return values, counts
    spread = np.zeros((*counts.shape[:-1], last - first + 1), np.int64)
    spread[..., (values - values[0]).astype(np.intp)] = counts
    return np.arange(last - first + 1).astype(values.dtype) + values[0], spread


def on_space(values: np.ndarray, counts: np.ndarray, attrs: Mapping[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of all values of the space that a field's attributes tell of, `n` values from `start` on.

    Where there is a value outside of it (attributes outlive arithmetic), or no such space, it is `spread_values`.
    """
    n, start = attrs.get(SPACE_SIZE_ATTR), attrs.get(SPACE_START_ATTR, 0)
    if not isinstance(n, int | np.integer) or not isinstance(start, int | np.integer) or values.dtype.kind not in "iu":
        return spread_values(values, counts)
    if not 0 < n <= MAX_RANGE or (len(values) and not start <= values[0] <= values[-1] < start + n):
        return spread_values(values, counts)
    spread = np.zeros((*counts.shape[:-1], int(n)), np.int64)
    spread[..., (values - start).astype(np.intp)] = counts
    return np.arange(n, dtype=np.int64) + int(start), spread


def on_labels(
    values: np.ndarray, counts: np.ndarray, labels: dict[Any, str], name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of the values that `labels` names, ascending, seen or not.

    Raises
    ------
    ValueError
        When a value has no name.
    """
    known = list(labels)
    if len(values) and (values.dtype.kind == "U") != bool(known and isinstance(known[0], str)):
        what = "text" if values.dtype.kind == "U" else "numbers"
        mend = "a mapping from each text to its name" if what == "text" else "integers or bools as keys"
        raise ValueError(f"labels= names actions 0, 1, ...; {name!r} holds {what}, expected {mend}")
    seen = values.tolist() if values.dtype.kind == "U" else [int(value) for value in values]
    outside = [value for value in seen if value not in labels]
    if outside:
        whole = known == list(range(len(known)))
        which = f"actions, 0 to {len(known) - 1}," if whole else f"actions, {', '.join(map(repr, known))},"
        raise ValueError(
            f"labels= names {len(known)} {which} but {name!r} also has the value {outside[-1]!r}; "
            "expected a label for each"
        )
    place = {value: at for at, value in enumerate(known)}
    spread = np.zeros((*counts.shape[:-1], len(known)), np.int64)
    spread[..., [place[value] for value in seen]] = counts
    return np.array(known, str if known and isinstance(known[0], str) else np.int64), spread
