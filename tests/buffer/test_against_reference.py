"""The buffer against the plain reference and the Recorder, over random recordings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from buffer.streams import buffer_of, even_streams, play_into
from hypothesis import given
from hypothesis import strategies as st
from reference import first_leaves, make_plan, reference_episodes, without_rows
from strategies import examples, make_calls
from test_against_reference import assert_matches, assert_same, dataset, play

import trajlab as tl


def read(buffer: tl.Buffer, **kwargs: Any) -> xr.Dataset:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*episode")
        warnings.filterwarnings("ignore", message="the recording may not be what its convention says")
        return tl.to_dataset(buffer, **kwargs)


def first_record(calls):
    return next(call for call in calls if hasattr(call, "chunk"))


@examples(16)
@given(even_streams())
def test_buffer_with_room_equals_recorder_and_reference(drawn):
    stream, pieces = drawn
    calls, options = make_calls(stream, pieces), stream.options
    buffer = play_into(buffer_of(first_record(calls), options, capacity=stream.num_rows), calls, stream.num_envs)
    ds = read(buffer)
    assert_matches(ds, reference_episodes(calls, **options), calls, options)
    recorded = dataset(play(calls, options))
    assert_same(ds, recorded)
    assert ds.attrs == recorded.attrs


@examples(20)
@given(st.data(), even_streams())
def test_first_rows_are_kept(data, drawn):
    stream, pieces = drawn
    calls, options = make_calls(stream, pieces), stream.options
    length = pieces[0].stop
    wanted = data.draw(st.integers(1, stream.num_rows + length))
    buffer = play_into(buffer_of(first_record(calls), options, capacity=wanted), calls, stream.num_envs)
    kept = min(-(-wanted // length) * length, stream.num_rows)
    whole = make_calls(stream, pieces[: kept // length])
    whole = [call for call in whole if hasattr(call, "chunk") or call is not whole[-1]]
    ds = read(buffer)
    assert_matches(ds, reference_episodes(whole, **options), whole, options)
    assert [ds.attrs[f"rows_{what}"] for what in ("seen", "kept", "dropped", "evicted")] == [
        stream.num_rows, kept, stream.num_rows - kept, 0,
    ]  # fmt: skip


@examples(50)
@given(st.data(), even_streams())
def test_last_rows_are_kept(data, drawn):
    stream, pieces = drawn
    if stream.options["convention"].get("autoreset") == "disabled":
        return
    calls, options = make_calls(stream, pieces), stream.options
    length = pieces[0].stop
    wanted = data.draw(st.integers(1, stream.num_rows + length))
    buffer = buffer_of(first_record(calls), options, capacity=wanted, keep="last")
    ds = read(play_into(buffer, calls, stream.num_envs))
    kept = min(-(-wanted // length) * length, stream.num_rows)
    evicted = stream.num_rows - kept
    episodes = without_rows(reference_episodes(calls, **options), evicted, options["convention"], calls)
    numbers = ds["episode"].values
    known = np.array([episode.number for episode in episodes], int)
    heads = numbers[known < 0]
    assert len(np.unique(numbers)) == len(numbers)
    moved = make_plan(options["convention"], first_leaves(calls)).moved
    assert (ds.attrs["cells_unaligned"] > 0) == bool(moved) or not episodes
    assert heads.max(initial=-1) < min(known[known >= 0], default=10**6)
    labels = [int(number) if own < 0 else own for own, number in zip(known, numbers, strict=True)]
    assert_matches(ds, episodes, calls, options, labels=labels)
    assert [ds.attrs[f"rows_{what}"] for what in ("seen", "kept", "dropped", "evicted")] == [
        stream.num_rows, kept, 0, evicted,
    ]  # fmt: skip
