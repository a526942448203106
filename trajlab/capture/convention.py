"""Conventions: which field plays which role, and what the rows after an end are."""

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from trajlab.capture.axes import check_axes, plain_axes
from trajlab.capture.named import NAMED
from trajlab.capture.tree import under
from trajlab.errors import FriendlyKeyError, check_option, did_you_mean, unknown_name

Source = str | Callable[[Any], Any] | None
"""A dotted path, a function of the chunk or None (absent)."""
Slot = Source | tuple[Source, ...]
"""A source or "auto"; or sources of which the first found counts."""

Autoreset = Literal["auto", "same_step", "next_step", "disabled"]
Place = Literal["transition", "result"]
Alignment = Literal["auto", "transition", "result"]
FlagsPlace = Literal["auto", "row", "previous_row"]

STANDARD_NAMES: dict[str, tuple[str, ...]] = {
    "observation": ("obs", "observation"),
    "action": ("action",),
    "reward": ("reward",),
    "terminated": ("terminated",),
    "truncated": ("truncated",),
    "done": ("done",),
    "next_observation": ("next_obs", "next_observation"),
    "final_observation": ("final_obs", "final_observation"),
}
"""What "auto" looks for; the first is also the name of a field that a function of the chunk computes."""

FLAG_SLOTS = ("terminated", "truncated", "done")
ASSUMED = {"autoreset": "same_step", "alignment": "transition", "flags": "row", "axes": "TN"}


