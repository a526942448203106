"""The recorder against the plain reference, over random recordings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from reference import Call, Episode, Mark, Plan, Record, Step, first_leaves, make_plan, reference_episodes
from strategies import (
    Stream,
    block_sizes,
    cuts,
    examples,
    indexers,
    make_calls,
    permuted,
    recorder_options,
    recordings,
    streams,
)

import trajlab as tl

Convert = Callable[[Any], Any]
Recording = tuple[list[Call], dict[str, Any]]
INT_COORDS = ("env", "length", "start_row", "start_iteration")
BOOL_COORDS = ("complete", "start_seen", "final_known")


# Recording --------------------------------------------------------------------------------------------------


def as_given(array: np.ndarray) -> np.ndarray:
    return array


def convert_tree(tree: Any, convert: Convert) -> Any:
    if isinstance(tree, Mapping):
        return {name: convert_tree(branch, convert) for name, branch in tree.items()}
    return convert(tree)


def shares_rows(calls: Sequence[Call]) -> bool:
    """Say whether environments share rows: then these depend on where blocks end, which the reference does not know."""
    return any(isinstance(call, Step) and call.envs is not None for call in calls)


def by_env(ds: xr.Dataset) -> xr.Dataset:
    """Return the episodes of one environment after the other, without what says in which rows they stand."""
    ordered = ds.isel(episode=np.lexsort([ds["start_row"].values, ds["env"].values]))
    return ordered.assign_coords(episode=np.arange(ds.sizes["episode"])).drop_vars("start_row")


@contextmanager
def blocks_of(chunks: int | None) -> Iterator[None]:
    """Let a block take so many chunks; None: as many as a megabyte holds, which is all of a test's."""
    if chunks is None:
        yield
    else:
        with patch.multiple("trajlab.block.log", MIN_CHUNKS=chunks, MIN_BYTES=1):
            yield


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
    """Return the Dataset; one without any episode warns, and rows made up at random look strange to the self-check."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*episode")
        warnings.filterwarnings("ignore", message="the recording may not be what its convention says")
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


def own_dims(name: str, plan: Plan, like: np.ndarray) -> tuple[str, ...]:
    """Return the dims of a field beside episode and time; those of the observation go for its kin too."""
    observed = {other: leaf for leaf, other in plan.next_observation.items()}
    return tuple(f"{observed.get(name, name)}_dim_{axis}" for axis in range(like.ndim))


def assert_array(ds: xr.Dataset, name: str, dims: tuple[str, ...], want: np.ndarray) -> None:
    """Check the dims, the dtype and every value of a variable."""
    got = ds[name]
    assert got.dims == dims, name
    assert got.dtype == want.dtype, name
    np.testing.assert_array_equal(got.values, want, err_msg=name)


def assert_coords(ds: xr.Dataset, episodes: Sequence[Episode], labels: Sequence[int]) -> None:
    """Check every coordinate of the schema, and those of axes merged into the environments."""
    assert_array(ds, "episode", ("episode",), np.array(labels, np.int64))
    longest = max((episode.length for episode in episodes), default=0)
    assert_array(ds, "time", ("time",), np.arange(longest, dtype=np.int64))
    for name in (*INT_COORDS, *BOOL_COORDS):
        values = [getattr(episode, name) for episode in episodes]
        assert_array(ds, name, ("episode",), np.array(values, np.int64 if name in INT_COORDS else bool))
    assert list(map(str, ds["end_reason"].values)) == [episode.end_reason for episode in episodes]
    lengths = np.array([episode.length for episode in episodes], np.int64)
    assert_array(ds, "mask", ("episode", "time"), np.arange(longest) < lengths[:, None])
    for letter in episodes[0].axes if episodes else ():
        assert_array(ds, letter, ("episode",), np.array([episode.axes[letter] for episode in episodes]))
    assert {"episode", "time", "mask", "end_reason", *INT_COORDS, *BOOL_COORDS} <= set(ds.coords)


def assert_final(ds: xr.Dataset, episodes: Sequence[Episode], leaf: str, plan: Plan, like: np.ndarray) -> None:
    """Check a leaf of the final observation; absent is the same as never known."""
    name = f"final_{leaf}"
    if name not in ds:
        assert not any(leaf in episode.final for episode in episodes), f"{name} is missing"
        return
    want = np.full((len(episodes), *like.shape), loud(like.dtype), like.dtype)
    for i, episode in enumerate(episodes):
        if leaf in episode.final:
            want[i] = episode.final[leaf]
    assert_array(ds, name, ("episode", *own_dims(leaf, plan, like)), want)


def inner_arrays(calls: Sequence[Call], convention: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return, for each array of the recording, one with its inner shape and dtype."""
    first = next(call for call in calls if not isinstance(call, Mark))
    leading = len(convention.get("axes", "TN")) if isinstance(first, Record) else 1
    return {name: np.zeros(array.shape[leading:], array.dtype) for name, array in first_leaves(calls).items()}


