"""The wrapper that writes each episode of an environment into a file of its own, as it happens."""

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv

from trajlab.integrations.gymnasium.steps import Autoreset
from trajlab.integrations.gymnasium.trails import IMMUTABLE, Writing, owned
from trajlab.integrations.gymnasium.vector_trajectories import RecordVectorTrajectory
from trajlab.integrations.gymnasium.wrappers import resets_itself
from trajlab.io.jsonl.files import Mode


class RecordTrajectory(gym.Wrapper, RecordConstructorArgs, Writing):
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
        autoreset: Autoreset = "next_step" if resets_itself(env) else "disabled"
        self._open(path, mode, env.observation_space, env.action_space, num_envs=1, autoreset=autoreset)
        (self._trail,) = self._trails

    def step(self, action: Any) -> Any:
        """Step the environment and write it down; nothing is kept of a step that raises."""
        held = action if isinstance(action, IMMUTABLE) else owned(action)
        try:
            result = obs, reward, terminated, truncated, info = self.env.step(action)
            if not self._trail.is_begun:
                self._step_unbegun(obs, info, has_ended=bool(terminated or truncated))
                return result
            self._row += 1
            if type(reward) is not float and np.ndim(cast(Any, reward)) == 0:
                reward = float(reward)
            self._trail.step(held, obs, reward, terminated, truncated, info, self._iteration, self._row)
            if terminated or truncated:
                self._trail.end()
                self._waits[0] = True
        except BaseException:
            self._lose()
            raise
        return result

    def _step_unbegun(self, obs: Any, info: Mapping[str, Any], *, has_ended: bool) -> None:
        if not (self._waits[0] and self._autoreset == "disabled"):
            self._row += 1
            self._take(0, obs, info, has_ended=has_ended)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset the environment; an episode that has not ended is cut."""
        self._lose()
        obs, info = self.env.reset(seed=seed, options=options)
        self._count_reset()
        self._waits[0] = False
        self._begin(0, obs, info, seed, options or {})
        return obs, info

    def close(self) -> None:
        """Close the files and the environment; an episode that has not ended is cut."""
        self._end()
        super().close()
