"""trajlab/dataset/lazy.py: whatever is selected, the values are those of the same selection in memory."""

import copy
import pickle

import dask.base
import hypothesis.strategies as st
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from strategies import examples

from trajlab.dataset.from_episodes import from_episodes
from trajlab.dataset.lazy import LazyArray, lazy_base, lazy_variable

DIMS = ("episode", "time", "x", "y")
SHAPE = (4, 5, 3, 2)
VALUES = np.arange(np.prod(SHAPE)).reshape(SHAPE)


@pytest.fixture
def pair(counting):
    """A lazy variable, and the same in memory."""
    return lazy_variable(DIMS, counting(VALUES)), xr.Variable(DIMS, VALUES)


class Plain(LazyArray):
    """As short as a lazy array can be."""

    def __init__(self, values, lead=2):
        super().__init__(values.shape, values.dtype)
        self.values, self.lead = values, lead

    def read(self, cells, inner):
        taken = self.values[cells]
        for axis in reversed(range(len(inner))):
            taken = taken[(slice(None),) * (axis + 1) + (inner[axis],)]
        return taken


def same(lazy, expected):
    assert lazy.dims == expected.dims
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    np.testing.assert_array_equal(lazy.values, expected.values)


def points(*arrays, dim="p"):
    return [xr.Variable(dim if np.ndim(a) == 1 else [f"{dim}{i}" for i in range(np.ndim(a))], a) for a in arrays]


ORTHOGONAL = {
    "nothing": (),
    "int": (2,),
    "negative int": (-1, -2, -1, -1),
    "slice": (slice(1, 3), slice(None, None, 2)),
    "backwards": (slice(None, None, -1), slice(3, 0, -2), slice(None, None, -1)),
    "array": ([3, 0, 0], [1, 4]),
    "negative array": ([-1, 0], slice(None), [-1, -3], [0]),
    "bool": (np.array([True, False, True, False]),),
    "empty slice": (slice(2, 2),),
    "empty array": (np.array([], int), slice(None), 1),
    "inner only": (slice(None), slice(None), [2, 0], -1),
    "all ints": (1, 2, 0, 1),
}


@pytest.mark.parametrize("key", ORTHOGONAL.values(), ids=ORTHOGONAL)
def test_orthogonal(pair, key):
    lazy, expected = pair
    same(lazy[key], expected[key])


POINTS = {
    "cells": lambda: points([0, 3, 1], [4, 0, 0]),
    "negative": lambda: points([-1, 0], [-2, -3]),
    "cells and inner": lambda: points([0, 3], [1, 1], [2, 0], [1, 0]),
    "inner slice": lambda: [*points([0, 3], [4, 0]), slice(0, 2), 1],
    "first axis kept": lambda: [slice(1, 4), *points([0, 1], [2, 2])],
    "inner points only": lambda: [slice(None), slice(None), *points([0, 2], [1, 1])],
    "two dims of points": lambda: points([[0, 1], [2, 3]], [[4, 0], [1, 1]], dim="q"),
    "points crossed with points": lambda: [xr.Variable("a", [0, 1]), xr.Variable("b", [3, 2, 1])],
    "one axis": lambda: points([[0, 1], [2, 2]], dim="q"),
    "none": lambda: points(np.array([], int), np.array([], int)),
    "scalars": lambda: [xr.Variable((), 1), *points([0, 2])],
}


@pytest.mark.parametrize("key", POINTS.values(), ids=POINTS)
def test_points(pair, key):
    lazy, expected = pair
    same(lazy[tuple(key())], expected[tuple(key())])


