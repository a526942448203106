"""Fingerprints are equal just where cells are, however the cells lie."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import trajlab.block.fingerprint
from trajlab.block.fingerprint import fingerprints

DTYPES = ["bool", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32"]
SHAPES = [(), (1,), (3,), (5, 2), (0,)]
ROWS, COLUMNS = np.repeat(np.arange(6), 8), np.tile(np.arange(8), 6)


def cells(shape, dtype, seed=0):
    """Return an array (6, 8, ...) of few values, so that cells are equal now and then."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (6, 8, *shape)).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def taken(array):
    return fingerprints([array], np.zeros_like(ROWS), ROWS, COLUMNS)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_equal_just_where_cells_are_and_the_same_everywhere(shape, dtype, monkeypatch):
    array = cells(shape, dtype)
    flat = array[ROWS, COLUMNS].reshape(len(ROWS), -1)
    prints = taken(array)
    assert prints.shape == (48, 2)
    assert prints.dtype == np.uint32
    same = (flat[:, None] == flat[None]).all(axis=-1)
    np.testing.assert_array_equal((prints[:, None] == prints[None]).all(axis=-1), same)
    split = jax.device_put(array, NamedSharding(Mesh(jax.devices()[:4], "e"), PartitionSpec(None, "e")))
    np.testing.assert_array_equal(taken(split), prints)
    monkeypatch.setattr(trajlab.block.fingerprint, "is_host_readable", lambda array: False)
    np.testing.assert_array_equal(taken(jnp.asarray(array)), prints)
    np.testing.assert_array_equal(taken(split), prints)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_a_nan_is_a_nan_and_zero_has_no_sign(dtype, monkeypatch):
    array = np.zeros((6, 8), ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    array[0, 1], array[0, 2], array[0, 3], array[0, 4] = -0.0, np.nan, -np.nan, np.inf
    for is_readable in (True, False):
        monkeypatch.setattr(
            trajlab.block.fingerprint, "is_host_readable", lambda array, is_readable=is_readable: is_readable
        )
        zero, minus, nan, other, inf = taken(array if is_readable else jnp.asarray(array))[:5].tolist()
        assert zero == minus
        assert nan == other
        assert len({str(x) for x in (zero, nan, inf)}) == 3


def test_hardly_any_two_of_many_cells_have_one():
    array = np.arange(2**20, dtype=np.float32).reshape(2**10, 2**10)
    rows, columns = np.divmod(np.arange(2**20), 2**10)
    prints = fingerprints([array], np.zeros_like(rows), rows, columns).view(np.uint64)
    assert len(np.unique(prints)) == 2**20


def test_the_place_of_a_component_counts():
    array = np.zeros((6, 8, 48), np.uint8)
    array[ROWS, COLUMNS, np.arange(48)] = 7
    assert len(np.unique(taken(array), axis=0)) == 48


def test_cells_of_several_blocks(monkeypatch):
    blocks = [cells((3,), "float32", seed) for seed in range(3)]
    which = np.arange(48) % 3
    want = np.stack([taken(block) for block in blocks])[which, np.arange(48)]
    np.testing.assert_array_equal(fingerprints(blocks, which, ROWS, COLUMNS), want)
    monkeypatch.setattr(trajlab.block.fingerprint, "is_host_readable", lambda array: False)
    got = fingerprints([jnp.asarray(block) for block in blocks], which, ROWS, COLUMNS)
    np.testing.assert_array_equal(got, want)


def test_text_and_wide_numbers_of_the_host():
    for array in (cells((2,), "int64"), cells((2,), "float64"), cells((2,), "int64").astype("<U3"), cells((), "S2")):
        flat = array[ROWS, COLUMNS].reshape(len(ROWS), -1)
        same = (flat[:, None] == flat[None]).all(axis=-1)
        prints = taken(array)
        np.testing.assert_array_equal((prints[:, None] == prints[None]).all(axis=-1), same)


def test_what_has_none():
    assert taken(np.zeros((6, 8), "datetime64[s]")) is None
    assert taken(np.zeros((6, 8), np.dtypes.StringDType())) is None
    split = NamedSharding(Mesh(jax.devices()[:2], "x"), PartitionSpec(None, None, "x"))
    assert taken(jax.device_put(cells((4,), "float32"), split)) is None
