"""Writing a split chunk: no device sends anything to another, nothing is copied, nothing waits, nothing compiles anew."""

import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chunks import after, assert_holds, make_chunk
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P
from sharding.meshes import arrays_of, blocks_of, collectives, make_mesh, pointers, put

import trajlab as tl
import trajlab.block.append
import trajlab.block.log

pytestmark = pytest.mark.usefixtures("small_blocks")

N = 16


def chunk_at(row, rows=5):
    return make_chunk(range(row, row + rows), N, home="jax", only=("serial", "obs.image", "reward"))


@pytest.fixture
def calls(monkeypatch):
    """Collect the compiled form of every append that is made, and the arrays it was given."""
    found = []

    def device_append(*args, **kwargs):
        function = trajlab.block.append.device_append(*args, **kwargs)

        def call(arrays, row, chunk):
            found.append((function.lower(arrays, row, chunk).compile(), arrays))
            return found[-1][0](arrays, row, chunk)

        return call

    monkeypatch.setattr(trajlab.block.log, "device_append", device_append)
    return found


# No transfer -------------------------------------------------------------------------------------------------


def record_chunks(recorder, mesh):
    for row in (0, 5):
        recorder.record(put(chunk_at(row), mesh, None, "d"))


def record_masked(recorder, mesh):
    mask = jnp.asarray(np.arange(5 * N).reshape(5, N) % 3 > 0)
    for given in (np.asarray(mask), mask, put(mask, mesh, None, "d"), put(mask, mesh)):
        recorder.record(put(chunk_at(0), mesh, None, "d"), mask=given)


def record_marked(recorder, mesh):
    record_chunks(recorder, mesh)
    recorder.mark_reset([1, 5])
    record_chunks(recorder, mesh)
    recorder.record(put(chunk_at(0), mesh, None, "d"), iteration=9)


def record_steps(recorder, mesh):
    step = put(jax.tree.map(lambda x: x[0], chunk_at(0)), mesh, "d")
    recorder.record_step(step)
    recorder.record_step(step, envs=np.arange(N) % 2 == 0)
    recorder.record_step(step, envs=put(jnp.arange(N) % 2 == 0, mesh, "d"))
    recorder.record(put(chunk_at(0), mesh, None, "d"))


def record_replicated_beside(recorder, mesh):
    for row in (0, 5):
        chunk = put(chunk_at(row), mesh, None, "d")
        recorder.record(chunk | {"reward": put(chunk["reward"], mesh), "serial": chunk_at(row)["serial"]})


FORMS = {
    "chunks": record_chunks,
    "masked": record_masked,
    "marked": record_marked,
    "steps": record_steps,
    "replicated beside": record_replicated_beside,
}


@pytest.mark.parametrize("form", FORMS)
def test_an_append_moves_nothing_between_devices(mesh, calls, form):
    recorder = tl.Recorder(max_episodes=10_000 if form == "chunks" else None)
    FORMS[form](recorder, mesh)
    assert calls
    for function, _ in calls:
        assert collectives(function) == set()
    for array in arrays_of(recorder):
        assert array.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "d")), array.ndim)


# Axes, the arrays' split, and how a chunk (4, 16, ...) is given these axes.
OTHER_AXES = {
    "NT": ("NT", ("d",), lambda x: jnp.swapaxes(x, 0, 1)),
    "UTN": ("UTN", (None, None, "d"), lambda x: x.reshape(2, 2, N, *x.shape[2:])),
    "TAN": ("TAN", (None, "d"), lambda x: x.reshape(4, 8, 2, *x.shape[2:])),
    "DTN": ("DTN", ("d",), lambda x: jnp.moveaxis(x.reshape(4, 8, 2, *x.shape[2:]), 1, 0)),
}


@pytest.mark.parametrize("name", OTHER_AXES)
def test_nor_with_other_axes(mesh, calls, name):
    axes, spec, arrange = OTHER_AXES[name]
    recorder = tl.Recorder(convention=tl.Convention(axes=axes))
    for row in (0, 4):
        recorder.record(put(jax.tree.map(arrange, chunk_at(row, 4)), mesh, *spec))
    assert [collectives(function) for function, _ in calls] == [set()] * 2


def test_the_check_sees_a_transfer(mesh):
    moved = jax.jit(lambda x: x + 1, out_shardings=NamedSharding(mesh, P("d")))
    assert collectives(moved.lower(put(jnp.zeros((8, 8)), mesh, None, "d")).compile())
    summed = jax.jit(lambda x: x.sum())
    assert collectives(summed.lower(put(jnp.zeros((8, 8)), mesh, None, "d")).compile())


def test_inner_axes_stay_split_too(kind, calls):
    mesh = make_mesh(kind, (4, 2))
    recorder = tl.Recorder()
    for row in (0, 5):
        chunk = chunk_at(row)
        chunk = put(chunk, mesh, None, "d") | {"obs": {"image": put(chunk["obs"]["image"], mesh, None, "d", "m")}}
        recorder.record(chunk)
    assert [collectives(function) for function, _ in calls] == [set()] * 2
    (image,) = [array for array in arrays_of(recorder) if array.ndim == 5]
    assert image.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "d", "m")), 5)
    assert image.addressable_shards[0].data.shape[1:3] == (4, 1)


# Where the log lies ------------------------------------------------------------------------------------------


