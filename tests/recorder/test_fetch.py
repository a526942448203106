"""What a Dataset fetches: nothing until it is read, and then hardly more than what was asked for."""

import copy
import pickle
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr
from chunks import assert_holds, host_bytes, make_chunk, random_key

import trajlab as tl
import trajlab.block.read
import trajlab.recorder.session
from trajlab.block.view import LogView
from trajlab.dataset.flat import iter_flat

pytestmark = pytest.mark.usefixtures("small_blocks")

FIELDS = ("serial", "obs.position", "obs.image", "action", "reward", "info.half", "info.lit", "terminated", "truncated")


class Gate:
    """Counts the bytes that pass `to_host`, those of flags apart."""

    def __init__(self):
        self.arrays, self.flags, self.is_shut = [], 0, False

    def __call__(self, array):
        if self.is_shut:
            raise PermissionError("the gate is shut")
        self.arrays.append(array)
        return np.asarray(array)

    def take_flags(self, array):
        self.flags += array.nbytes
        return np.asarray(array)

    def fetched(self, *results):
        """Return the bytes since the last call; `results` are what has been read, to write it in one line."""
        total = sum(array.nbytes for array in self.arrays)
        self.arrays.clear()
        return total


@pytest.fixture(params=["numpy", "jax", "jax on the device"])
def path(request, monkeypatch):
    """Where the rows lie and how they are read; a gate that counts; and a function that records rows."""
    gate = Gate()
    monkeypatch.setattr(trajlab.block.read, "to_host", gate)
    monkeypatch.setattr(trajlab.recorder.session, "to_host", gate.take_flags)
    if request.param == "jax on the device":
        monkeypatch.setattr(trajlab.block.read, "is_host_readable", lambda array: False)
    home = request.param.split()[0]

    def record(rows=60, **options):
        recorder = tl.Recorder(**options)
        for start in range(0, rows, 5):
            recorder.record(make_chunk(range(start, start + 5), home=home))
        return recorder

    # A gather on the device is padded to a power of two, so it moves less than twice the cells, block by block.
    return SimpleNamespace(gate=gate, record=record, slack=2 if "device" in request.param else 1, home=home)


# Nothing is fetched ------------------------------------------------------------------------------------------

LAZY = {
    "repr": repr,
    "html": lambda ds: ds._repr_html_(),
    "nbytes": lambda ds: ds.nbytes,
    "sizes and dtypes": lambda ds: (ds.sizes, ds.dtypes, {name: ds[name].dtype for name in ds}),
    "info": lambda ds: ds.info(buf=SimpleNamespace(write=lambda text: None)),
    "repr of a field": lambda ds: (repr(ds["obs.position"]), ds["obs.position"]._repr_html_()),
    "isel": lambda ds: ds.isel(episode=3),
    "isel of many": lambda ds: ds.isel(episode=slice(None, None, 2), time=[0, 1]).isel(episode=[1, 0]),
    "isel of points": lambda ds: ds.isel(episode=xr.DataArray([1, 2], dims="p"), time=xr.DataArray([0, 0], dims="p")),
    "sel": lambda ds: ds.sel(episode=3, time=slice(0, 2)),
    "filter by a coordinate": lambda ds: ds.isel(episode=np.flatnonzero(ds["length"] > 2)),
    "rename": lambda ds: ds.rename({"obs.position": "position", "time": "step"}),
    "copy": lambda ds: ds.copy(),
    "deep copy": lambda ds: (ds.copy(deep=True), copy.deepcopy(ds), ds["obs.position"].copy()),
    "drop": lambda ds: ds.drop_vars(["obs.position", "reward"]),
    "assign a coordinate": lambda ds: ds.assign_coords(kind=("episode", np.arange(ds.sizes["episode"]))),
    "assign attrs": lambda ds: ds.assign_attrs(note="x"),
    "pick fields": lambda ds: ds[["obs.position", "reward"]],
    "transpose": lambda ds: ds.transpose("time", "episode", ...),
    "coordinates": lambda ds: {name: ds[name].values for name in ds.coords},
    "iteration": lambda ds: ds["iteration"].values,
}


@pytest.mark.parametrize("what", LAZY)
def test_these_fetch_no_field(path, what):
    ds = path.record().to_dataset()
    result = LAZY[what](ds)
    assert path.gate.arrays == []
    for derived in [result] if isinstance(result, xr.Dataset) else []:
        repr(derived), derived._repr_html_(), derived.copy(deep=True), derived.nbytes
    assert path.gate.arrays == []


def test_building_fetches_only_flags_and_those_of_a_row_once(path):
    recorder = path.record()
    recorder.to_dataset()
    held = 60 * 3
    assert path.gate.arrays == []
    assert held <= path.gate.flags <= 2 * held
    path.gate.flags = 0
    recorder.to_dataset(incomplete="drop")
    assert (path.gate.arrays, path.gate.flags) == ([], 0)


