"""Returns to go: visible sums, a plain loop, what does not change them, and that they serve as a field."""

import pickle

import numpy as np
import pytest
import xarray as xr
from chunks import random_rollout
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis.kernels import backward_sums
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import log_tiles


def rewards(*episodes, dtype=np.float32, **options):
    return tl.from_episodes([{"reward": np.array(e, dtype)} for e in episodes], **options)


def naive(ds, discount, field="reward"):
    """Return the sums (episode, time, ...) by a loop from the last step to the first."""
    values = ds[field].values.astype(np.float64)
    out = np.full(values.shape, np.nan)
    for e, length in enumerate(ds["length"].values):
        total = 0.0
        for t in reversed(range(length)):
            total = values[e, t] + discount * total
            out[e, t] = total
    return out


def assigned(ds, **options):
    return ds.assign(return_to_go=tl.return_to_go(ds, **options))


def test_visible_sums():
    ds = rewards([1, 2, 4], [8], end_reason=["terminated", "cut"])
    result = tl.return_to_go(ds)
    assert result.dims == ("episode", "time")
    assert result.dtype == np.float64
    assert result.name == "return_to_go"
    np.testing.assert_array_equal(result, [[7, 6, 4], [8, np.nan, np.nan]])
    assert result["complete"].values.tolist() == [True, False]
    assert result["mask"].dims == ("episode", "time")
    assert result.attrs["num_incomplete"] == 1
    assert tl.return_to_go(ds, discount=0.5).values[0].tolist() == [3, 4, 4]
    assert tl.return_to_go(ds, discount=0).values[0].tolist() == [1, 2, 4]


@given(lengths, st.sampled_from([1.0, 0.9, 0.0]), st.integers(0, 3))
@examples(20)
def test_as_a_plain_loop_and_as_returns(drawn, discount, seed):
    ds = make_dataset(drawn, seed)
    result = tl.return_to_go(ds, discount=discount)
    np.testing.assert_array_equal(result, naive(ds.load(), discount))
    np.testing.assert_allclose(result[:, :1].sum("time"), tl.returns(ds, discount=discount), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["reward", "obs"])
def test_the_same_in_every_form(form, field, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5])
    want = tl.return_to_go(ds, reward=field, discount=0.9)
    got = tl.return_to_go(in_form(ds, form, tmp_path), reward=field, discount=0.9).sortby("episode")
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("together", "few"), [(1, 100), (2, 1), (5, 3), (100, 4)])
def test_how_episodes_are_put_together_changes_no_bit(monkeypatch, together, few):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, 20)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = rng.normal(size=(offsets[-1], 2))
    want = values.copy()
    for first, stop in zip(offsets, offsets[1:], strict=False):
        for t in reversed(range(first, stop - 1)):
            want[t] = values[t] + 0.9 * want[t + 1]
    monkeypatch.setattr(backward_sums, "TOGETHER", together)
    monkeypatch.setattr(backward_sums, "FEW", few)
    backward_sums.sum_backwards(values, offsets, 0.9)
    np.testing.assert_array_equal(values, want)


def in_log(seed, **changes):
    """Return a lazy Dataset of rows of a log, some fields changed before they are recorded."""
    chunk = random_rollout(seed, envs=5)
    recorder = tl.Recorder()
    for part in (slice(0, 15), slice(15, 40)):
        recorder.record({name: changes.get(name, rows)[part] for name, rows in chunk.items()})
    return recorder.to_dataset()


def row_by_row(patch, ds, **options):
    """Return the sums made as those of wide logs are."""
    patch.setattr("trajlab.analysis.return_to_go.WIDE", 1)
    result = tl.return_to_go(ds, **options)
    patch.undo()
    return result


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("field", ["reward", "obs"])
@pytest.mark.parametrize("select", [slice(None), slice(None, None, -1), [7, 3, 0, 12, 9, 1, 5], slice(0, 0)])
def test_row_by_row_in_a_log_changes_no_bit(monkeypatch, seed, discount, field, select):
    ds = in_log(seed).isel(episode=select)
    want = tl.return_to_go(ds, reward=field, discount=discount)
    got = row_by_row(monkeypatch, ds, reward=field, discount=discount)
    xr.testing.assert_identical(got, want)
    np.testing.assert_array_equal(got, naive(ds.load(), discount, field))
    assert pickle.loads(pickle.dumps(got)).equals(want)


