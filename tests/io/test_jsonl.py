"""A Dataset written as JSON Lines comes back equal: every dtype, every form, every part of any recording."""

import json
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import ragged
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, recordings
from test_against_reference import dataset, play

import trajlab as tl


def assert_same(ds, again):
    ds, again = ds.sortby("episode").load(), again.load()
    xr.testing.assert_identical(ds, again)
    for name, variable in ds.variables.items():
        assert variable.dtype == again.variables[name].dtype, name
        assert (name in ds.coords) == (name in again.coords), name


def round_trip(ds, path):
    """Write, check that each line is strict JSON, read, compare."""
    tl.write_jsonl(ds, path, mode="replace")
    for file in path.iterdir():
        for line in file.read_text().rstrip("\n").split("\n"):
            json.loads(line, parse_constant=pytest.fail)
    again = tl.read_jsonl(path)
    assert_same(ds, again)
    tl.validate(again, deep=True)
    return again


def lines(path, number=0):
    return [json.loads(line) for line in (path / f"episode_{number:05d}.jsonl").read_text().rstrip("\n").split("\n")]


@pytest.fixture
def ds():
    return ragged.make_dataset([3, 1, 4, 2])


# Any Dataset ----------------------------------------------------------------------------------------------------------


@examples(25)
@given(recordings(), st.data())
def test_any_recording_comes_back(tmp_path_factory, recording, data):
    ds = dataset(play(*recording))
    count, steps = ds.sizes["episode"], ds.sizes["time"]
    order = data.draw(st.permutations(range(count)))[data.draw(st.integers(0, count // 2)) :]
    time = data.draw(st.sampled_from([slice(None)] * 4 + [slice(1, None), slice(None, None, -2), slice(0, steps // 2)]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no episode")
        round_trip(ds.isel(episode=order, time=time), tmp_path_factory.mktemp("jsonl"))


@pytest.mark.parametrize("form", ["lazy", "dask", "file", "shuffled", "strided"])
def test_every_form_comes_back(ds, form, tmp_path):
    path = tmp_path / "run"
    ds = ragged.in_form(ds, form, tmp_path)
    round_trip(ds, path)


WHOLE = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
EXTREMES = {name: [np.iinfo(name).min, np.iinfo(name).max, 1] for name in WHOLE}
ODD = [math.nan, math.inf, -math.inf, -0.0, 0.1, 1e-7]
EXTREMES |= {name: [*ODD, np.finfo(name).max, np.finfo(name).tiny] for name in ("float16", "float32", "float64")}
EXTREMES |= {"bool": [True, False], "complex64": [complex(math.nan, -0.0), 1 + 2j], "complex128": [0.1 - 1j]}
EXTREMES |= {"datetime64[ns]": ["2026-01-01", "NaT"], "timedelta64[s]": [5, "NaT"]}
EXTREMES |= {"str": ['é"\n\\', "", "NaN", "𝄞\u2028"], "S": [b"\xff\x00a", b"]"]}


@pytest.mark.parametrize("dtype", EXTREMES)
def test_every_value_of_every_dtype_comes_back_bit_by_bit(dtype, tmp_path):
    values = np.array(EXTREMES[dtype], dtype)
    ds = tl.from_episodes(
        [
            {"one": values, "cells": np.stack([values, values[::-1]], 1)},
            {"one": values[:1], "cells": values[:1, None].repeat(2, 1)},
        ]
    )
    again = round_trip(ds, tmp_path)
    assert again["one"].values.tobytes() == ds["one"].values.tobytes()
    assert again["cells"].values.tobytes() == ds["cells"].values.tobytes()


def test_floats_are_the_shortest_text(tmp_path):
    ds = tl.from_episodes(
        [{"a": np.array([0.1], np.float32), "b": np.array([0.1]), "c": np.array([1 / 3], np.float32)}]
    )
    round_trip(ds, tmp_path)
    assert '{"a":0.1,"b":0.1,"c":0.33333334}' in (tmp_path / "episode_00000.jsonl").read_text()


def test_keys_and_bfloat16_come_back(tmp_path):
    chunk = {
        "key": jax.random.split(jax.random.key(0), 6).reshape(3, 2),
        "value": jnp.ones((3, 2, 4), jnp.bfloat16) / 3,
        "done": np.array([[0, 0], [1, 0], [0, 1]], bool),
    }
    again = round_trip(tl.from_rollout(chunk), tmp_path)
    assert again["key"].attrs["recorded_dtype"] == "key"
    assert again["value"].attrs["recorded_dtype"] == "bfloat16"


def test_empty_cells_come_back(tmp_path):
    episodes = [{"none": np.zeros((n, 0)), "wide": np.zeros((n, 2, 0, 3), np.int8), "x": np.ones(n)} for n in (2, 1)]
    round_trip(tl.from_episodes(episodes), tmp_path)


def test_labels_units_and_attributes_come_back(ds, tmp_path):
    shapes = {"camera": (2, 2), "x": (2,)}
    episodes = [
        {"obs": {name: np.ones((n + 1, *shape)) for name, shape in shapes.items()}, "action": np.zeros(n)}
        for n in (2, 3)
    ]
    options = {"dims": {"obs.camera": ["row", "column"], "obs.x": "axis"}, "coords": {"axis": ["x", "y"]}}
    ds = tl.from_episodes(episodes, units={"obs.x": {"x": "m", "y": "rad"}}, **options)
    ds = ds.assign_attrs(note="é", low=-math.inf, bounds=[1, 2], scale=0.1)
    ds = ds.assign_coords(seed=("episode", [3, 2**40]), name="a run", weight=("time", [0.5, 1.5, 2.5]))
    ds = ds.assign(
        speed=ds["obs.x"] * 2, goal=("axis", [1.0, math.nan]), turned=(("axis", "episode"), [[1, 2], [3, 4]])
    )
    again = round_trip(ds, tmp_path)
    assert list(again.data_vars) == list(ds.data_vars)
    again = round_trip(ds.assign_attrs(low=1).assign_attrs(odd=-math.inf), tmp_path)
    assert again.attrs["odd"] == -math.inf
    tl.write_jsonl(ds.assign_attrs(odd=math.nan), tmp_path, mode="replace")
    assert math.isnan(tl.read_jsonl(tmp_path).attrs["odd"])


def test_agents_come_back(tmp_path):
    chunk = {
        "obs": {"a": np.arange(8.0).reshape(4, 1, 2), "b": np.arange(8.0).reshape(4, 1, 2)},
        "action": {"a": np.arange(4).reshape(4, 1), "b": np.arange(4).reshape(4, 1)},
        "reward": {"a": np.ones((4, 1)), "b": np.ones((4, 1))},
        "done": {
            "a": np.array([[0], [1], [1], [0]], bool),
            "b": np.array([[0], [0], [1], [0]], bool),
            "__all__": np.array([[0], [0], [1], [0]], bool),
        },
    }
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    assert "alive" in ds.coords
    round_trip(ds, tmp_path)


def test_values_of_whole_episodes_and_runs_come_back(tmp_path):
    rec = tl.Recorder(episode_fields={"info.success": "last"})
    rec.record({"info": {"success": np.array([[False], [True], [False]])}, "done": np.array([[0], [1], [0]], bool)})
    ds = rec.to_dataset()
    round_trip(tl.concat({"a": ds, "b": ds}), tmp_path)


def test_what_where_made_of_fields_comes_back(ds, tmp_path):
    masked = ds.assign(text=(("episode", "time"), np.full((4, 4), "é"))).where(ds["mask"])
    assert (masked["action"].dtype, masked["text"].dtype) == (float, object)
    round_trip(masked, tmp_path)


def test_no_episode_comes_back(ds, tmp_path):
    with pytest.warns(UserWarning, match="no episode"):
        round_trip(ds.isel(episode=slice(0, 0)), tmp_path)
    with pytest.warns(UserWarning, match="no episode"):
        assert dict(tl.read_jsonl(tmp_path).sizes) == {"episode": 0, "time": 4, "obs_dim_0": 3, "pair_dim_0": 2}
    (tmp_path / "no_episodes.jsonl").unlink()
    with pytest.warns(UserWarning, match="no episode: .* holds none"):
        assert tl.read_jsonl(tmp_path).sizes["episode"] == 0


def test_it_is_lazy_and_follows_the_rows(tmp_path):
    lengths = [1] * 50 + [400]
    ds = tl.from_episodes([{"image": np.zeros((n, 8, 8), np.uint8)} for n in lengths])
    again = round_trip(ds, tmp_path)
    assert tl.transitions(again).sizes["transition"] == sum(lengths)


# The lines ------------------------------------------------------------------------------------------------------------


def older_reader(path):
    """Read a file as readers of the older format do: a reset line first, then steps from 1 with what they led to."""
    records = [json.loads(line) for line in path.read_text().rstrip("\n").split("\n")]
    assert records[0]["event"] == "reset"
    steps = records[1:]
    assert [step["t"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(step["event"] == "step" for step in steps)
    return {
        "observations": np.asarray([record["obs"] for record in records], float),
        "actions": [step["action"] for step in steps],
        "rewards": np.asarray([step["reward"] for step in steps], float),
        "flags": [(step["terminated"], step["truncated"]) for step in steps],
        "infos": [record["info"] for record in records],
    }


def test_readers_of_the_older_format_read_the_files(tmp_path):
    rows = {
        "obs": np.array([[0, math.nan], [1, 1], [2, math.inf]], np.float32),
        "action": np.array([4, 5]),
        "reward": np.array([0.5, -1]),
        "terminated": np.array([False, True]),
        "truncated": np.array([False, False]),
        "info": {"x": np.array([1, 2]), "episode": {"r": np.array([0.0, -0.5])}},
    }
    tl.write_jsonl(tl.from_episodes([rows]), tmp_path)
    read = older_reader(tmp_path / "episode_00000.jsonl")
    np.testing.assert_array_equal(read["observations"], rows["obs"])
    assert read["actions"] == [4, 5]
    assert read["rewards"].tolist() == [0.5, -1]
    assert read["flags"] == [(False, False), (True, False)]
    assert read["infos"] == [{}, {"x": 1, "episode": {"r": 0.0}}, {"x": 2, "episode": {"r": -0.5}}]


@pytest.mark.parametrize(
    ("reason", "flags"),
    [("terminated", (True, False)), ("truncated", (False, True)), ("done", (None, None)), ("cut", (False, False))],
)
def test_flags_stand_in_the_lines_also_where_none_were_recorded(reason, flags, tmp_path):
    tl.write_jsonl(tl.from_episodes([{"obs": np.zeros((2, 1))}], end_reason=reason), tmp_path)
    _, first, last = lines(tmp_path)
    assert (first["terminated"], first["truncated"]) == (False, False)
    assert (last["terminated"], last["truncated"]) == flags
    assert last["obs"] is None
    assert last["action"] is None


def test_dict_observations_are_objects_and_names_may_be_in_each_others_way(tmp_path):
    episodes = [{"obs": {"a": np.zeros(2), "b": {"c": np.ones(2)}}, "info": {"x": np.zeros(2), "y": np.ones(2)}}]
    ds = tl.from_episodes(episodes).rename({"info.y": "info.x.z"})
    round_trip(ds, tmp_path)
    first, step, _ = lines(tmp_path)
    assert first["obs"] == {"a": 0.0, "b": {"c": 1.0}}
    assert step["fields"] == {"info.x": 0.0, "info.x.z": 1.0}


def test_percent_signs_in_names_are_names(tmp_path):
    round_trip(tl.from_episodes([{"obs": {"%d": np.zeros(2), "%b": np.ones(2)}, "100%": np.zeros(2)}]), tmp_path)


# Directories ----------------------------------------------------------------------------------------------------------


def test_a_directory_of_an_earlier_run_is_refused_continued_or_replaced(ds, tmp_path):
    path = tmp_path / "new" / "run"
    tl.write_jsonl(ds, path)
    with pytest.raises(FileExistsError, match=r"holds the episodes of an earlier run \(4 files.*mode='append'"):
        tl.write_jsonl(ds, path)
    tl.write_jsonl(ds.isel(episode=[0, 2]), path, mode="append")
    assert tl.read_jsonl(path)["episode"].values.tolist() == [0, 1, 2, 3, 4, 6]
    tl.write_jsonl(ds.isel(episode=[1]), path, mode="replace")
    assert tl.read_jsonl(path)["episode"].values.tolist() == [1]
    with pytest.raises(ValueError, match="mode='apend'.*Did you mean 'append'"):
        tl.write_jsonl(ds, path, mode="apend")
    with pytest.raises(FileExistsError, match="is a file; expected a directory"):
        tl.write_jsonl(ds, path / "episode_00001.jsonl")
    with pytest.raises(TypeError, match="path=3; expected the path"):
        tl.write_jsonl(ds, 3)


def test_a_refused_dataset_deletes_nothing(ds, tmp_path):
    tl.write_jsonl(ds, tmp_path)
    with pytest.raises(ValueError, match="not a Dataset of trajlab"):
        tl.write_jsonl(ds.drop_vars("length"), tmp_path, mode="replace")
    with pytest.raises(TypeError, match="'long': dtype .* has no place in a JSONL file"):
        tl.write_jsonl(ds.assign(long=ds["reward"].astype(np.longdouble)), tmp_path, mode="replace")
    assert_same(ds, tl.read_jsonl(tmp_path))


def test_files_are_read_in_the_order_of_their_numbers(ds, tmp_path):
    ds = ds.assign_coords(episode=[99_999, 3, 100_000, 1_234_567])
    assert round_trip(ds, tmp_path)["episode"].values.tolist() == [3, 99_999, 100_000, 1_234_567]


def test_appended_episodes_may_be_longer_and_texts_wider(tmp_path):
    first, second = ([{"text": np.array(texts), "x": np.ones(len(texts))}] for texts in (["a"], ["bcd", "e"]))
    tl.write_jsonl(tl.from_episodes(first), tmp_path)
    tl.write_jsonl(tl.from_episodes(second), tmp_path, mode="append")
    again = tl.read_jsonl(tmp_path)
    assert again["text"].values.tolist() == [["a", ""], ["bcd", "e"]]
    assert again["time"].values.tolist() == [0, 1]


def test_one_file_is_one_episode(ds, tmp_path):
    tl.write_jsonl(ds, tmp_path)
    assert_same(ds.isel(episode=[2]), tl.read_jsonl(tmp_path / "episode_00002.jsonl"))
    with pytest.raises(FileNotFoundError, match="there is no .*nowhere"):
        tl.read_jsonl(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("other", "match"),
    [
        ({"reward": np.ones(2)}, "episode_00001.jsonl, line 1: 'action' does not fit .*00000.jsonl: it is in one"),
        ({"action": np.ones((2, 1), int), "reward": np.ones(2)}, "'action' does not fit .*: its dims are"),
        ({"action": np.ones(2), "reward": np.ones(2)}, "'action' .*: it has dtype float64 and int64. Read files"),
    ],
)
def test_recordings_of_different_kinds_do_not_fit_together(other, match, tmp_path):
    tl.write_jsonl(tl.from_episodes([{"action": np.ones(2, int), "reward": np.ones(2)}]), tmp_path)
    tl.write_jsonl(tl.from_episodes([other]), tmp_path, mode="append")
    with pytest.raises(ValueError, match=match):
        tl.read_jsonl(tmp_path)
