"""A view of a log: its first rows as they stood at one moment, read where they lie."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from trajlab.block.block import Block
from trajlab.block.fingerprint import fingerprints
from trajlab.block.layout import Field, Layout
from trajlab.block.read import gather, read_rows


@dataclasses.dataclass(frozen=True, eq=False)
class LogView:
    """The first rows of a log as they stood at one moment: what a Dataset reads.

    Rows once written never change, so the view holds the blocks themselves and takes their arrays of the
    moment, under the lock that writing takes too. Views are told apart by identity, for `Log.clear` asks
    which are still alive.
    """

    layout: Layout
    blocks: tuple[Block, ...]
    rows: int
    lock: Any

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """First row of each block."""
        return np.array([block.start for block in self.blocks], np.int64)

    def spans(self) -> Iterator[tuple[Block, int, int]]:
        """Yield each block with the log's rows it holds, from and up to."""
        ends = [block.start for block in self.blocks[1:]] + [self.rows]
        for block, end in zip(self.blocks, ends, strict=True):
            yield block, block.start, end

    def index_of(self, name: str) -> tuple[int, Field]:
        """Return a field and its place among those of its home."""
        field = next(field for field in self.layout.fields if field.name == name)
        return self.layout.at(field.home).index(field), field

    def read(self, name: str, rows: np.ndarray, columns: np.ndarray, inner: tuple[Any, ...] = ()) -> np.ndarray:
        """Return the cells of one field at `rows` and `columns`, both (M,), which must exist.

        `inner` indexes the field's own axes, orthogonally: one int, slice or 1-D array each. The result is
        (M, ...), in the dtype that the Dataset shows.
        """
        index, field = self.index_of(name)
        which = np.searchsorted(self.starts, rows, side="right") - 1
        with self.lock:
            first = int(which[0]) if len(which) else 0
            if not len(which) or (which == first).all():
                block = self.blocks[first]
                return gather(block.array(index, field), rows - block.start, columns, inner)
            out: np.ndarray | None = None
            for number in np.flatnonzero(np.bincount(which)):
                here, block = np.flatnonzero(which == number), self.blocks[number]
                part = gather(block.array(index, field), rows[here] - block.start, columns[here], inner)
                out = np.empty((len(rows), *part.shape[1:]), part.dtype) if out is None else out
                out[here] = part
        assert out is not None
        return out

    def fingerprints(self, name: str, rows: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
        """Return what tells the cells of one field apart, uint32 (M, 2), or None where that cannot be said."""
        index, field = self.index_of(name)
        which = np.searchsorted(self.starts, rows, side="right") - 1
        with self.lock:
            arrays = [block.array(index, field) for block in self.blocks]
            return fingerprints(arrays, which, rows - self.starts[which], columns)

    def read_rows(self, name: str, block: Block, start: int, stop: int) -> np.ndarray:
        """Return rows `start` to `stop` of one field (rows, width, ...), which lie in one block.

        Of a block in the host's memory that is full it is a view, which must not be written.
        """
        index, field = self.index_of(name)
        is_open = block is self.blocks[-1] and self.rows < block.start + block.capacity
        with self.lock:
            array = block.array(index, field)
            return read_rows(array, start - block.start, stop - block.start, copy=is_open)
