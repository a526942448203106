"""A walk in vectorised environments, recorded in each of the ways that frameworks do it, and wrongly."""

from typing import Any

import numpy as np


def walk(
    reset: str = "same_step",
    *,
    rows: int = 120,
    envs: int = 4,
    ends: float = 0.2,
    limit: int = 10**9,
    start: str = "fixed",
    terminates: bool = True,
    warm_up: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """Return a chunk (T, N, ...) of walkers who know where they are and how long they have walked.

    Parameters
    ----------
    reset : {"same_step", "next_step"}
        What stands after an end: a transition, or a reset row, with action -1 and reward 0.
    ends : float
        Probability that a step is the last.
    limit : int
        Steps after which an episode is truncated.
    start : {"fixed", "own", "random"}
        Whether all episodes start at one place, at one of each environment, or anywhere.
    terminates : bool
        False: an end by chance is not there.
    warm_up : int
        Rows that are not recorded.
    """
    rng = np.random.default_rng(seed)
    cells: dict[str, list[Any]] = {name: [] for name in FIELDS}
    places = {"fixed": np.full(envs, 0.5), "own": np.arange(envs) + 0.5}
    is_reset = np.zeros(envs, bool)

    def begin() -> np.ndarray:
        return np.stack([rng.normal(size=envs) if start == "random" else places[start], np.zeros(envs)], axis=1)

    now = begin()
    for _ in range(warm_up + rows):
        fresh = begin()
        action = np.where(is_reset, -1, rng.integers(0, 4, envs))
        moved = np.where(is_reset[:, None], fresh, now + np.stack([rng.normal(size=envs), np.ones(envs)], axis=1))
        terminated = ~is_reset & (rng.random(envs) < ends) & terminates
        truncated = ~is_reset & (moved[:, 1] >= limit) & ~terminated
        reward = np.where(is_reset, 0.0, 1.0)
        for name, value in zip(FIELDS, (now, action, reward, terminated, truncated, moved), strict=True):
            cells[name].append(value)
        ended = terminated | truncated
        is_reset = ended & (reset == "next_step")
        now = np.where((ended & ~is_reset)[:, None], fresh, moved)
    stacked = {name: np.array(values[warm_up:]) for name, values in cells.items()}
    dtypes = {"obs": np.float32, "next_obs": np.float32, "reward": np.float32, "action": np.int32}
    return {name: values.astype(dtypes.get(name, values.dtype)) for name, values in stacked.items()}


FIELDS = ("obs", "action", "reward", "terminated", "truncated", "next_obs")


def without(chunk: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a chunk without some of its fields."""
    return {name: value for name, value in chunk.items() if name not in names}


def late(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk whose flags stand one row too late."""
    shifted = {name: np.roll(chunk[name], 1, axis=0) for name in ("terminated", "truncated")}
    for flags in shifted.values():
        flags[0] = False
    return chunk | shifted


def doubled(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk whose flags stand on the row after the end, too."""
    return chunk | {name: chunk[name] | late(chunk)[name] for name in ("terminated", "truncated")}


def replaced(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk whose next observation is the one of the next row, also after an end."""
    following = np.concatenate([chunk["obs"][1:], chunk["next_obs"][-1:]])
    return chunk | {"next_obs": following}


def strided(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk in result alignment: an observation stands on the row of the action that led to it.

    Its first row holds nothing but the first observation. Where a reset in the same step follows, the last is replaced.
    """
    following = np.where((chunk["action"] < 0).any(), chunk["next_obs"], replaced(chunk)["next_obs"])
    rows = without(chunk, "next_obs") | {"obs": following}
    first = {name: np.zeros_like(values[:1]) for name, values in rows.items()} | {"obs": chunk["obs"][:1]}
    return {name: np.concatenate([first[name], values]) for name, values in rows.items()}
