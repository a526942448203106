"""A convention applied to a chunk: what fills each role, and in words how that is known."""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence

from trajlab.capture.axes import plain_axes
from trajlab.capture.convention import ASSUMED, FLAG_SLOTS, STANDARD_NAMES, Convention
from trajlab.capture.tree import under
from trajlab.errors import FriendlyKeyError, did_you_mean, unknown_name


@dataclasses.dataclass(frozen=True)
class Roles:
    """A convention applied to the fields that a chunk holds.

    `slots` gives, for each slot, the source names that fill it (leaves under its path); a function's result
    stands under the slot's standard name. `found` says in words where each came from. `axes` are the leading axes of
    the arrays in plain form. `agents` have an axis behind these in some fields; `agent_flags` are the sources that say
    which of them are done.
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


def apply_convention(
    convention: Convention,
    names: Sequence[str],
    computed: Mapping[str, list[str]],
    agent_flags: Sequence[str] = (),
    whole: Mapping[str, str] | None = None,
) -> Roles:
    """Find what fills each slot among the fields of a chunk.

    Parameters
    ----------
    convention : Convention
    names : sequence of str
        Dotted names in the chunk, computed ones included.
    computed : mapping of slot to list of str
        The names under which the results of slots given as functions stand.
    agent_flags : sequence of str
        The names of the flags of each agent.
    whole : mapping of slot to str, optional
        The names of the flags of whole episodes, where each agent has its own.

    Raises
    ------
    KeyError
        When a path names nothing, with a suggestion.
    ValueError
        When no flag marks ends.
    """
    slots: dict[str, tuple[str, ...]] = {}
    paths: dict[str, str] = {}
    found: dict[str, str] = {}
    for slot in STANDARD_NAMES:
        slots[slot], paths[slot], text = _fill(convention, slot, names, computed, whole or {})
        if text:
            found[slot] = text
    _check_flags(slots, names)
    missing = {slot for slot in FLAG_SLOTS if not slots[slot]}
    if len(missing) == len(FLAG_SLOTS) - 1 and "done" in missing:
        found |= dict.fromkeys(sorted(missing - {"done"}), "none (not found)")
    for slot in ("next_observation", "final_observation"):
        if slots[slot] and not _is_like_observation(slots, paths, slot):
            if getattr(convention, slot) != "auto":
                raise ValueError(
                    f"Convention({slot}=...) gives {', '.join(slots[slot])}, which has not the leaves of the "
                    f"observation: {', '.join(slots['observation']) or 'there is none'}; expected one for each of them"
                )
            slots[slot] = ()
            found[slot] = f"{paths.pop(slot)} (found, but unlike the observation: an ordinary field)"
    settings = {}
    for option, assumed in ASSUMED.items():
        value = getattr(convention, option)
        settings[option] = assumed if value == "auto" else value
        shown = dict(value) if isinstance(value, Mapping) else settings[option]
        found[option] = f"{shown} ({'assumed' if value == 'auto' else convention.origin(option)})"
    if isinstance(settings["alignment"], Mapping):
        settings["alignment"] = tuple(settings["alignment"].items())
    agents = tuple(convention.agents or ())
    settings["axes"] = plain_axes(settings["axes"], has_agents=bool(agents))
    place = settings["flags"] if convention.agent_flags == "auto" else convention.agent_flags
    if agents:
        found["agents"] = ", ".join(agents)
        found["agent_done"] = f"{', '.join(agent_flags)} ({place})" if agent_flags else "none: all are alive"
    texts = tuple(f"{name}={text}" for name, text in found.items())
    return Roles(
        slots, paths, **settings, found=texts, agents=agents, agent_flags=(*agent_flags,), agent_flags_place=place
    )


def _fill(
    convention: Convention,
    slot: str,
    names: Sequence[str],
    computed: Mapping[str, list[str]],
    whole: Mapping[str, str],
) -> tuple[tuple[str, ...], str, str]:
    """Return what fills a slot, the path above it, and in words how that is known."""
    is_auto = getattr(convention, slot) == "auto"
    how = "found" if is_auto else convention.origin(slot)
    if slot in whole:
        return (whole[slot],), whole[slot], f"{whole[slot]} ({how})"
    if slot in computed:
        leaves = tuple(computed[slot])
        return leaves, leaves[0].partition(".")[0] if leaves else "", f"function ({how})"
    paths = [source for source in convention.sources(slot) if not callable(source)]
    for path in paths:
        if path is None:
            return (), "", "" if is_auto else f"none ({how})"
        if leaves := tuple(under(path, names)):
            return leaves, path, f"{path} ({how})"
    if not paths:  # functions that returned None
        return (), "", f"none ({how})"
    raise _no_source(convention, slot, [path for path in paths if path], names)


def _no_source(convention: Convention, slot: str, paths: Sequence[str], names: Sequence[str]) -> KeyError:
    """Return the KeyError for a slot whose paths all name nothing."""
    if convention.origin(slot) == "given":
        return unknown_name(f"field for Convention({slot}=...)", paths[0], names)
    return FriendlyKeyError(f"{unknown_name('field', paths[0], names)} {convention.mend(slot)}")


def _is_like_observation(slots: Mapping[str, tuple[str, ...]], paths: Mapping[str, str], slot: str) -> bool:
    """Say whether a slot has a leaf for every leaf of the observation, by their paths beneath the two."""
    tails = {leaf[len(paths["observation"]) :] for leaf in slots["observation"]}
    return bool(tails) and tails <= {leaf[len(paths[slot]) :] for leaf in slots[slot]}


def _check_flags(slots: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> None:
    for slot in FLAG_SLOTS:
        if len(slots[slot]) > 1:
            raise ValueError(f"the flag {slot!r} has several arrays: {', '.join(slots[slot])}; name one of them")
    if not any(slots[slot] for slot in FLAG_SLOTS):
        looked = ", ".join(map(repr, FLAG_SLOTS))
        others = [name for name in names if name not in FLAG_SLOTS]
        likely = next((hint for slot in FLAG_SLOTS if (hint := did_you_mean(slot, others))), "")
        raise ValueError(
            f"no flag marks the ends of episodes: looked for {looked}; the chunk has "
            f"{', '.join(map(repr, names))}.{likely} Name it: convention=Convention(done='path.to.flag')"
        )
