"""How often actions are at their bounds: visible counts, a plain loop, where bounds come from."""

import numpy as np
import pytest
import xarray as xr
from agents.worlds import cells, live, make_world, poisoned, record
from ragged import FORMS, in_form, make_dataset

import trajlab as tl


def actions(*episodes, dtype=np.float64, attrs=None, **options):
    ds = tl.from_episodes([{"action": np.array(e, dtype)} for e in episodes], **options)
    ds["action"].attrs.update(attrs or {})
    return ds


def sides(ds, *args, **options):
    return tl.action_saturation(ds, *args, **options)["count"].values.tolist()


def test_counts_and_shares():
    result = tl.action_saturation(actions([-1, 0.5], [1, 0, 1.0]), low=-1, high=1)
    assert result["count"].dims == ("side",)
    assert result["count"].to_series().to_dict() == {"low": 1, "inside": 2, "high": 2}
    assert result["share"].values.tolist() == [0.2, 0.4, 0.4]
    assert result["count"].dtype == np.int64
    assert "clipped" not in result


def test_beyond_a_bound_is_at_it():
    assert sides(actions([-3, -np.inf, 0, 2, np.inf]), low=-1, high=1) == [2, 1, 2]


def test_tolerance():
    ds = actions([-1, -0.96, -0.9, 0.9, 0.97])
    assert sides(ds, low=-1, high=1) == [1, 4, 0]
    assert sides(ds, low=-1, high=1, tolerance=0.05) == [2, 2, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bounds_are_those_of_the_dtype(dtype):
    assert sides(actions([0.7, -0.7, 0.69], dtype=dtype), low=-0.7, high=0.7) == [1, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "values"), [(np.uint8, [0, 128, 255]), (np.int64, [-9, 0, 9]), (bool, [False, True])]
)
def test_any_numbers(dtype, values):
    want = [1, len(values) - 2, 1]
    assert sides(actions(values, dtype=dtype), low=values[0], high=values[-1]) == want


