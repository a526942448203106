"""The plan that the first chunk makes, and the check that each later chunk fits it."""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from trajlab.block.layout import Field, Home, Layout, devices_of, placement_problems, step_axes
from trajlab.capture.convention import FLAG_SLOTS, STANDARD_NAMES, Convention, apply_convention
from trajlab.capture.envs import env_columns
from trajlab.capture.select import Fields, computed_name, select_fields
from trajlab.capture.tree import call_on_chunk, merge_extra, named_leaves
from trajlab.errors import raise_all
from trajlab.padding import shown_dtype

HIDDEN = "final:"
"""Prefix of the stored names of true last observations, which are no fields of their own."""


class Sources(NamedTuple):
    """A chunk's arrays by name, computed ones included."""

    structure: Any
    names: tuple[str, ...]
    leaves: list[Any]
    slots: Mapping[str, list[str]]
    fields: Mapping[str, list[str]]


def find_sources(chunk: Any, extra: dict[str, Any], convention: Convention, fields: Fields) -> Sources:
    """Return all arrays of a chunk by name: its leaves, the extras' and what the user's functions compute."""
    structure, names, leaves = merge_extra(chunk, extra)
    functions: list[tuple[str, str, Callable[[Any], Any]]] = []
    for slot, standard in STANDARD_NAMES.items():
        value = getattr(convention, slot)
        if callable(value):
            functions.append((slot, _unused(standard[0], names), value))
    slots_end = len(functions)
    if isinstance(fields, Mapping):
        functions += [(name, computed_name(name), value) for name, value in fields.items() if callable(value)]
    if not functions:
        return Sources(structure, names, leaves, {}, {})
    found: list[dict[str, list[str]]] = [{}, {}]
    for number, (key, stem, function) in enumerate(functions):
        where = f"Convention({key}=...)" if number < slots_end else f"fields[{key!r}]"
        _, more, values = named_leaves({stem: call_on_chunk(function, chunk, where)})
        found[number >= slots_end][key] = list(more)
        names, leaves = names + more, leaves + values
    return Sources((structure, names), names, leaves, *found)


def _unused(name: str, names: tuple[str, ...]) -> str:
    while name in names:
        name += "_"
    return name