def test_memory_is_taken_on_each_device_from_the_first(mesh, calls):
    record_chunks(tl.Recorder(), mesh)
    for _, arrays in calls:
        assert {array.sharding.shard_shape(array.shape)[1] for array in arrays} == {N // 8}


def test_a_log_lies_where_its_one_device_is():
    recorder = tl.Recorder()
    for row in range(0, 45, 5):
        recorder.record(jax.device_put(chunk_at(row), jax.devices()[3]))
    assert {array.sharding for array in arrays_of(recorder)} == {SingleDeviceSharding(jax.devices()[3])}
    assert_holds(recorder.to_dataset(), range(45), N)


@pytest.mark.parametrize("width", [3, 8])
def test_some_environments_are_split_where_they_divide_evenly(mesh, width):
    recorder = tl.Recorder(envs=np.arange(width) * 2)
    record_chunks(recorder, mesh)
    spec = P(None, "d") if width == 8 else P()
    for array in arrays_of(recorder):
        assert array.sharding.is_equivalent_to(NamedSharding(mesh, spec), array.ndim)


# Nothing is copied, nothing waits, nothing compiles ----------------------------------------------------------


def test_a_block_is_written_in_place(mesh, calls):
    recorder = tl.Recorder()
    recorder.record(put(chunk_at(0), mesh, None, "d"))
    block = blocks_of(recorder)[0]
    before, first = pointers(block), block.box[-1][0]
    recorder.to_dataset()["serial"].isel(episode=3).values  # noqa: B018
    recorder.record(put(chunk_at(5), mesh, None, "d"))
    recorder.record(put(chunk_at(10, 1), mesh, None, "d"))
    assert pointers(block) == before
    assert all(array.is_deleted() for array in first)
    for function, _ in calls:
        aliased = function.memory_analysis().alias_size_in_bytes
        assert aliased == sum(array.nbytes for array in block.box[-1][0]) // 8
        assert function.as_text().count("may-alias") == len(first)


@pytest.mark.parametrize(
    "options", [{}, {"max_episodes": 10_000}, {"envs": [1, 2]}], ids=["plain", "limited", "some_envs"]
)
def test_nothing_compiles_after_the_second_call(mesh, options, caplog):
    chunks = [put(chunk_at(row), mesh, None, "d") for row in range(0, 60, 5)]
    recorder = tl.Recorder(**options)
    for chunk in chunks[:2]:
        recorder.record(chunk)
    with jax.log_compiles():
        for chunk in chunks[2:]:
            recorder.record(chunk)
    assert [record.getMessage() for record in caplog.records] == []


def test_record_returns_at_once(kind):
    mesh = make_mesh(kind, (2,))
    x = put(jnp.eye(96) * 0.5, mesh)

    @jax.jit
    def spin(x, times):
        return jax.lax.fori_loop(0, times, lambda _, y: jnp.sin(y @ x), x).min() ** 2

    def begin(times):
        return spin(x, times), time.perf_counter()

    y, start = begin(300)
    y.block_until_ready()
    y, start = begin(300)
    y.block_until_ready()
    times = int(300 * 0.8 / (time.perf_counter() - start))
    chunks = [put(chunk_at(row), mesh, None, "d") for row in range(0, 30, 5)]

    def play(y):
        late = [after(y, chunk) for chunk in chunks]
        recorder, took = tl.Recorder(max_episodes=10_000), []
        for chunk in late:
            start = time.perf_counter()
            recorder.record(chunk)
            took.append(time.perf_counter() - start)
        return recorder, took

    play(put(jnp.zeros(()), mesh))  # compiles
    y, start = begin(times)
    recorder, took = play(y)
    assert not y.is_ready()
    assert max(took) < 0.2
    assert_holds(recorder.to_dataset(), range(30), N)


def test_nothing_is_lost_where_jax_compiles(mesh, kind, monkeypatch):
    cold = []

    def device_append(*args, **kwargs):
        function = trajlab.block.append.device_append(*args, **kwargs)

        def call(*args):
            before = function._cache_size()
            out = function(*args)
            if function._cache_size() > before:
                cold.append(args)
                signal.raise_signal(signal.SIGINT)
            return out

        return call

    monkeypatch.setattr(trajlab.block.log, "device_append", device_append)
    other = make_mesh("explicit" if kind == "auto" else "auto", names=("e",))

    def within(chunk):
        with jax.set_mesh(mesh):
            recorder.record(chunk)

    calls = {
        "plain": lambda chunk: recorder.record(put(chunk, mesh, None, "d")),
        "replicated": lambda chunk: recorder.record(put(chunk, mesh)),
        "other mesh": lambda chunk: recorder.record(put(chunk, other, None, "e")),
        "uncommitted": lambda chunk: recorder.record(chunk),
        "within": lambda chunk: within(put(chunk, mesh, None, "d")),
    }
    recorder, interrupts = tl.Recorder(), 0
    for name in ("plain", *calls, "plain", *calls):
        for _ in range(4):
            row = recorder.num_recorded_steps
            try:
                calls[name](make_chunk(range(row, row + 6), N, home="jax", only=("serial", "reward")))
            except KeyboardInterrupt:
                interrupts += 1
                continue
            break
    assert interrupts == len(cold) > 0
    assert_holds(recorder.to_dataset(), range(recorder.num_recorded_steps), N)
