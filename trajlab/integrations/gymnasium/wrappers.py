"""The wrappers: Gymnasium environments that record every step they make."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.wrappers import Autoreset as AutoresetWrapper

from trajlab.errors import unknown_name
from trajlab.integrations.gymnasium.infos import DeclaredInfos
from trajlab.integrations.gymnasium.spaces import leaves_of
from trajlab.integrations.gymnasium.steps import Autoreset, Steps
from trajlab.recorder import Recorder, attach
from trajlab.recorder.attached import Inlet
from trajlab.recorder.calls import as_iteration

MODES: dict[AutoresetMode, Autoreset] = {
    AutoresetMode.NEXT_STEP: "next_step",
    AutoresetMode.SAME_STEP: "same_step",
    AutoresetMode.DISABLED: "disabled",
}
ROOTS = ("obs", "action", "reward", "seed", "info", "option")
"""What need not be recorded."""
RESET_MASK = "reset_mask"
"""The option of a vector environment's reset that says which of them to reset."""


class _Recording:
    """What both wrappers do: gather what passes through `step` and `reset`, and say where it goes."""

    recorder: Recorder
    _steps: Steps
    _inlet: Inlet

    def _begin(self, recorder: Recorder | None, steps: Steps) -> None:
        self.recorder = Recorder() if recorder is None else recorder
        self._steps, self._inlet = steps, attach(self.recorder, steps)

    @property
    def iteration(self) -> int:
        """The number of the update that steps from now on belong to; 0 until it is set.

        It becomes the field `iteration`, and `start_iteration` of an episode. Set to a number that is more than one
        higher, or lower, it means that something was not recorded in between: a gap.
        """
        return self._steps.iteration

    @iteration.setter
    def iteration(self, number: Any) -> None:
        number = as_iteration(number)
        if number != self._steps.iteration:
            self._inlet.pull()
            self._steps.iteration = number

    def _step(self, step: Any, action: Any) -> Any:
        """Make a step and write it down; nothing is kept of one that raises."""
        steps = self._steps
        if not steps.is_recording:
            return step(action)
        if steps.is_full or steps.is_lost:
            self._inlet.pull()
        leaves = steps.read_action(action)
        try:
            result = step(action)
            with self._inlet.lock:
                steps.step(leaves, *result)
        except BaseException:
            steps.is_lost = True
            raise
        if steps.is_full:
            self._inlet.pull()
        return result

    def _reset(self, reset: Any, where: np.ndarray, seed: Any, options: dict[str, Any] | None) -> Any:
        """Reset the environments `where` and write down what they show."""
        steps = self._steps
        if not steps.is_recording:
            return reset(seed=seed, options=options)
        given = {key: value for key, value in (options or {}).items() if key != RESET_MASK}
        if steps.is_full or steps.needs_mark(where):
            self._inlet.pull()
        try:
            result = reset(seed=seed, options=options)
            with self._inlet.lock:
                steps.reset(result[0], where, seed, given)
        except BaseException:
            steps.is_lost = True
            raise
        return result


