"""What is done with a Dataset gives the same whether its fields are lazy or loaded."""

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import trajlab
from trajlab.analysis.tables import episode_table, to_dataframe
from trajlab.dataset.concat import concat
from trajlab.dataset.from_episodes import from_episodes
from trajlab.dataset.schema import validate
from trajlab.dataset.stack import stack_fields
from trajlab.dataset.views import episode, transitions


def make_chunk(seed, steps=9, envs=3):
    """Return a chunk (steps, envs, ...) of all sorts of fields."""
    rng = np.random.default_rng(seed)
    ended = rng.random((steps, envs)) < 0.3
    return {
        "obs": rng.normal(size=(steps, envs, 3)).astype(np.float32),
        "next_obs": rng.normal(size=(steps, envs, 3)).astype(np.float32),
        "action": rng.integers(0, 4, (steps, envs), dtype=np.int32),
        "reward": rng.normal(size=(steps, envs)).astype(np.float32),
        "terminated": ended,
        "truncated": ended & (rng.random((steps, envs)) < 0.3),
        "img": rng.integers(0, 250, (steps, envs, 2, 2), dtype=np.uint8),
    }


def recorded(to_array):
    """Return a Dataset that a Recorder made of two chunks."""
    labels = {"dims": {"obs": ["axis"]}, "coords": {"axis": ["x", "y", "z"]}}
    with trajlab.Recorder(**labels) as recorder:
        for seed in range(2):
            recorder.record({name: to_array(values) for name, values in make_chunk(seed).items()})
        return recorder.to_dataset()


def one_by_one():
    """Return a Dataset of episodes given one by one, two of them without a final observation."""
    rng = np.random.default_rng(0)
    lengths = [4, 1, 6, 2, 3]
    return from_episodes(
        [
            {
                "obs": rng.normal(size=(length + number % 2, 3)).astype(np.float32),
                "action": rng.integers(0, 4, length),
                "reward": rng.normal(size=length),
                "terminated": np.arange(length) == length - 1,
                "img": rng.integers(0, 250, (length, 2, 2), dtype=np.uint8),
            }
            for number, length in enumerate(lengths)
        ],
        dims={"obs": ["axis"]},
        coords={"axis": ["x", "y", "z"]},
    )


def to_jax(values):
    import jax.numpy as jnp

    return jnp.asarray(values)


@pytest.fixture(params=["by hand", "recorded numpy", "recorded jax", "episodes", "put together", "final"])
def pair(request, make_lazy):
    """A lazy Dataset, and the same loaded."""
    makers = {
        "by hand": make_lazy,
        "recorded numpy": lambda: recorded(np.asarray),
        "recorded jax": lambda: recorded(to_jax),
        "episodes": one_by_one,
        "put together": lambda: concat([make_lazy((3, 1)), make_lazy((2, 6), seed=1)]).drop_vars("run"),
        "final": lambda: concat([one_by_one(), one_by_one().isel(episode=[2, 0])]),
    }
    lazy = makers[request.param]()
    loaded = lazy.copy(deep=True).load()
    assert not lazy["obs"].variable._in_memory
    assert isinstance(loaded["obs"].variable._data, np.ndarray)
    return lazy, loaded


def test_itself(pair):
    lazy, loaded = pair
    validate(lazy, deep=True)
    validate(loaded, deep=True)
    xr.testing.assert_identical(lazy, loaded)


