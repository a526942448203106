"""First times of events: visible ones, a plain loop, and what is no condition."""

import warnings

import numpy as np
import pytest
import xarray as xr
from agents.worlds import live, make_world, poisoned, record
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis.kernels.minima import NEVER, first_rows, lower_to
from trajlab.dataset import parts


def climbing(*lengths, **options):
    """Return episodes whose height is the number of the step."""
    return tl.from_episodes([{"height": np.arange(n)} for n in lengths], **options)


def test_the_first_time_a_condition_holds():
    ds = climbing(5, 2, 2, 2, 2, end_reason=["terminated", "terminated", "cut", "truncated", "done"])
    events = tl.event_times(ds, lambda ds: ds["height"] >= 2)
    assert events["event_time"].dims == ("episode",)
    np.testing.assert_equal(events["event_time"].values, [2, np.nan, np.nan, np.nan, np.nan])
    assert events["reached"].values.tolist() == [True, False, False, False, False]
    assert events["censored"].values.tolist() == [False, False, True, True, False]
    assert events["event_time"].attrs == {"long_name": "time of the event", "units": "steps"}
    assert events["end_reason"].values.tolist() == ds["end_reason"].values.tolist()


def test_a_field_of_bools_by_its_name():
    ds = tl.from_episodes([{"hit": np.array([False, True, True])}, {"hit": np.array([False])}])
    np.testing.assert_equal(tl.event_times(ds, "hit")["event_time"].values, [1, np.nan])
    assert tl.event_times(ds, "hit").attrs["field"] == "hit"
    assert tl.event_times(ds, ds["hit"]).attrs["field"] == "hit"


def test_several_events():
    ds = climbing(4, 2)
    events = tl.event_times(ds, {"low": lambda ds: ds["height"] > 0, "high": ds["height"] > 2})
    assert events["event_time"].dims == ("event", "episode")
    np.testing.assert_equal(events["event_time"].sel(event="high").values, [3, np.nan])
    assert events["event_time"].sel(event="low").values.tolist() == [1, 1]
    xr.testing.assert_equal(
        events.sel(event="low", drop=True)["event_time"], tl.event_times(ds, ds["height"] > 0)["event_time"]
    )


def test_components_are_events_by_themselves():
    ds = tl.from_episodes(
        [{"obs": np.array([[0, 5], [3, 0]])}, {"obs": np.array([[0, 0]])}],
        dims={"obs": ["axis"]},
        coords={"axis": ["x", "y"]},
    )
    events = tl.event_times(ds, lambda ds: ds["obs"] > 1)
    assert events["event_time"].dims == ("episode", "axis")
    np.testing.assert_equal(events["event_time"].sel(axis="x").values, [1, np.nan])
    np.testing.assert_equal(events["event_time"].sel(axis="y").values, [0, np.nan])


def naive(ds, condition):
    """Return the first step (label) at which an array of bools is True, episode by episode."""
    held, out = condition(ds.load()), []
    for e, length in enumerate(ds["length"].values):
        there = [t for t in ds["time"].values if t < length and held.sel(time=t).values[e]]
        out.append(min(there, default=np.nan))
    return out


CONDITIONS = {
    "function": (lambda ds: ds["reward"] > 0.5, lambda ds: ds["reward"] > 0.5),
    "name": ("flag", lambda ds: ds["flag"]),
    "component": (lambda ds: ds["obs"][:, :, 1] > 100, lambda ds: ds["obs"][:, :, 1] > 100),
}


@given(lengths, st.integers(0, 3), st.sampled_from(list(CONDITIONS)), st.booleans())
@examples(25)
def test_as_a_plain_loop(drawn, seed, which, tiny):
    ds = make_dataset(drawn, seed)
    condition, array = CONDITIONS[which]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "MAX_BYTES", 300 if tiny else 2**25)
        got = tl.event_times(ds, condition)
    np.testing.assert_equal(got["event_time"].values, naive(ds, array))
    xr.testing.assert_identical(got["event_time"], tl.event_times(ds, array(ds))["event_time"])
    assert got["reached"].values.tolist() == (~np.isnan(got["event_time"].values)).tolist()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("which", CONDITIONS)
def test_the_same_in_every_form(form, which, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    condition, _ = CONDITIONS[which]
    got, want = tl.event_times(in_form(ds, form, tmp_path), condition), tl.event_times(ds, condition)
    for name in ("event_time", "reached", "censored"):
        xr.testing.assert_equal(
            got[name].sortby("episode").drop_vars(["final_known"]), want[name].drop_vars(["final_known"])
        )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9))))
@examples(50)
def test_kernel_as_minimum_at(pairs):
    index, values = np.array(pairs, np.int64).reshape(-1, 2).T
    got, want = np.full(4, NEVER), np.full(4, NEVER)
    lower_to(got, index, values)
    np.minimum.at(want, index, values)
    assert got.tolist() == want.tolist()


