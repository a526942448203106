"""What the recorder terms of both packages do: read one step's fields and give them to a SharedRecorder."""

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from trajlab.errors import unknown_name
from trajlab.integrations.managers.arrays import Fields, owned_fields
from trajlab.integrations.managers.shared import SharedRecorder
from trajlab.integrations.managers.step_row import SUCCESS
from trajlab.recorder import Recorder

Read = Callable[[Any], Any]
"""A function of the environment that returns a tensor (N, ...) or a mapping of them."""

PARAMS = ("recorder", "observation", "before_step", "after_step", "success")


class StepTerm:
    """Record every step of a manager-based environment: a recorder term.

    Its configuration's `params` are below. The first term of an environment also records the observation, the action,
    the reward, `terminated` and `truncated`; others that share its recorder add fields of their own.

    Parameters
    ----------
    recorder : SharedRecorder, optional
        Where the steps go; by default a new one.
    observation : str, list of str or None
        The observation group to record as `obs`, which is read as it stands and never computed; several become
        ``obs.name``. By default that of the policy, ``"actor"`` in mjlab and ``"policy"`` in Isaac Lab.
    before_step : mapping of str to callable, optional
        Further fields, functions of the environment that return a tensor (N, ...) or a mapping of them: what is
        there when an action is chosen, such as the state.
    after_step : mapping of str to callable, optional
        The same for what a step led to, such as the terms of a reward. It is read before any environment is reset.
    success : str, callable, bool or None
        What becomes the episode's `success`, its value at the last step: a termination term's name, a function of
        the environment, or True where `set_success_to_episodes` sets it. None for no such field, the default; in
        Isaac Lab the default is the termination term ``"success"``, where there is one.

    Attributes
    ----------
    shared : SharedRecorder
    recorder : Recorder

    Notes
    -----
    A subclass may override `before_step` and `after_step`. Where a name of a field holds ``/``, or its value is a
    mapping, its parts become those of a dotted name. The seed of the environment's configuration becomes the
    episode's `seed`. Values are copied when they are read, so that tensors may be written over.
    """

    GROUP: str
    """The observation group that is recorded by default."""
    _env: Any

    def _begin(self, params: Mapping[str, Any], env: Any) -> None:
        """Read the term's configuration and join the other terms of the environment."""
        for name in params:
            if name not in PARAMS:
                raise unknown_name("parameter of this recorder term", name, PARAMS)
        self._env = env
        self.shared = _as_shared(params.get("recorder"))
        self._reads = {name: _as_reads(name, params.get(name)) for name in ("before_step", "after_step")}
        self._is_first = self.shared.join(env)
        self._observation = params.get("observation", self.GROUP if self._is_first else None)
        self._success = params.get(SUCCESS, self._default_success())
        if self._success is True and self.shared.is_recording:
            self.shared.expect_success()

    @property
    def recorder(self) -> Recorder:
        """The Recorder that the term fills."""
        return self.shared.recorder

    def get_episode(self, env_id: int) -> xr.Dataset:
        """Return the episode that is under way in one environment; see `SharedRecorder.get_episode`."""
        return self.shared.get_episode(env_id)

    def set_success_to_episodes(self, env_ids: Any, values: Any) -> None:
        """Set the success of episodes by hand; see `SharedRecorder.set_success_to_episodes`."""
        self.shared.set_success_to_episodes(env_ids, values)

    def before_step(self) -> dict[str, Any]:
        """Return what is known when an action is chosen, tensors (N, ...) by name: by default the observation.

        Of an episode's first step it holds the state that the episode began with.
        """
        fields = {name: read(self._env) for name, read in self._reads["before_step"].items()}
        return fields if self._observation is None else {"obs": self.observation(), **fields}

    def after_step(self) -> dict[str, Any]:
        """Return what a step led to, tensors (N, ...) by name: by default action, reward, flags and success.

        Only the first term of an environment gives action, reward and flags.
        """
        env, fields = self._env, {}
        if self._is_first:
            fields = {
                "action": env.action_manager.action,
                "reward": env.reward_buf,
                "terminated": env.reset_terminated,
                "truncated": env.reset_time_outs,
            }
        if (success := self._read_success()) is not None:
            fields[SUCCESS] = success
        return {**fields, **{name: read(env) for name, read in self._reads["after_step"].items()}}

    def observation(self) -> Any:
        """Return the observation group that the term names, as it is; a mapping where it names several."""
        if isinstance(self._observation, str):
            return self._group(self._observation)
        return {name: self._group(name) for name in self._observation}

    def _group(self, name: str) -> Any:
        groups = self._env.obs_buf
        if name not in groups:
            raise unknown_name("observation group", name, groups)
        return groups[name]

    def _read_success(self) -> Any:
        given = self._success
        if given is None or given is False:
            return None
        if given is True:
            return self.shared.success_by_hand()
        if callable(given):
            return given(self._env)
        terms = self._env.termination_manager
        if given not in terms.active_terms:
            raise unknown_name("termination term for success=", given, terms.active_terms)
        return terms.get_term(given)

    def _default_success(self) -> Any:
        return None

    def _own_before(self) -> Fields:
        return owned_fields(self.before_step(), self._env.num_envs)

    def _own_after(self) -> Fields:
        return owned_fields(self.after_step(), self._env.num_envs)


def _as_shared(given: Any) -> SharedRecorder:
    if isinstance(given, SharedRecorder):
        return given
    if given is None or isinstance(given, Recorder):
        return SharedRecorder(given)
    raise TypeError(f"recorder={given!r}; expected a SharedRecorder, a Recorder or None for a new one")


def _as_reads(name: str, given: Any) -> dict[str, Read]:
    reads = {} if given is None else given
    if not isinstance(reads, Mapping) or not all(callable(read) for read in reads.values()):
        raise TypeError(f"{name}={given!r}; expected a mapping of names to functions of the environment")
    return dict(reads)
