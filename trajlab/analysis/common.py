"""What all analyses share: which field is meant, how a result was made, and what is reported to the user."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import field_names, is_numeric, resolve_field
from trajlab.dataset.schema import validate
from trajlab.dataset.windows import is_windows
from trajlab.errors import require_text, warn_user, whole_number
from trajlab.names import (
    COMPLETE,
    CUT,
    END_REASON,
    EPISODE,
    FIELD_ATTR,
    MADE_BY_ATTR,
    MASK,
    NUM_COMPLETE_ATTR,
    NUM_CUT_ATTR,
    NUM_EPISODES_ATTR,
    NUM_START_UNSEEN_ATTR,
    NUM_TRANSITIONS_ATTR,
    START_SEEN,
    TIME,
    VERSION_ATTR,
    units_name,
)
from trajlab.version import package_version


def field_of(
    ds: xr.Dataset,
    name: Any,
    *,
    like: type[np.generic] = np.float64,
    along: Any = None,
) -> tuple[xr.Dataset, str]:
    """Return the Dataset, once it has what every analysis needs, and the field of it that `name` means.

    A Dataset of no episode and no field (a recorder that was off, or met no chunk) cannot tell which fields
    there would be: it gets the field, of the dtype `like`, and the coordinates `along` (those that are not None),
    all without a value, so that a notebook runs through.

    Raises
    ------
    ValueError
        When `ds` is not of schema 1.
    KeyError
        When there is no such field.
    TypeError
        When `name` is no text.
    """
    validate(ds)
    require_text("field", name, "a field")
    wanted = [along] if isinstance(along, str) else along if isinstance(along, list | tuple) else []
    ds = filled(ds, {name: like}, *wanted)
    return ds, resolve_field(ds, name)


def filled(ds: xr.Dataset, fields: Mapping[str, type[np.generic]], *along: Any) -> xr.Dataset:
    """Return a Dataset of no episode and no field with fields of these dtypes, and coordinates; any other as it is."""
    if not is_blank(ds):
        return ds
    cells = (EPISODE, TIME)
    shape = [ds.sizes[dim] for dim in cells]
    ds = ds.assign({name: (cells, np.zeros(shape, like)) for name, like in fields.items() if name not in ds.variables})
    missing = [by for by in along if isinstance(by, str) and by not in ds.variables]
    return ds.assign_coords({by: (EPISODE, np.zeros(0, np.int64)) for by in missing})


def is_blank(ds: xr.Dataset) -> bool:
    """Say whether a Dataset has neither an episode nor a field."""
    return not ds.sizes[EPISODE] and not field_names(ds)


MOST_STEPS = 10_000
"""An argument that counts steps may be as large as this where no episode is so long."""


def steps_number(name: str, value: Any, cells: Cells, least: int = 0) -> int:
    """Return the argument called `name` as an int, a number of steps that an episode may have."""
    number = whole_number(name, value, least)
    check_steps(f"{name}={value!r}", number, cells)
    return number


def check_steps(given: str, number: int, cells: Cells) -> None:
    """Raise ValueError where a number of steps, `given` so, is neither that of an episode nor within `MOST_STEPS`."""
    longest = int(cells.labels.max(initial=-1)) + 1
    if number > max(longest, MOST_STEPS):
        most = max(longest, MOST_STEPS)
        raise ValueError(f"{given}; expected at most {most:,} steps: the longest episode here has {longest:,}")


def evenly_spread(total: int, count: int) -> np.ndarray:
    """Return the places of `count` (or all) of so many things, ascending and as far apart as can be.

    >>> evenly_spread(9, 3)
    array([0, 4, 8])
    """
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(np.intp))


def report_overflow(what: str, name: str, lost: np.ndarray) -> None:
    """Warn where statistics of a field are `lost`: not finite, though no value of it is NaN."""
    if lost.any():
        warn_user(
            f"{what}: {name!r} has values that are infinite, or too large for their sums and squares to be floats: "
            f"{int(lost.sum()):,} of {lost.size:,} statistics of it are not finite"
        )


def require_numeric(variable: xr.Variable, name: str, what: str) -> None:
    """Raise TypeError when a field does not hold numbers; bools that `where` turned to objects pass."""
    if not is_numeric(variable):
        raise TypeError(f"{what}: {name!r} has dtype {variable.dtype}; expected bools, integers or real numbers")


def require_free_dims(ds: xr.Dataset, name: str, own: Iterable[str], what: str) -> None:
    """Raise ValueError where a field's own dim is called as something that the result of `what` has for itself."""
    taken = [dim for dim in inner_dims(ds, name) if dim in set(own)]
    if taken:
        mend = {dim: f"{name.rpartition('.')[2]}_{dim}" for dim in taken}
        raise ValueError(
            f"{what}: {name!r} has the dim {taken[0]!r}, a name that the result uses itself; "
            f"rename it first: ds.rename({mend!r})"
        )


def made_by(ds: xr.Dataset, function: str, field: str) -> dict[str, Any]:
    """Return the attributes that say how a result was made: text and whole numbers only."""
    return {
        MADE_BY_ATTR: f"trajlab.{function}",
        VERSION_ATTR: package_version(),
        FIELD_ATTR: field,
        NUM_EPISODES_ATTR: int(ds.sizes[EPISODE]),
        NUM_COMPLETE_ATTR: int(ds.variables[COMPLETE].values.sum()),
        NUM_CUT_ATTR: int((ds.variables[END_REASON].values == CUT).sum()),
        NUM_START_UNSEEN_ATTR: int((~ds.variables[START_SEEN].values).sum()),
        NUM_TRANSITIONS_ATTR: int(ds.variables[MASK].values.sum()) if is_windows(ds) else len(Cells.of(ds)),
    }


def title_of(ds: xr.Dataset, field: str) -> str:
    """Return what a field is called on an axis: its `long_name`, or else its name.

    The name of another variable does not count: arithmetic has taken it over from there.
    """
    given = str(ds.variables[field].attrs.get("long_name", field))
    return field if given in ds.variables else given


def units_of(ds: xr.Dataset, field: str) -> dict[str, str]:
    """Return the attribute `units` of a field, or nothing where it has no single unit."""
    units = ds.variables[field].attrs.get("units")
    return {} if units is None else {"units": str(units)}


def inner_dims(ds: xr.Dataset, field: str) -> tuple[str, ...]:
    """Return a field's own dims."""
    return tuple(str(dim) for dim in ds.variables[field].dims[2:])


def inner_coords(ds: xr.Dataset, field: str) -> dict[str, xr.Variable]:
    """Return the coordinates of a field's own dims: labels of components and their units."""
    coords = {}
    for dim in inner_dims(ds, field):
        for name in (dim, units_name(dim)):
            if name in ds.coords and ds.variables[name].dims == (dim,):
                coords[name] = ds.variables[name]
    return coords


def episode_coords(ds: xr.Dataset, own: Container[Any] = ()) -> dict[Any, xr.Variable]:
    """Return what is known of each episode, the coordinates over `episode`, but for names the result has itself."""
    names = [name for name in ds.coords if name not in own]
    return {name: ds.variables[name] for name in names if ds.variables[name].dims == (EPISODE,)}


def as_rows(values: np.ndarray) -> np.ndarray:
    """Return values (M, ...) as rows (M, component); bools that `where` turned to objects become floats."""
    if values.dtype.kind == "O":
        values = values.astype(np.float64)
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))
