"""Infos to columns: values by name, and for which environments they are there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trajlab.errors import warn_user
from trajlab.integrations.columns import Column
from trajlab.integrations.paths import is_excluded
from trajlab.integrations.rows import WaitingRows

DeclaredInfos = Mapping[str, Any] | None
"""Infos to record, by name; None for those that come in the first chunk."""

KINDS = "biufc"
"""Kinds of dtype that are recorded."""


def named_values(
    infos: Mapping[str, Any], mask: np.ndarray | None = None, prefix: str = ""
) -> Iterator[tuple[str, Any, np.ndarray | None]]:
    """Yield the values (N, ...) of a vector environment's infos by dotted name, each with its mask (N,).

    The mask of `key` stands under `_key`; what a dict holds is there only where the dict is. None stands for
    all environments.
    """
    for key, value in infos.items():
        if isinstance(key, str) and key.startswith("_") and key[1:] in infos:
            continue
        own = infos.get(f"_{key}")
        if own is not None:
            own = np.asarray(own, bool)
        here = own if mask is None else mask if own is None else mask & own
        if isinstance(value, Mapping):
            yield from named_values(value, here, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value, here


def named_single(infos: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a single environment's infos by dotted name; None is missing."""
    for key, value in infos.items():
        if isinstance(value, Mapping):
            yield from named_single(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value


class InfoColumns:
    """The columns of values that come and go.

    Those that were declared; or else all numbers, bools and arrays of them that come before the first rows are
    taken, since the set of fields is fixed from then on. Where a value is missing stands what the dtype has for
    it: NaN, the smallest integer. A bool has none, so that beside it stands Gymnasium's mask, `_key`.
    """

    def __init__(self, root: str, rows: WaitingRows, declared: DeclaredInfos, exclude: Sequence[str]) -> None:
        """Begin with the declared columns: name to dtype, or to an example of one environment's value."""
        self._root, self._rows, self._exclude = root, rows, exclude
        self._everywhere = np.ones(rows.num_envs, bool)
        self._columns: dict[str, Column | None] = {}
        self._masks: dict[str, Column] = {}
        self._all: list[Column] = []
        self._warned: set[str] = set()
        self._is_open = declared is None
        for name, kind in (declared or {}).items():
            self._add(name, *_shape_and_dtype(name, kind))

    def clear(self, row: int) -> None:
        """Make all values of a row missing."""
        for column in self._all:
            column.clear(row)

    def write(self, row: int, infos: Mapping[str, Any], where: np.ndarray | None = None) -> None:
        """Write a step's infos, with their masks, into a cleared row; those of the environments `where` (N,) only."""
        for name, value, mask in named_values(infos):
            here = self._everywhere if mask is None else mask
            self._write(row, name, value, here if where is None else here & where)

    def write_single(self, row: int, infos: Mapping[str, Any]) -> None:
        """Write the infos of a single environment, which have no masks, into a cleared row."""
        for name, value in named_single(infos):
            array = as_array(value)
            self._write(row, name, None if array is None else array[None], self._everywhere)

    def _write(self, row: int, name: str, value: Any, where: np.ndarray) -> None:
        if name not in self._columns:
            if not where.any():
                return
            self._columns[name] = None
            self._discover(name, as_array(value))
        column = self._columns[name]
        if column is None:
            return
        try:
            if not self._rows.is_fixed:
                self._widen(column, value)
            column.put_where(row, value, where)
        except ValueError as error:
            self._warn(name, f"a value is left out: {error}")
            return
        if name in self._masks:
            self._masks[name].rows[row] |= where

    @staticmethod
    def _widen(column: Column, value: Any) -> None:
        """Make a column of whole numbers one of floats where the next value is a float, as 0 may be followed by 0.5."""
        array = as_array(value)
        if array is not None and array.dtype.kind == "f" and column.rows.dtype.kind in "iu":
            column.become(np.promote_types(array.dtype, column.rows.dtype))

    def _discover(self, name: str, array: np.ndarray | None) -> None:
        """Make a column for a name that is met for the first time, or say why it gets none."""
        if not self._is_open or is_excluded(f"{self._root}.{name}", self._exclude):
            return
        if array is None or array.dtype.kind not in KINDS or array.shape[:1] != self._everywhere.shape:
            self._warn(name, "not recorded, as it holds neither numbers nor arrays of one shape")
        elif self._rows.is_fixed:
            mend = f". Declare it: infos={{{name!r}: {_declaration(array)}}}" if self._root == "info" else ""
            self._warn(name, f"not recorded, as it came after the first rows, which fix the fields{mend}")
        else:
            self._add(name, array.shape[1:], array.dtype)

    def _add(self, name: str, cell: tuple[int, ...], dtype: np.dtype) -> None:
        column = self._columns[name] = self._rows.add((self._root, name), cell, dtype)
        self._all.append(column)
        if dtype.kind == "b":
            mask = self._masks[name] = self._rows.add((self._root, _mask_name(name)), (), np.dtype(bool))
            self._all.append(mask)

    def _warn(self, name: str, what: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            warn_user(f"{self._root} {name!r}: {what}. To leave it out in silence: exclude=['{self._root}.{name}']")


def as_array(value: Any) -> np.ndarray | None:
    """Return a value as an array, None where it is ragged."""
    try:
        return np.asarray(value)
    except ValueError:
        return None


def _mask_name(name: str) -> str:
    """Return Gymnasium's name of the mask of a value: `episode._won` for `episode.won`."""
    parent, dot, last = name.rpartition(".")
    return f"{parent}{dot}_{last}"


def _shape_and_dtype(name: str, kind: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and dtype of a declared value, given as a dtype or by an example."""
    is_dtype = isinstance(kind, type | str | np.dtype)
    array = np.zeros((), kind) if is_dtype else np.asarray(kind)
    if array.dtype.kind not in KINDS:
        raise TypeError(f"infos[{name!r}]={kind!r}; expected the dtype of a number or bool, or an example of a value")
    return array.shape, array.dtype


def _declaration(array: np.ndarray) -> str:
    """Return the declaration of a value (N, ...), as a user would write it."""
    dtype = array.dtype.name
    return repr(dtype) if array.ndim == 1 else f"np.zeros({array.shape[1:]}, {dtype!r})"
