"""The plan that the first chunk makes."""

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from trajlab.block.layout import Field, Home, Layout, step_axes
from trajlab.capture.convention import FLAG_SLOTS, Convention
from trajlab.capture.envs import env_columns
from trajlab.capture.roles import apply_convention
from trajlab.capture.select import Fields, select_fields
from trajlab.capture.shapes import axes_hint, check_fits_jax, fits, is_key, key_data, lead_text
from trajlab.capture.sources import Sources
from trajlab.errors import raise_all
from trajlab.names import AGENT, ALIVE
from trajlab.padding import shown_dtype

HIDDEN = "final:"
"""Prefix of the stored names of true last observations, which are no fields of their own."""


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
    device_only : bool
        Whether all fields live on the device, NumPy input too, since the log is carried where JAX traces.
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
        device_only: bool = False,
    ) -> None:
        """Make the plan from the first chunk's sources; raise what `Recorder.record` raises.

        With `device_only` all fields live on the device, and later chunks may be traced.
        """
        self._fields, self.device_only = fields, device_only
        self.roles = roles = apply_convention(convention, sources)
        self.flag_slots = tuple(slot for slot in FLAG_SLOTS if roles.slots[slot])
        self.chosen = self.choose(sources, warn=True)
        roles.check_globs([*sources.names, *self.chosen])
        by_name = dict(zip(sources.names, sources.leaves, strict=True))
        letters = step_axes(roles.axes)
        lead, what = (letters, "step") if is_step else (roles.axes, "chunk")
        if is_partial:
            if num_envs is None or letters != "N":
                raise ValueError(
                    "the first call records only some environments, so their number is not known yet; "
                    "give it: Recorder(num_envs=...)"
                )
            lead = "N"
            sizes: tuple[tuple[str, int], ...] = (("N", num_envs),)
        else:
            sizes = self._sizes_of(by_name, lead, letters, num_envs, what)
        stored = tuple(
            self._field(name, source, by_name[source], len(lead), sources.agent_of.get(source, ""))
            for name, source in self.chosen.items()
        )
        flag_leaves = [by_name[source] for source in self.flag_sources()]
        home: Home = "device" if any(self._home(leaf) == "device" for leaf in flag_leaves) else "host"
        total = math.prod(size for _, size in sizes)
        columns = None if envs is None else tuple(sorted(env_columns(envs, total, "envs").tolist()))
        if columns is not None and not columns:
            raise ValueError(f"envs={envs!r}: envs selects none of the {total} environments; leave it out for all")
        self._check_counterparts(stored, what)
        self.layout = Layout(stored, self.flag_slots, home, roles.axes, sizes, columns)
        self.same_dims = {
            self._name_of(twin): self._name_of(leaf)
            for leaf in roles.slots["observation"]
            if (twin := roles.counterpart("next_observation", leaf)) and self._name_of(twin) and self._name_of(leaf)
        }

    def for_width(self, width: int) -> "Plan":
        """Return the plan for arrays of another width: `shard_map` gives a function its device's share of them.

        Raises ValueError where the environments cannot be told apart by their number alone.
        """
        layout = self.layout
        if width == layout.width:
            return self
        if layout.columns is not None or len(layout.sizes) != 1:
            raise ValueError(
                f"the buffer is {width} environments wide, and was made for {layout.width}; a buffer that is split "
                "over devices records all environments of one axis: leave out envs= and further letters of axes="
            )
        narrow = copy.copy(self)
        narrow.layout = dataclasses.replace(layout, sizes=(("N", width),))
        return narrow

    def _check_counterparts(self, stored: tuple[Field, ...], what: str) -> None:
        """Raise ValueError when a next or final observation is not of the observation's shape and dtype."""
        by_source = {field.source: field for field in stored}
        problems = []
        for leaf in self.roles.slots["observation"]:
            for slot in ("next_observation", "final_observation"):
                field = by_source.get(self.roles.counterpart(slot, leaf) or "")
                own = by_source.get(leaf)
                if own and field and (field.shape != own.shape or not fits(field.dtype, own.dtype)):
                    problems.append(
                        f"{field.source!r} has cells of shape {field.shape} and dtype {field.dtype}; expected those "
                        f"of {leaf!r}, {own.shape} and {own.dtype}, or Convention({slot}=None)"
                    )
        raise_all(problems, f"the {what} was not recorded")

    def _name_of(self, source: str) -> str:
        return next((name for name, chosen in self.chosen.items() if chosen == source), "")

    def flag_sources(self) -> list[str]:
        """Return the sources of the flags."""
        return [self.roles.slots[slot][0] for slot in self.flag_slots]

    def choose(self, sources: Sources, *, warn: bool = False) -> dict[str, str]:
        """Return the recorded fields and the hidden ones with their sources."""
        roles = self.roles
        counterparts = {roles.counterpart("final_observation", leaf) for leaf in roles.slots["observation"]}
        finals = counterparts - set(roles.slots["next_observation"])
        own = [source for found in sources.fields.values() for source in found]
        names = [name for name in sources.names if name not in finals and name not in own]
        flags = [roles.slots[slot][0] for slot in self.flag_slots]
        always = [*flags, *roles.agent_flags]
        taken = (AGENT, ALIVE) if roles.agents else ()
        chosen = select_fields(self._fields, names, sources.fields, always, taken, warn=warn)
        recorded = set(chosen.values())
        for leaf in roles.slots["observation"]:
            final = roles.counterpart("final_observation", leaf)
            if final and leaf in recorded:
                chosen[HIDDEN + leaf] = final
        return chosen

    def _sizes_of(
        self, by_name: Mapping[str, Any], lead: str, letters: str, num_envs: int | None, what: str
    ) -> tuple[tuple[str, int], ...]:
        """Return the sizes of the environments' axes, by the first flag's shape."""
        flag = self.flag_sources()[0]
        shape = tuple(by_name[flag].shape)
        if len(shape) != len(lead):
            raise ValueError(
                f"the flag {flag!r} has shape {shape}; expected {len(lead)} dims, {lead_text(lead)}. "
                f"{axes_hint(len(shape) - len(lead), lead)}"
            )
        sizes = tuple((letter, shape[lead.index(letter)]) for letter in letters)
        total = math.prod(size for _, size in sizes)
        if num_envs is not None and total != num_envs:
            raise ValueError(f"the {what} has {total} environments; expected num_envs={num_envs}")
        return sizes

    def _home(self, leaf: Any) -> Home:
        return "device" if self.device_only or isinstance(leaf, jax.Array) else "host"

    def _field(self, name: str, source: str, leaf: Any, lead: int, agent: str) -> Field:
        roles, hidden = self.roles, name.startswith(HIDDEN)
        holds_keys = is_key(leaf)
        cell = key_data(leaf) if holds_keys else leaf
        shape, dtype = tuple(cell.shape[lead:]), cell.dtype
        try:
            shown_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"field {source!r}: {error}. Leave it out: fields=['*', '-{source}']") from None
        if self.device_only and isinstance(leaf, np.ndarray):
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
            is_key=holds_keys,
            agent=agent,
        )

    def used_sources(self) -> list[str]:
        """Return the sources of the stored fields and then of the flags."""
        return [*self.chosen.values(), *self.flag_sources()]

    def updates(self, leaves: list[Any]) -> int:
        """Return how many updates a chunk holds: the size of the axis U, else 1."""
        axes = self.roles.axes
        return leaves[-1].shape[axes.index("U")] if "U" in axes else 1
