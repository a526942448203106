"""Autocorrelation: visible values, a plain loop over pairs, and what does not change it."""

import threading

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis import spaced
from trajlab.analysis.kernels.spacing import Spacing

LENGTHS = [4, 1, 6, 2, 9, 3, 5]


def fields(*episodes, dtype=np.float64, **options):
    return tl.from_episodes([{"x": np.array(e, dtype)} for e in episodes], **options)


def correlation(ds, field="x", **options):
    return tl.autocorrelation(ds, field, **options)["autocorrelation"].values


def naive(ds, field, lag, member=lambda e, place: True, component=()):
    """Return the earlier and the later values of all pairs."""
    values, labels, pairs = ds[field].values, ds["time"].values.tolist(), []
    for e, length in enumerate(ds["length"].values):
        for place, t in enumerate(labels):
            if t + lag in labels and t + lag < length and member(e, place):
                pairs.append((values[(e, place, *component)], values[(e, labels.index(t + lag), *component)]))
    return np.array(pairs, np.float64).reshape(-1, 2).T


def assert_naive(result, ds, field, member=lambda e, place: True, component=()):
    """Check each lag of one group and component against a loop over pairs."""
    for lag in result["lag"].values:
        first, second = naive(ds, field, lag, member, component)
        assert result["n"].sel(lag=lag) == len(first)
        got = result["autocorrelation"].sel(lag=lag)
        if len(set(first)) < 2 or len(set(second)) < 2:
            assert np.isnan(got)
        else:
            np.testing.assert_allclose(got, np.corrcoef(first, second)[0, 1], atol=1e-9)


def test_visible_values():
    result = tl.autocorrelation(fields([1, -1, 1, -1], [1, -1], end_reason=["terminated", "cut"]), "x")
    assert result["autocorrelation"].dims == ("lag",)
    np.testing.assert_allclose(result["autocorrelation"], [1, -1, 1, np.nan])  # a single pair does not vary
    assert result["n"].values.tolist() == [6, 4, 2, 1]
    assert result["lag"].values.tolist() == [0, 1, 2, 3]
    assert result.attrs["num_cut"] == 1


def test_means_are_those_of_the_pairs_of_a_lag():
    """Long episodes have a level of their own, and at long lags they alone have pairs."""
    rng = np.random.default_rng(0)
    short, long = ([rng.normal(level, 1, n) for _ in range(60)] for level, n in ((5, 3), (-5, 40)))
    curve = correlation(fields(*short, *long), max_lag=20)
    assert curve[2] > 0.5
    assert abs(curve[5:]).max() < 0.1


def test_what_differs_between_episodes_counts():
    noise = np.random.default_rng(0).normal(size=(40, 30))
    ds = fields(*(noise + np.arange(40)[:, None]))
    assert correlation(ds)[10:25].min() > 0.9
    centred = ds.assign(x=ds["x"] - ds["x"].where(ds["mask"]).mean("time"))
    assert abs(correlation(centred)[1:15]).max() < 0.15


def test_no_pair_crosses_the_edge_of_an_episode():
    result = tl.autocorrelation(fields([1, 2], [5], [3, 9, 1]), "x", max_lag=4)
    assert result["n"].values.tolist() == [6, 3, 1, 0, 0]
    assert np.isnan(result["autocorrelation"].values[3:]).all()


# A plain loop ------------------------------------------------------------------------------------------------


@given(lengths, st.integers(0, 9))
@examples(15)
def test_equals_a_loop(lengths, seed):
    ds = make_dataset(lengths, seed)
    result = tl.autocorrelation(ds, "obs", max_lag=4)
    for component in range(3):
        assert_naive(result.isel(obs_dim_0=component), ds, "obs", component=(component,))


@given(lengths, st.integers(0, 9), st.randoms(use_true_random=False))
@examples(15)
def test_groups_equal_a_loop(lengths, seed, random):
    ds = make_dataset(lengths, seed)
    order = random.sample(range(len(lengths)), len(lengths))
    ds = ds.isel(episode=order).assign_coords(team=("episode", [random.randrange(3) for _ in order]))
    if not len(order):
        return
    result = tl.autocorrelation(ds, "reward", max_lag=4, by="team")
    for team in result["team"].values:
        member = ds["team"].values == team
        assert_naive(result.sel(team=team), ds, "reward", lambda e, place, member=member: member[e])


