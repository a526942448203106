"""Run the recorder term under Isaac Lab's own environment class and recorder manager, on the CPU, without a simulator.

`ManagerBasedRLEnv` steps and resets as it always does; its scene and its other managers are stand-ins that count. Not
part of any test run, as it needs Isaac Lab. In an environment of its own, with the wheel unzipped in a folder:

    pip install torch==2.13.0 warp-lang prettytable h5py lazy_loader gymnasium usd-core trajlab
    pip download --no-deps --only-binary=:all: --python-version 3.12 isaaclab==3.0.0
    python -m zipfile -e isaaclab-3.0.0-py3-none-any.whl isaaclab_wheel
    PYTHONPATH=isaaclab_wheel python tests/peers/isaaclab_peer.py
"""

import datetime
import importlib.metadata
import tempfile
import time
import types
from typing import ClassVar
from unittest.mock import MagicMock

import numpy as np
import torch
from isaaclab.envs.manager_based_rl_env import ManagerBasedRLEnv
from isaaclab.managers import recorder_manager as isaac
from isaaclab.managers.manager_term_cfg import RecorderTermCfg
from isaaclab.utils import configclass
from isaaclab.utils.io import dump_yaml
from plain_lists import PlainLists, reasons

import trajlab as tl
from trajlab.integrations.isaaclab import RecordEpisodesCfg, SharedRecorder

PAYLOAD = {"a": 37, "b": 37, "c": 19, "d": 72, "e": 0, "f": 0, "g": 0}
"""Widths of the fields of Isaac Lab's pull request 8822: float32, and bool where there is none."""


class Counter(ManagerBasedRLEnv):
    """Isaac Lab's environment with counters for a scene."""

    num_envs, device, physics_dt, step_dt = None, "cpu", 0.01, 0.01

    def __init__(self, num_envs, recorders=None, *, end=0.2):
        quiet = MagicMock(active_terms=(), reset=lambda *args: {})
        self.num_envs, self.end, self.device = num_envs, end, "cpu"
        self.cfg = types.SimpleNamespace(
            decimation=1, compute_final_obs=False, num_rerenders_on_reset=0, seed=7, wait_for_textures=False,
            sim=types.SimpleNamespace(render_interval=1, dt=0.01), scene=types.SimpleNamespace(num_envs=num_envs),
        )  # fmt: skip
        self.sim = MagicMock(is_rendering=False, consume_reset_request=lambda: False, is_playing=lambda: True)
        self.scene, self.extras, self.render_enabled, self.video_recorders = MagicMock(), {}, False, []
        self._physics_handles_decimation, self._sim_step_counter, self.common_step_counter = False, 0, 0
        self._is_closed, self.has_rtx_sensors = True, False
        self.command_manager = self.event_manager = self.curriculum_manager = quiet
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.draws, self.noise = torch.Generator().manual_seed(2), torch.Generator().manual_seed(4)
        self.history = torch.zeros(num_envs, 2)
        self.action_manager = Actions(num_envs)
        self.observation_manager = types.SimpleNamespace(compute=self.observe, reset=lambda ids: {})
        self.termination_manager = Terminations(self)
        self.reward_manager = types.SimpleNamespace(compute=self.rewards, reset=lambda ids: {})
        self.payload = {
            key: torch.rand(num_envs, width) if width else torch.rand(num_envs) < 0.5 for key, width in PAYLOAD.items()
        }
        self.recorder_manager = isaac.RecorderManager(recorders, self)

    def observe(self, update_history=False):
        count = self.episode_length_buf.float()
        if update_history:
            self.history = torch.stack([self.history[:, 1], count], 1)
        noisy = count + 0.01 * torch.randn(self.num_envs, generator=self.noise)
        return {"policy": torch.cat([noisy[:, None], self.history], 1)}

    def rewards(self, dt):
        return self.action_manager.action[:, 0] + self.episode_length_buf


class Actions:
    def __init__(self, num_envs):
        self.action, self.active_terms = torch.zeros(num_envs, 2), ()

    def process_action(self, action):
        self.action[:] = action

    def apply_action(self):
        pass

    def reset(self, env_ids):
        self.action[env_ids] = 0
        return {}


class Terminations:
    active_terms = ("success", "time_out")

    def __init__(self, env):
        self.env = env
        self.terminated, self.time_outs = (torch.zeros(env.num_envs, dtype=torch.bool) for _ in range(2))

    def compute(self):
        draws = torch.rand(2, self.env.num_envs, generator=self.env.draws)
        self.terminated[:], self.time_outs[:] = draws[0] < self.env.end, draws[1] < self.env.end / 2
        return self.terminated | self.time_outs

    def get_term(self, name):
        return self.terminated if name == "success" else self.time_outs

    def reset(self, env_ids):
        return {}


class Nothing(isaac.RecorderTerm):
    """A term that does nothing."""


class AddPayload(isaac.RecorderTerm):
    """A term that gives the payload to Isaac Lab's own store."""

    def record_post_step(self):
        return "payload", self._env.payload


class Log(isaac.RecorderTerm):
    """What each hook sees of environment 0."""

    lines: ClassVar[list[str]] = []

    def write(self, hook):
        obs, action = self._env.obs_buf["policy"][0, 0].item(), self._env.action_manager.action[0, 0].item()
        steps = int(self._env.episode_length_buf[0])
        self.lines.append(f"{hook:<18} obs_buf {obs: .4f}  action {action: .4f}  steps made {steps}")
        return None, None

    def record_pre_step(self):
        return self.write("record_pre_step")

    def record_post_step(self):
        return self.write("record_post_step")

    def record_pre_reset(self, env_ids):
        return self.write("record_pre_reset") if hasattr(self._env, "obs_buf") else (None, None)

    def record_post_reset(self, env_ids):
        return self.write("record_post_reset") if hasattr(self._env, "obs_buf") else (None, None)


