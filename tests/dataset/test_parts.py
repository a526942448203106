"""Parts of a Dataset: each episode once, and what each part shows is what the whole shows."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr
from chunks import random_rollout
from ragged import make_dataset

import trajlab as tl
from trajlab.dataset import parts
from trajlab.dataset.flat_array import FlatArray, FlatWhenRead
from trajlab.dataset.lazy import lazy_base


def recorded(autoreset="same_step"):
    """Return a lazy Dataset of rows of a log, with fields of several shapes."""
    chunk = random_rollout(0, ends=0.1)
    chunk["grid"] = np.random.default_rng(0).integers(0, 255, (40, 5, 2, 3), np.uint8)
    recorder = tl.Recorder(convention=tl.Convention(autoreset=autoreset))
    for part in (slice(0, 15), slice(15, 40)):
        recorder.record({name: rows[part] for name, rows in chunk.items()})
    return recorder.to_dataset()


@pytest.mark.parametrize("few_fields", [True, False])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
@pytest.mark.parametrize(("most", "at_once"), [(300, 2**28), (2**25, 2**28), (2000, 1000)])
@pytest.mark.parametrize("in_memory", [[], ["obs", "mask"]])
def test_parts_are_the_whole(monkeypatch, few_fields, autoreset, most, at_once, in_memory):
    monkeypatch.setattr(parts, "MAX_BYTES", most)
    monkeypatch.setattr(parts, "MAX_AT_ONCE", at_once)
    ds = recorded(autoreset)
    ds = ds.isel(episode=np.random.default_rng(1).permutation(ds.sizes["episode"])[1:])
    for name in in_memory:
        ds[name].load()
    seen = []
    for episodes, part in parts.iter_parts(ds, few_fields=few_fields):
        want = ds.isel(episode=episodes, time=slice(0, int(ds["length"][episodes].max())))
        xr.testing.assert_identical(part.load(), want.load())
        seen += episodes.tolist()
    assert sorted(seen) == list(range(ds.sizes["episode"]))


@pytest.mark.parametrize("few_fields", [True, False])
def test_of_what_is_in_memory_no_more_than_a_part_is_copied(monkeypatch, few_fields):
    monkeypatch.setattr(parts, "MAX_BYTES", 2**17)
    ds = tl.from_episodes([{"x": np.zeros((n, 10))} for n in [2000, *[5] * 40]]).load()
    tracemalloc.start()
    for _ in parts.iter_parts(ds, few_fields=few_fields):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * ds["x"].nbytes


def test_a_field_is_read_once_and_only_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(parts, "MAX_BYTES", 300)
    read, real = [], parts.read_flat
    monkeypatch.setattr(parts, "read_flat", lambda ds, names: read.extend(names) or real(ds, names))
    monkeypatch.setattr(parts, "MAX_AT_ONCE", 40 * 5 * 4)  # not the observations
    found = [part["reward"].values.sum() for _, part in parts.iter_parts(recorded(), few_fields=True)]
    assert len(found) > 2
    assert read == ["reward"]
    _, part = next(parts.iter_parts(recorded(), few_fields=True))
    bases = {name: lazy_base(part.variables[name])[0] for name in ("reward", "obs")}
    assert isinstance(bases["reward"], FlatWhenRead)
    assert not isinstance(bases["obs"], FlatArray)


@pytest.mark.parametrize(
    "keys",
    [
        {"episode": slice(1, 4)},
        {"episode": slice(1, 4), "time": slice(0, 5)},
        {"episode": slice(0, 2), "obs_dim_0": 1},
        {"episode": slice(0, 4, 2), "time": slice(0, 6)},
        {"episode": slice(2, 3), "time": slice(0, 2)},
        {"episode": slice(0, 3), "time": slice(1, 6)},
        {"episode": slice(0, 3), "obs_dim_0": [2, 0]},
        {"episode": slice(2, 2)},
    ],
)
def test_neighbouring_episodes_are_copied_as_they_lie(keys):
    ds = make_dataset([4, 1, 6, 2, 5])
    array = tl.return_to_go(ds, reward="obs")
    assert isinstance(lazy_base(array.variable)[0], FlatArray)
    xr.testing.assert_identical(array.isel(keys), array.load().isel(keys))