@pytest.mark.parametrize("field", ["reward", "action", "flag", "byte"])
def test_fields_of_any_numbers(field):
    ds = make_dataset(LENGTHS)
    assert_naive(tl.autocorrelation(ds, field), ds, field)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("by", [None, "end_reason", "flag", "phase"])
def test_every_form_of_a_dataset(form, by, tmp_path):
    ds = make_dataset(LENGTHS)
    want = tl.autocorrelation(ds, "obs", by=by, max_lag=5)
    got = tl.autocorrelation(in_form(ds, form, tmp_path), "obs", by=by, max_lag=5)
    xr.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("times", [slice(2, None), slice(0, 3), [0, 1, 3, 4, 7], [4, 1, 0, 5], [3], slice(0, 0)])
def test_after_a_slice_lags_are_those_of_the_labels(times):
    ds = make_dataset(LENGTHS).isel(time=times)
    assert_naive(tl.autocorrelation(ds, "reward"), ds, "reward")


@pytest.mark.parametrize("cells", [1, 3, 8])
def test_where_batches_end_changes_nothing(monkeypatch, cells):
    ds = make_dataset(LENGTHS).load()
    want = [tl.autocorrelation(ds, "obs", by=by) for by in (None, "end_reason", "flag")]
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    monkeypatch.setattr("trajlab.analysis.kernels.lagged_sums.TILE", cells)
    monkeypatch.setattr("trajlab.analysis.spaced.MAX_PLACES", 4 * cells)
    monkeypatch.setattr("trajlab.analysis.spaced.TILE_PLACES", cells)
    for by, one in zip((None, "end_reason", "flag"), want, strict=True):
        xr.testing.assert_allclose(tl.autocorrelation(ds, "obs", by=by), one, rtol=1e-9)


def test_of_many_groups_no_more_is_held_than_of_one(monkeypatch):
    ds, held, read = make_dataset(LENGTHS), [], spaced.read_flat
    want = tl.autocorrelation(ds, "obs", by="env")

    def measured(ds, fields):
        held.append(int(ds["length"].sum()))
        return read(ds, fields)

    monkeypatch.setattr(spaced, "read_flat", measured)
    monkeypatch.setattr(spaced, "MAX_PLACES", 4)
    xr.testing.assert_allclose(tl.autocorrelation(ds, "obs", by="env"), want, rtol=1e-9)
    assert sum(held) == sum(LENGTHS)
    assert max(held) < sum(LENGTHS) / 2


@pytest.mark.parametrize("most", [0, 1])
def test_where_no_further_thread_can_be_started(monkeypatch, most):
    ds = make_dataset(LENGTHS).load()
    want = tl.autocorrelation(ds, "obs")
    start, begun = threading.Thread.start, []

    def start_few(thread):
        if len(begun) == most:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_few)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("trajlab.analysis.spaced.TILE_PLACES", 1)
    xr.testing.assert_allclose(tl.autocorrelation(ds, "obs"), want, rtol=1e-9)
    assert len(begun) == most


# Groups ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["env", "end_reason"])
def test_groups_of_episodes(by):
    ds = make_dataset(LENGTHS).load()
    result = tl.autocorrelation(ds, "reward", by=by)
    assert result["autocorrelation"].dims == (by, "lag")
    for label in result[by].values:
        member = ds[by].values == label
        assert_naive(result.sel({by: label}), ds, "reward", lambda e, place, member=member: member[e])


def test_the_earlier_step_decides_its_group():
    ds = make_dataset(LENGTHS).load()
    result = tl.autocorrelation(ds, "reward", by="flag")
    for label in (False, True):
        here = ds["flag"].values == label
        assert_naive(result.sel(flag=label), ds, "reward", lambda e, place, here=here: here[e, place])


def test_episodes_in_no_group_are_left_out():
    ds = fields([0, 1, 0], [7, 9, 1], [1, 0, 1], env=[0, 1, 2])
    alone = fields([0, 1, 0], [1, 0, 1])
    got = tl.autocorrelation(ds, "x", by="env", groups={"some": [0, 2]}).isel(env=0)
    xr.testing.assert_allclose(got.drop_vars("env"), tl.autocorrelation(alone, "x"))
    nobody = tl.autocorrelation(ds, "x", by="env", groups={"none": [5]})
    assert nobody["n"].values.tolist() == [[0, 0, 0]]


