"""The wrapper that writes each episode of environments that step together into a file of its own, as it happens."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from trajlab.integrations.gymnasium.held import seeds_of
from trajlab.integrations.gymnasium.infos import named_values
from trajlab.integrations.gymnasium.steps import OF_THE_END
from trajlab.integrations.gymnasium.trails import Writing, owned
from trajlab.integrations.gymnasium.wrappers import RESET_MASK, autoreset_of
from trajlab.io.jsonl.files import Mode

_FINALS = ("final_obs", "_final_obs", "final_info", "_final_info")


class RecordVectorTrajectory(VectorWrapper, RecordConstructorArgs, Writing):
    """Write every episode of environments that step together as JSON Lines, step by step.

    What follows the end of an episode is read from the environments' `metadata["autoreset_mode"]`.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
    path, mode
        As for `RecordTrajectory`.

    Raises
    ------
    FileExistsError, ValueError, ImportError
        As `RecordTrajectory`; also when the autoreset mode is not known.

    Notes
    -----
    Episodes are numbered in the order in which they start, those of the same step by environment. At most 64 files
    are open between two steps, however many environments there are.

    Examples
    --------
    >>> import tempfile, gymnasium as gym, numpy as np, trajlab as tl
    >>> from trajlab.integrations.gymnasium import RecordVectorTrajectory
    >>> path = tempfile.TemporaryDirectory()
    >>> envs = RecordVectorTrajectory(gym.make_vec("CartPole-v1", num_envs=2), path.name)
    >>> obs, info = envs.reset(seed=0)
    >>> for _ in range(20):
    ...     step = envs.step(np.zeros(2, int))
    >>> tl.read_jsonl(path.name)["env"].values
    array([0, 1, 1, 0, 1])
    >>> path.cleanup()
    """

    def __init__(self, env: VectorEnv, path: Any, *, mode: Mode = "create") -> None:
        RecordConstructorArgs.__init__(self, path=path, mode=mode)
        VectorWrapper.__init__(self, env)
        self._open(
            path,
            mode,
            env.single_observation_space,
            env.single_action_space,
            num_envs=env.num_envs,
            autoreset=autoreset_of(env),
        )

    def step(self, actions: Any) -> Any:
        """Step the environments and write it down; nothing is kept of a step that raises."""
        held = owned(actions)
        try:
            result = obs, reward, terminated, truncated, infos = self.env.step(actions)
            self._write(
                _each_of(self.env.action_space, held),
                _each_of(self.env.observation_space, obs),
                reward,
                np.asarray(terminated, bool),
                np.asarray(truncated, bool),
                infos,
            )
        except BaseException:
            self._lose()
            raise
        return result

    def _write(
        self,
        action: Sequence[Any],
        obs: Sequence[Any],
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        infos: Mapping[str, Any],
    ) -> None:
        """Write a step of each environment that is not reset by it, and does not wait for a reset."""
        if self._autoreset == "disabled" and self._waits.all():
            return
        self._row += 1
        ended = terminated | truncated
        is_same = self._autoreset == "same_step" and bool(ended.any())
        each = _Infos({key: value for key, value in infos.items() if key not in _FINALS} if is_same else infos)
        last = _Infos(
            {**infos.get("final_info", {}), **{key: infos[key] for key in OF_THE_END if key in infos}}
            if is_same
            else {}
        )
        finals = _finals(infos, ended, self.env.observation_space) if is_same else {}
        for env, trail in enumerate(self._trails):
            has_ended = bool(ended[env])
            if not trail.is_begun:
                self._take(env, obs[env], each.of(env), has_ended=has_ended)
                continue
            is_over = is_same and has_ended
            shown, info = (finals.get(env), last.of(env)) if is_over else (obs[env], each.of(env))
            flags = bool(terminated[env]), bool(truncated[env])
            trail.step(action[env], shown, reward[env], *flags, info, self._iteration, self._row)
            if is_over:
                self._begin(env, obs[env], each.of(env))
            elif has_ended:
                trail.end()
                self._waits[env] = True

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Reset all environments, or those of `options["reset_mask"]`; episodes that have not ended are cut."""
        given: Mapping[str, Any] = options or {}
        where = np.array(given.get(RESET_MASK, np.ones(self.num_envs, bool)), bool)
        try:
            obs, infos = self.env.reset(seed=seed, options=options)
            shown, each = _each_of(self.env.observation_space, obs), _Infos(infos)
            seeds = [None] * self.num_envs if seed is None else seeds_of(seed, self.num_envs).tolist()
            own = {key: value for key, value in given.items() if key != RESET_MASK}
            self._count_reset()
            self._waits &= ~where
            for env in np.flatnonzero(where).tolist():
                self._begin(env, shown[env], each.of(env), seeds[env], own)
        except BaseException:
            self._lose()
            raise
        return obs, infos

    def close(self, **kwargs: Any) -> None:
        """Close the files and the environments; episodes that have not ended are cut."""
        self._end()
        super().close(**kwargs)


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


def _each_of(space: Space, values: Any) -> list[Any]:
    """Return the values of a batched space for each environment."""
    found: Iterable[Any] = iterate(space, values)
    return list(found)