CHAINS = {
    "slice, int": [(slice(1, None),), (1,)],
    "array, array": [([3, 1, 0],), ([2, 0],)],
    "ints in between": [(slice(None), 2, slice(None), 1), ([1, 3], [2, 0])],
    "points of a slice": [(slice(1, None), slice(1, None)), POINTS["negative"]],
    "points of an array": [([3, 1, 2], slice(None, None, 2)), POINTS["negative"]],
    "points of a stepped slice": [(slice(None, None, 2), slice(None, None, -1)), POINTS["negative"]],
    "points, then slice": [POINTS["cells"], (slice(1, None), slice(0, 2))],
    "points, then int": [POINTS["cells"], (1,)],
    "points, then all ints": [POINTS["cells"], (1, 2, 0)],
    "points, then array": [POINTS["cells"], ([2, 0], [1])],
    "points, then empty": [POINTS["cells"], (slice(0, 0),)],
    "points, then points": [POINTS["cells"], lambda: points([0, 2], [1, 0])],
    "kept slices, then both": [POINTS["first axis kept"], ([2, 0], slice(None, 1))],
    "size one kept": [(slice(2, 3),), POINTS["inner points only"], (0, slice(1, 3))],
    "negative after points": [POINTS["inner slice"], (-1, [-1, -2])],
}


@pytest.mark.parametrize("keys", CHAINS.values(), ids=CHAINS)
def test_chains_read_once_at_the_end(pair, counts, keys):
    lazy, expected = pair
    for key in keys:
        key = tuple(key() if callable(key) else key)
        lazy, expected = lazy[key], expected[key]
    assert counts.total == 0
    same(lazy, expected)
    assert counts.total <= 2 * expected.size  # of a cell's own axes the points' hull is read


@pytest.mark.parametrize("first", [(), (slice(1, 3),), (2,), ([0, 2], 1)], ids=str)
def test_transposed(pair, counts, first):
    lazy, expected = (variable[first].transpose(..., "x") for variable in pair)
    assert counts.total == 0
    same(lazy, expected)
    same(lazy[0], expected[0])
    same(lazy.transpose("x", ...), expected.transpose("x", ...))
    same(lazy[..., [1, 0]], expected[..., [1, 0]])


@pytest.mark.parametrize(
    "key",
    [(4,), (-5,), ([0, 4],), (0, [5]), (slice(None), slice(None), [3]), (0, 0, 0, -3), tuple(points([4], [0]))],
    ids=str,
)
def test_out_of_range(pair, counts, key):
    lazy, _ = pair
    with pytest.raises(IndexError, match=r"out of (range|bounds)"):
        lazy[key].values  # noqa: B018
    assert counts.total == 0


@pytest.mark.parametrize("key", [([1, 2],), tuple(points([1, 0], [0, 1]))], ids=["orthogonal", "points"])
def test_out_of_range_of_what_was_selected(pair, key):
    lazy = pair[0][:2, :1]
    with pytest.raises(IndexError, match=r"out of (range|bounds)"):
        lazy[key].values  # noqa: B018


def test_points_read_no_more_than_themselves(pair, counts):
    lazy, _ = pair
    last = lazy[(*points(np.arange(4), [4, 0, 2, 1]), 0, 1)]
    assert counts.total == 0
    assert last.values.size == counts.total == 4


def test_slabs_do_not_show(counting, monkeypatch):
    monkeypatch.setattr("trajlab.dataset.lazy.READ_CELLS", 7)
    lazy = lazy_variable(DIMS, counting(VALUES))
    expected = xr.Variable(DIMS, VALUES)
    same(lazy, expected)
    same(lazy[:, 1:, 2], expected[:, 1:, 2])
    many = tuple(points(*np.random.default_rng(0).integers(0, (4, 5), (50, 2)).T))
    same(lazy[many], expected[many])


def test_one_leading_axis(counting):
    values = VALUES[:, 0]
    lazy, expected = (
        lazy_variable(("episode", "x", "y"), counting(values, 1)),
        xr.Variable(("episode", "x", "y"), values),
    )
    for key in [(), (1,), ([2, 0],), (slice(1, 3), 0, [1, 0]), tuple(points([0, 1], [2, 1]))]:
        same(lazy[key], expected[key])


