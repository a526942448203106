"""Several runs put together: their labels, and recordings that stay in their files until they are read."""

import contextlib

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from chunks import random_rollout
from xarray.backends.h5netcdf_ import H5NetCDFArrayWrapper
from xarray.backends.zarr import ZarrArrayWrapper

import trajlab as tl
from trajlab.dataset import flat
from trajlab.dataset.concat import concat

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr (V|format )3 spec")

RUNS = ["sac", "ppo", "a2c"]
ENDS = {"sac": 0.05, "ppo": 0.1, "a2c": 0.3}


def recorded(number):
    """Return the lazy Dataset of a recorder, of two chunks."""
    recorder = tl.Recorder()
    for chunk in range(2):
        recorder.record(random_rollout(10 * number + chunk, ENDS[RUNS[number]], envs=4))
    return recorder.to_dataset()


@pytest.fixture(scope="module")
def parts():
    return [recorded(number) for number in range(3)]


@pytest.fixture(scope="module")
def files(parts, tmp_path_factory):
    """Each part in a netCDF file, in chunks, and in a Zarr store."""
    folder = tmp_path_factory.mktemp("runs")
    for number, part in enumerate(parts):
        steps = part.sizes["time"]
        sizes = {"action": (8, steps), "reward": (8, steps), "obs": (8, steps, 2)}
        netcdf = {name: {"chunksizes": size} for name, size in sizes.items()}
        part.to_netcdf(folder / f"{number}.nc", engine="h5netcdf", encoding=netcdf)
        part.to_zarr(folder / f"{number}.zarr", encoding={name: {"chunks": size} for name, size in sizes.items()})
    return folder


STORAGE = ("recorded", "loaded", "netcdf", "netcdf in dask", "zarr", "zarr in dask", "mixed")


def opened(storage, parts, files, stack):
    """Return the parts as they are opened; files are closed with the stack."""

    def one(number, kind):
        match kind:
            case "recorded":
                return parts[number]
            case "loaded":
                return parts[number].copy().load()
            case "netcdf" | "netcdf in dask":
                chunks = {} if "dask" in kind else None
                return stack.enter_context(xr.open_dataset(files / f"{number}.nc", engine="h5netcdf", chunks=chunks))
            case _:
                options = {} if "dask" in kind else {"chunks": None}
                return stack.enter_context(xr.open_zarr(files / f"{number}.zarr", **options))

    kinds = ("recorded", "netcdf", "zarr in dask") if storage == "mixed" else (storage,) * 3
    return [one(number, kind) for number, kind in enumerate(kinds)]


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def reads(monkeypatch):
    """Which values were read of files: by variable, how many, and in one entry for each read."""
    found = {}

    def spy(cls, method, name_of):
        plain = getattr(cls, method)

        def read(self, key):
            values = plain(self, key)
            found.setdefault(name_of(self), []).append(np.size(values))
            return values

        monkeypatch.setattr(cls, method, read)

    spy(H5NetCDFArrayWrapper, "_getitem", lambda array: array.variable_name)
    for method in ("_getitem", "_oindex", "_vindex"):
        spy(ZarrArrayWrapper, method, lambda array: array._array.basename)
    return found


ANALYSES = {
    "histogram": lambda ds: tl.action_histogram(ds, by="run"),
    "bins": lambda ds: tl.action_histogram(ds, "obs", by="run", bins=[-2, -1, 0, 1, 2]),
    "trace": lambda ds: tl.state_trace(ds, "obs", by="run"),
    "returns": lambda ds: tl.returns(ds, discount=0.9),
}
READ = {"histogram": "action", "bins": "obs", "trace": "obs", "returns": "reward"}


def assert_same(got, want):
    xr.testing.assert_allclose(got, want, rtol=1e-12)
    assert got.drop_attrs().coords.to_dataset().equals(want.drop_attrs().coords.to_dataset())


