"""A chunk's arrays by name: its leaves, those given by keyword, and what the user's functions make of it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trajlab.capture.convention import STANDARD_NAMES, Convention
from trajlab.capture.select import Fields, computed_name
from trajlab.capture.tree import call_on_chunk, merge_extra, named_leaves


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
