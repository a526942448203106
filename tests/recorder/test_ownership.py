"""A recorder owns what it holds, and a Dataset once handed out never changes and never dies."""

import gc
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from chunks import FLAGS, after, assert_holds, make_chunk, make_step, snapshot

import trajlab as tl

pytestmark = pytest.mark.usefixtures("small_blocks")


def aligned(array):
    """Return a copy that begins at a multiple of 64 bytes, which JAX aliases instead of copying."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    assert out.ctypes.data % 64 == 0
    return out


def overwrite(tree):
    """Fill every NumPy array of a chunk with other values, in place."""
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, np.ndarray):
            leaf[...] = np.zeros_like(leaf) if leaf.dtype.kind in "US" else ~leaf if leaf.dtype == bool else 99


def fill(recorder, start, stop, home="numpy", rows=5):
    """Record the rows from `start` up to `stop` in chunks."""
    for first in range(start, stop, rows):
        recorder.record(make_chunk(range(first, first + rows), home=home))


# NumPy arrays are copied -------------------------------------------------------------------------------------


def test_buffers_may_be_refilled_in_place(home):
    recorder = tl.Recorder()
    for start in range(0, 30, 5):
        chunk = jax.tree.map(
            lambda x: aligned(x) if isinstance(x, np.ndarray) else x, make_chunk(range(start, start + 5), home=home)
        )
        recorder.record(chunk)
        overwrite(chunk)
    assert_holds(recorder.to_dataset(), range(30))


def test_steps_may_be_refilled_in_place(home):
    recorder = tl.Recorder()
    for serial in range(12):
        step = jax.tree.map(lambda x: aligned(x) if isinstance(x, np.ndarray) else x, make_step(serial, home=home))
        recorder.record_step(step)
        overwrite(step)
    assert_holds(recorder.to_dataset(), range(12))


def test_numpy_arrays_handed_later_for_device_fields_are_copied():
    recorder = tl.Recorder()
    recorder.record(make_chunk(range(5), home="jax"))
    for start in range(5, 30, 5):
        # Waiting for nothing between the call and the refill: a jitted call may read its argument afterwards.
        chunk = jax.tree.map(lambda x: aligned(np.asarray(x)), make_chunk(range(start, start + 5), home="jax"))
        recorder.record(chunk)
        overwrite(chunk)
    assert_holds(recorder.to_dataset(), range(30))


def test_numpy_arrays_are_copied_also_where_the_write_has_to_wait(slow):
    chunks = [make_chunk(range(start, start + 5), home="jax") for start in range(0, 15, 5)]

    def play(y):
        late = jax.tree.map(lambda x: aligned(np.asarray(x)), chunks[1])
        mask = aligned(np.ones((5, 3), bool))
        recorder = tl.Recorder()
        recorder.record(after(y, chunks[0]))
        recorder.record(late)
        recorder.record(chunks[2], mask=mask)
        overwrite((late, mask))
        return recorder

    play(jnp.zeros(()))  # compiles
    begin, _ = slow
    for _ in range(5):  # a busy machine may take longer to record than to compute
        y = begin()
        recorder = play(y)
        had_to_wait = not y.is_ready()
        assert_holds(recorder.to_dataset(), range(15))
        if had_to_wait:
            return
    pytest.fail("every write was made at once")


def test_jax_arrays_handed_later_for_host_fields_are_stored():
    recorder = tl.Recorder()
    chunks = [make_chunk(range(i, i + 5)) for i in (0, 5)]
    for chunk in chunks:
        del chunk["label"], chunk["stamp"]
    recorder.record(chunks[0])
    recorder.record(jax.tree.map(jnp.asarray, chunks[1]))
    assert_holds(recorder.to_dataset(), range(10))


def test_masks_and_choices_of_environments_are_copied(home):
    recorder = tl.Recorder(num_envs=3)
    envs, mask = aligned(np.array([0, 2])), aligned(np.ones((5, 3), bool))
    recorder.mark_reset(envs)
    recorder.record(make_chunk(range(5), home=home), mask=mask)
    mask[:] = False
    recorder.mark_gap(envs)
    envs[:] = 1
    recorder.record(make_chunk(range(5, 10), home=home))
    ds = recorder.to_dataset()
    starts_at_5 = ds["start_row"].values == 5
    assert ds["start_seen"].values[starts_at_5 & np.isin(ds["env"], [0, 2])].tolist() == [False, False]
    assert_holds(ds, range(10))


def test_from_rollout_owns_its_rows(home):
    chunk = jax.tree.map(lambda x: aligned(x) if isinstance(x, np.ndarray) else x, make_chunk(range(8), home=home))
    ds = tl.from_rollout(chunk)
    overwrite(chunk)
    for leaf in jax.tree.leaves(chunk):
        if isinstance(leaf, jax.Array):
            leaf.delete()
    assert_holds(ds, range(8))


def test_from_episodes_owns_its_rows():
    episodes = [{"obs": np.arange(3.0)[:, None] + i, "action": np.arange(3) + i} for i in range(2)]
    ds = tl.from_episodes(episodes)
    before = snapshot(ds)
    overwrite(episodes)
    xr.testing.assert_identical(ds, before)


# JAX arrays may be donated -----------------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["jax", "mixed", "flags_numpy"])
def test_recorded_arrays_may_be_donated(home):
    consume = jax.jit(
        lambda arrays: [x ^ True if x.dtype == bool else x + jnp.ones((), x.dtype) for x in arrays], donate_argnums=0
    )
    recorder = tl.Recorder()
    for start in range(0, 30, 5):
        chunk = make_chunk(range(start, start + 5), home=home)
        recorder.record(chunk)
        arrays = [leaf for leaf in jax.tree.leaves(chunk) if isinstance(leaf, jax.Array)]
        consume(arrays)
        assert all(array.is_deleted() for array in arrays)
    assert_holds(recorder.to_dataset(), range(30))


def test_a_chunk_that_fills_a_block_may_be_donated():
    chunk = make_chunk(range(8), home="jax")
    ds = tl.from_rollout(chunk)
    jax.jit(lambda tree: jax.tree.map(jnp.zeros_like, tree), donate_argnums=0)(chunk)
    assert_holds(ds, range(8))


# Datasets never change ---------------------------------------------------------------------------------------


def test_datasets_never_change_while_recording_goes_on(home):
    recorder = tl.Recorder()
    kept = []
    for start in range(0, 60, 5):
        fill(recorder, start, start + 5, home)
        kept.append((recorder.to_dataset(), snapshot(recorder.to_dataset())))
    for number, (ds, before) in enumerate(kept, start=1):
        assert_holds(ds, range(5 * number))
        xr.testing.assert_identical(ds, before)


def test_datasets_live_on_after_reset(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 50, home)
    ds = recorder.to_dataset()
    for _ in range(2):
        recorder.reset()
        fill(recorder, 100, 150, home)
    assert_holds(ds, range(50))
    assert_holds(recorder.to_dataset(), range(100, 150))


def test_datasets_live_on_after_the_recorder_is_gone(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 50, home)
    ds = recorder.to_dataset()
    recorder.close()
    del recorder
    gc.collect()
    assert_holds(ds, range(50))


def test_equal_datasets_are_each_protected_from_reset(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 50, home)
    first, second = recorder.to_dataset(), recorder.to_dataset()
    del first
    gc.collect()
    recorder.reset()
    fill(recorder, 100, 150, home)
    assert_holds(second, range(50))


def test_derived_datasets_are_protected_from_reset(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 50, home)
    field = recorder.to_dataset()["serial"].isel(episode=slice(2, None))
    before = field.values
    gc.collect()
    recorder.reset()
    fill(recorder, 100, 150, home)
    np.testing.assert_array_equal(field.values, before)


def test_loaded_values_may_be_written(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 40, home)
    ds = recorder.to_dataset()
    loaded = recorder.to_dataset().load()
    for name in ("serial", "obs.position", *FLAGS):
        loaded[name].values[...] = 0
        ds[name].values[...] = 0
        ds[name].isel(episode=1).values[...] = 0
    assert_holds(ds, range(40))


# Other threads -----------------------------------------------------------------------------------------------


def test_datasets_are_read_from_another_thread_while_recording_goes_on(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 10, home)
    stop, failures, checked = threading.Event(), [], []

    def read():
        try:
            while not stop.is_set():
                ds = recorder.to_dataset()
                rows = ds.attrs["rows_kept"]
                for name in ("serial", "obs.position", "terminated"):
                    ds[name].values  # noqa: B018
                assert_holds(ds, range(rows))
                checked.append(rows)
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    row, until = 10, time.monotonic() + 1.0
    while (time.monotonic() < until or len(checked) < 4) and not failures:
        fill(recorder, row, row + 5, home)
        row += 5
        if row % 200 == 0:
            time.sleep(0.02)
    stop.set()
    for thread in readers:
        thread.join()
    assert failures == []
    assert len(set(checked)) > 1
    assert_holds(recorder.to_dataset(), range(row))


def test_two_threads_may_record_at_once(home):
    recorder = tl.Recorder(num_envs=2)

    def record(env):
        for serial in range(40):
            step = jax.tree.map(lambda x: x[env : env + 1], make_step(serial, 2, home))
            recorder.record_step(step, envs=[env])

    record(0)
    recorder.reset()
    threads = [threading.Thread(target=record, args=(env,)) for env in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ds = recorder.to_dataset()
    for env in range(2):
        mask = ds["mask"].values & (ds["env"].values == env)[:, None]
        assert ds["serial"].values[mask].tolist() == list(range(40))
    assert 40 <= recorder.num_recorded_steps < 80  # they share rows, but for the ends of blocks


# Allocations -------------------------------------------------------------------------------------------------


def pointers(recorder):
    """Return where the arrays of all blocks lie."""
    return [
        [array.unsafe_buffer_pointer() for array in block.box[-1][0]] + [array.ctypes.data for array in block.host]
        for block in recorder._session.log.blocks
    ]


def test_reset_reuses_allocations_that_no_dataset_holds(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 50, home)
    held, before = recorder._session.log.nbytes(), pointers(recorder)
    assert len(before) > 1
    recorder.to_dataset()
    gc.collect()
    recorder.reset()
    fill(recorder, 100, 150, home)
    assert pointers(recorder) == before
    assert recorder._session.log.nbytes() == held
    assert_holds(recorder.to_dataset(), range(100, 150))


def test_reset_leaves_allocations_that_a_dataset_holds(home):
    recorder = tl.Recorder()
    fill(recorder, 0, 20, home)
    ds = recorder.to_dataset()
    fill(recorder, 20, 40, home)
    held, free = pointers(recorder)
    recorder.reset()
    fill(recorder, 100, 120, home)
    fill(recorder, 120, 140, home)
    assert pointers(recorder)[0] == free
    assert pointers(recorder)[1] != held
    assert_holds(ds, range(20))
    assert_holds(recorder.to_dataset(), range(100, 140))


def test_the_memory_of_a_dataset_is_freed_with_it():
    recorder = tl.Recorder()
    fill(recorder, 0, 20, "jax")
    ds = recorder.to_dataset()
    recorder.reset()
    before = sum(array.nbytes for array in jax.live_arrays())
    del ds
    assert sum(array.nbytes for array in jax.live_arrays()) < before
