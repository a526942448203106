"""The check that a chunk fits the plan, before anything of it is stored."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import jax
import numpy as np

from trajlab.block.layout import Field, step_axes
from trajlab.capture.devices import check_not_deleted, devices_of, placement_problems
from trajlab.capture.plan import Plan
from trajlab.capture.shapes import axes_hint, fits, is_key, key_data, lead_text
from trajlab.capture.sources import Sources
from trajlab.errors import raise_all

_AXIS_NAMES = {"N": "environments"}


class Fit:
    """Which arrays of a chunk a plan stores, and whether they are as the plan says.

    What has been found to fit is remembered, by all that JAX compiles for, so that only the first chunk of a kind
    is looked at closely.
    """

    def __init__(self, plan: Plan) -> None:
        """Check chunks against `plan`."""
        self.plan = plan
        self._sources = plan.used_sources()
        self._positions: dict[Any, list[int]] = {}
        self._fitting: set[Any] = set()
        self._devices: tuple[Any, ...] = ()

    def leaves_of(self, sources: Sources, what: Literal["chunk", "step"] = "chunk") -> list[Any]:
        """Return the arrays a chunk gives for the stored fields and then the flags, in order; `what` it is, for errors.

        Raises ValueError when fields are missing or new.
        """
        positions = self._positions.get(sources.structure)
        if positions is None:
            self._check_field_set(sources, what)
            positions = self._positions[sources.structure] = [sources.names.index(name) for name in self._sources]
        return [sources.leaves[i] for i in positions]

    def leaves_by_name(self, arrays: Mapping[str, Any]) -> list[Any]:
        """Return what `leaves_of` does, of arrays by their sources, which must all be there."""
        return [arrays[name] for name in self._sources]

    def _check_field_set(self, sources: Sources, what: str) -> None:
        missing = [name for name in self._sources if name not in sources.names]
        if missing:
            text = ", ".join(map(repr, dict.fromkeys(missing)))
            raise ValueError(f"missing from this {what}: {text}; every {what} must hold the fields of the first one")
        chosen = self.plan.choose(sources)
        new = {chosen[name] for name in chosen.keys() - self.plan.chosen.keys()}
        if new:
            text = ", ".join(map(repr, sorted(new)))
            raise ValueError(
                f"new in this {what}: {text}; every {what} must hold the fields of the first one. "
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
            None if mask is None else kind_of(mask),
            *[kind_of(leaf) for leaf in leaves],
        )
        if signature not in self._fitting:
            self._check_all(leaves, mask, is_step, part)
            self._fitting.add(signature)
        if not self.plan.device_only:
            self.check_there(leaves)
        return self._rows(leaves, is_step), signature

    def check_there(self, leaves: list[Any]) -> None:
        """Raise ValueError where an array has been deleted: all that `check` does for arrays just like checked ones."""
        check_not_deleted(dict(zip(self._sources, leaves, strict=True)))

    def _rows(self, leaves: list[Any], is_step: bool) -> int:
        if is_step:
            return 1
        shape, axes = leaves[-1].shape, self.plan.roles.axes
        return math.prod(shape[axes.index(letter)] for letter in "UT" if letter in axes)

    def _check_all(self, leaves: list[Any], mask: Any, is_step: bool, part: int | None) -> None:
        """Check arrays unlike all that were met before; raise with every problem."""
        if not self.plan.device_only and any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise TypeError(
                "record() was called inside a function that JAX traces (jit, scan, vmap); return the chunk from it "
                "and record that, or carry a buffer through it: init_buffer() and append()"
            )
        what = "step" if is_step else "chunk"
        axes = step_axes(self.plan.roles.axes) if is_step else self.plan.roles.axes
        axes = axes if part is None else "N"
        self._check_lead(leaves[-1], axes, what, part)
        lead, num_fields = tuple(leaves[-1].shape), len(self.plan.layout.fields)
        problems = [
            f"{name!r} is a masked array; give its mask as mask= and its data as the field"
            for name, array in zip([*self._sources, "mask"], [*leaves, mask], strict=True)
            if isinstance(array, np.ma.MaskedArray)
        ]
        for leaf, field in zip(leaves, self.plan.layout.fields, strict=False):
            problems += self._problems(leaf, field, lead, axes)
        problems += self._flag_problems(leaves[num_fields:], lead, axes)
        if mask is not None:
            problems += _mask_problems(mask, lead, axes)
        if not self.plan.device_only:
            on_device = self._on_device(leaves, mask)
            self._devices = self._devices or devices_of(on_device)
            problems += placement_problems(on_device, self._devices)
        raise_all(problems, f"the {what} was not recorded")

    def _check_lead(self, flag: Any, axes: str, what: str, part: int | None) -> None:
        """Raise ValueError where the shape of a flag is not that of the leading axes of a chunk or a step."""
        source = self.plan.flag_sources()[-1]
        if flag.ndim != len(axes):
            raise ValueError(
                f"the flag {source!r} has shape {tuple(flag.shape)}; expected {lead_text(axes)}. "
                f"{axes_hint(flag.ndim - len(axes))}"
            )
        if part is not None:
            if len(flag) != part:
                raise ValueError(
                    f"the flag {source!r} has {len(flag)} entries for the {part} environments of envs=; "
                    "give arrays of just these, or a bool mask as envs="
                )
            return
        sizes = dict(self.plan.layout.sizes)
        for letter, got in zip(axes, flag.shape, strict=True):
            if letter in sizes and got != sizes[letter]:
                raise ValueError(
                    f"this {what} has {got} {_AXIS_NAMES.get(letter, letter)}, the first one had {sizes[letter]}; "
                    "their number is fixed. Record the others apart"
                )
        if 0 in flag.shape:
            raise ValueError(f"the {what} is empty: its leading dims {lead_text(axes)} are {tuple(flag.shape)}")

    def _on_device(self, leaves: list[Any], mask: Any) -> dict[str, Any]:
        """Return by name the arrays of a chunk that are to be written on the device."""
        layout = self.plan.layout
        pairs = zip(self._sources, leaves, [field.home for field in layout.fields], strict=False)
        arrays = {name: leaf for name, leaf, home in pairs if home == "device"}
        if layout.flags_home == "device":
            arrays |= dict(zip(self.plan.flag_sources(), leaves[len(layout.fields) :], strict=True)) | {"mask": mask}
        return arrays

    def _flag_problems(self, flags: list[Any], lead: tuple[int, ...], axes: str) -> list[str]:
        """Return what is wrong with the arrays of flags."""
        problems = []
        for leaf, source in zip(flags, self.plan.flag_sources(), strict=True):
            if tuple(leaf.shape) != lead:
                problems.append(
                    f"the flag {source!r} has shape {tuple(leaf.shape)}; expected {lead_text(axes)} = {lead}"
                )
            elif np.dtype(leaf.dtype).kind not in "bfiu" and not jax.dtypes.issubdtype(leaf.dtype, np.floating):
                problems.append(f"the flag {source!r} has dtype {leaf.dtype}; expected bool or a number")
        return problems

    def _problems(self, leaf: Any, field: Field, lead: tuple[int, ...], axes: str) -> list[str]:
        """Return what is wrong with one field's array."""
        label = f"field {field.source!r}"
        shape, dtype = tuple(leaf.shape), leaf.dtype
        if shape[: len(lead)] != lead:
            return [
                f"{label} has shape {shape}; expected leading dims {lead_text(axes)} = {lead}. "
                f"Stack it over time, or leave it out: fields=['*', '-{field.source}']"
            ]
        if field.is_key and not is_key(leaf):
            return [f"{label} has dtype {dtype}; the first one held PRNG keys"]
        if field.is_key:
            shape, dtype = tuple(key_data(leaf).shape), field.dtype
        out = []
        if shape[len(lead) :] != field.shape:
            out.append(f"{label} has cells of shape {shape[len(lead) :]}; the first one's had {field.shape}")
        if not fits(np.dtype(dtype) if not jax.dtypes.issubdtype(dtype, jax.dtypes.extended) else dtype, field.dtype):
            out.append(f"{label} has dtype {dtype}; the first one's was {field.dtype}")
        return out


def _mask_problems(mask: Any, lead: tuple[int, ...], axes: str) -> list[str]:
    """Return what is wrong with a mask."""
    problems = []
    if tuple(mask.shape) != lead:
        problems.append(f"mask has shape {tuple(mask.shape)}; expected {lead_text(axes)} = {lead}")
    if np.dtype(mask.dtype).kind not in "biu":
        problems.append(f"mask has dtype {mask.dtype}; expected bool")
    return problems


def kind_of(array: Any) -> tuple[Any, ...]:
    """Return all by which JAX tells apart arguments that it compiles for; of a NumPy array shape and dtype."""
    if isinstance(array, (np.ndarray, jax.core.Tracer)) or not isinstance(array, jax.Array):  # which is slow to say
        return type(array), array.shape, array.dtype
    return array.aval, array.sharding, array.committed
