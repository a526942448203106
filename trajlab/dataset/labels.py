"""Names, labels and units of the fields' own dims, as ArviZ takes `dims` and `coords`."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trajlab.block.layout import EVERY_AGENT, Field
from trajlab.errors import raise_all, unknown_name
from trajlab.names import AGENT, ALIVE, RESERVED, final_name, units_name

Dims = Mapping[str, Sequence[str] | str]
"""Field name to the names of its own dims; an axis letter to the name of its episode coordinate."""
Coords = Mapping[str, Sequence[Any]]
"""Dim to its labels."""
Units = Mapping[str, str | Sequence[str] | Mapping[Any, str]]
"""Field to its unit, or to one unit per label of its dim."""


@dataclasses.dataclass(frozen=True)
class Labels:
    """What the fields' own dims are called, checked against the fields.

    Attributes
    ----------
    dims : mapping of str to tuple of str
        Field to its own dims.
    coords : mapping of str to array
        Dim to its labels.
    units : mapping of str to str
        Field to its one unit.
    dim_units : mapping of str to tuple of str
        Dim to the units of its labels.
    attrs : mapping of str to mapping
        Field to its further attributes.
    """

    dims: Mapping[str, tuple[str, ...]]
    coords: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    dim_units: Mapping[str, tuple[str, ...]]
    attrs: Mapping[str, Mapping[str, Any]]

    def attrs_of(self, name: str) -> dict[str, Any]:
        """Return the attributes that label a field."""
        return {**self.attrs.get(name, {}), **({"units": self.units[name]} if name in self.units else {})}

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates of the fields' own dims."""
        coords: dict[str, Any] = {dim: (dim, values) for dim, values in self.coords.items()}
        return coords | {units_name(dim): (dim, np.array(units)) for dim, units in self.dim_units.items()}


def dim_names(name: str, given: Any) -> tuple[str, ...]:
    """Return the names that `dims` gives for one key, a single one or a list of them, as a tuple."""
    names = (given,) if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    if not all(isinstance(entry, str) for entry in names):
        raise TypeError(f"dims[{name!r}]={given!r}; expected a name or a list of names")
    return names


