"""Rows of a discrete field in the order of episodes and steps, as codes: places among its distinct values."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import xarray as xr

from trajlab.analysis.discrete import as_discrete, require_few
from trajlab.analysis.grouping.groups import Groups
from trajlab.analysis.kernels.counting import ValueCounter
from trajlab.analysis.kernels.masks import but_not, count_set, either
from trajlab.analysis.kernels.pairs import FEW_VALUES
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.dataset.flat_columns import by_column
from trajlab.dataset.ordered import iter_ordered, last_places, overlapping
from trajlab.dataset.successive import Successive, iter_successive

MAX_LOOKED_UP = 2**16
"""Whole numbers that span at most so many are looked up in a table, others searched for."""

T = TypeVar("T")


class UnlistedError(Exception):
    """A value is none of those that are listed."""


def reduce_coded(
    ds: xr.Dataset, name: str, groups: Groups, kind: str, what: str, reduce: Callable[["CodedRows"], T]
) -> tuple["CodedRows", T]:
    """Return the rows of a field, coded by values among which are all of them, and what `reduce` makes of them.

    Some of the values may not occur.

    Nearly always the first batch has all values. Where it has not, these are sought in a pass of their own, and
    `reduce` is called again.

    Raises
    ------
    ValueError
        When there are more than 1,024 values; `what` is the function that asks.
    """
    rows = CodedRows(ds, name, groups, kind, _distinct(ds, name, kind, what, batches=1))
    try:
        return rows, reduce(rows)
    except UnlistedError:
        rows = rows._replace(values=_distinct(ds, name, kind, what))
        return rows, reduce(rows)


def _distinct(ds: xr.Dataset, name: str, kind: str, what: str, batches: int | None = None) -> np.ndarray:
    """Return the distinct values of all transitions, or of so many batches, ascending, and perhaps some in between."""
    counter = ValueCounter(check=functools.partial(require_few, name=name, what=what))
    alive = AliveRows.of(ds, name)
    for batch in itertools.islice(iter_flat(ds, [name, *alive.needed]), batches):
        values, missing = as_discrete(batch.values[name], kind)
        missing = either(missing, alive.missing(batch, batch.values[name].shape))
        if batches == 1 and missing is None and values.size and values.dtype.kind in "iu":
            first, last = int(values.min()), int(values.max())
            if last - first < FEW_VALUES:
                return np.arange(first, last + 1, dtype=np.uint64 if values.dtype == np.uint64 else np.int64)
        counter.add(values.reshape(-1, 1), None, None if missing is None else missing.reshape(-1, 1))
    return counter.result()[0]


class CodedBatch(NamedTuple):
    """Rows in order, as codes: places among the distinct values.

    Attributes
    ----------
    codes : array (M, component) of int
    present : array (M, component) of bool or None
        Which of them may be part of a sequence; None for all.
    nan : array (M, component) of bool or None
        Which are NaN, though not of an agent that is done; None for none.
    follows : array (M,) of bool
        Whether the next row follows.
    group : array (M,) of int or None
    start : int
        Number of the first row, all counted through.
    shared : int
        The first rows, which stood in the batch before too.
    """

    codes: np.ndarray
    present: np.ndarray | None
    nan: np.ndarray | None
    follows: np.ndarray
    group: np.ndarray | None
    start: int
    shared: int

    @property
    def num_nan(self) -> int:
        """How many are NaN in rows that are not shared."""
        return 0 if self.nan is None else int(self.nan[self.shared :].sum())


class CodedColumns(NamedTuple):
    """Rows as they are cheapest to read, each column a component of rows that follow each other.

    Attributes
    ----------
    one : Successive
        The rows, and where they lie.
    codes : array (column, row) of int
    present : array (column, row) of bool or None
        Which of them may be part of a sequence; None for all.
    nan : array (column, row) of bool or None
        Which are NaN, though not of an agent that is done; None for none.
    group : array (column, row) of int or None
    components : int
        How many neighbouring columns belong to the same rows.
    """

    one: Successive
    codes: np.ndarray
    present: np.ndarray | None
    nan: np.ndarray | None
    group: np.ndarray | None
    components: int

    def cells(self, places: np.ndarray) -> np.ndarray:
        """Return where all components of rows at some places of the batch stand in `codes`, counted through."""
        row, stream = np.divmod(places, self.one.ahead)
        column = stream[:, np.newaxis] * self.components + np.arange(self.components)
        return (column * self.codes.shape[1] + row[:, np.newaxis]).reshape(-1)

    @property
    def num_nan(self) -> int:
        """How many are NaN in rows that were not in the batch before."""
        return 0 if self.nan is None else int(self.nan[:, 1 if self.one.shared else 0 :].sum())


class CodedRows(NamedTuple):
    """What rows are read from and how (`discrete_kind`), and the `values` to code them with, ascending."""

    ds: xr.Dataset
    name: str
    groups: Groups
    kind: str
    values: np.ndarray

    @property
    def components(self) -> int:
        """Number of components of the field."""
        return component_count(self.ds.variables[self.name])

    def batches(self, longest: int) -> Iterator[CodedBatch]:
        """Yield all rows in order, those of each sequence up to `longest` together in some batch.

        Raises
        ------
        UnlistedError
            When a value is none of `values`.
        """
        ds, name, groups = self.ds, self.name, self.groups
        cells, alive = Cells.of(ds), AliveRows.of(ds, name)
        ordered = iter_ordered(ds, [name, *groups.fields, *alive.needed])
        for batch, shared in overlapping(ordered, cells, longest - 1):
            codes, present, nan = self._code(batch, alive)
            follows = np.ones(len(codes), bool)
            follows[last_places(batch, cells, len(codes))] = False
            assert batch.start is not None
            yield CodedBatch(codes, present, nan, follows, groups.index(batch), batch.start, shared)

    def columns(self) -> Iterator[CodedColumns]:
        """Yield all rows, each two that follow each other together in some batch.

        Raises
        ------
        UnlistedError
            When a value is none of `values`.
        """
        alive = AliveRows.of(self.ds, self.name)
        for one in iter_successive(self.ds, [self.name, *self.groups.fields, *alive.needed]):
            codes, present, nan = self._code(one.batch, alive)
            if len(one.absent):
                present = np.ones(codes.shape, bool) if present is None else present
                for mask in (present, nan):
                    if mask is not None:
                        mask[one.absent] = False
            group = self.groups.index(one.batch)
            group = None if group is None else np.broadcast_to(group[:, np.newaxis], codes.shape)
            present, nan, group = (
                None if rows is None else _in_columns(rows, one.ahead) for rows in (present, nan, group)
            )
            yield CodedColumns(one, _in_columns(codes, one.ahead), present, nan, group, self.components)

    def unordered(self, per_episode: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None, int]]:
        """Yield the codes (M, component) of all rows in any order, which are present, and how many NaN.

        In front of these stands what an array (episode,) has for each row, (M,).

        Raises
        ------
        UnlistedError
            When a value is none of `values`.
        """
        alive = AliveRows.of(self.ds, self.name)
        for batch in iter_flat(self.ds, [self.name, *alive.needed]):
            codes, present, nan = self._code(batch, alive)
            yield batch.spread(per_episode), codes, present, count_set(nan)

    def _code(self, batch: FlatBatch, alive: AliveRows) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Return the codes of a batch, and as in `CodedBatch` which are present and which are NaN."""
        values, nan = as_discrete(batch.values[self.name], self.kind)
        dead = alive.missing(batch, batch.values[self.name].shape)
        nan = but_not(nan, dead)
        missing = either(nan, dead)
        return _codes(values, missing, self.values), None if missing is None else ~missing, nan


