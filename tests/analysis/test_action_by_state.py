"""Which actions are taken in which states: visible counts, a plain loop, what does not change them."""

import warnings

import numpy as np
import pytest
import xarray as xr
from agents.worlds import live, make_world, poisoned, record
from ragged import FORMS, in_form, make_dataset

import trajlab as tl


def recording(*episodes, **options):
    cells, actions = zip(*episodes, strict=True)
    rows = [{"at": np.array(c), "action": np.array(a)} for c, a in zip(cells, actions, strict=True)]
    return tl.from_episodes(rows, **options)


def test_shares_within_each_bin():
    ds = recording(([0, 0, 2], [1, 1, 0]), ([2, 2], [2, 0]), end_reason=["terminated", "cut"])
    result = tl.action_by_state(ds, "at", labels=["left", "stay", "right"])
    assert result["count"].dims == result["share"].dims == ("x_bin", "value")
    assert result["count"].values.tolist() == [[0, 2, 0], [0, 0, 0], [2, 0, 1]]
    np.testing.assert_allclose(result["share"].values, [[0, 1, 0], [np.nan] * 3, [2 / 3, 0, 1 / 3]])
    assert result["n"].values.tolist() == [2, 0, 3]
    assert result["label"].values.tolist() == ["left", "stay", "right"]
    assert result["x_bin"].values.tolist() == [0, 1, 2]


def test_two_components():
    ds = recording(([[0, 0], [1, 0], [1, 1]], [0, 1, 1]))
    result = tl.action_by_state(ds, ["at[0]", "at[1]"])
    assert result["count"].dims == ("x_bin", "y_bin", "value")
    assert result["count"].values.tolist() == [[[1, 0], [0, 0]], [[0, 1], [0, 1]]]
    assert result["n"].values.tolist() == [[1, 0], [1, 1]]


def test_continuous_actions_have_mean_and_deviation():
    ds = recording(([0.0, 0.1, 0.9], [[1.0, 5.0], [3.0, 5.0], [7.0, 6.0]]), units={"action": "N"})
    result = tl.action_by_state(ds, "at", bins=[0, 0.5, 1, 2])
    assert result["mean"].dims == ("x_bin", "action_dim_0")
    np.testing.assert_array_equal(result["mean"].values, [[2, 5], [7, 6], [np.nan] * 2])
    np.testing.assert_array_equal(result["std"].values, [[1, 0], [0, 0], [np.nan] * 2])
    assert result["n"].values.tolist() == [2, 1, 0]
    assert result["mean"].attrs["units"] == "N"


@pytest.mark.parametrize("actions", [[[1], [0], [2]], [[1.5], [0.5], [2.5]]])
def test_what_is_in_no_group_is_not_counted(actions):
    ds = recording(*zip([[0], [1], [1]], actions, strict=True), env=[0, 1, 2])
    result = tl.action_by_state(ds, "at", by="env", groups={"first": 0, "second": 1})
    assert result["n"].values.tolist() == [[1, 0], [0, 1]]
    if "count" in result:
        assert result["count"].values.tolist() == [[[0, 1], [0, 0]], [[0, 0], [1, 0]]]
    else:
        np.testing.assert_array_equal(result["mean"].values, [[1.5, np.nan], [np.nan, 0.5]])


def test_text_and_components():
    ds = recording(([0, 1], [["go", "left"], ["stop", "left"]]))
    result = tl.action_by_state(ds, "at")
    assert result["value"].values.tolist() == ["go", "left", "stop"]
    assert result["count"].values.tolist() == [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]]


