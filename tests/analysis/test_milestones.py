"""Shares of episodes that reached an event: visible ones, published ones, and mass passed on by those cut."""

import numpy as np
import pytest
import xarray as xr
from agents.worlds import live, make_world, record
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, make_dataset
from strategies import examples

import trajlab as tl


def reaching(*episodes, **coords):
    """Return episodes given as (length, step at which `key` is first True or None, end reason)."""
    rows = [{"key": np.arange(n) >= (n if at is None else at)} for n, at, _ in episodes]
    ds = tl.from_episodes(rows, end_reason=[reason for *_, reason in episodes])
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


def test_the_share_of_all_where_none_was_cut():
    ds = reaching((3, 1, "terminated"), (5, 4, "done"), (2, None, "terminated"), (4, 1, "terminated"))
    result = tl.milestones(ds, "key")
    assert result["share"].dims == ("time",)
    np.testing.assert_allclose(result["share"].values, [0, 0.5, 0.5, 0.5, 0.75])
    assert result["n"].values.tolist() == [4, 4, 1, 1, 1]
    assert result["num_reached"].item() == 3
    assert result["median"].item() == 1


def test_cut_episodes_count_as_long_as_they_were_seen():
    """Of four one ends, one is cut at once: F(1) = 2/3 * 1/2, by hand, from S(0) = 3/4 and S(1) = 3/4 * 1/2."""
    ds = reaching((1, None, "terminated"), (1, None, "cut"), (2, 1, "terminated"), (3, None, "truncated"))
    result = tl.milestones(ds, "key")
    np.testing.assert_allclose(result["share"].values, [0, 3 / 8, 3 / 8])
    assert result["n"].values.tolist() == [4, 2, 1]


def test_published_example():
    """Without other ends it is one minus Kaplan and Meier: Freireich et al. (1963), as in test_survival.py."""
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    ds = reaching(*[(n, n - 1, "terminated") for n in ended], *[(n, None, "cut") for n in censored])
    result = tl.milestones(ds, "key")
    at = result["share"].sel(time=np.array([6, 7, 10, 13, 16, 22, 23]) - 1).values
    np.testing.assert_allclose(1 - at, [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], atol=5e-4)
    np.testing.assert_allclose(1 - result["share"].values, tl.survival(ds)["survival"].values[1:])


def passed_on(data, steps):
    """Return shares from equal weights, each of which goes to all that are left when its episode is cut (Efron)."""
    weights, share, shares = np.full(len(data), 1 / len(data)), 0.0, []
    leaves = np.array([n - 1 if at is None else at for n, at, _ in data])
    for t in range(steps):
        is_unknown = not (leaves >= t).any() and weights.sum() > 1e-12
        for e, (_, at, reason) in enumerate(data):
            if leaves[e] == t and at is not None:
                share += weights[e]
            if leaves[e] == t and (at is not None or reason not in ("cut", "truncated")):
                weights[e] = 0.0
        left = leaves > t
        cut = (leaves == t) & (weights > 0)
        if left.any():
            weights[left] += weights[cut].sum() / left.sum()
            weights[cut] = 0.0
        shares.append(np.nan if is_unknown else share)
    return shares


@st.composite
def reached(draw):
    n = draw(st.integers(1, 8))
    at = draw(st.one_of(st.none(), st.integers(0, n - 1)))
    return n, at, draw(st.sampled_from(["terminated", "done", "truncated", "cut"]))


@given(st.lists(reached(), min_size=1, max_size=12))
@examples(40)
def test_equals_weights_passed_on(data):
    ds = reaching(*data, (9, 8, "terminated"))  # somebody is left to the end
    result = tl.milestones(ds, {"key": "key", "other": lambda ds: ~ds["key"] & (ds["time"] > 2)})
    first = [*data, (9, 8, "terminated")]
    np.testing.assert_allclose(result["share"].sel(event="key").values, passed_on(first, 9), atol=1e-12)
    other = [(n, 3 if n > 3 and (at is None or at > 3) else None, reason) for n, at, reason in first]
    np.testing.assert_allclose(result["share"].sel(event="other").values, passed_on(other, 9), atol=1e-12)
    leaves = [n - 1 if at is None else at for n, at, _ in first]
    assert result["n"].sel(event="key").values.tolist() == [sum(t <= end for end in leaves) for t in range(9)]
    half = np.flatnonzero(result["share"].sel(event="key") >= result["share"].sel(event="key")[-1] / 2 - 1e-12)
    assert result["median"].sel(event="key").item() == half[0]