# Numbers that are hard ---------------------------------------------------------------------------------------


def test_a_large_offset_does_not_cancel():
    x = [np.random.default_rng(i).normal(size=50) for i in range(20)]
    large = fields(*(row + 2.0**33 for row in x))
    np.testing.assert_allclose(correlation(large), correlation(fields(*x)), atol=1e-5)


def test_each_group_has_an_offset_of_its_own():
    x = [np.random.default_rng(i).normal(size=50) for i in range(20)]
    ds = fields(*(row + (i % 2) * 2.0**33 for i, row in enumerate(x)), env=[i % 2 for i in range(20)])
    want = correlation(fields(*x[1::2]))
    np.testing.assert_allclose(correlation(ds, by="env")[1], want, atol=1e-5)


def test_groups_of_other_orders_than_their_episodes_have_their_own_offsets():
    """Of a small group nothing is left where the level of another one is subtracted from its values."""
    large, small = np.random.default_rng(0).normal(size=500) * 1e6, [0.795, 0.75, 0.77]
    got = correlation(fields(large, small, env=[2, 1]), by="env", max_lag=1)
    np.testing.assert_allclose(got, [correlation(fields(one), max_lag=1) for one in (small, large)])


@pytest.mark.parametrize("threads", [1, 4])
def test_the_number_of_processors_changes_nothing(monkeypatch, threads):
    ds = make_dataset([70, 30, 1, 500] * 5)
    want = tl.autocorrelation(ds, "obs")
    monkeypatch.setattr("os.cpu_count", lambda: threads)
    monkeypatch.setattr("trajlab.analysis.spaced.TILE_PLACES", 100)
    xr.testing.assert_allclose(tl.autocorrelation(ds, "obs"), want, rtol=1e-9)


def test_large_episodes_do_not_blur_lags_they_are_not_in():
    x = [np.random.default_rng(i).normal(size=30) for i in range(20)]
    huge = [[1e12, -1e12, 3e12]]
    np.testing.assert_allclose(correlation(fields(*huge, *x))[5:], correlation(fields(*x))[5:], atol=1e-4)


@pytest.mark.parametrize("value", [0.1, 1e9, 0])
def test_a_field_that_does_not_vary_has_none(value):
    assert np.isnan(correlation(fields([value] * 3, [value] * 7))).all()


