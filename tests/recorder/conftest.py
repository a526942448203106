"""What the tests of the recorder share."""

import time

import jax
import jax.numpy as jnp
import pytest

import trajlab.block.log


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks of four chunks, so that a handful of chunks fills several."""
    monkeypatch.setattr(trajlab.block.log, "MIN_BYTES", 1)


@pytest.fixture(params=["numpy", "jax", "mixed", "flags_numpy"])
def home(request):
    """Where the arrays of a chunk live."""
    return request.param


@jax.jit
def spin(x, times):
    """Return a value from 0 to 1 after so many small matrix products."""
    return jax.lax.fori_loop(0, times, lambda _, y: jnp.sin(y @ x), x).min() ** 2


@pytest.fixture(scope="session")
def slow():
    """Return a function that begins a computation of about half a second, and its duration."""
    x = jnp.eye(96) * 0.5
    spin(x, 1).block_until_ready()
    start = time.perf_counter()
    spin(x, 300).block_until_ready()
    times = int(300 * 0.6 / (time.perf_counter() - start))

    def begin():
        return spin(x, times)

    start = time.perf_counter()
    begin().block_until_ready()
    return begin, time.perf_counter() - start
