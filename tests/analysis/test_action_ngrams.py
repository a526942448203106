"""The most frequent sequences of actions: visible counts, a plain loop, and what does not change them."""

import collections

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, actions, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis import action_ngrams as module
from trajlab.analysis.kernels import numbers
from trajlab.dataset import ordered


def counted(table):
    return dict(zip(table["ngram"], table["count"], strict=True))


def naive(ds, n, field="action", component=(), member=lambda e, t: True):
    """Return {n-gram: count} by a loop over steps whose labels are neighbours."""
    values, labels, out = ds[field].values, ds["time"].values.tolist(), collections.Counter()
    for e, length in enumerate(ds["length"].values):
        for t in labels:
            steps = range(t, t + n)
            if all(step in labels and step < length for step in steps) and member(e, labels.index(t)):
                out[tuple(values[(e, labels.index(step), *component)].item() for step in steps)] += 1
    return dict(out)


def assert_equals_loop(ds, n, field="action", component=(), table=None, **options):
    table = tl.action_ngrams(ds, field, n=n, top=None) if table is None else table
    want = naive(ds, n, field, component, **options)
    assert counted(table) == want
    keys = [(-count, ngram) for ngram, count in zip(table["ngram"], table["count"], strict=True)]
    assert keys == sorted(keys)
    np.testing.assert_allclose(table["share"], table["count"] / max(sum(want.values()), 1))


def test_the_most_frequent_first_and_ties_by_value():
    table = tl.action_ngrams(actions([1, 0, 1, 0], [1, 1], [0]))
    assert table["ngram"].tolist() == [(1, 0), (0, 1), (1, 1)]
    assert table["count"].tolist() == [2, 1, 1]
    assert table["share"].tolist() == [0.5, 0.25, 0.25]
    assert table.columns.tolist() == ["n", "ngram", "count", "share"]
    assert table.dtypes.tolist() == [np.int64, object, np.int64, np.float64]
    assert table.attrs["made_by"] == "trajlab.action_ngrams"
    assert (table.attrs["num_episodes"], table.attrs["num_transitions"], table.attrs["num_nan"]) == (3, 7, 0)


def test_top_and_several_lengths():
    ds = actions([0, 1, 0, 1, 2])
    table = tl.action_ngrams(ds, n=[3, 1], top=2)
    assert table["n"].tolist() == [3, 3, 1, 1]
    assert table["ngram"].tolist() == [(0, 1, 0), (0, 1, 2), (0,), (1,)]
    assert table["share"].tolist() == [1 / 3, 1 / 3, 0.4, 0.4]
    assert len(tl.action_ngrams(ds, n=1, top=None)) == 3


def test_no_ngram_crosses_the_edge_of_an_episode():
    assert counted(tl.action_ngrams(actions([0], [1, 2], [3, 3, 3]), n=2)) == {(1, 2): 1, (3, 3): 2}
    assert counted(tl.action_ngrams(actions([0], [1, 2], [3, 3, 3]), n=3)) == {(3, 3, 3): 1}
    assert len(tl.action_ngrams(actions([0], [1, 2]), n=10**12)) == 0


def test_labels():
    table = tl.action_ngrams(actions([2, 0, 2]), labels=["left", "stay", "right"])
    assert table["label"].tolist() == [("left", "right"), ("right", "left")]
    with pytest.raises(ValueError, match="labels= names 2 actions, 0 to 1, but 'action' also has the value 2"):
        tl.action_ngrams(actions([2, 0]), labels=["left", "stay"])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (bool, [False, True]),
        (bool, [True, True]),
        (np.uint8, [255, 0]),
        (np.int8, [-128, 127]),
        (np.int64, [-(2**62), 2**62]),
        (np.uint64, [2**64 - 1, 0]),
        (np.uint64, [0, 1]),
        (np.uint64, [2**64 - 2, 2**64 - 1]),
        ("<U5", ["brake", "go"]),
    ],
)
def test_any_discrete_dtype(dtype, values):
    one, other = values
    table = tl.action_ngrams(actions([one, other, other], [other], dtype=dtype))
    want = collections.Counter([(one, other), (other, other)])
    assert counted(table) == want
    assert {type(value) for ngram in table["ngram"] for value in ngram} == {type(one)}


