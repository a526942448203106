"""`record()` returns while the chunk is still being computed, compiles once, and copies nothing to the host."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chunks import after, assert_holds, make_chunk, make_step

import trajlab as tl
import trajlab.block.read
import trajlab.recorder.session
import trajlab.recorder.stream

pytestmark = pytest.mark.usefixtures("small_blocks")


def record_all(recorder, chunks):
    """Record chunks; return how long each call took."""
    took = []
    for chunk in chunks:
        start = time.perf_counter()
        recorder.record(chunk)
        took.append(time.perf_counter() - start)
    return took


def test_the_slow_computation_is_asynchronous(slow):
    begin, duration = slow
    start = time.perf_counter()
    y = begin()
    took = time.perf_counter() - start
    assert not y.is_ready()
    assert took < 0.2 * duration
    y.block_until_ready()


@pytest.mark.parametrize(
    "options", [{}, {"max_episodes": 1000}, {"envs": [0, 2]}], ids=["plain", "limited", "some_envs"]
)
def test_record_returns_at_once_also_where_it_needs_a_new_block(slow, options):
    begin, duration = slow
    chunks = [make_chunk(range(i, i + 5), home="jax") for i in range(0, 30, 5)]
    record_all(tl.Recorder(**options), [after(jnp.zeros(()), chunk) for chunk in chunks])  # compiles
    recorder = tl.Recorder(**options)
    y = begin()
    took = record_all(recorder, [after(y, chunk) for chunk in chunks])
    is_full, text, steps = recorder.is_full, repr(recorder), recorder.num_recorded_steps
    assert not y.is_ready()
    assert max(took) < 0.25 * duration
    assert (is_full, steps) == (False, 30)
    assert "30 recorded" in text
    assert len(recorder._session.log.blocks) == 2
    ds = recorder.to_dataset()
    assert y.is_ready()
    if not options.get("envs"):
        assert_holds(ds, range(30))


def test_masks_marks_and_steps_do_not_wait(slow):
    begin, duration = slow
    step = make_step(0, home="jax")
    part = jax.tree.map(lambda x: x[:2], step)
    chunk = make_chunk(range(5), home="jax")
    masks = jnp.arange(15).reshape(5, 3) > 0, jnp.arange(3) > 0

    def play(y):
        recorder = tl.Recorder(max_episodes=1000)
        mask, envs = after(y, masks)
        recorder.record(after(y, chunk), mask=mask)
        recorder.mark_reset([1])
        recorder.record_step(after(y, step))
        recorder.record_step(after(y, step), envs=envs)
        recorder.record_step(after(y, part), envs=[0, 2])
        recorder.mark_gap()
        recorder.record(after(y, chunk), iteration=9)
        return recorder

    play(jnp.zeros(()))
    y = begin()
    start = time.perf_counter()
    recorder = play(y)
    took = time.perf_counter() - start
    assert not y.is_ready()
    assert took < 0.3 * duration
    assert recorder.to_dataset()["length"].values.sum() == 14 + 3 + 2 + 2 + 15


def test_reset_does_not_wait(slow):
    begin, duration = slow
    chunk = make_chunk(range(5), home="jax")
    recorder = tl.Recorder()
    recorder.record(after(jnp.zeros(()), chunk))
    y = begin()
    recorder.record(after(y, chunk))
    start = time.perf_counter()
    recorder.reset()
    recorder.record(after(y, chunk))
    took = time.perf_counter() - start
    assert not y.is_ready()
    assert took < 0.25 * duration
    assert_holds(recorder.to_dataset(), range(5))


@pytest.mark.parametrize("home", ["jax", "mixed", "flags_numpy"])
@pytest.mark.parametrize(
    "options", [{}, {"max_episodes": 10_000}, {"envs": [1, 2]}], ids=["plain", "limited", "some_envs"]
)
def test_nothing_compiles_after_the_second_call(home, options, caplog):
    chunks = [make_chunk(range(i, i + 6), home=home) for i in range(0, 120, 6)]
    recorder = tl.Recorder(**options)
    record_all(recorder, chunks[:2])
    with jax.log_compiles():
        record_all(recorder, chunks[2:])
    assert [record.getMessage() for record in caplog.records] == []


def test_a_second_recorder_of_the_same_kind_compiles_nothing(caplog):
    chunks = [make_chunk(range(i, i + 6), home="jax") for i in range(0, 60, 6)]
    record_all(tl.Recorder(), chunks)
    with jax.log_compiles():
        record_all(tl.Recorder(), chunks)
    assert [record.getMessage() for record in caplog.records] == []


def test_each_form_of_a_step_compiles_once(caplog):
    recorder = tl.Recorder(num_envs=3)
    some = [np.array([0, 2]), np.array([2, 1]), np.array([1, 0])]

    def play(serial):
        step = make_step(serial, home="jax")
        part = jax.tree.map(lambda x: x[:2], step)
        recorder.record_step(step)
        recorder.record_step(step, envs=np.array([True, False, serial % 2 == 0]))
        recorder.record_step(part, envs=some[serial % 3])
        recorder.mark_reset([serial % 3])
        recorder.record_step(step)

    for serial in range(2):
        play(serial)
    compiled = cache_sizes(recorder)
    for serial in range(2, 12):
        play(serial)
    assert cache_sizes(recorder) == compiled


def cache_sizes(recorder):
    """Return how many forms each append of a recording has been compiled for."""
    return {key: function._cache_size() for key, function in recorder._session.log._functions.items()}


@pytest.mark.parametrize("home", ["numpy", "jax", "mixed"])
def test_recording_copies_nothing_to_the_host(home, monkeypatch):
    copied = []
    for module in (trajlab.block.read, trajlab.recorder.session):
        monkeypatch.setattr(module, "to_host", lambda array: copied.append(array) or np.asarray(array))
    monkeypatch.setattr(trajlab.block.read, "host_view", lambda array: copied.append(array) or np.asarray(array))
    recorder = tl.Recorder()
    with jax.transfer_guard_device_to_host("disallow"):  # means something on a GPU
        record_all(recorder, [make_chunk(range(i, i + 5), home=home) for i in range(0, 60, 5)])
        repr(recorder), recorder.is_full, recorder.num_recorded_steps
        recorder.reset()
    assert copied == []


def test_only_flags_are_copied_where_episodes_are_counted(monkeypatch):
    copied = []
    for module in (trajlab.block.read, trajlab.recorder.session, trajlab.recorder.stream):
        monkeypatch.setattr(module, "to_host", lambda array: copied.append(np.asarray(array)) or copied[-1])
    recorder = tl.Recorder(max_episodes=10_000)
    for start in range(0, 60, 5):
        recorder.record(jax.block_until_ready(make_chunk(range(start, start + 5), home="jax")))
        jax.block_until_ready([flags for _, flags in recorder._session._arrivals._waiting])
    assert not recorder.is_full
    assert {array.dtype for array in copied} == {np.dtype(np.uint8)}
    assert sum(array.nbytes for array in copied) == 60 * 3
