"""A buffer of split environments, inside `jit` and inside `shard_map`, holds what one on a single device holds."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from buffer.streams import arguments, even_streams, make_calls
from buffer.test_against_reference import read
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from reference import reference_episodes
from sharding.meshes import AXIS_TYPES, collectives, make_mesh, put
from strategies import examples
from test_against_reference import assert_matches

import trajlab as tl

T, N, UPDATES = 4, 16, 6
KEEP = [("first", 24), ("last", 12)]


def collect(start: Any, speed: Any) -> tuple[Any, Any]:
    """Four steps of environments that end every 5 steps or so; `speed` (N,) says which is which."""
    time = start + jnp.arange(T, dtype=jnp.int32)
    place = time[:, None] + 3 * speed[None, :]
    chunk = {
        "obs": jnp.stack([place, place * place], -1).astype(jnp.float32),
        "terminated": place % 5 == 4,
        "truncated": place % 7 == 6,
        "nothing": jnp.zeros((T, speed.shape[0]), jnp.int32),
    }
    return start + T, chunk


def updates(start: Any, speed: Any, buffer: tl.Buffer, count: int = UPDATES) -> tl.Buffer:
    """Append so many chunks in one scan."""

    def update(carry: Any, _: Any) -> Any:
        start, buffer = carry
        start, chunk = collect(start, speed)
        return (start, tl.append(buffer, chunk, iteration=start // T - 1, reset=speed == start % 5)), None

    return jax.lax.scan(update, (start, buffer), length=count)[0][1]


def whole_run(start: Any, speed: Any, how: str = "abstract", **options: Any) -> tl.Buffer:
    """Make a buffer and fill it, all while JAX traces."""
    example = (jax.eval_shape(collect, start, speed) if how == "abstract" else collect(start, speed))[1]
    return updates(start, speed, tl.init_buffer(example, **options))


START, SPEED = np.int32(0), np.arange(N, dtype=np.int32)


@cache
def reference(keep: str, capacity: int) -> xr.Dataset:
    """Return what one device records."""
    return tl.to_dataset(jax.jit(partial(whole_run, keep=keep, capacity=capacity))(START, SPEED)).load()


def empty(mesh: Any, keep: str, capacity: int) -> tuple[tl.Buffer, Any]:
    """Return a buffer made from a chunk that is split over the mesh, and how fast each environment is."""
    speed = put(jnp.asarray(SPEED), mesh, "d")
    return tl.init_buffer(jax.jit(collect)(START, speed)[1], capacity, keep=keep), speed


def is_split(array: Any, mesh: Any, *spec: Any) -> bool:
    return array.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec)), array.ndim)


def stored(ds: xr.Dataset, name: str) -> Any:
    """Return the array that a Dataset reads a field from."""
    view = ds[name].variable._data.array.source.view
    return view.blocks[0].array(*view.index_of(name))


def assert_equal(buffer: tl.Buffer, keep: str, capacity: int) -> None:
    xr.testing.assert_identical(tl.to_dataset(buffer).load(), reference(keep, capacity))


@pytest.mark.parametrize(("keep", "capacity"), KEEP)
def test_made_outside(mesh, keep, capacity):
    buffer, speed = empty(mesh, keep, capacity)
    assert all(is_split(x, mesh, None, "d") for x in jax.tree.leaves(buffer) if x.ndim > 1 and x.size)
    run = jax.jit(updates, donate_argnums=2).lower(START, speed, buffer).compile()
    assert collectives(run) == set()
    assert run.as_text().count("may-alias") == len(jax.tree.leaves(buffer))
    assert_equal(run(START, speed, buffer), keep, capacity)
    assert buffer.flags.is_deleted()


@pytest.mark.parametrize(("keep", "capacity", "how"), [(*KEEP[0], "abstract"), (*KEEP[1], "traced")])
def test_made_inside(mesh, keep, capacity, how):
    speed = put(jnp.asarray(SPEED), mesh, "d")
    run = jax.jit(partial(whole_run, keep=keep, capacity=capacity, how=how)).lower(START, speed).compile()
    assert collectives(run) == set()
    buffer = run(START, speed)
    assert is_split(buffer.flags, mesh, None, "d")
    assert_equal(buffer, keep, capacity)


def test_within_the_context_of_a_mesh(mesh):
    with jax.set_mesh(mesh):
        buffer, speed = empty(mesh, "first", 24)
        assert_equal(jax.jit(updates)(START, speed, buffer), "first", 24)
        assert_equal(jax.jit(partial(whole_run, capacity=24))(START, speed), "first", 24)


def test_one_chunk_at_a_time(mesh):
    buffer, speed = empty(mesh, "first", 24)
    append = jax.jit(lambda buffer, chunk, reset: tl.append(buffer, chunk, reset=reset), donate_argnums=0)
    start = START
    for _ in range(UPDATES):
        start, chunk = jax.jit(collect)(start, speed)
        buffer = append(buffer, chunk, speed == int(start) % 5)
    assert append._cache_size() <= 2
    assert_equal(buffer, "first", 24)


def on_each_device(start: Any, speed: Any, buffer: tl.Buffer) -> tl.Buffer:
    return updates(start, speed, buffer)


@pytest.mark.parametrize(("keep", "capacity"), KEEP)
def test_in_shard_map_with_a_buffer_from_outside(mesh, keep, capacity):
    buffer, speed = empty(mesh, keep, capacity)
    spec = jax.tree.map(lambda x: P(None, "d") if x.ndim > 1 else P(), buffer)
    each = jax.shard_map(on_each_device, mesh=mesh, in_specs=(P(), P("d"), spec), out_specs=spec)
    run = jax.jit(each).lower(START, speed, buffer).compile()
    assert collectives(run) == set()
    assert_equal(run(START, speed, buffer), keep, capacity)


@pytest.mark.parametrize(("keep", "capacity", "how"), [(*KEEP[0], "traced"), (*KEEP[1], "abstract")])
def test_in_shard_map_with_a_buffer_from_inside(mesh, keep, capacity, how):
    def each(start: Any, speed: Any) -> Any:
        return jax.tree.map(lambda x: x[None], whole_run(start, speed, how, keep=keep, capacity=capacity))

    speed = put(jnp.asarray(SPEED), mesh, "d")
    on_all = jax.shard_map(each, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"))
    run = jax.jit(on_all).lower(START, speed).compile()
    assert collectives(run) == set()
    ds = tl.to_dataset(run(START, speed), axes="D").load()
    assert ds["D"].values.tolist() == (ds["env"].values // (N // 8)).tolist()
    xr.testing.assert_equal(ds.drop_vars("D"), reference(keep, capacity))


SPEEDS = np.arange(8 * N, dtype=np.int32).reshape(8, N)
seeds = jax.jit(jax.vmap(partial(whole_run, capacity=24), in_axes=(None, 0)))


@cache
def reference_of_seeds() -> xr.Dataset:
    return tl.to_dataset(seeds(START, SPEEDS)).load()


@pytest.mark.parametrize("spec", [("d", None), (None, "d")], ids=["seeds", "environments"])
def test_seeds_of_a_vmap(mesh, spec):
    speeds = put(jnp.asarray(SPEEDS), mesh, *spec)
    run = seeds.lower(START, speeds).compile()
    assert collectives(run) == set()
    ds = tl.to_dataset(run(START, speeds))
    assert is_split(stored(ds, "obs"), mesh, None, "d")
    xr.testing.assert_identical(ds.load(), reference_of_seeds())


@pytest.mark.parametrize("is_ring", [False, True])
def test_reading_leaves_the_rows_where_they_are(mesh, is_ring):
    buffer, speed = empty(mesh, *(("last", 12) if is_ring else ("first", 24)))
    buffer = jax.jit(updates)(START, speed, buffer)
    ds = tl.to_dataset(buffer)
    assert is_split(stored(ds, "obs"), mesh, None, "d")
    before = ds.copy().load()
    for leaf in jax.tree.leaves(buffer):
        leaf.delete()
    xr.testing.assert_identical(ds.load(), before)


@examples(3)
@given(st.data(), even_streams(), st.sampled_from(sorted(AXIS_TYPES)))
def test_random_streams(data, drawn, kind):
    stream, pieces = drawn
    calls, options = make_calls(stream, pieces), stream.options
    letter = data.draw(st.sampled_from(sorted(stream.sizes)))
    counts = [count for count in (1, 2, 4) if stream.sizes[letter] % count == 0]
    mesh = make_mesh(kind, (data.draw(st.sampled_from(counts)),))
    spec = P(*[None] * stream.axes.index(letter), "d")
    given_all = [
        (put(chunk, mesh, *spec), None if mask is None else put(jnp.asarray(mask), mesh, *spec), iteration, reset, put(extra, mesh, *spec))
        for chunk, mask, iteration, reset, extra in arguments(calls, stream.num_envs)
    ]  # fmt: skip
    chunk, *_, extra = given_all[0]
    kept = {name: options[name] for name in ("envs", "starts_fresh") if name in options}
    convention = tl.Convention(**options["convention"])
    buffer = tl.init_buffer(chunk, stream.num_rows, convention=convention, **kept, **extra)
    append = jax.jit(
        lambda buffer, chunk, mask, iteration, reset, extra: tl.append(
            buffer, chunk, mask=mask, iteration=iteration, reset=reset, **extra
        )
    )
    for arguments_ in given_all:
        buffer = append(buffer, *arguments_)
    assert_matches(read(buffer), reference_episodes(calls, **options), calls, options)
