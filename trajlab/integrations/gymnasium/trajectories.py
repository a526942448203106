"""The wrappers that write each episode into a file of its own, as it happens."""

import weakref
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper

from trajlab.integrations.gymnasium.held import seeds_of
from trajlab.integrations.gymnasium.trails import Trails, each_of, owned
from trajlab.integrations.gymnasium.wrappers import RESET_MASK, autoreset_of, resets_itself
from trajlab.io.jsonl.files import Mode, prepare
from trajlab.io.jsonl.live import LiveFiles
from trajlab.recorder.calls import as_iteration


class _Writing:
    """What both wrappers have: files, and the update that steps belong to."""

    _trails: Trails
    _files: LiveFiles

    def _begin(self, path: Any, mode: Any, **about: Any) -> None:
        self._files = LiveFiles(*prepare(path, mode))
        weakref.finalize(self, self._files.close)
        self._trails = Trails(self._files, **about)

    @property
    def iteration(self) -> int:
        """The number of the update that steps from now on belong to; 0 until it is set."""
        return self._trails.iteration

    @iteration.setter
    def iteration(self, number: Any) -> None:
        self._trails.iteration = as_iteration(number)


class RecordTrajectory(gym.Wrapper, RecordConstructorArgs, _Writing):
    """Write every episode of an environment as JSON Lines, step by step.

    A line is in its file when the step returns, so that what happened is there also where the program is killed.
    `trajlab.read_jsonl` makes a Dataset of the files, at any time; `trajlab.write_jsonl` says what a line holds.

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        For environments that step together a `RecordVectorTrajectory` is returned.
    path : str or Path
        A directory, made if it is not there. It gets ``episode_00000.jsonl``, ``episode_00001.jsonl``, ...
    mode : {"create", "append", "replace"}
        What becomes of episodes that are there already: ``"create"`` refuses, ``"append"`` numbers new ones behind
        them, ``"replace"`` deletes them.

    Raises
    ------
    FileExistsError
        When the directory holds episodes and the mode is ``"create"``.
    ValueError
        When `mode` is unknown; in `step`, when a value has another shape than its space.
    ImportError
        When orjson is not installed, which the extra `jsonl` brings.

    Warns
    -----
    UserWarning
        Once for each type of info that has no place in JSON; it is written as text.

    Notes
    -----
    A file comes with the first step of its episode: a reset that failed, or that nothing followed, leaves none. A
    reset in mid-episode, and `close`, leave an episode that reads as ``"cut"``. Numbers and arrays of numbers in infos
    become fields ``info.key``; `seed` and the options of `reset` values of the episode.

    Examples
    --------
    >>> import tempfile, gymnasium as gym, trajlab as tl
    >>> from trajlab.integrations.gymnasium import RecordTrajectory
    >>> path = tempfile.TemporaryDirectory()
    >>> env = RecordTrajectory(gym.make("CartPole-v1"), path.name)
    >>> obs, info = env.reset(seed=0)
    >>> for _ in range(5):
    ...     step = env.step(0)
    >>> ds = tl.read_jsonl(path.name)
    >>> ds["obs"].shape, ds["seed"].values, ds["end_reason"].values
    ((1, 5, 4), array([0]), array(['cut'], dtype='<U10'))
    >>> path.cleanup()
    """

    def __new__(cls, env: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a wrapper for the kind of environment that is given."""
        if isinstance(env, VectorEnv):
            return RecordVectorTrajectory(env, *args, **kwargs)
        return super().__new__(cls)

    def __init__(self, env: gym.Env, path: Any, *, mode: Mode = "create") -> None:
        RecordConstructorArgs.__init__(self, path=path, mode=mode)
        gym.Wrapper.__init__(self, env)
        self._begin(
            path,
            mode,
            observation=env.observation_space,
            action=env.action_space,
            num_envs=1,
            autoreset="next_step" if resets_itself(env) else "disabled",
        )

    def step(self, action: Any) -> Any:
        """Step the environment and write it down; nothing is kept of a step that raises."""
        held = owned(action)
        try:
            result = obs, reward, terminated, truncated, info = self.env.step(action)
            self._trails.step_one(held, obs, reward, bool(terminated), bool(truncated), info)
        except BaseException:
            self._trails.lose()
            raise
        return result

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset the environment; an episode that has not ended is cut."""
        self._trails.lose()
        obs, info = self.env.reset(seed=seed, options=options)
        self._trails.reset_one(obs, info, seed, options or {})
        return obs, info

    def close(self) -> None:
        """Close the files and the environment; an episode that has not ended is cut."""
        self._trails.close()
        super().close()


class RecordVectorTrajectory(VectorWrapper, RecordConstructorArgs, _Writing):
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
        self._begin(
            path,
            mode,
            observation=env.single_observation_space,
            action=env.single_action_space,
            num_envs=env.num_envs,
            autoreset=autoreset_of(env),
        )

    def step(self, actions: Any) -> Any:
        """Step the environments and write it down; nothing is kept of a step that raises."""
        held = owned(actions)
        try:
            result = obs, reward, terminated, truncated, infos = self.env.step(actions)
            self._trails.step_many(
                each_of(self.env.action_space, held),
                each_of(self.env.observation_space, obs),
                reward,
                np.asarray(terminated, bool),
                np.asarray(truncated, bool),
                infos,
                self.env.observation_space,
            )
        except BaseException:
            self._trails.lose()
            raise
        return result

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Reset all environments, or those of `options["reset_mask"]`; episodes that have not ended are cut."""
        given: Mapping[str, Any] = options or {}
        where = np.array(given.get(RESET_MASK, np.ones(self.num_envs, bool)), bool)
        try:
            obs, infos = self.env.reset(seed=seed, options=options)
            seeds = [None] * self.num_envs if seed is None else seeds_of(seed, self.num_envs).tolist()
            own = {key: value for key, value in given.items() if key != RESET_MASK}
            self._trails.reset_many(where, each_of(self.env.observation_space, obs), infos, seeds, own)
        except BaseException:
            self._trails.lose()
            raise
        return obs, infos

    def close(self, **kwargs: Any) -> None:
        """Close the files and the environments; episodes that have not ended are cut."""
        self._trails.close()
        super().close(**kwargs)
