"""Which variables of a Dataset are recorded fields, how they are named, and what their components are called."""

import fnmatch
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from trajlab import names
from trajlab.capture.convention import STANDARD_NAMES
from trajlab.capture.tree import under
from trajlab.errors import FriendlyKeyError, require_text, unknown_name
from trajlab.padding import padding_value, shown_as

MAX_COMPONENTS = 64
"""A field with more components becomes columns only where it is named."""

ROLES = {name: role for role in ("observation", "action", "reward") for name in STANDARD_NAMES[role]}
"""Standard names, and the role that a field of another name may fill in their place."""


def field_names(ds: xr.Dataset) -> list[str]:
    """Return the fields: data variables over (episode, time, ...), `iteration` apart."""
    return [str(name) for name in ds.data_vars if name != names.ITERATION and is_per_transition(ds.variables[name])]


def is_per_transition(variable: xr.Variable) -> bool:
    """Say whether a variable has one cell per episode and time step."""
    return variable.dims[:2] == (names.EPISODE, names.TIME)


def final_fields(ds: xr.Dataset) -> dict[str, str]:
    """Return the variables that hold final observations, each with the field whose final value it is."""
    found = {}
    for field in field_names(ds):
        cell = (names.EPISODE, *ds.variables[field].dims[2:])
        final = names.final_name(field)
        for name in (final, f"{final}_"):
            if name in ds.data_vars and ds.variables[name].dims == cell and not is_episode_field(ds.variables[name]):
                found[name] = field
                break
    return found


def final_names(ds: xr.Dataset) -> list[str]:
    """Return the variables that hold final observations, also those whose field is not there."""
    known = final_fields(ds)
    return [
        str(name) for name, array in ds.data_vars.items() if name in known or _looks_final(array.variable, str(name))
    ]


def _looks_final(variable: xr.Variable, name: str) -> bool:
    is_per_episode = variable.dims[:1] == (names.EPISODE,) and names.TIME not in variable.dims
    is_called_so = name.startswith(names.FINAL_PREFIX) and not is_episode_field(variable)
    return is_per_episode and is_called_so and is_as_recorded(variable, name)


def is_episode_field(variable: xr.Variable) -> bool:
    """Say whether a variable is a recorded field with one value per episode, whatever its name."""
    return variable.attrs.get(names.ROLE_ATTR) == names.EPISODE_FIELD_ROLE


def missing_values(variable: xr.Variable, values: np.ndarray | None = None) -> np.ndarray:
    """Return where a variable has no value: NaN, NaT and None, and of an episode field the padding of integers.

    `values` are some of it, where they have been read; else all are.
    """
    values = variable.values if values is None else values
    if is_episode_field(variable) and values.dtype.kind == "i":
        return np.asarray(values == padding_value(values.dtype))
    return np.asarray(pd.isna(values))


def is_as_recorded(variable: xr.Variable, name: str) -> bool:
    """Say whether a variable is a recorded one, or the final values of one, in the dtype in which it is shown.

    Arithmetic keeps attributes (xarray 2025.11 and later), so that what a user computed from a field has its
    `recorded_dtype`; but also its `long_name`, which is then not the variable's own name.
    """
    shown = shown_as(variable.attrs.get(names.RECORDED_DTYPE_ATTR, "?"))
    if shown is None or not has_own_name(variable, name):
        return False
    if shown.kind == "U":
        return variable.dtype.kind in "UOT"
    return variable.dtype.newbyteorder("=") == shown or variable.dtype.kind == shown.kind == "S"


def has_own_name(variable: xr.Variable, name: str) -> bool:
    """Say whether `long_name`, where there is one, is what a recorded variable called `name` has."""
    given = variable.attrs.get("long_name", name)
    finals = {f"final {name.removeprefix(names.FINAL_PREFIX)}", f"final {name[len(names.FINAL_PREFIX) : -1]}"}
    return given == name or (name.startswith(names.FINAL_PREFIX) and given in finals)


