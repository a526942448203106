"""The actions of all episodes in a telling order: the same values, lazy."""

import numpy as np
import pytest
import xarray as xr
from ragged import make_dataset

import trajlab as tl
from trajlab.dataset.lazy import is_in_memory


@pytest.fixture
def ds():
    return make_dataset([4, 1, 6, 2, 6, 3])


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("length", [1, 3, 5, 0, 2, 4]),
        ("env", [0, 4, 1, 5, 2, 3]),
        ("end_reason", [2, 5, 0, 1, 3, 4]),
        ("complete", [2, 5, 0, 1, 3, 4]),
        ("episode", [0, 1, 2, 3, 4, 5]),
        (None, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_order_of_episodes(ds, sort, order):
    raster = tl.action_raster(ds, sort=sort)
    assert raster.dims == ("episode", "time")
    assert raster["episode"].values.tolist() == order
    assert raster.attrs["sort"] == (sort or "episode")
    xr.testing.assert_equal(
        raster.load().reset_coords(drop=True), ds["action"].sel(episode=order).reset_coords(drop=True)
    )
    assert raster["length"].values.tolist() == ds["length"].values[order].tolist()
    assert raster["mask"].sum() == 22


def test_sorted_by_return(ds):
    raster = tl.action_raster(ds, "pair", sort="return")
    assert raster.dims == ("episode", "time", "pair_dim_0")
    returns = tl.returns(ds)
    assert raster["return"].values.tolist() == sorted(returns.values)
    assert returns.sel(episode=raster["episode"]).values.tolist() == sorted(returns.values)


def test_nan_stands_last(ds):
    scored = ds.assign_coords(score=("episode", [3.0, np.nan, 1.0, np.nan, 2.0, -1.0]))
    assert tl.action_raster(scored, sort="score")["episode"].values.tolist() == [5, 2, 4, 0, 1, 3]
    named = ds.assign_coords(name=("episode", np.array(["b", None, "a", None, "c", "a"], object)))
    assert tl.action_raster(named, sort="name")["episode"].values.tolist() == [2, 5, 0, 4, 1, 3]
    field = tl.action_raster(ds.assign(score=("episode", np.arange(6.0)[::-1])), sort="score")
    assert field["score"].values.tolist() == [0, 1, 2, 3, 4, 5]


def test_some_episodes(ds):
    assert tl.action_raster(ds, episodes=3)["episode"].values.tolist() == [1, 5, 4]
    assert tl.action_raster(ds, episodes=100).sizes["episode"] == 6
    assert tl.action_raster(ds, episodes=0).sizes["episode"] == 0
    raster = tl.action_raster(ds, episodes=[4, 0, 1])
    assert raster["episode"].values.tolist() == [1, 0, 4]
    assert (raster.attrs["num_episodes"], raster.attrs["num_transitions"], raster.attrs["num_cut"]) == (3, 11, 0)


def test_nothing_is_fetched(ds):
    assert not is_in_memory(tl.action_raster(ds, sort="return", episodes=2).variable)


def test_labels_are_attributes_that_files_take(ds, tmp_path):
    raster = tl.action_raster(ds, labels={-2: "far left", 3: "right"})
    assert raster.attrs["flag_values"] == [-2, 3]
    raster.to_netcdf(tmp_path / "raster.nc", engine="h5netcdf")
    with xr.open_dataarray(tmp_path / "raster.nc", engine="h5netcdf") as read:
        assert list(read.attrs["flag_meanings"]) == ["far left", "right"]
        np.testing.assert_array_equal(read, raster)


def test_of_no_episode(blank):
    for sort in ("length", "return", "policy", None):
        assert tl.action_raster(blank, sort=sort).size == 0


def test_what_is_refused(ds):
    with pytest.raises(KeyError, match="no coordinate over episode to sort by 'lenght'. Did you mean 'length'"):
        tl.action_raster(ds, sort="lenght")
    with pytest.raises(
        ValueError, match=r"sort='action' has dims \('episode', 'time'\); expected one value per episode$"
    ):
        tl.action_raster(ds, sort="action")
    with pytest.raises(ValueError, match="expected one value per episode; select one of 'axis' first"):
        tl.action_raster(ds.assign(goal=(("episode", "axis"), np.zeros((6, 2)))), sort="goal")
    with pytest.raises(KeyError, match="no episode 9"):
        tl.action_raster(ds, episodes=[1, 9])
    with pytest.raises(TypeError, match="sort=5; expected the name of a coordinate over episode"):
        tl.action_raster(ds, sort=5)
    for wrong in (2.5, True, "3", [1.5], [[0]], {"a": 0}):
        with pytest.raises(TypeError, match=r"episodes=.*; expected how many, at least 0, or a list of their numbers$"):
            tl.action_raster(ds, episodes=wrong)
    with pytest.raises(TypeError, match=r"list of their numbers: ds\['episode'\]\[flags\]"):
        tl.action_raster(ds, episodes=(ds["length"] > 2).values)
    with pytest.raises(ValueError, match="episodes=-1; expected how many"):
        tl.action_raster(ds, episodes=-1)