def test_components_and_groups_have_columns():
    ds = actions(
        [[0, 2], [1, 2]], [[1, 0], [1, 0]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]}, env=[3, 1]
    )
    table = tl.action_ngrams(ds, by="env")
    assert table.columns.tolist() == ["env", "joint", "n", "ngram", "count", "share"]
    assert table[["env", "joint", "ngram"]].values.tolist() == [
        [1, "hip", (1, 1)],
        [1, "knee", (0, 0)],
        [3, "hip", (0, 1)],
        [3, "knee", (2, 2)],
    ]
    assert table["share"].tolist() == [1] * 4
    assert tl.action_ngrams(actions([[0, 2], [1, 2]]))["action_dim_0"].tolist() == [0, 1]


# A plain loop ------------------------------------------------------------------------------------------------


@given(lengths, st.integers(0, 9), st.integers(1, 5))
@examples(20)
def test_equals_a_loop(lengths, seed, n):
    ds = make_dataset(lengths, seed).load()
    assert_equals_loop(ds, n)
    pair = tl.action_ngrams(ds, "pair", n=n, top=None)
    for component in range(2):
        assert_equals_loop(ds, n, "pair", (component,), pair[pair["pair_dim_0"] == component])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["action", "flag", "pair"])
def test_every_form_of_a_dataset(form, field, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    want = tl.action_ngrams(ds, field, n=[2, 3], by="end_reason")
    got = tl.action_ngrams(in_form(ds, form, tmp_path), field, n=[2, 3], by="end_reason")
    pd.testing.assert_frame_equal(got, want)
    assert got.attrs == want.attrs


@pytest.mark.parametrize(
    "times", [slice(2, None), slice(None, None, 2), [0, 1, 2, 4, 5], [4, 1, 0, 5], [3], slice(0, 0)]
)
def test_only_neighbouring_steps_of_a_slice_are_consecutive(times):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).isel(time=times)
    for n in (1, 2, 3):
        assert_equals_loop(ds.load(), n)


@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("form", ["lazy", "loaded", "dask"])
def test_where_batches_end_changes_nothing(monkeypatch, form, cells):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    wants = [tl.action_ngrams(ds, n=[1, 3, 5], by=by) for by in (None, "end_reason", "flag")]
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    monkeypatch.setattr("trajlab.dataset.flat.MAX_BYTES", cells * 4)
    monkeypatch.setattr(ordered, "MAX_CELLS", cells)
    monkeypatch.setattr(ordered, "MAX_HELD", 6)
    monkeypatch.setattr(numbers, "TILE", 1)
    for by, want in zip((None, "end_reason", "flag"), wants, strict=True):
        pd.testing.assert_frame_equal(tl.action_ngrams(in_form(ds, form), n=[1, 3, 5], by=by), want)


@pytest.mark.parametrize("table", [0, 2**21])
@pytest.mark.parametrize("limit", [40, 2**62])
def test_any_length_and_number_of_values(monkeypatch, table, limit):
    monkeypatch.setattr(module, "LIMIT", limit)
    monkeypatch.setattr(numbers, "MAX_TABLE", table)
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", 7)
    ds = make_dataset([4, 1, 11, 2, 9, 3]).load()
    for n in (2, 3, 5, 7, 10, 11):
        assert_equals_loop(ds, n)


def test_long_ngrams_of_many_values():
    rows = np.random.default_rng(0).integers(0, 1000, 300)
    table = tl.action_ngrams(actions(rows, rows[:60]), n=50, top=None)
    assert len(table) == 251
    assert table["count"].value_counts().to_dict() == {1: 240, 2: 11}
    assert table["ngram"][0] in {tuple(rows[i : i + 50].tolist()) for i in range(11)}


def test_values_that_come_late(monkeypatch):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", 2)
    assert counted(tl.action_ngrams(actions([5, 5, 9], [7, 70_000], [2, 7]).load())) == {
        (2, 7): 1,
        (5, 5): 1,
        (5, 9): 1,
        (7, 70_000): 1,
    }


