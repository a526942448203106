"""Chunks in which every cell says where it stands, and the check that a Dataset holds exactly the rows it should.

A row has a serial number. Every field's cell follows from its row's serial number and its environment, so a
Dataset can be checked against nothing but the serial numbers that were recorded, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import xarray as xr

BOTH: dict[str, tuple[tuple[int, ...], Any]] = {
    "serial": ((), np.int32),
    "obs.position": ((3,), np.float32),
    "obs.image": ((2, 2, 3), np.uint8),
    "action": ((), np.int32),
    "reward": ((), np.float32),
    "info.half": ((2,), np.float16),
    "info.lit": ((), np.bool_),
}
NUMPY_ONLY: dict[str, tuple[tuple[int, ...], Any]] = {"stamp": ((), np.int64), "label": ((), np.dtype("<U8"))}
JAX_ONLY: dict[str, tuple[tuple[int, ...], Any]] = {"brain": ((2,), ml_dtypes.bfloat16)}
FLAGS = ("terminated", "truncated")
HOMES = ("numpy", "jax", "mixed", "flags_numpy")
"""Where a chunk's arrays live; of a mixed one every other field, flags included, is a JAX array."""


def fields_of(home: str) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the fields that a chunk has, as inner shape and dtype."""
    return BOTH | {"numpy": NUMPY_ONLY, "jax": JAX_ONLY}.get(home, NUMPY_ONLY | JAX_ONLY)


def values(name: str, serials: Any, envs: Any) -> np.ndarray:
    """Return a field's cells, or a flag's, at serial numbers and environments that broadcast together."""
    serials, envs = np.broadcast_arrays(np.asarray(serials, np.int64), np.asarray(envs, np.int64))
    if name in FLAGS:
        ended = (serials * 3 + envs * 5) % 7 == 0
        return ended & ((serials % 2 == 0) == (name == "terminated"))
    fields = BOTH | NUMPY_ONLY | JAX_ONLY
    inner, dtype = fields[name]
    if name == "serial":
        return serials.astype(dtype)
    place = list(fields).index(name)
    component = np.arange(int(np.prod(inner))).reshape(inner)
    cell = (serials * 16 + envs + place).reshape(*serials.shape, *(1 for _ in inner))
    if name == "info.lit":
        return cell % 3 == 0
    if name == "label":
        return np.char.add("r", (cell % 10**6).astype(str)).astype(dtype)
    if name == "stamp":
        return cell + 2**40
    limit = {"uint8": 251, "float16": 2000, "bfloat16": 250}.get(np.dtype(dtype).name, 2**20)
    return ((cell + 7 * component) % limit).astype(dtype)


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Return dotted paths as nested dicts."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, name = path.split(".")
        branch = tree
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[name] = value
    return tree


def make_chunk(
    serials: Iterable[int], num_envs: int = 3, home: str = "numpy", only: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return a chunk (T, N, ...) of rows with these serial numbers.

    `home` is one of `HOMES`; `only` names the fields, where not all are wanted. Flags are always there.
    """
    rows = np.asarray(list(serials))[:, None]
    flat: dict[str, Any] = {}
    for place, name in enumerate([*(fields_of(home) if only is None else only), *FLAGS]):
        is_device = home == "jax" or (home in ("mixed", "flags_numpy") and place % 2 == 1) or name in JAX_ONLY
        if name in NUMPY_ONLY or (home == "flags_numpy" and name in FLAGS):
            is_device = False
        array = values(name, rows, np.arange(num_envs))
        flat[name] = jnp.asarray(array) if is_device else array
    return nested(flat)


def make_step(serial: int, num_envs: int = 3, home: str = "numpy") -> dict[str, Any]:
    """Return one step (N, ...)."""
    return jax.tree.map(lambda x: x[0], make_chunk([serial], num_envs, home))


def assert_holds(ds: xr.Dataset, serials: Sequence[int], num_envs: int = 3) -> None:
    """Check that a Dataset holds just the rows with these serial numbers, in order, each cell with its values."""
    serials = list(serials)
    env, length, start = ds["env"].values, ds["length"].values, ds["start_row"].values
    mask = np.arange(ds.sizes["time"]) < length[:, None]
    recorded = ds["serial"].values
    for number in range(num_envs):
        own = np.flatnonzero(env == number)
        got = [int(x) for i in own for x in recorded[i, : length[i]]]
        assert got == serials, f"environment {number}"
        assert [int(start[i]) for i in own] == [sum(length[own[:k]]) for k in range(len(own))]
    row, column = recorded[mask], np.broadcast_to(env[:, None], mask.shape)[mask]
    for name in ds.data_vars:
        if name != "iteration":
            want = values(str(name), row, column)
            np.testing.assert_array_equal(ds[name].values[mask], want.astype(ds[name].dtype), err_msg=str(name))
    np.testing.assert_array_equal(ds["mask"].values, mask)
    assert_ends(ds, mask)


def assert_ends(ds: xr.Dataset, mask: np.ndarray) -> None:
    """Check that episodes end where a flag is set, and nowhere else."""
    terminated, truncated = (ds[name].values & mask for name in FLAGS)
    last = mask & (np.arange(mask.shape[1]) == ds["length"].values[:, None] - 1)
    assert not ((terminated | truncated) & ~last).any()
    reason = np.where((terminated & last).any(1), "terminated", np.where((truncated & last).any(1), "truncated", "cut"))
    assert ds["end_reason"].values.tolist() == reason.tolist()


@jax.jit
def after(y: jax.Array, tree: Any) -> Any:
    """Return arrays that are ready no sooner than `y`, a number from 0 to 1."""
    return jax.tree.map(lambda x: jnp.where(y > 2, jnp.zeros_like(x), x), tree)


def snapshot(ds: xr.Dataset) -> xr.Dataset:
    """Return a copy in memory; the Dataset itself stays lazy."""
    return ds.copy().load()


def host_bytes(ds: xr.Dataset, name: str) -> int:
    """Return the bytes of all transitions of a field."""
    variable = ds.variables[name]
    return int(ds["length"].sum()) * int(np.prod(variable.shape[2:])) * variable.dtype.itemsize


def random_key(rng: np.random.Generator, size: int) -> Any:
    """Return an int, a slice or an index array for an axis."""
    match rng.integers(4):
        case 0:
            return int(rng.integers(-size, size))
        case 1:
            start, stop = np.sort(rng.integers(0, size + 1, 2)).tolist()
            return slice(start, stop, int(rng.integers(1, 3)))
        case 2:
            return rng.integers(-size, size, rng.integers(1, 4)).tolist()
        case _:
            return slice(None)


def random_rollout(seed: int = 0, ends: float = 0.15, rows: int = 40, envs: int = 5) -> dict[str, np.ndarray]:
    """Return a rollout of noise, in which each step is an episode's last with probability `ends`."""
    rng = np.random.default_rng(seed)
    ended = rng.random((rows, envs)) < ends
    return {
        "obs": rng.normal(size=(rows, envs, 2)).astype(np.float32),
        "action": rng.integers(0, 4, (rows, envs)).astype(np.int32),
        "reward": rng.normal(size=(rows, envs)).astype(np.float32),
        "terminated": ended,
        "truncated": np.zeros_like(ended),
    }
