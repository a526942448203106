"""A convention applied to a chunk: what fills each role, and in words how that is known."""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from trajlab.capture.agents import ALL
from trajlab.capture.axes import plain_axes
from trajlab.capture.convention import ASSUMED, FLAG_SLOTS, STANDARD_NAMES, Convention
from trajlab.capture.named import SIGNATURES
from trajlab.capture.sources import Sources
from trajlab.capture.tree import first_path, under
from trajlab.errors import FriendlyKeyError, did_you_mean, unknown_name


@dataclasses.dataclass(frozen=True)
class Roles:
    """A convention applied to the fields that a chunk holds.

    `slots` gives, for each slot, the source names that fill it (leaves under its path); a function's result
    stands under the slot's standard name. `paths` is what the leaves of a slot have in common at the beginning of their
    names. `alignment` is one for the observation, or pairs of a glob and its own. `axes` are the leading axes of the
    arrays in plain form. `found` says in words where each slot and option came from.

    `agents` have an axis behind the leading ones in some fields; `agent_flags` are the sources that say which of them
    are done, those of the same row or of the one before, as `agent_flags_place` says (see `Convention.flags`).
    """

    slots: Mapping[str, tuple[str, ...]]
    paths: Mapping[str, str]
    autoreset: str
    alignment: str | tuple[tuple[str, str], ...]
    flags: str
    axes: str
    found: tuple[str, ...]
    agents: tuple[str, ...] = ()
    agent_flags: tuple[str, ...] = ()
    agent_flags_place: str = "row"

    def is_found(self, slot: str) -> bool:
        """Say whether a slot is filled by a standard name: nobody has declared what its arrays are."""
        return f"{slot}={self.paths[slot]} (found)" in self.found

    def is_moved(self, source: str, name: str) -> bool:
        """Say whether a field (its `source` in the chunk, its `name` in the Dataset) is read one row earlier."""
        fixed = ("action", "reward", *FLAG_SLOTS, "next_observation", "final_observation")
        if source in self.agent_flags or any(source in self.slots[slot] for slot in fixed):
            return False
        if isinstance(self.alignment, str):
            return self.alignment == "result" and source in self.slots["observation"]
        moved = False
        for glob, value in self.alignment:
            if fnmatch.fnmatchcase(source, glob) or fnmatch.fnmatchcase(name, glob) or under(glob, [source, name]):
                moved = value == "result"
        return moved

    def check_globs(self, names: Sequence[str]) -> None:
        """Raise KeyError when a glob of the alignment matches no field."""
        for glob, _ in self.alignment if isinstance(self.alignment, tuple) else ():
            if not (fnmatch.filter(names, glob) or under(glob, names)):
                raise unknown_name("field for Convention(alignment=...)", glob, names)

    def moves_observation(self) -> bool:
        """Say whether the observation is read one row earlier, also where it is not recorded."""
        if isinstance(self.alignment, str):
            return self.alignment == "result"
        leaves = self.slots["observation"]
        return bool(leaves) and all(self.is_moved(leaf, leaf) for leaf in leaves)

    def counterpart(self, slot: str, observation: str) -> str | None:
        """Return the source in `slot` that belongs to one leaf of the observation, by its path beneath the slot."""
        tail = observation[len(self.paths["observation"]) :]
        wanted = self.paths.get(slot, "") + tail
        return wanted if wanted in self.slots[slot] else None

    def text(self) -> str:
        """Return the convention in one line, for the Dataset's attributes."""
        return "; ".join(self.found)


def apply_convention(convention: Convention, sources: Sources) -> Roles:
    """Find what fills each slot among the arrays of a chunk.

    Raises
    ------
    KeyError
        When a path names nothing, with a suggestion.
    ValueError
        When no flag marks ends, or the next or final observation given has not the leaves of the observation.
    """
    slots: dict[str, tuple[str, ...]] = {}
    paths: dict[str, str] = {}
    found: dict[str, str] = {}
    for slot in STANDARD_NAMES:
        slots[slot], paths[slot], text = _fill(convention, slot, sources)
        if text:
            found[slot] = text
    _check_flags(slots, sources.names)
    missing = {slot for slot in FLAG_SLOTS if not slots[slot]}
    if len(missing) == len(FLAG_SLOTS) - 1 and "done" in missing:
        found |= dict.fromkeys(sorted(missing - {"done"}), "none (not found)")
    for slot in ("next_observation", "final_observation"):
        if slots[slot] and not _is_like_observation(slots, paths, slot):
            _check_not_asked_for(convention, slot, slots)
            slots[slot] = ()
            found[slot] = f"{paths.pop(slot)} (found, but unlike the observation: an ordinary field)"
    settings, texts = _settings(convention)
    found |= texts
    place = settings["flags"] if convention.agent_flags == "auto" else convention.agent_flags
    agents = tuple(convention.agents or ())
    if agents:
        which = f"{', '.join(sources.agent_flags)} ({place})" if sources.agent_flags else "none: all are alive"
        found |= {"agents": ", ".join(agents), "agent_done": which}
    return Roles(
        slots,
        paths,
        **settings,
        found=tuple(f"{name}={text}" for name, text in found.items()),
        agents=agents,
        agent_flags=sources.agent_flags,
        agent_flags_place=place,
    )


