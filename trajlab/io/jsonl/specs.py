"""Specs: what the first line of a file says of each variable, its dtype and shape, and where its values stand."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from trajlab import names
from trajlab.io.jsonl.text import decode, dtype_of

FORMAT = 1
"""The number of the form of files, under the key `schema`."""
Stands = Literal["step", "before", "final", "episode", "shared", "index"]
"""Where values stand.

`step`: in each step's line. `before`: one line earlier, and in the first line for the first step; the observation of a
line is what the step led to. `final`: in the last line, as what is `before` has it. `episode`: in the first line.
`shared`: in the spec itself. `index`: nowhere, as with `mask` and the labels of `episode` and `time`.
"""
Place = tuple[str | int, ...]
"""The keys under which a value stands in a line."""

_MAX_AXES, _MAX_SIZE = 32, 2**48


@dataclasses.dataclass(frozen=True)
class Spec:
    """One variable of a Dataset.

    Attributes
    ----------
    dims : tuple of str
    shape : tuple of int
        Of what stands at one place: sizes of the dims apart from `episode` and `time`; of all dims where shared.
    dtype : numpy.dtype
    attrs : mapping
    is_coord : bool
    stands : str
    place : tuple
        Empty where `stands` is ``"shared"`` or ``"index"``.
    is_optional : bool
        Whether a value may be missing; padding then stands for it.
    values : object
        As JSON has them, where shared.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    attrs: Mapping[str, Any]
    is_coord: bool
    stands: Stands
    place: Place = ()
    is_optional: bool = False
    values: Any = None

    @property
    def own_dims(self) -> tuple[str, ...]:
        """The dims apart from `episode` and `time`."""
        return tuple(dim for dim in self.dims if dim not in (names.EPISODE, names.TIME))

    def shared(self) -> np.ndarray:
        """Return the values of a variable that is shared."""
        return decode(self.values, self.dtype, self.shape)


def parse_specs(given: Any) -> dict[str, Spec]:
    """Return the specs in a line by name; raise ValueError that names the first variable with a wrong one."""
    if not isinstance(given, dict):
        raise ValueError(f"'variables' is {_short(given)}; expected an object")
    found = {}
    for name, entry in given.items():
        try:
            found[name] = _parsed(entry)
        except (ValueError, TypeError) as error:
            raise ValueError(f"variable {name!r}: {error}") from None
    return found


def _parsed(entry: Any) -> Spec:
    if not isinstance(entry, dict):
        raise ValueError(f"its spec is {_short(entry)}; expected an object")
    stands: Any = entry.get("stands")
    attrs = entry.get("attrs", {})
    if stands not in get_args(Stands):
        raise ValueError(f"'stands' is {_short(stands)}; expected one of {', '.join(get_args(Stands))}")
    if not isinstance(attrs, dict):
        raise ValueError(f"'attrs' is {_short(attrs)}; expected an object")
    dims, place = _list(entry, "dims", str), _list(entry, "place", str | int)
    shape = _list(entry, "shape", int)
    if len(dims) > _MAX_AXES or not all(0 <= n < _MAX_SIZE for n in shape):
        raise ValueError(f"'dims' and 'shape' are {_short(dims)} and {_short(shape)}; so many do not exist")
    is_coord = entry.get("coordinate", False) is True
    is_optional = entry.get("optional", False) is True
    values = entry.get("values")
    spec = Spec(
        tuple(dims),
        tuple(shape),
        dtype_of(entry.get("dtype")),
        attrs,
        is_coord,
        stands,
        tuple(place),
        is_optional,
        values,
    )
    _check_dims(spec)
    return spec


def _check_dims(spec: Spec) -> None:
    """Raise ValueError where dims, shape and place of a spec contradict each other."""
    dims, both = spec.dims, (names.EPISODE, names.TIME)
    if len(set(dims)) < len(dims):
        raise ValueError(f"'dims' has a name twice: {_short(list(dims))}")
    match spec.stands:
        case "step" | "before":
            fits = dims[:2] == both
        case "final" | "episode":
            fits = names.EPISODE in dims and names.TIME not in dims
        case "index":
            fits = dims in ((names.EPISODE,), (names.TIME,), both)
        case "shared":
            fits = names.EPISODE not in dims
    if not fits:
        raise ValueError(f"it stands as {spec.stands!r}, which its dims {_short(list(dims))} do not allow")
    count = len(dims) if spec.stands == "shared" else len(spec.own_dims)
    if len(spec.shape) != count:
        raise ValueError(f"'shape' is {_short(list(spec.shape))}; expected {count} sizes")
    if bool(spec.place) != (spec.stands not in ("shared", "index")):
        raise ValueError(f"'place' is {_short(list(spec.place))} where 'stands' is {spec.stands!r}")


def _list(entry: Mapping[str, Any], key: str, kind: Any) -> list[Any]:
    """Return a list of names or numbers of a spec; it may be missing where it is empty."""
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, kind) and not isinstance(one, bool) for one in value):
        raise ValueError(f"{key!r} is {_short(value)}; expected a list of {'numbers' if kind is int else 'names'}")
    return value


def _short(value: Any) -> str:
    return repr(value)[:80]


def as_entry(spec: Spec) -> dict[str, Any]:
    """Return a spec as `parse_specs` reads it, all but what is shared or not plain: `dtype`, `attrs` and `values`."""
    entry: dict[str, Any] = {"dims": list(spec.dims), "shape": list(spec.shape), "stands": spec.stands}
    if spec.place:
        entry["place"] = list(spec.place)
    if spec.is_coord:
        entry["coordinate"] = True
    if spec.is_optional:
        entry["optional"] = True
    return entry


def at(line: Any, place: Sequence[str | int]) -> Any:
    """Return what stands at a place of a line; raise KeyError where nothing does."""
    for key in place:
        is_there = isinstance(line, list) and isinstance(key, int) and 0 <= key < len(line)
        if not (is_there or (isinstance(line, dict) and key in line)):
            raise KeyError(key)
        line = line[key]
    return line
