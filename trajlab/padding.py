"""The value that stands where no transition is, and the dtype a field appears in."""

import numpy as np

_NARROW = {"int1": "int8", "int2": "int8", "int4": "int8", "uint1": "uint8", "uint2": "uint8", "uint4": "uint8"}
_SHOWN = dict.fromkeys(("bfloat16", "float8_", "float6_", "float4_"), "float32") | {
    "key": "uint32",
    "str": "U",
    "bytes": "S",
}
"""What a recorded dtype's text begins with, and the dtype it appears in, where that is another one."""


def padding_value(dtype: np.dtype) -> np.generic:
    """Return the padding of a field of `dtype`: loud where the dtype allows.

    Parameters
    ----------
    dtype : numpy.dtype
        A dtype that `shown_dtype` returned.

    Returns
    -------
    numpy.generic
        NaN for floats and complex numbers, NaT for times, the smallest value for signed integers, the
        largest for unsigned ones, ``""`` for strings, ``False`` for bool.

    Raises
    ------
    TypeError
        When `dtype` is none of these.
    """
    dtype = np.dtype(dtype)
    match dtype.kind:
        case "f" | "c":
            return dtype.type(np.nan)
        case "i":
            return dtype.type(np.iinfo(dtype).min)
        case "u":
            return dtype.type(np.iinfo(dtype).max)
        case "b":
            return np.False_
        case "U":
            return np.str_("")
        case "S":
            return np.bytes_(b"")
        case "M" | "m":
            return dtype.type("NaT", np.datetime_data(dtype)[0])
        case _:
            raise TypeError(f"a field of dtype {dtype} has no padding; expected a bool, number, string or time dtype")


def padding_text(dtype: np.dtype) -> str:
    """Return `padding_value(dtype)` as the text of the attribute `padding`: `"nan"`, `"-2147483648"`, `"false"`."""
    value = padding_value(dtype)
    kind = np.dtype(dtype).kind
    if kind in "fc":
        return "nan"
    if kind == "b":
        return "false"
    if kind == "S":
        return ""
    return str(value)


def shown_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a field recorded as `dtype` appears in the Dataset.

    It is the recorded one, but for those that no file format and few reductions know: bfloat16 and the
    8-bit floats appear as float32, 4-bit integers as 8-bit ones. Every value is kept exactly.
    """
    dtype = np.dtype(dtype)
    is_plain = dtype.type.__module__ == "numpy"
    shown = dtype if is_plain else shown_as(dtype.name)
    if shown is None or shown.kind not in "fciubUSMm":
        raise TypeError(f"dtype {dtype} cannot be recorded; expected a bool, number, string or time dtype")
    return shown


def shown_as(recorded: object) -> np.dtype | None:
    """Return the dtype in which a field appears whose attribute `recorded_dtype` is this; None where it is no dtype.

    Strings are without their width.

    >>> shown_as("bfloat16"), shown_as("key"), shown_as("int4")
    (dtype('float32'), dtype('uint32'), dtype('int8'))
    """
    text = _NARROW.get(str(recorded), str(recorded))
    for start, shown in _SHOWN.items():
        if text.startswith(start):
            return np.dtype(shown)
    try:
        return np.dtype(text)
    except TypeError:
        return None