def test_components_have_their_own_bounds():
    ds = actions([[1, 1], [2, 1]], [[0, 4]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    result = tl.action_saturation(ds, low=0, high=[2, np.inf])
    assert result["count"].dims == ("joint", "side")
    assert result["count"].sel(joint="hip").values.tolist() == [1, 1, 1]
    assert result["count"].sel(joint="knee").values.tolist() == [0, 3, 0]
    assert (result.attrs["low"], result.attrs["high"], result.attrs["tolerance"]) == (0.0, "[2, inf]", 0.0)


def test_what_was_executed():
    episodes = [{"action": np.array([[-2.0, 0], [0.5, 3]]), "ctrl": np.array([[-1.0, 0], [0.5, 1]])}] * 2
    episodes.append({"action": np.array([[1.0, 0.2]]), "ctrl": np.array([[1.0, 0.15]])})
    ds = tl.from_episodes(episodes, end_reason=["cut", "cut", "done"])
    result = tl.action_saturation(ds, low=-1, high=1, executed="ctrl", by="end_reason")
    assert result["clipped"].dims == result["mean_difference"].dims == ("end_reason", "action_dim_0")
    assert result["clipped"].values.tolist() == [[0.5, 0.5], [0, 1]]
    np.testing.assert_allclose(result["mean_difference"].values, [[0.5, 1], [0, 0.05]])
    assert tl.action_saturation(ds, low=-1, high=1, executed="ctrl", tolerance=0.1)["clipped"].values.tolist() == [
        0.4,
        0.4,
    ]


def test_what_was_executed_needs_no_bounds():
    episode = {"action": np.array([[-2.0, 0], [0.5, 3]]), "ctrl": np.array([[-1.0, 0], [0.5, np.nan]])}
    with pytest.warns(UserWarning, match="1 differences of 'action' and 'ctrl' are NaN"):
        result = tl.action_saturation(tl.from_episodes([episode]), executed="ctrl", tolerance=0.1)
    assert [*result.data_vars] == ["clipped", "mean_difference"]
    assert result["clipped"].values.tolist() == [0.5, 0]
    assert "side" not in result.coords
    assert {"low", "high"}.isdisjoint(result.attrs)
    assert (result.attrs["num_nan"], result.attrs["tolerance"]) == (1, 0.1)
    with pytest.raises(ValueError, match="nothing says what the high bound of 'action' is"):
        tl.action_saturation(tl.from_episodes([episode]), executed="ctrl", low=-1)


def test_rounding_is_no_difference():
    one = {"action": np.array([0.7, np.inf], np.float32), "ctrl": np.array([0.7, np.inf])}
    result = tl.action_saturation(tl.from_episodes([one]), low=-1, high=1, executed="ctrl")
    assert result["clipped"] == result["mean_difference"] == 0


# Where bounds come from ------------------------------------------------------------------------------------------


def test_bounds_of_a_space_also_from_a_file(tmp_path):
    ds = actions([[-1, 5], [0, 9]], attrs={"low": "[-1.0, -inf]", "high": [2.0, 5.0]})
    assert sides(ds) == [[1, 1, 0], [0, 0, 2]]
    assert sides(ds, high=[0, 9]) == [[1, 0, 1], [0, 1, 1]]
    ds.to_netcdf(tmp_path / "ds.nc", engine="h5netcdf")
    result = tl.action_saturation(xr.open_dataset(tmp_path / "ds.nc", engine="h5netcdf"))
    assert result["count"].values.tolist() == [[1, 1, 0], [0, 0, 2]]
    result.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")


def test_what_was_computed_from_an_action_has_other_bounds():
    ds = actions([1.0], attrs={"low": -1.0, "high": 1.0, "long_name": "action"})
    with (
        xr.set_options(keep_attrs=True),
        pytest.raises(ValueError, match="nothing says what the low bound of 'twice' is"),
    ):
        tl.action_saturation(ds.assign(twice=ds["action"] * 2), "twice")


# A plain loop ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("by", ["end_reason", "flag", "time"])
def test_every_form_equals_a_loop(form, by, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    result = tl.action_saturation(in_form(ds, form, tmp_path), "reward", low=-1, high=1, executed="action", by=by)
    groups = ds[by].broadcast_like(ds["mask"]).values
    for label in result[by].values:
        chosen = (groups == label) & ds["mask"].values
        reward, action = (ds[name].values[chosen].astype(float) for name in ("reward", "action"))
        got = result.sel({by: label})
        assert got["count"].values.tolist() == [sum(reward <= -1), sum((reward > -1) & (reward < 1)), sum(reward >= 1)]
        np.testing.assert_allclose(got["clipped"], (reward != action).mean())
        np.testing.assert_allclose(got["mean_difference"], abs(reward - action).mean())


def test_agents_that_are_done_do_not_count():
    world = make_world(20)
    ds, episodes = record(poisoned(world), cuts=(11,)), live(world)
    result = tl.action_saturation(ds, "reward", low=-1, high=1, executed="action")
    for k, agent in enumerate(world.agents):
        reward, action = (cells(world, episodes, name, k).astype(float) for name in ("reward", "action"))
        got = result.sel(agent=agent)
        assert got["count"].values.tolist() == [(reward <= -1).sum(), (abs(reward) < 1).sum(), (reward >= 1).sum()]
        np.testing.assert_allclose(got["mean_difference"], abs(reward - action).mean())


# What is missing, and what is refused ----------------------------------------------------------------------------


def test_nan_is_on_no_side_and_reported():
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        result = tl.action_saturation(actions([np.nan, 1], [0]), low=-1, high=1)
    assert seen[0].filename == __file__
    assert result["share"].values.tolist() == [0, 0.5, 0.5]
    assert result.attrs["num_nan"] == 1
    ds = tl.from_episodes([{"action": np.zeros(2), "ctrl": np.array([np.nan, 1.0])}])
    with pytest.warns(UserWarning, match="1 differences of 'action' and 'ctrl' are NaN"):
        result = tl.action_saturation(ds, low=-1, high=1, executed="ctrl")
    assert result["clipped"] == 1
    assert np.isnan(result["mean_difference"])


def test_a_group_without_a_transition_has_no_share():
    groups = {"early": 0, "late": slice(9, None)}
    result = tl.action_saturation(
        actions([0.0]), low=-1, high=1, by="start_iteration", groups=groups, executed="action"
    )
    assert np.isnan(result["share"].values[1]).all()
    assert np.isnan(result[["clipped", "mean_difference"]].isel(start_iteration=1).to_array()).all()


def test_of_no_episode(blank):
    assert tl.action_saturation(blank, executed="ctrl", by="seed")["count"].shape == (0, 3)
    assert tl.action_saturation(blank, low=-1)["count"].values.tolist() == [0, 0, 0]


def test_what_is_refused():
    ds = actions([[0.0, 1]], [[1.0, 2]])
    with pytest.raises(ValueError, match=r"(?s)low bound of 'action'.*give low=-1.0.*low=-np.inf for none"):
        tl.action_saturation(ds)
    with pytest.raises(ValueError, match=r"low has the shape \(3,\), and the components of 'action' \(2,\)"):
        tl.action_saturation(ds, low=[1, 2, 3], high=5)
    with pytest.raises(
        ValueError, match="component 1 of 'action' has low=-1 and high=1, with tolerance=1; expected some"
    ):
        tl.action_saturation(ds, low=-1, high=1, tolerance=[0, 1])
    with pytest.raises(ValueError, match="tolerance=-1; expected finite numbers of at least 0"):
        tl.action_saturation(ds, low=-1, high=1, tolerance=-1)
    with pytest.raises(ValueError, match="low='left'; expected a number, or 2 of them"):
        tl.action_saturation(ds, low="left", high=1)
    with pytest.raises(ValueError, match="has NaN; expected numbers, infinite where there is no bound"):
        tl.action_saturation(ds, low=np.nan, high=1)
    with pytest.raises(ValueError, match=r"executed='x' has components of shape \(\), and 'action' of \(2,\)"):
        tl.action_saturation(ds.assign(x=ds["action"][..., 0]), low=-1, high=1, executed="x")
    with pytest.raises(KeyError, match="Did you mean 'action'"):
        tl.action_saturation(ds, low=-1, high=1, executed="actoin")
    with pytest.raises(TypeError, match="action_saturation: 'action' has dtype <U4"):
        tl.action_saturation(actions(["left"], dtype=str), low=-1, high=1)
    with pytest.raises(ValueError, match="'action' has the dim 'side'.*ds.rename"):
        tl.action_saturation(actions([[0.0]], dims={"action": ["side"]}), low=-1, high=1)
