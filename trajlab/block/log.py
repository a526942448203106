"""The log: blocks of rows that grow by a block, are never copied, and are read where they lie."""

import dataclasses
import functools
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.append import Chunk, adopted, device_append, has_foreign, host_append
from trajlab.block.fingerprint import fingerprints
from trajlab.block.layout import Field, Layout
from trajlab.block.placement import NO_MESH, Shardings, block_shardings
from trajlab.block.read import gather, read_rows

MIN_CHUNKS = 4
"""A new block takes at least so many chunks: fresh memory costs several times the write."""
MIN_BYTES = 2**23
"""And at least so many bytes, so that small chunks do not make many blocks."""


class Block:
    """A fixed number of rows of every field; once sealed it is never written again.

    The device arrays stand in a list whose last entry is the current one: a donated append is stored there
    by C code, without a bytecode between the call and the store at which an interrupt could lose them.
    """

    def __init__(self, start: int, capacity: int, layout: Layout, shardings: Shardings = ()) -> None:
        """Allocate `capacity` rows whose first is row `start` of the log."""
        self.start = start
        self.capacity = capacity
        self.layout = layout
        self.box: list[tuple[tuple[jax.Array, ...], Any]] = [(_device_arrays(layout, capacity, shardings), None)]
        self.host = _host_arrays(layout, capacity)

    @classmethod
    def sealed(cls, layout: Layout, arrays: tuple[Any, ...]) -> Self:
        """Return a block of arrays (rows, width, ...) that are complete: one for each field on the device."""
        block = cls.__new__(cls)
        block.start, block.capacity, block.layout = 0, len(arrays[0]), layout
        block.box, block.host = [(arrays, None)], ()
        return block

    def array(self, index: int, field: Field) -> Any:
        """Return the array (capacity, width, ...) of a field, the `index`-th of those that share its home."""
        return self.box[-1][0][index] if field.home == "device" else self.host[index]

    def flags(self) -> Any:
        """Return the bytes of flags (capacity, width)."""
        return self.box[-1][0][-1] if self.layout.flags_home == "device" else self.host[-1]

    def place(self) -> tuple[Any, ...]:
        """Return where the device arrays lie, which JAX compiles for; a chunk may commit them there."""
        arrays = self.box[-1][0]
        return (arrays[0].sharding, arrays[0].committed) if arrays else ()

    def is_lost(self) -> bool:
        """Say whether an interrupted call took the device arrays with it; only an empty block can be."""
        return any(array.is_deleted() for array in self.box[-1][0])

    def append(self, function: Any, row: int, device: Chunk, host: Chunk, *, is_step: bool) -> Any:
        """Write a chunk that fits, its device part by `function`; return its bytes of flags (T, width)."""
        flags = host_append(self.host, row, host, self.layout, is_step=is_step)
        if self.box[-1][0]:
            self.box.extend(map(function, (self.box[-1][0],), (row,), (device,)))
            del self.box[:-1]
        return self.box[-1][1] if flags is None else flags

    def nbytes(self) -> dict[str, int]:
        """Return the bytes held in each home."""
        return {
            "device": sum(array.nbytes for array in self.box[-1][0]),
            "host": sum(array.nbytes for array in self.host),
        }


def _device_arrays(layout: Layout, capacity: int, shardings: Shardings) -> tuple[jax.Array, ...]:
    specs = tuple((field.shape, field.dtype) for field in layout.at("device"))
    if layout.flags_home == "device":
        specs += (((), np.dtype(np.uint8)),)
    return _zeros(specs, capacity, layout.width, shardings)() if specs else ()


@functools.lru_cache(maxsize=256)
def _zeros(specs: tuple[tuple[tuple[int, ...], np.dtype], ...], rows: int, width: int, shardings: Shardings) -> Any:
    """Return a jitted function that allocates all arrays of a block in one call, each part on its own device."""
    return jax.jit(
        lambda: tuple(jnp.zeros((rows, width, *shape), dtype) for shape, dtype in specs),
        out_shardings=shardings or None,
    )


def _host_arrays(layout: Layout, capacity: int) -> tuple[np.ndarray, ...]:
    arrays = [np.empty((capacity, layout.width, *f.shape), f.dtype) for f in layout.at("host")]
    if layout.flags_home == "host":
        arrays.append(np.empty((capacity, layout.width), np.uint8))
    return tuple(arrays)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back KeyboardInterrupt until the end of the block.

    When a jitted function meets a new signature, JAX runs Python code after the donated call, at which an
    interrupt would lose the donated arrays; later calls with the same signature stay in C++.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *args: held.append(args))
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


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

        Of a sealed block in the host's memory it is a view, which must not be written.
        """
        index, field = self.index_of(name)
        with self.lock:
            array = block.array(index, field)
            return read_rows(array, start - block.start, stop - block.start, copy=block is self.blocks[-1])


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