@pytest.mark.parametrize("shape", [(0, 0), (0, 5, 3), (3, 0), (2, 2, 0)], ids=str)
def test_empty(shape):
    dims = DIMS[: len(shape)]
    values = np.zeros(shape, np.int16)
    same(lazy_variable(dims, Plain(values)), xr.Variable(dims, values))
    same(lazy_variable(dims, Plain(values))[..., 0:0], xr.Variable(dims, values)[..., 0:0])


def test_copies_stay_lazy(pair, counts):
    lazy, expected = pair
    transposed = lazy.transpose(..., "episode")
    copies = [lazy.copy(), lazy.copy(deep=False), copy.deepcopy(lazy), copy.copy(lazy), copy.deepcopy(transposed)]
    assert counts.total == 0
    for copied in copies:
        same(copied.transpose(*DIMS), expected)


@pytest.mark.parametrize("key", [(slice(1, 3), 0), tuple(points([0, 3], [1, 1]))], ids=["orthogonal", "points"])
def test_pickle_loads(pair, key):
    lazy, expected = (variable[key] for variable in pair)
    back = pickle.loads(pickle.dumps(lazy))
    assert isinstance(back.data, np.ndarray)
    same(back, expected)


def test_display_and_selection_read_nothing(pair, counts):
    lazy = xr.Dataset({"a": pair[0]}, coords={"episode": range(4)})
    assert "a" in repr(lazy)
    assert "a" in lazy._repr_html_()
    assert "int64" in repr(lazy["a"]) + lazy["a"]._repr_html_()
    assert lazy.nbytes > 0
    lazy.rename(a="b").assign_coords(z=1).isel(episode=[0, 2]).drop_vars("z")
    assert counts.total == 0


def test_load_makes_it_an_array(pair):
    lazy, expected = pair
    assert isinstance(lazy.load().data, np.ndarray)
    same(lazy, expected)


def test_it_cannot_be_written(pair):
    lazy, _ = pair
    with pytest.raises(TypeError, match="values of a lazy Dataset cannot be set"):
        lazy[0] = 1


def test_a_read_that_is_mostly_padding_warns_once(counting, recwarn):
    array = counting(np.zeros((2, 3)))
    array.shape = (2**14, 2**14)
    rows = [np.arange(2**14), np.arange(2**14)]
    array._warn_if_padded(rows, ())
    array.cells_of = lambda vectors: 2**26
    array._warn_if_padded(rows, ())
    assert not recwarn
    array.cells_of = lambda vectors: 2**25
    with pytest.warns(UserWarning, match=r"makes 2\.0 GB of which 0\.2 GB are recorded.*tl\.transitions") as seen:
        array._warn_if_padded(rows, ())
    assert len(seen) == 1


def test_the_warning_is_for_the_line_that_reads(monkeypatch):
    ds = from_episodes([{"x": np.zeros(n)} for n in (1, 1, 1, 1, 1, 1, 60)])
    monkeypatch.setattr("trajlab.dataset.lazy.MUCH_BYTES", 100)
    for read in (lambda: ds["x"].mean(), lambda: np.asarray(ds["x"]), lambda: (ds["x"] + 1).values, lambda: ds.load()):
        with pytest.warns(UserWarning, match="the rest is padding") as seen:
            read()
        assert {warning.filename for warning in seen} == {__file__}


# dask ---------------------------------------------------------------------------------------------------------


def test_chunks_are_read_when_computed_and_once(pair, counts):
    lazy, expected = pair
    chunked = xr.DataArray(lazy).chunk({"episode": 2, "time": 3})
    assert counts.total == 0
    same(chunked.variable, expected)
    assert counts.total == VALUES.size


def test_chunks_of_selections(pair):
    lazy, expected = pair
    for key in [(slice(1, None), [0, 2]), tuple(points([0, 3, 1], [4, 0, 0]))]:
        same(lazy[key].chunk(2), expected[key].chunk(2))