@dataclasses.dataclass(frozen=True)
class Convention:
    """How a collect function lays out its chunks.

    Parameters
    ----------
    base : str, optional
        A named convention that the other arguments amend, such as ``"brax"``, ``"gymnax"`` or ``"stoix_rnn"``;
        ``"auto"`` amends nothing. An unknown name raises an error that lists them all.
    observation, action, reward : str, callable or None
        The field (dotted path, or a function of the chunk) that plays this role; None when there is none.
        A path may name a whole subtree. ``"auto"`` looks for the standard names (``obs`` or
        ``observation``, ``action``, ``reward``). Of a tuple of these, here and in the other slots, the first that
        is found counts: a path that the chunk holds, a function that does not return None, or None.
    terminated, truncated, done : str, callable or None
        Flags of shape (T, N), any numeric dtype, non-zero where set. With `done` and one of the two others,
        the third follows.
    next_observation : str, callable or None
        The true next observation, on every row.
    final_observation : str, callable or None
        The true last observation, meaningful on ended rows. It becomes ``final_obs`` and is no field.
    autoreset : {"auto", "same_step", "next_step", "disabled"}
        What the row after an end is: the next episode's first transition; a reset row, which is no
        transition and whose observation is the final one; nothing, until `Recorder.mark_reset`.
        ``"auto"`` assumes ``"same_step"``.
    alignment : {"auto", "transition", "result"} or mapping of str to {"transition", "result"}
        ``"transition"``: an observation stands on the row of the action chosen from it. ``"result"``: on
        the row of the action that led to it, so it is read one row earlier. A mapping of globs says so for
        single fields: ``{"state.*": "result"}``. Action, reward, flags and next observations never move.
        ``"auto"`` assumes ``"transition"``.
    flags : {"auto", "row", "previous_row"}
        Whether a row carries its own flags or those of the row before. ``"auto"`` assumes ``"row"``.
    axes : str
        Letters of the leading axes, in the arrays' order: T time, N environments, U updates (joined to
        time); any other letter is merged into the environments and becomes an episode coordinate. Parentheses
        stand around axes that were flattened into one: ``"(UN)T"``, which needs ``Recorder(num_envs=)``.
        ``"auto"`` assumes ``"TN"``.
    agents : sequence of str, optional
        Names of the agents that share an environment. Arrays that differ only in an agent's name on their path
        (``obs.scout``, ``obs.carrier``) become one field (T, N, agent, ...) where they are alike; so do arrays
        that have the agents on an axis, with the letter A in `axes`: ``"TAN"``, or ``"T(AN)"`` where it was
        flattened. An episode ends for all of them: when the flag under ``"__all__"`` is set, or else when those
        of all agents are.
    agent_done : str, tuple of str or None
        Flags (T, N) of each agent which say that it takes no part in the rows that follow; from them comes
        `alive`. ``"auto"``: those of `terminated`, `truncated` and `done` that each agent has.
    agent_flags : {"auto", "row", "previous_row"}
        As `flags`, for `agent_done`; ``"auto"``: as `flags`.

    Raises
    ------
    ValueError
        When `base` or an option is none of those known, or `axes` lacks T or N or repeats a letter.
    TypeError
        When a slot or `agents` is of none of the kinds above.
    """

    base: str | None = None
    _: dataclasses.KW_ONLY
    observation: Slot = "auto"
    action: Slot = "auto"
    reward: Slot = "auto"
    terminated: Slot = "auto"
    truncated: Slot = "auto"
    done: Slot = "auto"
    next_observation: Slot = "auto"
    final_observation: Slot = "auto"
    autoreset: Autoreset = "auto"
    alignment: Alignment | Mapping[str, str] = "auto"
    flags: FlagsPlace = "auto"
    axes: str = "auto"
    agents: Sequence[str] | None = None
    agent_done: str | tuple[str | None, ...] | None = "auto"
    agent_flags: FlagsPlace = "auto"

    def __post_init__(self) -> None:
        """Check the options and fill in what `base` says."""
        if self.base is not None:
            if self.base not in NAMED:
                raise ValueError(
                    f"convention={self.base!r}; expected one of {', '.join(map(repr, NAMED))}, or a Convention."
                    f"{did_you_mean(self.base, NAMED)}"
                )
            for slot, value in NAMED[self.base].items():
                if getattr(self, slot) == "auto":
                    object.__setattr__(self, slot, value)
        check_option("autoreset", self.autoreset, Autoreset)
        check_option("flags", self.flags, FlagsPlace)
        if isinstance(self.alignment, Mapping):
            for glob, value in self.alignment.items():
                check_option(f"alignment[{glob!r}]", value, Place)
        else:
            check_option("alignment", self.alignment, Alignment)
        check_option("agent_flags", self.agent_flags, FlagsPlace)
        if self.axes != "auto":
            check_axes(self.axes)
        if self.agents is not None:
            object.__setattr__(self, "agents", _check_agents(self.agents))
        for slot in STANDARD_NAMES:
            value = getattr(self, slot)
            sources = self.sources(slot)
            if not sources or not all(
                source is None or isinstance(source, str) or callable(source) for source in sources
            ):
                raise TypeError(
                    f"Convention({slot}={value!r}); expected a dotted path, a function of the chunk, None or 'auto', "
                    "or a tuple of these"
                )

    def sources(self, slot: str) -> tuple[Source, ...]:
        """Return what may fill a slot, in order; a path found under "auto" is one of its standard names."""
        value: Slot = getattr(self, slot)
        sources = value if isinstance(value, tuple) else (value,)
        if "auto" not in sources:
            return sources
        place = sources.index("auto")
        return (*sources[:place], *STANDARD_NAMES[slot], None, *sources[place + 1 :])

    def origin(self, setting: str) -> str:
        """Say who decided on a setting that is not "auto": "given" by the user, or by a named convention."""
        row = NAMED[self.base] if self.base is not None else {}
        return str(self.base) if setting in row and row[setting] == getattr(self, setting) else "given"

    def mend(self, slot: str) -> str:
        """Say what to do where a chunk lacks what a named convention needs."""
        return f"The convention {self.base!r} reads {slot} from it; amend it: Convention({self.base!r}, {slot}='path')"


def _check_agents(agents: Any) -> tuple[str, ...]:
    """Return the names of agents; they are parts of dotted names, so without dots, and "__all__" is none."""
    if isinstance(agents, str) or not isinstance(agents, Sequence) or not all(isinstance(a, str) for a in agents):
        raise TypeError(f"agents={agents!r}; expected a list of names")
    if not agents or len(set(agents)) < len(agents) or any(not a or "." in a or a == "__all__" for a in agents):
        raise ValueError(f"agents={list(agents)!r}; expected names without dots, each once, '__all__' not among them")
    return tuple(agents)


def as_convention(convention: Any) -> Convention:
    """Return a Convention, given one or the name of one."""
    if isinstance(convention, Convention):
        return convention
    if isinstance(convention, str):
        return Convention(convention)
    raise TypeError(f"convention={convention!r}; expected a Convention or the name of one")


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