@given(st.integers(0, 2**16), st.sampled_from([0.0, 0.002, 0.02, 0.3]), st.booleans())
@examples(60)
def test_fields_of_a_log_as_a_plain_loop(seed, ends, only_complete):
    """Also where most columns of a tile are of one episode each, or a tile has more rows than 8 bits count."""
    rng = np.random.default_rng(seed)
    steps, envs, rows = int(rng.integers(1, 400)), int(rng.integers(1, 9)), int(rng.choice([1, 7, 300, 5000]))
    hit = rng.random((steps, envs, 3)) < rng.choice([0.001, 0.1, 0.9], 3)
    hit |= np.maximum.accumulate(hit, axis=0) & (rng.random(3) < 0.5)
    chunk = {"hit": hit, "done": rng.random((steps, envs)) < ends}
    ds = tl.from_rollout(chunk)
    ds = ds.isel(episode=ds["complete"].values) if only_complete else ds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", rows * envs)
        got = tl.event_times(ds, "hit")["event_time"].values
    want = np.full(got.shape, np.nan)
    for e, length in enumerate(ds["length"].values):
        held = ds["hit"].values[e, :length]
        want[e] = np.where(held.any(axis=0), held.argmax(axis=0), np.nan)
    np.testing.assert_equal(got, want)


@given(st.integers(0, 600), st.integers(0, 5), st.integers(0, 99))
@examples(40)
def test_kernel_as_argmax(rows, columns, seed):
    holds = np.random.default_rng(seed).random((rows, columns)) < 0.01
    want = [column.argmax() if column.any() else -1 for column in holds.T]
    assert first_rows(holds).tolist() == want


def test_arrays_are_matched_by_their_labels():
    ds = climbing(3, 4, 2)
    array = (ds["height"] >= 1)[::-1, ::-1].transpose("time", "episode")
    assert tl.event_times(ds, array)["event_time"].values.tolist() == [1, 1, 1]
    assert tl.event_times(ds.isel(episode=[2, 0]), array)["event_time"].values.tolist() == [1, 1]
    plain = (ds["height"] >= 1).drop_vars(["episode", "time"])
    assert tl.event_times(ds, plain)["event_time"].values.tolist() == [1, 1, 1]


def test_a_reversed_time_axis_changes_nothing():
    ds = climbing(5, 3)
    got = tl.event_times(ds.isel(time=slice(None, None, -1)), lambda ds: ds["height"] > 1)
    assert got["event_time"].values.tolist() == [2, 2]


def test_little_is_read_at_once():
    """A function meets episodes of similar length, cut off behind the longest of them."""
    ds = make_dataset([1] * 20 + [50])
    seen = []

    def condition(part):
        seen.append((part.sizes["episode"], part.sizes["time"]))
        return part["reward"] > 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "MAX_BYTES", 2000)
        tl.event_times(ds, condition)
    assert seen.pop(0) == (1, 50)  # to see dims, of ones: nothing is read
    assert sum(episodes for episodes, _ in seen) == 21
    assert (1, 50) in seen
    assert max(episodes * time for episodes, time in seen) <= 50


def test_an_agent_that_is_done_reaches_nothing():
    world = make_world(20)
    for ds in (record(world), record(poisoned(world), cuts=(11,))):
        for condition in ({"high": lambda ds: ds["reward"] > 0.9}, {"done": "done"}):
            events = tl.event_times(ds, condition)
            assert events["event_time"].dims == ("event", "episode", "agent")
            array = world.reward > 0.9 if "high" in condition else world.done
            for e, one in enumerate(live(world)):
                for k in range(len(world.agents)):
                    held = array[one.rows, one.env, k] & one.alive[:, k]
                    got = events.isel(event=0, episode=e, agent=k)
                    np.testing.assert_equal(got["event_time"].item(), np.argmax(held) if held.any() else np.nan)
                    is_open = ds["end_reason"].values[e] == "cut" and one.alive[-1, k]
                    assert got["censored"].item() == (is_open and not held.any())


def test_starts_that_were_not_seen_are_counted():
    chunk = {"obs": np.zeros((6, 2)), "done": np.array([[0, 1], [1, 0], [0, 0], [0, 1], [1, 0], [0, 0]], bool)}
    events = tl.event_times(tl.from_rollout(chunk, starts_fresh=False), "done")
    assert events.attrs["num_start_unseen"] == 2
    assert "start_seen" in events.coords


def test_nan_is_reported():
    ds = tl.from_episodes([{"hit": np.array([False, True])}, {"hit": np.array([False, False])}]).load()
    hit = ds["hit"].astype(object)
    hit[0, 0] = np.nan
    with pytest.warns(UserWarning, match="condition 'hit': 1 values are NaN and taken for False"):
        events = tl.event_times(ds.assign(hit=hit), "hit")
    np.testing.assert_equal(events["event_time"].values, [1, np.nan])