def _fill(convention: Convention, slot: str, sources: Sources) -> tuple[tuple[str, ...], str, str]:
    """Return what fills a slot, the path above it, and in words how that is known."""
    is_auto = getattr(convention, slot) == "auto"
    how = "found" if is_auto else convention.origin(slot)
    if slot in sources.whole:
        return (sources.whole[slot],), sources.whole[slot], f"{sources.whole[slot]} ({how})"
    if slot in sources.slots:
        leaves = tuple(sources.slots[slot])
        return leaves, leaves[0].partition(".")[0] if leaves else "", f"function ({how})"
    paths = [source for source in convention.sources(slot) if not callable(source)]
    path = first_path(paths, sources.names)
    if path is not None:
        return tuple(under(path, sources.names)), path, f"{path} ({how})"
    if paths and None not in paths:
        raise _no_source(convention, slot, [path for path in paths if path is not None], sources.names)
    return (), "", "" if is_auto else f"none ({how})"


def _settings(convention: Convention) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options as `Roles` has them, what is left open filled in, and in words who decided on each."""
    settings: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for option, assumed in ASSUMED.items():
        value = getattr(convention, option)
        settings[option] = assumed if value == "auto" else value
        shown = dict(value) if isinstance(value, Mapping) else settings[option]
        texts[option] = f"{shown} ({'assumed' if value == 'auto' else convention.origin(option)})"
    if isinstance(settings["alignment"], Mapping):
        settings["alignment"] = tuple(settings["alignment"].items())
    settings["axes"] = plain_axes(settings["axes"], has_agents=bool(convention.agents))
    return settings, texts


def _no_source(convention: Convention, slot: str, paths: Sequence[str], names: Sequence[str]) -> KeyError:
    """Return the KeyError for a slot whose paths all name nothing."""
    if convention.origin(slot) == "given":
        return unknown_name(f"field for Convention({slot}=...)", paths[0], names)
    return FriendlyKeyError(f"{unknown_name('field', paths[0], names)} {convention.mend(slot)}")


def _is_like_observation(slots: Mapping[str, tuple[str, ...]], paths: Mapping[str, str], slot: str) -> bool:
    """Say whether a slot has a leaf for every leaf of the observation, by their paths beneath the two."""
    tails = {leaf[len(paths["observation"]) :] for leaf in slots["observation"]}
    return bool(tails) and tails <= {leaf[len(paths[slot]) :] for leaf in slots[slot]}


def _check_not_asked_for(convention: Convention, slot: str, slots: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ValueError where what is unlike the observation was given for a slot, not found by a standard name."""
    if getattr(convention, slot) != "auto":
        raise ValueError(
            f"Convention({slot}=...) gives {', '.join(slots[slot])}, which has not the leaves of the "
            f"observation: {', '.join(slots['observation']) or 'there is none'}; expected one for each of them"
        )


def _check_flags(slots: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> None:
    for slot in FLAG_SLOTS:
        if len(slots[slot]) > 1:
            found = ", ".join(slots[slot])
            tails = [name.rpartition(".")[2] for name in slots[slot]]
            agents = [tail for tail in tails if tail != ALL]
            mend = f"; if these are agents, name them: Convention(..., agents={agents})" if ALL in tails else ""
            raise ValueError(f"the flag {slot!r} has several arrays: {found}; name one of them{mend}")
    if not any(slots[slot] for slot in FLAG_SLOTS):
        looked = ", ".join(map(repr, FLAG_SLOTS))
        others = [name for name in names if name not in FLAG_SLOTS]
        known = (name for name, fields in SIGNATURES.items() if all(under(field, names) for field in fields))
        if package := next(known, None):
            likely = f" These look like the fields of {package}: convention={package!r}."
        else:
            likely = next((hint for slot in FLAG_SLOTS if (hint := did_you_mean(slot, others))), "")
        raise ValueError(
            f"no flag marks the ends of episodes: looked for {looked}; there are "
            f"{', '.join(map(repr, names))}.{likely} Name it: convention=Convention(done='path.to.flag')"
        )
