"""Values of any kind as JSON: what has no place there becomes tagged text, and stops nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from trajlab.errors import warn_user
from trajlab.io.jsonl.text import dtype_text, encode, fragment
from trajlab.padding import shown_dtype

Found = list[tuple[tuple[str, ...], np.ndarray]]
"""Numbers, and arrays of them, with the keys under which they stand."""

MAX_DEPTH, MAX_TEXT = 16, 1000
TAG_TYPE, TAG_TEXT = "type", "repr"
_WHOLE = range(-(2**63), 2**64)
_NUMBERS = "biufc"


class Plain:
    """Makes plain values of any; warns once of each type that has no place in JSON."""

    def __init__(self) -> None:
        """Begin with no type warned of."""
        self._warned: set[type] = set()

    def __call__(self, value: Any, found: Found | None = None, keys: tuple[str, ...] = ()) -> Any:
        """Return a value as one that `dumps` takes; append its numbers and arrays of them to `found`.

        NumPy's and JAX's scalars and arrays are numbers, PRNG keys their data, bfloat16 float32. A list of numbers
        is an array.
        """
        if value is None or isinstance(value, str):
            return value if value is None else _as_text(value)
        if isinstance(value, Mapping) and len(keys) < MAX_DEPTH:
            return {_as_text(str(key)): self(one, found, (*keys, _as_text(str(key)))) for key, one in value.items()}
        array = self._as_array(value)
        if array is not None and array.dtype.kind in _NUMBERS:
            if found is not None:
                found.append((keys, array))
            return fragment(encode(array))
        if isinstance(value, list | tuple) and len(keys) < MAX_DEPTH:
            return [self(one, None, (*keys, "")) for one in value]
        if array is not None and array.dtype.kind in "USmM" and array.dtype.kind != "S":
            return fragment(encode(array))
        return self._tagged(value)

    @staticmethod
    def _as_array(value: Any) -> np.ndarray | None:
        """Return numbers as an array in a dtype that a file has, None where it is something else."""
        if isinstance(value, int) and not isinstance(value, bool) and value not in _WHOLE:
            return None
        try:
            if str(getattr(value, "dtype", "")).startswith("key<"):
                import jax

                value = jax.random.key_data(value)
            if isinstance(value, list | tuple) and not all(_is_number(one) for one in value):
                return None
            array = np.asarray(value)
            array = array.astype(shown_dtype(array.dtype))
            dtype_text(array.dtype)
        except Exception:  # an object may raise whatever it likes when it is asked to be an array
            return None
        return array

    def _tagged(self, value: Any) -> dict[str, str]:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind not in self._warned:
            self._warned.add(kind)
            warn_user(
                f"a value of type {name} has no place in JSON and is written as text, "
                f'{{"{TAG_TYPE}": {name!r}, "{TAG_TEXT}": ...}}; make a number, text, list or dict of it'
            )
        try:
            text = repr(value)[:MAX_TEXT]
        except Exception as error:
            text = f"repr failed: {type(error).__name__}"
        return {TAG_TYPE: name, TAG_TEXT: _as_text(text)}


def _is_number(value: Any) -> bool:
    """Say whether an entry of a list is a number, or again a list of them."""
    if isinstance(value, list | tuple):
        return all(map(_is_number, value))
    return isinstance(value, bool | int | float | complex | np.number | np.bool_)


def _as_text(text: str) -> str:
    """Return a text that UTF-8 has: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def attrs_as_json(attrs: Mapping[Any, Any], plain: Plain) -> dict[str, Any]:
    """Return attributes as `dumps` takes them; a float that is not finite is ``{"float": "NaN"}``."""
    return {str(key): _attr(value, plain) for key, value in attrs.items()}


def _attr(value: Any, plain: Plain) -> Any:
    is_float = isinstance(value, float | np.floating) and not np.isfinite(value)
    return {"float": plain(value)} if is_float else plain(value)


def attrs_of_json(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as they were before `attrs_as_json`."""
    return {key: _as_float(value) for key, value in attrs.items()}


def _as_float(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"float"}:
        try:
            return float(value["float"])
        except (TypeError, ValueError):
            return value
    return value
