"""CartPole written as JSON Lines, step by step, against `json.dumps` of lists with a flush for each step."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .table import Row
from .timing import Taken, interleaved, ratio, taken

STEPS, ROUNDS, LEAST = 20_000, 9, 3.0


def _plain(value: Any) -> Any:
    """Return arrays as lists and NumPy's scalars as Python's, as such a writer must."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _theirs(env: Any, path: str) -> Any:
    import gymnasium as gym

    class Theirs(gym.Wrapper):
        """Writes a line of plain values for each step, and flushes it."""

        number, file = 0, None

        def _write(self, record: dict[str, Any]) -> None:
            self.file.write(json.dumps({key: _plain(value) for key, value in record.items()}) + "\n")
            self.file.flush()

        def reset(self, **kwargs: Any) -> Any:
            obs, info = self.env.reset(**kwargs)
            self.close_file()
            self.file, self.t = (Path(path) / f"episode_{self.number:05d}.jsonl").open("w"), 0
            self._write({"event": "reset", "episode": self.number, "obs": obs, "info": info})
            self.number += 1
            return obs, info

        def step(self, action: Any) -> Any:
            obs, reward, terminated, truncated, info = self.env.step(action)
            self.t += 1
            record = {"event": "step", "t": self.t, "action": action, "obs": obs, "reward": reward}
            self._write(record | {"terminated": terminated, "truncated": truncated, "info": info})
            if terminated or truncated:
                self.close_file()
            return obs, reward, terminated, truncated, info

        def close_file(self) -> None:
            if self.file is not None:
                self.file.close()

    return Theirs(env)


def _ours(env: Any, path: str) -> Any:
    from trajlab.integrations.gymnasium import RecordTrajectory

    return RecordTrajectory(env, path)


def _bare(env: Any, path: str) -> Any:
    return env


def _policy(obs: np.ndarray) -> int:
    """Return an action that keeps the pole up for a while."""
    return 1 if obs[2] + obs[3] > 0 else 0


def _stream(steps: int) -> list[tuple[Any, list[tuple[int, Any]]]]:
    """Return episodes of CartPole: what each began with, and its actions, each with what it led to."""
    import gymnasium as gym

    env, episodes, count = gym.make("CartPole-v1"), [], 0
    while count < steps:
        first = env.reset(seed=len(episodes))
        obs, taken_steps, is_over = first[0], [], False
        while not is_over and count < steps:
            action = _policy(obs)
            result = obs, _, terminated, truncated, _ = env.step(action)
            taken_steps.append((action, result))
            is_over, count = terminated or truncated, count + 1
        episodes.append((first, taken_steps))
    return episodes


def _replayed(
    wrap: Callable[[Any, str], Any], episodes: list[tuple[Any, list[tuple[int, Any]]]]
) -> Callable[[], Taken]:
    """Return what times an environment that answers with these steps, and costs next to nothing itself."""
    import gymnasium as gym

    class Replay(gym.Env):
        observation_space, action_space = (
            getattr(gym.make("CartPole-v1"), f"{kind}_space") for kind in ("observation", "action")
        )
        answers: Any

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return next(self.answers)

        def step(self, action: Any) -> Any:
            return next(self.answers)

    def turn() -> Taken:
        with tempfile.TemporaryDirectory() as path:
            inner = Replay()
            env = wrap(inner, path)
            inner.answers = iter(
                [answer for first, rest in episodes for answer in (first, *(result for _, result in rest))]
            )

            def go() -> None:
                for _, rest in episodes:
                    env.reset()
                    for action, _ in rest:
                        env.step(action)

            return taken(go)

    return turn


def _stepped(wrap: Callable[[Any, str], Any], steps: int) -> Callable[[], Taken]:
    """Return what times so many steps of CartPole itself."""
    import gymnasium as gym

    def turn() -> Taken:
        with tempfile.TemporaryDirectory() as path:
            env = wrap(gym.make("CartPole-v1"), path)
            obs, _ = env.reset(seed=0)

            def go() -> None:
                nonlocal obs
                for _ in range(steps):
                    obs, _, terminated, truncated, _ = env.step(_policy(obs))
                    if terminated or truncated:
                        obs, _ = env.reset()

            return taken(go)

    return turn


def _row(what: str, must: str, times: dict[str, Taken], steps: int) -> Row:
    rate = {name: f"{steps / np.median(found.wall):,.0f}" for name, found in times.items()}
    share, busy = (ratio(getattr(times["theirs"], clock), getattr(times["ours"], clock)) for clock in Taken._fields)
    text = f"{share.median:.2f} times, {busy.median:.2f} in processor time ({rate['ours']} to {rate['theirs']} steps a second, {rate['bare']} unwritten)"
    return Row(what, must, text, share.text(), share.median >= LEAST if must else None)


def jsonl(quick: bool) -> list[Row]:
    """Measure what writing takes, then the environment with it."""
    steps, rounds = (100, 2) if quick else (STEPS, ROUNDS)
    wraps = {"bare": _bare, "ours": _ours, "theirs": _theirs}
    episodes = _stream(steps)
    times = interleaved({name: _replayed(wrap, episodes) for name, wrap in wraps.items()}, rounds)
    what = "steps of CartPole, replayed, written as JSON Lines by `RecordTrajectory`: steps a second, against"
    rows = [_row(f"{what} `json.dumps` of lists with a flush for each", f"≥ {LEAST:g} times", times, steps)]
    times = interleaved({name: _stepped(wrap, steps) for name, wrap in wraps.items()}, rounds)
    return [*rows, _row("... stepped by Gymnasium, which takes its own time", "", times, steps)]
