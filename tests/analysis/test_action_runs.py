"""How long actions are repeated: visible runs, a plain loop, and what does not change them."""

import itertools

import numpy as np
import pytest
import xarray as xr
from chunks import random_rollout
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, actions, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.dataset import ordered


def counted(result):
    """Return {(value, length): count} of one component, those that occur."""
    count = result["count"].stack(run=["value", "run_length"])
    return {run: int(n) for run, n in zip(count["run"].values.tolist(), count.values, strict=True) if n}


def naive(ds, field="action", component=(), member=lambda e, t: True):
    """Return all runs (value, length, whether it is open) by a loop over the steps that are there."""
    values, times, out = ds[field].values, ds["time"].values, []
    for e, length in enumerate(ds["length"].values):
        places = [i for i in np.argsort(times) if times[i] < length]
        steps = [(int(times[i]), values[(e, i, *component)].item(), i) for i in places]
        parts = itertools.groupby(enumerate(steps), lambda one: (one[1][0] - one[0], one[1][1]))
        parts = [[step for _, step in part] for _, part in parts]
        ended = str(ds["end_reason"].values[e]) in ("terminated", "done")
        for i, part in enumerate(parts):
            first, last = part[0][0], part[-1][0]
            before = i > 0 and parts[i - 1][-1][0] == first - 1
            after = i < len(parts) - 1 and parts[i + 1][0][0] == last + 1
            begun = before or (first == 0 and bool(ds["start_seen"].values[e]))
            done = after or (last == length - 1 and ended)
            if member(e, part[0][2]):
                out.append((part[0][1], len(part), not (begun and done)))
    return out


def assert_equals_loop(result, runs):
    assert counted(result) == {
        run: sum(one[:2] == run for one in runs) for run in dict.fromkeys(one[:2] for one in runs)
    }
    for value in result["value"].values.tolist():
        got, own = result.sel(value=value), [one for one in runs if one[0] == value]
        assert got["n"] == len(own)
        assert got["num_open"] == sum(one[2] for one in own)
        if own:
            np.testing.assert_allclose(got["mean"], np.mean([one[1] for one in own]))
            assert got["median"] == np.median([one[1] for one in own])
        else:
            assert np.isnan(got["mean"])
            assert np.isnan(got["median"])


def test_lengths_of_runs():
    result = tl.action_runs(actions([0, 0, 1, 0, 0], [3, 3, 3], [3]))
    assert result["count"].dims == ("value", "run_length")
    assert result["run_length"].values.tolist() == [1, 2, 3]
    assert result["value"].values.tolist() == [0, 1, 2, 3]
    assert result["count"].values.tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1]]
    assert result["n"].values.tolist() == [2, 1, 0, 2]
    assert result["mean"].values[[0, 1, 3]].tolist() == result["median"].values[[0, 1, 3]].tolist() == [2, 1, 2]
    assert np.isnan(result["mean"].values[2])
    assert {result[name].dtype for name in ("count", "n", "num_open")} == {np.dtype(np.int64)}


def test_the_last_run_of_a_cut_or_truncated_episode_is_open():
    reasons = ["terminated", "done", "truncated", "cut"]
    result = tl.action_runs(actions([0, 1], [0, 1], [0, 1], [0, 0], end_reason=reasons))
    assert result["num_open"].values.tolist() == [1, 1]
    assert result["n"].values.tolist() == [4, 3]


def test_the_first_run_of_an_episode_whose_start_was_not_seen_is_open():
    done = np.zeros((6, 1), bool)
    done[[2, 4]] = True
    chunk = {"action": np.array([[0], [0], [1], [0], [1], [0]]), "done": done, "obs": np.zeros((6, 1))}
    seen = tl.action_runs(tl.from_rollout(chunk))
    unseen = tl.action_runs(tl.from_rollout(chunk, starts_fresh=False))
    assert seen["num_open"].values.tolist() == [1, 0]
    assert unseen["num_open"].values.tolist() == [2, 0]
    assert counted(seen) == counted(unseen) == {(0, 1): 2, (0, 2): 1, (1, 1): 2}


