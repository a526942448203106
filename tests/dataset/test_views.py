"""trajlab/dataset/views.py: one episode, and all transitions."""

import numpy as np
import pytest
import xarray as xr

from trajlab.dataset.fields import field_names
from trajlab.dataset.from_episodes import from_episodes
from trajlab.dataset.views import episode, transitions

INT_MIN = np.iinfo(np.int32).min


# One episode ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_an_episode_is_trimmed_to_its_length(ds, loaded, number):
    one = episode(ds, number)
    length = [3, 1, 5, 2][number]
    assert dict(one.sizes) == {"time": length, "axis": 3, "row": 2, "column": 2, "wide_dim_0": 65}
    for name in [*field_names(loaded), "iteration"]:
        np.testing.assert_array_equal(one[name], loaded[name][number, :length])
        assert one[name].dtype == loaded[name].dtype
        assert one[name].attrs == loaded[name].attrs
    assert one["time"].values.tolist() == list(range(length))
    assert one["mask"].values.all()
    assert one["episode"].item() == number
    assert one["length"].item() == length
    assert one["end_reason"].dims == ()
    np.testing.assert_array_equal(one["final_obs"], loaded["final_obs"][number])


def test_it_is_found_by_its_label(ds):
    filtered = ds.isel(episode=[3, 1])
    assert episode(filtered, 1)["start_row"].item() == 2
    assert [episode(filtered, n)["length"].item() for n in filtered["episode"]] == [2, 1]
    assert episode(filtered, np.int32(3)).sizes["time"] == 2


def test_an_episode_is_lazy(lazy, counts):
    one = episode(lazy, 2)
    repr(one), one._repr_html_()
    assert counts.total == 0
    assert one["obs"].values.shape == (5, 3)
    assert counts.values == {"obs": 15}


def test_memory_stays_memory(loaded):
    assert isinstance(episode(loaded, 2)["obs"].variable._data, np.ndarray)
    assert isinstance(episode(loaded, 2, final=True)["obs"].variable._data, np.ndarray)


def test_no_such_episode(ds):
    with pytest.raises(KeyError, match=r"no episode 4: the Dataset holds 4, numbered 0 to 3$"):
        episode(ds, 4)
    with pytest.raises(KeyError, match="no episode -1"):
        episode(ds, -1)
    with pytest.raises(KeyError, match="no episode 2: the Dataset holds 2, numbered 0 to 3 without 1 to 2"):
        episode(ds.isel(episode=[3, 0]), 2)
    with pytest.raises(KeyError, match="the Dataset holds none"):
        episode(ds.isel(episode=[]), 0)


def test_gaps_are_named_but_not_all(make):
    many = make([1] * 20).isel(episode=slice(None, None, 2))
    with pytest.raises(KeyError, match=r"holds 10, numbered 0 to 18 without 1, 3, 5, 7, 9, \.\.\.$"):
        episode(many, 1)


@pytest.mark.parametrize("number", [1.5, "1", None, [1, 2]])
def test_no_number(ds, number):
    with pytest.raises(TypeError, match="number"):
        episode(ds, number)


def test_not_several_episodes(ds):
    with pytest.raises(ValueError, match="single episode was selected"):
        episode(ds.isel(episode=0), 0)


def test_of_sliced_time_what_is_left(ds, loaded):
    one = episode(ds.isel(time=slice(1, 4)), 2)
    assert one["time"].values.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(one["reward"], loaded["reward"][2, 1:4])
    assert episode(ds.isel(time=slice(3, None)), 1).sizes["time"] == 0


def test_time_runs_forward(ds, loaded):
    one = episode(ds.isel(time=slice(None, None, -1)), 0)
    assert one["time"].values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(one["obs"], loaded["obs"][0, :3])


# Its final observation ------------------------------------------------------------------------------------------