def resolve_field(ds: xr.Dataset, name: Any) -> str:
    """Return the name of the field that `name` means.

    It is the field called so, or else, for ``"action"``, ``"reward"``, ``"obs"`` and ``"observation"``, the
    one field recorded in this role, under the name it was recorded with: what arithmetic made of a field has
    its attributes, too. ``"iteration"`` is taken, too.

    Raises
    ------
    KeyError
        When no field is called so, with a suggestion; when several fill the role; when `name` is something
        else than a field.
    TypeError
        When `name` is no text.
    """
    require_text("field", name, "a field")
    known = field_names(ds)
    if name in known or (name == names.ITERATION and name in ds.data_vars):
        return name
    if name in ROLES and name not in ds.variables:
        marked = [field for field in known if ds.variables[field].attrs.get(names.ROLE_ATTR) == ROLES[name]]
        filling = [field for field in marked if has_own_name(ds.variables[field], field)]
        if len(filling) == 1:
            return filling[0]
        if filling:
            several = ", ".join(map(repr, filling))
            raise FriendlyKeyError(
                f"several fields fill the role {ROLES[name]!r}: name one instead of {name!r}. There are: {several}."
            )
        if marked:
            which = f"{', '.join(map(repr, marked))}: renamed, or computed from it; name the field that is meant"
            raise unknown_name(f"field of the role {ROLES[name]!r} as recorded (there is {which})", name, known)
    if name in ds.variables:
        dims = ", ".join(map(str, ds.variables[name].dims))
        raise FriendlyKeyError(
            f"no field {name!r}: it is a variable over ({dims}), not over (episode, time, ...). There are: "
            f"{', '.join(map(repr, known))}."
        )
    _refuse_component(ds, name)
    raise unknown_name("field", name, known)


def _refuse_component(ds: xr.Dataset, name: str) -> None:
    """Raise KeyError where a component of a field is named, or something like one."""
    base = name.partition("[")[0]
    if base == name or not (base in field_names(ds) or base in ROLES):
        return
    field = resolve_field(ds, base)
    dims, shape = ds.variables[field].dims[2:], ds.variables[field].shape[2:]
    if not component_count(ds.variables[field]) or not dims:
        return
    labels = component_labels(ds, field, base)
    index = np.unravel_index(labels.index(name) if name in labels else 0, shape)
    by_label = all(dim in ds.indexes for dim in dims)
    chosen = {
        str(dim): [ds[dim].values[place].item() if by_label else int(place)]
        for dim, place in zip(dims, index, strict=True)
    }
    some = f"ds.{'sel' if by_label else 'isel'}({chosen!r})"
    raise FriendlyKeyError(
        f"no field {name!r}: a whole field is taken here. Select {'its component' if name in labels else 'components'} "
        f"first{'' if name in labels else ', as in'}: {some}, and name {field!r}"
    )


def component_count(variable: xr.Variable) -> int:
    """Return how many components a field has: the product of its own dims' sizes."""
    return int(np.prod(variable.shape[2:], dtype=np.int64))


