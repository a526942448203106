"""First times of actions: visible ones, and those of each action as an event of its own."""

import numpy as np
import pytest
import xarray as xr
from agents.worlds import live, make_world, poisoned, record
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl


def acting(*episodes, dtype=np.int64, **options):
    return tl.from_episodes([{"action": np.array(e, dtype)} for e in episodes], **options)


def test_the_first_time_of_each_action():
    ds = acting([0, 2, 0, 3], [3], [2, 2], end_reason=["terminated", "cut", "done"])
    first = tl.first_action_time(ds)
    assert first["event_time"].dims == ("episode", "value")
    assert first["value"].values.tolist() == [0, 1, 2, 3]
    nan = np.nan
    np.testing.assert_equal(first["event_time"].values, [[0, nan, 1, 3], [nan, nan, nan, 0], [nan, nan, 0, nan]])
    assert first["censored"].values.tolist() == [[False] * 4, [True, True, True, False], [False] * 4]
    assert first["reached"].values.tolist() == (~np.isnan(first["event_time"].values)).tolist()


def test_labels():
    first = tl.first_action_time(acting([1, 0]), labels=["left", "right", "jump"])
    assert first["label"].values.tolist() == ["left", "right", "jump"]
    np.testing.assert_equal(first["event_time"].values, [[1, 0, np.nan]])


@given(lengths, st.integers(0, 3), st.sampled_from(["action", "pair", "flag", "byte"]), st.sampled_from([None, -1]))
@examples(20)
def test_as_a_plain_loop(drawn, seed, field, step):
    ds = make_dataset(drawn, seed).isel(time=slice(None, None, step)).load()
    first = tl.first_action_time(ds, field)
    in_order = ds[field].sortby("time").values
    for e, length in enumerate(ds["length"].values):
        rows = in_order[e, :length]
        for place, value in enumerate(first["value"].values):
            held = rows == value
            want = np.where(held.any(axis=0), held.argmax(axis=0), np.nan)
            got = first.isel(episode=e, value=place)
            np.testing.assert_array_equal(got["event_time"], want)
            is_open = ds["end_reason"].values[e] == "cut"
            np.testing.assert_array_equal(got["censored"], np.isnan(want) & is_open)


def test_it_is_an_event_for_each_action():
    ds = make_dataset([4, 1, 3, 2])
    first = tl.first_action_time(ds)
    want = tl.event_times(ds, {str(value): ds["action"] == value for value in first["value"].values})
    for name in ("event_time", "reached", "censored"):
        np.testing.assert_array_equal(first[name].values.T, want[name])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["action", "pair"])
def test_the_same_in_every_form(form, field, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    got, want = (tl.first_action_time(d, field) for d in (in_form(ds, form, tmp_path), ds))
    for name in ("event_time", "reached", "censored"):
        np.testing.assert_array_equal(got[name].sortby("episode"), want[name])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(bool, [False, True]), (np.uint8, [3, 250]), (np.int64, [-(2**40), 2**40]), ("<U5", ["a", "bb"])],
)
def test_dtypes(dtype, values):
    first = tl.first_action_time(acting([values[1], values[1], values[0]], dtype=dtype))
    times = dict(zip(first["value"].values.tolist(), first["event_time"].values[0].tolist(), strict=True))
    assert [times[value] for value in values] == [2, 0]


def test_an_agent_that_is_done_acts_no_more():
    world = make_world(20)
    for ds in (record(world), record(poisoned(world), cuts=(11,))):
        first = tl.first_action_time(ds)
        assert first["event_time"].dims == ("episode", "agent", "value")
        assert first["value"].values.tolist() == [0, 1, 2, 3]
        for e, one in enumerate(live(world)):
            for k in range(len(world.agents)):
                for value in range(4):
                    held = (world.action[one.rows, one.env, k] == value) & one.alive[:, k]
                    got = first.isel(episode=e, agent=k).sel(value=value)
                    np.testing.assert_equal(got["event_time"].item(), np.argmax(held) if held.any() else np.nan)
                    is_open = ds["end_reason"].values[e] == "cut" and one.alive[-1, k]
                    assert got["censored"].item() == (is_open and not held.any())


def test_nan_is_no_action():
    ds = acting([1, 0], [0]).load()
    action = ds["action"].astype(float)
    action[0, 0] = np.nan
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN"):
        first = tl.first_action_time(ds.assign(action=action))
    assert first["value"].values.tolist() == [0]
    assert first["event_time"].values.tolist() == [[1], [0]]
    assert first.attrs["num_nan"] == 1


def test_no_episode(blank):
    assert tl.first_action_time(blank)["event_time"].shape == (0, 0)
    assert tl.first_action_time(make_dataset([]), "pair")["event_time"].shape == (0, 2, 0)


def test_it_can_be_saved_and_aligned_by(tmp_path):
    ds = make_dataset([4, 3, 5])
    tl.first_action_time(ds).to_netcdf(tmp_path / "f.nc", engine="h5netcdf")
    first = xr.open_dataset(tmp_path / "f.nc", engine="h5netcdf").sel(value=0)
    trace = tl.state_trace(ds, "action", align=first, window=(0, 0))
    assert trace["mean"].item() == 0
    assert trace["n"].item() == first["reached"].sum()


@pytest.mark.parametrize(
    ("field", "options", "error", "match"),
    [
        ("obs", {}, ValueError, "first_action_time: 'obs' is continuous"),
        ("actoin", {}, KeyError, "Did you mean 'action'"),
        ("action", {"labels": "left"}, TypeError, "expected a list of names"),
        ("byte", {"labels": ["a"]}, ValueError, "expected a label for each"),
    ],
)
def test_what_does_not_fit(field, options, error, match):
    with pytest.raises(error, match=match):
        tl.first_action_time(make_dataset([40]), field, **options)


def test_too_many_values():
    with pytest.raises(ValueError, match="distinct values or more; expected at most 1,024"):
        tl.first_action_time(acting(np.arange(2000) * 50))


def test_all_steps_are_needed():
    with pytest.raises(ValueError, match="first_action_time: whole episodes are needed"):
        tl.first_action_time(acting([1, 2]).isel(time=[1]))
