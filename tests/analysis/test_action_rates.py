"""Which actions are taken at each step, and their entropy: visible counts, a plain loop, what does not change them."""

import tracemalloc
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, actions, in_form, lengths, make_dataset, rows_at
from strategies import examples

import trajlab as tl

BOTH = (tl.action_rates, tl.action_entropy)


def test_shares_of_the_episodes_that_are_alive():
    result = tl.action_rates(actions([0, 2, 2], [0], [1, 0], end_reason=["terminated", "terminated", "cut"]))
    assert result["count"].dims == ("time", "value")
    assert result["count"].values.tolist() == [[2, 1, 0], [1, 0, 1], [0, 0, 1]]
    assert result["count"].dtype == np.int64
    np.testing.assert_allclose(result["share"].values, [[2 / 3, 1 / 3, 0], [0.5, 0, 0.5], [0, 0, 1]])
    assert result["n"].values.tolist() == [3, 2, 1]
    assert result["n"].attrs["long_name"] == "episodes alive"


def test_entropy_in_bits():
    ds = actions([0, 2, 2, 5], [1, 2, 1], [2, 2], [3, 0])
    result = tl.action_entropy(ds)
    np.testing.assert_allclose(result["entropy"].values, [2, -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)), 1, 0])
    assert result["entropy"].attrs["units"] == "bits"
    assert result["n"].values.tolist() == [4, 4, 2, 1]
    assert not np.signbit(result["entropy"].values).any()


def test_labels_name_values():
    result = tl.action_rates(actions([2, 0]), labels=["left", "stay", "right"])
    assert result["label"].values.tolist() == ["left", "stay", "right"]
    assert result["count"].values.tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(bool, [False, True]), (np.uint8, [0, 255]), (np.int64, [-(2**62), 2**62]), ("<U5", ["brake", "go"])],
)
def test_any_discrete_dtype(dtype, values):
    one, other = values
    ds = actions([one, other], [other], dtype=dtype)
    rates = tl.action_rates(ds)
    counts = dict(zip(rates["value"].values.tolist(), rates["count"].values.T.tolist(), strict=True))
    assert {value: count for value, count in counts.items() if any(count)} == {one: [1, 0], other: [1, 1]}
    assert tl.action_entropy(ds)["entropy"].values.tolist() == [1, 0]


