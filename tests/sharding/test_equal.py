"""The Dataset of split environments equals that of whole ones, in whatever form they are handed over."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from chunks import assert_holds, make_chunk, make_step
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from reference import Call, Mark, Record, reference_episodes
from sharding.meshes import AXIS_TYPES, arrays_of, make_mesh, put
from strategies import block_sizes, examples, recordings
from test_against_reference import assert_matches, blocks_of, dataset, do, new_recorder

import trajlab as tl

N = 16


def chunk_at(row: int, rows: int = 5) -> Any:
    return make_chunk(range(row, row + rows), N, home="jax", only=("serial", "obs.position"))


# Random recordings -------------------------------------------------------------------------------------------


def leading(call: Call, axes: str) -> str:
    """Return the letters of a call's leading axes."""
    if isinstance(call, Record):
        return axes
    is_partial = call.envs is not None and np.asarray(call.envs).dtype != bool
    return "N" if is_partial or isinstance(call.envs, slice) else axes.replace("T", "").replace("U", "")


def split(array: np.ndarray, letters: str, letter: str, mesh: jax.sharding.Mesh) -> jax.Array:
    """Split an array over a mesh along the axis of this letter, where it divides evenly; else copy it to all devices."""
    axis = letters.find(letter)
    divides = axis >= 0 and array.shape[axis] % mesh.devices.size == 0
    spec = P(*[None] * axis, "d") if divides else P()
    return jax.device_put(array, NamedSharding(mesh, spec))


@examples(5)
@given(st.data(), recordings(wide=False), block_sizes, st.sampled_from(sorted(AXIS_TYPES)))
def test_random_recordings(
    data: st.DataObject, recording: tuple[list[Call], dict[str, Any]], chunks: int | None, kind: str
) -> None:
    calls, options = recording
    axes = options["convention"].get("axes", "TN")
    letter = data.draw(st.sampled_from([letter for letter in axes if letter not in "UT"]))
    sizes = {x.shape[axes.index(letter)] for call in calls if isinstance(call, Record) for x in call.chunk.values()
             if isinstance(x, np.ndarray)}  # fmt: skip
    width = min(sizes, default=4)
    mesh = make_mesh(kind, (data.draw(st.sampled_from([n for n in (1, 2, 4, 8) if width % n == 0])),))
    recorder = new_recorder(options)
    with blocks_of(chunks):
        for call in calls:
            letters = "" if isinstance(call, Mark) else leading(call, axes)
            do(recorder, call, lambda array, letters=letters: split(array, letters, letter, mesh))
        ds = dataset(recorder)
    assert_matches(ds, reference_episodes(calls, **options), calls, options)


# One of each form --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("home", ["mixed", "flags_numpy"])
def test_chunks_and_steps_over_many_blocks(mesh, home):
    recorder = tl.Recorder()
    for row in range(0, 30, 5):
        recorder.record(put(make_chunk(range(row, row + 5), N, home), mesh, None, "d"))
    for row in range(30, 36):
        recorder.record_step(put(make_step(row, N, home), mesh, "d"))
    assert_holds(recorder.to_dataset(), range(36), N)


@pytest.mark.parametrize(("is_split", "as_slice"), [(True, True), (False, False)])
def test_steps_of_some(mesh, is_split, as_slice):
    recorder = tl.Recorder(num_envs=N)
    for row in range(9):
        step = jax.tree.map(lambda x: x[0], chunk_at(row, 1))
        for start in (0, 8):
            part = jax.tree.map(lambda x, start=start: x[start : start + 8], step)
            envs = slice(start, start + 8) if as_slice else np.arange(start, start + 8)
            recorder.record_step(put(part, mesh, "d") if is_split else put(part, mesh), envs=envs)
    ds = recorder.to_dataset()
    for env in range(N):
        mask = ds["mask"].values & (ds["env"].values == env)[:, None]
        assert ds["serial"].values[mask].tolist() == list(range(9))


@pytest.mark.parametrize("envs", [[5, 1, 6], slice(0, 16, 2)], ids=["three", "eight"])
def test_some_environments(mesh, envs):
    recorders = [tl.Recorder(envs=envs), tl.Recorder(envs=envs)]
    for row in range(0, 20, 5):
        for recorder, tree in zip(recorders, (put(chunk_at(row), mesh, None, "d"), chunk_at(row)), strict=True):
            recorder.record(tree)
            if row:
                recorder.mark_reset([1, 6])
    one, other = (recorder.to_dataset().load() for recorder in recorders)
    xr.testing.assert_identical(one, other)