def test_the_final_observation_is_one_more_step(ds, loaded):
    one = episode(ds, 0, final=True)
    assert one["time"].values.tolist() == [0, 1, 2, 3]
    assert one["time"].attrs == {"units": "steps"}
    np.testing.assert_array_equal(one["obs"][:3], loaded["obs"][0, :3])
    np.testing.assert_array_equal(one["obs"][3], loaded["final_obs"][0])
    assert "final_obs" not in one
    assert one["mask"].values.tolist() == [True, True, True, False]
    assert one["length"].item() == 3


def test_fields_without_a_final_value_are_padded(ds, loaded):
    one = episode(ds, 0, final=True)
    assert one["action"].values.tolist() == [*loaded["action"].values[0, :3], INT_MIN]
    assert np.isnan(one["reward"].values[3])
    assert not one["terminated"].values[3]
    assert one["img"].values[3].tolist() == [[255, 255], [255, 255]]
    assert one["word"].values[3] == ""
    assert one["iteration"].values[3] == np.iinfo(np.int64).min
    for name in field_names(loaded):
        assert one[name].dtype == loaded[name].dtype
        assert one[name].attrs == loaded[name].attrs


def test_added_variables_come_along(loaded):
    loaded = loaded.assign_coords(when=("time", np.arange(5.0))).assign(score=("episode", np.arange(4)))
    one = episode(loaded, 0, final=True)
    np.testing.assert_array_equal(one["when"], [0, 1, 2, np.nan])
    assert one["score"].item() == 0


def test_the_appended_step_is_lazy(lazy, counts):
    one = episode(lazy, 0, final=True)
    repr(one), one._repr_html_()
    assert counts.total == 0
    assert one["obs"].isel(time=-1, axis=1).values.ndim == 0
    assert counts.values == {"final_obs": 1}
    counts.reset()
    assert one["obs"].values.shape == (4, 3)
    assert counts.values == {"obs": 9, "final_obs": 3}


def test_the_final_observation_is_not_known(ds):
    with pytest.raises(
        ValueError, match=r"of episode 3, which ended as 'cut', is not known; it is for 3 of 4 episodes"
    ):
        episode(ds, 3, final=True)
    with pytest.raises(ValueError, match=r"of episode 0 is not known, nor that of any other .*Convention"):
        episode(ds.drop_vars("final_obs"), 0, final=True)
    with pytest.raises(ValueError, match="nor that of any other"):
        episode(ds.isel(episode=[3]), 3, final=True)


def test_the_last_step_was_sliced_away(ds):
    with pytest.raises(ValueError, match=r"it holds 2 of 3; take the episode before slicing `time`"):
        episode(ds.isel(time=slice(0, 2)), 0, final=True)
    assert episode(ds.isel(time=slice(0, 2)), 1, final=True).sizes["time"] == 2


def test_several_observations():
    steps = {"obs": {"a": np.arange(3), "b": np.arange(6).reshape(3, 2)}, "action": np.arange(2)}
    one = episode(from_episodes([steps]), 0, final=True)
    assert one["obs.a"].values.tolist() == [0, 1, 2]
    assert one["obs.b"].values.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert one["action"].values.tolist() == [0, 1, np.iinfo(np.int64).min]
    assert set(one.data_vars) == {"obs.a", "obs.b", "action", "iteration"}


# Transitions ----------------------------------------------------------------------------------------------------


def test_transitions_hold_no_padding(ds, loaded):
    flat = transitions(ds)
    mask = loaded["mask"].values
    for name in [*field_names(loaded), "iteration"]:
        np.testing.assert_array_equal(flat[name], loaded[name].values[mask])
        assert flat[name].dtype == loaded[name].dtype
        assert flat[name].dims == ("transition", *loaded[name].dims[2:])
    assert flat.sizes["transition"] == 11
    assert flat["episode"].values.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3]
    assert flat["time"].values.tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 4, 0, 1]
    assert flat.attrs == loaded.attrs