def terms(**own):
    """Return the configuration of a recorder manager that exports nothing itself."""

    @configclass
    class Recorders(isaac.RecorderManagerBaseCfg):
        dataset_export_mode = isaac.DatasetExportMode.EXPORT_NONE

    cfg = Recorders()
    for name, term in own.items():
        setattr(cfg, name, term)
    return cfg


def play(env, steps, truth=None):
    draws = torch.Generator().manual_seed(1)
    obs, _ = env.reset()
    shown = [obs["policy"].clone()]
    for _ in range(steps):
        action, before = torch.rand(env.num_envs, 2, generator=draws), obs["policy"].clone()
        obs, reward, terminated, truncated, _ = env.step(action)
        if truth is not None:
            truth.step(before, action, reward, terminated, truncated, env.terminal)
        due = torch.rand(env.num_envs, generator=draws) < 0.05
        if due.any():
            obs, _ = env.reset(due.nonzero().squeeze(-1))
            if truth is not None:
                truth.cut(due.nonzero().squeeze(-1).tolist())
        shown.append(obs["policy"].clone())
    return torch.stack(shown)


class KeepTerminal(isaac.RecorderTerm):
    """Keep what was shown after a step, for the plain lists."""

    def record_post_step(self):
        self._env.terminal = self._env.obs_buf["policy"].clone()
        return None, None


def check():
    shared = SharedRecorder()
    state = {"state": lambda env: {"robot/steps": env.episode_length_buf}}
    plain = Counter(8, terms(a=RecorderTermCfg(class_type=Nothing)))
    shown = play(plain, 80)
    env = Counter(
        8,
        terms(
            keep=RecorderTermCfg(class_type=KeepTerminal),
            trajlab=RecordEpisodesCfg(params={"recorder": shared}),
            more=RecordEpisodesCfg(params={"recorder": shared, "before_step": state}),
        ),
    )
    truth = PlainLists(8)
    assert torch.equal(shown, play(env, 80, truth)), "the observations differ from those under a term that does nothing"
    assert torch.equal(plain.noise.get_state(), env.noise.get_state())
    ds = shared.recorder.to_dataset()
    count = truth.compare(ds, has_final=True)
    flat = tl.transitions(ds)
    assert (flat["state.robot.steps"].values == flat["time"].values).all()
    assert (ds["success"].values == (ds["end_reason"].values == "terminated")).all()
    assert (ds["seed"].values == 7).all()
    one = shared.get_episode(3)
    with tempfile.TemporaryDirectory() as folder:
        dump_yaml(f"{folder}/env.yaml", env.recorder_manager.cfg)  # as training scripts do
    for _ in range(2):
        env.recorder_manager.close()
    assert not any(not episode.is_empty() for episode in env.recorder_manager._episodes.values())
    print(f"{count} episodes of 8 environments ({reasons(ds)}) equal plain lists, bit for bit;")
    print("  observations with noise and history, and the random state, are those under a term that does nothing")
    print(f"  get_episode(3) holds {one['length'].values.tolist()} steps, with {sorted(map(str, one.data_vars))}")


def hooks():
    env = Counter(2, terms(log=RecorderTermCfg(class_type=Log)))
    env.reset()
    for step in range(40):
        env.step(torch.full((2, 2), 0.5 + 0.01 * step))
        if env.reset_buf[0]:
            break
    print(f"\nwhat the hooks see of environment 0; the action of the last step was {0.5 + 0.01 * step:.4f}:")
    print("\n".join(Log.lines[-6:]))


def speed():
    print("\nmilliseconds per step, payload of pull request 8822, median and range of 5 rounds, in turn:")
    reads = {key: lambda env, key=key: env.payload[key] for key in PAYLOAD}
    for num_envs, steps in ((64, 20), (256, 20), (4096, 20)):
        cfgs = {
            "no-op term": RecorderTermCfg(class_type=Nothing),
            "add_to_episodes": RecorderTermCfg(class_type=AddPayload),
            "RecordEpisodes": RecordEpisodesCfg(params={"observation": None, "after_step": reads}),
        }
        envs = {name: Counter(num_envs, terms(a=cfg), end=0.0) for name, cfg in cfgs.items()}
        times = {name: [] for name in envs}
        action = torch.zeros(num_envs, 2)
        for round_number in range(6):
            for name, env in envs.items():
                manager = env.recorder_manager
                manager._episodes = {i: isaac.EpisodeData() for i in range(num_envs)}
                env.action_manager.action[:], env.reward_buf = action, action[:, 0]
                env.reset_terminated, env.reset_time_outs = (
                    env.termination_manager.terminated,
                    env.termination_manager.time_outs,
                )
                start = time.perf_counter()
                for _ in range(steps):
                    manager.record_pre_step()
                    manager.record_post_step()
                if round_number:
                    times[name].append(1e3 * (time.perf_counter() - start) / steps)
        text = ", ".join(f"{name} {np.median(t):.3f} ({min(t):.3f}-{max(t):.3f})" for name, t in times.items())
        print(f"  {num_envs:>4} environments: {text}")


def main():
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("torch", "jax", "numpy", "warp-lang")
    )
    print(f"{datetime.date.today()}, isaaclab 3.0.0, {versions}")
    check()
    hooks()
    speed()


if __name__ == "__main__":
    main()
