"""A chunk's arrays by name: its leaves, those given by keyword, and what the user's functions make of it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from trajlab.capture.agents import find_flags
from trajlab.capture.arrange import arrange
from trajlab.capture.axes import AGENTS, axes_of_call
from trajlab.capture.convention import ASSUMED, STANDARD_NAMES, Convention
from trajlab.capture.select import Fields, computed_name
from trajlab.capture.tree import call_on_chunk, merge_extra, named_leaves


class Sources(NamedTuple):
    """A chunk's arrays by name, computed ones included, in plain form.

    Attributes
    ----------
    structure
        All that the names follow from; hashable.
    names : tuple of str
    leaves : list of arrays
    slots, fields : mapping of str to list of str
        The names of what fills slots, and fields, that no path finds.
    agent_of : mapping of str to str
        Which arrays belong to agents, as `trajlab.capture.arrange.Arranged` has it.
    agent_flags : tuple of str
        The flags of each agent.
    """

    structure: Any
    names: tuple[str, ...]
    leaves: list[Any]
    slots: Mapping[str, list[str]]
    fields: Mapping[str, list[str]]
    agent_of: Mapping[str, str] = MappingProxyType({})
    agent_flags: tuple[str, ...] = ()


def find_sources(
    chunk: Any,
    extra: dict[str, Any],
    convention: Convention,
    fields: Fields,
    *,
    num_envs: int | None = None,
    is_step: bool = False,
    is_partial: bool = False,
) -> Sources:
    """Return all arrays of a chunk by name: its leaves, the extras' and what the user's functions compute.

    `num_envs` is needed only where the environments were flattened into one axis together with updates. `is_step` and
    `is_partial` tell of arrays of one step, and of only some environments.
    """
    sources = _by_name(chunk, extra, convention, fields)
    if not convention.agents and "(" not in convention.axes:
        return sources
    axes = ASSUMED["axes"] if convention.axes == "auto" else convention.axes
    groups = axes_of_call(axes, is_step=is_step, is_partial=is_partial)
    return _in_plain_form(sources, convention, groups, None if is_partial else num_envs)


def _in_plain_form(sources: Sources, convention: Convention, groups: tuple[str, ...], num_envs: int | None) -> Sources:
    """Return the arrays with flattened axes apart and those of agents joined."""
    agents = tuple(convention.agents or ())
    arranged = arrange(sources.names, sources.leaves, groups, agents, num_envs)
    slots, fields = (_renamed(found, arranged.became) for found in (sources.slots, sources.fields))
    if not agents:
        return sources._replace(leaves=arranged.leaves)
    axis = len("".join(groups).replace(AGENTS, ""))
    flags = find_flags(arranged, convention, slots, axis)
    return Sources(
        structure=(sources.structure, flags.names),
        names=flags.names,
        leaves=flags.leaves,
        slots=slots | {slot: [name] for slot, name in flags.slots.items()},
        fields=fields,
        agent_of=arranged.agent_of,
        agent_flags=flags.each,
    )


def _renamed(found: Mapping[str, list[str]], became: Mapping[str, str]) -> dict[str, list[str]]:
    return {key: list(dict.fromkeys(became[name] for name in names)) for key, names in found.items()}


def _by_name(chunk: Any, extra: dict[str, Any], convention: Convention, fields: Fields) -> Sources:
    """Return the arrays as they are."""
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
    return Sources((structure, names), names, leaves, found[0], found[1])


def _unused(name: str, names: tuple[str, ...]) -> str:
    while name in names:
        name += "_"
    return name