def test_tokens_tell_selections_apart_without_reading(counting, counts):
    lazy = lazy_variable(("episode", "time"), counting(np.zeros((5000, 3))))
    other = np.arange(5000)
    other[2500] = 0
    order, time = np.arange(5000), np.zeros(5000, int)
    selections = [
        lazy,
        lazy[order],
        lazy[other],
        lazy[other].transpose(),
        lazy[1:],
        lazy[tuple(points(order, time))],
        lazy[tuple(points(other, time))],
        lazy[tuple(points(other, time + 1))],
        lazy_variable(("episode", "time"), counting(np.zeros((5000, 3)))),
    ]
    tokens = [dask.base.tokenize(variable._data) for variable in selections]  # what Dataset.chunk asks for
    assert len(set(tokens)) == len(tokens)
    assert dask.base.tokenize(lazy[other]._data) == tokens[2]
    assert counts.total == 0


# lazy_base ----------------------------------------------------------------------------------------------------


def test_lazy_base_gives_array_and_key(counting):
    array = counting(VALUES)
    lazy = lazy_variable(DIMS, array)
    base, key = lazy_base(lazy[1:3, :, 0])
    assert base is array
    assert key == (slice(1, 3, 1), slice(None), 0, slice(None))
    assert lazy_base(xr.Variable(DIMS, VALUES)) is None
    assert lazy_base(lazy[tuple(points([0], [1]))]) is None


# Any selection ------------------------------------------------------------------------------------------------


@st.composite
def indexers(draw, sizes):
    """Draw one round of isel arguments that are in range: ints, slices, arrays, and points that share dims."""
    out, shared = {}, draw(st.integers(1, 3))
    for dim, size in sizes.items():
        kinds = ["all", "slice"] + (["int", "array", "point"] if size else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            edge = st.none() | st.integers(-size - 1, size + 1)
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            out[dim] = slice(draw(edge), draw(edge), step)
        elif kind == "int":
            out[dim] = draw(st.integers(-size, size - 1))
        elif kind == "array":
            out[dim] = draw(st.lists(st.integers(-size, size - 1), max_size=4).map(lambda a: np.array(a, int)))
        elif kind == "point":
            entries = draw(st.lists(st.integers(-size, size - 1), min_size=shared, max_size=shared))
            out[dim] = xr.Variable("shared", entries)
    return out


@examples(150)
@given(st.data())
def test_any_chain_of_selections(data):
    lazy, expected = lazy_variable(DIMS, Plain(VALUES)), xr.Variable(DIMS, VALUES)
    for round_number in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            order = data.draw(st.permutations(expected.dims))
            lazy, expected = lazy.transpose(*order), expected.transpose(*order)
        key = data.draw(indexers(dict(expected.sizes)))
        lazy, expected = lazy.isel(key), expected.isel(key)
        if "shared" in expected.dims:
            name = {"shared": f"shared_{round_number}"}
            lazy, expected = (xr.Variable([name.get(d, d) for d in v.dims], v._data) for v in (lazy, expected))
        same(lazy, expected)


@pytest.mark.parametrize("change", [lambda a: a, lambda a: a.transpose("time", "episode")], ids=["plain", "transposed"])
@pytest.mark.parametrize(
    "key",
    [(0, 0), ([0, 1], slice(None)), {"episode": xr.DataArray([0, 1], dims="p")}],
    ids=["basic", "outer", "points"],
)
def test_setting_values_names_the_mend(change, key):
    ds = from_episodes([{"reward": np.ones(2)}, {"reward": np.ones(2)}])
    field = change(ds["reward"])
    with pytest.raises(TypeError, match=r"values of a lazy Dataset cannot be set.*ds = ds\.load\(\)"):
        field[key] = 9
    ds = ds.load()
    field = change(ds["reward"])
    field[key] = 9
    assert (field[key] == 9).all()
