"""What the tests of split environments share."""

import jax
import pytest
from sharding.meshes import AXIS_TYPES, make_mesh

import trajlab.block.log


@pytest.fixture(scope="session", autouse=True)
def _eight_devices():
    assert len(jax.devices()) >= 8


@pytest.fixture(params=AXIS_TYPES)
def kind(request):
    """Whether the mesh's axes are part of the arrays' types."""
    return request.param


@pytest.fixture
def mesh(kind):
    """A mesh of eight devices along one axis."""
    return make_mesh(kind)


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks of four chunks, so that a handful of chunks fills several."""
    monkeypatch.setattr(trajlab.block.log, "MIN_BYTES", 1)