def test_values_that_do_not_vary_at_long_lags():
    varying = [[1.0, 5.0], [2.0, 0.3]] * 3
    curve = correlation(fields([0.1] * 30, *varying), max_lag=5)
    assert np.isfinite(curve[:2]).all()
    assert np.isnan(curve[2:]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_nan_stays_at_the_lags_it_is_in_a_pair_of(value):
    ds = fields([1, value, 3], np.sin(np.arange(9)), np.cos(np.arange(9)))
    with pytest.warns(UserWarning, match="'x' has NaN or infinite values, .* in 1 of 1 components") as seen:
        result = tl.autocorrelation(ds, "x")
    assert seen[0].filename == __file__
    assert np.isnan(result["autocorrelation"].values[:2]).all()
    rest = fields([1, 0, 3], np.sin(np.arange(9)), np.cos(np.arange(9)))
    np.testing.assert_allclose(result["autocorrelation"].values[2:], correlation(rest)[2:])
    assert result["n"].values.tolist() == tl.autocorrelation(rest, "x")["n"].values.tolist()


def test_a_group_that_begins_with_nan():
    """What its values lie around is told by the others."""
    x = [np.random.default_rng(i).normal(size=50) for i in range(20)]
    nothing = [[np.nan] * 3] * 40
    with pytest.warns(UserWarning, match="NaN"):
        got = correlation(fields(*nothing, *(row + 2.0**33 for row in x)))
    np.testing.assert_allclose(got[3:], correlation(fields(*x))[3:], atol=1e-5)


def test_a_nan_stays_in_its_group():
    ds = fields([1, np.nan, 3], [2, 3, 1, 5], [1, 2, 9, 4], env=[0, 1, 1])
    with pytest.warns(UserWarning, match="in 1 of 2 groups and components"):
        got = correlation(ds, by="env")
    np.testing.assert_allclose(got[1], correlation(fields([2, 3, 1, 5], [1, 2, 9, 4])))


# Edges -------------------------------------------------------------------------------------------------------


def test_longest_lag():
    assert tl.autocorrelation(fields(np.arange(80.0)), "x").sizes["lag"] == 51
    assert tl.autocorrelation(fields([1, 2, 4]), "x").sizes["lag"] == 3
    assert correlation(fields([1, 2, 4]), max_lag=0).tolist() == [1]
    for wrong, error in ((-1, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=f"max_lag={wrong}; expected .*at least 0"):
            tl.autocorrelation(fields([1, 2]), "x", max_lag=wrong)


@pytest.mark.parametrize("by", [None, "seed", "phase"])
def test_of_no_episode(blank, by):
    result = tl.autocorrelation(blank, "x", by=by)
    assert result["autocorrelation"].dims == (*([by] if by else []), "lag")
    assert not result["n"].any()


def test_components_are_kept():
    ds = fields([[0, 2], [1, 2], [0, 3]], dims={"x": ["joint"]}, coords={"joint": ["hip", "knee"]})
    result = tl.autocorrelation(ds, "x", max_lag=1)
    assert result["autocorrelation"].dims == ("lag", "joint")
    assert result["autocorrelation"].sel(joint="hip", lag=1) == pytest.approx(-1)


def test_what_is_refused():
    with pytest.raises(TypeError, match="autocorrelation: 'x' has dtype <U1; expected bools, integers or real"):
        tl.autocorrelation(fields(["a", "b"], dtype="<U1"), "x")
    with pytest.raises(KeyError, match="Did you mean 'reward'"):
        tl.autocorrelation(make_dataset([2]), "rewrad")
    with pytest.raises(ValueError, match="'x' has the dim 'lag'.*ds.rename"):
        tl.autocorrelation(fields([[0, 1], [1, 0]], dims={"x": ["lag"]}), "x")


def test_a_long_episode_gives_short_ones_no_gap_of_its_own_length(monkeypatch):
    room = []
    of = Spacing.of

    def measured(*args, **options):
        spacing = of(*args, **options)
        room.append(spacing.size)
        return spacing

    monkeypatch.setattr(Spacing, "of", measured)
    ds = make_dataset([700, *[3, 1, 2] * 20])
    for by in (None, "env", "flag"):
        room.clear()
        result = tl.autocorrelation(ds, "reward", max_lag=699, by=by)
        assert sum(room) < 10 * int(ds["length"].sum())
        for group in range(result.sizes.get(by, 1)):
            one = result if by is None else result.isel({by: group})
            values = None if by is None else ds[by].values
            member = (
                (lambda e, place: True)
                if by is None
                else lambda e, p: (values[e] if by == "env" else values[e, p]) == group
            )
            for lag in (1, 3, 650):
                first, second = naive(ds, "reward", lag, member)
                assert one["n"].sel(lag=lag) == len(first)
                if len(set(first)) > 1 < len(set(second)):
                    want = np.corrcoef(first, second)[0, 1]
                    np.testing.assert_allclose(one["autocorrelation"].sel(lag=lag), want, atol=1e-9)


@pytest.mark.parametrize("size", [1e300, 1.5e308])
@pytest.mark.parametrize("by", [None, "env", "time"])
def test_values_whose_squares_are_no_floats_leave_nan(by, size):
    groups = {"all": slice(0, 9)} if by == "time" else None
    ds = fields([size, -size, size, 0])
    with pytest.warns(UserWarning, match="too large for their sums and squares to be floats: 4 of 4"):
        np.testing.assert_equal(correlation(ds, by=by, groups=groups).ravel(), [np.nan] * 4)


@pytest.mark.parametrize("by", [None, "env", "time"])
def test_a_field_without_components(by):
    result = tl.autocorrelation(fields(np.zeros((3, 0)), np.zeros((2, 0))), "x", by=by, max_lag=1)
    assert result["autocorrelation"].sizes["x_dim_0"] == 0
    assert result["n"].values.reshape(-1, 2).sum(axis=0).tolist() == [5, 3]