# Hardly more than what was asked for -------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_one_episode(path, name):
    ds = path.record().to_dataset()
    whole = tl.Recorder.to_dataset(path.record())[name].values
    path.gate.fetched()
    for i in range(ds.sizes["episode"]):
        wanted = host_bytes(ds.isel(episode=[i]), name)
        for read in (
            ds[name].isel(episode=i),
            ds.sel(episode=ds["episode"][i])[name],
            ds[name][i, : ds["length"].values[i]],
        ):
            np.testing.assert_array_equal(read.values, whole[i, : read.sizes["time"]])
            assert wanted <= path.gate.fetched() <= path.slack * wanted


def test_one_value(path):
    ds = path.record().to_dataset()
    assert ds["serial"].isel(episode=4, time=0).item() == ds["start_row"].values[4]
    assert path.gate.fetched() == 4
    ds["obs.position"].isel({"episode": 2, "time": 0, "obs.position_dim_0": 1}).item()
    assert path.gate.fetched() == 4


def test_one_component(path):
    ds = path.record().to_dataset()
    image = ds["obs.image"]
    ds["obs.image"].isel({"episode": 1, "obs.image_dim_2": 0}).values  # noqa: B018
    assert path.gate.fetched() <= path.slack * int(ds["length"][1]) * 4
    picked = image.isel({"episode": 1, "obs.image_dim_0": [1, 0, 1], "obs.image_dim_2": slice(1, None)})
    wanted = int(ds["length"][1]) * 3 * 2 * 2
    assert path.gate.fetched(picked.values) <= path.slack * wanted
    np.testing.assert_array_equal(picked, image.values[1][:, [1, 0, 1], :, 1:])


def test_first_steps_of_all_episodes(path):
    ds = path.record().to_dataset()
    ds["obs.position"].isel(time=slice(0, 2)).values  # noqa: B018
    wanted = int(np.minimum(ds["length"], 2).sum()) * 12
    assert path.gate.fetched() <= path.slack * wanted


@pytest.mark.parametrize("name", FIELDS)
def test_the_last_transition_of_every_episode(path, name):
    ds = path.record().to_dataset()
    count = ds.sizes["episode"]
    episode = xr.DataArray(np.arange(count), dims="episode")
    last = ds[name].isel(episode=episode, time=ds["length"] - 1)
    assert path.gate.arrays == []
    got = last.values
    cell = host_bytes(ds.isel(episode=[0]), name) // int(ds["length"][0])
    assert count * cell <= path.gate.fetched() <= path.slack * count * cell
    whole = ds[name].values
    np.testing.assert_array_equal(got, whole[np.arange(count), ds["length"].values - 1])


def test_the_sum_of_two_fields_of_one_episode(path, monkeypatch):
    ds = path.record().to_dataset()
    read, names = LogView.read, set()
    monkeypatch.setattr(LogView, "read", lambda self, name, *args: names.add(name) or read(self, name, *args))
    total = ds["reward"].isel(episode=3) + ds["obs.position"].isel(episode=3)
    length = int(ds["length"][3])
    # xarray asks for the second operand twice: by hasattr(other, "data"), and then for its data.
    assert path.gate.fetched() <= path.slack * length * (4 + 2 * 12)
    assert names == {"reward", "obs.position"}
    np.testing.assert_array_equal(total[:length], (ds["reward"][3] + ds["obs.position"][3]).values[:length])


def test_loading_fetches_each_row_once(path):
    ds = path.record().to_dataset()[list(FIELDS)]
    wanted = sum(host_bytes(ds, name) for name in FIELDS)
    ds.load()
    fetched = path.gate.fetched()
    assert wanted <= fetched <= path.slack * wanted
    ds["obs.position"].values  # noqa: B018
    assert path.gate.fetched() == 0
    assert_holds(ds, range(60))


def test_flat_reading_fetches_no_padding(path):
    ds = path.record().to_dataset()
    seen = sum(len(batch.values["obs.position"]) for batch in iter_flat(ds, ["obs.position"]))
    assert seen == 60 * 3
    assert path.gate.fetched() <= path.slack * 60 * 3 * 12


def test_final_observations_of_one_episode(path):
    recorder = tl.Recorder()
    for start in range(0, 30, 5):
        chunk = make_chunk(range(start, start + 5), home=path.home)
        recorder.record(chunk | {"next_obs": chunk["obs"]})
    ds = recorder.to_dataset()
    assert path.gate.arrays == []
    got = ds["final_obs.position"].isel(episode=2).values
    assert path.gate.fetched() == 12
    np.testing.assert_array_equal(got, ds["obs.position"].values[2, int(ds["length"][2]) - 1])


