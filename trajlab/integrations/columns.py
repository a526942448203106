"""Columns: memory for the rows of one field that are gathered step by step, and the check of what goes in."""

import fnmatch
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from trajlab.padding import padding_value, shown_dtype

Path = tuple[Hashable, ...]
"""The keys under which a field stands in the chunk."""


class Column:
    """The rows of one field (capacity, N, ...), written one by one and used again and again.

    Attributes
    ----------
    rows : array (capacity, N, ...)
        Filled with what stands for a missing value.
    missing : scalar
        That value.
    """

    __slots__ = ("_cell", "_dtype", "_view", "missing", "name", "rows")

    def __init__(
        self, path: Path, cell: tuple[int, ...], dtype: np.dtype, size: tuple[int, int], *, is_single: bool = False
    ) -> None:
        """Allocate `size` = (capacity, N) cells of shape `cell`; with `is_single` values come without the axis N."""
        self.name = dotted(path)
        try:
            self.missing = padding_value(shown_dtype(dtype))
        except TypeError as error:
            raise TypeError(f"{self.name!r}: {error}") from None
        self.rows = np.full((*size, *cell), self.missing, dtype)
        self._view = self.rows[:, 0] if is_single else self.rows
        self._cell, self._dtype = self._view.shape[1:], self._view.dtype

    def put(self, row: int, value: Any) -> None:
        """Copy one step's values (N, ...) into a row.

        Raises
        ------
        ValueError
            When shape or dtype do not fit, a text is too long, or a number has a kind that would lose its meaning.
        """
        if type(value) is not np.ndarray or value.shape != self._cell or value.dtype != self._dtype:
            value = self._fitted(value)
        self._view[row] = value

    def put_where(self, row: int, value: Any, where: np.ndarray) -> None:
        """Copy the values (N, ...) of the environments where `where` (N,) is True; the others' stay."""
        value = self._fitted(value)
        np.copyto(self.rows[row], value, where=where.reshape(-1, *[1] * (self.rows.ndim - 2)))

    def put_one(self, row: int, env: int, value: Any) -> None:
        """Copy one environment's value (...) into a row."""
        self.rows[row, env] = self._fitted(value, self.rows.shape[2:])

    def become(self, dtype: np.dtype) -> None:
        """Hold values of another dtype from now on; what is missing so far is missing there, too."""
        is_missing, is_single = self.rows == self.missing, self._view is not self.rows
        self.missing = padding_value(dtype)
        self.rows = np.where(is_missing, self.missing, self.rows.astype(dtype))
        self._view = self.rows[:, 0] if is_single else self.rows
        self._dtype = self.rows.dtype

    def clear(self, row: int) -> None:
        """Make the values of a row missing."""
        self._view[row] = self.missing

    def _fitted(self, value: Any, cell: tuple[int, ...] | None = None) -> np.ndarray:
        cell = self._cell if cell is None else cell
        array = np.asarray(value)
        if array.shape != cell and array.squeeze().shape == tuple(size for size in cell if size != 1):
            array = array.reshape(cell)  # [1] for the action 1
        if array.shape != cell:
            raise ValueError(f"{self.name!r} has shape {array.shape}; expected {cell}, as in the first step")
        is_text = array.dtype.kind == self._dtype.kind == "U"
        if is_text and array.dtype.itemsize > self._dtype.itemsize:
            raise ValueError(f"{self.name!r} holds {str(value)[:60]!r}, longer than its space allows ({self._dtype})")
        if not np.can_cast(array.dtype, self._dtype, "same_kind") or self._overflows(array):
            raise ValueError(f"{self.name!r} has dtype {array.dtype}; expected {self._dtype}, as in the first step")
        return array

    def _overflows(self, array: np.ndarray) -> bool:
        """Say whether whole numbers are too large for this column."""
        is_whole = array.dtype.kind in "iu" and self._dtype.kind in "iu"
        return is_whole and bool((array.astype(self._dtype) != array).any())


def dotted(path: Path) -> str:
    """Return the name of the field that stands under these keys."""
    return ".".join(map(str, path))


def nested(columns: Iterable[tuple[Path, np.ndarray]]) -> dict[Hashable, Any]:
    """Return arrays as a tree of dicts, each under the keys of its path."""
    tree: dict[Hashable, Any] = {}
    for path, array in columns:
        branch = tree
        for key in path[:-1]:
            branch = branch.setdefault(key, {})
        branch[path[-1]] = array
    return tree


def at(tree: Any, path: Path) -> Any:
    """Return what stands under the keys of a path."""
    for key in path:
        tree = tree[key]
    return tree


def common_dtype(expected: np.dtype | None, value: Any) -> np.dtype:
    """Return the dtype that holds what is expected and the first value: the wider one, where they differ."""
    found = np.asarray(value).dtype
    return found if expected is None or expected == found else np.promote_types(expected, found)


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a dotted name is one of the patterns, lies beneath one, or matches one that is a glob."""
    return any(name == p or name.startswith(f"{p}.") or fnmatch.fnmatchcase(name, p) for p in patterns)
