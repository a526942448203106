"""Entropy over windows of steps, and within episodes: visible values, a plain loop, what does not change them."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, actions, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl


def bits_of(values):
    counts = np.unique(values, return_counts=True)[1]
    share = counts / counts.sum()
    return float((share * np.log2(1 / share)).sum())


# Windows -----------------------------------------------------------------------------------------------------


def test_a_window_pools_the_steps_around_each():
    ds = actions([0, 1, 0, 0], [0, 1, 2])
    result = tl.action_entropy(ds, window=3)
    want = [bits_of([0, 0, 1, 1]), bits_of([0, 0, 1, 1, 0, 2]), bits_of([1, 1, 0, 2, 0]), bits_of([0, 2, 0])]
    np.testing.assert_allclose(result["entropy"], want, rtol=1e-12)
    assert result["n"].values.tolist() == [4, 6, 5, 3]
    assert result["n"].attrs["long_name"] == "transitions within 3 steps"
    assert result.attrs["window"] == 3
    even = tl.action_entropy(ds, window=2)
    assert even["n"].values.tolist() == [2, 4, 4, 3]
    xr.testing.assert_identical(tl.action_entropy(ds, window=1), tl.action_entropy(ds))
    assert tl.action_entropy(ds, window=100)["n"].values.tolist() == [7] * 4


def test_a_constant_entropy_stays_constant():
    ds = actions(*[[0, 1, 2, 3] * 5] * 3 + [[1, 2, 3, 0] * 5] * 3)
    assert tl.action_entropy(ds)["entropy"].values.tolist() == [1] * 20
    wide = tl.action_entropy(ds, "action", window=4)["entropy"].values
    assert (wide[2:-1] == 2).all()
    constant = actions(*[[value] * 9 for value in (0, 0, 1, 2)])
    for window in (2, 3, 8):
        np.testing.assert_allclose(tl.action_entropy(constant, window=window)["entropy"], [1.5] * 9)


def test_a_window_reaches_over_labels_that_are_there_and_fills_no_step_of_none():
    ds = actions([0, 1, 2, 0, 1, 2, 0], [0, 0]).isel(time=[6, 0, 1, 5])
    result = tl.action_entropy(ds, window=3)
    assert result["time"].values.tolist() == [0, 1, 5, 6]
    assert result["n"].values.tolist() == [4, 4, 2, 2]
    by = tl.action_entropy(actions([0, 1, 0], [0], env=[0, 1]), window=3, by="env")
    assert np.isnan(by["entropy"]).values.tolist() == [[False] * 3, [False, True, True]]
    assert by["n"].values.tolist() == [[2, 3, 2], [1, 0, 0]]


@pytest.mark.parametrize("window", [2, 3, 5])
def test_windows_equal_a_loop(window):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    result = tl.action_entropy(ds, "pair", window=window, by="end_reason")
    for label in result["end_reason"].values:
        mine = ds.isel(episode=ds["end_reason"].values == label)
        for t in range(6):
            steps = [s for s in range(t - window // 2, t - window // 2 + window) if 0 <= s < 6]
            got = result.sel(end_reason=label, time=t)
            for component in range(2):
                there = mine["mask"].values[:, steps]
                rows = mine["pair"].values[:, steps, component][there]
                if mine["mask"].values[:, t].any():
                    assert got["n"] == len(rows)
                    np.testing.assert_allclose(got["entropy"][component], bits_of(rows), atol=1e-12)
                else:
                    assert np.isnan(got["entropy"][component])


# Within episodes ---------------------------------------------------------------------------------------------


def test_entropy_within_episodes():
    ds = actions([0, 1, 2, 3], [7], [5, 5, 5, 7], end_reason=["terminated", "cut", "terminated"])
    result = tl.action_entropy(ds, per="episode")
    assert result["entropy"].dims == ("episode",)
    assert result["entropy"].values.tolist() == [2, 0, bits_of([5, 5, 5, 7])]
    assert not np.signbit(result["entropy"].values).any()
    assert result["n"].values.tolist() == [4, 1, 4]
    assert result["n"].dtype == np.int64
    assert result["complete"].values.tolist() == [True, False, True]
    assert result["entropy"].attrs == {"long_name": "entropy of action", "units": "bits"}
    assert result.attrs["num_cut"] == 1


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (bool, [False, True]),
        (np.uint8, [255, 0]),
        (np.int64, [-(2**62), 2**62]),
        (np.uint64, [0, 1]),
        ("<U5", ["brake", "go"]),
    ],
)
def test_any_discrete_dtype(dtype, values):
    ds = actions(values, values[:1], dtype=dtype)
    assert tl.action_entropy(ds, per="episode")["entropy"].values.tolist() == [1, 0]


@given(lengths, st.integers(0, 9))
@examples(15)
def test_equals_a_loop(lengths, seed):
    ds = make_dataset(lengths, seed).load()
    result = tl.action_entropy(ds, "pair", per="episode")
    assert result["entropy"].dims == ("episode", "pair_dim_0")
    for e, length in enumerate(lengths):
        for component in range(2):
            want = bits_of(ds["pair"].values[e, :length, component])
            np.testing.assert_allclose(result["entropy"][e, component], want, atol=1e-12)
            assert result["n"][e, component] == length


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_dataset(form, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    other = in_form(ds, form, tmp_path)
    xr.testing.assert_equal(tl.action_entropy(other, window=3), tl.action_entropy(ds, window=3))
    want = tl.action_entropy(ds, per="episode")[["entropy", "n"]]
    got = tl.action_entropy(other, per="episode")[["entropy", "n"]].sortby("episode")
    xr.testing.assert_equal(got.reset_coords(drop=True), want.reset_coords(drop=True))


@pytest.mark.parametrize("table", [0, 2**21])
def test_where_batches_end_and_values_come_late(monkeypatch, table):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    want = tl.action_entropy(ds, per="episode")
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", 1)
    monkeypatch.setattr("trajlab.analysis.kernels.numbers.MAX_TABLE", table)
    monkeypatch.setattr("trajlab.analysis.kernels.numbers.TILE", 1)
    xr.testing.assert_identical(tl.action_entropy(ds, per="episode"), want)
    wide = ds.assign(action=ds["action"] * 1000)
    xr.testing.assert_equal(tl.action_entropy(wide, per="episode"), want)


def test_nan_counts_for_no_action_and_is_reported():
    ds = actions([1, 2, 2], [2], [1, 1])
    ds = ds.assign(action=ds["action"].where((ds["time"] != 0) | (ds["episode"] == 2)))
    with pytest.warns(UserWarning, match="2 values of 'action' are NaN") as seen:
        result = tl.action_entropy(ds, per="episode")
    assert seen[0].filename == __file__
    assert result.attrs["num_nan"] == 2
    assert result["n"].values.tolist() == [2, 0, 2]
    np.testing.assert_array_equal(result["entropy"], [0, np.nan, 0])


def test_agents_that_are_done_do_not_count():
    ends = np.array([[False], [True], [False]])
    two = {name: {"a": x, "b": x + 0} for name, x in {"obs": np.zeros((3, 1)), "reward": np.zeros((3, 1))}.items()}
    chunk = {**two, "action": {"a": np.array([[0], [1], [0]]), "b": np.array([[1], [0], [1]])}}
    chunk["done"] = {"a": np.array([[True], [True], [False]]), "b": ends, "__all__": ends}
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    result = tl.action_entropy(ds, per="episode")
    assert result["entropy"].dims == ("episode", "agent")
    assert result["entropy"].values.tolist() == [[0, 1], [0, 0]]
    assert result["n"].values.tolist() == [[1, 2], [1, 1]]
    wide = tl.action_entropy(ds, window=3)
    assert wide["n"].values.tolist() == [[2, 3], [0, 3]]


def test_of_no_episode(blank):
    result = tl.action_entropy(blank, per="episode")
    assert result["entropy"].dims == ("episode",)
    assert result["n"].size == 0
    assert tl.action_entropy(blank, window=5)["n"].size == 0
    pooled = tl.action_entropy(actions([0, 1], [0]).isel(episode=slice(0, 0)), window=3)
    assert np.isnan(pooled["entropy"].values).all()
    assert pooled["n"].values.tolist() == [0, 0]


def test_what_is_refused():
    ds = actions([0, 1])
    with pytest.raises(ValueError, match="per='run'; expected one of 'step', 'episode'"):
        tl.action_entropy(ds, per="run")
    with pytest.raises(ValueError, match="window=0; expected at least 1"):
        tl.action_entropy(ds, window=0)
    with pytest.raises(TypeError, match="window=1.5; expected a whole number"):
        tl.action_entropy(ds, window=1.5)
    with pytest.raises(ValueError, match="window=3 takes steps together, and per='episode' has none"):
        tl.action_entropy(ds, per="episode", window=3)
    with pytest.raises(ValueError, match=r"by='env' does not go with per='episode'.*groupby\('env'\).mean\(\)"):
        tl.action_entropy(ds, per="episode", by="env")
    with pytest.raises(ValueError, match="'action' has the dim 'n'.*ds.rename"):
        tl.action_entropy(actions([[0, 1]], dims={"action": ["n"]}), per="episode")