def test_what_was_made_row_by_row_is_read_with_the_log(monkeypatch):
    ds = in_log(0)
    both = ds.assign(return_to_go=row_by_row(monkeypatch, ds, discount=0.9))
    tl.validate(both, deep=True)
    assert log_tiles(both, ["return_to_go", "reward", "iteration"], Cells.of(both)) is not None
    want = naive(ds.load(), 0.9)
    np.testing.assert_allclose(tl.state_trace(both, "return_to_go")["mean"], np.nanmean(want, axis=0))
    np.testing.assert_array_equal(tl.transitions(both)["return_to_go"], want[ds["mask"].values])
    np.testing.assert_array_equal(both["return_to_go"][[3, 1], :2], want[[3, 1], :2])


@pytest.mark.parametrize("bad", [[np.nan], [np.inf, -np.inf], [1e308, 1e308]])
def test_row_by_row_the_same_is_reported(monkeypatch, bad):
    reward = np.arange(200.0).reshape(40, 5)
    reward[20 : 20 + len(bad), [1, 3]] = np.array(bad)[:, np.newaxis]
    ds = in_log(0, reward=reward)
    with pytest.warns(UserWarning, match="return_to_go: ") as first:
        want = tl.return_to_go(ds)
    with pytest.warns(UserWarning, match="return_to_go: ") as second:
        got = row_by_row(monkeypatch, ds)
    np.testing.assert_array_equal(got, want)
    assert [str(one.message) for one in second] == [str(one.message) for one in first]


def test_rounding_of_one_episode_does_not_reach_another():
    huge = [1e300, -1e300, 1e300]
    values = tl.return_to_go(rewards([0.1, 0.2], huge, [0.1, 0.2], huge, dtype=np.float64)).values
    assert values[[0, 2], :2].tolist() == [[0.1 + 0.2, 0.2]] * 2


# A field like others ------------------------------------------------------------------------------------------


