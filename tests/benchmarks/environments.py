"""Wrapped Gymnasium environments: every step recorded, against Gymnasium's own episode statistics."""

from collections.abc import Callable
from typing import Any

import numpy as np

import trajlab as tl

from .table import Row
from .timing import Taken, interleaved, ratio, taken

ENVS, STEPS, ROUNDS = 64, 500, 21
KINDS = {"sync": "64 CartPoles, one after the other (`SyncVectorEnv`)", "vector_entry_point": "... as NumPy arrays"}


def _stepped(envs: Any, actions: np.ndarray, look: Callable[[], Any]) -> Callable[[], Taken]:
    """Return what times as many steps, and one look at the lengths and returns of the episodes."""
    envs.reset(seed=0)

    def go() -> None:
        for action in actions:
            envs.step(action)
        look()

    return lambda: taken(go)


def _rows(kind: str, quick: bool) -> list[Row]:
    import gymnasium as gym
    from gymnasium.wrappers.vector import RecordEpisodeStatistics

    from trajlab.integrations.gymnasium import RecordVectorEpisodes

    num, steps = (4, 20) if quick else (ENVS, STEPS)
    actions = np.random.default_rng(0).integers(0, 2, (steps, num))

    def make() -> Any:
        return gym.make_vec("CartPole-v1", num_envs=num, vectorization_mode=kind)

    recorder = tl.Recorder()
    ours, theirs = RecordVectorEpisodes(make(), recorder), RecordEpisodeStatistics(make())
    contenders = {
        "bare": _stepped(make(), actions, lambda: None),
        "ours": _stepped(ours, actions, lambda: None),
        "looked": _stepped(RecordVectorEpisodes(make(), looked := tl.Recorder()), actions, looked.to_dataset),
        "theirs": _stepped(theirs, actions, lambda: list(theirs.return_queue)),
    }
    times = interleaved(contenders, 2 if quick else ROUNDS, warmup=2)
    each = {name: f"{np.median(found.wall) / steps * 1e6:.0f} us" for name, found in times.items()}
    share, busy = (ratio(getattr(times["ours"], clock), getattr(times["theirs"], clock)) for clock in Taken._fields)
    what = f"{KINDS[kind]}, stepped and recorded: against Gymnasium's `RecordEpisodeStatistics`"
    text = f"{share.median:.2f} times ({each['ours']} to {each['theirs']} a step, {each['bare']} without)"
    rows = [Row(what, "≤ 1.3 times", f"{text}; {busy.median:.2f} in processor time", share.text(), share.median <= 1.3)]
    share = ratio(times["looked"].wall, times["theirs"].wall)
    what = f"... with a Dataset made every {steps} steps"
    return [*rows, Row(what, "", f"{share.median:.2f} times ({each['looked']} a step)", share.text())]


def gymnasium(quick: bool) -> list[Row]:
    """Measure environments whose steps are slow, then some whose steps are fast."""
    return [row for kind in KINDS for row in _rows(kind, quick)]
