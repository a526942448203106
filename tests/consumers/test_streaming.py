"""Statistics taken on the device as the rows come are those of the analyses of the whole recording."""

import gc
import itertools
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jax.sharding import NamedSharding, PartitionSpec

import trajlab as tl

EDGES = np.linspace(-0.2, 1.0, 7)
CONVENTIONS = [
    {"autoreset": autoreset, "alignment": alignment, "flags": flags}
    for autoreset, alignment, flags in itertools.product(
        ["same_step", "next_step", "disabled"], ["transition", "result"], ["row", "previous_row"]
    )
]


def consumers():
    return [tl.StreamingHistogram(), tl.StreamingHistogram("obs", bins=EDGES), tl.StreamingTrace("obs", num_steps=99)]


def check(streams, ds):
    """Check the results of `consumers` against the analyses of a Dataset of all rows."""
    counts, bins, trace = (stream.result() for stream in streams)
    xr.testing.assert_equal(counts, tl.action_histogram(ds))
    xr.testing.assert_equal(bins, tl.action_histogram(ds, "obs", bins=EDGES))
    want = tl.state_trace(ds, "obs", quantiles=False)
    xr.testing.assert_allclose(trace, want, rtol=1e-12, atol=1e-12)
    for result, like in ((trace, want), (bins, tl.action_histogram(ds, "obs", bins=EDGES))):
        assert {name: result[name].attrs for name in result.variables} == {n: like[n].attrs for n in like.variables}


def cells(rng, *shape, home=np.asarray):
    arrays = {
        "obs": rng.random((*shape, 2)).astype(np.float32),
        "action": rng.integers(0, 4, shape).astype(np.int32),
        "done": rng.random(shape) < 0.25,
    }
    return {name: home(array) for name, array in arrays.items()}


def record_both(rng, recorders, num_envs, home):
    """Make the same random calls on several recorders: chunks, masks, single and partial steps, marks."""
    for _ in range(5):
        length = int(rng.integers(1, 7))
        kind, envs = rng.choice(["chunk", "mask", "step", "part"]), np.flatnonzero(rng.random(num_envs) < 0.6)
        mark, marked = rng.choice(["mark_reset", "mark_gap", "", ""]), rng.random(num_envs) < 0.5
        shape = {"chunk": (length, num_envs), "mask": (length, num_envs), "part": (len(envs),)}.get(kind, (num_envs,))
        arrays, mask = cells(rng, *shape, home=home), rng.random(shape) < 0.7
        for recorder in recorders:
            if mark:
                getattr(recorder, mark)(marked)
            if kind in ("chunk", "mask"):
                recorder.record(arrays, mask=mask if kind == "mask" else None)
            else:
                recorder.record_step(arrays, envs=envs if kind == "part" else None)


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda convention: "-".join(convention.values()))
@pytest.mark.filterwarnings("ignore:.*(convention|no episode|Recorder|NaN|ends).*:UserWarning")
def test_streams_are_the_analyses_of_the_whole(convention):
    home = [np.asarray, jnp.asarray][CONVENTIONS.index(convention) % 2]
    rng = np.random.default_rng(len(str(convention)))
    streams = consumers()
    common = {"convention": tl.Convention(**convention), "envs": [0, 2, 3], "num_envs": 4, "starts_fresh": False}
    recorders = [tl.Recorder(**common), tl.Recorder(retain=False, consumers=streams, **common)]
    record_both(rng, recorders, 4, home)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = recorders[0].to_dataset()
    check(streams, ds)


def test_labels_dims_units_and_attributes():
    streams = [
        tl.StreamingHistogram("action", labels=["left", "stay", "right", "jump"]),
        tl.StreamingHistogram("obs", bins=EDGES),
        tl.StreamingTrace("obs"),
    ]
    recorder = tl.Recorder(
        dims={"obs": ["component"]}, coords={"component": ["x", "v"]}, units={"obs": ["m", "m/s"]}, consumers=streams
    )
    recorder.record(cells(np.random.default_rng(0), 9, 3))
    ds = recorder.to_dataset()
    want = [
        tl.action_histogram(ds, labels=["left", "stay", "right", "jump"]),
        tl.action_histogram(ds, "obs", bins=EDGES),
        tl.state_trace(ds, "obs", quantiles=False),
    ]
    for stream, like in zip(streams, want, strict=True):
        xr.testing.assert_allclose(stream.result(), like, rtol=1e-12)
        assert set(stream.result().coords) == set(like.coords)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "uint64", "float16", "bfloat16", "float64"])