def test_it_is_a_field_like_others(tmp_path):
    ds = assigned(make_dataset([4, 1, 6, 2]), discount=0.9)
    want = naive(ds.load(), 0.9)
    tl.validate(ds, deep=True)
    trace = tl.state_trace(ds, "return_to_go")
    np.testing.assert_allclose(trace["mean"], np.nanmean(want, axis=0))
    np.testing.assert_array_equal(tl.transitions(ds)["return_to_go"], want[ds["mask"].values])
    assert tl.episode(ds, 2)["return_to_go"].values.tolist() == want[2].tolist()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ds))["return_to_go"], want)
    both = tl.concat([ds, ds.isel(episode=[1])])
    tl.validate(both, deep=True)
    np.testing.assert_array_equal(both["return_to_go"], np.concatenate([want, want[[1]]]))
    ds.to_netcdf(tmp_path / "ds.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "ds.nc", engine="h5netcdf") as opened:
        np.testing.assert_array_equal(opened["return_to_go"], want)


@pytest.mark.parametrize(
    "select",
    [
        lambda x: x.isel(episode=[2, 0], time=slice(1, 4)),
        lambda x: x.isel(episode=xr.Variable("p", [0, 2, 1]), time=xr.Variable("p", [3, 5, 4])),
        lambda x: x.isel(episode=2, time=-1, obs_dim_0=[2, 0]),
        lambda x: x.isel(obs_dim_0=1)[::-1, ::2],
    ],
)
def test_what_is_selected_before_it_is_read(select):
    ds = make_dataset([4, 1, 6, 2])
    lazy = tl.return_to_go(ds, reward="obs")
    np.testing.assert_array_equal(select(lazy), select(lazy.copy(data=naive(ds.load(), 1.0, "obs"))))


def test_steps_in_another_order():
    ds = make_dataset([4, 1, 6, 2]).isel(time=[3, 0, 5, 1, 2, 4])
    result = tl.return_to_go(ds, discount=0.9)
    np.testing.assert_array_equal(result.sortby("time"), naive(ds.sortby("time").load(), 0.9))
    trace = tl.state_trace(ds.assign(return_to_go=result), "return_to_go")["mean"]
    np.testing.assert_allclose(trace, result.sortby("time").mean("episode"))


def test_reading_it_flat_makes_no_padding(monkeypatch):
    ds = assigned(make_dataset([4, 1, 6, 2]))
    want = tl.state_trace(ds.load(), "return_to_go", quantiles=False)
    lazy = assigned(make_dataset([4, 1, 6, 2]))
    monkeypatch.setattr("trajlab.dataset.flat_array.FlatArray.read", None)
    xr.testing.assert_identical(tl.state_trace(lazy, "return_to_go", quantiles=False), want)


def test_a_changed_length_is_respected():
    ds = assigned(make_dataset([4, 2])).assign_coords(length=("episode", [3, 1]))
    assert tl.state_trace(ds, "return_to_go")["n"].values.tolist() == [2, 1, 1, 0]


# What is not finite -------------------------------------------------------------------------------------------


def test_nan_stays_in_its_episode_before_it_and_is_reported():
    ds = rewards([1, np.nan, 2], [2, 3])
    with pytest.warns(UserWarning, match="return_to_go: 1 of 2 episodes have NaN in 'reward'") as seen:
        result = tl.return_to_go(ds)
    np.testing.assert_array_equal(result, [[np.nan, np.nan, 2], [5, 3, np.nan]])
    assert seen[0].filename == __file__


def test_infinities():
    with pytest.warns(UserWarning, match="1 of 3 episodes have both inf and -inf in 'reward'"):
        result = tl.return_to_go(rewards([np.inf, -np.inf, 1], [1, np.inf, 0], [1, 2]))
    expected = [[np.nan, -np.inf, 1], [np.inf, np.inf, 0], [3, 2, np.nan]]
    np.testing.assert_array_equal(result, expected)
    result = tl.return_to_go(rewards([1, np.inf, 0]), discount=0)
    np.testing.assert_array_equal(result, [[1, np.inf, 0]])


def test_narrow_integers_and_bools_are_summed_wide():
    assert tl.return_to_go(rewards([200, 100], dtype=np.uint8)).values.tolist() == [[300, 100]]
    assert tl.return_to_go(rewards([True, True], dtype=bool)).values.tolist() == [[2, 1]]


# Edges --------------------------------------------------------------------------------------------------------


def test_components_are_kept():
    ds = tl.from_episodes(
        [{"reward": np.array([[1.0, 10.0], [2.0, 20.0]])}],
        dims={"reward": ["goal"]},
        coords={"goal": ["speed", "energy"]},
        units={"reward": ["m", "J"]},
    )
    result = tl.return_to_go(ds)
    assert result.dims == ("episode", "time", "goal")
    assert result.sel(goal="energy").values.tolist() == [[30, 20]]
    assert result["goal_units"].values.tolist() == ["m", "J"]


def test_no_episode(blank):
    assert tl.return_to_go(make_dataset([])).sizes["episode"] == 0
    assert tl.return_to_go(blank).shape == (0, 0)


def test_what_is_refused():
    ds = make_dataset([3, 2])
    with pytest.raises(ValueError, match="return_to_go: whole episodes are needed"):
        tl.return_to_go(ds.isel(time=slice(1, None)))
    with pytest.raises(ValueError, match=r"discount=1.5; expected a number from 0 to 1"):
        tl.return_to_go(ds, discount=1.5)
    with pytest.raises(TypeError, match="return_to_go: 'reward' has dtype <U1"):
        tl.return_to_go(tl.from_episodes([{"reward": np.array(["a"])}]))
    with pytest.raises(KeyError, match="Did you mean 'reward'"):
        tl.return_to_go(ds, reward="rewrad")
