"""Run the recorder term in mjlab itself, on the CPU, and compare what it recorded with plain lists.

Not part of any test run, as it needs mjlab. In an environment of its own:

    pip install torch==2.13.0 "mjlab==1.6.0" trajlab
    python tests/peers/mjlab_peer.py
"""

import dataclasses
import datetime
import importlib.metadata
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.envs.mdp import time_out
from mjlab.managers.recorder_manager import RecorderTerm, RecorderTermCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.tasks.cartpole.cartpole_env_cfg import cartpole_balance_env_cfg
from mjlab.utils.noise import GaussianNoiseCfg
from mjlab.utils.os import dump_yaml
from plain_lists import PlainLists, reasons

from trajlab.integrations.mjlab import RecordEpisodes, SharedRecorder


def fell(env):
    return env.scene["cartpole"].data.joint_pos[:, 1].abs() > 0.12


def joints(env):
    data = env.scene["cartpole"].data
    return {"joint_pos": data.joint_pos, "joint_vel": data.joint_vel}


class Nothing(RecorderTerm):
    """A term that does nothing."""


class Log(RecorderTerm):
    """What each hook sees: the action and the newest step of the history in the observation, of one environment."""

    lines: ClassVar[list[str]] = []

    def write(self, hook):
        obs, action = self._env.obs_buf["actor"][0, -1].item(), self._env.action_manager.action[0, 0].item()
        self.lines.append(f"{hook:<18} obs_buf {obs: .4f}  action {action: .4f}  ended {bool(self._env.reset_buf[0])}")

    def record_pre_reset(self, env_ids):
        self.write("record_pre_reset")

    def record_post_reset(self, env_ids):
        if self._env.common_step_counter:
            self.write("record_post_reset")

    def record_post_step(self):
        self.write("record_post_step")


def make(num_envs, recorders, *, auto_reset=True):
    cfg = cartpole_balance_env_cfg()
    cfg.scene.num_envs, cfg.episode_length_s, cfg.seed, cfg.auto_reset = num_envs, 0.8, 7, auto_reset
    cfg.terminations = {
        "time_out": TerminationTermCfg(func=time_out, time_out=True),
        "fell": TerminationTermCfg(func=fell),
    }
    actor = cfg.observations["actor"]
    for name, term in actor.terms.items():
        actor.terms[name] = dataclasses.replace(
            term, noise=GaussianNoiseCfg(std=0.01), history_length=3, delay_min_lag=0, delay_max_lag=2
        )
    cfg.recorders = recorders
    return ManagerBasedRlEnv(cfg, device="cpu")


def play(env, steps, *, truth=None):
    """Step with actions from a generator of their own; return what was shown, and write `truth`."""
    draws = torch.Generator().manual_seed(1)
    torch.manual_seed(0)
    obs, _ = env.reset(seed=3)
    shown = [obs["actor"].clone()]
    for _ in range(steps):
        action = 2 * torch.rand(env.num_envs, 1, generator=draws) - 1
        before = obs["actor"].clone()
        obs, reward, terminated, truncated, _ = env.step(action)
        ended = terminated | truncated
        if truth is not None:
            truth.step(before, action, reward, terminated, truncated, obs["actor"])
        due = (torch.rand(env.num_envs, generator=draws) < 0.05) | (ended & (not env.cfg.auto_reset))
        if due.any():
            obs, _ = env.reset(env_ids=due.nonzero().squeeze(-1))
            if truth is not None:
                truth.cut(due.nonzero().squeeze(-1).tolist())
        shown.append(obs["actor"].clone())
    return torch.stack(shown)


def check(auto_reset):
    shared = SharedRecorder()
    first = {"recorder": shared, "before_step": {"state": joints}}
    terms = {
        "trajlab": RecorderTermCfg(func=RecordEpisodes, params=first),
        "outcome": RecorderTermCfg(func=RecordEpisodes, params={"recorder": shared, "success": "time_out"}),
    }
    plain = make(8, {}, auto_reset=auto_reset)
    shown, random_state = play(plain, 80), torch.get_rng_state()
    env, truth = make(8, terms, auto_reset=auto_reset), PlainLists(8)
    recorded = play(env, 80, truth=truth)
    assert torch.equal(shown, recorded), "the observations differ from those without a term"
    assert torch.equal(random_state, torch.get_rng_state()), "the random state differs from that without a term"
    ds = shared.recorder.to_dataset()
    count = truth.compare(ds, has_final=not auto_reset)
    assert (ds["success"].values == (ds["truncated"] & ds["mask"]).any("time").values).all()
    one = shared.get_episode(3)
    with tempfile.TemporaryDirectory() as folder:
        dump_yaml(
            Path(folder) / "env.yaml", {"recorders": {name: dataclasses.asdict(term) for name, term in terms.items()}}
        )
    env.close()
    env.close()
    print(
        f"auto_reset={auto_reset}: {count} episodes of 8 environments ({reasons(ds)}) equal plain lists, bit for bit;"
    )
    print("  observations with noise, history and delay, and the random state, are those without a term")
    print(f"  get_episode(3) holds {one['length'].values.tolist()} steps, with {sorted(map(str, one.data_vars))}")


def hooks():
    env = make(2, {"log": RecorderTermCfg(func=Log)})
    torch.manual_seed(0)
    env.reset(seed=3)
    for step in range(40):
        env.step(torch.full((2, 1), 0.5 + 0.01 * step))
        if env.reset_buf[0]:
            break
    print(f"\nwhat the hooks see of environment 0; the action of the last step was {0.5 + 0.01 * step:.4f}:")
    print("\n".join(Log.lines[-4:]))


def speed():
    print("\nmilliseconds per step spent in the hooks, median and range of steps, the two terms in turn:")
    for num_envs, steps in ((64, 100), (4096, 15)):
        terms = {"a term that does nothing": Nothing, "RecordEpisodes": RecordEpisodes}
        envs = {name: make(num_envs, {"a": RecorderTermCfg(func=term)}) for name, term in terms.items()}
        times = {name: [] for name in envs}
        for name, env in envs.items():
            for hook in ("record_pre_reset", "record_post_reset", "record_post_step"):
                setattr(env.recorder_manager, hook, timed(getattr(env.recorder_manager, hook), times[name]))
            env.reset(seed=0)
        for _ in range(steps):
            for name, env in envs.items():
                times[name].append(0.0)
                env.step(torch.zeros(num_envs, 1))
        found = {name: 1e3 * np.array(t[-steps * 4 // 5 :]) for name, t in times.items()}
        text = ", ".join(f"{name} {np.median(t):.3f} ({t.min():.3f}-{t.max():.3f})" for name, t in found.items())
        print(f"  {num_envs:>4} environments: {text}")


def timed(hook, times):
    """Return a hook that adds the seconds it takes to the last of `times`."""

    def call(*args):
        start = time.perf_counter()
        hook(*args)
        if times:
            times[-1] += time.perf_counter() - start

    return call


def main():
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("mjlab", "torch", "jax", "numpy"))
    print(f"{datetime.date.today()}, {versions}")
    check(True)
    check(False)
    hooks()
    speed()


if __name__ == "__main__":
    main()
