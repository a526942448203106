"""Windows around events: visible ones, a plain loop, laziness, and traces over them."""

import numpy as np
import pytest
import xarray as xr
from agents.worlds import make_world, record
from dataset.conftest import CountingArray, Counts
from dataset.conftest import make_dataset as by_hand
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis import state_trace
from trajlab.dataset import windows


def climbing(*lengths, **options):
    """Return episodes whose height is the number of the step, and the same as other dtypes."""
    return tl.from_episodes(
        [
            {
                "height": np.arange(n),
                "high": np.arange(n) > 2,
                "word": np.array(list("abcdefgh"[:n])),
                "x": np.arange(n) / 2,
            }
            for n in lengths
        ],
        **options,
    )


def up(ds):
    return ds["reward"] > 0.2


def test_the_steps_around_an_event():
    ds = climbing(6, 2, 4, end_reason=["terminated", "cut", "done"])
    aligned = tl.align(ds, "high", window=(2, 1))
    assert aligned["height"].dims == ("episode", "lag")
    assert aligned["lag"].values.tolist() == [-2, -1, 0, 1]
    assert aligned["episode"].values.tolist() == [0, 2]
    assert aligned["event_time"].values.tolist() == [3, 3]
    assert aligned["end_reason"].values.tolist() == ["terminated", "done"]
    assert aligned.attrs["left_out"] == 1
    assert aligned["mask"].values.tolist() == [[True] * 4, [True, True, True, False]]
    smallest = np.iinfo(np.int64).min
    assert aligned["height"].values.tolist() == [[1, 2, 3, 4], [1, 2, 3, smallest]]
    assert aligned["high"].values.tolist() == [[False, False, True, True], [False, False, True, False]]
    assert aligned["word"].values.tolist() == [["b", "c", "d", "e"], ["b", "c", "d", ""]]
    np.testing.assert_equal(aligned["x"].values, [[0.5, 1, 1.5, 2], [0.5, 1, 1.5, np.nan]])


def naive(ds, name, times, before, after):
    """Return values (episode, lag, ...) and the mask from a loop."""
    ds = ds.load()
    rows, there = [], []
    for e, time in enumerate(times):
        for lag in range(-before, after + 1):
            label = time + lag
            found = np.flatnonzero(ds["time"].values == label)
            is_there = len(found) > 0 and label < ds["length"].values[e]
            there.append(is_there)
            rows.append(ds[name].values[e, found[0]] if is_there else tl_padding(ds[name].dtype, ds[name].shape[2:]))
    shape = (len(times), before + after + 1)
    return np.array(rows).reshape(*shape, *ds[name].shape[2:]), np.array(there).reshape(shape)


def tl_padding(dtype, shape):
    padding = {"f": np.nan, "b": False}.get(dtype.kind)
    if padding is None:
        padding = np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return np.full(shape, padding, dtype)


@given(lengths, st.integers(0, 3), st.sampled_from(["action", "obs", "flag", "byte"]), st.sampled_from([None, 2, -1]))
@examples(20)
def test_as_a_plain_loop(drawn, seed, field, step):
    ds = make_dataset(drawn, seed).isel(time=slice(None, None, step))
    rng = np.random.default_rng(seed)
    times = xr.DataArray(rng.integers(0, 7, len(drawn)), {"episode": ds["episode"]}, ["episode"])
    aligned = tl.align(ds, times, window=(2, 3))
    values, mask = naive(ds, field, times.values, 2, 3)
    np.testing.assert_array_equal(aligned["mask"].values, mask)
    np.testing.assert_array_equal(aligned[field].values, values.reshape(aligned[field].shape))
    assert aligned[field].dtype == ds[field].dtype
    part = aligned.isel(lag=[4, 1], episode=slice(None, None, -1))
    np.testing.assert_array_equal(part[field].values, values.reshape(aligned[field].shape)[::-1, [4, 1]])


