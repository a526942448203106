"""What a log's rows mean: all that is needed, besides the rows, to show them as a Dataset."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.block.layout import Field, Layout
from trajlab.capture.plan import HIDDEN
from trajlab.capture.roles import Roles
from trajlab.dataset.alive import AgentRows
from trajlab.dataset.build import FinalOrigins, build_dataset
from trajlab.dataset.labels import dim_names, make_labels
from trajlab.dataset.source import Source
from trajlab.errors import check_option, unknown_name
from trajlab.names import At
from trajlab.segment import Rules

EpisodeFields = Mapping[str, At]
"""Field name to the transition whose value stands for the whole episode."""


class Description:
    """The meaning of a layout's rows under a convention, with the user's names and labels.

    Attributes
    ----------
    envs : array (width,) int64
        The environment's own number for each column.
    rules : Rules
        What the flags mean.
    """

    def __init__(
        self,
        layout: Layout,
        roles: Roles,
        same_dims: Mapping[str, str],
        *,
        starts_fresh: bool,
        dims: Any,
        coords: Any,
        units: Any,
        episode_fields: Any,
        attrs: Any = None,
    ) -> None:
        """Describe a layout; raise where the user's names and labels do not fit its fields.

        `attrs` are further attributes of fields, by their names in the chunk.
        """
        self._convention = roles.text()
        letters = [letter for letter, _ in layout.sizes if letter != "N"]
        axis_names = {letter: _single(dims, letter) for letter in letters}
        own_dims = {name: value for name, value in (dims or {}).items() if name not in letters}
        axis_labels = {name: (coords or {})[name] for name in axis_names.values() if name in (coords or {})}
        own_coords = {name: value for name, value in (coords or {}).items() if name not in axis_labels}
        self._labels = make_labels(
            layout.fields, own_dims, own_coords, units, same_dims, axis_names, roles.agents, attrs
        )
        self.envs = np.arange(layout.num_envs) if layout.columns is None else np.array(layout.columns, np.int64)
        self._env_coords = _env_coords(layout, self.envs, axis_names, axis_labels)
        self._per_episode = _per_episode(layout, roles, episode_fields)
        self._finals = _finals(layout, roles, self._per_episode)
        self._agents = _agents(layout, roles)
        self.rules = rules_of(layout, roles, starts_fresh=starts_fresh)

    def attrs_of(self, name: str) -> dict[str, Any]:
        """Return what the user, or who made the chunks, says of a field: its units, and further attributes."""
        return self._labels.attrs_of(name)

    def dims_of(self, name: str) -> tuple[str, ...]:
        """Return the names of a field's own dims."""
        return tuple(self._labels.dims[name])

    def coords(self) -> dict[str, Any]:
        """Return the labels of the fields' own dims, as variables by their names."""
        return self._labels.coordinates()

    def dataset(self, source: Source, *, seen: int, kept: int, evicted: int, unaligned: int) -> xr.Dataset:
        """Return the Dataset of a source's episodes, which says how many rows were seen, kept and evicted."""
        attrs = {
            names.CONVENTION_ATTR: self._convention,
            names.ROWS_SEEN_ATTR: seen,
            names.ROWS_KEPT_ATTR: kept,
            names.ROWS_DROPPED_ATTR: seen - kept - evicted,
            names.ROWS_EVICTED_ATTR: evicted,
            names.CELLS_UNALIGNED_ATTR: unaligned,
        }
        return build_dataset(
            source,
            rules=self.rules,
            finals=self._finals,
            agents=self._agents,
            per_episode=self._per_episode,
            envs=self.envs,
            env_coords=self._env_coords,
            labels=self._labels,
            attrs=attrs,
        )


def rules_of(layout: Layout, roles: Roles, *, starts_fresh: bool) -> Rules:
    """Return what the flags of a layout's rows mean under a convention."""
    is_result = roles.moves_observation()
    is_any_moved = any(field.moved for field in layout.fields)
    return Rules(
        autoreset=roles.autoreset,
        previous_row=roles.flags == "previous_row",
        drops_first=is_result or is_any_moved,
        first_is_transition=not is_result and is_any_moved,
        starts_fresh=starts_fresh,
        flag_slots=layout.flag_slots,
    )


def _single(dims: Any, letter: str) -> str:
    """Return the name that `dims` gives to an axis letter, by default the letter itself."""
    given = dim_names(letter, (dims or {}).get(letter, letter))
    if len(given) != 1:
        raise ValueError(f"dims[{letter!r}]={list(given)}; expected one name, as the axis becomes one coordinate")
    return given[0]


def _env_coords(
    layout: Layout, envs: np.ndarray, axis_names: Mapping[str, str], axis_labels: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the coordinates (width,) of the axes that were merged into the environments."""
    places = np.unravel_index(envs, [size for _, size in layout.sizes])
    out = {}
    for (letter, size), place in zip(layout.sizes, places, strict=True):
        if letter == "N":
            continue
        name = axis_names[letter]
        values = np.asarray(axis_labels.get(name, np.arange(size)))
        if values.shape != (size,):
            raise ValueError(f"coords[{name!r}] has shape {values.shape}; expected ({size},), as the axis {letter}")
        out[name] = values[place]
    return out


def _finals(layout: Layout, roles: Roles, per_episode: EpisodeFields) -> list[FinalOrigins]:
    """Return where the final value of each leaf of the observation can come from; none unless all are recorded."""
    stored = {field.name for field in layout.fields}
    finals = []
    for field in layout.fields:
        if field.role == "observation" and field.name not in per_episode:
            final = HIDDEN + field.source
            finals.append(FinalOrigins(field, final if final in stored else None, _following(layout, roles, field)))
    return finals if len(finals) == len(roles.slots["observation"]) else []


def _agents(layout: Layout, roles: Roles) -> AgentRows | None:
    """Return what tells which agents take part in a transition; None where there are no agents."""
    if not roles.agents:
        return None
    flags = tuple(field.name for field in layout.fields if field.source in roles.agent_flags)
    return AgentRows(len(roles.agents), flags, is_late=roles.agent_flags_place == "previous_row")


def check_episode_fields(given: Any) -> None:
    """Raise unless what was given is a mapping to "first" or "last", whatever the fields are."""
    if not (given is None or isinstance(given, Mapping)):
        raise TypeError(f"episode_fields={given!r}; expected a mapping from a field to 'first' or 'last'")
    for name, at in (given or {}).items():
        check_option(f"episode_fields[{name!r}]", at, At)


def _per_episode(layout: Layout, roles: Roles, given: Any) -> EpisodeFields:
    """Return the fields that are shown with one value per episode; raise where what was given fits no field."""
    check_episode_fields(given)
    fields = {field.name: field for field in layout.fields if not field.hidden}
    kept = {field.source for name, field in fields.items() if name not in (given or {})}
    for name, at in (given or {}).items():
        if name not in fields:
            raise unknown_name("field for episode_fields=", name, fields)
        role = fields[name].role or ("agent_done" if fields[name].source in roles.agent_flags else "")
        if role and fields[name].source not in kept:
            raise ValueError(
                f"episode_fields[{name!r}]={at!r}: the field is the convention's {role}, of which every transition "
                "has its own; give it a second name: fields={'name': 'path', ...}"
            )
    return dict(given or {})


def _following(layout: Layout, roles: Roles, observation: Field) -> str | None:
    twin = roles.counterpart("next_observation", observation.source)
    return next((field.name for field in layout.fields if field.source == twin and not field.hidden), None)
