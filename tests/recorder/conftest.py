"""What the tests of the recorder share."""

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