# Files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGE)
def test_every_analysis_is_the_same_however_runs_are_stored(storage, parts, files, stack):
    whole, want = concat(opened(storage, parts, files, stack), run=RUNS), concat(parts, run=RUNS)
    tl.validate(whole, deep=True)
    for name, analysis in ANALYSES.items():
        assert_same(analysis(whole), analysis(want)), name
    pd.testing.assert_frame_equal(tl.episode_table(whole), tl.episode_table(want), check_dtype=False)
    # Zarr may give variables in another order.
    pd.testing.assert_frame_equal(tl.to_dataframe(whole), tl.to_dataframe(want), check_dtype=False, check_like=True)


@pytest.mark.parametrize("storage", STORAGE)
def test_every_run_is_as_by_itself(storage, parts, files, stack):
    whole = concat(opened(storage, parts, files, stack), run=RUNS)
    counts, trace = ANALYSES["histogram"](whole), ANALYSES["trace"](whole)
    returns = tl.returns(whole)
    assert counts["run"].values.tolist() == trace["run"].values.tolist() == RUNS
    for run, part in zip(RUNS, parts, strict=True):
        assert counts["count"].sel(run=run).values.tolist() == tl.action_histogram(part)["count"].values.tolist()
        alone = tl.state_trace(part, "obs")
        mine = trace.sel(run=run)
        assert mine["n"].values[part.sizes["time"] :].sum() == 0
        for name in ("mean", "std", "n", "quantiles"):
            np.testing.assert_allclose(mine[name].sel(time=alone["time"]), alone[name], rtol=1e-9, atol=1e-12)
        assert returns.values[whole["run"].values == run].tolist() == tl.returns(part).values.tolist()


@pytest.mark.parametrize("storage", ["netcdf", "netcdf in dask", "zarr", "zarr in dask", "mixed"])
@pytest.mark.parametrize("max_bytes", [flat.MAX_BYTES, 4000], ids=["one batch", "many batches"])
def test_only_what_is_asked_for_is_read_and_once(storage, max_bytes, parts, files, stack, reads, monkeypatch):
    monkeypatch.setattr(flat, "MAX_BYTES", max_bytes)
    fields = {"obs", "action", "reward", "terminated", "truncated", "iteration", "mask"}
    given = opened(storage, parts, files, stack)
    whole = concat(given, run=RUNS)
    repr(whole), whole._repr_html_()
    assert not fields & set(reads)
    in_files = [part for part, one in zip(parts, given, strict=True) if one is not part]
    for name, analysis in ANALYSES.items():
        reads.clear()
        analysis(whole)
        assert fields & set(reads) == {READ[name]}
        held = sum(int(part["mask"].sum()) for part in in_files)
        stored = sum(int(part[READ[name]].size) for part in in_files)
        width = stored // sum(int(part["mask"].size) for part in in_files)
        assert held * width <= sum(reads[READ[name]]) <= stored
        if max_bytes == 4000:
            assert len(reads[READ[name]]) > len(in_files)
    assert not any(part["obs"].variable._in_memory for part in given)


@pytest.mark.parametrize("storage", ["recorded", "netcdf", "zarr", "mixed"])
@pytest.mark.parametrize("target", ["netcdf", "zarr"])
def test_the_whole_goes_to_a_file_and_back(storage, target, parts, files, tmp_path, stack, reads):
    whole = concat(opened(storage, parts, files, stack), run=RUNS)
    path = tmp_path / "whole"
    if target == "netcdf":
        whole.to_netcdf(path, engine="h5netcdf")
        times = 1 if xr.__version__ >= "2026" else 3  # older ones read each variable three times to write it
        assert not [name for name in ("obs", "action") if sum(reads.get(name, [])) > times * whole[name].size]
        back = stack.enter_context(xr.open_dataset(path, engine="h5netcdf"))
    else:
        whole.to_zarr(path)
        back = stack.enter_context(xr.open_zarr(path))
    tl.validate(back, deep=True)
    assert back["run"].values.tolist() == whole["run"].values.tolist()
    for analysis in ANALYSES.values():
        assert_same(analysis(back), analysis(whole))
    pd.testing.assert_frame_equal(tl.episode_table(back), tl.episode_table(whole), check_dtype=False)


