"""Small Datasets written out by hand from the design, in memory or over arrays that count what is read of them."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import xarray as xr

from trajlab.dataset.lazy import LazyArray, lazy_variable

LENGTHS = (3, 1, 5, 2)
"""Episode 2 is the longest; episode 3 was cut."""

PADDING = {"f": np.nan, "b": False, "U": ""}


class CountingArray(LazyArray):
    """Values in memory, read as a log is: cells pointwise, the axes behind them orthogonally."""

    def __init__(self, values, lead, counts, name):
        super().__init__(values.shape, values.dtype)
        self.values, self.lead, self.counts, self.name = values, lead, counts, name

    def read(self, cells, inner):
        assert all(cell.ndim == 1 and (cell >= 0).all() for cell in cells)
        taken = self.values[cells]
        for axis in reversed(range(len(inner))):
            taken = taken[(slice(None),) * (axis + 1) + (inner[axis],)]
        self.counts.add(self.name, taken.size)
        return taken


@dataclass
class Counts:
    """Values read, by variable."""

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name, number):
        self.values[name] = self.values.get(name, 0) + number

    @property
    def total(self):
        return sum(self.values.values())

    def reset(self):
        self.values.clear()


def pad(values, lengths, padding):
    """Lay values (rows, ...) of episodes one behind the other out as (episode, time, ...)."""
    out = np.full((len(lengths), max(lengths, default=0), *values.shape[1:]), padding, values.dtype)
    start = 0
    for episode, length in enumerate(lengths):
        out[episode, :length] = values[start : start + length]
        start += length
    return out


def flat_fields(lengths, seed=0):
    """Return fields (rows, ...): every dtype and rank that matters."""
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    ends = np.isin(np.arange(rows), np.cumsum(lengths)[:-1] - 1)
    return {
        "obs": rng.normal(size=(rows, 3)).astype(np.float32),
        "action": rng.integers(0, 4, rows, dtype=np.int32),
        "reward": rng.normal(size=rows).astype(np.float32),
        "terminated": ends,
        "truncated": np.zeros(rows, bool),
        "img": rng.integers(0, 250, (rows, 2, 2), dtype=np.uint8),
        "wide": rng.normal(size=(rows, 65)),
        "word": rng.choice(np.array(["a", "bc"]), rows),
    }


def padding_of(dtype):
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return PADDING[dtype.kind]


DIMS = {"obs": ["axis"], "img": ["row", "column"], "wide": ["wide_dim_0"]}
ROLES = {"obs": "observation", "action": "action", "reward": "reward", "terminated": "terminated"}


def make_dataset(lengths=LENGTHS, *, seed=0, wrap=None):
    """Return a Dataset of schema 1; `wrap(name, values, lead)` may make its arrays lazy."""
    wrap = wrap or (lambda name, values, lead: values)
    count = len(lengths)
    lengths = np.array(lengths, np.int64)
    time = np.arange(lengths.max(initial=0))

    def variable(name, dims, values, attrs=None):
        data = wrap(name, values, 2 if "time" in dims else 1)
        if isinstance(data, LazyArray):
            return lazy_variable(dims, data, attrs)
        return xr.Variable(dims, data, attrs)

    data = {}
    for name, values in flat_fields(lengths.tolist(), seed).items():
        padding = padding_of(values.dtype)
        attrs = {"padding": str(padding).lower(), "recorded_dtype": values.dtype.name}
        if name in ROLES:
            attrs["role"] = ROLES[name]
        dims = ("episode", "time", *DIMS.get(name, []))
        data[name] = variable(name, dims, pad(values, lengths.tolist(), padding), attrs)
    final = np.random.default_rng(seed + 1).normal(size=(count, 3)).astype(np.float32)
    final[-1:] = np.nan
    data["final_obs"] = variable(
        "final_obs", ("episode", "axis"), final, {"padding": "nan", "recorded_dtype": "float32"}
    )
    iteration = np.repeat(np.arange(count), lengths)
    data["iteration"] = variable(
        "iteration",
        ("episode", "time"),
        pad(iteration, lengths.tolist(), padding_of(iteration.dtype)),
        {"padding": str(padding_of(iteration.dtype)), "recorded_dtype": "int64"},
    )
    is_last = np.arange(count) == count - 1
    coords = {
        "episode": np.arange(count),
        "time": ("time", time, {"units": "steps"}),
        "length": ("episode", lengths),
        "mask": variable("mask", ("episode", "time"), time < lengths[:, None]),
        "env": ("episode", np.arange(count) % 2),
        "start_row": ("episode", np.arange(count) * 2),
        "start_iteration": ("episode", np.arange(count)),
        "end_reason": ("episode", np.where(is_last, "cut", "terminated")),
        "complete": ("episode", ~is_last),
        "start_seen": ("episode", np.ones(count, bool)),
        "final_known": ("episode", ~is_last),
        "axis": ["x", "y", "z"],
        "axis_units": ("axis", ["m", "m", "rad"]),
    }
    attrs = {"trajlab_schema": 1, "trajlab_version": "0.1.0", "convention": "by hand", "rows_seen": 12}
    return xr.Dataset(data, coords, attrs)


@pytest.fixture
def counts():
    """What was read of lazy Datasets."""
    return Counts()


@pytest.fixture
def make():
    """A function that makes Datasets in memory: make(lengths, seed=0)."""
    return make_dataset


@pytest.fixture
def make_lazy(counts):
    """A function that makes Datasets over counting arrays: make_lazy(lengths, seed=0)."""

    def wrap(name, values, lead):
        return CountingArray(values, lead, counts, name)

    return lambda lengths=LENGTHS, seed=0: make_dataset(lengths, seed=seed, wrap=wrap)


@pytest.fixture
def loaded(make):
    return make()


@pytest.fixture
def lazy(make_lazy):
    return make_lazy()


@pytest.fixture(params=["loaded", "lazy"])
def ds(request):
    """The same Dataset, once in memory and once lazy."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def counting(counts):
    """A function that makes one counting array: counting(values, lead=2)."""
    return lambda values, lead=2: CountingArray(values, lead, counts, "array")
