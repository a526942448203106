"""Small stand-ins for mjlab and Isaac Lab: their hooks in their order, around environments that count.

Each environment writes down in plain lists what its steps were; that is what a recording has to say. As in the
packages, actions, rewards, flags and the critic's observation are buffers that every step writes over.
"""

import copy
import dataclasses
import sys
import types

import numpy as np

FIELDS = ("obs", "action", "reward", "terminated", "truncated")


class Truth:
    """Episodes as plain lists, one environment at a time."""

    def __init__(self, num_envs):
        self.episodes = []
        self.open = [None] * num_envs

    def step(self, env, obs, action, reward, terminated, truncated, after, row):
        if self.open[env] is None:
            self.open[env] = {"env": env, "start_row": row, "end_reason": "cut", "final": None} | {
                k: [] for k in FIELDS
            }
            self.episodes.append(self.open[env])
        episode = self.open[env]
        for name, value in zip(FIELDS, (obs, action, reward, terminated, truncated), strict=True):
            episode[name].append(np.array(value))
        if terminated or truncated:
            episode |= {"end_reason": "terminated" if terminated else "truncated", "final": after}
            self.open[env] = None

    def cut(self, env):
        self.open[env] = None


class Manager:
    """What holds terms, of either package."""

    def __init__(self, terms, env):
        self.terms = [term(cfg, env) for term, cfg in copy.deepcopy(terms)]
        self.active_terms = [str(number) for number in range(len(self.terms))]

    def call(self, hook, *args):
        for term in self.terms:
            getattr(term, hook)(*args)


class Terminations:
    """A termination manager: named flags (N,) of the newest step."""

    def __init__(self, names, num_envs):
        self._flags = {name: np.zeros(num_envs, bool) for name in names}
        self.active_terms = list(names)

    def get_term(self, name):
        return self._flags[name]


class CounterEnv:
    """Environments whose observation is (environment, episodes before, steps in this one) and a little noise."""

    has_success = True

    def __init__(self, num_envs=3, *, terms=(), seed=0, end=0.25, auto_reset=True, width=3):
        self.num_envs, self.end, self.width = num_envs, end, width
        self.cfg = types.SimpleNamespace(auto_reset=auto_reset, seed=seed)
        self.rng = np.random.default_rng(seed)
        self.noise = np.random.default_rng((seed or 0) + 1)
        self.truth = Truth(num_envs)
        self.common_step_counter, self.rows = 0, 0
        self.count = np.full((num_envs, 3), -1.0, np.float32)
        self.count[:, 0] = np.arange(num_envs)
        self.history = np.zeros((num_envs, 2), np.float32)
        self.reward_buf = np.zeros(num_envs, np.float32)
        self.reset_terminated, self.reset_time_outs = (np.zeros(num_envs, bool) for _ in range(2))
        self.action_manager = types.SimpleNamespace(action=np.zeros((num_envs, 2), np.float32))
        self.termination_manager = Terminations(["success"] if self.has_success else ["fell"], num_envs)
        self.critic = {"count": np.zeros((num_envs, 3), np.float32)}
        self.obs_buf = {}
        self.recorder_manager = Manager(terms, self)

    def compute(self, update_history=True):
        """Return fresh observations: noise is drawn anew, and a history may go on."""
        policy = (self.count + self.noise.normal(scale=0.01, size=(self.num_envs, 3))).astype(np.float32)
        if update_history:
            self.history = np.stack([self.history[:, 1], policy[:, 2]], 1)
        self.critic["count"][:] = self.count
        return {self.group: np.concatenate([policy, self.history], 1)[:, : self.width], "critic": self.critic}

    def physics(self, action):
        """Count, and draw which episodes end."""
        self.action_manager.action[:] = self.taken = action
        self.common_step_counter += 1
        self.count[:, 2] += 1
        self.reward_buf[:] = action[:, 0] + self.count[:, 2]
        draws = self.rng.random((2, self.num_envs))
        self.reset_terminated[:], self.reset_time_outs[:] = draws[0] < self.end, draws[1] < self.end / 2
        self.reset_buf = self.reset_terminated | self.reset_time_outs
        for name in self.termination_manager.active_terms:
            self.termination_manager.get_term(name)[:] = self.reset_terminated & (self.count[:, 2] % 2 == 0)

    def write_truth(self, before, after):
        """Write down a step: what was shown before it, and after it, None where that is never shown."""
        for env in range(self.num_envs):
            outcome = self.taken[env], self.reward_buf[env], self.reset_terminated[env], self.reset_time_outs[env]
            self.truth.step(env, before[env], *outcome, None if after is None else after[env].copy(), self.rows)
        self.rows += 1

    def reset_idx(self, envs):
        self.count[envs, 1] += 1
        self.count[envs, 2] = 0
        self.history[envs] = 0
        self.action_manager.action[envs] = 0

    def close(self):
        self.recorder_manager.call("close")