class RecordEpisodes(gym.Wrapper, RecordConstructorArgs, _Recording):
    """Record every step of one environment.

    Parameters
    ----------
    env : gymnasium.Env
    recorder : Recorder, optional
        Where the steps go; by default a new one. It must be new, and made without `convention`. Its
        `to_dataset` always holds all steps made so far.
    chunk : int, optional
        Number of rows that are gathered before they are handed to the recorder; by default 128, fewer where
        they are large. Until the first episode has ended more are, up to 2,048.
    exclude : sequence of str
        Names and globs of what is not recorded: ``["obs.map", "info.*", "seed"]``.
    infos : mapping of str to dtype or array, optional
        The values of `info` to record, by dotted name, each with its dtype or an example of its value. By
        default all numbers, bools and arrays that have come when rows are first handed over, or when one first
        looks at the recording; later ones are left out, with a warning.

    Attributes
    ----------
    recorder : Recorder

    Raises
    ------
    ValueError
        When a space has values without a fixed shape (`Graph`, `Sequence`), or the recorder is not new.
    KeyError
        When `exclude` names what is not there.

    Notes
    -----
    Fields are `obs`, `action`, `reward`, `terminated`, `truncated`, `seed`, and what `info` and the options of
    `reset` hold, as ``info.key`` and ``option.key``; seed and options are constant over an episode. What the
    `info` of `reset` holds is not recorded. A missing value is NaN, or the smallest integer; beside a bool
    stands the mask ``info._key``.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from trajlab.integrations.gymnasium import RecordEpisodes
    >>> env = RecordEpisodes(gym.make("CartPole-v1"))
    >>> obs, info = env.reset(seed=0)
    >>> for _ in range(5):
    ...     step = env.step(0)
    >>> ds = env.recorder.to_dataset()
    >>> ds["obs"].shape, ds["seed"].values[0, 0]
    ((1, 5, 4), np.int64(0))
    """

    def __init__(
        self,
        env: gym.Env,
        recorder: Recorder | None = None,
        *,
        chunk: int | None = None,
        exclude: Sequence[str] = (),
        infos: DeclaredInfos = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, chunk=chunk, exclude=exclude, infos=infos)
        gym.Wrapper.__init__(self, env)
        exclude = _checked(exclude)
        steps = Steps(
            leaves_of(env.observation_space, "obs", exclude),
            leaves_of(env.action_space, "action", exclude),
            num_envs=1,
            autoreset="next_step" if resets_itself(env) else "disabled",
            is_single=True,
            chunk=chunk,
            exclude=exclude,
            infos=infos,
        )
        self._begin(recorder, steps)

    def step(self, action: Any) -> Any:
        """Step the environment and record it."""
        return self._step(self.env.step, action)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset the environment; an episode that has not ended is cut."""
        return self._reset(self.env.reset, np.ones(1, bool), seed, options)


class RecordVectorEpisodes(VectorWrapper, RecordConstructorArgs, _Recording):
    """Record every step of environments that step together.

    What follows the end of an episode is read from the environments' `metadata["autoreset_mode"]`.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
    recorder : Recorder, optional
        As for `RecordEpisodes`; so are `chunk`, `exclude` and `infos`.

    Raises
    ------
    ValueError, KeyError
        As `RecordEpisodes`; also when the autoreset mode is not known.

    Notes
    -----
    Fields and missing values are as for `RecordEpisodes`. With `options={"reset_mask": mask}` those
    environments are reset by hand, in any mode. With the mode `DISABLED`, what an environment does after its
    end, and before its reset, is not recorded.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np
    >>> from trajlab.integrations.gymnasium import RecordVectorEpisodes
    >>> envs = RecordVectorEpisodes(gym.make_vec("CartPole-v1", num_envs=2))
    >>> obs, info = envs.reset(seed=0)
    >>> for _ in range(20):
    ...     step = envs.step(np.zeros(2, int))
    >>> ds = envs.recorder.to_dataset(incomplete="drop")
    >>> bool(ds["final_known"].all())
    True
    """

    def __init__(
        self,
        env: VectorEnv,
        recorder: Recorder | None = None,
        *,
        chunk: int | None = None,
        exclude: Sequence[str] = (),
        infos: DeclaredInfos = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, chunk=chunk, exclude=exclude, infos=infos)
        VectorWrapper.__init__(self, env)
        exclude = _checked(exclude)
        steps = Steps(
            leaves_of(env.single_observation_space, "obs", exclude),
            leaves_of(env.single_action_space, "action", exclude),
            num_envs=env.num_envs,
            autoreset=autoreset_of(env),
            is_single=False,
            chunk=chunk,
            exclude=exclude,
            infos=infos,
        )
        self._begin(recorder, steps)

    def step(self, actions: Any) -> Any:
        """Step the environments and record it."""
        return self._step(self.env.step, actions)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Reset all environments, or those of `options["reset_mask"]`; episodes that have not ended are cut."""
        where = np.ones(self.num_envs, bool)
        if options is not None and RESET_MASK in options:
            where = np.array(options[RESET_MASK], bool)
        return self._reset(self.env.reset, where, seed, options)


def _checked(exclude: Any) -> list[str]:
    if isinstance(exclude, str) or not all(isinstance(entry, str) for entry in exclude):
        raise TypeError(f"exclude={exclude!r}; expected a list of names and globs")
    for entry in exclude:
        if not (set(entry) & set("*?[") or entry.partition(".")[0] in ROOTS):
            raise unknown_name("field for exclude=", entry, ROOTS)
    return list(exclude)


def resets_itself(env: Any) -> bool:
    """Say whether a single environment is in Gymnasium's `Autoreset`, which resets with the step after an end.

    Its metadata do not tell: vector environments write their mode into those of the environments they are made
    of, which all environments of a class share.
    """
    while isinstance(env, gym.Wrapper):
        if isinstance(env, AutoresetWrapper):
            return True
        env = env.env
    return False


def autoreset_of(envs: VectorEnv) -> Autoreset:
    """Return what vector environments do after an end.

    Gymnasium's own say so in an attribute, too, which goes before the metadata: these are shared by all
    environments of a class, so that vector environments made later change the mode of earlier ones there.
    """
    own = getattr(envs.unwrapped, "autoreset_mode", None)
    metadata: Mapping[str, Any] = envs.metadata or {}
    found = own if isinstance(own, AutoresetMode) else metadata.get("autoreset_mode")
    try:
        return MODES[AutoresetMode(found)]
    except ValueError:
        raise ValueError(
            f"{envs} has the autoreset mode {found!r} in its metadata; expected one of "
            f"{', '.join(map(str, MODES))}. Say what it does after an end: "
            "envs.metadata = {**envs.metadata, 'autoreset_mode': gymnasium.vector.AutoresetMode.NEXT_STEP}"
        ) from None
