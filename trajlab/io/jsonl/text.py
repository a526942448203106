"""JSON text: the package that makes and reads it, and arrays as strict JSON at full precision."""

import functools
import math
import re
from types import ModuleType
from typing import Any

import numpy as np

OPTIONS = 16
"""orjson's `OPT_SERIALIZE_NUMPY`, which is looked up too often in a loop."""
TAGS = {math.inf: b'"Infinity"', -math.inf: b'"-Infinity"'}
NAN = b'"NaN"'
MAX_WIDTH = 4096
"""A text dtype wider than this is read as wide as its longest text: a file's word alone gets no more memory."""
_DTYPES = re.compile(
    r"bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)|<U\d{1,9}|\|S\d{1,9}|[<=]?[mM]8(\[\d{0,9}[a-zμ]+\])?|text|object"
)
_NUMBERS = "biuf"


@functools.cache
def library() -> ModuleType:
    """Return orjson; raise ImportError that names the extra where it is missing."""
    try:
        import orjson
    except ImportError:
        raise ImportError("JSONL files need orjson, of the extra 'jsonl': pip install 'trajlab[jsonl]'") from None
    return orjson


def dumps(value: Any) -> bytes:
    """Return plain Python values, NumPy numbers and contiguous arrays of finite ones as JSON."""
    text: bytes = library().dumps(value, option=OPTIONS)
    return text


def fragment(text: bytes) -> Any:
    """Return JSON text as a value that `dumps` puts in as it is."""
    return library().Fragment(text)


def dtype_text(dtype: np.dtype) -> str:
    """Return the text by which a file calls a dtype: ``float32``, ``<U10``, ``text`` for strings of any width.

    Raises
    ------
    TypeError
        When values of this dtype have no place in a file.
    """
    if dtype.kind == "T":
        return "text"
    dtype = dtype.newbyteorder("<") if dtype.kind in "UmM" else dtype.newbyteorder("=")
    found = dtype.str if dtype.kind in "USmM" else dtype.name
    if not _DTYPES.fullmatch(found):
        raise TypeError(
            f"dtype {dtype} has no place in a JSONL file; expected a bool, number of up to 64 bits, text or time"
        )
    return found


def dtype_of(text: Any) -> np.dtype:
    """Return the dtype that a file calls by a text; raise ValueError where it is none."""
    if not isinstance(text, str) or not _DTYPES.fullmatch(text):
        raise ValueError(f"{str(text)[:40]!r} is no dtype that is read")
    if text == "text":
        return np.dtypes.StringDType()
    try:
        return np.dtype(text)
    except TypeError:
        raise ValueError(f"{text!r} is no dtype that is read") from None


def encode(array: np.ndarray) -> bytes:
    """Return one array as JSON: nested lists, or a single value."""
    return encode_rows(array[np.newaxis])[0]


def encode_rows(array: np.ndarray) -> list[bytes]:
    """Return each entry along the first axis of an array as JSON.

    Floats are the shortest text that reads back equal, with ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; complex
    numbers are pairs, times their count of units, bytes text of the same code points.
    """
    if not len(array):
        return []
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    elif array.dtype.kind in "mM":
        array = array.astype(array.dtype.newbyteorder("=")).view(np.int64)
    if array.dtype.kind not in _NUMBERS:
        return [dumps(_as_texts(one)) for one in array]
    if not array[0].size:
        return [dumps(array[0].tolist())] * len(array)
    text = dumps(np.ascontiguousarray(array, array.dtype.newbyteorder("=")))[1:-1]
    if array.dtype.kind == "f" and b"null" in text:
        text = _with_tags(text, array)
    depth = array.ndim - 1
    if not depth:
        return text.split(b",")
    opened, closed = b"[" * depth, b"]" * depth
    return [opened + row + closed for row in text[depth:-depth].split(closed + b"," + opened)]


def _with_tags(text: bytes, array: np.ndarray) -> bytes:
    """Return the text of floats with tags for those that are not finite, for which `null` stands."""
    parts = text.split(b"null")
    odd = array[~np.isfinite(array)].tolist()
    return b"".join(part + tag for part, tag in zip(parts, [*(TAGS.get(x, NAN) for x in odd), b""], strict=True))


