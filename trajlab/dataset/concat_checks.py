"""Whether variables of several Datasets fit together, and what they have in common."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names

_OWN = {names.EPISODE, names.TIME, names.MASK, names.RUN}


def agreement_problems(parts: Mapping[int, xr.Dataset]) -> list[str]:
    """Return every way in which Datasets, by their numbers, differ where they must not.

    They must have the same variables, as coordinates or not, with the same dims, inner sizes, dtypes and
    units; equal values in coordinates without `episode`; and all steps that their episodes have.
    """
    number, *others = parts
    first = parts[number]
    problems = []
    for other in others:
        where = f"dataset {other}"
        here, there = set(first.variables) - _OWN, set(parts[other].variables) - _OWN
        problems += [f"{where} lacks {name!r}, which dataset {number} has" for name in _ordered(first, here - there)]
        problems += [
            f"{where} has {name!r}, which dataset {number} lacks" for name in _ordered(parts[other], there - here)
        ]
        for name in _ordered(first, here & there):
            texts = _differences(first, parts[other], name, f"dataset {number}", where)
            problems += [f"{name!r} {text}" for text in texts]
    return problems + _missing_steps(parts)


def _ordered(ds: xr.Dataset, chosen: set[Any]) -> list[Any]:
    return [name for name in ds.variables if name in chosen]


def _differences(a: xr.Dataset, b: xr.Dataset, name: Any, here: str, there: str) -> Iterator[str]:
    """Yield how a variable differs between two Datasets, which the texts call `here` and `there`."""
    one, two = a.variables[name], b.variables[name]
    if (name in a.coords) != (name in b.coords):
        yield f"is a coordinate in only one of {here} and {there}"
    if set(one.dims) != set(two.dims):
        yield f"has dims {_tuple(one.dims)} in {here} and {_tuple(two.dims)} in {there}"
        return
    inner = [dim for dim in one.dims if dim not in (names.EPISODE, names.TIME)]
    sizes = [tuple(variable.sizes[dim] for dim in inner) for variable in (one, two)]
    if sizes[0] != sizes[1]:
        yield f"has shape {_tuple(sizes[0])} per step in {here} and {_tuple(sizes[1])} in {there}"
        return
    if common_dtype([one, two]) is None:
        yield f"has dtype {one.dtype} in {here} and {two.dtype} in {there}"
    for key in (names.RECORDED_DTYPE_ATTR, "units"):
        values = [variable.attrs.get(key) for variable in (one, two)]
        if None not in values and _without_width(values[0]) != _without_width(values[1]):
            yield f"has {key} {values[0]!r} in {here} and {values[1]!r} in {there}"
    if names.EPISODE in one.dims:
        return
    if names.TIME in one.dims:
        one, two = (array.variable for array in xr.align(a[name], b[name]))
    if not np.array_equal(one.values, two.transpose(*one.dims).values):
        yield f"has other values in {here} than in {there}"


def _tuple(items: Sequence[Any]) -> str:
    return f"({', '.join(map(str, items))})"


def _without_width(recorded: Any) -> Any:
    """Return a recorded dtype; of strings of any width just ``"str"``."""
    return recorded.rstrip("0123456789") if isinstance(recorded, str) and recorded.startswith("str") else recorded


def _missing_steps(parts: Mapping[int, xr.Dataset]) -> list[str]:
    """Return which Datasets lack steps of their episodes that another has: padding would stand in their place."""
    time = np.unique(np.concatenate([ds[names.TIME].values for ds in parts.values()]))
    problems = []
    for number, ds in parts.items():
        missing = np.setdiff1d(time, ds[names.TIME].values)
        missing = missing[missing < ds[names.LENGTH].values.max(initial=0)]
        if len(missing):
            problems.append(
                f"dataset {number} lacks {len(missing)} steps of its episodes that another has (the first is time "
                f"{missing[0]}); slice `time` after putting them together"
            )
    return problems


def common_dtype(variables: Sequence[xr.Variable]) -> np.dtype | None:
    """Return the dtype that holds all variables: the one they share, or strings of the largest width; else None."""
    dtypes = {variable.dtype for variable in variables}
    if len(dtypes) == 1:
        return dtypes.pop()
    if all(dtype.kind in "UOT" for dtype in dtypes):
        return np.result_type(*dtypes) if all(dtype.kind == "U" for dtype in dtypes) else np.dtype(object)
    return None


def common_attrs(variables: Sequence[xr.Variable]) -> dict[str, Any]:
    """Return the attributes on which all variables that have them agree; of string widths the largest."""
    attrs = {}
    for key in dict.fromkeys(key for variable in variables for key in variable.attrs):
        values = [variable.attrs[key] for variable in variables if key in variable.attrs]
        if key == names.RECORDED_DTYPE_ATTR:
            attrs[key] = max(values, key=lambda text: (len(text), text))
        elif all(np.array_equal(value, values[0]) for value in values):
            attrs[key] = values[0]
    return attrs
