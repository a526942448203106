"""How often one action follows another: visible counts, a plain loop, and what does not change them."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.dataset import ordered


def actions(*episodes, dtype=np.int32, **options):
    return tl.from_episodes([{"action": np.array(e, dtype)} for e in episodes], **options)


def pairs(ds, field="action", **options):
    """Return {(value, next value): count} of one component, those that occur."""
    count = tl.action_transitions(ds, field, **options)["count"].stack(pair=["value", "next_value"])
    return {pair: int(n) for pair, n in zip(count["pair"].values.tolist(), count.values, strict=True) if n}


def naive(ds, field="action", component=(), member=lambda e, t: True):
    """Return {(value, next value): count} by a loop over steps whose labels are neighbours."""
    values, labels, out = ds[field].values, ds["time"].values.tolist(), {}
    for e, length in enumerate(ds["length"].values):
        for t in labels:
            if t + 1 in labels and t + 1 < length and member(e, labels.index(t)):
                first, second = (values[(e, labels.index(step), *component)].item() for step in (t, t + 1))
                out[first, second] = out.get((first, second), 0) + 1
    return out


def test_counts_shares_and_probabilities():
    result = tl.action_transitions(actions([0, 0, 1, 0], [1, 1], [3], end_reason=["terminated", "cut", "cut"]))
    assert result["count"].dims == ("value", "next_value")
    assert result["value"].values.tolist() == result["next_value"].values.tolist() == [0, 1, 2, 3]
    assert result["count"].values.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]
    assert result["count"].dtype == np.int64
    assert result["share"].values[0].tolist() == [0.25, 0.25, 0, 0]
    assert result["probability"].values[1].tolist() == [0.5, 0.5, 0, 0]
    assert np.isnan(result["probability"].values[2:]).all()
    assert result.attrs["num_transitions"] == 7


def test_rows_are_what_comes_first():
    assert pairs(actions([0, 1], [2, 0])) == {(0, 1): 1, (2, 0): 1}


def test_no_pair_crosses_the_edge_of_an_episode():
    assert pairs(actions([0], [1], [2, 2], [0])) == {(2, 2): 1}


def test_labels_name_both_sides():
    result = tl.action_transitions(actions([2, 0]), labels=["left", "stay", "right"])
    assert result["label"].values.tolist() == result["next_label"].values.tolist() == ["left", "stay", "right"]
    assert result["count"].values.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    with pytest.raises(ValueError, match="labels= names 2 actions, 0 to 1, but 'action' also has the value 2"):
        tl.action_transitions(actions([2, 0]), labels=["left", "stay"])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (bool, [False, True]),
        (np.uint8, [255, 0]),
        (np.int64, [-(2**62), 2**62]),
        (np.uint64, [2**64 - 1, 0]),
        ("<U5", ["brake", "go"]),
    ],
)
def test_any_discrete_dtype(dtype, values):
    one, other = values
    assert pairs(actions([one, other, other], [other], dtype=dtype)) == {(one, other): 1, (other, other): 1}


def test_components_are_counted_by_themselves():
    ds = actions([[0, 2], [1, 2]], [[1, 0]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    result = tl.action_transitions(ds)
    assert result["count"].dims == ("joint", "value", "next_value")
    assert result["count"].sel(joint="hip").values.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert result["count"].sel(joint="knee").values.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert result["share"].sum(["value", "next_value"]).values.tolist() == [1, 1]


# A plain loop ------------------------------------------------------------------------------------------------


@given(lengths, st.integers(0, 9))
@examples(60)
def test_equals_a_loop(lengths, seed):
    ds = make_dataset(lengths, seed)
    assert pairs(ds) == naive(ds.load())
    pair = tl.action_transitions(ds, "pair")["count"]
    for component in range(2):
        want = naive(ds, "pair", (component,))
        for (first, second), number in want.items():
            got = pair.isel(pair_dim_0=component).sel(value=first, next_value=second)
            assert got == number
    assert pair.sum() == 2 * sum(max(n - 1, 0) for n in lengths)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["action", "flag", "byte", "pair"])
def test_every_form_of_a_dataset(form, field, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    want = tl.action_transitions(ds, field, by="end_reason")
    got = tl.action_transitions(in_form(ds, form, tmp_path), field, by="end_reason")
    xr.testing.assert_equal(got, want)


@pytest.mark.parametrize(
    "times", [slice(2, None), slice(0, 3), slice(None, None, 2), [0, 1, 3, 4], [4, 1, 0, 5], [3], slice(0, 0)]
)
@pytest.mark.parametrize("load", [False, True])
def test_only_neighbouring_steps_of_a_slice_are_pairs(times, load):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).isel(time=times)
    assert pairs(ds.load() if load else ds) == naive(ds)


@pytest.mark.parametrize("cells", [1, 2, 3, 5])
@pytest.mark.parametrize("held", [1, 6, 100])
@pytest.mark.parametrize("form", ["lazy", "loaded", "dask"])
def test_where_batches_end_changes_nothing(monkeypatch, form, held, cells):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    want = [tl.action_transitions(ds, by=by) for by in (None, "end_reason", "flag")]
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    monkeypatch.setattr("trajlab.dataset.flat.MAX_BYTES", cells * 4)
    monkeypatch.setattr(ordered, "MAX_CELLS", cells)
    monkeypatch.setattr(ordered, "MAX_HELD", held)
    monkeypatch.setattr("trajlab.analysis.kernels.pairs.TILE", cells)
    for by, one in zip((None, "end_reason", "flag"), want, strict=True):
        xr.testing.assert_identical(tl.action_transitions(in_form(ds, form), by=by), one)
    sliced = ds.isel(time=[0, 1, 3, 4])
    assert pairs(in_form(sliced, form)) == naive(sliced.load())


def test_values_that_come_late_have_rows_from_the_start(monkeypatch):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", 2)
    ds = actions([5, 5, 900], [0, 70_000], [70_000, 0])
    assert pairs(ds.load()) == {(5, 5): 1, (5, 900): 1, (0, 70_000): 1, (70_000, 0): 1}


# Groups ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["env", "end_reason"])
def test_groups_of_episodes(by):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    result = tl.action_transitions(ds, by=by)
    assert result["count"].dims == (by, "value", "next_value")
    for label in result[by].values:
        member = ds[by].values == label
        want = naive(ds, member=lambda e, t, member=member: member[e])
        got = result["count"].sel({by: label})
        assert {(a, b): int(got.sel(value=a, next_value=b)) for a, b in want} == want
        assert got.sum() == sum(want.values())


def test_the_first_of_a_pair_decides_its_group():
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    result = tl.action_transitions(ds, by="flag")
    for label in (False, True):
        want = naive(ds, member=lambda e, t, label=label: ds["flag"].values[e, t] == label)
        got = result["count"].sel(flag=label)
        assert {(a, b): int(got.sel(value=a, next_value=b)) for a, b in want} == want
        assert got.sum() == sum(want.values())


def test_the_second_of_a_pair_may_be_in_no_group():
    ds = actions([0, 0, 1], [2])
    result = tl.action_transitions(ds, by="time", groups={"early": [0, 1]})
    assert result["value"].values.tolist() == [0, 1, 2]
    assert result["count"].values.tolist() == [[[1, 1, 0], [0, 0, 0], [0, 0, 0]]]


def test_episodes_in_no_group_are_left_out():
    ds = actions([0, 1], [7, 7], [1, 0], env=[0, 1, 2])
    result = tl.action_transitions(ds, by="env", groups={"some": [0, 2]})
    assert result["count"].values.tolist() == [[[0, 1], [1, 0]]]


# What is missing ---------------------------------------------------------------------------------------------


def test_nan_is_in_no_pair_and_reported():
    ds = actions([1, 2, 2, 1], [2, 2])
    ds = ds.assign(action=ds["action"].where((ds["time"] != 1) | (ds["episode"] != 0)))
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        result = tl.action_transitions(ds)
    assert seen[0].filename == __file__
    assert result["count"].values.tolist() == [[0, 0], [1, 1]]
    assert result.attrs["num_nan"] == 1


def test_one_nan_is_counted_once_wherever_batches_end(monkeypatch):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", 2)
    ds = actions([1, 2, 2, 1, 2])
    for step in range(5):
        changed = ds.assign(action=ds["action"].where(ds["time"] != step)).load()
        with pytest.warns(UserWarning, match="1 values"):
            result = tl.action_transitions(changed)
        assert result.attrs["num_nan"] == 1
        assert result["count"].sum() == (3 if step in (0, 4) else 2)


@pytest.mark.parametrize("by", [None, "seed"])
def test_of_no_episode(blank, by):
    result = tl.action_transitions(blank, by=by)
    assert result["count"].size == 0
    assert result["count"].dims == (*([by] if by else []), "value", "next_value")


def test_of_no_pair():
    result = tl.action_transitions(actions([1], [0]))
    assert result["count"].values.tolist() == [[0, 0], [0, 0]]
    assert np.isnan(result["share"]).all()


# What is refused ---------------------------------------------------------------------------------------------


def test_continuous_actions_are_refused():
    with pytest.raises(ValueError, match=r"action_transitions: 'action' is continuous \(float64\); expected integers"):
        tl.action_transitions(actions([0.5, 1.5], dtype=np.float64))


@pytest.mark.parametrize("dtype", [np.int64, "<U8"])
@pytest.mark.parametrize("cells", [200, 2**17])
def test_too_many_values_are_refused(monkeypatch, dtype, cells):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    ds = actions(np.arange(1025) * 1000, dtype=dtype).load()
    with pytest.raises(ValueError, match="'action' has 1,025 distinct values or more; expected at most 1,024"):
        tl.action_transitions(ds)
    assert tl.action_transitions(ds.isel(time=slice(1, None)))["count"].sum() == 1023


def test_a_dim_of_a_name_that_the_result_has():
    ds = actions([[0, 1], [1, 0]], dims={"action": ["next_value"]})
    with pytest.raises(ValueError, match="'action' has the dim 'next_value'.*ds.rename"):
        tl.action_transitions(ds)
    with pytest.raises(ValueError, match="by='probability' is a name that the result uses itself"):
        tl.action_transitions(actions([0]).assign_coords(probability=("episode", [1])), by="probability")


def test_cells_of_no_episode_bring_no_value():
    rec = tl.Recorder()
    rec.record(
        {"action": np.array([[1, 0], [1, 2], [1, 2], [1, 2]]), "done": np.array([[False, True], *[[False] * 2] * 3])}
    )
    ds = tl.concat([rec.to_dataset().isel(episode=[0, 1])] * 2)  # not what came behind the short one
    result = tl.action_transitions(ds, by="phase")
    assert result["value"].values.tolist() == [0]
    xr.testing.assert_identical(result, tl.action_transitions(ds.load(), by="phase"))