class Plan:
    """What the first chunk fixed: roles, layout, and which arrays of a chunk are used.

    Attributes
    ----------
    roles : Roles
    layout : Layout
    chosen : dict of str to str
        Recorded fields, hidden ones included, and their sources.
    same_dims : dict of str to str
        Leaves of the next observation, and the leaf of the observation whose dims they share.
    """

    def __init__(
        self,
        sources: Sources,
        convention: Convention,
        fields: Fields,
        *,
        envs: Any,
        num_envs: int | None,
        is_step: bool,
        is_partial: bool,
        inside_jit: bool = False,
    ) -> None:
        """Make the plan from the first chunk's sources; raise what `Recorder.record` raises.

        With `inside_jit` later chunks may be traced, and all fields live on the device.
        """
        self._fields, self._inside_jit = fields, inside_jit
        self.roles = roles = apply_convention(convention, sources.names, sources.slots)
        self.flag_slots = tuple(slot for slot in FLAG_SLOTS if roles.slots[slot])
        self.chosen = self._choose(sources, warn=True)
        roles.check_globs([*sources.names, *self.chosen])
        self.positions: dict[Any, list[int]] = {}
        self._fitting: set[Any] = set()
        self._devices: tuple[Any, ...] = ()
        by_name = dict(zip(sources.names, sources.leaves, strict=True))
        letters = step_axes(roles.axes)
        lead = letters if is_step else roles.axes
        if is_partial:
            if num_envs is None or letters != "N":
                raise ValueError(
                    "the first call records only some environments, so their number is not known yet; "
                    "give it: Recorder(num_envs=...)"
                )
            lead = "N"
            sizes: tuple[tuple[str, int], ...] = (("N", num_envs),)
        else:
            sizes = self._sizes_of(by_name, lead, letters, num_envs)
        stored = tuple(self._field(name, source, by_name[source], len(lead)) for name, source in self.chosen.items())
        flag_leaves = [by_name[source] for source in self._flag_sources()]
        home: Home = "device" if any(self._home(leaf) == "device" for leaf in flag_leaves) else "host"
        total = math.prod(size for _, size in sizes)
        columns = None if envs is None else tuple(sorted(env_columns(envs, total, "envs").tolist()))
        if columns is not None and not columns:
            raise ValueError(f"envs={envs!r}: envs selects none of the {total} environments; leave it out for all")
        self._check_counterparts(stored)
        self.layout = Layout(stored, self.flag_slots, home, roles.axes, sizes, columns)
        self.same_dims = {
            self._name_of(twin): self._name_of(leaf)
            for leaf in roles.slots["observation"]
            if (twin := roles.counterpart("next_observation", leaf)) and self._name_of(twin) and self._name_of(leaf)
        }

    def __getstate__(self) -> dict[str, Any]:
        """Return what is worth copying or saving: what was found to fit is found again, and knows of devices."""
        return self.__dict__ | {"positions": {}, "_fitting": set(), "_devices": ()}

    def with_num_envs(self, num_envs: int) -> "Plan":
        """Return the plan for another number of environments: `shard_map` gives a function its device's share of them.

        Raises ValueError where the environments cannot be told apart by their number alone.
        """
        layout = self.layout
        if num_envs == layout.num_envs:
            return self
        if layout.columns is not None or len(layout.sizes) != 1:
            raise ValueError(
                f"the buffer is {num_envs} environments wide, and was made for {layout.num_envs}; a buffer that is "
                "split over devices records all environments of one axis: leave out envs= and further letters of axes="
            )
        narrow = copy.copy(self)
        narrow.layout = dataclasses.replace(layout, sizes=(("N", num_envs),))
        narrow._fitting = set()
        return narrow

    def _check_counterparts(self, stored: tuple[Field, ...]) -> None:
        """Raise ValueError when a next or final observation is not of the observation's shape and dtype."""
        by_source = {field.source: field for field in stored}
        problems = []
        for leaf in self.roles.slots["observation"]:
            for slot in ("next_observation", "final_observation"):
                field = by_source.get(self.roles.counterpart(slot, leaf) or "")
                own = by_source.get(leaf)
                if own and field and (field.shape != own.shape or not _fits(field.dtype, own.dtype)):
                    problems.append(
                        f"{field.source!r} has cells of shape {field.shape} and dtype {field.dtype}; expected those "
                        f"of {leaf!r}, {own.shape} and {own.dtype}, or Convention({slot}=None)"
                    )
        raise_all(problems, "the chunk was not recorded")

    def _name_of(self, source: str) -> str:
        return next((name for name, chosen in self.chosen.items() if chosen == source), "")

    def _flag_sources(self) -> list[str]:
        return [self.roles.slots[slot][0] for slot in self.flag_slots]

    def _choose(self, sources: Sources, *, warn: bool = False) -> dict[str, str]:
        """Return the recorded fields and the hidden ones with their sources."""
        roles = self.roles
        counterparts = {roles.counterpart("final_observation", leaf) for leaf in roles.slots["observation"]}
        finals = counterparts - set(roles.slots["next_observation"])
        own = [source for found in sources.fields.values() for source in found]
        names = [name for name in sources.names if name not in finals and name not in own]
        flags = [roles.slots[slot][0] for slot in self.flag_slots]
        chosen = select_fields(self._fields, names, sources.fields, flags, warn=warn)
        recorded = set(chosen.values())
        for leaf in roles.slots["observation"]:
            final = roles.counterpart("final_observation", leaf)
            if final and leaf in recorded:
                chosen[HIDDEN + leaf] = final
        return chosen

    def _sizes_of(
        self, by_name: Mapping[str, Any], lead: str, letters: str, num_envs: int | None
    ) -> tuple[tuple[str, int], ...]:
        """Return the sizes of the environments' axes, by the first flag's shape."""
        flag = self._flag_sources()[0]
        shape = tuple(by_name[flag].shape)
        if len(shape) != len(lead):
            raise ValueError(
                f"the flag {flag!r} has shape {shape}; expected {len(lead)} dims, {_lead_text(lead)}. "
                f"{_axes_hint(len(shape) - len(lead))}"
            )
        sizes = tuple((letter, shape[lead.index(letter)]) for letter in letters)
        total = math.prod(size for _, size in sizes)
        if num_envs is not None and total != num_envs:
            raise ValueError(f"the chunk has {total} environments; expected num_envs={num_envs}")
        return sizes

    def _home(self, leaf: Any) -> Home:
        return "device" if self._inside_jit or isinstance(leaf, jax.Array) else "host"

    def _field(self, name: str, source: str, leaf: Any, lead: int) -> Field:
        roles, hidden = self.roles, name.startswith(HIDDEN)
        is_key = _is_key(leaf)
        cell = _key_data(leaf) if is_key else leaf
        shape, dtype = tuple(cell.shape[lead:]), cell.dtype
        try:
            shown_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"field {source!r}: {error}. Leave it out: fields=['*', '-{source}']") from None
        if self._inside_jit and isinstance(leaf, np.ndarray):
            check_fits_jax(source, leaf)
        role = next((slot for slot, names in roles.slots.items() if source in names), "")
        return Field(
            name=name,
            source=source,
            shape=shape,
            dtype=np.dtype(dtype).newbyteorder("="),
            home=self._home(leaf),
            moved=not hidden and roles.is_moved(source, name),
            role="" if hidden else role,
            hidden=hidden,
            is_key=is_key,
        )

    def leaves_of(self, sources: Sources) -> list[Any]:
        """Return the arrays a chunk gives for the stored fields and then the flags, in order.

        Raises ValueError when fields are missing or new.
        """
        positions = self.positions.get(sources.structure)
        if positions is None:
            self._check_field_set(sources)
            positions = self.positions[sources.structure] = [sources.names.index(name) for name in self._used_sources()]
        return [sources.leaves[i] for i in positions]

    def _used_sources(self) -> list[str]:
        """Return the sources of the stored fields and then of the flags."""
        return [*self.chosen.values(), *self._flag_sources()]

    def _check_field_set(self, sources: Sources) -> None:
        missing = [name for name in self._used_sources() if name not in sources.names]
        if missing:
            text = ", ".join(map(repr, dict.fromkeys(missing)))
            raise ValueError(f"missing from this chunk: {text}; every chunk must hold the fields of the first one")
        chosen = self._choose(sources)
        new = {chosen[name] for name in chosen.keys() - self.chosen.keys()}
        if new:
            text = ", ".join(map(repr, sorted(new)))
            raise ValueError(
                f"not in the first chunk: {text}; every chunk must hold the same fields. "
                "Leave them out with fields=['*', '-name']"
            )

    def check(self, leaves: list[Any], mask: Any, *, is_step: bool, part: int | None) -> tuple[int, Any]:
        """Check the arrays that `leaves_of` gave and the mask; return the chunk's number of rows and its signature.

        `part` is the number of environments of a partial step. Raises ValueError with every problem.
        """
        if not (mask is None or isinstance(mask, (np.ndarray, jax.Array))):
            raise TypeError(f"mask is of type {type(mask).__name__} ({str(mask)[:60]}); expected a bool array")
        signature = (
            is_step,
            part,
            None if mask is None else _kind(mask),
            *[_kind(leaf) for leaf in leaves],
        )
        if signature not in self._fitting:
            self._check_all(leaves, mask, is_step, part)
            self._fitting.add(signature)
        for place, leaf in enumerate([] if self._inside_jit else leaves):
            if isinstance(leaf, jax.Array) and leaf.is_deleted():
                name = self._used_sources()[place]
                raise ValueError(f"the array of {name!r} has been deleted or donated; record it before it is donated")
        return self._rows(leaves, is_step), signature

    def _rows(self, leaves: list[Any], is_step: bool) -> int:
        if is_step:
            return 1
        shape, axes = leaves[-1].shape, self.roles.axes
        return math.prod(shape[axes.index(letter)] for letter in "UT" if letter in axes)

    def updates(self, leaves: list[Any]) -> int:
        """Return how many updates a chunk holds: the size of the axis U, else 1."""
        axes = self.roles.axes
        return leaves[-1].shape[axes.index("U")] if "U" in axes else 1

    def _check_all(self, leaves: list[Any], mask: Any, is_step: bool, part: int | None) -> None:
        if not self._inside_jit and any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise TypeError(
                "record() was called inside a function that JAX traces (jit, scan, vmap); return the chunk from it "
                "and record that, or carry a buffer through it: init_buffer() and append()"
            )
        axes = self.roles.axes
        axes = step_axes(axes) if is_step else axes
        sizes = dict(self.layout.sizes)
        if part is not None:
            axes, sizes = "N", {"N": part}
        flag, flag_source = leaves[-1], self._flag_sources()[-1]
        if flag.ndim != len(axes):
            raise ValueError(
                f"the flag {flag_source!r} has shape {tuple(flag.shape)}; expected {_lead_text(axes)}. "
                f"{_axes_hint(flag.ndim - len(axes))}"
            )
        for letter, got in zip(axes, flag.shape, strict=True):
            if letter in sizes and got != sizes[letter] and part is None:
                raise ValueError(
                    f"this chunk has {got} {_AXIS_NAMES.get(letter, letter)}, the first one had {sizes[letter]}; "
                    "their number is fixed. Record the others apart"
                )
            if letter == "N" and part is not None and got != part:
                raise ValueError(
                    f"the flag {flag_source!r} has {got} entries for the {part} environments of envs=; "
                    "give arrays of just these, or a bool mask as envs="
                )
        if 0 in flag.shape and part is None:
            raise ValueError(f"the chunk is empty: its leading dims {_lead_text(axes)} are {tuple(flag.shape)}")
        lead = tuple(flag.shape)
        problems = [
            f"{name!r} is a masked array; give its mask as mask= and its data as the field"
            for name, array in zip([*self._used_sources(), "mask"], [*leaves, mask], strict=True)
            if isinstance(array, np.ma.MaskedArray)
        ]
        for leaf, field in zip(leaves, self.layout.fields, strict=False):
            problems += self._problems(leaf, field, lead, axes)
        for leaf, source in zip(leaves[len(self.layout.fields) :], self._flag_sources(), strict=True):
            if tuple(leaf.shape) != lead:
                problems.append(
                    f"the flag {source!r} has shape {tuple(leaf.shape)}; expected {_lead_text(axes)} = {lead}"
                )
            elif np.dtype(leaf.dtype).kind not in "bfiu" and not jax.dtypes.issubdtype(leaf.dtype, np.floating):
                problems.append(f"the flag {source!r} has dtype {leaf.dtype}; expected bool or a number")
        if mask is not None and tuple(mask.shape) != lead:
            problems.append(f"mask has shape {tuple(mask.shape)}; expected {_lead_text(axes)} = {lead}")
        if mask is not None and np.dtype(mask.dtype).kind not in "biu":
            problems.append(f"mask has dtype {mask.dtype}; expected bool")
        if not self._inside_jit:
            on_device = self._on_device(leaves, mask)
            self._devices = self._devices or devices_of(on_device)
            problems += placement_problems(on_device, self._devices)
        raise_all(problems, "the chunk was not recorded")

    def _on_device(self, leaves: list[Any], mask: Any) -> dict[str, Any]:
        """Return by name the arrays of a chunk that are to be written on the device."""
        layout = self.layout
        pairs = zip(self._used_sources(), leaves, [field.home for field in layout.fields], strict=False)
        arrays = {name: leaf for name, leaf, home in pairs if home == "device"}
        if layout.flags_home == "device":
            arrays |= dict(zip(self._flag_sources(), leaves[len(layout.fields) :], strict=True)) | {"mask": mask}
        return arrays

    def _problems(self, leaf: Any, field: Field, lead: tuple[int, ...], axes: str) -> list[str]:
        """Return what is wrong with one field's array."""
        label = f"field {field.source!r}"
        shape, dtype = tuple(leaf.shape), leaf.dtype
        if shape[: len(lead)] != lead:
            return [
                f"{label} has shape {shape}; expected leading dims {_lead_text(axes)} = {lead}. "
                f"Stack it over time, or leave it out: fields=['*', '-{field.source}']"
            ]
        if field.is_key and not _is_key(leaf):
            return [f"{label} has dtype {dtype}; the first chunk held PRNG keys"]
        if field.is_key:
            shape, dtype = tuple(_key_data(leaf).shape), field.dtype
        out = []
        if shape[len(lead) :] != field.shape:
            out.append(f"{label} has cells of shape {shape[len(lead) :]}; the first chunk's had {field.shape}")
        if not _fits(np.dtype(dtype) if not jax.dtypes.issubdtype(dtype, jax.dtypes.extended) else dtype, field.dtype):
            out.append(f"{label} has dtype {dtype}; the first chunk's was {field.dtype}")
        return out


