"""One recording: all that the first chunk fixed, and the log that grows from it."""

import dataclasses
import functools
import weakref
from typing import Any

import jax
import numpy as np
import xarray as xr

from trajlab.block.append import Chunk
from trajlab.block.layout import Home
from trajlab.block.log import Log
from trajlab.block.read import to_host
from trajlab.block.view import LogView
from trajlab.capture.fit import Fit
from trajlab.capture.plan import Plan
from trajlab.check import STRANGE_ACTIONS, Finding, find, warn_about
from trajlab.consumers.consumer import Batch
from trajlab.dataset.description import Description
from trajlab.dataset.source import Source
from trajlab.recorder.captured import Captured, capture
from trajlab.recorder.iterations import Iterations
from trajlab.recorder.marks import bits_of
from trajlab.recorder.sharing import MAX_ROWS, CellFlags, Sharing, Window
from trajlab.recorder.state import Call, Counters, Options
from trajlab.recorder.stream import Arrivals, Stream
from trajlab.recorder.watch import Watch
from trajlab.segment import Episodes, RankMap, Segmenter


class Session:
    """The log of one recording with its plan; the `Recorder` holds the lock around every call."""

    def __init__(self, plan: Plan, options: Options, lock: Any) -> None:
        """Start a recording; raise where labels do not fit the plan's fields."""
        self.plan, self.fit = plan, Fit(plan)
        self.options, self.lock = options, lock
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
        self._at: dict[Home, tuple[list[int], range]] = {
            home: (
                [i for i, field in enumerate(layout.fields) if field.home == home],
                range(len(layout.fields), len(plan.used_sources()) if layout.flags_home == home else 0),
            )
            for home in ("device", "host")
        }
        is_plain = layout.columns is None and len(layout.sizes) == 1
        self._with_room = [field.source for field in layout.at("host")] if is_plain else []
        self.columns = None if layout.columns is None else jax.device_put(self.envs.astype(np.int32))
        self.views: weakref.WeakSet[LogView] = weakref.WeakSet()
        self._warned: set[str] = set()
        self.clear()

    def clear(self) -> None:
        """Forget all rows; memory that no Dataset reads is kept."""
        self.log.clear(list(self.views))
        self.views = weakref.WeakSet()
        self.segmenter = Segmenter(self.plan.layout.width, self.description.rules)
        self.iterations = Iterations()
        self._arrivals = Arrivals()
        self._is_full = False
        self._watch = Watch(self.options.max_episodes or 0, None)
        self.findings: tuple[Finding, ...] = ()
        options, self._stream = self.options, None
        if options.gives_episodes or not (options.retain or options.max_episodes is None):
            self._stream = Stream(self.plan.layout.width, self.description.rules, options.max_episodes)
        readers = [self._arrivals] if options.retain and options.max_episodes is not None else []
        self._readers = readers + ([self._stream.arrivals] if self._stream else [])
        self._sharing = Sharing()

    def append(self, counters: Counters, leaves: list[Any], call: Call) -> tuple[Counters, Captured | None]:
        """Write a checked chunk behind what `counters` says is stored.

        Returns what they are to be then, and the chunk's rows where consumers want them.
        """
        marks = bits_of(counters.marks, self.plan.layout.num_envs, jumps=call.jumps)
        marks = None if marks is None else marks[self.envs]
        if call.envs is None:
            return self._append_rows(counters, leaves, call, marks)
        return self._append_cells(counters, leaves, call, call.envs, marks)

    def _append_rows(
        self, counters: Counters, leaves: list[Any], call: Call, marks: np.ndarray | None
    ) -> tuple[Counters, Captured | None]:
        """Write rows behind the last one."""
        pending = None if counters.window is None else counters.window.marked(marks).marks
        counters = self.closed(counters)
        if counters.bits is not None:
            marks = counters.bits if marks is None else np.where(marks, marks, counters.bits)
        columns = None if self.columns is None else self.envs
        device = self._chunk_for("device", leaves, Chunk((), (), marks=marks, columns=self.columns), call.mask)
        host = self._chunk_for("host", leaves, Chunk((), (), marks=marks, columns=columns), call.mask)
        captured = self._captured(counters, device, host, call, marks if pending is None else pending)
        flags = self._write(counters.rows, call.length, device, host, call, (marks is None,), counters.rows)
        for reader in self._readers:
            reader.add(counters.rows, flags)
        self.iterations.note(counters.rows, call.length, call.iteration, call.updates)
        track = None if captured is None else captured.track
        return counters._replace(rows=counters.rows + call.length, bits=None, track=track), captured

    def rooms(self, counters: Counters) -> dict[str, np.ndarray]:
        """Return the memory (N, ...) of the next row of all environments, by source, of fields that live on the host.

        What is put there counts once it is appended, which then copies nothing. Until then nothing else may be.
        """
        if not (self._with_room and self._writes):
            return {}
        return dict(zip(self._with_room, self.log.room(counters.rows), strict=False))

    def _append_cells(
        self, counters: Counters, leaves: list[Any], call: Call, envs: np.ndarray, marks: np.ndarray | None
    ) -> tuple[Counters, Captured | None]:
        """Write a step of some environments, each to the next row of its own."""
        places, picks = self._places(envs)
        counters, window = self._window_for(counters, places, call.iteration)
        window = window.marked(marks)
        if not len(places):
            return counters._replace(bits=None, window=window), None
        rows = window.next_row[places] - window.start
        added = int(rows.max() == counters.rows - window.start)
        own = window.marks[places]
        common = Chunk((), (), marks=own if own.any() else None, places=places, rows=rows)
        is_whole = call.is_whole
        common = (
            common._replace(columns=envs if picks is None else envs[picks])
            if is_whole
            else common._replace(picks=picks)
        )
        device, host = self._chunk_for("device", leaves, common, None), self._chunk_for("host", leaves, common, None)
        captured = self._captured(counters, device, host, call, window.marks)
        device = padded(device, self.plan.layout.width) if is_whole else device
        form = (common.marks is None, len(device.places), picks is None)
        flags = self._write(counters.rows, added, device, host, call, form, window.start)
        if self._readers:
            self._sharing.add(window, CellFlags(rows, places, flags))
        if added:
            self.iterations.note(counters.rows, 1, call.iteration, 1)
        track = None if captured is None else captured.track
        window = window.stepped(places)
        return counters._replace(rows=counters.rows + added, bits=None, window=window, track=track), captured

    def _window_for(self, counters: Counters, places: np.ndarray, iteration: int) -> tuple[Counters, Window]:
        """Return the window that takes a step in some columns: the open one or, where that is full, a new one."""
        window = counters.window
        if window is not None and not self._takes(window, counters, places, iteration):
            counters = self.closed(counters)
        return counters, counters.window or Window.at(counters.rows, self.plan.layout.width, counters.bits)

    def _takes(self, window: Window, counters: Counters, places: np.ndarray, iteration: int) -> bool:
        """Say whether an open window takes a step in some columns."""
        if counters.iteration != iteration:
            return False
        needs_row = (window.next_row[places] == counters.rows).any() and counters.rows > window.start
        if not needs_row:
            return True
        is_full = bool(self._readers) and counters.rows == window.start + MAX_ROWS
        return not is_full and (not self._writes or self.log.has_room(counters.rows))

    def closed(self, counters: Counters) -> Counters:
        """Return the counters where all environments go on behind the last row."""
        window = counters.window
        if window is None:
            return counters
        if counters.rows > window.start:
            flags = self._sharing.close(window, counters.rows)
            for reader in self._readers:
                reader.add(window.start, flags)
        return counters._replace(window=None, bits=window.waiting(counters.rows))

    def _captured(
        self, counters: Counters, device: Chunk, host: Chunk, call: Call, marks: np.ndarray | None
    ) -> Captured | None:
        """Return a chunk's rows where consumers want them; `marks` (width,) stand before each column's next cell."""
        if not self.options.gives_batches:
            return None
        rules = self.description.rules
        return capture(self.plan.layout, rules, counters.track, device, host, marks, is_step=call.is_step)

    @property
    def _writes(self) -> bool:
        """Whether rows are stored at all."""
        return self.options.retain or bool(self._readers)

    def _write(
        self, rows: int, length: int, device: Chunk, host: Chunk, call: Call, form: tuple[Any, ...], start: int
    ) -> Any:
        """Write into the log; return the flags (T, width) where they are waited for."""
        if not self._writes:
            return None
        return self.log.append(
            rows,
            length,
            device,
            host,
            is_step=call.is_step,
            want_flags=bool(self._readers),
            signature=(call.signature, *form),
            start=start,
        )

    def _chunk_for(self, home: Home, leaves: list[Any], common: Chunk, mask: Any) -> Chunk:
        """Return the part of a chunk that lives in one home."""
        fields, flags = self._at[home]
        if not (fields or flags):
            return common
        take = _device_input if home == "device" else np.asarray
        return common._replace(
            fields=tuple([take(leaves[i]) for i in fields]),
            flags=tuple([take(leaves[i]) for i in flags]),
            mask=take(mask) if flags and mask is not None else None,
        )

    def _places(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the log's columns that a partial step fills, and which of its entries go there."""
        if self.columns is None:
            return part, None
        places = np.searchsorted(self.envs, part)
        picks = np.flatnonzero(self.envs[np.minimum(places, len(self.envs) - 1)] == part)
        return places[picks], None if len(picks) == len(part) else picks

    def is_full(self, counters: Counters) -> bool:
        """Say whether the wanted episodes are known to have ended, by the flags that have arrived."""
        if self.options.max_episodes is None or self._is_full:
            return self._is_full
        if not self.options.retain:
            return self._stream is not None and self._stream.is_full
        is_news = False
        while (arrived := self._arrivals.take(self.segmenter.rows, counters.fixed)) is not None:
            self.segmenter.feed(arrived)
            is_news |= self._watch.concerns(arrived, self.segmenter.num_ends)
        if is_news:
            self._wanted(self.segmenter.table()[0])
        return self._is_full

    def _wanted(self, table: Episodes) -> tuple[Episodes, bool]:
        """Return the first episodes to start, as many as are wanted, and whether nothing can change them."""
        if self.options.max_episodes is None:
            return table, False
        table = table.take(slice(self.options.max_episodes))
        self._is_full = len(table.length) == self.options.max_episodes and bool(table.settled.all())
        self._watch = Watch.of(table, self.options.max_episodes, self.segmenter.num_ends, self.plan.layout.width)
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

    @functools.cached_property
    def _same(self) -> dict[str, Any]:
        """What all batches have in common."""
        fields = [field for field in self.plan.layout.fields if not field.hidden]
        return {
            "num_envs": self.plan.layout.width,
            "moved": frozenset(field.name for field in fields if field.moved),
            "agents": frozenset(field.name for field in fields if field.agent),
            "dims": {field.name: self.description.dims_of(field.name) for field in fields},
            "coords": self.description.coords(),
            "attrs": {field.name: self.description.attrs_of(field.name) for field in fields},
        }

    def batch(self, captured: Captured, row: int, iteration: int, part: np.ndarray | None) -> Batch:
        """Return what consumers get of a chunk whose first row is `row`."""
        columns = None if part is None else self._places(part)[0].astype(np.int32)
        return Batch(
            fields={name: captured.rows[name] for name in self._same["dims"]},
            time=captured.time,
            mask=captured.mask,
            envs=self.envs if columns is None else self.envs[columns],
            columns=columns,
            first_row=row,
            iteration=iteration,
            **self._same,
        )

    def finished(self, counters: Counters, *, is_last: bool = False) -> xr.Dataset | None:
        """Return the episodes that have finished since the last call, None where there are none.

        With `is_last` all flags are waited for and those under way come, too. Rows that no episode needs any more are
        given up where they are not retained.
        """
        settled = None if self._stream is None else self._stream.take(counters.fixed, is_last=is_last)
        dataset = None
        if settled is not None and self.options.gives_episodes:
            view = self.log.view(counters.rows, self.lock)
            first = int(settled.episodes.start_row.min())
            source = Source(view, settled.ranks, settled.episodes, *self.iterations.since(first))
            dataset = self.description.dataset(source, seen=counters.seen, kept=counters.rows, evicted=0, unaligned=0)
            self.views.add(view)
        if not self.options.retain:
            self._give_up(counters.rows if self._stream is None else self._stream.needed_row)
        return dataset

    def _give_up(self, row: int) -> None:
        """Forget what is known of the rows before `row`, so that memory does not grow with the calls."""
        self.log.release(row, list(self.views))
        self.iterations.forget(row)
        self._sharing.forget(row)

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
            mends=self.options.mends,
        )
        self.findings = found + stays

    def _source(self, counters: Counters) -> tuple[Source, int]:
        """Return the rows with their episodes, and how many cells could not be aligned."""
        self._feed_up_to(counters.rows)
        table, unaligned = self.segmenter.table()
        ranks = self.segmenter.ranks()
        table, is_final = self._wanted(table)
        view = self.log.view(_rows_needed(table, ranks) if is_final else counters.rows, self.lock)
        self.iterations.cut(counters.rows)
        return Source(view, ranks, table, *self.iterations.since()), unaligned

    def _feed_up_to(self, rows: int) -> None:
        """Segment the rows that have not been; of a block with such rows all flags are fetched."""
        for block, start, stop in self.log.view(rows, self.lock).spans():
            start = max(start, self.segmenter.rows)
            if start < stop:
                flags = to_host(block.flags())[start - block.start : stop - block.start]
                self.segmenter.feed(self._sharing.complete(flags, start))
        self._sharing.forget(self.segmenter.rows)


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
