"""A counter whose episodes are known: each action is added; at GOAL it terminates, after LIMIT steps it is truncated.

Each package's test writes it against that package's own base class. What it should do is computed here in plain
Python.
"""

from __future__ import annotations

from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
from conventions.truth import Reason, TrueEpisode

GOAL, LIMIT = 5, 4
ROWS, ENVS = 23, 3
ACTIONS = np.random.default_rng(7).integers(1, 3, (ROWS, ENVS)).astype(np.int32)
"""The actions of a fixed policy, (T, N): 1 or 2, so that some episodes terminate and some are truncated."""


def observe(count):
    """Return the observation of a count: the count and its square."""
    return jnp.stack([count, count * count]).astype(jnp.float32)


def reward_of(count, action):
    """Return the reward of an action taken at a count."""
    return (10 * count + action).astype(jnp.float32)


def true_episodes(actions: np.ndarray = ACTIONS, *, resets_late: bool = False) -> list[list[TrueEpisode]]:
    """Return the episodes of each environment under these actions, the last one cut where it is open.

    With `resets_late` the action after an end is ignored.
    """
    return [_episodes_of(column.tolist(), resets_late) for column in actions.T]


def _episodes_of(actions: list[int], resets_late: bool) -> list[TrueEpisode]:
    episodes: list[TrueEpisode] = []
    counts, taken = [0], []
    is_reset_row = False
    for action in actions:
        if is_reset_row:
            is_reset_row = False
            continue
        counts.append(counts[-1] + action)
        taken.append(action)
        reason = _reason(counts[-1], len(taken))
        if reason is not None:
            episodes.append(_episode(counts, taken, reason))
            counts, taken, is_reset_row = [0], [], resets_late
    return [*episodes, _episode(counts, taken, "cut")] if taken else episodes


def _reason(count: int, steps: int) -> Reason | None:
    if count >= GOAL:
        return "terminated"
    return "truncated" if steps >= LIMIT else None


def _episode(counts: list[int], taken: list[int], reason: Reason) -> TrueEpisode:
    obs = [[count, count * count] for count in counts]
    return TrueEpisode(obs, taken, [10 * count + a for count, a in zip(counts, taken, strict=False)], reason)


@contextmanager
def promoting():
    """Let JAX promote dtypes and ranks, as the packages' own code needs."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