@pytest.mark.parametrize(("first", "late"), [((0, 4), 2), ((0, 100_000), 2), (("a", "c"), "b")])
def test_values_that_come_late_between_others(monkeypatch, first, late):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", 2)
    ds = tl.from_episodes([{"action": np.array(rows)} for rows in (first, (late, first[0]), (late, late))]).load()
    assert counted(tl.action_ngrams(ds)) == {first: 1, (late, first[0]): 1, (late, late): 1}


def test_the_first_action_decides_the_group():
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    table = tl.action_ngrams(ds, n=3, by="flag", top=None)
    for label in (False, True):
        part = table[table["flag"] == label]
        assert_equals_loop(ds, 3, table=part, member=lambda e, t, label=label: ds["flag"].values[e, t] == label)


def test_episodes_in_no_group_are_left_out():
    table = tl.action_ngrams(actions([0, 1], [7, 7], [1, 0], env=[0, 1, 2]), by="env", groups={"some": [0, 2]})
    assert table[["env", "ngram"]].values.tolist() == [["some", (0, 1)], ["some", (1, 0)]]


# What is missing, and what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [2, 2**17])
def test_nan_is_in_no_ngram_and_reported(monkeypatch, cells):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    ds = actions([1, 2, 2, 1, 1], [2, 2])
    ds = ds.assign(action=ds["action"].where((ds["time"] != 1) | (ds["episode"] != 0))).load()
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        table = tl.action_ngrams(ds, n=[1, 2, 3])
    assert seen[0].filename == __file__
    assert table.attrs["num_nan"] == 1
    assert counted(table) == {(1,): 3, (2,): 3, (1, 1): 1, (2, 1): 1, (2, 2): 1, (2, 1, 1): 1}
    with pytest.warns(UserWarning, match="7 values"):
        assert not len(tl.action_ngrams(ds.assign(action=ds["action"].where(False))))


def test_agents_that_are_done_are_in_none():
    ends = np.array([[False], [True], [False], [False]])
    two = {name: {"a": x, "b": x + 0} for name, x in {"obs": np.zeros((4, 1)), "reward": np.zeros((4, 1))}.items()}
    chunk = {**two, "action": {"a": np.array([[0], [1], [0], [2]]), "b": np.array([[1], [0], [1], [1]])}}
    chunk["done"] = {"a": np.array([[True], [True], [False], [False]]), "b": ends, "__all__": ends}
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    table = tl.action_ngrams(ds)
    assert table[["agent", "ngram"]].values.tolist() == [["a", (0, 2)], ["b", (1, 0)], ["b", (1, 1)]]


@pytest.mark.parametrize("by", [None, "seed"])
def test_of_no_episode(blank, by):
    table = tl.action_ngrams(blank, by=by, labels=["left"])
    assert table.columns.tolist() == [*([by] if by else []), "n", "ngram", "label", "count", "share"]
    assert len(table) == 0
    assert table["count"].dtype == np.int64


def test_what_is_refused():
    ds = actions([0, 1])
    for n in (0, [2, -1], []):
        with pytest.raises(ValueError, match=r"n=.*expected"):
            tl.action_ngrams(ds, n=n)
    for n in (2.0, True, "2", [None]):
        with pytest.raises(TypeError, match="expected a whole number, at least 1"):
            tl.action_ngrams(ds, n=n)
    with pytest.raises(ValueError, match="top=0; expected at least 1"):
        tl.action_ngrams(ds, top=0)
    with pytest.raises(ValueError, match=r"action_ngrams: 'action' is continuous \(float64\)"):
        tl.action_ngrams(actions([0.5], dtype=np.float64))
    with pytest.raises(ValueError, match="'action' has 2,000 distinct values or more; expected at most 1,024"):
        tl.action_ngrams(actions(np.arange(2000)))
    with pytest.raises(ValueError, match="'action' has the dim 'ngram'.*ds.rename"):
        tl.action_ngrams(actions([[0, 1]], dims={"action": ["ngram"]}))
