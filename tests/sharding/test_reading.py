"""Reading split environments fetches what is asked for, from the devices that hold it, and leaves the log alone."""

import jax
import numpy as np
import pytest
import xarray as xr
from chunks import assert_holds, host_bytes, make_chunk, random_key
from sharding.meshes import blocks_of, make_mesh, pointers, put

import trajlab as tl
import trajlab.block.read
from trajlab.block.read import gather, read_rows
from trajlab.dataset.flat import iter_flat

pytestmark = pytest.mark.usefixtures("small_blocks")

N = 16
FIELDS = ("serial", "obs.image", "reward")


def record(mesh, *spec, rows=60, image=(), **options):
    """Record rows; `image` says how the image is split where it is not as the rest."""
    recorder = tl.Recorder(**options)
    for row in range(0, rows, 5):
        chunk = put(make_chunk(range(row, row + 5), N, home="jax", only=FIELDS), mesh, *spec)
        if image:
            chunk["obs"] = put(chunk["obs"], mesh, *image)
        recorder.record(chunk)
    return recorder


class Gate:
    """What has been fetched: bytes, and the devices whose arrays were touched."""

    def __init__(self, monkeypatch):
        self.bytes, self.devices = 0, set()
        to_host, host_view, take, cut = (
            getattr(trajlab.block.read, name) for name in ("to_host", "host_view", "_take", "_slice")
        )

        def look(function):
            def call(array, *args, **kwargs):
                self.devices |= array.devices()
                return function(array, *args, **kwargs)

            return call

        def count(array):
            self.bytes += array.nbytes
            return to_host(array)

        monkeypatch.setattr(trajlab.block.read, "to_host", count)
        for name, function in (("host_view", host_view), ("_take", take), ("_slice", cut)):
            monkeypatch.setattr(trajlab.block.read, name, look(function))

    def fetched(self, *results):
        """Return the bytes and the number of devices since the last call."""
        out = self.bytes, len(self.devices)
        self.bytes, self.devices = 0, set()
        return out


@pytest.fixture(params=[("auto", "by view"), ("explicit", "on the device")], ids=", ".join)
def how(request):
    """The kind of mesh and the way of reading, which know nothing of each other."""
    return request.param


@pytest.fixture
def kind(how):
    return how[0]


@pytest.fixture
def gate(how, monkeypatch):
    is_on_device = how[1] == "on the device"
    if is_on_device:
        monkeypatch.setattr(trajlab.block.read, "is_host_readable", lambda array: isinstance(array, np.ndarray))
    gate = Gate(monkeypatch)
    gate.slack = 2 if is_on_device else 1
    return gate


# How much, and from where ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_one_episode_comes_from_the_one_device_that_holds_it(mesh, gate, name):
    ds = record(mesh, None, "d").to_dataset()
    whole = record(mesh, None, "d").to_dataset()[name].values
    gate.fetched()
    for i in range(0, ds.sizes["episode"], 7):
        wanted = host_bytes(ds.isel(episode=[i]), name)
        read = ds[name].isel(episode=i)
        assert gate.fetched() == (0, 0)
        np.testing.assert_array_equal(read.values, whole[i, : read.sizes["time"]])
        size, devices = gate.fetched()
        assert wanted <= size <= gate.slack * wanted
        assert devices == 1


def test_one_component(mesh, gate):
    ds = record(mesh, None, "d").to_dataset()
    gate.fetched(ds["obs.image"].isel({"episode": 1, "obs.image_dim_2": 0}).values)
    picked = ds["obs.image"].isel({"episode": 1, "obs.image_dim_0": [1, 0, 1], "obs.image_dim_2": slice(1, None)})
    size, devices = gate.fetched(picked.values)
    assert size <= gate.slack * int(ds["length"][1]) * 3 * 2 * 2
    assert devices == 1


def test_loading_fetches_each_row_once(mesh, gate):
    ds = record(mesh, None, "d").to_dataset()[list(FIELDS)]
    wanted = sum(host_bytes(ds, name) for name in FIELDS)
    ds.load()
    size, devices = gate.fetched()
    assert wanted <= size <= gate.slack * wanted
    assert devices == 8
    assert_holds(ds.assign(record(mesh, None, "d").to_dataset()[["terminated", "truncated"]]), range(60), N)


def test_flat_reading(mesh, gate):
    ds = record(mesh, None, "d").to_dataset()
    seen = [batch.values["serial"] for batch in iter_flat(ds, ["serial"])]
    assert np.sort(np.concatenate(seen)).tolist() == np.repeat(np.arange(60), N).tolist()
    assert gate.fetched() == (60 * N * 4, 8)


@pytest.mark.parametrize("read", [lambda ds: ds["serial"].values, lambda ds: list(iter_flat(ds, ["serial"]))])
def test_what_every_device_holds_comes_from_one(mesh, gate, read):
    ds = record(mesh).to_dataset()
    read(ds)
    size, devices = gate.fetched()
    assert 60 * N * 4 <= size <= gate.slack * 60 * N * 4
    assert devices == 1


