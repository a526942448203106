"""One recording: all that the first chunk fixed, and the log that grows from it."""

import dataclasses
import weakref
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from trajlab.block.append import Chunk
from trajlab.block.layout import Home
from trajlab.block.log import Log, LogView
from trajlab.block.read import to_host
from trajlab.capture.fit import Fit
from trajlab.capture.plan import Plan
from trajlab.check import STRANGE_ACTIONS, Finding, FindingName, find, warn_about
from trajlab.dataset.description import Description
from trajlab.dataset.source import Source
from trajlab.recorder.marks import Mark, bits_of
from trajlab.recorder.watch import Watch
from trajlab.recorder.window import MAX_ROWS, Window, WindowFlags
from trajlab.segment import Episodes, RankMap, Segmenter


class Options(NamedTuple):
    """What was asked of a recording.

    `exact` makes each block as long as its chunk; `attrs` are attributes of fields, by their names in the chunk;
    `mends` are those of findings, by their names.
    """

    starts_fresh: bool
    max_episodes: int | None
    dims: Any
    coords: Any
    units: Any
    episode_fields: Any = None
    exact: bool = False
    attrs: Any = None
    mends: Mapping[FindingName, str] = MappingProxyType({})


class Counters(NamedTuple):
    """Everything about a recording that changes with a call; replaced as a whole, so never half updated.

    Attributes
    ----------
    rows : int
        Rows stored.
    seen : int
        Rows handed over.
    updates : int
        The iteration of the next call of `record`, where none is given.
    iteration : int or None
        The last row's iteration, None before the first row.
    marks : tuple of Mark
        Marks that wait for the next row, in the order they were given.
    bits : array (width,) uint8 or None
        Earlier marks, that already waited for a row and found no cell in it.
    window : Window or None
        The last rows, where environments still make their steps one by one.
    """

    rows: int = 0
    seen: int = 0
    updates: int = 0
    iteration: int | None = None
    marks: tuple[Mark, ...] = ()
    bits: np.ndarray | None = None
    window: Window | None = None

    @property
    def fixed(self) -> int:
        """Rows that are filled for good."""
        return self.rows if self.window is None else self.window.start


class Call(NamedTuple):
    """What a call of `record` or `record_step` says beside its arrays.

    Attributes
    ----------
    length, updates : int
        Rows and updates of the chunk.
    iteration : int
        Of its first row.
    jumps : bool
        Whether that is no successor of the last row's.
    is_step : bool
    mask : array or None
    envs : array (k,) int64 or None
        The environments that made a step, where some did.
    is_whole : bool
        Whether the arrays are of all environments nevertheless.
    signature : hashable
        What the append compiles for.
    """

    length: int
    updates: int
    iteration: int
    jumps: bool
    is_step: bool
    mask: Any
    envs: np.ndarray | None
    is_whole: bool
    signature: Any


