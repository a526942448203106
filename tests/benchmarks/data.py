"""Chunks to measure with, and waiting for what a recorder has still to write."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl


class Transitions(NamedTuple):
    """What a collection call returns, (T, N)."""

    action: Any
    reward: Any
    done: Any


class States(NamedTuple):
    """Stacked environment states, (T, N, ...): 136 bytes a step."""

    player_positions: Any
    player_inventory: Any
    block_resources: Any


def transitions(rng: np.random.Generator, steps: int, envs: int, *, mean: float = 100.0) -> Transitions:
    """Return one chunk on the device; episodes are geometric with the given mean length."""
    shape = (steps, envs)
    return Transitions(
        jnp.asarray(rng.integers(0, 18, shape, np.int32)),
        jnp.asarray(rng.random(shape, np.float32)),
        jnp.asarray(rng.random(shape, np.float32) < 1 / mean),
    )


def states(rng: np.random.Generator, steps: int, envs: int) -> States:
    """Return the states beside one chunk, on the device."""
    shape = (steps, envs)
    return States(
        jnp.asarray(rng.integers(0, 50, (*shape, 1, 2), np.int16)),
        jnp.asarray(rng.integers(0, 99, (*shape, 1, 34), np.int16)),
        jnp.asarray(rng.integers(0, 9, (*shape, 8, 8), np.uint8)),
    )


def bytes_of(*trees: Any) -> int:
    """Return the bytes of all arrays."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(trees))


def wait(recorder: tl.Recorder) -> None:
    """Wait until everything recorded has been written, and consumers on the device have taken it."""
    session = recorder._session
    if session is not None:
        jax.block_until_ready([block.box[-1][0] for block in session.log.blocks])
    jax.block_until_ready([vars(consumer) for consumer in recorder._delivery._consumers])


def recording(rng: np.random.Generator, cells: int, envs: int, steps: int) -> tuple[tl.Recorder, int]:
    """Return a recorder that holds about so many cells of (action, reward, done, obs of 4), and how many exactly."""
    recorder = tl.Recorder()
    rounds = -(-cells // (envs * steps))
    chunk = None
    for number in range(rounds):
        if number % 8 == 0:
            chunk = transitions(rng, steps, envs)._asdict()
            chunk["obs"] = jnp.asarray(rng.random((steps, envs, 4), np.float32))
        recorder.record(chunk)
    wait(recorder)
    return recorder, rounds * envs * steps
