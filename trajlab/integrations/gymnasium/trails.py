"""Steps to files: which episode each step of each environment belongs to, in every autoreset mode."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import iterate

from trajlab import names
from trajlab.integrations.gymnasium.infos import named_values
from trajlab.integrations.gymnasium.spaces import Leaf, array_leaves, attrs_of
from trajlab.integrations.gymnasium.steps import OF_THE_END, Autoreset
from trajlab.integrations.paths import dotted
from trajlab.io.jsonl.declared import Declared, Tree
from trajlab.io.jsonl.declared import Leaf as Value
from trajlab.io.jsonl.live import LiveFiles, Trail

_IMMUTABLE = (int, float, bool, str, np.generic)
_FINALS = ("final_obs", "_final_obs", "final_info", "_final_info")


class Trails:
    """The episodes of one environment, or of some that step together, as files.

    Attributes
    ----------
    iteration : int
        The update that steps from now on belong to.
    """

    def __init__(
        self, files: LiveFiles, observation: Space, action: Space, *, num_envs: int, autoreset: Autoreset
    ) -> None:
        """Write the episodes of environments with these spaces."""
        self._files, self._mode, self.iteration = files, autoreset, 0
        declared = Declared()
        obs, taken = (_tree(declared, space, root) for space, root in ((observation, "obs"), (action, "action")))
        reward = Value(declared, "reward", ("reward",), (), None, None).described("reward", {})
        about = {names.SCHEMA_ATTR: names.SCHEMA, names.CONVENTION_ATTR: f"gymnasium, autoreset={autoreset}"}
        for flag in (names.TERMINATED, names.TRUNCATED):
            declared.declare(flag, "step", (flag,), (), np.dtype(bool), {names.ROLE_ATTR: flag})
        trees = (obs, taken, Tree([reward], declared.plain))
        self._trails = [Trail(env, files, declared, *trees, about) for env in range(num_envs)]
        self._waits = np.zeros(num_envs, bool)
        self._row, self._is_reset_row = -1, False

    def lose(self) -> None:
        """End all episodes where they are: what the environments did since is not known."""
        for trail in self._trails:
            trail.end()
        if self._mode != "disabled":
            self._waits[:] = False

    def close(self) -> None:
        """End all episodes."""
        self.lose()
        self._files.close()

    def _next_row(self, *, is_reset: bool = False) -> None:
        """Count a row; resets behind each other share one."""
        if not (is_reset and self._is_reset_row):
            self._row += 1
        self._is_reset_row = is_reset

    # One environment

    def reset_one(self, obs: Any, info: Mapping[str, Any], seed: Any, options: Mapping[str, Any]) -> None:
        """Begin an episode by a reset."""
        self._next_row(is_reset=True)
        self._waits[0] = False
        self._begin(0, obs, info, seed, options)

    def step_one(
        self, action: Any, obs: Any, reward: Any, terminated: bool, truncated: bool, info: Mapping[str, Any]
    ) -> None:
        """Write a step."""
        trail = self._trails[0]
        if not trail.is_begun:
            if not (self._waits[0] and self._mode == "disabled"):
                self._next_row()
                self._take(0, obs, terminated or truncated, lambda _: info)
            return
        self._row += 1
        self._is_reset_row = False
        if type(reward) is not float and np.ndim(reward) == 0:
            reward = float(reward)
        trail.step(action, obs, reward, terminated, truncated, info, self.iteration, self._row)
        if terminated or truncated:
            trail.end()
            self._waits[0] = True

    def _begin(
        self,
        env: int,
        obs: Any,
        info: Mapping[str, Any],
        seed: Any = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        start_seen: bool = True,
    ) -> None:
        number = None if seed is None or not 0 <= int(seed) < 2**63 else int(seed)
        self._trails[env].begin(owned(obs), info=info, seed=number, options=options, start_seen=start_seen)

    # Many environments

    def reset_many(
        self,
        where: np.ndarray,
        obs: Sequence[Any],
        infos: Mapping[str, Any],
        seeds: Sequence[Any],
        options: Mapping[str, Any],
    ) -> None:
        """Begin episodes in the environments `where` (N,) bool, by a reset of these."""
        self._next_row(is_reset=True)
        each = _Infos(infos)
        self._waits &= ~where
        for env in np.flatnonzero(where).tolist():
            self._begin(env, obs[env], each.of(env), seeds[env], options)

    def step_many(
        self,
        action: Sequence[Any],
        obs: Sequence[Any],
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        infos: Mapping[str, Any],
        space: Space,
    ) -> None:
        """Write a step of each environment that is not reset by it, and does not wait for a reset."""
        if self._mode == "disabled" and self._waits.all():
            return
        self._next_row()
        ended = terminated | truncated
        is_same = self._mode == "same_step" and bool(ended.any())
        each = _Infos({key: value for key, value in infos.items() if key not in _FINALS} if is_same else infos)
        last = _Infos(
            {**infos.get("final_info", {}), **{key: infos[key] for key in OF_THE_END if key in infos}}
            if is_same
            else {}
        )
        finals = _finals(infos, ended, space) if is_same else {}
        for env, trail in enumerate(self._trails):
            has_ended = bool(ended[env])
            if not trail.is_begun:
                self._take(env, obs[env], has_ended, each.of)
                continue
            is_over = is_same and has_ended
            shown, info = (finals.get(env), last.of(env)) if is_over else (obs[env], each.of(env))
            flags = bool(terminated[env]), bool(truncated[env])
            trail.step(action[env], shown, reward[env], *flags, info, self.iteration, self._row)
            if is_over:
                self._begin(env, obs[env], each.of(env))
            elif has_ended:
                trail.end()
                self._waits[env] = True

    def _take(self, env: int, obs: Any, has_ended: bool, info_of: Callable[[int], Mapping[str, Any]]) -> None:
        """Take what an environment showed that is reset, or whose steps before are not known."""
        is_reset = bool(self._waits[env])
        if is_reset and self._mode == "disabled":
            return
        is_fresh = is_reset or (has_ended and self._mode == "same_step")
        self._waits[env] = has_ended and not is_fresh
        if not self._waits[env]:
            self._begin(env, obs, info_of(env) if is_fresh else {}, start_seen=is_fresh)


class _Infos:
    """The infos of a vector environment, one environment at a time."""

    def __init__(self, infos: Mapping[str, Any]) -> None:
        self._values = list(named_values(infos)) if infos else []

    def of(self, env: int) -> dict[str, Any]:
        """Return what stands for one environment, nested as it was."""
        found: dict[str, Any] = {}
        for name, value, mask in self._values:
            if mask is None or mask[env]:
                *parents, last = name.split(".")
                branch = found
                for key in parents:
                    branch = branch.setdefault(key, {})
                branch[last] = value[env]
        return found


def _finals(infos: Mapping[str, Any], ended: np.ndarray, space: Space) -> dict[int, Any]:
    """Return the final observations that a step with an autoreset tells, by environment."""
    finals: Any = infos.get("final_obs")
    if finals is None:
        return {}
    there = ended & np.asarray(infos.get("_final_obs", ended), bool)
    each = list(iterate(space, finals)) if isinstance(finals, Mapping | tuple) else finals
    return {env: each[env] for env in np.flatnonzero(there).tolist()}


def _tree(declared: Declared, space: Space, root: str) -> Tree:
    """Return the leaves of a space, whose values are fields."""
    role = {"obs": "observation"}.get(root, root)
    leaves = [_value(declared, leaf).described(role, attrs_of(leaf.space)) for leaf in array_leaves(space, root)]
    return Tree(leaves, declared.plain)


def _value(declared: Declared, leaf: Leaf) -> Value:
    place = tuple(key if isinstance(key, int) else str(key) for key in leaf.path)
    return Value(declared, dotted(leaf.path), place, leaf.path[1:], leaf.cell, leaf.dtype)


def owned(value: Any) -> Any:
    """Return a value in memory of one's own: an environment may fill its arrays again."""
    if isinstance(value, _IMMUTABLE):
        return value
    return value.copy() if type(value) is np.ndarray else copy.deepcopy(value)


def each_of(space: Space, values: Any) -> list[Any]:
    """Return the values of a batched space for each environment."""
    found: Iterable[Any] = iterate(space, values)
    return list(found)
