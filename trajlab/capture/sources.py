"""A chunk's arrays by name: its leaves, those given by keyword, and what the user's functions make of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from trajlab.capture.convention import STANDARD_NAMES, Convention
from trajlab.capture.select import Fields, computed_name
from trajlab.capture.tree import call_on_chunk, merge_extra, named_leaves, under
from trajlab.errors import FriendlyKeyError


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
    made: list[tuple[dict[str, list[str]], str, str, Any]] = []
    slots: dict[str, list[str]] = {}
    own: dict[str, list[str]] = {}
    for slot, standard in STANDARD_NAMES.items():
        value = _compute(convention, slot, chunk, names)
        if value is not None:
            made.append((slots, slot, _unused(standard[0], names), value))
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