def test_labels():
    result = tl.action_runs(actions([2, 2, 0]), labels=["left", "stay", "right"])
    assert result["label"].values.tolist() == ["left", "stay", "right"]
    assert result["n"].values.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(bool, [False, True]), (np.uint8, [255, 0]), (np.int64, [-(2**62), 2**62]), ("<U5", ["brake", "go"])],
)
def test_any_discrete_dtype(dtype, values):
    one, other = values
    result = tl.action_runs(actions([one, other, other], [other], dtype=dtype))
    assert counted(result) == {(one, 1): 1, (other, 1): 1, (other, 2): 1}


def test_components_are_counted_by_themselves():
    ds = actions([[0, 2], [1, 2]], [[1, 0]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    result = tl.action_runs(ds)
    assert result["count"].dims == ("joint", "value", "run_length")
    assert result["n"].dims == ("joint", "value")
    assert counted(result.sel(joint="hip")) == {(0, 1): 1, (1, 1): 2}
    assert counted(result.sel(joint="knee")) == {(2, 2): 1, (0, 1): 1}


def test_only_lengths_seen_where_runs_are_very_long():
    result = tl.action_runs(actions([0] * 1025, [1] * 3, [0] * 3))
    assert result["run_length"].values.tolist() == [3, 1025]
    assert result["count"].values.tolist() == [[1, 1], [1, 0]]
    assert result["median"].values.tolist() == [514, 3]
    assert tl.action_runs(actions([0] * 1024))["run_length"].values.tolist() == list(range(1, 1025))


# A plain loop ------------------------------------------------------------------------------------------------


@given(lengths, st.integers(0, 9))
@examples(10)
def test_equals_a_loop(lengths, seed):
    ds = make_dataset(lengths, seed).load()
    assert_equals_loop(tl.action_runs(ds, "flag"), naive(ds, "flag"))
    pair = tl.action_runs(ds, "pair")
    for component in range(2):
        assert_equals_loop(pair.isel(pair_dim_0=component), naive(ds, "pair", (component,)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["action", "flag", "pair"])
def test_every_form_of_a_dataset(form, field, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    want = tl.action_runs(ds, field, by="end_reason")
    xr.testing.assert_identical(tl.action_runs(in_form(ds, form, tmp_path), field, by="end_reason"), want)


@pytest.mark.parametrize("times", [slice(2, None), slice(0, 3), [0, 1, 2, 4, 5], [4, 1, 0, 5], [3], slice(0, 0)])
def test_runs_end_open_where_steps_were_left_out(times):
    ds = make_dataset([4, 1, 6, 2, 6, 3]).isel(time=times).load()
    assert_equals_loop(tl.action_runs(ds, "flag"), naive(ds, "flag"))


@pytest.mark.parametrize("cells", [1, 2, 3, 5])
@pytest.mark.parametrize("form", ["lazy", "loaded", "dask"])
def test_where_batches_end_changes_nothing(monkeypatch, form, cells):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    asked = [("flag", None), ("pair", "end_reason"), ("flag", "byte")]
    wants = [tl.action_runs(ds, field, by=by, groups=2 if by == "byte" else None) for field, by in asked]
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    monkeypatch.setattr("trajlab.dataset.flat.MAX_BYTES", cells * 4)
    monkeypatch.setattr(ordered, "MAX_CELLS", cells)
    monkeypatch.setattr(ordered, "MAX_HELD", 6)
    for (field, by), want in zip(asked, wants, strict=True):
        got = tl.action_runs(in_form(ds, form), field, by=by, groups=2 if by == "byte" else None)
        xr.testing.assert_identical(got, want)


@pytest.mark.parametrize("cells", [1, 15, 1000])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_rows_of_a_log(monkeypatch, cells, autoreset, share):
    monkeypatch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", cells)
    chunk = random_rollout(3, ends=0.08)
    rng = np.random.default_rng(0)
    chunk["truncated"] = ~chunk["terminated"] & (rng.random(chunk["terminated"].shape) < 0.05)
    chunk["pair"] = rng.integers(0, 2, (40, 5, 2)).astype(np.int8)
    recorder = tl.Recorder(convention=tl.Convention(autoreset=autoreset))
    for part in (slice(0, 15), slice(15, 16), slice(16, 40)):
        recorder.record({name: rows[part] for name, rows in chunk.items()})
    lazy = recorder.to_dataset()
    lazy = lazy.isel(episode=rng.permutation(lazy.sizes["episode"])[: round(share * lazy.sizes["episode"])])
    ds = lazy.load()
    for component in range(2):
        assert_equals_loop(tl.action_runs(lazy, "pair").isel(pair_dim_0=component), naive(ds, "pair", (component,)))
    for field in ("action", "pair"):
        xr.testing.assert_identical(tl.action_runs(lazy, field, by="env"), tl.action_runs(ds, field, by="env"))
    late = {"by": "late", "groups": {"late": [True]}}
    got, want = (
        tl.action_runs(one.assign(late=(ds["action"] > 1).where(ds["mask"], False)), "pair", **late)
        for one in (lazy, ds)
    )
    xr.testing.assert_identical(got, want)


def test_agents_in_rows_of_a_log():
    rng = np.random.default_rng(0)
    ends = rng.random((40, 3)) < 0.1
    chunk = {
        "action": {key: rng.integers(0, 2, (40, 3)) for key in "ab"},
        "reward": {key: rng.random((40, 3)) for key in "ab"},
    }
    chunk["done"] = {"a": ends | (rng.random((40, 3)) < 0.2), "b": ends, "__all__": ends}
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    xr.testing.assert_identical(tl.action_runs(ds), tl.action_runs(ds.load()))


def test_the_first_action_decides_the_group():
    ds = make_dataset([4, 1, 6, 2, 6, 3]).load()
    ds = ds.assign(late=(ds["time"] >= 2).broadcast_like(ds["mask"]) & ds["mask"])
    result = tl.action_runs(ds, "flag", by="late")
    for label in (False, True):
        member = lambda e, t, label=label: (t >= 2) == label  # noqa: E731
        assert_equals_loop(result.sel(late=label), naive(ds, "flag", member=member))


def test_episodes_in_no_group_are_left_out():
    result = tl.action_runs(actions([0, 1], [1, 1], [1, 0], env=[0, 1, 2]), by="env", groups={"some": [0, 2]})
    assert result["count"].values.tolist() == [[[2], [2]]]
    assert result["num_open"].sum() == 0


# What is missing, and what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [2, 2**17])
def test_nan_ends_runs_and_leaves_them_open(monkeypatch, cells):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    ds = actions([1, 1, 2, 2, 1, 1], [2, 2])
    ds = ds.assign(action=ds["action"].where((ds["time"] != 3) | (ds["episode"] != 0))).load()
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        result = tl.action_runs(ds)
    assert seen[0].filename == __file__
    assert counted(result) == {(1, 2): 2, (2, 1): 1, (2, 2): 1}
    assert result["num_open"].values.tolist() == [1, 1]
    assert result.attrs["num_nan"] == 1
    with pytest.warns(UserWarning, match="8 values"):
        assert tl.action_runs(ds.assign(action=ds["action"].where(False)))["count"].size == 0


@pytest.mark.parametrize("cells", [1, 2, 2**17])
def test_a_run_ends_with_its_agent(monkeypatch, cells):
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    ends = np.array([[False], [False], [True], [False]])
    two = {name: {"a": x, "b": x + 0} for name, x in {"obs": np.zeros((4, 1)), "reward": np.zeros((4, 1))}.items()}
    chunk = {**two, "action": {"a": np.array([[0], [0], [0], [1]]), "b": np.array([[1], [1], [1], [1]])}}
    chunk["done"] = {"a": np.array([[False], [True], [True], [False]]), "b": ends, "__all__": ends}
    result = tl.action_runs(tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"])).load())
    assert counted(result.sel(agent="a")) == {(0, 2): 1, (1, 1): 1}
    assert counted(result.sel(agent="b")) == {(1, 3): 1, (1, 1): 1}
    assert result["num_open"].values.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("by", [None, "seed"])
def test_of_no_episode(blank, by):
    result = tl.action_runs(blank, by=by)
    assert result["count"].size == 0
    assert result["count"].dims == (*([by] if by else []), "value", "run_length")


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"action_runs: 'action' is continuous \(float64\)"):
        tl.action_runs(actions([0.5], dtype=np.float64))
    with pytest.raises(ValueError, match="'action' has 2,000 distinct values or more; expected at most 1,024"):
        tl.action_runs(actions(np.arange(2000)))
    with pytest.raises(ValueError, match="'action' has the dim 'run_length'.*ds.rename"):
        tl.action_runs(actions([[0, 1]], dims={"action": ["run_length"]}))
    with pytest.raises(ValueError, match="labels= names 1 actions, 0 to 0, but 'action' also has the value 1"):
        tl.action_runs(actions([0, 1]), labels=["left"])