def test_every_coordinate_stands_beside_them(ds, loaded):
    ds = ds.assign_coords(seed=("episode", [7, 8, 9, 7]), when=("time", np.arange(5) / 2))
    flat = transitions(ds)
    assert set(flat.coords) == {*ds.coords, "iteration"} - {"mask"}
    assert flat["length"].values.tolist() == [3, 3, 3, 1, 5, 5, 5, 5, 5, 2, 2]
    assert flat["seed"].values.tolist() == [7, 7, 7, 8, 9, 9, 9, 9, 9, 7, 7]
    assert flat["when"].values.tolist() == [0, 0.5, 1, 0, 0, 0.5, 1, 1.5, 2, 0, 0.5]
    assert flat["end_reason"].dtype == loaded["end_reason"].dtype
    assert flat["axis"].dims == ("axis",)
    assert set(flat.xindexes) == {"axis"}


def test_attributes_stay_but_for_the_padding(ds):
    attrs = transitions(ds)["action"].attrs
    assert attrs == {"recorded_dtype": "int32", "role": "action"}


def test_final_observations_are_left_out_and_other_variables_repeated(ds):
    flat = transitions(ds.assign(score=("episode", [1, 2, 3, 4]), gain=("axis", [1, 2, 3])))
    assert "final_obs" not in flat
    assert "mask" not in flat
    assert flat["score"].values.tolist() == [1, 1, 1, 2, 3, 3, 3, 3, 3, 4, 4]
    assert flat["gain"].dims == ("axis",)


def test_groupby(ds, loaded):
    flat = transitions(ds)
    rewards = loaded["reward"].values
    expected = [rewards[i, :n].mean() for i, n in enumerate([3, 1, 5, 2])]
    np.testing.assert_allclose(flat["reward"].groupby("episode").mean(), expected, rtol=1e-5)
    assert flat["action"].groupby("env").count().values.tolist() == [8, 3]
    indexed = flat.set_index(transition=("episode", "time"))
    np.testing.assert_array_equal(indexed["reward"].sel(episode=2, time=3), rewards[2, 3])


@pytest.mark.parametrize(
    ("change", "cells"),
    [
        (lambda ds: ds.isel(episode=[3, 0]), [(3, 0), (3, 1), (0, 0), (0, 1), (0, 2)]),
        (lambda ds: ds.isel(time=slice(1, 3)), [(0, 1), (0, 2), (2, 1), (2, 2), (3, 1)]),
        (lambda ds: ds.isel(time=[3, 0]), [(0, 0), (1, 0), (2, 0), (2, 3), (3, 0)]),
        (lambda ds: ds.isel(time=slice(0, 0)), []),
        (lambda ds: ds.isel(episode=[]), []),
    ],
    ids=["reordered", "sliced", "steps reordered", "no step", "no episode"],
)
def test_of_a_part_the_transitions_in_it(ds, loaded, change, cells):
    flat = transitions(change(ds))
    assert list(zip(flat["episode"].values, flat["time"].values, strict=True)) == cells
    assert flat["obs"].shape == (len(cells), 3)
    for place, (number, time) in enumerate(cells):
        np.testing.assert_array_equal(flat["obs"][place], loaded["obs"][number, time])


def test_each_transition_is_read_once(lazy, counts):
    transitions(lazy)
    counts.values.pop("mask", None)
    assert counts.values == {
        "obs": 33, "action": 11, "reward": 11, "terminated": 11, "truncated": 11,
        "img": 44, "wide": 11 * 65, "word": 11, "iteration": 11,
    }  # fmt: skip


def test_the_input_is_left_as_it_was(loaded):
    before = loaded.copy(deep=True)
    flat = transitions(loaded)
    flat["reward"][:] = 0
    xr.testing.assert_identical(loaded, before)


def test_not_valid(loaded):
    with pytest.raises(ValueError, match="'mask'"):
        transitions(loaded.drop_vars("mask"))
