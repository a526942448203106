"""The user's convention: which field plays which role, and what the rows after an end are."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from trajlab.capture.axes import check_axes
from trajlab.capture.named import NAMED
from trajlab.errors import check_option, did_you_mean

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
        flattened. An episode ends for all of them: when the flag under ``"__all__"`` is set, or else on the row
        where those of all agents are; an agent's has to stay set until then.
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
        self._check_agent_options()
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

    def _check_agent_options(self) -> None:
        paths = self.agent_done if isinstance(self.agent_done, tuple) else (self.agent_done,)
        if not paths or not all(path is None or isinstance(path, str) for path in paths):
            raise TypeError(
                f"Convention(agent_done={self.agent_done!r}); expected a dotted path, None or 'auto', or a tuple of "
                "these"
            )
        if self.agents is not None:
            object.__setattr__(self, "agents", _check_agents(self.agents))
            return
        if self.base is not None and "agent_done" in NAMED[self.base]:
            raise ValueError(
                f"convention={self.base!r} needs the names of the agents: Convention({self.base!r}, agents=env.agents)"
            )
        for option in ("agent_done", "agent_flags"):
            if getattr(self, option) != "auto" and self.origin(option) == "given":
                raise ValueError(f"Convention({option}={getattr(self, option)!r}) needs agents=, their names")

    def sources(self, slot: str) -> tuple[Source, ...]:
        """Return what may fill a slot, in order; a path found under "auto" is one of its standard names."""
        value: Slot = getattr(self, slot)
        sources = value if isinstance(value, tuple) else (value,)
        if "auto" not in sources:
            return sources
        place = sources.index("auto")
        return (*sources[:place], *STANDARD_NAMES[slot], None, *sources[place + 1 :])

    @functools.cached_property
    def takes_leaves(self) -> bool:
        """Whether leaves of the chunk fill all slots just as they come: none is computed, joined or reshaped."""
        is_computed = any(callable(source) for slot in STANDARD_NAMES for source in self.sources(slot))
        return not (is_computed or self.agents or "(" in self.axes)

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
