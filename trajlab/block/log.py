"""The log: blocks of rows that grow by a block, and are never copied."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from trajlab.block.append import Chunk, adopted, device_append, has_foreign
from trajlab.block.block import Block
from trajlab.block.interrupts import uninterrupted
from trajlab.block.layout import Layout
from trajlab.block.placement import NO_MESH, Shardings, block_shardings
from trajlab.block.view import LogView

MIN_CHUNKS = 4
"""A new block takes at least so many chunks: fresh memory costs several times the write."""
MIN_BYTES = 2**23
"""And at least so many bytes, so that small chunks do not make many blocks."""


class Log:
    """Blocks that chunks are appended to. Whoever owns it keeps the number of committed rows and the lock."""

    def __init__(self, layout: Layout, *, exact: bool = False) -> None:
        """Start an empty log; with `exact` a block is as long as the chunk it is made for."""
        self.layout = layout
        self.exact = exact
        self.blocks: list[Block] = []
        self._rows = 0
        self._spare: list[Block] = []
        self._shardings: Shardings | None = None
        self._functions: dict[tuple[bool, bool], Any] = {}
        self._compiled: set[Any] = set()
        self._foreign: set[Any] = set()

    def append(
        self,
        rows: int,
        length: int,
        device: Chunk,
        host: Chunk,
        *,
        is_step: bool,
        want_flags: bool,
        signature: Any,
        start: int | None = None,
    ) -> Any:
        """Write a chunk of `length` rows behind the first `rows` rows; return its flags where wanted.

        The chunk counts once the owner commits the new number of rows; until then the next one overwrites
        it. `signature` tells apart chunks for which the append compiles anew. A partial step fills cells of rows from
        `start` on, of which `length` are new; they lie in one block, see `has_room`.
        """
        call = functools.partial(
            self._append,
            rows,
            length,
            device,
            host,
            start=rows if start is None else start,
            is_step=is_step,
            want_flags=want_flags,
            signature=signature,
        )
        if jax.sharding.get_abstract_mesh().empty:
            return call()
        with uninterrupted(), jax.set_mesh(NO_MESH):
            return call()

    def _append(
        self,
        rows: int,
        length: int,
        device: Chunk,
        host: Chunk,
        *,
        start: int,
        is_step: bool,
        want_flags: bool,
        signature: Any,
    ) -> Any:
        """Write a chunk, where no mesh is set."""
        if self._shardings is None:
            axes = device.axes(self.layout, is_step=is_step)
            self._shardings = block_shardings(device.fields, device.flags, axes, self.layout.width)
        block = self._block_for(rows, length) if start == rows else self._open_block(rows)
        row = start - block.start
        assert 0 <= row <= block.capacity - length - (rows - start)
        function = self._functions.get((is_step, want_flags))
        if function is None:
            function = self._functions[is_step, want_flags] = device_append(
                self.layout, is_step=is_step, want_flags=want_flags, shardings=self._shardings
            )
        signature = (signature, block.capacity, block.place(), is_step, want_flags)
        is_warm = signature in self._compiled
        if not is_warm and has_foreign(device, self._shardings):
            self._foreign.add(signature)
        if self._foreign and signature in self._foreign:
            device = adopted(device, self._shardings, device.axes(self.layout, is_step=is_step))
        if is_warm:
            return block.append(function, row, device, host, is_step=is_step)
        with uninterrupted():
            flags = block.append(function, row, device, host, is_step=is_step)
        self._compiled.add(signature)
        return flags

    def room(self, rows: int) -> list[np.ndarray]:
        """Return the memory (width, ...) of each host array in the row behind the first `rows`, which is to be next.

        Empty where a mesh is set, under which no block may be made.
        """
        if not jax.sharding.get_abstract_mesh().empty:
            return []
        block = self._block_for(rows, 1)
        row = rows - block.start
        return [array[row] for array in block.host]

    def has_room(self, rows: int) -> bool:
        """Say whether the block that holds the last of the first `rows` rows takes one more."""
        block = self._open_block(rows)
        return rows < block.start + block.capacity

    def _open_block(self, rows: int) -> Block:
        """Return the block that holds the last of the first `rows` rows; later ones hold none that count."""
        while self.blocks[-1].start >= rows:
            self.blocks.pop()
        return self.blocks[-1]

    def _block_for(self, rows: int, length: int) -> Block:
        """Return the block that takes the next rows: the open one, a spare one, or a new one."""
        while self.blocks and (self.blocks[-1].start >= rows) and self.blocks[-1].is_lost():
            self.blocks.pop()
        if self.blocks:
            last = self.blocks[-1]
            if rows + length <= last.start + last.capacity:
                return last
            if last.start >= rows:
                self.blocks.pop()
        for spare in self._spare:
            if spare.capacity >= length:
                self._spare.remove(spare)
                spare.start = rows
                self.blocks.append(spare)
                return spare
        block = Block(rows, self._capacity(length), self.layout, self._shardings or ())
        self.blocks.append(block)
        return block

    def _capacity(self, length: int) -> int:
        """Return the rows of a new block: a multiple of the first chunk's length, as long as chunks are no longer.

        All blocks alike, since every new shape compiles anew, which takes longer than writing many chunks.
        """
        if self.exact:
            return length
        if self._rows < MIN_CHUNKS * length:
            chunks = max(MIN_CHUNKS, -(-MIN_BYTES // max(self.layout.row_bytes * length, 1)))
            self._rows = chunks * length
        return self._rows

    def view(self, rows: int, lock: Any) -> LogView:
        """Return the first `rows` rows for reading."""
        return LogView(self.layout, tuple(block for block in self.blocks if block.start < rows), rows, lock)

    def release(self, row: int, held: Sequence[LogView]) -> None:
        """Give up the blocks whose rows all lie before `row`; keep the memory of those that no view reads."""
        count = sum(following.start <= row for following in self.blocks[1:])
        self._give_up(count, held)

    def clear(self, held: Sequence[LogView]) -> None:
        """Forget all rows; keep the memory of blocks that none of the `held` views reads."""
        self._give_up(len(self.blocks), held)

    def _give_up(self, count: int, held: Sequence[LogView]) -> None:
        """Forget the first blocks, so many, for good: an interrupt loses their memory at most."""
        in_use = {id(block) for view in held for block in view.blocks}
        done, self.blocks = self.blocks[:count], self.blocks[count:]
        self._spare += [block for block in done if id(block) not in in_use]

    def nbytes(self) -> dict[str, int]:
        """Return the bytes held in each home, spare blocks included."""
        sums = {"device": 0, "host": 0}
        for block in [*self.blocks, *self._spare]:
            for home, size in block.nbytes().items():
                sums[home] += size
        return sums
