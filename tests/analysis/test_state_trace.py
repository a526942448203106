"""Traces: visible means, a plain loop, and what does not change them."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, heights, in_form, lengths, make_dataset, rows_at
from strategies import examples

import trajlab as tl
from trajlab.analysis import state_trace
from trajlab.analysis.kernels import moments


def test_means_are_over_the_episodes_alive():
    trace = tl.state_trace(heights([1, 5, 6], [3], end_reason=["terminated", "cut"]), "height")
    assert trace["mean"].dims == ("time",)
    assert trace["mean"].values.tolist() == [2, 5, 6]
    assert trace["std"].values.tolist() == [1, 0, 0]
    assert trace["n"].values.tolist() == [2, 1, 1]
    assert trace["n"].dtype == np.int64
    assert trace["quantiles"].dims == ("quantile", "time")
    assert trace["quantiles"].sel(quantile=0.5).values.tolist() == [2, 5, 6]
    np.testing.assert_allclose(trace["quantiles"].sel(quantile=0.1), [1.2, 5, 6])


@pytest.mark.parametrize("quantiles", [(), False, []])
def test_quantiles_may_be_left_out(quantiles):
    trace = tl.state_trace(heights([1, 5], [3]), "height", quantiles=quantiles)
    assert "quantiles" not in trace
    assert "quantile" not in trace.dims
    assert trace["mean"].values.tolist() == [2, 5]


def test_none_are_the_default_quantiles():
    ds = heights([1, 5], [3])
    xr.testing.assert_identical(tl.state_trace(ds, "height", quantiles=None), tl.state_trace(ds, "height"))
    assert tl.state_trace(ds, "height", quantiles=None)["quantile"].values.tolist() == [0.1, 0.5, 0.9]


def test_text_in_objects_is_refused():
    ds = heights([1, 5], [3])
    with pytest.raises(TypeError, match="state_trace: 'height' has dtype object"):
        tl.state_trace(ds.assign(height=ds["height"].astype(str).astype(object)), "height")


def test_a_constant_stays_constant_however_few_are_left():
    ds = heights([0.1] * 7, [0.1] * 3, [0.1])
    trace = tl.state_trace(ds, "height")
    np.testing.assert_allclose(trace["mean"], 0.1, rtol=1e-15)
    np.testing.assert_allclose(trace["std"], 0, atol=1e-16)


@pytest.mark.parametrize("offset", [0, 1e9, -1e12])
def test_deviations_survive_a_large_offset(offset):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4)) + offset
    trace = tl.state_trace(heights(*rows), "height")
    np.testing.assert_allclose(trace["std"], rows.std(axis=0), rtol=1e-3 if abs(offset) > 1e10 else 1e-6)
    np.testing.assert_allclose(trace["mean"], rows.mean(axis=0), rtol=1e-14, atol=1e-14)


def test_deviations_survive_a_drift_between_the_first_and_the_last(monkeypatch):
    monkeypatch.setattr(moments, "TILE", 4)
    rows = np.repeat(np.array([0.0] * 4 + [1e6] * 996)[:, None], 2, axis=1)
    trace = tl.state_trace(heights(*rows), "height", quantiles=False)
    np.testing.assert_allclose(trace["std"], rows.std(axis=0), rtol=1e-12)


def assert_as_a_loop(trace, ds, field, quantiles):
    """Compare with `numpy` over the rows of each step."""
    for place, time in enumerate(trace["time"].values):
        rows = rows_at(ds, field, time)
        step = trace.isel(time=place)
        assert step["n"].item() == len(rows)
        if not len(rows):
            assert np.isnan(step["mean"].values).all()
            assert np.isnan(step["quantiles"].values).all()
            continue
        np.testing.assert_allclose(step["mean"], rows.mean(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(step["std"], rows.std(axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(step["quantiles"], np.quantile(rows, quantiles, axis=0), rtol=1e-12)


@given(lengths, st.integers(0, 3), st.sampled_from(["action", "reward", "obs", "pair", "flag", "byte"]))
@examples(40)
def test_as_a_plain_loop(drawn, seed, field):
    ds = make_dataset(drawn, seed)
    quantiles = [0, 0.3, 0.5, 1]
    trace = tl.state_trace(ds, field, quantiles=quantiles)
    assert_as_a_loop(trace, ds.load(), field, quantiles)


@given(lengths, st.integers(0, 8), st.sampled_from([1, 2, -1]), st.booleans())
@examples(30)
def test_as_a_plain_loop_in_small_pieces(drawn, first, step, tiny):
    ds = make_dataset(drawn).isel(time=slice(first, None)).isel(time=slice(None, None, step))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments, "TILE", 3 if tiny else 2**19)
        patch.setattr(state_trace, "MAX_PACKED", 60 if tiny else 2**30)
        trace = tl.state_trace(ds, "obs", quantiles=[0.2, 0.9])
    np.testing.assert_array_equal(trace["time"], np.sort(ds["time"]))
    assert_as_a_loop(trace, ds.load(), "obs", [0.2, 0.9])


@given(lengths, st.sampled_from(["env", "iteration", "end_reason"]))
@examples(30)
def test_each_group_as_if_alone(drawn, by):
    ds = make_dataset(drawn or [1]).load()
    trace = tl.state_trace(ds, "obs", by=by)
    assert trace["mean"].dims == (by, "time", "obs_dim_0")
    for value in trace[by].values:
        alone = ds.isel(episode=np.flatnonzero(ds["start_iteration" if by == "iteration" else by] == value))
        want = tl.state_trace(alone, "obs")
        for name in ("mean", "std", "n", "quantiles"):
            np.testing.assert_allclose(trace[name].sel({by: value}), want[name], rtol=1e-9, atol=1e-9)


def test_groups_of_transitions():
    ds = heights([1, 2, 3, 4])
    ds["iteration"] = ds["iteration"].copy(data=[[0, 0, 1, 1]])
    trace = tl.state_trace(ds, "height", by="iteration")
    np.testing.assert_equal(trace["mean"].values, [[1, 2, np.nan, np.nan], [np.nan, np.nan, 3, 4]])
    assert trace["n"].values.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert trace["n"].attrs["long_name"] == "transitions"


def test_what_is_in_no_group_is_left_out():
    ds = heights([1, 1], [5, 5], [100, 100], env=[0, 0, 1])
    trace = tl.state_trace(ds, "height", by="env", groups={"zero": 0})
    assert trace["mean"].values.tolist() == [[3, 3]]
    ds["iteration"] = ds["iteration"].copy(data=[[0, 1]] * 3)
    trace = tl.state_trace(ds, "height", by="iteration", groups={"late": 1})
    np.testing.assert_allclose(trace["mean"], [[np.nan, 106 / 3]])


@pytest.mark.parametrize("options", [{}, {"by": "env"}, {"by": "iteration", "quantiles": ()}])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_in_every_form(form, options, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    got, want = (tl.state_trace(d, "obs", **options) for d in (in_form(ds, form, tmp_path), ds))
    xr.testing.assert_allclose(got, want, rtol=1e-12)


def test_nan_stays_at_its_step_and_is_reported():
    ds = heights([1, np.nan, 3], [1, 2, 3])
    with pytest.warns(UserWarning, match="'height' has NaN.* at 1 of 3 steps") as seen:
        trace = tl.state_trace(ds, "height")
    assert seen[0].filename == __file__
    for name in ("mean", "std"):
        assert np.isnan(trace[name].values).tolist() == [False, True, False]
    assert np.isnan(trace["quantiles"].values).tolist() == [[False, True, False]] * 3
    assert trace["n"].values.tolist() == [2, 2, 2]


def test_inf_stays_at_its_step():
    with pytest.warns(UserWarning, match="values that are infinite, or too large .*: 1 of 3 statistics"):
        trace = tl.state_trace(heights([1, np.inf, 3], [1, 2, 3], [1, np.inf, 3]), "height")
    np.testing.assert_equal(trace["mean"].values, [1, np.inf, 3])
    np.testing.assert_equal(trace["quantiles"].sel(quantile=0.9).values, [1, np.inf, 3])
    assert np.isnan(trace["std"].values).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16])
def test_narrow_dtypes_are_averaged_wide(dtype):
    value = {bool: True, np.uint8: 250, np.int64: 2**40, np.float16: 3000}[dtype]
    trace = tl.state_trace(heights(*[[value]] * 100, dtype=dtype), "height")
    assert trace["mean"].item() == value
    assert trace["quantiles"].values.tolist() == [[value]] * 3


def test_bools_that_where_made_objects():
    ds = heights([True, False], [False], dtype=bool)
    ds["height"] = ds["height"].where(ds.mask)
    assert tl.state_trace(ds, "height")["mean"].values.tolist() == [0.5, 0]


def test_an_image_keeps_its_dims():
    ds = tl.from_episodes([{"image": np.ones((2, 4, 5, 3), np.uint8)}, {"image": np.zeros((1, 4, 5, 3), np.uint8)}])
    trace = tl.state_trace(ds, "image")
    assert trace["mean"].shape == (2, 4, 5, 3)
    assert trace["mean"].values[:, 0, 0, 0].tolist() == [0.5, 1]


def test_no_episode():
    trace = tl.state_trace(make_dataset([]), "obs", by="env")
    assert trace["mean"].shape == (0, 1, 3)
    trace = tl.state_trace(make_dataset([]), "obs")
    assert trace["n"].values.tolist() == [0]
    assert np.isnan(trace["mean"]).all()


def test_no_step():
    trace = tl.state_trace(make_dataset([2]).isel(time=slice(5, None)), "obs")
    assert trace["mean"].shape == (0, 3)


def test_steps_past_every_episode_are_nan():
    ds = make_dataset([5, 2]).isel(episode=[1])
    trace = tl.state_trace(ds, "obs")
    assert trace["n"].values.tolist() == [1, 1, 0, 0, 0]
    assert np.isnan(trace["mean"].values[2:]).all()


def test_labels_and_units_are_carried(tmp_path):
    ds = tl.from_episodes(
        [{"state": np.zeros((2, 2))}],
        dims={"state": ["axis"]},
        coords={"axis": ["x", "y"]},
        units={"state": ["m", "rad"]},
    )
    trace = tl.state_trace(ds, "state")
    assert trace["axis"].values.tolist() == ["x", "y"]
    assert trace["axis_units"].values.tolist() == ["m", "rad"]
    assert tl.state_trace(heights([1], units={"height": "m"}), "height")["std"].attrs["units"] == "m"
    json.dumps(trace.attrs)
    trace.to_netcdf(tmp_path / "t.nc", engine="h5netcdf")


def test_nothing_is_warned_of_on_good_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tl.state_trace(make_dataset([3, 2, 5]), "obs", by="env")


@pytest.mark.parametrize("quantiles", [(1.5,), (-0.1,), (0.5, 0.5), np.array([[0.5]]), "half", True, 0.5])
def test_quantiles_that_are_none(quantiles):
    with pytest.raises(ValueError, match=r"quantiles=.*expected"):
        tl.state_trace(make_dataset([2]), "obs", quantiles=quantiles)


def test_text_is_refused():
    with pytest.raises(TypeError, match="'height' has dtype <U1"):
        tl.state_trace(heights(["a"], dtype="<U1"), "height")


def test_a_misspelt_field():
    with pytest.raises(KeyError, match="Did you mean 'obs'"):
        tl.state_trace(make_dataset([1]), "obss")


def test_no_episode_and_no_field():
    with pytest.warns(UserWarning, match="no episode"):
        blank = tl.from_episodes([])
    trace = tl.state_trace(blank, "state.position", by="seed")
    assert trace["mean"].dims == ("seed", "time")
    assert (trace["mean"].shape, trace["mean"].dtype) == ((0, 0), np.float64)
    assert (trace["n"].shape, trace["n"].dtype) == ((0, 0), np.int64)
    assert trace["quantiles"].dims == ("quantile", "seed", "time")
    assert tl.state_trace(blank, "x")["mean"].shape == (0,)
    with pytest.raises(KeyError, match="'length'"):
        tl.state_trace(blank, "length")


@pytest.mark.parametrize("by", [None, "env", "iteration"])
def test_no_time_step(by):
    trace = tl.state_trace(heights([1, 5], [3]).isel(time=slice(0, 0)), "height", by=by)
    assert trace.sizes["time"] == 0
    assert trace["n"].sum() == 0


@pytest.mark.parametrize("dim", ["mean", "std", "n", "quantiles"])
def test_a_dim_called_as_the_result_is_refused(dim):
    ds = tl.from_episodes([{"obs": np.ones((2, 3))}], dims={"obs": [dim]})
    with pytest.raises(ValueError, match=f"'obs' has the dim '{dim}', a name that the result uses itself"):
        tl.state_trace(ds, "obs")
    assert tl.state_trace(ds.rename({dim: "axis"}), "obs")["mean"].dims == ("time", "axis")


def test_the_group_of_rows_is_sorted_once(monkeypatch):
    made = []
    real = moments.indicator
    monkeypatch.setattr(moments, "indicator", lambda *args: made.append(args) or real(*args))
    taken = moments.Moments(2, 3)
    index, rows = np.array([0, 1, 0]), np.arange(9.0).reshape(3, 3)
    taken.add(index, rows)
    made.clear()
    taken.add(index, rows)
    assert len(made) == 1
    mean, std = taken.result(np.array([4, 2]))
    assert mean.tolist() == [[3, 4, 5], [3, 4, 5]]
    assert std.tolist() == [[3, 3, 3], [0, 0, 0]]
