"""Chunks that lie where JAX cannot compute with them are refused before anything is stored, and told what to do."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chunks import assert_holds, make_chunk, make_step
from jax.sharding import Mesh
from sharding.meshes import make_mesh, put

import trajlab as tl

N = 16
EIGHT = "8 devices, cpu:0,1,2,3,4,5,6,7"


def chunk_at(row):
    return make_chunk(range(row, row + 5), N, home="jax", only=("serial", "reward"))


def on(tree, number):
    return jax.device_put(tree, jax.devices()[number])


def refused(recorder, chunk, *texts, **options):
    """Check that a chunk is refused with a message that holds these texts, and that nothing has changed."""
    counters, session = recorder._counters, recorder._session
    with pytest.raises(ValueError, match=re.escape(texts[0])) as caught:
        recorder.record(chunk, **options)
    for text in (*texts, "jax.device_put(chunk, sharding)"):
        assert text in str(caught.value)
    assert (recorder._counters, recorder._session) == (counters, session)


def test_one_array_elsewhere(mesh):
    good = put(chunk_at(0), mesh, None, "d")
    recorder = tl.Recorder()
    texts = (
        f"'serial', 'terminated', 'truncated' on {EIGHT}",
        "'reward' on cpu:2",
        "its arrays lie on different devices",
    )
    refused(recorder, good | {"reward": on(good["reward"], 2)}, *texts)
    recorder.record(good)
    refused(recorder, good | {"reward": on(good["reward"], 2)}, *texts)
    recorder.record(put(chunk_at(5), mesh, None, "d"))
    assert_holds(recorder.to_dataset(), range(10), N)


def test_a_flag_or_a_mask_elsewhere(mesh):
    good = put(chunk_at(0), mesh, None, "d")
    recorder = tl.Recorder()
    refused(recorder, good | {"truncated": on(good["truncated"], 0)}, "'truncated' on cpu:0")
    refused(recorder, good, "'mask' on cpu:1", mask=on(jnp.ones((5, N), bool), 1))
    refused(recorder, chunk_at(0) | {"reward": on(chunk_at(0)["reward"], 1)}, "'mask' on cpu:0", mask=on(jnp.ones((5, N), bool), 0))  # fmt: skip


PLACES = {
    "split": lambda tree: put(tree, make_mesh("auto"), None, "d"),
    "half": lambda tree: put(tree, make_mesh("auto", (4,)), None, "d"),
    "reversed": lambda tree: put(tree, Mesh(np.array(jax.devices()[:8])[::-1], ("d",)), None, "d"),
    "first": lambda tree: on(tree, 0),
    "second": lambda tree: on(tree, 1),
}
TEXTS = {
    "split": EIGHT,
    "half": "4 devices, cpu:0,1,2,3",
    "reversed": "8 devices, cpu:7,6,5,4,3,2,1,0",
    "first": "cpu:0",
    "second": "cpu:1",
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("split", "first"), ("split", "half"), ("split", "reversed"), ("first", "split"), ("first", "second"),
        ("half", "split"), ("reversed", "split"),
    ],
)  # fmt: skip
def test_a_later_chunk_elsewhere(before, after):
    recorder = tl.Recorder()
    recorder.record(PLACES[before](chunk_at(0)))
    texts = "it lies elsewhere than the first one", f"on {TEXTS[after]};", f"expected {TEXTS[before]}. ", "'reward'"
    refused(recorder, PLACES[after](chunk_at(5)), *texts)
    recorder.record(PLACES[before](chunk_at(5)))
    assert_holds(recorder.to_dataset(), range(10), N)


def test_chunks_that_begin_on_no_device_of_their_own():
    recorder = tl.Recorder()
    recorder.record(chunk_at(0))
    refused(recorder, PLACES["split"](chunk_at(5)), f"on {EIGHT}; expected cpu:0.")
    recorder.record(on(chunk_at(5), 0))
    assert_holds(recorder.to_dataset(), range(10), N)


def test_a_step_elsewhere(mesh):
    recorder = tl.Recorder()
    recorder.record_step(put(make_step(0, N, home="jax"), mesh, "d"))
    with pytest.raises(ValueError, match="it lies elsewhere than the first one"):
        recorder.record_step(on(make_step(1, N, home="jax"), 1))
    assert recorder.num_recorded_steps == 1


def test_all_problems_at_once(mesh):
    good = put(chunk_at(0), mesh, None, "d")
    recorder = tl.Recorder()
    recorder.record(good)
    bad = good | {"reward": on(good["reward"].astype(jnp.float16), 1)}
    with pytest.raises(ValueError, match="float16") as caught:
        recorder.record(bad)
    assert "'reward' on cpu:1" in str(caught.value)


def test_what_lives_on_the_host_may_come_from_anywhere(mesh):
    recorder = tl.Recorder()
    chunk = make_chunk(range(5), N, only=("serial", "reward"))
    recorder.record(chunk)
    later = make_chunk(range(5, 10), N, home="jax", only=("serial", "reward"))
    recorder.record(put(later, mesh, None, "d") | {"reward": on(later["reward"], 3)})
    assert_holds(recorder.to_dataset(), range(10), N)