def check_fits_jax(source: str, leaf: np.ndarray) -> None:
    """Raise TypeError where JAX cannot hold a NumPy array as it is: 64-bit numbers need x64, and text has no place."""
    is_number = leaf.dtype.kind in "biufc" or jax.dtypes.issubdtype(leaf.dtype, np.number)
    held = jax.dtypes.canonicalize_dtype(leaf.dtype.newbyteorder("=")) if is_number else None
    if held != leaf.dtype.newbyteorder("="):
        what = "cannot be held by JAX" if held is None else f"becomes {held} unless jax_enable_x64 is set"
        raise TypeError(
            f"field {source!r} has dtype {leaf.dtype}, which {what}; convert it, or leave it out: "
            f"fields=['*', '-{source}']"
        )


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _key_data(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    """Return shape and dtype of the data of PRNG keys; they differ between kinds of keys."""
    return jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype))


def _kind(array: Any) -> tuple[Any, ...]:
    """Return all by which JAX tells apart arguments that it compiles for; of a NumPy array shape and dtype."""
    if isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
        return array.aval, array.sharding, array.committed
    return type(array), array.shape, array.dtype


_AXIS_NAMES = {"N": "environments"}


def _fits(got: Any, stored: np.dtype) -> bool:
    if got == stored:
        return True
    if not isinstance(got, np.dtype):
        return False
    is_shorter = got.kind == stored.kind and got.kind in "US" and got.itemsize <= stored.itemsize
    return is_shorter or got.newbyteorder("=") == stored


def _axes_hint(surplus: int) -> str:
    """Return what may be meant by leading dims that are too few or too many."""
    if surplus < 0:
        return "A single environment needs an axis of its own, x[:, None]; a single step goes to Recorder.record_step()"
    return "A chunk of several steps goes to record(); further leading axes are named by Convention(axes=...)"


def _lead_text(axes: str) -> str:
    return f"({', '.join(axes)})"