def choose_fields(ds: xr.Dataset, fields: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the fields to make columns of, in order, and those of them that were named exactly.

    Parameters
    ----------
    fields : str, sequence of str or None
        Names, globs, the name of a subtree, and exclusions (``"-info.*"``); None for all. A field with more
        than `MAX_COMPONENTS` components is chosen only by its exact name.

    Raises
    ------
    KeyError
        When an entry matches no field, with a suggestion.
    ValueError
        When components of two chosen fields would have the same name.
    """
    known = field_names(ds)
    small = [name for name in known if component_count(ds.variables[name]) <= MAX_COMPONENTS]
    if fields is None:
        _check_labels(ds, small)
        return small, []
    entries = [fields] if isinstance(fields, str) else list(fields)
    chosen: dict[str, bool] = dict.fromkeys(small, False) if entries and entries[0].startswith("-") else {}
    for entry in entries:
        pattern = entry.removeprefix("-")
        hits = set(under(pattern, known)) | set(fnmatch.filter(known, pattern))
        exact = pattern in known or not hits
        if exact:
            hits = {resolve_field(ds, pattern)}
        if entry.startswith("-"):
            chosen = {name: named for name, named in chosen.items() if name not in hits}
        else:
            chosen |= {name: exact for name in [*known, names.ITERATION] if name in hits and (exact or name in small)}
    _check_labels(ds, list(chosen))
    return list(chosen), [name for name, exact in chosen.items() if exact]


def _check_labels(ds: xr.Dataset, chosen: list[str]) -> None:
    """Raise ValueError where a component of one field is called as another field, or as a component of it."""
    for other in chosen:
        for name in chosen:
            if other.startswith(f"{name}["):  # only then can they meet
                twice = set(component_labels(ds, name)) & set(component_labels(ds, other))
                if twice:
                    raise ValueError(
                        f"fields {name!r} and {other!r} would both have a column {min(twice)!r}; leave one out, or "
                        f"rename it: ds.rename({{{other!r}: ...}})"
                    )


def component_labels(ds: xr.Dataset, name: str, base: str | None = None) -> list[str]:
    """Return a name for each component of a variable: ``reward``, ``obs[x]``, ``img[0,1]``, in C order.

    Labels are those of the coordinates of its own dims (all but episode and time), else positions; positions,
    too, where labels with commas in them would give two components one name. `base` replaces the variable's
    name.
    """
    dims = [str(d) for d in ds.variables[name].dims if d not in (names.EPISODE, names.TIME)]
    base = name if base is None else base
    if not dims:
        return [base]
    labels = [_labels(ds, dim) for dim in dims]
    named = [",".join(component) for component in itertools.product(*labels)]
    if len(dims) > 1 and len(set(named)) < len(named):
        named = [",".join(map(str, place)) for place in itertools.product(*(range(ds.sizes[dim]) for dim in dims))]
    return [f"{base}[{component}]" for component in named]


def _labels(ds: xr.Dataset, dim: str) -> list[str]:
    """Return the labels of a dim as text; positions where it has none, or equal ones."""
    size = ds.sizes[dim]
    labels = [str(label) for label in ds[dim].values] if dim in ds.coords else []
    return labels if len(set(labels)) == size else [str(i) for i in range(size)]


def component_units(ds: xr.Dataset, name: str) -> list[str]:
    """Return a unit for each component of a field: its own, else those of its dims' labels, "" where none is known.

    Where several dims have units, the last one that has one for a component counts.
    """
    variable = ds.variables[name]
    dims, shape = variable.dims[2:], variable.shape[2:]
    units = np.full(shape, str(variable.attrs.get("units", "")), object)
    for axis, dim in enumerate(() if "units" in variable.attrs else dims):
        key = names.units_name(str(dim))
        if key in ds.coords and ds.variables[key].dims == (dim,):
            own = as_text(ds[key].values).reshape([-1 if i == axis else 1 for i in range(len(shape))])
            units = np.where(own != "", own, units)
    return [str(unit) for unit in units.ravel()]


def is_numeric(variable: xr.Variable) -> bool:
    """Say whether a field's values are bools, integers or real floats; bools that `where` made objects are, too."""
    if variable.dtype.kind == "O":
        return shown_as(variable.attrs.get(names.RECORDED_DTYPE_ATTR)) == np.bool_
    return variable.dtype.kind in "biuf"


def is_recorded_bool(variable: xr.Variable) -> bool:
    """Say whether a field holds bools, or what `where` made of them, told without reading it."""
    return variable.dtype == np.bool_ or shown_as(variable.attrs.get(names.RECORDED_DTYPE_ATTR, "?")) == np.bool_


def as_text(values: np.ndarray) -> np.ndarray:
    """Return strings of any dtype, such as the objects that a file gives back, as fixed-width ones."""
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind not in "OT":
        return values.astype(str)
    return np.array([str(value) for value in values.ravel()], np.str_).reshape(values.shape)  # T has no cast of its own


def padding_of(variable: xr.Variable) -> object:
    """Return the value that pads a variable, also where a file gave its strings back as objects."""
    dtype = variable.dtype
    if dtype.kind == "T":
        return ""
    if dtype.kind == "O":
        shown = shown_as(variable.attrs.get(names.RECORDED_DTYPE_ATTR, "str"))
        return padding_value(shown) if shown is not None and shown.kind in "bU" else np.nan
    return padding_value(dtype)