def assert_matches(
    ds: xr.Dataset,
    episodes: Sequence[Episode],
    calls: Sequence[Call],
    options: Mapping[str, Any],
    labels: Sequence[int] | None = None,
) -> None:
    """Check everything in a Dataset, its attrs apart."""
    plan = make_plan(options["convention"], first_leaves(calls))
    inner = inner_arrays(calls, options["convention"])
    fields = set(inner) - set(plan.final_observation.values())
    assert_coords(ds, episodes, range(len(episodes)) if labels is None else labels)
    for name in sorted(fields):
        values = padded([episode.fields[name] for episode in episodes], inner[name])
        assert_array(ds, name, ("episode", "time", *own_dims(name, plan, inner[name])), values)
    iterations = padded([episode.iteration for episode in episodes], np.zeros((), np.int64))
    assert_array(ds, "iteration", ("episode", "time"), iterations)
    for leaf in plan.observation:
        assert_final(ds, episodes, leaf, plan, inner[leaf])
    assert set(ds.data_vars) - {f"final_{leaf}" for leaf in plan.observation} == {*fields, "iteration"}


def assert_same(left: xr.Dataset, right: xr.Dataset) -> None:
    """Check that two Datasets hold the same, attrs apart."""
    xr.testing.assert_equal(left.load(), right.load())
    assert {name: left[name].dtype for name in left} == {name: right[name].dtype for name in right}


# The properties ---------------------------------------------------------------------------------------------


def check_recording(recording: Recording, chunks: int | None, convert: Convert) -> None:
    calls, options = recording
    with blocks_of(None if shares_rows(calls) else chunks):
        ds = dataset(play(calls, options, convert))
    assert_matches(ds, reference_episodes(calls, **options), calls, options)


@examples(150)
@given(recordings(), block_sizes)
def test_numpy_input(recording: Recording, chunks: int | None) -> None:
    check_recording(recording, chunks, as_given)


@examples(15)
@given(recordings(wide=False), block_sizes)
def test_jax_input(recording: Recording, chunks: int | None) -> None:
    check_recording(recording, chunks, jnp.asarray)


@examples(50)
@given(recordings())
def test_dropping_the_incomplete_keeps_the_numbers(recording: Recording) -> None:
    calls, options = recording
    episodes = reference_episodes(calls, **options)
    labels = [number for number, episode in enumerate(episodes) if episode.complete]
    ds = dataset(play(calls, options), incomplete="drop")
    assert_matches(ds, [episodes[number] for number in labels], calls, options, labels)


@examples(50)
@given(st.data(), streams(explicit=True))
def test_cut_elsewhere(data: st.DataObject, stream: Stream) -> None:
    first, second = (make_calls(stream, data.draw(cuts(stream))) for _ in range(2))
    shares = shares_rows([*first, *second])
    limit = {"max_episodes": None} if shares else {}  # the first to start are those of the first rows
    with blocks_of(2):
        one = dataset(play(first, recorder_options(stream, first) | limit))
    other = dataset(play(second, recorder_options(stream, second) | limit))
    assert_same(*(by_env(one), by_env(other)) if shares else (one, other))


@examples(50)
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


def check_on_the_way(data: st.DataObject, recording: Recording, chunks: int | None, convert: Convert) -> None:
    """Make Datasets in mid-recording and read them after its end."""
    calls, options = recording
    first = next(i for i, call in enumerate(calls) if not isinstance(call, Mark))
    stops = data.draw(st.sets(st.integers(first + 1, len(calls)), max_size=4))
    recorder = new_recorder(options)
    seen = {}
    with blocks_of(None if shares_rows(calls) else chunks):
        for i, call in enumerate(calls, start=1):
            do(recorder, call, convert)
            if i in stops:
                seen[i] = dataset(recorder)
    seen[len(calls)] = dataset(recorder)
    if data.draw(st.booleans()):
        recorder.reset()
    for stop, ds in seen.items():
        assert_matches(ds, reference_episodes(calls[:stop], **options, reads=stops), calls, options)


@examples(50)
@given(st.data(), recordings(), block_sizes)
def test_datasets_made_on_the_way(data: st.DataObject, recording: Recording, chunks: int | None) -> None:
    check_on_the_way(data, recording, chunks, as_given)


@examples(6)
@given(st.data(), recordings(wide=False), block_sizes)
def test_datasets_made_on_the_way_of_jax_input(data: st.DataObject, recording: Recording, chunks: int | None) -> None:
    check_on_the_way(data, recording, chunks, jnp.asarray)


def check_parts(data: st.DataObject, recording: Recording, chunks: int | None, convert: Convert) -> None:
    """Read parts of the lazy Dataset and the same of the loaded one."""
    with blocks_of(chunks):
        recorder = play(*recording, convert)
    ds, whole = dataset(recorder), dataset(recorder).load()
    if not ds.sizes["episode"]:
        return
    for _ in range(3):
        index = data.draw(indexers(ds.sizes["episode"], ds.sizes["time"]))
        name = data.draw(st.sampled_from(sorted([*ds.data_vars, "mask"])))
        only = {dim: key for dim, key in index.items() if dim in ds[name].dims}
        xr.testing.assert_identical(ds[name].isel(only).load(), whole[name].isel(only))


@examples(50)
@given(st.data(), recordings(), block_sizes)
def test_parts_read_alone(data: st.DataObject, recording: Recording, chunks: int | None) -> None:
    check_parts(data, recording, chunks, as_given)


@examples(6)
@given(st.data(), recordings(wide=False), block_sizes)
def test_parts_of_jax_input_read_alone(data: st.DataObject, recording: Recording, chunks: int | None) -> None:
    check_parts(data, recording, chunks, jnp.asarray)