class MjlabEnv(CounterEnv):
    """The hooks of mjlab 1.6.0: `reset` shows only what follows it, a step what precedes its resets and its end."""

    group = "actor"

    def reset(self, env_ids=None):
        env_ids = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids)
        for env in env_ids:
            self.truth.cut(env)
        self.reset_idx(env_ids)
        self.obs_buf = self.compute()
        self.recorder_manager.call("record_post_reset", env_ids)
        return self.obs_buf

    def step(self, action):
        before = self.obs_buf[self.group]
        self.physics(action)
        ended = np.flatnonzero(self.reset_buf)
        if self.cfg.auto_reset and len(ended):
            self.recorder_manager.call("record_pre_reset", ended)
            self.reset_idx(ended)
        self.obs_buf = self.compute()
        self.write_truth(before, None if self.cfg.auto_reset else self.obs_buf[self.group])
        if self.cfg.auto_reset and len(ended):
            self.recorder_manager.call("record_post_reset", ended)
        self.recorder_manager.call("record_post_step")
        return self.obs_buf


class IsaacLabEnv(CounterEnv):
    """The hooks of Isaac Lab 3.0.0: before a step, after it and before its resets, before and after each reset."""

    group = "policy"

    def reset(self, env_ids=None):
        env_ids = list(range(self.num_envs)) if env_ids is None else list(env_ids)
        self.recorder_manager.call("record_pre_reset", env_ids)
        for env in env_ids:
            self.truth.cut(env)
        self.reset_idx(env_ids)
        self.recorder_manager.call("record_post_reset", env_ids)
        self.obs_buf = self.compute()
        return self.obs_buf

    def step(self, action):
        before = self.obs_buf[self.group]
        self.action_manager.action[:] = action
        self.recorder_manager.call("record_pre_step")
        self.physics(action)
        if self.recorder_manager.active_terms:
            self.obs_buf = self.compute(update_history=False)
            self.recorder_manager.call("record_post_step")
        self.write_truth(before, self.obs_buf[self.group])
        ended = np.flatnonzero(self.reset_buf).tolist()
        if ended:
            self.recorder_manager.call("record_pre_reset", ended)
            self.reset_idx(ended)
            self.recorder_manager.call("record_post_reset", ended)
        self.obs_buf = self.compute()
        return self.obs_buf

    def close(self):
        for _ in range(3):  # by hand, and when the manager goes
            self.recorder_manager.call("close", "datasets/dataset")


class MjlabRecorderTerm:
    """The base class of mjlab's recorder terms."""

    def __init__(self, cfg, env):
        self._env, self.cfg = env, cfg

    def record_pre_reset(self, env_ids): ...
    def record_post_reset(self, env_ids): ...
    def record_post_step(self): ...
    def close(self): ...


class IsaacLabRecorderTerm:
    """The base class of Isaac Lab's recorder terms."""

    def __init__(self, cfg, env):
        self._env, self.cfg = env, cfg

    def record_pre_reset(self, env_ids):
        return None, None

    def record_post_reset(self, env_ids):
        return None, None

    def record_pre_step(self):
        return None, None

    def record_post_step(self):
        return None, None

    def close(self, file_path): ...


class RecorderTermCfg:
    """The base class of Isaac Lab's configurations of a term."""


def configclass(cls):
    """Make a class whose instances take its annotated attributes by keyword, each with a copy of the default."""
    defaults = {
        name: dataclasses.field(default_factory=lambda x=cls.__dict__[name]: copy.deepcopy(x))
        for name in cls.__annotations__
    }
    for name, field in defaults.items():
        setattr(cls, name, field)
    return dataclasses.dataclass(cls)


def install(monkeypatch):
    """Let `import mjlab` and `import isaaclab` find these."""
    modules = {
        "mjlab": {},
        "mjlab.managers": {},
        "mjlab.managers.recorder_manager": {"RecorderTerm": MjlabRecorderTerm},
        "isaaclab": {},
        "isaaclab.managers": {},
        "isaaclab.managers.recorder_manager": {"RecorderTerm": IsaacLabRecorderTerm},
        "isaaclab.managers.manager_term_cfg": {"RecorderTermCfg": RecorderTermCfg},
        "isaaclab.utils": {"configclass": configclass},
    }
    for name, names in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
