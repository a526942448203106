"""Labels of what streaming statistics return: those that the analyses of the same name give."""

from typing import Any

from trajlab.consumers.consumer import Batch
from trajlab.names import FIELD_ATTR, MADE_BY_ATTR, VERSION_ATTR, units_name
from trajlab.version import package_version


def made_by(function: str, field: str) -> dict[str, Any]:
    """Return the attributes that say how a result was made."""
    return {
        MADE_BY_ATTR: f"trajlab.{function}",
        VERSION_ATTR: package_version(),
        FIELD_ATTR: field,
    }


def attrs_of(batch: Batch, field: str) -> dict[str, str]:
    """Return what a field is called on an axis, and its units where it has a single one."""
    attrs = batch.attrs[field]
    units = {} if attrs.get("units") is None else {"units": str(attrs["units"])}
    return {"long_name": str(attrs.get("long_name", field)), **units}


def inner_coords(batch: Batch, field: str) -> dict[str, Any]:
    """Return the coordinates of a field's own dims: labels of components and their units."""
    names = [name for dim in batch.dims[field] for name in (dim, units_name(dim))]
    return {name: batch.coords[name] for name in names if name in batch.coords}
