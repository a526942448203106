"""The quickstart's training loop with recording against the same loop without."""

import gc
from collections.abc import Callable

import jax
import numpy as np

import trajlab as tl
from trajlab.testing import ppo

from .data import wait
from .table import Row
from .timing import Spread, Taken, ratio, taken

PAIRS = 10
PIECE = 10
"""Iterations that one of a pair runs before it is the other's turn."""
LIMIT = 1.03
STREAMING_LIMIT = 1.05


class _Training:
    """One training, with a recorder or without, which goes on piece by piece."""

    def __init__(self, agent: ppo.Agent, start: ppo.TrainState, recorder: tl.Recorder | None) -> None:
        self.agent, self.train_state, self.recorder = agent, start, recorder

    def go_on(self, iterations: int) -> None:
        """Train; wait for the last update and, where there is a recorder, for its writes."""
        for _ in range(iterations):
            self.train_state, chunk, env_states = self.agent.collect(self.train_state)
            if self.recorder is not None:
                self.recorder.record(chunk, state=env_states)
            self.train_state = self.agent.update(self.train_state, chunk)
        jax.block_until_ready(self.train_state)
        if self.recorder is not None:
            wait(self.recorder)


def _recorder() -> tl.Recorder:
    """Return a new recorder, labelled as in the quickstart."""
    return tl.Recorder(
        dims={"obs": ["component"]},
        coords={"component": ["position", "velocity", "angle", "angular velocity"]},
        units={"obs": ["m", "m/s", "rad", "rad/s"], "state.theta": "rad"},
    )


def _streaming() -> tl.Recorder:
    """Return a recorder that keeps nothing but the counts of actions and the moments of the observation."""
    return tl.Recorder(retain=False, consumers=[tl.StreamingHistogram(), tl.StreamingTrace("obs")])


def _pair(
    agent: ppo.Agent, start: ppo.TrainState, iterations: int, make_recorder: Callable[[], tl.Recorder]
) -> np.ndarray:
    """Return the seconds and processor seconds (2, 2) of a training without recording and of one with it."""
    trainings = [_Training(agent, start, None), _Training(agent, start, make_recorder())]
    sums = np.zeros((2, 2))
    gc.collect()
    for number, done in enumerate(range(0, iterations, PIECE)):
        piece = min(PIECE, iterations - done)
        for which in (0, 1) if number % 2 else (1, 0):
            sums[which] += taken(lambda training=trainings[which], piece=piece: training.go_on(piece))
    return sums


def loop(quick: bool) -> list[Row]:
    """Measure the quickstart's training with a recorder, labelled as there, against without."""
    return _loop(quick, "a new recorder", _recorder, LIMIT)


def streaming(quick: bool) -> list[Row]:
    """Measure it with streaming statistics of which nothing else is kept."""
    return _loop(quick, "a streaming histogram and trace", _streaming, STREAMING_LIMIT)


def _loop(quick: bool, what: str, make_recorder: Callable[[], tl.Recorder], limit: float) -> list[Row]:
    """Measure pairs of trainings that start alike and run the same compiled functions, a few iterations in turn."""
    config = ppo.Config(num_envs=8, num_steps=16, num_iterations=3) if quick else ppo.Config()
    iterations = config.num_iterations
    agent = ppo.make("CartPole-v1", config)
    start = agent.init(jax.random.key(0))
    pairs = np.stack([_pair(agent, start, iterations, make_recorder) for _ in range(1 + (2 if quick else PAIRS))])[1:]
    plain, recorded = (Taken(*pairs[:, which].T) for which in (0, 1))
    share, busy = (ratio(x, y) for x, y in zip(recorded, plain, strict=True))
    what = f"the quickstart's training, {iterations} iterations, with {what} against without"
    seconds = " to ".join(f"{Spread.of(times.wall).median:.2f} s" for times in (recorded, plain))
    text = f"{share.median:.3f} ({seconds}); {busy.median:.3f} in processor time"
    return [Row(what, f"≤ {limit:g} times", text, share.text(3), share.median <= limit)]