def make_labels(
    fields: Sequence[Field],
    dims: Any,
    coords: Any,
    units: Any,
    same_dims: Mapping[str, str],
    axis_names: Mapping[str, str] | None = None,
    agents: Sequence[str] = (),
    attrs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Labels:
    """Check `dims`, `coords` and `units` against the recorded fields, and fill in what they leave out.

    Parameters
    ----------
    fields : sequence of Field
        The recorded fields; hidden ones are left out.
    dims, coords, units : mapping, optional
        As the user gave them.
    same_dims : mapping of str to str
        Fields that share the dims of another: the next observation those of the observation.
    axis_names : mapping of str to str, optional
        Letters of axes merged into the environments, and the names of the coordinates they become.
    agents : sequence of str
        Names of the agents, the labels of the dim `agent`; `dims` need not name it.
    attrs : mapping of str to mapping, optional
        Further attributes of fields, by their names in the chunk.

    Raises
    ------
    KeyError
        When `dims` or `units` name no field, or `coords` no dim.
    ValueError
        Every other problem at once: numbers of dims, lengths of labels, a dim with two sizes.
    TypeError
        When one of them, or a unit, is of another type.
    """
    for what, mapping in (("dims", dims), ("coords", coords), ("units", units)):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise TypeError(f"{what}={mapping!r}; expected a mapping of a name to what it gets, or None")
    shapes = {field.name: field.shape for field in fields if not field.hidden}
    of_agents = {field.name for field in fields if field.agent == EVERY_AGENT}
    axes = dict(axis_names or {})
    reserved = {*RESERVED, *((AGENT, ALIVE) if agents else ()), *shapes}
    given = _given_dims(dims or {}, shapes, of_agents, axes)
    problems = [
        f"dims[{letter!r}]: {name!r} is a name of the Dataset; choose another"
        for place, (letter, name) in enumerate(axes.items())
        if name in reserved or name in list(axes.values())[:place]
    ]
    found = _dims_of(shapes, given, same_dims, of_agents, reserved | set(axes.values()), problems)
    labels = _labels_of(coords or {}, _sizes(found, shapes, problems), agents, problems)
    own_dims = {name: own[1:] if own[:1] == (AGENT,) else own for name, own in found.items()}
    own_shapes = {name: shape[len(found[name]) - len(own_dims[name]) :] for name, shape in shapes.items()}
    one, several = _units(units or {}, own_dims, own_shapes, labels, problems)
    raise_all(problems, "labels do not fit the fields")
    labels |= {AGENT: np.array(agents)} if agents else {}
    further = {field.name: attrs[field.source] for field in fields if attrs and field.source in attrs}
    return Labels(found, labels, one, several, further)


def _given_dims(
    dims: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], of_agents: Collection[str], axes: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the dims that are given, with `agent` in front where it was left out; raise where one is of no field."""
    given = {name: dim_names(name, names) for name, names in dims.items()}
    for name, own in given.items():
        if name not in shapes:
            raise unknown_name("field for dims=", name, [*shapes, *axes])
        if name in of_agents and AGENT not in own and len(own) < len(shapes[name]):
            given[name] = (AGENT, *own)
    return given


def _dims_of(
    shapes: Mapping[str, tuple[int, ...]],
    given: Mapping[str, tuple[str, ...]],
    same_dims: Mapping[str, str],
    of_agents: Collection[str],
    names: Collection[str],
    problems: list[str],
) -> dict[str, tuple[str, ...]]:
    """Return the dims of each field: those `given`, those of another field, or new ones; none is one of `names`."""
    found: dict[str, tuple[str, ...]] = {}
    taken = {*names, *map(final_name, shapes)}
    for name, shape in shapes.items():
        twin = same_dims.get(name, name)
        twin = twin if shapes.get(twin) == shape else name
        own = given.get(name)
        if own is None:
            own = given.get(twin) or _default_dims(twin, shape, taken, name in of_agents)
        if len(own) != len(shape):
            problems.append(
                f"dims[{name!r}]={list(own)}: the field's cells have shape {shape}, so expected {len(shape)} names"
            )
        if len(set(own)) < len(own):
            problems.append(f"dims[{name!r}]={list(own)} has a name twice; expected one for each axis")
        if name in of_agents and AGENT in own[1:]:
            problems.append(f"dims[{name!r}]={list(own)}: expected {AGENT!r} first, or left out")
        clashes = sorted(set(own) - {AGENT} & set(names))
        problems += [f"dims[{name!r}]: {dim!r} is a name of the Dataset; choose another" for dim in clashes]
        found[name] = own
    return found


def _labels_of(
    coords: Mapping[str, Any], sizes: Mapping[str, int], agents: Sequence[str], problems: list[str]
) -> dict[str, np.ndarray]:
    """Return the labels that are given for dims; raise where there is no such dim."""
    for dim in coords:
        if dim not in sizes:
            raise unknown_name("dim for coords=", dim, sizes)
    labels = {dim: np.asarray(values) for dim, values in coords.items()}
    for dim, values in labels.items():
        if values.shape != (sizes[dim],):
            problems.append(f"coords[{dim!r}] has shape {values.shape}; expected ({sizes[dim]},), one label per entry")
    if agents and AGENT in labels:
        problems.append(f"coords[{AGENT!r}]: the labels are the names that Convention(agents=...) gives; leave it out")
    return labels


def _default_dims(name: str, shape: tuple[int, ...], taken: Collection[str], has_agents: bool) -> tuple[str, ...]:
    """Return `obs_dim_0`, `obs_dim_1`, ...; with underscores behind a name that is taken; `agent` before them."""
    if has_agents:
        return (AGENT, *_default_dims(name, shape[1:], taken, False))
    dims = [f"{name}_dim_{i}" for i in range(len(shape))]
    for i in range(len(dims)):
        while dims[i] in taken:
            dims[i] += "_"
    return tuple(dims)


def _sizes(
    dims: Mapping[str, tuple[str, ...]], shapes: Mapping[str, tuple[int, ...]], problems: list[str]
) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, own in dims.items():
        for dim, size in zip(own, shapes[name], strict=False):
            if sizes.setdefault(dim, size) != size:
                problems.append(f"dim {dim!r} has size {sizes[dim]} elsewhere and {size} in {name!r}; use two names")
    return sizes


def _units(
    units: Any,
    dims: Mapping[str, tuple[str, ...]],
    shapes: Mapping[str, tuple[int, ...]],
    labels: Mapping[str, np.ndarray],
    problems: list[str],
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    one: dict[str, str] = {}
    several: dict[str, tuple[str, ...]] = {}
    for name, unit in units.items():
        if name not in dims:
            raise unknown_name("field for units=", name, dims)
        if isinstance(unit, str):
            one[name] = unit
            continue
        texts = unit.values() if isinstance(unit, Mapping) else unit
        if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"units[{name!r}]={unit!r}; expected one text, or a text for each label of the field's dim")
        if len(dims[name]) != 1:
            problems.append(f"units[{name!r}]={unit!r}: expected one text, as the field has no single dim to list")
            continue
        (dim,) = dims[name]
        if isinstance(unit, Mapping):
            known = [str(label) for label in labels.get(dim, np.arange(shapes[name][0]))]
            stray = sorted(set(map(str, unit)) - set(known))
            problems += [f"units[{name!r}]: {label!r} is no label of {dim!r} ({', '.join(known)})" for label in stray]
            by_label = {str(label): text for label, text in unit.items()}
            unit = [by_label.get(label, "") for label in known]
        if len(unit) != shapes[name][0]:
            problems.append(f"units[{name!r}] lists {len(unit)}; expected {shapes[name][0]}, one per label of {dim!r}")
        if units_name(dim) in shapes:
            problems.append(f"units[{name!r}]: {units_name(dim)!r} is a field; name the dim {dim!r} differently")
        if several.setdefault(dim, tuple(unit)) != tuple(unit):
            problems.append(f"units[{name!r}]: dim {dim!r} has other units elsewhere; name the field's dim differently")
    return one, several