def test_no_episode(blank):
    assert tl.event_times(blank, "hit")["event_time"].shape == (0,)
    events = tl.event_times(make_dataset([]), {"up": lambda ds: ds["obs"] > 0})
    assert events["event_time"].shape == (1, 0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tl.event_times(make_dataset([]), "flag")["reached"].dtype == bool


def test_steps_of_a_file_in_any_order(tmp_path):
    climbing(4, 3).to_netcdf(tmp_path / "ds.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "ds.nc", engine="h5netcdf") as ds:
        events = tl.event_times(ds.isel(time=[2, 0, 1, 3]), lambda ds: ds["height"] > 1)
    assert events["event_time"].values.tolist() == [2, 2]


def test_it_can_be_saved(tmp_path):
    events = tl.event_times(make_dataset([2, 3]), {"up": "flag"})
    events.to_netcdf(tmp_path / "e.nc", engine="h5netcdf")
    again = xr.open_dataset(tmp_path / "e.nc", engine="h5netcdf")
    trace = tl.state_trace(make_dataset([2, 3]), "obs", align=again.sel(event="up"), window=(1, 1))
    assert trace["n"].sel(lag=0).item() == events["reached"].sum()


DS = climbing(3, 2)


@pytest.mark.parametrize(
    ("condition", "error", "match"),
    [
        ("heigth", KeyError, "Did you mean 'height'"),
        ("length", KeyError, "not over"),
        ("height", ValueError, "condition 'height' has dtype int64; expected bools"),
        ({"up": lambda ds: ds["height"]}, ValueError, "condition 'up' has dtype int64; expected bools"),
        ({"up": "height"}, ValueError, r"condition 'up' \('height'\) has dtype int64"),
        (3, TypeError, "condition is of type int"),
        (lambda ds: True, TypeError, "condition returned bool"),
        (lambda ds: ds["length"] > 2, ValueError, "has dims .'episode',.; expected"),
        (lambda ds: ds["height"].diff("time") > 0, ValueError, r"no value at time=0; .*reindex\(time=ds\['time'\]"),
        (DS["height"].isel(episode=[0]) > 1, ValueError, "no value at episode=1"),
        (DS["height"].isel(episode=0) > 1, ValueError, r"has dims \('time',\); expected \('episode', 'time'"),
        (DS["height"].isel(episode=[0, 1, 0]) > 1, ValueError, "has several values at episode=0; expected one"),
        (DS["height"].isel(time=[0, 0, 1, 2]) > 1, ValueError, "has several values at time=0; expected one"),
        (
            lambda ds: ds["height"].isel(episode=0) > 1,
            ValueError,
            r"has dims \('time',\); expected \('episode', 'time'",
        ),
        (lambda ds: ds["height"].max("time") > 1, ValueError, r"has dims \('episode',\); expected \('episode', 'time'"),
        (lambda ds: (ds["height"] > 1).any(), ValueError, r"has dims \(\); expected \('episode', 'time'"),
        (lambda ds: ds["height"].isel(episode=1) > 1, ValueError, "looks for an episode by its place or number"),
        (lambda ds: ds["height"].sel(episode=1) > 1, ValueError, "looks for an episode by its place or number"),
        (lambda ds: ds["height"].sel(episode=[1]) > 1, ValueError, "looks for an episode by its place or number"),
        ((DS["height"] > 1).drop_vars("time")[:, :2], ValueError, "has 2 along 'time'; expected 3"),
        ({}, ValueError, "no condition given"),
        (
            {"a": lambda ds: ds["height"] > 1, "b": lambda ds: (ds["height"] > 1).expand_dims(k=2, axis=2)},
            ValueError,
            "have to have the same dims",
        ),
    ],
)
def test_what_is_no_condition(condition, error, match):
    with pytest.raises(error, match=match):
        tl.event_times(DS, condition)


def test_all_steps_are_needed():
    with pytest.raises(ValueError, match="event_times: whole episodes are needed"):
        tl.event_times(DS.isel(time=slice(1, None)), lambda ds: ds["height"] > 1)


def test_what_the_episodes_have_by_the_name_of_a_result_gives_way():
    ds = climbing(4, 2)
    first = tl.event_times(ds, lambda ds: ds["height"] > 0)
    ds = ds.assign_coords(event_time=first["event_time"], entropy=first["event_time"], note=("episode", ["a", "b"]))
    later = tl.event_times(ds, lambda ds: ds["height"] > 2)
    np.testing.assert_equal(later["event_time"].values, [3, np.nan])
    assert later["note"].values.tolist() == ["a", "b"]
    assert tl.first_action_time(ds, "height")["event_time"].dims == ("episode", "value")
    assert tl.action_entropy(ds, "height", per="episode")["entropy"].values.tolist() == [2, 1]