P = {"episode": xr.DataArray([2, 0, 1], dims="p"), "time": xr.DataArray([0, 2, 1], dims="p")}
XARRAY = {
    "isel int": lambda ds: ds.isel(episode=2),
    "isel slice": lambda ds: ds.isel(episode=slice(1, None, 2), time=slice(0, 2)),
    "isel list": lambda ds: ds.isel(episode=[2, 0, 0], time=[1, -1], axis=[2, 0]),
    "isel bool": lambda ds: ds.isel(episode=(ds.length > 1).values),
    "isel points": lambda ds: ds.isel(P),
    "isel last transitions": lambda ds: ds.isel(time=ds.length - 1),
    "isel chain": lambda ds: ds.isel(episode=[2, 1, 0]).isel(time=slice(1, None)).isel(P | {"time": P["time"] - 1}),
    "sel": lambda ds: ds.sel(episode=2, time=1, axis="y"),
    "sel list": lambda ds: ds.sel(episode=[3, 1], time=slice(1, 2), axis=["z", "x"]),
    "sel points": lambda ds: ds.sel(P | {"axis": "x"}),
    "where": lambda ds: ds["action"].where(ds["mask"]),
    "where Dataset": lambda ds: ds.where(ds.length > 1),
    "where drop": lambda ds: ds.where(ds.length > 2, drop=True),
    "where other": lambda ds: ds["action"].where(ds["mask"], -1),
    "arithmetic": lambda ds: ds["obs"].isel(episode=1) + ds["obs"].isel(episode=0),
    "reduction": lambda ds: ds["obs"].where(ds["mask"]).mean(["episode", "time"]),
    "sorted": lambda ds: ds.sortby("length"),
    "transposed": lambda ds: ds.transpose("time", ..., "episode"),
    "head and tail": lambda ds: xr.concat([ds.head(episode=1), ds.tail(episode=1)], "episode", data_vars="all"),
    "stacked": lambda ds: ds[["obs", "img"]].stack(cell=("episode", "time")),
    "groupby": lambda ds: ds["reward"].groupby("env").max(),
    "rolling": lambda ds: ds["reward"].rolling(time=2).sum(),
    "shift and diff": lambda ds: ds["obs"].shift(time=1) - ds["obs"].diff("time"),
    "assign": lambda ds: ds.assign(speed=abs(ds.obs)).rename(obs="o"),
    "copied": lambda ds: ds.copy(deep=True),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:In a future version of xarray")
@pytest.mark.parametrize("do", XARRAY.values(), ids=XARRAY)
def test_xarray(pair, do):
    lazy, loaded = pair
    xr.testing.assert_identical(do(lazy), do(loaded))


def test_xarray_makes_the_same_table(pair):
    lazy, loaded = pair
    names = ["action", "reward"]
    pd.testing.assert_frame_equal(lazy[names].to_dataframe(), loaded[names].to_dataframe())


TRAJLAB = {
    "transitions": transitions,
    "transitions of a part": lambda ds: transitions(ds.isel(episode=[2, 0], time=slice(1, None))),
    "groupby": lambda ds: transitions(ds)["reward"].groupby("episode").sum(),
    "groupby iteration": lambda ds: transitions(ds)["obs"].groupby("iteration").mean(),
    "episode": lambda ds: episode(ds, 2),
    "final": lambda ds: episode(ds, int(ds.episode[ds.final_known][0]), final=True),
    "stack": stack_fields,
    "stack one": lambda ds: stack_fields(ds).sel(episode=2, time=1, field="obs[x]"),
    "stack points": lambda ds: stack_fields(ds, ["obs", "img"]).isel(P),
    "stack where": lambda ds: stack_fields(ds, "obs").where(lambda s: s.mask).mean("episode"),
    "concat": lambda ds: concat([ds, ds.isel(episode=[1])], run=["a", "b"]),
}  # fmt: skip


@pytest.mark.parametrize("do", TRAJLAB.values(), ids=TRAJLAB)
def test_trajlab(pair, do):
    lazy, loaded = pair
    xr.testing.assert_identical(do(lazy), do(loaded))


@pytest.mark.parametrize("do", [to_dataframe, episode_table, lambda ds: to_dataframe(ds.isel(episode=[2, 0]), "obs")])
def test_tables(pair, do):
    lazy, loaded = pair
    pd.testing.assert_frame_equal(do(lazy), do(loaded))


def test_plots(pair):
    lines = []
    for ds in pair:
        _, (left, right) = plt.subplots(1, 2)
        ds["obs"].isel(episode=2).plot.line(x="time", hue="axis", ax=left)
        ds["reward"].plot(ax=right)
        image = right.collections[0].get_array()
        lines.append(([line.get_ydata() for line in left.lines], left.get_xlabel(), left.get_ylabel(), image))
    (a, *labels, image_a), (b, *labels_b, image_b) = lines
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(image_a, image_b)
    assert labels == labels_b


@pytest.mark.parametrize("form", ["netcdf", "zarr"])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr (V|format )3 spec")
def test_files_come_back_equal(pair, tmp_path, form):
    lazy, loaded = pair
    for name, ds in (("lazy", lazy), ("loaded", loaded)):
        path = tmp_path / name
        if form == "netcdf":
            ds.to_netcdf(path, engine="h5netcdf")
            back = xr.open_dataset(path, engine="h5netcdf")
        else:
            ds.to_zarr(path)
            back = xr.open_zarr(path, chunks=None)
        with back:
            validate(back, deep=True)
            xr.testing.assert_equal(back, loaded)
            xr.testing.assert_equal(transitions(back), transitions(loaded))
            pd.testing.assert_frame_equal(episode_table(back), episode_table(loaded))
            assert numeric_dtypes(back) == numeric_dtypes(loaded)
            assert all(back[n].attrs == loaded[n].attrs for n in loaded.data_vars)
            assert dict(back.attrs) == dict(loaded.attrs)


def numeric_dtypes(ds):
    """Return dtypes but those of strings, which older Zarr gives back as objects."""
    return {name: v.dtype for name, v in ds.items() if v.dtype.kind not in "UOT"}


def test_pickling_loads(pair):
    lazy, loaded = pair
    back = pickle.loads(pickle.dumps(lazy))
    xr.testing.assert_identical(back, loaded)
    assert isinstance(back["obs"].variable._data, np.ndarray)
    selected = lazy.isel(P)
    xr.testing.assert_identical(pickle.loads(pickle.dumps(selected)), selected)


def test_dask(pair):
    lazy, loaded = pair
    chunked = lazy.chunk(episode=2)
    assert chunked["obs"].chunks is not None
    xr.testing.assert_identical(chunked.compute(), loaded)
    xr.testing.assert_allclose(mean_over_episodes(chunked).compute(), mean_over_episodes(loaded))
    xr.testing.assert_identical(transitions(chunked), transitions(loaded))
    xr.testing.assert_identical(stack_fields(chunked).load(), stack_fields(loaded).load())
    xr.testing.assert_identical(lazy.isel(P).chunk(p=2).compute(), loaded.isel(P))
    validate(chunked, deep=True)


def mean_over_episodes(ds):
    return ds["obs"].where(ds["mask"]).mean("episode")