def test_components_are_counted_by_themselves():
    ds = actions([[0, 2], [1, 2]], [[1, 2]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    result = tl.action_rates(ds)
    assert result["count"].dims == ("time", "joint", "value")
    assert result["count"].sel(joint="hip").values.tolist() == [[1, 1, 0], [0, 1, 0]]
    assert result["count"].sel(joint="knee").values.tolist() == [[0, 0, 2], [0, 0, 1]]
    entropy = tl.action_entropy(ds)["entropy"]
    assert entropy.dims == ("time", "joint")
    assert entropy.values.tolist() == [[1, 0], [0, 0]]


# A plain loop ------------------------------------------------------------------------------------------------


def assert_equals_loop(ds, field="action"):
    rates, entropy = tl.action_rates(ds, field), tl.action_entropy(ds, field)
    for step in ds["time"].values:
        rows = rows_at(ds, field, step)
        values, counts = np.unique(rows, return_counts=True)
        got = rates.sel(time=step)
        assert got["count"].sel(value=values.astype(np.int64)).values.tolist() == counts.tolist()
        assert got["count"].sum() == got["n"] == entropy["n"].sel(time=step) == len(rows)
        bits = entropy["entropy"].sel(time=step)
        if not len(rows):
            assert np.isnan(bits)
            assert np.isnan(got["share"]).all()
            continue
        share = counts / len(rows)
        np.testing.assert_allclose(bits, (share * np.log2(1 / share)).sum(), atol=1e-12)
        np.testing.assert_allclose(got["share"].sel(value=values.astype(np.int64)), share)


@given(lengths, st.integers(0, 9))
@examples(60)
def test_equals_a_loop(lengths, seed):
    assert_equals_loop(make_dataset(lengths, seed))


@pytest.mark.parametrize("times", [slice(2, None), slice(None, None, 2), [4, 1, 0, 5], [3]])
def test_slices_of_time(times):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).isel(time=times)
    assert_equals_loop(ds)
    assert tl.action_rates(ds)["time"].values.tolist() == sorted(ds["time"].values)


@pytest.mark.parametrize("analysis", BOTH)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["action", "flag", "byte", "pair"])
def test_every_form_of_a_dataset(analysis, form, field, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    want = analysis(ds, field, by="end_reason")
    xr.testing.assert_equal(analysis(in_form(ds, form, tmp_path), field, by="end_reason"), want)


@pytest.mark.parametrize("by", ["end_reason", "flag"])
def test_groups(by):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    rates, entropy = tl.action_rates(ds, by=by), tl.action_entropy(ds, by=by)
    assert rates["share"].dims == (by, "time", "value")
    assert entropy["entropy"].dims == (by, "time")
    alive = ds["mask"].values
    for label in rates[by].values:
        member = (ds[by] == label).broadcast_like(ds["mask"]).values & alive
        for t in range(ds.sizes["time"]):
            rows = ds["action"].values[member[:, t], t]
            got = rates.sel({by: label}).isel(time=t)
            assert got["n"] == len(rows)
            assert got["count"].values.tolist() == [int((rows == value).sum()) for value in rates["value"].values]
    assert np.isnan(entropy["entropy"]).values.tolist() == (entropy["n"] == 0).values.tolist()
    assert rates["n"].attrs["long_name"] == ("episodes alive" if by == "end_reason" else "transitions")


def test_many_groups_and_far_values_need_no_table_of_all_between():
    rng = np.random.default_rng(0)
    chunk = {
        "action": rng.choice([0, 60_000], (50, 400)),
        "done": rng.random((50, 400)) < 0.02,
        "obs": np.zeros((50, 400)),
    }
    ds = tl.from_rollout(chunk)
    tracemalloc.start()
    try:
        result = tl.action_rates(ds, by="env", groups=100)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert result["value"].values.tolist() == [0, 60_000]
    assert result["count"].sum() == 50 * 400
    assert (result["count"].sum("value") == result["n"]).all()


@pytest.mark.parametrize("cells", [1, 2, 3, 5])
@pytest.mark.parametrize("load", [False, True])
def test_where_batches_end_changes_nothing(monkeypatch, load, cells):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    ds = ds.assign(action=ds["action"].where(ds["time"] != 1)) if load else ds
    wants = []
    for size in (2**17, cells):
        monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", size)
        monkeypatch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wants.append([analysis(ds.load() if load else ds, by="env") for analysis in BOTH])
    for one, other in zip(*wants, strict=True):
        xr.testing.assert_identical(one, other)
    assert one.attrs["num_nan"] == (5 if load else 0)


# What is missing, and what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("analysis", BOTH)
def test_nan_counts_for_no_action_and_is_reported(analysis):
    ds = actions([1, 2], [2, 2], [1, 1])
    ds = ds.assign(action=ds["action"].where((ds["time"] != 1) | (ds["episode"] != 0)))
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        result = analysis(ds)
    assert seen[0].filename == __file__
    assert result.attrs["num_nan"] == 1
    assert result["n"].values.tolist() == [3, 3]
    if "share" in result:
        assert result["share"].values[1].tolist() == [0.5, 0.5]
    else:
        assert result["entropy"].values[1] == 1


@pytest.mark.parametrize("analysis", BOTH)
@pytest.mark.parametrize("by", [None, "seed"])
def test_of_no_episode(blank, analysis, by):
    result = analysis(blank, by=by)
    assert result["n"].size == 0
    assert result["n"].dims == (*([by] if by else []), "time")


@pytest.mark.parametrize("analysis", BOTH)
def test_what_is_refused(analysis):
    with pytest.raises(ValueError, match=rf"{analysis.__name__}: 'action' is continuous \(float64\)"):
        analysis(actions([0.5], dtype=np.float64))
    with pytest.raises(ValueError, match="'action' has 2,000 distinct values or more; expected at most 1,024"):
        analysis(actions(np.arange(2000)))
    with pytest.raises(ValueError, match="'action' has the dim 'entropy'.*ds.rename"):
        analysis(actions([[0, 1]], dims={"action": ["entropy"]}))
    with pytest.raises(KeyError, match="no field called 'acton'|acton"):
        analysis(actions([0]), "acton")
