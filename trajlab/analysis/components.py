"""Components: one number for each transition, called as `stack_fields` calls them."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import filled, require_numeric, title_of
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import (
    MAX_COMPONENTS,
    ROLES,
    component_count,
    component_labels,
    component_units,
    field_names,
    resolve_field,
)
from trajlab.dataset.flat import FlatBatch
from trajlab.dataset.schema import validate
from trajlab.errors import FriendlyKeyError, did_you_mean
from trajlab.names import ITERATION

MAX_NAMED = 3
"""Of more components an error names the first so many."""


@dataclasses.dataclass(frozen=True, eq=False)
class Component:
    """One component of a field.

    Attributes
    ----------
    label : str
        As ``"reward"``, ``"obs[x]"`` or ``"img[0,1]"``.
    field : str
        The field it is of.
    name : str
        The variable to read: small fields are read whole, which is faster than a part of them.
    index : tuple of int
        Its place in the field.
    title, units : str
        What stands on an axis; units are "" where none are known.
    is_whole : bool
        Whether it is of bools or integers now.
    alive : AliveRows
        Whose value it is, where there are several agents.
    """

    label: str
    field: str
    name: str
    index: tuple[int, ...]
    title: str
    units: str
    is_whole: bool
    alive: AliveRows

    @property
    def needed(self) -> list[str]:
        """Variables that a batch must hold."""
        return [self.name, *self.alive.needed]

    def values(self, batch: FlatBatch) -> np.ndarray:
        """Return the value of each transition (M,), in the dtype of the field."""
        values = batch.values[self.name]
        inner: Any = self.index
        return np.ascontiguousarray(values[:, *inner]) if values.ndim > 1 else values

    def missing(self, batch: FlatBatch) -> np.ndarray | None:
        """Return in which transitions (M,) its agent takes no part, None where all count."""
        mask = self.alive.mask(batch)
        if mask is None:
            return None
        return ~mask[:, 0 if self.alive.axis is None else self.index[self.alive.axis]]


def components_of(
    ds: xr.Dataset, labels: Sequence[Any], what: str, *, along: Any = None
) -> tuple[xr.Dataset, list[Component]]:
    """Return the Dataset, once it has what every analysis needs, and the components of it that labels name.

    A component of a field of more than 64 is a variable of its own in what is returned, so that only it is read.

    Parameters
    ----------
    ds : Dataset
    labels : sequence of str
        As `stack_fields` has them. The name of a field will do where it has a single component.
    what : str
        The function that asks, for messages.
    along : str, optional
        As in `field_of`.

    Raises
    ------
    ValueError
        When `ds` is not of schema 1.
    KeyError
        When there is no such component.
    TypeError
        When a label is not a text, or a component does not hold numbers.
    """
    validate(ds)
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(f"{what}: {label!r} is no component; expected a label such as 'reward' or 'obs[0]'")
    ds = filled(ds, dict.fromkeys(labels, np.float64), along)
    found = []
    for label in labels:
        field, place = _locate(ds, label)
        variable = ds.variables[field]
        require_numeric(variable, field, what)
        index = tuple(int(i) for i in np.unravel_index(place, variable.shape[2:])) if variable.ndim > 2 else ()
        name = field
        if component_count(variable) > MAX_COMPONENTS:
            name = component_labels(ds, field)[place]
            ds = ds.assign({name: variable[(slice(None), slice(None), *index)]})
        title = component_labels(ds, field, title_of(ds, field))[place]
        units = component_units(ds, field)[place]
        is_whole = variable.dtype.kind in "biu"
        found.append(Component(label, field, name, index, title, units, is_whole, AliveRows.of(ds, field)))
    return ds, found


def needed_by(components: Iterable[Component]) -> list[str]:
    """Return the variables that a batch must hold for several components, each once."""
    return list(dict.fromkeys(name for component in components for name in component.needed))


def _locate(ds: xr.Dataset, label: str) -> tuple[str, int]:
    """Return the field that a label means, and the place of the component in it, counted in C order."""
    fields = [*field_names(ds), *([ITERATION] if ITERATION in ds.data_vars else [])]
    base = label.partition("[")[0]
    if label in fields:
        return label, _place(ds, label, label, label)
    if base in ROLES and base not in ds.variables:
        field = resolve_field(ds, base)
        return field, _place(ds, field, label, base)
    for field in fields:
        if label.startswith(f"{field}[") and label in component_labels(ds, field):
            return field, _place(ds, field, label, field)
    known = [base] if base in fields else [n for n in fields if component_count(ds.variables[n]) <= MAX_COMPONENTS]
    raise _unknown(label, [each for name in known for each in component_labels(ds, name)])


def _place(ds: xr.Dataset, field: str, label: str, base: str) -> int:
    """Return the place of a component; `base` is what the label calls the field."""
    labels = component_labels(ds, field, base)
    if label in labels:
        return labels.index(label)
    if label == base and len(labels) == 1:
        return 0
    raise _unknown(label, labels)


def _unknown(label: str, labels: Sequence[str]) -> KeyError:
    """Return the KeyError for a label that is none of those there are, a few of which it names."""
    some = ", ".join(map(repr, labels[:MAX_NAMED])) or "none"
    there = f"There are: {some}." if len(labels) <= MAX_NAMED else f"There are {len(labels):,}, such as {some}."
    return FriendlyKeyError(f"no component {label!r}.{did_you_mean(label, _similar(label, labels))} {there}")


def _similar(label: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that may have been meant: places are numbers, of which no one resembles another."""
    base, _, inner = label.partition("[")
    alike = [known for known in labels if known.count(",") == label.count(",")]
    if not any(known.startswith(f"{base}[") for known in labels):
        return alike
    return [known for known in alike if did_you_mean(inner, [known.partition("[")[2]]) and not inner[:1].isdigit()]