def test_dtypes(dtype):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2, (40, 3)) if dtype in ("bool", "uint64") else rng.integers(-3, 5, (40, 3)).clip(0)
    field = jnp.asarray(values, dtype) if dtype == "bfloat16" else values.astype(dtype)
    histogram = tl.StreamingHistogram("x", bins=None if np.dtype(jnp.dtype(dtype)).kind in "biu" else [0, 1, 2, 5])
    trace = tl.StreamingTrace("x")
    recorder = tl.Recorder(consumers=[histogram, trace])
    recorder.record({"x": field, "done": rng.random((40, 3)) < 0.2})
    ds = recorder.to_dataset()
    want = tl.action_histogram(ds, "x", bins=None if ds["x"].dtype.kind in "biu" else [0, 1, 2, 5])
    assert histogram.result()["count"].values.tolist() == want["count"].values.tolist()
    xr.testing.assert_allclose(trace.result(), tl.state_trace(ds, "x", quantiles=False), rtol=1e-12)


def test_sums_keep_their_digits():
    """A million rows of values far from 0, whose deviation 32 bits would lose."""
    trace = tl.StreamingTrace("x")
    recorder = tl.Recorder(retain=False, consumers=[trace])
    values = jnp.asarray(1e4 + np.random.default_rng(0).random((8, 4096)), jnp.float32)
    for _ in range(30):
        recorder.record({"x": values, "done": jnp.ones((8, 4096), bool)})
    result = trace.result()
    assert result["n"].values.tolist() == [30 * 8 * 4096]
    np.testing.assert_allclose(result["mean"].values, np.float64(values).mean(), rtol=1e-12)
    np.testing.assert_allclose(result["std"].values, np.float64(values).std(), rtol=1e-9)


def test_sums_keep_their_digits_where_the_first_rows_are_no_transitions():
    trace = tl.StreamingTrace("obs")
    recorder = tl.Recorder(convention=tl.Convention(alignment="result"), consumers=[trace])
    rng = np.random.default_rng(0)
    for t in range(20):
        recorder.record_step({"obs": 1e8 + 0.01 * rng.random(4), "done": np.full(4, t % 5 == 4)})
    want = tl.state_trace(recorder.to_dataset(), "obs", quantiles=False)
    xr.testing.assert_allclose(trace.result(), want, rtol=1e-9)


def test_the_first_chunk_is_not_kept():
    trace = tl.StreamingTrace("x")
    recorder = tl.Recorder(retain=False, consumers=[trace])
    recorder.record({"x": jnp.ones((2, 3)), "camera": jnp.ones((2, 3, 1777)), "done": jnp.zeros((2, 3), bool)})
    gc.collect()
    assert not [array for array in jax.live_arrays() if array.shape == (2, 3, 1777)]


def test_environments_split_over_devices():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec(None, "d"))
    streams = consumers()
    recorder = tl.Recorder(consumers=streams)
    rng = np.random.default_rng(3)
    for _ in range(3):
        recorder.record(jax.device_put(cells(rng, 10, 16), split))
    check(streams, recorder.to_dataset())


def test_what_is_not_counted_is_said():
    streams = [
        tl.StreamingHistogram("x", bins=[0, 1, 2]),
        tl.StreamingHistogram("a", num_values=2),
        tl.StreamingTrace("x", num_steps=2),
    ]
    recorder = tl.Recorder(consumers=streams)
    x = np.array([[np.nan], [-1.0], [2.0], [5.0]])
    recorder.record({"x": x, "a": np.array([[0], [1], [-1], [7]]), "done": np.zeros((4, 1), bool)})
    with pytest.warns(UserWarning, match="1 values of 'x' are NaN"):
        bins = streams[0].result()
    assert [bins.attrs[name] for name in ("num_nan", "num_below", "num_above")] == [1, 1, 1]
    assert bins["count"].values.tolist() == [0, 1]
    with pytest.warns(UserWarning, match="2 values of 'a' lie outside of 0 to 1"):
        assert streams[1].result()["count"].values.tolist() == [1, 1]
    with (
        pytest.warns(UserWarning, match="'x' has NaN, and so has its trace, at 1 of 2 steps"),
        pytest.warns(UserWarning, match="transitions after step 1 of their episodes, 2 in all"),
    ):
        trace = streams[2].result()
    assert trace.sizes["time"] == 2
    assert trace.attrs["num_above"] == 2


def test_wrong_use():
    with pytest.raises(ValueError, match="nothing of 'action' has come"):
        tl.StreamingHistogram().result()
    for bins in (10, [0.0], [1, 0], [False, True]):
        with pytest.raises(ValueError, match=rf"bins={re.escape(str(bins))}; expected at least two finite edges"):
            tl.StreamingHistogram("x", bins=bins)
    with pytest.raises(ValueError, match="num_steps=0"):
        tl.StreamingTrace("x", num_steps=0)
    with pytest.raises(TypeError, match="num_values=2.5; expected a whole number"):
        tl.StreamingHistogram("x", num_values=2.5)
    with pytest.raises(TypeError, match="labels='ab'"):
        tl.StreamingHistogram(labels="ab")
    for stream, message in [
        (tl.StreamingHistogram("acton"), "Did you mean 'action'"),
        (tl.StreamingHistogram("obs"), "give their edges"),
    ]:
        recorder = tl.Recorder(consumers=[stream])
        with pytest.warns(UserWarning, match=message):
            recorder.record(cells(np.random.default_rng(0), 2, 2))