def test_nothing_is_known_beyond_the_last_that_was_cut():
    ds = reaching((2, 1, "terminated"), (3, None, "cut"), (6, 5, "terminated"), policy=["a", "a", "b"])
    share = tl.milestones(ds, "key", by="policy")["share"]
    assert share.dims == ("policy", "time")
    np.testing.assert_equal(share.values, [[0, 0.5, 0.5, np.nan, np.nan, np.nan], [0, 0, 0, 0, 0, 1]])
    assert tl.milestones(ds, "key", by="policy")["median"].values.tolist() == [1, 5]


def test_what_all_have_reached_or_left_stays():
    ds = reaching((2, 1, "terminated"), (3, None, "terminated"), (6, None, "cut"), policy=["a", "a", "b"])
    result = tl.milestones(ds, "key", by="policy")
    assert result["share"].sel(policy="a").values.tolist() == [0, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert np.isnan(result["median"].sel(policy="b"))


def test_each_group_as_if_alone():
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4, 3, 3, 6, 5])
    conditions = {"up": lambda ds: ds["reward"] > 0.5, "flag": "flag"}
    result = tl.milestones(ds, conditions, by="env")
    assert result["share"].dims == ("env", "event", "time")
    for env in result["env"].values:
        alone = tl.milestones(ds.isel(episode=np.flatnonzero(ds["env"] == env)), conditions)
        got = result.sel(env=env, time=alone["time"])
        for name in ("share", "n", "median", "num_reached"):
            np.testing.assert_allclose(got[name], alone[name], atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_in_every_form(form, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    got, want = (
        tl.milestones(d, {"obs": lambda ds: ds["obs"] > 0.5}, by="env") for d in (in_form(ds, form, tmp_path), ds)
    )
    assert got["share"].dims == ("env", "event", "obs_dim_0", "time")
    xr.testing.assert_allclose(got, want)


def test_an_agent_that_is_done_has_ended():
    world = make_world(20)
    ds = record(world)
    result = tl.milestones(ds, lambda ds: ds["reward"] > 0.9)
    assert result["share"].dims == ("agent", "time")
    for k, agent in enumerate(world.agents):
        data = []
        for one, reason in zip(live(world), ds["end_reason"].values, strict=True):
            held = (world.reward[one.rows, one.env, k] > 0.9) & one.alive[:, k]
            lived = int(one.alive[:, k].sum())
            is_cut = reason == "cut" and lived == len(one.rows)
            data.append((lived, int(np.argmax(held)) if held.any() else None, "cut" if is_cut else "terminated"))
        got = result["share"].sel(agent=agent).values
        np.testing.assert_allclose(got, passed_on(data, len(got)), atol=1e-12)


def test_episodes_from_mid_way_are_left_out():
    chunk = {"obs": np.zeros((6, 2)), "done": np.array([[0, 1], [1, 0], [0, 0], [0, 1], [1, 0], [0, 0]], bool)}
    result = tl.milestones(tl.from_rollout(chunk, starts_fresh=False), "done")
    assert result.attrs["left_out"] == 2
    assert result["n"].values[0] == 4


def test_no_episode(blank):
    result = tl.milestones(blank, "key")
    assert result["share"].shape == (0,)
    assert np.isnan(result["median"])
    assert tl.milestones(make_dataset([]), {"up": "flag"})["num_reached"].values.tolist() == [0]


def test_groups_are_of_episodes():
    with pytest.raises(ValueError, match="group by 'start_iteration'"):
        tl.milestones(make_dataset([2]), "flag", by="iteration")


def test_it_can_be_saved(tmp_path):
    tl.milestones(make_dataset([2, 3]), {"up": "flag"}, by="env").to_netcdf(tmp_path / "m.nc", engine="h5netcdf")


def test_a_dim_called_as_the_result_is_refused():
    ds = tl.from_episodes([{"obs": np.ones((2, 3))}], dims={"obs": ["share"]})
    with pytest.raises(ValueError, match="has the dim 'share', a name that the result uses itself"):
        tl.milestones(ds, lambda ds: ds["obs"] > 0)
