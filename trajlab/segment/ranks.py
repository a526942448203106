"""Ranks to rows: where the recorded cells of each column stand."""

import dataclasses
from typing import NamedTuple

import numpy as np

from trajlab.block.layout import NOT_RECORDED


class Span(NamedTuple):
    """The recorded cells of a range of rows.

    Attributes
    ----------
    start, rows : int
        First row and number of rows.
    base : array (width,) int64
        Rank of each column's first recorded cell in this span.
    offsets, cells : array (width + 1,) int64 and array (cells,) int32, or None
        Recorded rows, relative to `start`, column after column; None where all are recorded.
    """

    start: int
    rows: int
    base: np.ndarray
    offsets: np.ndarray | None = None
    cells: np.ndarray | None = None

    def counts(self) -> np.ndarray:
        """Return the recorded cells per column."""
        return np.full(len(self.base), self.rows) if self.offsets is None else np.diff(self.offsets)

    def listed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return `offsets` and `cells`, made where they are implied."""
        if self.offsets is not None and self.cells is not None:
            return self.offsets, self.cells
        width = len(self.base)
        return np.arange(width + 1) * self.rows, np.tile(np.arange(self.rows, dtype=np.int32), width)


def _joined(a: Span, b: Span) -> Span:
    """Return two neighbouring spans as one."""
    if a.offsets is None and b.offsets is None:
        return Span(a.start, a.rows + b.rows, a.base)
    (offsets_a, cells_a), (offsets_b, cells_b) = a.listed(), b.listed()
    counts_a, counts_b = np.diff(offsets_a), np.diff(offsets_b)
    offsets = np.concatenate([[0], np.cumsum(counts_a + counts_b)])
    cells = np.empty(offsets[-1], np.int32)
    cells[np.arange(len(cells_a)) + np.repeat(offsets_b[:-1], counts_a)] = cells_a
    cells[np.arange(len(cells_b)) + np.repeat(offsets_a[1:], counts_b)] = cells_b + (b.start - a.start)
    return Span(a.start, a.rows + b.rows, a.base, offsets, cells)


@dataclasses.dataclass(frozen=True)
class RankMap:
    """Ranks to rows."""

    spans: tuple[Span, ...]

    @property
    def is_identity(self) -> bool:
        """True where every cell is recorded, so that a rank is a row."""
        first = self.spans[:1]
        return all(span.offsets is None for span in self.spans) and all(
            (span.base == span.start).all() for span in first
        )

    def rows(self, columns: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """Return the rows of recorded cells, given as columns and ranks, both (M,)."""
        if self.is_identity or not len(ranks):
            return ranks
        bases = np.stack([span.base for span in self.spans])
        low, high = np.zeros(len(ranks), np.intp), np.full(len(ranks), len(self.spans) - 1)
        for _ in range(len(self.spans).bit_length()):
            middle = (low + high + 1) // 2
            right = bases[middle, columns] <= ranks
            low, high = np.where(right, middle, low), np.where(right, high, middle - 1)
        out = np.empty(len(ranks), np.int64)
        for number, span in enumerate(self.spans):
            here = np.flatnonzero(low == number)
            local = ranks[here] - span.base[columns[here]]
            if span.offsets is not None and span.cells is not None:
                local = span.cells[span.offsets[columns[here]] + local]
            out[here] = span.start + local
        return out


def with_span(spans: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    """Add a span; join it with earlier ones of no more rows, so that their number stays logarithmic."""
    while spans and (spans[-1].rows <= span.rows or (spans[-1].offsets is None and span.offsets is None)):
        spans, span = spans[:-1], _joined(spans[-1], span)
    return (*spans, span)


def masked_span(flags: np.ndarray, start: int, base: np.ndarray) -> tuple[Span, np.ndarray]:
    """Return the span of masked rows, and the rank that each cell has or that the next recorded one will have."""
    recorded = (flags & NOT_RECORDED) == 0
    counts = recorded.sum(axis=0, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    cells = np.nonzero(recorded.T)[1].astype(np.int32)
    before = base + np.cumsum(recorded, axis=0, dtype=np.int64) - recorded
    return Span(start, len(flags), base.copy(), offsets, cells), before
