"""`record_step()` beside Minari's episode buffer and Gymnasium's episode statistics, on the same NumPy steps."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import trajlab as tl

from .data import wait
from .table import Row
from .timing import Taken, interleaved, ratio, taken

STEPS, ROUNDS = 1000, 9

Step = dict[str, np.ndarray]


def _stream(rng: np.random.Generator, steps: int, envs: int) -> list[Step]:
    """Return steps of arrays (N, ...); episodes are geometric with a mean of 100 steps."""
    return [
        {
            "obs": rng.random((envs, 4), np.float32),
            "action": rng.integers(0, 2, envs),
            "reward": rng.random(envs),
            "terminated": rng.random(envs) < 0.01,
            "truncated": np.zeros(envs, bool),
        }
        for _ in range(steps)
    ]


def _recorded(steps: list[Step]) -> Callable[[], Taken]:
    """Return what measures a recorder, its memory touched before."""
    recorder = tl.Recorder()

    def go() -> None:
        for step in steps:
            recorder.record_step(step)
        wait(recorder)

    def turn() -> Taken:
        recorder.reset()
        return taken(go)

    return turn


def _single(step: Step, env: int) -> dict[str, Any]:
    """Return one environment's step as Minari takes it; the observation is the one after the action."""
    return {
        "observation": step["obs"][env],
        "action": step["action"][env],
        "reward": step["reward"][env],
        "terminated": step["terminated"][env],
        "truncated": step["truncated"][env],
        "info": {},
    }


def _minari(steps: list[Step]) -> Callable[[], Taken]:
    """Return what measures one `EpisodeBuffer` per environment, a new one for each episode."""
    from minari.data_collector import EpisodeBuffer

    envs = len(steps[0]["obs"])
    split = [[_single(step, env) for env in range(envs)] for step in steps]

    def go() -> None:
        kept = []
        buffers = [EpisodeBuffer(observations=data["observation"]) for data in split[0]]
        for row in split:
            for env, data in enumerate(row):
                buffers[env] = buffers[env].add_step_data(data)
                if data["terminated"] or data["truncated"]:
                    kept.append(buffers[env])
                    buffers[env] = EpisodeBuffer(observations=data["observation"])

    return lambda: taken(go)


def _minari_row(rng: np.random.Generator, steps: int, envs: int, rounds: int) -> Row:
    stream = _stream(rng, steps, envs)
    times = interleaved({"ours": _recorded(stream), "minari": _minari(stream)}, rounds)
    share = ratio(times["ours"].wall, times["minari"].wall)
    ours, theirs = (f"{np.median(times[name].wall) / (steps * envs) * 1e6:.2f} us" for name in ("ours", "minari"))
    what = f"{steps} steps, N={envs}, 5 NumPy fields: trajlab `record_step` of all environments at once, against Minari"
    what += " `EpisodeBuffer.add_step_data` of each, split before; it keeps references and copies nothing"
    return Row(what, "", f"{share.median:.2f} times ({ours} to {theirs} a transition)", share.text())


def _with_reset_rows(steps: list[Step]) -> list[Step]:
    """Return the steps as a vector environment with `next_step` gives them: no flag and no reward after an end."""
    ended, out = np.zeros(len(steps[0]["obs"]), bool), []
    for step in steps:
        step = step | {"reward": np.where(ended, 0.0, step["reward"]), "terminated": step["terminated"] & ~ended}
        ended = step["terminated"]
        out.append(step)
    return out


def _replay(steps: list[Step]) -> Any:
    """Return a vector environment that shows the steps one after the other."""
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv

    class Replay(VectorEnv):
        metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
        num_envs = len(steps[0]["obs"])
        single_observation_space = Box(0, 1, (4,))
        rows: Iterator[Step]

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            self.rows = iter(steps)
            return steps[0]["obs"], {}

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            row = next(self.rows)
            return row["obs"], row["reward"], row["terminated"], row["truncated"], {}

    return Replay()


def _episodes(recorder: tl.Recorder) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths and returns of the complete episodes, in the order in which they started."""
    table = tl.episode_table(recorder.to_dataset(incomplete="drop"))
    return table["length"].to_numpy(), table["return"].to_numpy()


def _gymnasium_row(rng: np.random.Generator, steps: int, envs: int, rounds: int) -> Row:
    """Compare lengths and returns of all episodes of a stream with reset rows (`next_step`)."""
    from gymnasium.wrappers.vector import RecordEpisodeStatistics

    stream = _with_reset_rows(_stream(rng, steps, envs))
    plain, wrapped = _replay(stream), RecordEpisodeStatistics(_replay(stream), buffer_length=steps * envs)
    recorder = tl.Recorder(convention=tl.Convention(autoreset="next_step"))

    def ours() -> tuple[np.ndarray, np.ndarray]:
        recorder.reset()
        plain.reset()
        for _ in stream:
            _, reward, terminated, truncated, _ = plain.step(None)
            recorder.record_step({"reward": reward, "terminated": terminated, "truncated": truncated})
        return _episodes(recorder)

    def theirs() -> tuple[np.ndarray, np.ndarray]:
        for queue in (wrapped.length_queue, wrapped.return_queue, wrapped.time_queue):
            queue.clear()
        wrapped.reset()
        for _ in stream:
            wrapped.step(None)
        return np.array(wrapped.length_queue), np.array(wrapped.return_queue)

    for found, expected in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(np.sort(found), np.sort(expected))
    times = interleaved({"ours": lambda: taken(ours), "theirs": lambda: taken(theirs)}, rounds)
    share = ratio(times["ours"].wall, times["theirs"].wall)
    each = (f"{np.median(times[name].wall) / steps * 1e6:.0f} us" for name in ("ours", "theirs"))
    what = f"{steps} steps, N={envs}, lengths and returns of all episodes: trajlab `record_step`, which keeps every reward,"
    what += " and `episode_table` at the end, against Gymnasium's vector `RecordEpisodeStatistics`"
    return Row(what, "", f"{share.median:.2f} times ({' to '.join(each)} a step)", share.text())


def rows(quick: bool) -> list[Row]:
    """Measure one environment, then many, against Minari; then many against Gymnasium."""
    rng = np.random.default_rng(1)
    steps, envs, rounds = (120, 8, 2) if quick else (STEPS, 64, ROUNDS)
    return [*(_minari_row(rng, steps, n, rounds) for n in (1, envs)), _gymnasium_row(rng, steps, envs, rounds)]