# Out of range ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["serial", "obs.position", "iteration", "mask"])
@pytest.mark.parametrize("bad", [10**6, -(10**6), [0, 10**6], [0, -(10**6)]])
@pytest.mark.parametrize("dim", ["episode", "time"])
def test_out_of_range_raises(path, name, bad, dim):
    field = path.record().to_dataset()[name]
    with pytest.raises(IndexError, match="out of (range|bounds)"):
        field.isel({dim: bad}).values  # noqa: B018
    with pytest.raises(IndexError, match="out of (range|bounds)"):
        field.isel(episode=xr.DataArray(np.atleast_1d(bad), dims="p")).values  # noqa: B018
    assert path.gate.arrays == []


@pytest.mark.parametrize("bad", [3, -4, [0, 3]])
def test_components_out_of_range_raise(path, bad):
    field = path.record().to_dataset()["obs.position"]
    for key in (bad, xr.DataArray(np.atleast_1d(bad), dims="p")):
        with pytest.raises(IndexError, match="out of (range|bounds)"):
            field.isel({"obs.position_dim_0": key}).values  # noqa: B018
    assert path.gate.arrays == []


# One gate, two paths -----------------------------------------------------------------------------------------

READS = {
    "values": lambda ds: ds["obs.position"].values,
    "one episode": lambda ds: ds["serial"].isel(episode=1).values,
    "points": lambda ds: (
        ds["serial"].isel(episode=xr.DataArray([0, 1], dims="p"), time=xr.DataArray([0, 0], dims="p")).values
    ),
    "load": lambda ds: ds.load(),
    "compute": lambda ds: ds["reward"].compute(),
    "pickle": lambda ds: pickle.dumps(ds["reward"]),
    "sum": lambda ds: ds["reward"].sum(),
    "where": lambda ds: ds["reward"].where(ds["mask"]),
    "equals": lambda ds: ds["action"].equals(ds["action"] + 0),
    "flat": lambda ds: list(iter_flat(ds, ["action"])),
    "flat cells": lambda ds: list(iter_flat(ds.isel(episode=[2, 1]), ["action"])),
    "to_dataframe": lambda ds: ds[["reward"]].to_dataframe(),
    "sorted": lambda ds: ds.sortby("length", ascending=False)["reward"].values,
    "concat": lambda ds: xr.concat([ds[["reward"]], ds[["reward"]]], "episode"),
}


@pytest.mark.parametrize("what", READS)
def test_nothing_passes_beside_the_gate(path, what):
    ds = path.record().to_dataset()
    READS[what](ds.copy())
    path.gate.is_shut = True
    with pytest.raises(PermissionError, match="the gate is shut"):
        READS[what](ds)


@pytest.mark.parametrize("name", ["serial", "obs.position", "obs.image"])
def test_every_way_of_indexing_gives_what_the_loaded_field_gives(path, name):
    field = path.record().to_dataset()[name]
    loaded = field.copy(deep=True).load()
    rng = np.random.default_rng(0)
    for _ in range(25):
        keys = {dim: random_key(rng, size) for dim, size in field.sizes.items()}
        lazy = field.isel(keys)
        xr.testing.assert_identical(lazy.compute(), loaded.isel(keys))
        points = {dim: xr.DataArray(rng.integers(0, size, 5), dims="p") for dim, size in lazy.sizes.items() if size}
        some = dict(list(points.items())[: rng.integers(1, 3)])
        if some:
            xr.testing.assert_identical(lazy.isel(some).compute(), loaded.isel(keys).isel(some))


def test_all_fields_are_equal_on_the_device_path(monkeypatch):
    recorder = tl.Recorder()
    for start in range(0, 60, 5):
        chunk = make_chunk(range(start, start + 5), home="jax")
        recorder.record(chunk | {"key": jax.random.split(jax.random.key(start), (5, 3))})
    ds = recorder.to_dataset()
    want = ds.copy().load()
    monkeypatch.setattr(trajlab.block.read, "is_host_readable", lambda array: False)
    xr.testing.assert_identical(ds.compute(), want)
    assert_holds(ds.drop_vars("key"), range(60))


def test_new_lengths_rarely_compile(monkeypatch):
    monkeypatch.setattr(trajlab.block.read, "is_host_readable", lambda array: False)
    recorder = tl.Recorder()
    recorder.record(make_chunk(range(64), home="jax"))
    field = recorder.to_dataset()["serial"]
    before = trajlab.block.read._take._cache_size()
    for episodes in range(1, 40):
        field.isel(episode=slice(0, episodes), time=0).values  # noqa: B018
    assert trajlab.block.read._take._cache_size() - before <= 7