class Session:
    """The log of one recording with its plan; the `Recorder` holds the lock around every call."""

    def __init__(self, plan: Plan, options: Options, lock: Any) -> None:
        """Start a recording; raise where labels do not fit the plan's fields."""
        self.plan, self.fit = plan, Fit(plan)
        self.max_episodes, self.lock, self._mends = options.max_episodes, lock, options.mends
        layout = plan.layout
        self.description = Description(
            layout,
            plan.roles,
            plan.same_dims,
            starts_fresh=options.starts_fresh,
            dims=options.dims,
            coords=options.coords,
            units=options.units,
            episode_fields=options.episode_fields,
            attrs=options.attrs,
        )
        self.envs = self.description.envs
        self.log = Log(layout, exact=options.exact)
        self.columns = None if layout.columns is None else jax.device_put(self.envs.astype(np.int32))
        self.views: weakref.WeakSet[LogView] = weakref.WeakSet()
        self._warned: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Forget all rows; memory that no Dataset reads is kept."""
        self.log.clear(list(self.views))
        self.views = weakref.WeakSet()
        self.segmenter = Segmenter(self.plan.layout.width, self.description.rules)
        self.iterations: list[tuple[int, int]] = []
        self._arriving: deque[tuple[int, Any]] = deque()
        self._ragged: list[Window] = []
        self._pieces: tuple[int, list[tuple[np.ndarray, np.ndarray, Any]]] = (0, [])
        self._is_full = False
        self._watch = Watch(self.max_episodes or 0, None)
        self.findings: tuple[Finding, ...] = ()

    def append(self, counters: Counters, leaves: list[Any], call: Call) -> Counters:
        """Write a checked chunk behind what `counters` says is stored; return what they are to be then."""
        marks = bits_of(counters.marks, self.plan.layout.num_envs, jumps=call.jumps)
        marks = None if marks is None else marks[self.envs]
        if call.envs is None:
            return self._append_rows(self.closed(counters), leaves, call, marks)
        return self._append_cells(counters, leaves, call, call.envs, marks)

    def _append_rows(self, counters: Counters, leaves: list[Any], call: Call, marks: np.ndarray | None) -> Counters:
        """Write rows behind the last one."""
        if counters.bits is not None:
            marks = counters.bits if marks is None else np.where(marks, marks, counters.bits)
        common = Chunk((), (), marks=marks)
        device = self._chunk_for("device", leaves, common._replace(columns=self.columns), call.mask)
        columns = None if self.columns is None else self.envs
        host = self._chunk_for("host", leaves, common._replace(columns=columns), call.mask)
        signature = (call.signature, marks is None)
        flags = self._write(counters.rows, call.length, device, host, call.is_step, signature, counters.rows)
        if flags is not None:
            self._forget_arriving(counters.rows)
            self._arriving.append((counters.rows, flags))
        self.note_iterations(counters.rows, call.length, call.iteration, call.updates)
        return counters._replace(rows=counters.rows + call.length, bits=None)

    def _append_cells(
        self, counters: Counters, leaves: list[Any], call: Call, envs: np.ndarray, marks: np.ndarray | None
    ) -> Counters:
        """Write a step of some environments, each to the next row of its own."""
        places, picks = self._places(envs)
        counters, window = self._window_for(counters, places, call.iteration)
        window = window.marked(marks)
        if not len(places):
            return counters._replace(window=window)
        rows = window.next_row[places] - window.start
        added = int(rows.max() == counters.rows - window.start)
        common = Chunk((), (), marks=own if (own := window.marks[places]).any() else None, places=places, rows=rows)
        if call.is_whole:
            host = common._replace(columns=envs if picks is None else envs[picks])
            device = padded(host, self.plan.layout.width)
        else:
            device = host = common._replace(picks=picks)
        device = device._replace(rows=device.rows.astype(np.int32), places=device.places.astype(np.int32))
        signature = (call.signature, common.marks is None, len(device.places), picks is None)
        device, host = self._chunk_for("device", leaves, device, None), self._chunk_for("host", leaves, host, None)
        flags = self._write(counters.rows, added, device, host, call.is_step, signature, window.start)
        if flags is not None:
            if self._pieces[0] != window.start:
                self._pieces = (window.start, [])
            self._pieces[1].append((rows, places, flags))
        if added:
            self.note_iterations(counters.rows, 1, call.iteration, 1)
        return counters._replace(rows=counters.rows + added, bits=None, window=window.stepped(places))

    def _window_for(self, counters: Counters, places: np.ndarray, iteration: int) -> tuple[Counters, Window]:
        """Return the window that takes a step in some columns: the open one or, where that is full, a new one."""
        window = counters.window
        if window is not None:
            is_new = counters.iteration != iteration
            if not is_new and (window.next_row[places] == counters.rows).any() and counters.rows > window.start:
                limit = None if self.max_episodes is None else window.start + MAX_ROWS
                is_new = counters.rows == limit or not self.log.has_room(counters.rows)
            if is_new:
                counters = self.closed(counters)
        return counters, counters.window or Window.at(counters.rows, self.plan.layout.width, counters.bits)

    def closed(self, counters: Counters) -> Counters:
        """Return the counters where all environments go on behind the last row."""
        window = counters.window
        if window is None:
            return counters
        while self._ragged and self._ragged[-1].start >= window.start:
            self._ragged.pop()  # closed by a call that was never committed
        if counters.rows > window.start:
            self._ragged.append(window)
            if self.max_episodes is not None:
                self._forget_arriving(window.start)
                pieces = self._pieces[1] if self._pieces[0] == window.start else []
                flags = WindowFlags(window, counters.rows - window.start, pieces)
                self._arriving.append((window.start, flags))
        return counters._replace(window=None, bits=window.waiting(counters.rows))

    def _forget_arriving(self, row: int) -> None:
        """Forget the flags of calls from a row on that were never committed."""
        while self._arriving and self._arriving[-1][0] >= row:
            self._arriving.pop()

    def _write(
        self, rows: int, length: int, device: Chunk, host: Chunk, is_step: bool, signature: Any, start: int
    ) -> Any:
        """Write into the log; return the flags (T, width), on their way to the host, where they are waited for."""
        flags = self.log.append(
            rows,
            length,
            device,
            host,
            is_step=is_step,
            want_flags=self.max_episodes is not None,
            signature=signature,
            start=start,
        )
        if self.max_episodes is None:
            return None
        if hasattr(flags, "copy_to_host_async"):
            flags.copy_to_host_async()
        return flags

    def _chunk_for(self, home: Home, leaves: list[Any], common: Chunk, mask: Any) -> Chunk:
        """Return the part of a chunk that lives in one home."""
        layout = self.plan.layout
        take = _device_input if home == "device" else np.asarray
        has_flags = layout.flags_home == home
        return common._replace(
            fields=tuple(take(x) for x, f in zip(leaves, layout.fields, strict=False) if f.home == home),
            flags=tuple(take(x) for x in leaves[len(layout.fields) :]) if has_flags else (),
            mask=take(mask) if has_flags and mask is not None else None,
        )

    def _places(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the log's columns that a partial step fills, and which of its entries go there."""
        if self.columns is None:
            return part, None
        places = np.searchsorted(self.envs, part)
        picks = np.flatnonzero(self.envs[np.minimum(places, len(self.envs) - 1)] == part)
        return places[picks], None if len(picks) == len(part) else picks

    def note_iterations(self, row: int, length: int, iteration: int, updates: int) -> None:
        """Remember the iterations of the next rows; entries of rows that were never committed are dropped."""
        while self.iterations and self.iterations[-1][0] >= row:
            self.iterations.pop()
        for update in range(updates):
            if not self.iterations or self.iterations[-1][1] != iteration + update:
                self.iterations.append((row + update * (length // updates), iteration + update))

    def is_full(self, counters: Counters) -> bool:
        """Say whether the wanted episodes are known to have ended, by the flags that have arrived."""
        if self.max_episodes is None or self._is_full:
            return self._is_full
        is_news = False
        while self._arriving:
            row, flags = self._arriving[0]
            is_window = isinstance(flags, WindowFlags)
            length = flags.rows if is_window else len(flags)
            if row + length > counters.fixed or row != self.segmenter.rows:
                self._arriving.popleft()
            elif hasattr(flags, "is_ready") and not flags.is_ready():
                break
            else:
                arrived = flags.fetch() if is_window else to_host(flags)
                self.segmenter.feed(arrived)
                self._arriving.popleft()
                is_news |= self._watch.concerns(arrived, self.segmenter.num_ends)
        if is_news:
            self._wanted(self.segmenter.table()[0])
        return self._is_full

    def _wanted(self, table: Episodes) -> tuple[Episodes, bool]:
        """Return the first episodes to start, as many as are wanted, and whether nothing can change them."""
        if self.max_episodes is None:
            return table, False
        table = table.take(slice(self.max_episodes))
        self._is_full = len(table.length) == self.max_episodes and bool(table.settled.all())
        self._watch = Watch.of(table, self.max_episodes, self.segmenter.num_ends, self.plan.layout.width)
        return table, self._is_full

    def dataset(self, counters: Counters, incomplete: str) -> xr.Dataset:
        """Return the Dataset of all rows that `counters` says are stored; warn of findings that are new."""
        source, unaligned = self._source(counters)
        self._look(source, reads_actions=False)
        self.views.add(source.view)
        table, kept = source.episodes, source.view.rows
        if incomplete == "drop":
            source = dataclasses.replace(source, episodes=table.take(table.ended & table.start_seen))
        dataset = self.description.dataset(source, seen=counters.seen, kept=kept, evicted=0, unaligned=unaligned)
        news = [finding for finding in self.findings if finding.name not in self._warned]
        self._warned |= {finding.name for finding in news}
        warn_about(news)
        return dataset

    def check(self, counters: Counters) -> list[Finding]:
        """Return what looks wrong about all rows that `counters` says are stored."""
        source, _ = self._source(counters)
        self._look(source, reads_actions=True)
        self._warned |= {finding.name for finding in self.findings}
        return list(self.findings)

    def _look(self, source: Source, *, reads_actions: bool) -> None:
        """Look for findings and keep them; one on actions stays, where these are not looked at again."""
        stays = () if reads_actions else tuple(one for one in self.findings if one.name == STRANGE_ACTIONS)
        found = find(
            source.view,
            source.ranks,
            source.episodes,
            self.description.rules,
            self.plan.roles,
            reads_actions=reads_actions,
            mends=self._mends,
        )
        self.findings = found + stays

    def _source(self, counters: Counters) -> tuple[Source, int]:
        """Return the rows with their episodes, and how many cells could not be aligned."""
        self._feed_up_to(counters.rows)
        table, unaligned = self.segmenter.table()
        ranks = self.segmenter.ranks()
        table, is_final = self._wanted(table)
        view = self.log.view(_rows_needed(table, ranks) if is_final else counters.rows, self.lock)
        while self.iterations and self.iterations[-1][0] >= counters.rows:
            self.iterations.pop()
        pairs = np.array(self.iterations, np.int64).reshape(-1, 2)
        return Source(view, ranks, table, pairs[:, 0], pairs[:, 1]), unaligned

    def _feed_up_to(self, rows: int) -> None:
        """Segment the rows that have not been; of a block with such rows all flags are fetched."""
        for block, start, stop in self.log.view(rows, self.lock).spans():
            start = max(start, self.segmenter.rows)
            if start < stop:
                flags = to_host(block.flags())[start - block.start : stop - block.start]
                windows = [one for one in self._ragged if start <= one.start < stop]
                if windows:
                    flags = flags.copy()
                    for window in windows:
                        window.complete(flags, start)
                self.segmenter.feed(flags)
        self._ragged = [window for window in self._ragged if window.start >= self.segmenter.rows]


def _rows_needed(table: Episodes, ranks: RankMap) -> int:
    last = table.start + table.length - 1 + table.has_reset_row
    return int(ranks.rows(table.column, last).max(initial=-1)) + 1


def _device_input(x: Any) -> Any:
    """Return an array that a jitted call may read later: a NumPy one is copied, since JAX may alias it."""
    return np.array(x) if isinstance(x, np.ndarray) else x


def padded(chunk: Chunk, width: int) -> Chunk:
    """Return a partial step of arrays (N, ...) with as many cells as a power of two says: what is added is dropped."""
    count = len(chunk.places)
    extra = (1 << (count - 1).bit_length()) - count
    if not extra:
        return chunk
    none = np.zeros(extra, np.int64)
    return chunk._replace(
        places=np.append(chunk.places, width + np.arange(extra)),
        rows=np.append(chunk.rows, none),
        columns=np.append(chunk.columns, none),
        marks=None if chunk.marks is None else np.append(chunk.marks, none.astype(np.uint8)),
    )