def test_copies_along_another_mesh_axis_are_read_once(kind, gate):
    ds = record(make_mesh(kind, (4, 2)), None, "d").to_dataset()
    ds["serial"].values  # noqa: B018
    size, devices = gate.fetched()
    assert 60 * N * 4 <= size <= gate.slack * 60 * N * 4
    assert devices == 4


# Cells that are split themselves -----------------------------------------------------------------------------


@pytest.mark.parametrize("image", [(None, "d"), (None, "d", "m")], ids=str)
def test_every_way_of_indexing_gives_what_the_loaded_field_gives(kind, gate, image):
    field = record(make_mesh(kind, (4, 2)), None, "d", rows=30, image=image).to_dataset()["obs.image"]
    loaded = field.copy(deep=True).load()
    rng = np.random.default_rng(0)
    for _ in range(6):
        keys = {dim: random_key(rng, size) for dim, size in field.sizes.items()}
        lazy = field.isel(keys)
        xr.testing.assert_identical(lazy.compute(), loaded.isel(keys))
        points = {dim: xr.DataArray(rng.integers(0, size, 5), dims="p") for dim, size in lazy.sizes.items() if size}
        some = dict(list(points.items())[: rng.integers(1, 3)])
        if some:
            xr.testing.assert_identical(lazy.isel(some).compute(), loaded.isel(keys).isel(some))


def test_one_episode_of_split_cells_fetches_its_cells(kind, gate):
    ds = record(make_mesh(kind, (4, 2)), None, "d", image=(None, "d", "m")).to_dataset()
    wanted = host_bytes(ds.isel(episode=[3]), "obs.image")
    gate.fetched(ds["obs.image"].isel(episode=3).values)
    ds["obs.image"].isel(episode=3).values  # noqa: B018
    size, devices = gate.fetched()
    assert wanted <= size <= gate.slack * wanted
    assert devices == 2


@pytest.mark.parametrize("spec", [("d",), ("d", "m"), (None, "m", "d"), ()], ids=str)
def test_arrays_split_in_any_way(kind, gate, spec):
    whole = np.arange(8 * 8 * 8).reshape(8, 8, 8).astype(np.int32)
    array = put(jax.numpy.asarray(whole), make_mesh(kind, (4, 2)), *spec)
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 8, (2, 30))
    np.testing.assert_array_equal(gather(array, rows, columns), whole[rows, columns])
    np.testing.assert_array_equal(gather(array, rows, columns, ([3, 5],)), whole[rows, columns][:, [3, 5]])
    np.testing.assert_array_equal(gather(array, rows, columns, (6,)), whole[rows, columns, 6])
    assert gather(array, rows[:0], columns[:0]).shape == (0, 8)
    for start, stop in ((0, 8), (1, 2), (3, 7), (4, 4)):
        np.testing.assert_array_equal(read_rows(array, start, stop, copy=True), whole[start:stop])


# The log is left alone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [(None, "d"), ()], ids=str)
def test_reads_of_an_open_block_do_not_make_jax_copy_it(mesh, gate, spec):
    recorder = record(mesh, *spec, rows=25)
    (block,) = blocks_of(recorder)[1:]
    before = pointers(block)
    kept = []
    for row in range(25, 40, 5):
        ds = recorder.to_dataset()
        kept += [ds["serial"].isel(episode=[0, -1]).values, ds["serial"].values]
        kept += [batch.values["serial"] for batch in iter_flat(ds, ["serial"])]
        view = ds["serial"].variable._data.array.source.view
        kept.append(view.read_rows("serial", block, 20, row))
        recorder.record(put(make_chunk(range(row, row + 5), N, home="jax", only=FIELDS), mesh, *spec))
        assert pointers(block) == before
    assert kept[-1][:, 0].tolist() == list(range(20, 35))


def test_rows_read_cannot_be_written(mesh):
    recorder = record(mesh)
    view = recorder.to_dataset()["serial"].variable._data.array.source.view
    (_, *span), *_ = view.spans()
    assert not view.read_rows("serial", view.blocks[0], *span).flags.writeable
    loaded = recorder.to_dataset().load()
    loaded["serial"].values[...] = 0
    assert recorder.to_dataset()["serial"].values.any()


def test_reading_within_the_context_of_a_mesh(mesh, gate):
    recorders = [record(mesh, None, "d", rows=20), tl.Recorder()]
    recorders[1].record(make_chunk(range(20), N, home="jax", only=FIELDS))
    with jax.set_mesh(mesh):
        for ds in (recorder.to_dataset() for recorder in recorders):
            list(iter_flat(ds, ["serial"]))
            assert_holds(ds, range(20), N)
        assert jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
