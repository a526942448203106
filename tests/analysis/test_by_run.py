"""Statistics by run: for each run what its own recording gives."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FIELDS, flat, lengths, make_dataset, rows_at
from strategies import examples

import trajlab as tl
from trajlab.analysis.grouping.groups import make_groups


@st.composite
def runs(draw):
    """Draw the lengths of the episodes of several runs, some of them empty, and their labels."""
    drawn = draw(st.lists(lengths, min_size=1, max_size=12).filter(any))
    labels = {
        "numbers": list(range(len(drawn))),
        "rates": [10.0 ** -draw(st.integers(0, 3)) * (i + 1) for i in range(len(drawn))],
        "texts": draw(st.permutations([f"run {i}" for i in range(len(drawn))])),
        "shared": [i // 2 for i in range(len(drawn))],
    }[draw(st.sampled_from(["numbers", "rates", "texts", "shared"]))]
    return drawn, labels


def put_together(drawn, labels):
    """Return the whole, and the loaded episodes of each label that has some, in the order of the labels."""
    parts = [make_dataset(own, seed) for seed, own in enumerate(drawn)]
    whole = tl.concat(parts, run=labels)
    alone = {}
    for label, part in zip(labels, parts, strict=True):
        if part.sizes["episode"]:
            alone.setdefault(label, []).append(part.load())
    return whole, alone


def frequencies(values):
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


@given(runs())
@examples(40)
def test_histogram_is_that_of_each_run(drawn):
    whole, alone = put_together(*drawn)
    for field in ("action", "flag", "byte"):
        result = tl.action_histogram(whole, field, by="run")
        assert set(result["run"].values.tolist()) == set(alone)
        for label, parts in alone.items():
            counts = result["count"].sel(run=label)
            seen = {
                value: n for value, n in zip(counts["value"].values.tolist(), counts.values.tolist(), strict=True) if n
            }
            assert seen == frequencies(np.concatenate([flat(part, field) for part in parts]))
            assert float(result["share"].sel(run=label).sum()) == pytest.approx(1)


@given(runs())
@examples(20)
def test_bins_are_those_of_each_run(drawn):
    whole, alone = put_together(*drawn)
    edges = np.array([-1.5, -1, 0, 0.7, 2])
    result = tl.action_histogram(whole, "reward", by="run", bins=edges)
    for label, parts in alone.items():
        values = np.concatenate([flat(part, "reward") for part in parts])
        assert result["count"].sel(run=label).values.tolist() == np.histogram(values, edges)[0].tolist()


@given(runs(), st.sampled_from(["obs", "reward", "flag"]))
@examples(30)
def test_trace_is_that_of_each_run(drawn, field):
    whole, alone = put_together(*drawn)
    result = tl.state_trace(whole, field, by="run", quantiles=(0.25, 0.5))
    for label, parts in alone.items():
        one = result.sel(run=label)
        for time in whole["time"].values.tolist():
            rows = [rows_at(part, field, time) for part in parts if time < part.sizes["time"]]
            rows = np.concatenate(rows) if rows else np.zeros((0, *whole[field].shape[2:]))
            here = one.sel(time=time)
            assert here["n"].item() == len(rows)
            if not len(rows):
                assert np.isnan(here["mean"]).all()
                continue
            np.testing.assert_allclose(here["mean"], rows.mean(axis=0), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(here["std"], rows.std(axis=0), rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(here["quantiles"], np.quantile(rows, [0.25, 0.5], axis=0), rtol=1e-9)


@given(runs(), st.sampled_from([1.0, 0.9]))
@examples(20)
def test_returns_and_tables_are_those_of_each_run(drawn, discount):
    whole, alone = put_together(*drawn)
    returns, table, rows = tl.returns(whole, discount=discount), tl.episode_table(whole), tl.to_dataframe(whole)
    for label, parts in alone.items():
        own = np.concatenate([tl.returns(part, discount=discount).values for part in parts])
        np.testing.assert_allclose(returns.values[returns["run"].values == label], own)
        mine = table[table["run"] == label]
        tables = pd.concat([tl.episode_table(part) for part in parts])
        pd.testing.assert_frame_equal(mine.drop(columns="run").reset_index(drop=True), tables.reset_index(drop=True))
        for field in FIELDS[:2]:
            values = np.concatenate([flat(part, field) for part in parts])
            assert rows.loc[rows["run"] == label, field].tolist() == values.tolist()


# Which groups ---------------------------------------------------------------------------------------------------


def twelve(labels=None):
    return tl.concat([make_dataset([1 + i % 3], i) for i in range(12)], run=labels)


@pytest.mark.parametrize(
    "labels",
    [None, [64 * i for i in range(12)], [10.0**-i for i in range(12)], [f"run {i}" for i in range(12)]],
    ids=["default", "numbers", "rates", "texts"],
)
def test_each_of_many_runs_is_a_group(labels):
    ds = twelve(labels)
    result = tl.action_histogram(ds, by="run")
    assert sorted(result["run"].values.tolist()) == sorted(range(12) if labels is None else labels)
    assert result["run"].attrs["groups"] == "each value of run"
    assert result["count"].sum("value").values.sum() == sum(1 + i % 3 for i in range(12))
    assert tl.state_trace(ds, "obs", by="run").sizes["run"] == 12


def test_texts_come_in_the_order_of_the_runs_and_numbers_ascend():
    names = ["sac", "ppo", "a run that is the baseline"]
    ds = tl.concat([make_dataset([2], i) for i in range(3)], run=names)
    assert make_groups(ds, "run").labels.tolist() == names
    assert make_groups(ds, "run").of_episode.tolist() == [0, 1, 2]
    assert tl.state_trace(ds, "reward", by="run")["run"].values.tolist() == names
    numbered = tl.concat([make_dataset([2], i) for i in range(3)], run=[7, 3, 5])
    assert make_groups(numbered, "run").labels.tolist() == [3, 5, 7]
    assert make_groups(numbered, "run").of_episode.tolist() == [2, 0, 1]


def test_a_list_names_runs():
    groups = make_groups(twelve(), "run", [7, 0])
    assert groups.labels.tolist() == [7, 0]
    assert np.flatnonzero(groups.of_episode >= 0).tolist() == [0, 7]
    assert groups.attrs["left_out"] == 10
    rates = [10.0**-i for i in range(12)]
    assert make_groups(twelve(rates), "run", np.array([0.01, 1.0])).labels.tolist() == [0.01, 1.0]
    assert make_groups(twelve(list("abcdefghijkl")), "run", ["l", "a"]).labels.tolist() == ["l", "a"]
    assert make_groups(twelve(), "run", [3, 3]).labels.tolist() == [3]
    with pytest.raises(KeyError, match="no value of run '12'"):
        make_groups(twelve(), "run", [0, 12])
    with pytest.raises(ValueError, match="names no group"):
        make_groups(twelve(), "run", [])


def test_other_groups_of_runs():
    assert make_groups(twelve(), "run", 4).labels.tolist() == ["0–2", "3–5", "6–8", "9–11"]
    some = make_groups(twelve(), "run", {"old": slice(None, 3), "new": [10, 11]})
    assert some.labels.tolist() == ["old", "new"]
    assert np.bincount(some.of_episode[some.of_episode >= 0]).tolist() == [4, 2]
    with pytest.raises(TypeError, match="is text, which has no ranges"):
        make_groups(twelve(list("abcdefghijkl")), "run", 4)


def test_no_episode_has_no_run():
    empty = twelve().isel(episode=[])
    assert tl.action_histogram(empty, by="run")["count"].shape == (0, 0)
    assert tl.state_trace(empty, "reward", by="run", groups=[0, 1])["n"].shape == (2, 3)


# Rules ----------------------------------------------------------------------------------------------------------


def episodes(*rewards, **options):
    return tl.from_episodes([{"reward": np.array(e, float)} for e in rewards], **options)


def test_cut_episodes_and_few_beside_many():
    one = episodes([1, 2], [3], [5], end_reason=["terminated", "cut", "terminated"])
    other = episodes(*[[i] for i in range(200)])
    ds = tl.concat({"one": one, "cut": one.isel(episode=[1]), "other": other})
    trace = tl.state_trace(ds, "reward", by="run")
    assert trace["n"].sel(run="one").values.tolist() == [3, 1]
    assert trace["mean"].sel(run="one").values.tolist() == [3, 2]
    assert trace["n"].sel(run="cut").values.tolist() == [1, 0]
    np.testing.assert_equal(trace["mean"].sel(run="cut").values, [3, np.nan])
    assert trace["mean"].sel(run="other").values[0] == 99.5
    table = tl.episode_table(ds)
    assert table[table["complete"]].groupby("run", sort=False)["return"].mean().to_dict() == {"one": 4, "other": 99.5}


def test_nan_stays_in_its_run():
    ds = tl.concat({"clean": episodes([1, 2]), "nan": episodes([1, np.nan])})
    with pytest.warns(UserWarning, match="'reward' has NaN, and so has its trace, at 1 of 2 steps"):
        trace = tl.state_trace(ds, "reward", by="run")
    np.testing.assert_equal(trace["mean"].values, [[1, 2], [1, np.nan]])
    assert trace["n"].values.tolist() == [[1, 1], [1, 1]]
    with pytest.warns(UserWarning, match="1 of 2 episodes have NaN"):
        np.testing.assert_equal(tl.returns(ds).values, [3, np.nan])


def test_returns_are_grouped_by_xarray_and_pandas():
    ds = tl.concat({"b": episodes([1], [3]), "a": episodes([10])})
    assert tl.returns(ds).groupby("run").mean().to_series().to_dict() == {"a": 10, "b": 2}
    assert tl.to_dataframe(ds).groupby("run")["reward"].mean().to_dict() == {"a": 10, "b": 2}


def test_the_order_of_episodes_changes_no_statistic():
    ds = tl.concat([make_dataset([3, 1, 5], i) for i in range(3)])
    shuffled = ds.isel(episode=np.random.default_rng(0).permutation(9))
    xr.testing.assert_equal(tl.action_histogram(ds, by="run"), tl.action_histogram(shuffled, by="run"))
    xr.testing.assert_allclose(tl.state_trace(ds, "obs", by="run"), tl.state_trace(shuffled, "obs", by="run"))