def _in_columns(rows: np.ndarray, streams: int) -> np.ndarray:
    """Return rows (row * stream, component), those of a stream one below the other, as (stream * component, row)."""
    wide = rows.reshape(len(rows) // streams, streams * rows.shape[1])
    return by_column(wide).reshape(wide.shape[::-1])


def _codes(values: np.ndarray, missing: np.ndarray | None, listed: np.ndarray) -> np.ndarray:
    """Return the place of each value among those listed, any where it is missing."""
    if not values.size:
        return np.zeros(values.shape, np.int64)
    if not len(listed):
        if missing is None or not missing.all():
            raise UnlistedError
        return np.zeros(values.shape, np.int64)
    if missing is not None:
        values = np.where(missing, listed[0], values)
    if listed.dtype.kind == "b":
        values, listed = values.view(np.uint8), listed.astype(np.int64)
    codes = _codes_of_numbers(values, listed) if listed.dtype.kind in "iu" else None
    if codes is not None:
        return codes
    codes = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
    if (listed[codes] != values).any():
        raise UnlistedError
    return codes


def _codes_of_numbers(values: np.ndarray, listed: np.ndarray) -> np.ndarray | None:
    """Return the place of each whole number among those listed, or None where these lie too far apart for a table."""
    first, last = int(listed[0]), int(listed[-1])
    if int(values.min()) < first or int(values.max()) > last:
        raise UnlistedError
    if last - first == len(listed) - 1:
        if values.dtype == np.uint64:
            return (values - listed[0]).astype(np.int64)  # together with int64, uint64 would become float64
        return values if first == 0 else values.astype(listed.dtype) - listed[0]
    if last - first >= MAX_LOOKED_UP:
        return None
    table = np.full(last - first + 1, -1)
    table[(listed - listed[0]).astype(np.intp)] = np.arange(len(listed))
    codes = table[values.astype(listed.dtype) - listed[0]]
    if codes.min() < 0:
        raise UnlistedError
    return codes