@pytest.mark.parametrize("form", FORMS)
def test_the_same_in_every_form(form, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    got, want = (tl.align(d, up, window=(1, 2)) for d in (in_form(ds, form, tmp_path), ds))
    for name in ("action", "obs", "flag", "byte", "mask", "event_time"):
        np.testing.assert_array_equal(got.sortby("episode")[name].values, want[name].values)


def test_nothing_is_read_until_it_is_looked_at():
    counts = Counts()
    ds = by_hand((3, 1, 5, 2), wrap=lambda name, values, lead: CountingArray(values, lead, counts, name))
    events = tl.event_times(ds, "terminated")
    counts.reset()
    aligned = tl.align(ds, events, window=(1, 0))
    repr(aligned)
    assert counts.total == 0
    aligned["obs"].isel(episode=0).load()
    assert counts.values == {"obs": 6}


EVENTS = {
    "result": lambda ds: tl.event_times(ds, up),
    "times": lambda ds: tl.event_times(ds, up)["event_time"],
    "function": lambda ds: up,
    "array": up,
}


@pytest.mark.parametrize("given_as", EVENTS)
def test_events_may_be_given_as(given_as):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    events = EVENTS[given_as](ds)
    aligned, trace = tl.align(ds, events), tl.state_trace(ds, "obs", align=events)
    assert aligned["lag"].values.tolist() == trace["lag"].values.tolist()
    assert aligned.attrs["left_out"] == trace.attrs["left_out"] == 8 - aligned.sizes["episode"]
    xr.testing.assert_allclose(tl.state_trace(aligned, "obs"), trace)


@pytest.mark.parametrize("kind", ["lazy", "loaded", "file", "tiny"])
@pytest.mark.parametrize("by", [None, "env"])
def test_the_trace_of_windows_is_that_of_the_event(kind, by, tmp_path, monkeypatch):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    want = tl.state_trace(ds, "obs", align=up, window=(2, 3), by=by)
    if kind == "tiny":
        monkeypatch.setattr(state_trace, "MAX_PACKED", 60)
        monkeypatch.setattr(windows, "MAX_BYTES", 100)
    aligned = tl.align(ds, up, window=(2, 3))
    if kind == "loaded":
        aligned = aligned.load()
    if kind == "file":
        aligned.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
        aligned = xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf")
    got = tl.state_trace(aligned, "obs", by=by)
    xr.testing.assert_allclose(got, want)
    assert got.attrs["num_transitions"] == aligned["mask"].values.sum()
    narrow = tl.state_trace(aligned.sel(lag=slice(-1, 1)), "obs", by=by)
    xr.testing.assert_allclose(narrow, want.sel(lag=slice(-1, 1)))


def test_agents_that_are_done_are_not_in_the_trace():
    world = make_world(20)
    ds = record(world)
    times = xr.where(ds["length"] > 3, 2.0, np.nan)
    aligned = tl.align(ds, times, window=(2, 5))
    assert aligned["alive"].dims == ("episode", "lag", "agent")
    xr.testing.assert_allclose(tl.state_trace(aligned, "obs"), tl.state_trace(ds, "obs", align=times, window=(2, 5)))


def test_a_plot_of_windows():
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4]).isel(obs_dim_0=[0])
    one = tl.plot_state_trace(tl.align(ds, up, window=(2, 3)), "obs")
    other = tl.plot_state_trace(ds, "obs", align=up, window=(2, 3))
    for drawn, want in zip(one.lines, other.lines, strict=True):
        np.testing.assert_allclose(drawn.get_xydata(), want.get_xydata())
    singles = [[list(segment[:, 0]) for segment in ax.collections[0].get_segments()] for ax in (one, other)]
    assert singles[0] == singles[1]
    assert one.get_title() == other.get_title()


def test_no_episode_reaches_it():
    aligned = tl.align(climbing(2, 1), "high")
    assert aligned["height"].shape == (0, 1)
    assert tl.state_trace(aligned, "height")["n"].values.tolist() == [0]
    assert tl.align(make_dataset([]), up)["obs"].shape == (0, 1, 3)


DS = climbing(4, 3)


@pytest.mark.parametrize(
    ("events", "error", "match"),
    [
        (3, TypeError, "align: expected the times of an event.*got int"),
        ("hihg", KeyError, "Did you mean 'high'"),
        ({"high": "high"}, TypeError, "got dict"),
        (tl.event_times(DS, {"a": "high", "b": "high"}), ValueError, r"events.sel\({'event': 'a'}\)"),
        (tl.event_times(DS.isel(episode=[1]), "high"), ValueError, "no time of the event for episode 0"),
    ],
)
def test_what_is_no_event(events, error, match):
    with pytest.raises(error, match=match):
        tl.align(DS, events)


def test_names_that_the_result_has():
    with pytest.raises(ValueError, match="align: the result has 'lag' itself"):
        tl.align(DS.assign_coords(lag=("episode", [1, 2])), "high")


def assert_counts_around(advice):
    """Follow what an error says of how to count actions around an event."""
    action = [np.array([5, 6, 7, 8]), np.array([5, 9])]
    ds = tl.from_episodes([{"action": a, "up": a == up} for a, up in zip(action, (7, 0), strict=True)])
    names = {"trajlab": tl, "ds": ds, "windows": tl.align(ds, "up")}
    for line in advice.split("; "):
        exec(f"counted = {line}" if line.startswith("trajlab.") else line, names)
    counts = names["counted"]["count"].to_pandas()
    assert {since: row[row > 0].to_dict() for since, row in counts.iterrows() if row.any()} == {
        "-2": {5: 1}, "-1": {6: 1}, "0": {7: 1}, "1": {8: 1}
    }  # fmt: skip


def test_windows_are_not_aligned_again():
    aligned = tl.align(DS, "high")
    with pytest.raises(ValueError, match="aligned already"):
        tl.state_trace(aligned, "height", align="end")
    with pytest.raises(ValueError, match="a Dataset of windows.*state_trace and plot_state_trace take it") as told:
        tl.survival(aligned)
    assert_counts_around(str(told.value).partition("the event: ")[2])
    with pytest.raises(ValueError, match="has a value per transition"):
        tl.state_trace(aligned, "height", by="time")
    with pytest.raises(ValueError, match="by='iteration' has a value per transition; .* group by 'start_iteration'"):
        tl.state_trace(aligned, "height", by="iteration")
    with pytest.raises(KeyError, match="Did you mean 'height'"):
        tl.state_trace(aligned, "heigth")
