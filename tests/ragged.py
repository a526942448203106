"""Random ragged episodes, the same data in every form a Dataset can have, and plain loops over it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from hypothesis import strategies as st

import trajlab as tl

FIELDS = ("action", "reward", "obs", "pair", "flag", "byte")


def make_episodes(lengths, seed=0):
    """Return episodes as dicts of arrays whose values come from few numbers, so that ties occur."""
    rng = np.random.default_rng(seed)
    return [
        {
            "action": rng.integers(-2, 4, n).astype(np.int32),
            "reward": rng.integers(-3, 4, n).astype(np.float32) / 2,
            "obs": (rng.normal(size=(n, 3)) + np.array([0, 100, 0])).astype(np.float32),
            "pair": rng.integers(0, 3, (n, 2)).astype(np.int8),
            "flag": rng.random(n) < 0.5,
            "byte": rng.integers(0, 256, n).astype(np.uint8),
        }
        for n in lengths
    ]


def actions(*episodes, dtype=np.int32, **options):
    """Make a Dataset of the field `action`."""
    return tl.from_episodes([{"action": np.array(e, dtype)} for e in episodes], **options)


def heights(*episodes, dtype=np.float64, **options):
    """Make a Dataset of the field `height`."""
    return tl.from_episodes([{"height": np.array(e, dtype)} for e in episodes], **options)


def make_dataset(lengths, seed=0):
    """Return a lazy Dataset of such episodes; every third is cut."""
    reasons = ["cut" if i % 3 == 2 else "terminated" for i in range(len(lengths))]
    episodes = make_episodes(lengths or [1], seed)
    ds = tl.from_episodes(
        episodes,
        end_reason=reasons or ["cut"],
        env=[i % 4 for i in range(len(episodes))],
        iteration=[i // 2 for i in range(len(episodes))],
    )
    return ds if lengths else ds.isel(episode=slice(0, 0))


def dirty(ds, junk=1e9):
    """Return a loaded copy whose padding holds `junk`, or what comes nearest to it."""
    ds = ds.load().copy(deep=True)
    padding = ~ds.mask.values
    for name in [*FIELDS, "iteration"]:
        values = ds[name].values
        if values.dtype.kind == "b":
            values[padding] = True
        elif values.dtype.kind in "iu":
            values[padding] = 3
        else:
            values[padding] = junk
    return ds


FORMS = ("lazy", "loaded", "nan", "inf", "1e9", "dask", "file", "strided", "shuffled")


def in_form(ds, form, tmp_path=None):
    """Return the same episodes (in another order for `shuffled`) in one of `FORMS`."""
    if form == "lazy":
        return ds
    if form == "loaded":
        return ds.load()
    if form in ("nan", "inf", "1e9"):
        return dirty(ds, float(form))
    if form == "dask":
        return ds.chunk(episode=2, time=3)
    if form == "file":
        ds.to_netcdf(tmp_path / "ds.nc", engine="h5netcdf")
        return xr.open_dataset(tmp_path / "ds.nc", engine="h5netcdf")
    if form == "strided":
        padded = ds.load().pad(time=(0, 1), constant_values=0)[[*FIELDS, "iteration"]]
        wide = {name: variable.astype(ds[name].dtype).variable for name, variable in padded.data_vars.items()}
        return ds.assign({name: variable[:, :-1] for name, variable in wide.items()})
    return ds.isel(episode=np.random.default_rng(1).permutation(ds.sizes["episode"]))


def rows_at(ds, field, time):
    """Return the values of a field at one step (label), over the episodes longer than it, as float64."""
    lengths = ds["length"].values
    place = int(np.flatnonzero(ds["time"].values == time)[0])
    values = np.asarray(ds[field].values)
    return np.array([values[e, place] for e in range(len(lengths)) if lengths[e] > time], np.float64)


def flat(ds, field):
    """Return all transitions of a field, episode after episode."""
    lengths, values = ds["length"].values, np.asarray(ds[field].values)
    parts = [values[e][ds["time"].values < lengths[e]] for e in range(len(lengths))]
    return np.concatenate(parts) if parts else values.reshape(0, *values.shape[2:])


lengths = st.lists(st.integers(1, 6), max_size=7)
