"""Building the Dataset, schema 1, over a source; no field is fetched."""

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.block.layout import EVERY_AGENT, Field
from trajlab.dataset.alive import AgentRows, AliveArray, LastAliveArray, alive_variable
from trajlab.dataset.labels import Labels
from trajlab.dataset.lazy import lazy_variable
from trajlab.dataset.padding_attrs import about_padding
from trajlab.dataset.source import EpisodeFieldArray, FieldArray, FinalArray, IterationArray, MaskArray, Source
from trajlab.errors import warn_user
from trajlab.names import At
from trajlab.segment import REASON_CUT, Rules
from trajlab.version import package_version

REASONS = np.array([names.CUT, names.DONE, names.TRUNCATED, names.TERMINATED])
"""End reasons by the numbers of `trajlab.segment`."""


@dataclasses.dataclass(frozen=True)
class FinalOrigins:
    """Where the final value of one observation leaf can come from: names of stored fields, or None.

    Attributes
    ----------
    leaf : Field
        The observation leaf.
    final, following : str or None
        Fields that hold the true last, and the true next, observation.
    """

    leaf: Field
    final: str | None
    following: str | None


def build_dataset(
    source: Source,
    *,
    rules: Rules,
    finals: Sequence[FinalOrigins],
    agents: AgentRows | None = None,
    per_episode: Mapping[str, At] = MappingProxyType({}),
    envs: np.ndarray,
    env_coords: Mapping[str, np.ndarray],
    labels: Labels,
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Return the Dataset of a source's episodes.

    Parameters
    ----------
    source : Source
    rules : Rules
    finals : sequence of FinalOrigins
        One per leaf of the observation; empty where there is none.
    agents : AgentRows, optional
        What tells which agents take part, where the recording has several.
    per_episode : mapping of str to {"first", "last"}
        Fields of which one transition's value is shown for the whole episode.
    envs : array (width,) int64
        The environment's own number for each column.
    env_coords : mapping of str to array (width,)
        Further coordinates that each column has, such as its seed.
    labels : Labels
        Names, labels and units of the fields' own dims.
    attrs : mapping
        Attributes of the Dataset.
    """
    episodes = source.episodes
    known, final_variables = _final_variables(source, rules, finals, labels)
    coords: dict[str, Any] = {
        names.EPISODE: (names.EPISODE, episodes.number, {"long_name": "episode"}),
        names.TIME: (names.TIME, np.arange(source.longest), {"long_name": "time", "units": "steps"}),
        names.LENGTH: (names.EPISODE, episodes.length, {"long_name": "episode length", "units": "steps"}),
        names.MASK: lazy_variable((names.EPISODE, names.TIME), MaskArray(episodes.length, source.longest)),
        names.ENV: (names.EPISODE, envs[episodes.column], {"long_name": "environment"}),
        names.START_ROW: (names.EPISODE, source.first_row + episodes.start_row, {"long_name": "first row"}),
        names.START_ITERATION: (
            names.EPISODE,
            source.iteration_of(episodes.start_row),
            {"long_name": "iteration at start"},
        ),
        names.END_REASON: (names.EPISODE, REASONS[episodes.reason], {"long_name": "end reason"}),
        names.COMPLETE: (names.EPISODE, episodes.start_seen & (episodes.reason != REASON_CUT)),
        names.START_SEEN: (names.EPISODE, episodes.start_seen),
        names.FINAL_KNOWN: (names.EPISODE, known),
    }
    axis = {names.ROLE_ATTR: names.AXIS_ROLE}
    coords |= {name: (names.EPISODE, values[episodes.column], axis) for name, values in env_coords.items()}
    alive = None if agents is None else AliveArray(source, agents)
    if alive is not None:
        coords[names.ALIVE] = alive_variable(alive)
    coords |= labels.coordinates()
    variables: dict[str, Any] = {
        field.name: _field_variable(source, field, labels, per_episode.get(field.name), alive)
        for field in source.view.layout.fields
        if not field.hidden
    }
    variables |= final_variables
    iteration = IterationArray(source)
    variables[names.ITERATION] = lazy_variable(
        (names.EPISODE, names.TIME), iteration, {**about_padding(iteration.dtype), "long_name": "iteration"}
    )
    if not len(episodes.length):
        warn_user("no episode: the recording holds no transition")
    return xr.Dataset(variables, coords, {**_schema_attrs(), **attrs})


def _schema_attrs() -> dict[str, Any]:
    return {names.SCHEMA_ATTR: names.SCHEMA, names.VERSION_ATTR: package_version()}


def empty_dataset() -> xr.Dataset:
    """Return a Dataset of no episode and no field."""
    ints, bools, texts = np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, REASONS.dtype)
    kinds = {names.END_REASON: texts} | dict.fromkeys((names.COMPLETE, names.START_SEEN, names.FINAL_KNOWN), bools)
    coords: dict[str, Any] = {
        name: (names.EPISODE, kinds.get(name, ints)) for name in (names.EPISODE, *names.EPISODE_COORDS)
    }
    cells = (names.EPISODE, names.TIME)
    coords |= {names.TIME: (names.TIME, ints), names.MASK: (cells, np.zeros((0, 0), bool))}
    iteration = (cells, np.zeros((0, 0), np.int64), about_padding(np.dtype(np.int64)))
    return xr.Dataset({names.ITERATION: iteration}, coords, _schema_attrs())


def _field_variable(
    source: Source, field: Field, labels: Labels, at: At | None, alive: AliveArray | None
) -> xr.Variable:
    """Return the variable of a field; `at` says which transition's value stands for the whole episode, if any does."""
    attrs = {**about_padding(field.dtype), "long_name": field.name, **labels.attrs_of(field.name)}
    if field.is_key:
        attrs[names.RECORDED_DTYPE_ATTR] = "key"
    if field.role:
        attrs[names.ROLE_ATTR] = field.role
    if field.agent:
        attrs[names.AGENT_ATTR] = field.agent
    own = labels.dims[field.name]
    if at is not None:
        attrs[names.ROLE_ATTR] = names.EPISODE_FIELD_ROLE
        return lazy_variable((names.EPISODE, *own), _episode_array(source, field, labels, at, alive), attrs)
    return lazy_variable((names.EPISODE, names.TIME, *own), FieldArray(source, field.name), attrs)


def _episode_array(source: Source, field: Field, labels: Labels, at: At, alive: AliveArray | None) -> EpisodeFieldArray:
    """Return a field's values at one transition of each episode; the last of an agent is its own last one."""
    if alive is None or not field.agent or at == "first":
        return EpisodeFieldArray(source, field.name, at)
    is_one = field.agent != EVERY_AGENT
    agent = labels.coords[names.AGENT].tolist().index(field.agent) if is_one else None
    return LastAliveArray(source, field.name, alive, agent)


def _final_variables(
    source: Source, rules: Rules, finals: Sequence[FinalOrigins], labels: Labels
) -> tuple[np.ndarray, dict[str, xr.Variable]]:
    """Return which episodes' final observations are known, and the variables that hold them."""
    count = len(source.episodes.length)
    found = [_final_places(source, rules, final) for final in finals]
    if not found or not all(possible for *_, possible in found):
        return np.zeros(count, bool), {}
    known = np.ones(count, bool)
    for _, origin, _, _ in found:
        known &= origin >= 0
    taken = {field.name for field in source.view.layout.fields if not field.hidden}
    variables = {}
    for final, (stored, origin, offset, _) in zip(finals, found, strict=True):
        leaf = final.leaf
        array = FinalArray(source, stored, np.where(known, origin, -1), offset)
        dims = (names.EPISODE, *labels.dims[leaf.name])
        name = names.final_name(leaf.name)
        attrs = {**about_padding(leaf.dtype), "long_name": f"final {leaf.name}", **labels.attrs_of(leaf.name)}
        variables[name if name not in taken else f"{name}_"] = lazy_variable(dims, array, attrs)
    return known, variables


def _final_places(
    source: Source, rules: Rules, final: FinalOrigins
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, bool]:
    """Return where one leaf's final values stand: fields, which of them, at which offset; and if any can be known.

    The first of these that applies: the true last observation, on ended rows; the true next one; a moved
    leaf's own value on the last row, unless a reset in the same step has (or may have) replaced it; the
    reset row behind the end.
    """
    episodes = source.episodes
    last = episodes.length - 1
    origin, offset = np.full(len(last), -1), last.copy()
    stored = tuple(name for name in (final.leaf.name, final.final, final.following) if name is not None)
    ended = episodes.ended
    if not final.leaf.moved and rules.autoreset == "next_step":
        origin[episodes.has_reset_row] = 0
        offset[episodes.has_reset_row] += 1
    if final.leaf.moved:
        replaced = rules.autoreset == "same_step"
        origin[~(ended | ~episodes.last_flag_known) if replaced else slice(None)] = 0
    if final.following is not None:
        origin[:], offset[:] = stored.index(final.following), last
    if final.final is not None:
        origin[ended], offset[ended] = stored.index(final.final), last[ended]
    possible = final.leaf.moved or rules.autoreset == "next_step" or len(stored) > 1
    return stored, origin, offset, possible
