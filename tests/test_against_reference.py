"""The recorder against the plain reference, over random recordings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from reference import Call, Episode, Mark, Record, first_leaves, make_plan, reference_episodes
from strategies import Stream, cuts, examples, make_calls, permuted, recorder_options, recordings, streams

import trajlab as tl

Convert = Callable[[Any], Any]
INT_COORDS = ("env", "length", "start_row", "start_iteration")
BOOL_COORDS = ("complete", "start_seen", "final_known")


# Recording --------------------------------------------------------------------------------------------------


def as_given(array: np.ndarray) -> np.ndarray:
    return array


def convert_tree(tree: Any, convert: Convert) -> Any:
    if isinstance(tree, Mapping):
        return {name: convert_tree(branch, convert) for name, branch in tree.items()}
    return convert(tree)


def new_recorder(options: Mapping[str, Any]) -> tl.Recorder:
    return tl.Recorder(**{**options, "convention": tl.Convention(**options["convention"])})


def do(recorder: tl.Recorder, call: Call, convert: Convert) -> None:
    """Make one call."""
    if isinstance(call, Mark):
        (recorder.mark_reset if call.kind == "reset" else recorder.mark_gap)(call.envs)
        return
    extra = convert_tree(call.extra, convert)
    if isinstance(call, Record):
        mask = None if call.mask is None else convert(call.mask)
        recorder.record(convert_tree(call.chunk, convert), mask=mask, iteration=call.iteration, **extra)
    else:
        step = convert_tree(call.step, convert)
        recorder.record_step(step, envs=call.envs, iteration=call.iteration, **extra)


def play(calls: Sequence[Call], options: Mapping[str, Any], convert: Convert = as_given) -> tl.Recorder:
    """Make all calls of a recording."""
    recorder = new_recorder(options)
    for call in calls:
        do(recorder, call, convert)
    return recorder


def dataset(recorder: tl.Recorder, **kwargs: Any) -> xr.Dataset:
    """Return the Dataset; one without any episode warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*episode")
        return recorder.to_dataset(**kwargs)


# Comparing --------------------------------------------------------------------------------------------------


def loud(dtype: np.dtype) -> Any:
    """Return what stands where no transition is."""
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def padded(columns: Sequence[Sequence[Any]], like: np.ndarray) -> np.ndarray:
    """Return one field of every episode as (episode, time, ...) with loud padding."""
    longest = max(map(len, columns), default=0)
    out = np.full((len(columns), longest, *like.shape), loud(like.dtype), like.dtype)
    for i, column in enumerate(columns):
        for t, value in enumerate(column):
            out[i, t] = value
    return out


def assert_array(ds: xr.Dataset, name: str, dims: tuple[str, ...], want: np.ndarray) -> None:
    """Check the leading dims, the dtype and every value of a variable."""
    got = ds[name]
    assert got.dims[: len(dims)] == dims, name
    assert got.dtype == want.dtype, name
    np.testing.assert_array_equal(got.values, want, err_msg=name)


def assert_coords(ds: xr.Dataset, episodes: Sequence[Episode], labels: Sequence[int]) -> None:
    """Check every coordinate of the schema."""
    assert_array(ds, "episode", ("episode",), np.array(labels, np.int64))
    longest = max((episode.length for episode in episodes), default=0)
    assert_array(ds, "time", ("time",), np.arange(longest, dtype=np.int64))
    for name in (*INT_COORDS, *BOOL_COORDS):
        values = [getattr(episode, name) for episode in episodes]
        assert_array(ds, name, ("episode",), np.array(values, np.int64 if name in INT_COORDS else bool))
    assert list(map(str, ds["end_reason"].values)) == [episode.end_reason for episode in episodes]
    lengths = np.array([episode.length for episode in episodes], np.int64)
    assert_array(ds, "mask", ("episode", "time"), np.arange(longest) < lengths[:, None])
    assert {"episode", "time", "mask", "end_reason", *INT_COORDS, *BOOL_COORDS} <= set(ds.coords)


def assert_final(ds: xr.Dataset, episodes: Sequence[Episode], leaf: str, like: np.ndarray) -> None:
    """Check a leaf of the final observation; absent is the same as never known."""
    name = f"final_{leaf}"
    if name not in ds:
        assert not any(leaf in episode.final for episode in episodes), f"{name} is missing"
        return
    want = np.full((len(episodes), *like.shape), loud(like.dtype), like.dtype)
    for i, episode in enumerate(episodes):
        if leaf in episode.final:
            want[i] = episode.final[leaf]
    assert_array(ds, name, ("episode",), want)


