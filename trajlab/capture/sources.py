"""A chunk's arrays by name: its leaves, those given by keyword, and what the user's functions make of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from trajlab.capture.agents import find_flags, find_path
from trajlab.capture.arrange import Arranged, arrange, joined_names
from trajlab.capture.axes import AGENTS, axes_of_call, check_sizes, unfolded_shape
from trajlab.capture.convention import ASSUMED, FLAG_SLOTS, STANDARD_NAMES, Convention
from trajlab.capture.devices import check_not_deleted
from trajlab.capture.select import Fields, computed_name
from trajlab.capture.tree import call_on_chunk, merge_extra, named_leaves, under
from trajlab.errors import FriendlyKeyError


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
    whole : mapping of slot to str
        The flags of whole episodes, where each agent has its own.
    """

    structure: Any
    names: tuple[str, ...]
    leaves: list[Any]
    slots: Mapping[str, list[str]]
    fields: Mapping[str, list[str]]
    agent_of: Mapping[str, str] = MappingProxyType({})
    agent_flags: tuple[str, ...] = ()
    whole: Mapping[str, str] = MappingProxyType({})


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
    if are_leaves(convention, fields):
        return Sources(*merge_extra(chunk, extra), {}, {})
    sources = _by_name(chunk, extra, convention, fields)
    if not convention.agents and "(" not in convention.axes:
        return sources
    axes = ASSUMED["axes"] if convention.axes == "auto" else convention.axes
    groups = axes_of_call(axes, is_step=is_step, is_partial=is_partial)
    check_sizes(axes, groups, (AGENTS if convention.agents else "") + ("" if num_envs is None else "N"))
    return _in_plain_form(sources, convention, groups, None if is_partial else num_envs)


def are_leaves(convention: Convention, fields: Fields) -> bool:
    """Say whether all arrays are leaves of the chunk just as they come: none is computed, joined or reshaped."""
    return convention.takes_leaves and not (isinstance(fields, Mapping) and any(map(callable, fields.values())))


def plain_mask(mask: Any, convention: Convention, num_envs: int | None) -> Any:
    """Return a chunk's mask with flattened axes apart, where it has those of the arrays; it has none of agents."""
    if mask is None or "(" not in convention.axes:
        return mask
    groups = axes_of_call(convention.axes, is_step=False, is_partial=False)
    own = [letters for group in groups if (letters := group.replace(AGENTS, "") if convention.agents else group)]
    if np.ndim(mask) != len(own):
        return mask  # one axis for each letter, or wrong: the fit tells
    shape = unfolded_shape(mask.shape, tuple(own), {} if num_envs is None else {"N": num_envs})
    return mask if shape is None else mask.reshape(shape)


def _in_plain_form(sources: Sources, convention: Convention, groups: tuple[str, ...], num_envs: int | None) -> Sources:
    """Return the arrays with flattened axes apart and those of agents joined."""
    agents = tuple(convention.agents or ())
    check_not_deleted(dict(zip(sources.names, sources.leaves, strict=True)))
    arranged = arrange(sources.names, sources.leaves, groups, agents, num_envs)
    slots, fields = (_renamed(found, arranged.became) for found in (sources.slots, sources.fields))
    _check_unfolded(arranged, convention, slots)
    if not agents:
        return sources._replace(leaves=arranged.leaves)
    axis = len("".join(groups).replace(AGENTS, ""))
    flags = find_flags(arranged, convention, slots, axis)
    return Sources(
        structure=(sources.structure, flags.names),
        names=flags.names,
        leaves=flags.leaves,
        slots=slots,
        fields=fields,
        agent_of=arranged.agent_of,
        agent_flags=flags.each,
        whole=flags.slots,
    )


def _check_unfolded(arranged: Arranged, convention: Convention, computed: Mapping[str, list[str]]) -> None:
    """Raise ValueError where a flag cannot be read as the axes say; other arrays may be some that are not recorded."""
    for slot in FLAG_SLOTS:
        path = find_path(convention, slot, arranged.names, computed)
        if path in arranged.stuck:
            shape = tuple(arranged.leaves[arranged.names.index(path)].shape)
            sizes = f"{len(convention.agents)} agents" if convention.agents else "environments of num_envs="
            raise ValueError(
                f"the flag {path!r} has shape {shape}; expected the leading axes {convention.axes!r}, flattened ones a "
                f"multiple of the {sizes}"
            )


def _renamed(found: Mapping[str, list[str]], became: Mapping[str, str]) -> dict[str, list[str]]:
    return {key: list(dict.fromkeys(became[name] for name in names)) for key, names in found.items()}


def _by_name(chunk: Any, extra: dict[str, Any], convention: Convention, fields: Fields) -> Sources:
    """Return the arrays as they are."""
    structure, names, leaves = merge_extra(chunk, extra)
    made: list[tuple[dict[str, list[str]], str, str, Any]] = []
    slots: dict[str, list[str]] = {}
    own: dict[str, list[str]] = {}
    for slot, standard in STANDARD_NAMES.items():
        value = _compute(convention, slot, chunk, names)
        if value is not None:
            taken = (*names, *joined_names(names, tuple(convention.agents or ())))
            made.append((slots, slot, _unused(standard[0], taken), value))
    for name, value in fields.items() if isinstance(fields, Mapping) else ():
        if callable(value):
            made.append((own, name, computed_name(name), call_on_chunk(value, chunk, f"fields[{name!r}]")))
    if not made:
        return Sources(structure, names, leaves, slots, own)
    for found, key, stem, value in made:
        _, more, values = named_leaves({stem: value})
        found[key] = list(more)
        names, leaves = names + more, leaves + values
    return Sources((structure, names), names, leaves, slots, own)


def _compute(convention: Convention, slot: str, chunk: Any, names: tuple[str, ...]) -> Any:
    """Return what the function that fills a slot makes of the chunk; None where no function fills it."""
    for source in convention.sources(slot):
        if callable(source):
            try:
                value = call_on_chunk(source, chunk, f"Convention({slot}=...)")
            except FriendlyKeyError as error:
                if convention.origin(slot) == "given":
                    raise
                raise FriendlyKeyError(f"{error} {convention.mend(slot)}") from None
            if value is not None:
                return value
        elif source is None or under(source, names):
            return None
    return None


def _unused(name: str, names: tuple[str, ...]) -> str:
    while name in names:
        name += "_"
    return name