CASES = [
    ("pair[0]", "action", None),
    (["obs[0]", "pair[1]"], "byte", "env"),
    (["action", "flag"], "pair", "flag"),
    ("reward", "obs", "flag"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("state", "action", "by"), CASES)
def test_every_form_equals_a_loop(form, state, action, by, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    result = tl.action_by_state(in_form(ds, form, tmp_path), state, action, by=by, bins=None)
    states = [state] if isinstance(state, str) else state
    stacked = tl.stack_fields(ds, [label.partition("[")[0] for label in states])
    columns = [stacked.sel(field=label).values.astype(float) for label in states]
    edges = [np.append(result[f"{c}_bin_left"], result[f"{c}_bin_right"][-1:]) for c in "xy"[: len(states)]]
    places = [
        np.minimum(np.searchsorted(e, c, side="right") - 1, len(e) - 2) for c, e in zip(columns, edges, strict=True)
    ]
    values = ds[action].values.reshape(*ds["mask"].shape, -1)
    for label in [None] if by is None else result[by].values:
        member = ds["mask"].values & (True if label is None else (ds[by] == label).broadcast_like(ds["mask"]).values)
        part = result if label is None else result.sel({by: label})
        for place in np.ndindex(part["n"].shape):
            here = member & np.all([p == k for p, k in zip(places, place, strict=True)], axis=0)
            rows, cell = values[here], part.isel(dict(zip(part["n"].dims, place, strict=True)))
            assert cell["n"] == len(rows)
            if action == "obs":
                if len(rows):
                    np.testing.assert_allclose(cell["mean"], rows.mean(0, dtype=float), rtol=1e-12)
                    np.testing.assert_allclose(cell["std"], rows.std(0, dtype=float), atol=1e-6)
                else:
                    assert np.isnan(cell["mean"]).all()
                continue
            want = np.array([[(column == value).sum() for value in part["value"].values] for column in rows.T])
            assert cell["count"].values.ravel().tolist() == want.ravel().tolist()
            if len(rows):
                np.testing.assert_allclose(cell["share"].values.ravel(), want.ravel() / len(rows))
            else:
                assert np.isnan(cell["share"]).all()


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize(("state", "action", "by"), CASES)
def test_where_batches_end_changes_nothing(monkeypatch, cells, state, action, by):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    ds = ds.assign(action=ds["action"].where(ds["time"] != 1))
    wants = []
    for size in (2**17, cells):
        monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", size)
        monkeypatch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wants.append(tl.action_by_state(ds, state, action, by=by))
    xr.testing.assert_allclose(*wants, rtol=1e-12)
    assert wants[0].attrs == wants[1].attrs


@pytest.mark.parametrize("action", ["action", "obs"])
def test_agents_that_are_done_do_not_count(action):
    world = make_world(20)
    result = tl.action_by_state(record(poisoned(world)), "obs[scout,0]", action, bins=[-9, 0, 9])
    assert result["n"].dims == ("x_bin", "agent")
    for k, agent in enumerate(world.agents):
        for place, is_low in enumerate((True, False)):
            rows = [
                getattr(world, action)[row, one.env, k]
                for one in live(world)
                for t, row in enumerate(one.rows)
                if one.alive[t, 0] and one.alive[t, k] and (world.obs[row, one.env, 0, 0] < 0) == is_low
            ]
            got = result.isel(x_bin=place).sel(agent=agent)
            assert got["n"] == len(rows)
            if action == "obs":
                np.testing.assert_allclose(got["mean"], np.mean(rows, 0, float), atol=1e-12)
            else:
                values, counts = np.unique(rows, return_counts=True)
                assert got["count"].sel(value=values).values.tolist() == counts.tolist()
                assert got["count"].sum() == len(rows)


# What is missing, and what is refused ------------------------------------------------------------------------------


def test_nan_of_the_action_counts_for_none():
    ds = recording(([0, 0, 1, 7], [1, 2, 1, 1]))
    ds = ds.assign(action=ds["action"].where(~ds["time"].isin([1, 3])))
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        result = tl.action_by_state(ds, "at", bins=[0, 1, 2])
    assert seen[0].filename == __file__
    assert result["count"].values.tolist() == [[1], [1]]
    assert result["n"].values.tolist() == [2, 1]
    assert (result.attrs["num_nan"], result.attrs["num_state_nan"], result.attrs["num_outside"]) == (1, 0, 1)


def test_nan_makes_the_mean_of_its_bin_nan():
    ds = recording(([0, 0, 1], [np.nan, 1.0, 2.0]))
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN"):
        result = tl.action_by_state(ds, "at")
    np.testing.assert_array_equal(result["mean"].values, [np.nan, 2])
    assert result["n"].values.tolist() == [2, 1]


def test_nan_of_the_state_is_in_no_bin():
    ds = recording(([np.nan, 0.5], [1, 0]))
    with pytest.warns(UserWarning, match="action_by_state: 1 transitions have NaN in 'at'"):
        result = tl.action_by_state(ds, "at", bins=1)
    assert result["n"].values.tolist() == [1]
    assert (result.attrs["num_nan"], result.attrs["num_state_nan"]) == (0, 1)


@pytest.mark.parametrize("state", ["obs[0]", ["obs[0]", "obs[1]"]])
@pytest.mark.parametrize("by", [None, "seed", "time"])
def test_of_no_episode(blank, state, by):
    result = tl.action_by_state(blank, state, by=by)
    dims = ("x_bin",) if isinstance(state, str) else ("x_bin", "y_bin")
    assert result["n"].dims == (*([by] if by else []), *dims)
    assert result["n"].sum() == 0


def test_what_is_refused():
    ds = recording(([0, 1], [0.5, 1]))
    for state in ([], ["at"] * 3):
        with pytest.raises(ValueError, match=r"state=.*expected one component, as 'obs\[0\]', or two"):
            tl.action_by_state(ds, state)
    with pytest.raises(ValueError, match="labels= names actions 0, 1, ...; 'action' is continuous"):
        tl.action_by_state(ds, "at", labels=["a"])
    with pytest.raises(KeyError, match="no component 'att'. Did you mean 'at'"):
        tl.action_by_state(ds, "att")
    with pytest.raises(KeyError, match="no field 'acton'"):
        tl.action_by_state(ds, "at", "acton")
    with pytest.raises(ValueError, match="bins=.*, or at least two finite edges, ascending"):
        tl.action_by_state(ds, "at", bins=[1, 0])
    many = recording((np.arange(2000), np.arange(2000)))
    with pytest.raises(ValueError, match="action_by_state: 'action' has 2,000 distinct values or more"):
        tl.action_by_state(many, "at")
    few = recording((np.arange(1000), np.arange(1000)))
    with pytest.raises(ValueError, match="1000 actions in 100,000 bins of all groups are too many"):
        tl.action_by_state(few, "at", bins=100_000)
    with pytest.raises(ValueError, match="'action' has the dim 'y_bin'.*ds.rename"):
        tl.action_by_state(recording(([0], [[0, 1]]), dims={"action": ["y_bin"]}), "at")