def assert_matches(
    ds: xr.Dataset,
    episodes: Sequence[Episode],
    calls: Sequence[Call],
    options: Mapping[str, Any],
    labels: Sequence[int] | None = None,
) -> None:
    """Check everything in a Dataset, its attrs apart."""
    arrays = first_leaves(calls)
    plan = make_plan(options["convention"], arrays)
    first = next(call for call in calls if not isinstance(call, Mark))
    leading = len(options["convention"].get("axes", "TN")) if isinstance(first, Record) else 1
    inner = {name: np.zeros(array.shape[leading:], array.dtype) for name, array in arrays.items()}
    inner |= {"iteration": np.zeros((), np.int64)}
    fields = set(inner) - set(plan.final_observation.values())
    assert_coords(ds, episodes, range(len(episodes)) if labels is None else labels)
    for name in fields - {"iteration"}:
        values = padded([episode.fields[name] for episode in episodes], inner[name])
        assert_array(ds, name, ("episode", "time"), values)
    iterations = padded([episode.iteration for episode in episodes], inner["iteration"])
    assert_array(ds, "iteration", ("episode", "time"), iterations)
    for leaf in plan.observation:
        assert_final(ds, episodes, leaf, inner[leaf])
    assert set(ds.data_vars) - {f"final_{leaf}" for leaf in plan.observation} == fields


def assert_same(left: xr.Dataset, right: xr.Dataset) -> None:
    """Check that two Datasets hold the same, attrs apart."""
    xr.testing.assert_equal(left.load(), right.load())
    assert {name: left[name].dtype for name in left} == {name: right[name].dtype for name in right}


# The properties ---------------------------------------------------------------------------------------------


@examples(250)
@given(recordings())
def test_numpy_input(recording: tuple[list[Call], dict[str, Any]]) -> None:
    calls, options = recording
    ds = dataset(play(calls, options))
    assert_matches(ds, reference_episodes(calls, **options), calls, options)


@examples(20)
@given(recordings(wide=False))
def test_jax_input(recording: tuple[list[Call], dict[str, Any]]) -> None:
    calls, options = recording
    ds = dataset(play(calls, options, jnp.asarray))
    assert_matches(ds, reference_episodes(calls, **options), calls, options)


@examples(60)
@given(recordings())
def test_dropping_the_incomplete_keeps_the_numbers(recording: tuple[list[Call], dict[str, Any]]) -> None:
    calls, options = recording
    episodes = reference_episodes(calls, **options)
    labels = [number for number, episode in enumerate(episodes) if episode.complete]
    ds = dataset(play(calls, options), incomplete="drop")
    assert_matches(ds, [episodes[number] for number in labels], calls, options, labels)


@examples(60)
@given(st.data(), streams(explicit=True))
def test_cut_elsewhere(data: st.DataObject, stream: Stream) -> None:
    first, second = (make_calls(stream, data.draw(cuts(stream))) for _ in range(2))
    one, other = (dataset(play(calls, recorder_options(stream, calls))) for calls in (first, second))
    assert_same(one, other)


@examples(60)
@given(st.data(), streams(explicit=True, whole=True))
def test_environments_permuted(data: st.DataObject, stream: Stream) -> None:
    order = np.array(data.draw(st.permutations(range(stream.num_envs))))
    pieces = data.draw(cuts(stream))
    calls, swapped_calls = make_calls(stream, pieces), make_calls(permuted(stream, order), pieces)
    ds = dataset(play(calls, recorder_options(stream, calls)))
    swapped = dataset(play(swapped_calls, recorder_options(stream, swapped_calls)))
    swapped["env"] = swapped["env"].copy(data=order[swapped["env"].values])
    back = swapped.isel(episode=np.lexsort([swapped["env"].values, swapped["start_row"].values]))
    back["episode"] = ds["episode"]
    letters = [name for name in ds.coords if name in stream.sizes]
    assert_same(ds.drop_vars(letters), back.drop_vars(letters))


@pytest.mark.parametrize(("convert", "wide"), [(as_given, True), (jnp.asarray, False)], ids=["numpy", "jax"])
def test_datasets_made_on_the_way(convert: Convert, wide: bool) -> None:
    @examples(60 if wide else 8)
    @given(st.data(), recordings(wide=wide))
    def check(data: st.DataObject, recording: tuple[list[Call], dict[str, Any]]) -> None:
        calls, options = recording
        first = next(i for i, call in enumerate(calls) if not isinstance(call, Mark))
        stops = data.draw(st.sets(st.integers(first + 1, len(calls)), max_size=4))
        recorder = new_recorder(options)
        seen = {}
        for i, call in enumerate(calls, start=1):
            do(recorder, call, convert)
            if i in stops:
                seen[i] = dataset(recorder)
        assert_matches(dataset(recorder), reference_episodes(calls, **options), calls, options)
        for stop, ds in seen.items():
            so_far = reference_episodes(calls[:stop], **options)
            assert_matches(ds, so_far, calls, options)

    check()