def _as_texts(array: Any) -> Any:
    """Return an array of texts, bytes or objects as nested lists."""
    if isinstance(array, np.ndarray) and array.ndim:
        return [_as_texts(one) for one in array]
    value = array.item() if isinstance(array, np.ndarray | np.generic) else array
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return fragment(b'{"float":%b}' % TAGS.get(value, NAN))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"an object of type {type(value).__name__} has no place in a JSONL file")


def decode(values: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return what `encode` made, or a list of what `encode_rows` made, as an array.

    Raises
    ------
    ValueError
        When the values have another shape or kind, or are out of the dtype's range.
    """
    try:
        array = _decoded(values, dtype, shape)
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if array.size == 0 and 0 in shape:
        return array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"it has the shape {array.shape}; expected {shape}")
    return array


def _decoded(values: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    match dtype.kind:
        case "f":
            return _floats(values, dtype)
        case "c":
            parts = _floats(values, np.zeros(0, dtype).real.dtype).reshape(*shape, 2)
            out = np.empty(shape, dtype)
            out.real, out.imag = parts[..., 0], parts[..., 1]
            return out
        case "m" | "M":
            return _integers(values, np.dtype(np.int64)).view(dtype)
        case "i" | "u":
            return _integers(values, dtype)
        case "b":
            array = np.array(values)
            if array.size and array.dtype != np.bool_:
                raise ValueError(f"it holds {_one_of(array)}; expected true or false")
            return array.astype(np.bool_)
        case "O":
            return _objects(values, shape)
        case _:
            return _texts(values, dtype)


def _floats(values: Any, dtype: np.dtype) -> np.ndarray:
    array = np.array(values, dtype)
    if np.isnan(array).any() and _holds_none(values):
        raise ValueError("it holds null; expected numbers")
    return array


def _integers(values: Any, dtype: np.dtype) -> np.ndarray:
    array = np.array(values)
    if array.size and array.dtype.kind not in "iu":
        try:
            wide = np.array(values, dtype)  # uint64 and negative numbers have no common dtype
        except (OverflowError, ValueError, TypeError):
            wide = None
        if wide is None or (np.array(values, object) != wide).any():
            raise ValueError(f"it holds {_one_of(array)}; expected whole numbers")
        return wide
    limits = np.iinfo(dtype)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise ValueError(f"it holds numbers from {array.min()} to {array.max()}, which {dtype} does not hold")
    return array.astype(dtype)


def _texts(values: Any, dtype: np.dtype) -> np.ndarray:
    array = np.array(values) if dtype.kind != "T" else np.array(values, dtype)
    if array.size and array.dtype.kind not in "UT":
        raise ValueError(f"it holds {_one_of(array)}; expected text")
    if dtype.kind == "T":
        return array.astype(dtype)
    array = array.astype(np.str_) if array.size else np.zeros(array.shape, "U1")
    if dtype.kind == "S":
        array = np.char.encode(array, "latin-1")
    if array.dtype.itemsize > dtype.itemsize and array.size:
        raise ValueError(f"it holds a text that is longer than {dtype} allows")
    width = dtype.itemsize // np.dtype(f"{dtype.kind}1").itemsize
    return array.astype(dtype) if width <= MAX_WIDTH else array


def _objects(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(shape, object)
    flat = [values]
    for _ in shape:
        flat = [one for part in flat for one in part] if all(isinstance(part, list) for part in flat) else []
    if len(flat) != out.size:
        raise ValueError(f"its values have another shape than {shape}")
    found = [_object(one) for one in flat]
    for place, one in zip(np.ndindex(*shape), found, strict=True):
        out[place] = one
    return out


def _object(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"float"}:
        return float(value["float"])
    if isinstance(value, list | dict):
        raise ValueError("it holds a list or an object; expected single values")
    return value


def _holds_none(values: Any) -> bool:
    return any(map(_holds_none, values)) if isinstance(values, list) else values is None


def _one_of(array: np.ndarray) -> str:
    return repr(array.flat[0])[:40]
