"""Traces aligned by the end of episodes, by parts of them and by events: visible means, and plain loops."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, heights, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis import state_trace
from trajlab.analysis.alignment import fraction
from trajlab.analysis.kernels.part_means import Overlaps


def times_of(ds, times):
    return xr.DataArray(np.asarray(times, float), {"episode": ds["episode"]}, ["episode"])


def naive(ds, field, at):
    """Return the rows that stand at each label: `at` gives those of an episode as (label, row) pairs."""
    found = {}
    ds = ds.load()
    for e, length in enumerate(ds["length"].values):
        time = np.flatnonzero(ds["time"].values < length)
        time = time[np.argsort(ds["time"].values[time])]
        rows = np.asarray(ds[field].values[e, time], np.float64)
        for label, row in at(e, ds["time"].values[time], rows):
            found.setdefault(label, []).append(row)
    return found


def assert_as(trace, found, dim, quantiles=(0.1, 0.5, 0.9)):
    assert set(found) <= set(trace[dim].values.tolist())
    for label in trace[dim].values.tolist():
        step, rows = trace.sel({dim: label}), np.array(found.get(label, []))
        assert step["n"].item() == len(rows)
        if not len(rows):
            assert np.isnan(step["mean"].values).all()
            continue
        np.testing.assert_allclose(step["mean"], rows.mean(axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(step["std"], rows.std(axis=0), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(step["quantiles"], np.quantile(rows, quantiles, axis=0), rtol=1e-9, atol=1e-9)


# By the end


def test_the_last_transition_stands_at_0():
    ds = heights([1, 2, 3], [7, 9], [100, 100, 100, 100], end_reason=["terminated", "truncated", "cut"])
    trace = tl.state_trace(ds, "height", align="end")
    assert trace["mean"].dims == ("lag",)
    assert trace["lag"].values.tolist() == [-2, -1, 0]
    assert trace["mean"].values.tolist() == [1, 4.5, 6]
    assert trace["n"].values.tolist() == [1, 2, 2]
    assert (trace.attrs["left_out"], trace.attrs["align"], trace.attrs["num_episodes"]) == (1, "end", 2)
    assert trace["n"].attrs["long_name"] == "episodes with such a step"


@given(lengths, st.sampled_from(["action", "obs", "flag"]), st.sampled_from([None, 2, -1]))
@examples(25)
def test_end_as_a_plain_loop(drawn, field, step):
    ds = make_dataset(drawn).isel(time=slice(None, None, step))

    def at(e, time, rows):
        ended = ds["end_reason"].values[e] != "cut"
        return zip((time - ds["length"].values[e] + 1).tolist(), rows, strict=True) if ended else ()

    assert_as(tl.state_trace(ds, field, align="end"), naive(ds, field, at), "lag")


def test_a_window_before_the_end():
    ds = heights([1, 2, 3], [7, 9])
    whole = tl.state_trace(ds, "height", align="end")
    for window in ((1, 0), (1,)):
        xr.testing.assert_identical(tl.state_trace(ds, "height", align="end", window=window), whole.isel(lag=[1, 2]))
    far = tl.state_trace(ds, "height", align="end", window=(4, 0))
    assert far["lag"].values.tolist() == [-4, -3, -2, -1, 0]
    assert far["n"].values.tolist() == [0, 0, 1, 2, 2]
    assert tl.plot_state_trace(ds, "height", align="end", window=(1, 0)).get_lines()[-1].get_xdata().tolist() == [-1, 0]


@pytest.mark.parametrize("window", [(1, 2), (-1, 0), (1, 0, 0), (1.5, 0), 3])
def test_windows_that_are_none_before_the_end(window):
    with pytest.raises(ValueError, match=r"expected, with align='end', whole steps before .* as in \(20, 0\)"):
        tl.state_trace(heights([1, 2]), "height", align="end", window=window)


# By fraction


def test_a_fraction_of_episodes_shorter_and_longer_than_the_parts():
    ds = heights([5], [1, 3], [0, 2, 4, 6, 8, 10], [9, 9], end_reason=["terminated"] * 3 + ["cut"])
    trace = tl.state_trace(ds, "height", align="fraction", parts=3)
    np.testing.assert_allclose(trace["fraction"], [1 / 6, 1 / 2, 5 / 6])
    # Halves of the second cover parts of three thirds: 1, (1 + 3) / 2, 3.
    np.testing.assert_allclose(trace["mean"], [(5 + 1 + 1) / 3, (5 + 2 + 5) / 3, (5 + 3 + 9) / 3])
    assert trace["n"].values.tolist() == [3, 3, 3]
    assert trace.attrs["left_out"] == 1


def test_uneven_overlaps_are_weighted():
    """Of three steps cut into two parts, half of the middle one is in each."""
    trace = tl.state_trace(heights([0, 6, 30]), "height", align="fraction", parts=2)
    np.testing.assert_allclose(trace["mean"], [(0 * 2 + 6) / 3, (6 + 30 * 2) / 3])


def parts_of(rows, parts):
    """Return the mean of rows in each part, from a step function on a grid fine enough to be exact."""
    fine = np.repeat(rows, parts, axis=0)
    return fine.reshape(parts, len(rows), *rows.shape[1:]).mean(axis=1)


@given(lengths, st.sampled_from(["action", "obs", "byte"]), st.sampled_from([1, 2, 3, 7]), st.booleans())
@examples(25)
def test_fraction_as_a_plain_loop(drawn, field, parts, tiny):
    ds = make_dataset(drawn).isel(time=slice(None, None, -1))

    def at(e, time, rows):
        if not ds["complete"].values[e]:
            return ()
        return zip(((np.arange(parts) + 0.5) / parts).tolist(), parts_of(rows, parts), strict=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fraction, "MAX_OVERLAPS", 5 if tiny else 2**18)
        patch.setattr(state_trace, "MAX_PACKED", 60 if tiny else 2**30)
        trace = tl.state_trace(ds, field, align="fraction", parts=parts)
    assert_as(trace, naive(ds, field, at), "fraction")


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(1, 9))
@examples(30)
def test_overlaps_fill_each_part(lengths, parts):
    found = Overlaps.of(np.array(lengths), parts)
    assert found.starts[-1] == len(found.row)
    np.testing.assert_allclose(np.add.reduceat(found.weight, found.starts[:-1]), np.ones(len(lengths) * parts))
    for number, steps in enumerate(lengths):
        own = slice(*found.starts[[number * parts, (number + 1) * parts]])
        np.testing.assert_allclose(np.bincount(found.row[own], found.weight[own]), np.full(steps, parts / steps))


def test_a_fraction_of_episodes_that_lie_in_chunks():
    rng = np.random.default_rng(0)
    ds = heights(*(rng.random(length) for length in (4, 1, 7, 4, 2, 7, 1)))
    expected = tl.state_trace(ds, "height", align="fraction", parts=3)
    xr.testing.assert_allclose(tl.state_trace(ds.chunk(episode=3), "height", align="fraction", parts=3), expected)


def test_a_fraction_needs_whole_complete_episodes():
    ds = heights([1, 2], [1, 2, 3], end_reason=["terminated", "cut"])
    trace = tl.state_trace(ds.isel(time=slice(0, 2)), "height", align="fraction", parts=2)
    assert trace["mean"].values.tolist() == [1, 2]
    with pytest.raises(ValueError, match="align='fraction': whole episodes are needed"):
        tl.state_trace(ds.isel(time=slice(1, None)), "height", align="fraction")


def test_nan_stays_in_its_part():
    with pytest.warns(UserWarning, match="at 1 of 4 steps"):
        trace = tl.state_trace(heights([1, np.nan, 3, 4]), "height", align="fraction", parts=4)
    assert np.isnan(trace["mean"].values).tolist() == [False, True, False, False]


def test_a_fraction_has_no_groups_of_transitions():
    ds = heights([1, 2]).assign(half=(("episode", "time"), [[0, 1]]))
    with pytest.raises(ValueError, match="by='half' differs from transition to transition"):
        tl.state_trace(ds, "height", align="fraction", by="half")


# By an event


def test_an_event_stands_at_0():
    ds = heights([1, 2, 3], [10, 20, 30, 40], [7, 7])
    trace = tl.state_trace(ds, "height", align=times_of(ds, [1, 2, np.nan]), window=(2, 1))
    assert trace["lag"].values.tolist() == [-2, -1, 0, 1]
    np.testing.assert_equal(trace["mean"].values, [10, 10.5, 16, 21.5])
    assert trace["n"].values.tolist() == [1, 2, 2, 2]
    assert trace.attrs["left_out"] == 1


@given(lengths, st.sampled_from(["action", "obs"]), st.sampled_from([None, 2, -1]), st.booleans(), st.booleans())
@examples(30)
def test_event_as_a_plain_loop(drawn, field, step, tiny, wide):
    ds = make_dataset(drawn).isel(time=slice(None, None, step))
    rng = np.random.default_rng(len(drawn))
    times = np.where(rng.random(len(drawn)) < 0.7, rng.integers(0, 7, len(drawn)), np.nan)
    before, after = (9, 9) if wide else (1, 2)

    def at(e, time, rows):
        lag = time - times[e]
        inside = (lag >= -before) & (lag <= after)
        return zip(lag[inside].tolist(), rows[inside], strict=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_trace, "MAX_PACKED", 60 if tiny else 2**30)
        trace = tl.state_trace(ds, field, align=times_of(ds, times), window=(before, after))
    assert_as(trace, naive(ds, field, at), "lag")


def test_without_a_window_it_ends_where_the_data_do():
    ds = heights([1, 2, 3], range(100))
    trace = tl.state_trace(ds, "height", align=times_of(ds, [2, 10]))
    assert trace["lag"].values[[0, -1]].tolist() == [-10, 50]


def test_times_are_found_by_label():
    ds = heights([1, 2], [10, 20], [5])
    times = times_of(ds, [1, 0, 0])[::-1]
    assert tl.state_trace(ds, "height", align=times, window=(0, 0))["mean"].item() == 17 / 3
    part = ds.isel(episode=[1])
    assert tl.state_trace(part, "height", align=times, window=(0, 0))["mean"].item() == 10
    with pytest.raises(ValueError, match="no time of the event for episode 1"):
        tl.state_trace(ds, "height", align=times.sel(episode=[0, 2]))


def test_by_the_name_of_a_field_of_bools():
    ds = tl.from_episodes(
        [{"height": np.arange(4.0), "high": np.arange(4) > 1}, {"height": np.arange(2.0), "high": np.zeros(2, bool)}]
    )
    want = tl.state_trace(ds, "height", align=tl.event_times(ds, "high"))
    xr.testing.assert_identical(tl.state_trace(ds, "height", align="high"), want)
    assert want["lag"].values.tolist() == [-2, -1, 0, 1]
    xr.testing.assert_identical(
        tl.state_trace(ds.assign(high=ds["high"].where(ds["mask"])), "height", align="high"), want
    )
    with pytest.raises(ValueError, match="condition 'height' has dtype float64; expected bools"):
        tl.state_trace(ds, "height", align="height")
    with pytest.raises(ValueError, match="the name of a field of bools: 'high'. Did you mean 'high'"):
        tl.state_trace(ds, "height", align="hihg")


@pytest.mark.filterwarnings("ignore:no episode")
@pytest.mark.parametrize("align", ["high", lambda ds: ds["high"]])
def test_no_episode_of_which_to_ask_for_an_event(align):
    assert tl.state_trace(tl.from_episodes([]), "height", align=align)["n"].values.tolist() == [0]


# What holds for all of them

ALIGNED = {
    "end": {"align": "end"},
    "fraction": {"align": "fraction", "parts": 4},
    "event": {"align": lambda ds: xr.where(ds["length"] > 2, ds["length"] // 2, np.nan), "window": (2, 2)},
}


def traced(ds, field, how, **options):
    given = dict(ALIGNED[how])
    align = given.pop("align")
    return tl.state_trace(ds, field, align=align(ds) if callable(align) else align, **given, **options)


@pytest.mark.parametrize("how", ALIGNED)
@pytest.mark.parametrize("form", FORMS)
def test_the_same_in_every_form(form, how, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    for options in ({}, {"by": "env"}):
        got, want = (traced(d, "obs", how, **options) for d in (in_form(ds, form, tmp_path), ds))
        xr.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("how", ALIGNED)
def test_each_group_as_if_alone(how):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4, 3, 3, 3, 3]).load()
    trace = traced(ds, "obs", how, by="env")
    for env in trace["env"].values:
        want = traced(ds.isel(episode=np.flatnonzero(ds["env"] == env)), "obs", how)
        got = trace.sel(env=env).sel({want["mean"].dims[0]: want[want["mean"].dims[0]]})
        for name in ("mean", "std", "n", "quantiles"):
            np.testing.assert_allclose(got[name], want[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("how", ["end", "event"])
@pytest.mark.parametrize("by", ["flag", "time"])
def test_groups_of_transitions(how, by):
    ds = make_dataset([3, 1, 6, 2, 2, 5]).load()
    trace, whole = traced(ds, "obs", how, by=by), traced(ds, "obs", how)
    np.testing.assert_array_equal(trace["n"].sum(by), whole["n"])
    got = (trace["mean"].fillna(0) * trace["n"]).sum(by)
    np.testing.assert_allclose(got, whole["mean"] * whole["n"], rtol=1e-9)
    assert trace["n"].attrs["long_name"] == "transitions"


@pytest.mark.parametrize("how", ALIGNED)
def test_no_episode(how):
    trace = traced(make_dataset([]), "obs", how)
    assert trace["n"].sum() == 0
    assert np.isnan(trace["mean"]).all()


@pytest.mark.parametrize("how", ALIGNED)
def test_the_result_can_be_saved(how, tmp_path):
    traced(make_dataset([3, 2]), "obs", how).to_netcdf(tmp_path / "t.nc", engine="h5netcdf")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"align": "ends"}, ValueError, "align='ends'; expected one of .* Did you mean 'end'"),
        ({"align": 3}, TypeError, "expected the times of an event.*got int"),
        ({"align": None}, TypeError, "^align=: expected the times of an event.*got NoneType"),
        ({"window": (1, 1)}, ValueError, r"window=\(1, 1\) goes with align=.end., or with the times of an event"),
        ({"parts": 4, "align": "end"}, ValueError, "parts=4 goes with align='fraction'"),
        ({"parts": 0, "align": "fraction"}, ValueError, "parts=0; expected at least 1"),
    ],
)
def test_arguments_that_do_not_fit(options, error, match):
    with pytest.raises(error, match=match):
        tl.state_trace(make_dataset([2]), "obs", **options)


@pytest.mark.parametrize("window", [(1,), (-1, 2), (1.5, 2), 3])
def test_windows_that_are_none(window):
    ds = make_dataset([2])
    with pytest.raises(ValueError, match="expected whole steps before and after"):
        tl.state_trace(ds, "obs", align=times_of(ds, [0]), window=window)


def test_times_that_are_none():
    ds = make_dataset([2, 2])
    with pytest.raises(ValueError, match="the event has the time 0.5"):
        tl.state_trace(ds, "obs", align=times_of(ds, [0.5, 1]))
    both = xr.concat([times_of(ds, [0, 1])] * 2, "event").assign_coords(event=["a", "b"])
    with pytest.raises(ValueError, match=r"expected those of one event: events.sel\({'event': 'a'}\)"):
        tl.state_trace(ds, "obs", align=both)


def test_a_dim_called_as_the_axis_is_refused():
    ds = tl.from_episodes([{"obs": np.ones((2, 3))}], dims={"obs": ["lag"]})
    assert tl.state_trace(ds, "obs")["mean"].dims == ("time", "lag")
    with pytest.raises(ValueError, match="'obs' has the dim 'lag'"):
        tl.state_trace(ds, "obs", align="end")
