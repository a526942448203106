"""A chunk's arrays brought into plain form: flattened axes apart, the arrays of several agents joined into one.

All is done in one jitted call for the arrays that lie on the device, and with NumPy for the others.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.layout import EVERY_AGENT
from trajlab.capture.axes import AGENTS, unfolded_shape


class Make(NamedTuple):
    """How one array is made of those in a chunk, at `places` among its leaves.

    `kind` says it: ``"keep"`` it as it is; ``"unfold"`` its leading axes to `shape` and move the axis `moved`, if any,
    to `axis`; ``"stack"`` several along `axis`; or whether ``"all"`` are set along `axis`, in any of several.
    """

    kind: Literal["keep", "unfold", "stack", "all"]
    places: tuple[int, ...]
    axis: int = 0
    shape: tuple[int, ...] = ()
    moved: int | None = None

    def of(self, leaves: Sequence[Any], xp: Any) -> Any:
        """Return the array; `xp` is NumPy or its like in JAX."""
        arrays = [leaves[place] for place in self.places]
        if self.kind == "keep":
            return arrays[0]
        if self.kind == "stack":
            return xp.stack(arrays, axis=self.axis)
        if self.kind == "all":
            return functools.reduce(xp.logical_or, [x.astype(bool) for x in arrays]).all(axis=self.axis)
        x = arrays[0].reshape(*self.shape, *arrays[0].shape[self.axis :])
        return x if self.moved is None else xp.moveaxis(x, self.moved, len(self.shape) - 1)


@functools.partial(jax.jit, static_argnums=1)
def _make_on_device(leaves: list[Any], how: tuple[Make, ...]) -> list[jax.Array]:
    return [make.of(leaves, jnp) for make in how]


def make_arrays(leaves: Sequence[Any], how: Sequence[Make]) -> list[Any]:
    """Return the arrays that `how` makes of a chunk's leaves, each where its leaves are."""
    is_on_device = [any(isinstance(leaves[place], jax.Array) for place in make.places) for make in how]
    wanted = [make for make, is_here in zip(how, is_on_device, strict=True) if is_here and make.kind != "keep"]
    used = sorted({place for make in wanted for place in make.places})
    among = [make._replace(places=tuple(used.index(place) for place in make.places)) for make in wanted]
    # JAX may read a NumPy array after the call has returned, when its owner has filled it anew.
    owned = [np.array(leaf) if isinstance(leaf := leaves[place], np.ndarray) else leaf for place in used]
    made = iter(_make_on_device(owned, tuple(among)) if wanted else ())
    return [
        make.of(leaves, np) if make.kind == "keep" or not is_here else next(made)
        for make, is_here in zip(how, is_on_device, strict=True)
    ]


class Arranged(NamedTuple):
    """Names and arrays in plain form.

    Attributes
    ----------
    names : tuple of str
    leaves : list of arrays
    agent_of : mapping of str to str
        Which arrays hold all agents (`EVERY_AGENT`), and which only one, by its name.
    became : mapping of str to str
        The new name of what each of the arrays before went into.
    stuck : frozenset of str
        Arrays whose leading axes could not be read as flattened ones: perhaps some that are not recorded.
    """

    names: tuple[str, ...]
    leaves: list[Any]
    agent_of: Mapping[str, str]
    became: Mapping[str, str]
    stuck: frozenset[str] = frozenset()


def arrange(
    names: tuple[str, ...],
    leaves: Sequence[Any],
    groups: tuple[str, ...],
    agents: tuple[str, ...],
    num_envs: int | None,
) -> Arranged:
    """Bring arrays into plain form: a leading axis for each letter, then that of the agents, then their own.

    Where there is a letter for the agents, every array is one of all agents. Otherwise arrays that differ only in an
    agent's name on their path are joined, where there is one for each agent and all are alike.

    Parameters
    ----------
    names, leaves
        The arrays of a call by name.
    groups : tuple of str
        The letters of each leading axis, as `axes_of_call` gives them.
    agents : tuple of str
        Their names, none where the convention has no agents.
    num_envs : int or None
        The number of environments in this call, where it is known.
    """
    letters = "".join(groups)
    if agents and AGENTS not in letters and len(letters) > len(groups):
        apart = arrange(names, leaves, groups, (), num_envs)
        whole = arrange(names, apart.leaves, tuple(letters), agents, None)
        return whole._replace(stuck=frozenset(whole.became[name] for name in apart.stuck))
    if not agents or AGENTS in letters:
        how = _unfold_all(leaves, groups, len(agents), num_envs)
        unfolded = [name for name, make in zip(names, how, strict=True) if make.kind == "unfold"]
        agent_of = dict.fromkeys(unfolded, EVERY_AGENT) if agents else {}
        itself, stuck = {name: name for name in names}, frozenset(names) - {*unfolded}
        return Arranged(names, make_arrays(leaves, how), agent_of, itself, stuck)
    joined, how, agent_of = _join(names, leaves, agents, len(groups))
    became = {names[place]: name for name, make in zip(joined, how, strict=True) for place in make.places}
    return Arranged(joined, make_arrays(leaves, how), agent_of, became)


def _unfold_all(leaves: Sequence[Any], groups: tuple[str, ...], num_agents: int, num_envs: int | None) -> list[Make]:
    sizes = ({AGENTS: num_agents} if num_agents else {}) | ({} if num_envs is None else {"N": num_envs})
    letters = "".join(groups)
    moved = letters.index(AGENTS) if num_agents else None
    how = []
    for place, leaf in enumerate(leaves):
        shape = unfolded_shape(tuple(leaf.shape), groups, sizes)
        kind: Literal["keep", "unfold"] = "keep" if shape is None else "unfold"
        how.append(Make(kind, (place,), len(groups), shape or (), moved))
    return how


def _join(
    names: tuple[str, ...], leaves: Sequence[Any], agents: tuple[str, ...], axis: int
) -> tuple[tuple[str, ...], list[Make], dict[str, str]]:
    """Return names, how their arrays are made, and whose they are, where agents have an array each."""
    out: list[str] = []
    how: list[Make] = []
    agent_of: dict[str, str] = {}
    for name, places in _grouped(names, agents):
        whose = [agent_in(names[place], agents) for place in places]
        kinds = {(leaves[place].shape, leaves[place].dtype) for place in places}
        if whose == list(agents) and len(kinds) == 1 and leaves[places[0]].ndim >= axis and name not in names:
            out.append(name)
            how.append(Make("stack", places, axis))
            agent_of[name] = EVERY_AGENT
            continue
        for place, agent in zip(places, whose, strict=True):
            out.append(names[place])
            how.append(Make("keep", (place,)))
            agent_of |= {names[place]: agent} if agent else {}
    return tuple(out), how, agent_of


def joined_names(names: tuple[str, ...], agents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that arrays of several agents have, or would have, once joined."""
    return tuple(name for name, _ in _grouped(names, agents))


@functools.lru_cache(maxsize=256)
def _grouped(names: tuple[str, ...], agents: tuple[str, ...]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the names without agents in them, in order, with the places of their arrays in the order of `agents`."""
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        agent = agent_in(name, agents)
        parts = name.split(".")
        if agent and len(parts) > 1:
            parts.remove(agent)
        groups.setdefault(".".join(parts), []).append(place)
    order = ("", *agents)
    return tuple(
        (name, tuple(sorted(places, key=lambda place: order.index(agent_in(names[place], agents)))))
        for name, places in groups.items()
    )


def agent_in(name: str, agents: tuple[str, ...]) -> str:
    """Return the agent whose name is a part of a dotted name, "" where none is."""
    return next((part for part in name.split(".") if part in agents), "")
