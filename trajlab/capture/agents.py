"""The flags of several agents: those of the whole episode, and those of each agent."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trajlab.block.layout import EVERY_AGENT
from trajlab.capture.arrange import Arranged, Make, make_arrays
from trajlab.capture.axes import AGENTS
from trajlab.capture.convention import FLAG_SLOTS, Convention
from trajlab.capture.tree import first_path, under
from trajlab.errors import FriendlyKeyError, unknown_name

ALL = "__all__"
"""The key, in a dict per agent, of what holds for all of them; also of flags made of those of each agent."""


class AgentFlags(NamedTuple):
    """Flags found among arrays in plain form.

    Attributes
    ----------
    names : tuple of str
    leaves : list of arrays
        All arrays, with those that were made.
    slots : mapping of str to str
        The flag of whole episodes that fills each slot which has one for each agent.
    each : tuple of str
        The arrays (T, N, agent) that say of each agent whether it is done.
    """

    names: tuple[str, ...]
    leaves: list[Any]
    slots: Mapping[str, str]
    each: tuple[str, ...]


def find_flags(arranged: Arranged, convention: Convention, computed: Mapping[str, list[str]], axis: int) -> AgentFlags:
    """Find the flags of episodes and of agents.

    The flag of an episode is what a dict per agent holds under ``"__all__"``. Where that is missing, an episode ends
    when the flags of all agents are set.

    Parameters
    ----------
    arranged : Arranged
    convention : Convention
        With agents.
    computed : mapping of slot to list of str
        The names of what the slots given as functions returned.
    axis : int
        The axis of agents.

    Raises
    ------
    KeyError
        When the chunk holds nothing of these agents, or `agent_done` names none of its arrays.
    ValueError
        When a flag is there for some agents only, or not for each agent.
    """
    names, leaves = arranged.names, arranged.leaves
    if not arranged.agent_of:
        raise _no_agents(names, leaves, convention)
    slots: dict[str, str] = {}
    each: dict[str, str] = {}
    made: dict[str, Make] = {}
    for slot in FLAG_SLOTS:
        path = find_path(convention, slot, names, computed)
        if path is None:
            continue
        whole = f"{path}.{ALL}"
        _check_agents_of(path, arranged, convention, slot)
        if arranged.agent_of.get(path) == EVERY_AGENT:
            each[slot] = path
        if whole in names:
            slots[slot] = whole
        elif slot in each:
            slots[slot] = whole
            # An agent may have terminated before the last one is truncated.
            also = [each["terminated"]] if slot == "truncated" and "terminated" in each else []
            made[whole] = Make("all", tuple(names.index(name) for name in (path, *also)), axis)
    out = [*leaves, *make_arrays(leaves, list(made.values()))]
    return AgentFlags((*names, *made), out, slots, _each(arranged, convention, tuple(each.values())))


def find_path(convention: Convention, slot: str, names: Sequence[str], computed: Mapping[str, list[str]]) -> str | None:
    """Return the path of what fills a slot, None where nothing does."""
    if slot in computed:
        return computed[slot][0]
    return first_path(convention.sources(slot), names)


def _each(arranged: Arranged, convention: Convention, found: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arrays that say of each agent whether it is done: those found, or what `agent_done` names."""
    if convention.agent_done == "auto":
        return found
    paths = convention.agent_done if isinstance(convention.agent_done, tuple) else (convention.agent_done,)
    path = first_path(paths, arranged.names)
    if path is None:
        if None in paths:
            return ()
        raise unknown_name("field for Convention(agent_done=...)", str(paths[0]), arranged.names)
    _check_agents_of(path, arranged, convention, "agent_done")
    if arranged.agent_of.get(path) != EVERY_AGENT:
        raise ValueError(
            f"Convention(agent_done={path!r}): expected an array for each of the agents, or one of them all"
        )
    return (path,)


def _check_agents_of(path: str, arranged: Arranged, convention: Convention, slot: str) -> None:
    """Raise ValueError where a flag is there for some agents only."""
    some = [agent for name, agent in arranged.agent_of.items() if name in under(path, arranged.names)]
    assert convention.agents is not None
    if some and EVERY_AGENT not in some:
        missing = [agent for agent in convention.agents if agent not in some]
        what = f"is missing for {', '.join(map(repr, missing))}" if missing else "differs in shape or dtype"
        raise ValueError(f"the flag {path!r} ({slot}) {what}; expected one alike for each agent of agents=")


def _no_agents(names: tuple[str, ...], leaves: Sequence[Any], convention: Convention) -> Exception:
    agents = ", ".join(map(repr, convention.agents or ()))
    if AGENTS in convention.axes:
        shapes = ", ".join(f"{name!r} {tuple(leaf.shape)}" for name, leaf in zip(names, leaves, strict=True))
        return ValueError(
            f"no array has the leading axes {convention.axes!r} with the agents {agents}; there are {shapes}"
        )
    return FriendlyKeyError(
        f"no array of the agents {agents}; the chunk has {', '.join(map(repr, names))}. Where the agents are an axis, "
        "name it A: axes='TAN', or axes='T(AN)' if it was flattened"
    )