@pytest.mark.parametrize("labels", [RUNS, [1e-4, 3e-4, 1e-3], [7, 0, 3], [2, True, 0.5]], ids=str)
def test_labels_in_files(labels, parts, tmp_path):
    for label, part in zip(labels, parts, strict=True):
        concat([part], run=[label]).to_netcdf(tmp_path / f"{label}.nc", engine="h5netcdf")
    with contextlib.ExitStack() as stack:
        paths = [tmp_path / f"{label}.nc" for label in labels]
        again = concat([stack.enter_context(xr.open_dataset(path, engine="h5netcdf")) for path in paths])
        want = concat(parts, run=labels)
        assert again["run"].values.tolist() == want["run"].values.tolist()
        assert again["run"].dtype.kind == want["run"].dtype.kind
        assert_same(tl.action_histogram(again, by="run"), tl.action_histogram(want, by="run"))


# Labels ---------------------------------------------------------------------------------------------------------


def test_labels_of_any_list(make):
    parts = [make((1,)), make((1,))]
    for run in (
        range(2),
        np.array([0, 1]),
        pd.Index([0, 1]),
        (label for label in (0, 1)),
        xr.DataArray([0, 1]),
        {0: 1, 1: 2}.keys(),
    ):
        assert concat(parts, run=run)["run"].values.tolist() == [0, 1]
    assert concat(parts, run=["a", 0.5])["run"].values.tolist() == ["a", "0.5"]


@pytest.mark.parametrize(
    "run", [{"a", "b"}, {"a": 0, "b": 1}, 5, "ab", (label for label in "abc")], ids=lambda run: type(run).__name__
)
def test_labels_without_an_order_or_number_are_refused(make, run):
    with pytest.raises(ValueError, match="expected a list of 2 labels, one for each Dataset"):
        concat([make((1,)), make((1,))], run=run)


@pytest.mark.parametrize(
    ("run", "error", "match"),
    [
        ([1, "1"], ValueError, "cannot be told apart as an array of <U"),
        ([2**70, 1], ValueError, "cannot be told apart as an array of object; give them all as text"),
        ([2**53, 2**53 + 1, 0.5], ValueError, "cannot be told apart as an array of float64"),
        ([np.nan, 1], ValueError, "run label nan names no run"),
        ([b"a", b"b"], TypeError, "run label b'a' is a bytes; expected text or a number"),
        ([1j, 2j], TypeError, "is a complex"),
        ([[0], [1]], TypeError, "is a list"),
    ],
)
def test_labels_that_are_none(make, run, error, match):
    with pytest.raises(error, match=match):
        concat([make((1,))] * len(run), run=run)


def test_old_labels_of_two_kinds_that_would_be_one_are_refused(make):
    one, two = concat({1: make((1,))}), concat({"1": make((1,))})
    with pytest.raises(ValueError, match="give 2 labels with run="):
        concat([one, two])
    assert concat([one, concat({1.5: make((1,))})])["run"].values.tolist() == [1, 1.5]


def test_a_dataset_without_an_episode_needs_no_label(make):
    named, none = concat({"a": make((1,))}), make((1,)).isel(episode=[])
    assert concat([named, none])["run"].values.tolist() == ["a"]
    assert concat([make((1,)), none, make((1,))])["run"].values.tolist() == [0, 2]
    assert concat({"a": make((1,)), "b": none})["run"].values.tolist() == ["a"]


def test_text_from_files_is_text(make):
    named = concat({"a": make((1,)), "b": make((1,))})
    objects = named.assign_coords(run=("episode", np.array(["c", "d"], object)))
    assert concat([named, objects])["run"].dtype.kind == "U"
