"""The value that stands where no transition is, and the dtype a field appears in."""

import numpy as np


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
    if dtype.kind in "fciubUSMm" and dtype.type.__module__ == "numpy":
        return dtype
    name = dtype.name
    if name.startswith(("bfloat", "float")):
        return np.dtype(np.float32)
    if name.startswith("uint"):
        return np.dtype(np.uint8)
    if name.startswith("int"):
        return np.dtype(np.int8)
    raise TypeError(f"dtype {dtype} cannot be recorded; expected a bool, number, string or time dtype")


def is_discrete(dtype: np.dtype | str) -> bool:
    """Say whether values recorded as `dtype` are counted one by one (integers, bool, strings) or binned."""
    name = str(dtype)
    return name.startswith(("int", "uint", "bool", "<U", "|S", "str", ">U"))
