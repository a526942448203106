"""Which fields are recorded, and what each is called in the Dataset."""

import fnmatch
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trajlab.capture.tree import under
from trajlab.errors import unknown_name, warn_user
from trajlab.names import free_name

Fields = Sequence[str] | Mapping[str, str | Callable[[Any], Any]] | None
"""None (all), names and globs with exclusions (``"-info.*"``), or new names to paths or functions."""


def parse_fields(fields: Any) -> Fields:
    """Return `fields` as None, a list or a mapping; raise TypeError when it has none of these forms."""
    if fields is None:
        return None
    if isinstance(fields, str):
        raise TypeError(f"fields={fields!r}; expected a list of names, [{fields!r}], a mapping or None")
    if isinstance(fields, Mapping):
        for name, source in fields.items():
            if not (isinstance(name, str) and (isinstance(source, str) or callable(source))):
                raise TypeError(f"fields[{name!r}]={source!r}; expected a dotted path or a function of the chunk")
        return dict(fields)
    entries = list(fields)
    if not all(isinstance(entry, str) for entry in entries):
        raise TypeError(f"fields={entries!r}; expected names and globs, a mapping or None")
    return entries


def select_fields(
    fields: Fields,
    names: Sequence[str],
    computed: Mapping[str, list[str]],
    always: Sequence[str],
    taken: Collection[str] = (),
    *,
    warn: bool,
) -> dict[str, str]:
    """Return the recorded fields, in order, as a mapping of their name in the Dataset to their source.

    Parameters
    ----------
    fields : list, mapping or None
        What the user asked for.
    names : sequence of str
        The sources there are.
    computed : mapping of str to list of str
        The sources that the functions of a mapping gave, by their key in `fields`.
    always : sequence of str
        Sources that are recorded in any case: the flags.
    taken : collection of str
        Names that are reserved in this Dataset, beside those that are in every one.
    warn : bool
        Whether to warn of fields with a reserved name.

    Raises
    ------
    KeyError
        When a name or glob matches no field.
    ValueError
        When two fields would have the same name.
    """
    if isinstance(fields, Mapping):
        pairs = [pair for name, path in fields.items() for pair in _renamed(name, path, names, computed)]
    elif fields is None:
        pairs = [(name, name) for name in names]
    else:
        pairs = [(name, name) for name in _globbed(list(fields), names)]
    sources = {source for _, source in pairs}
    pairs += [(source, source) for source in always if source not in sources]
    chosen: dict[str, str] = {}
    for name, source in pairs:
        free = f"{name}_" if name in taken else free_name(name)
        if free in chosen:
            raise ValueError(f"two fields would be called {free!r}: {chosen[free]!r} and {source!r}; rename one")
        if free != name and warn:
            warn_user(f"the field {name!r} has a reserved name and is recorded as {free!r}")
        chosen[free] = source
    return chosen


def computed_name(name: str) -> str:
    """Return the source name of what a function in a mapping of fields gives."""
    return f"fields[{name}]"


def _renamed(
    name: str, path: str | Callable[[Any], Any], names: Sequence[str], computed: Mapping[str, list[str]]
) -> list[tuple[str, str]]:
    if callable(path):
        return [(name + source[len(computed_name(name)) :], source) for source in computed[name]]
    found = under(path, list(names))
    if not found:
        raise unknown_name("field", path, names)
    return [(name + source[len(path) :], source) for source in found]


def _globbed(entries: list[str], names: Sequence[str]) -> list[str]:
    """Return the names that the entries select, in the chunk's order; a first exclusion starts from all."""
    chosen = set(names) if entries and entries[0].startswith("-") else set()
    for entry in entries:
        excluded = entry.startswith("-")
        pattern = entry.removeprefix("-")
        hits = set(under(pattern, list(names))) | set(fnmatch.filter(names, pattern))
        is_glob = any(letter in pattern for letter in "*?[")
        if not hits and not (excluded and is_glob):
            raise unknown_name("field", pattern, names)
        chosen = chosen - hits if excluded else chosen | hits
    return [name for name in names if name in chosen]