def test_seeds_and_environments_both_split(kind):
    mesh = make_mesh(kind, (2, 4))
    recorders = [tl.Recorder(convention=tl.Convention(axes="STN")) for _ in range(2)]
    for row in range(0, 20, 5):
        chunk = jax.tree.map(lambda x: jnp.moveaxis(x.reshape(5, 2, 8, *x.shape[2:]), 1, 0), chunk_at(row))
        recorders[0].record(put(chunk, mesh, "d", None, "m"))
        recorders[1].record(chunk)
    one, other = (recorder.to_dataset().load() for recorder in recorders)
    xr.testing.assert_identical(one, other)


def test_keys(mesh):
    recorders = [tl.Recorder(), tl.Recorder()]
    for row in range(0, 20, 5):
        chunk = chunk_at(row) | {"key": jax.random.split(jax.random.key(row), (5, N))}
        recorders[0].record(put(chunk, mesh, None, "d"))
        recorders[1].record(chunk)
    one, other = (recorder.to_dataset().load() for recorder in recorders)
    xr.testing.assert_identical(one, other)


def test_the_first_episodes(mesh):
    recorders = [tl.Recorder(max_episodes=40), tl.Recorder(max_episodes=40)]
    for row in range(0, 80, 5):
        recorders[0].record(put(chunk_at(row), mesh, None, "d"))
        recorders[1].record(chunk_at(row))
    one, other = (recorder.to_dataset().load() for recorder in recorders)
    assert one.sizes["episode"] == 40
    xr.testing.assert_identical(one, other)


WAYS = {
    "split": lambda chunk, mesh: put(chunk, mesh, None, "d"),
    "of another mesh": lambda chunk, mesh: put(chunk, make_mesh("explicit", names=("e",)), None, "e"),
    "on one device": lambda chunk, mesh: jax.device_put(chunk, jax.devices()[3]),
    "not placed": lambda chunk, mesh: chunk,
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("way", WAYS)
def test_within_the_context_of_a_mesh(mesh, way):
    recorder, chunks = tl.Recorder(), [WAYS[way](chunk_at(row), mesh) for row in range(0, 30, 5)]
    devices = chunks[0]["serial"].devices()
    with jax.set_mesh(mesh):
        for chunk in chunks[:5]:
            recorder.record(chunk)
        assert_holds(recorder.to_dataset(), range(25), N)
        assert jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
    recorder.record(chunks[5])
    assert_holds(recorder.to_dataset(), range(30), N)
    assert {frozenset(array.devices()) for array in arrays_of(recorder)} == {frozenset(devices)}


def test_a_rollout(mesh):
    assert_holds(tl.from_rollout(put(chunk_at(0, 12), mesh, None, "d")), range(12), N)


# Placed otherwise in mid-run, on the same devices ------------------------------------------------------------


def places(kind: str) -> dict[str, Any]:
    """Return functions that put a chunk on the eight devices, and others that put it on the first."""
    other = "explicit" if kind == "auto" else "auto"
    eight, named, square = make_mesh(kind), make_mesh(other, names=("e",)), make_mesh(kind, (4, 2))
    return {
        "split": lambda chunk: put(chunk, eight, None, "d"),
        "replicated": lambda chunk: put(chunk, eight),
        "another mesh": lambda chunk: put(chunk, named, None, "e"),
        "two axes": lambda chunk: put(chunk, square, None, ("d", "m")),
        "four ways": lambda chunk: put(chunk, square, None, "d"),
        "not placed": lambda chunk: chunk,
    }


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("first", ["split", "replicated"])
def test_chunks_that_change_their_split(kind, first):
    ways = places(kind)
    recorder = tl.Recorder()
    for number, name in enumerate((first, *ways, first, *ways)):
        recorder.record(ways[name](chunk_at(5 * number)))
    assert_holds(recorder.to_dataset(), range(recorder.num_recorded_steps), N)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("first", ["mesh", "device", "not placed"])
def test_one_device_whatever_it_is_called(kind, first):
    one, two = make_mesh(kind, (1,)), make_mesh("explicit" if kind == "auto" else "auto", (1,), names=("e",))
    ways = {
        "mesh": lambda chunk: put(chunk, one, None, "d"),
        "device": lambda chunk: jax.device_put(chunk, jax.devices()[0]),
        "other mesh": lambda chunk: put(chunk, two),
        "not placed": lambda chunk: chunk,
    }
    recorder = tl.Recorder()
    for number, name in enumerate((first, *ways, first, *ways)):
        recorder.record(ways[name](chunk_at(5 * number)))
    assert_holds(recorder.to_dataset(), range(recorder.num_recorded_steps), N)


def test_fields_over_meshes_of_their_own(kind):
    mesh, other = make_mesh(kind), make_mesh("explicit" if kind == "auto" else "auto", (4, 2), names=("a", "b"))
    recorder = tl.Recorder()
    for row in range(0, 20, 5):
        chunk = put(chunk_at(row), mesh, None, "d")
        recorder.record(chunk | {"obs": put(chunk_at(row)["obs"], other, None, "a")})
    assert_holds(recorder.to_dataset(), range(20), N)
