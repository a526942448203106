"""One recording: all that the first chunk fixed, and the log that grows from it."""

import bisect
import dataclasses
import functools
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

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
from trajlab.consumers.consumer import Batch
from trajlab.dataset.description import Description
from trajlab.dataset.source import Source
from trajlab.recorder.captured import Captured, Track, capture
from trajlab.recorder.marks import Mark, bits_of
from trajlab.recorder.stream import Arrivals, Stream
from trajlab.recorder.watch import Watch
from trajlab.segment import Episodes, RankMap, Segmenter


class Options(NamedTuple):
    """What was asked of a recording.

    `exact` makes each block as long as its chunk; `attrs` are attributes of fields, by their names in the chunk;
    `retain` keeps the rows; `gives_batches` and `gives_episodes` say what consumers are to get of them; `mends` are
    those of findings, by their names.
    """

    starts_fresh: bool
    max_episodes: int | None
    dims: Any
    coords: Any
    units: Any
    episode_fields: Any = None
    exact: bool = False
    attrs: Any = None
    retain: bool = True
    gives_batches: bool = False
    gives_episodes: bool = False
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
    track : Track or None
        Where the environments stand behind the rows, where consumers want to know.
    """

    rows: int = 0
    seen: int = 0
    updates: int = 0
    iteration: int | None = None
    marks: tuple[Mark, ...] = ()
    track: Track | None = None


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
        self._arrivals = Arrivals()
        self._is_full = False
        self._watch = Watch(self.options.max_episodes or 0, None)
        self.findings: tuple[Finding, ...] = ()
        options, self._stream = self.options, None
        if options.gives_episodes or not (options.retain or options.max_episodes is None):
            self._stream = Stream(self.plan.layout.width, self.description.rules, options.max_episodes)

    def marks_before(self, counters: Counters, jumps: bool) -> np.ndarray | None:
        """Return the marks (width,) that stand before the next row, or None where there are none."""
        bits = bits_of(counters.marks, self.plan.layout.num_envs, jumps=jumps)
        return None if bits is None else bits[self.envs]

    def append(
        self,
        counters: Counters,
        leaves: list[Any],
        length: int,
        *,
        mask: Any,
        marks: np.ndarray | None,
        part: np.ndarray | None,
        is_step: bool,
        signature: Any,
    ) -> Captured | None:
        """Write a checked chunk behind the rows that `counters` says are stored; return it where consumers want it."""
        places, picks = self._places(part)
        device, host = (self._chunk_for(home, leaves, mask, marks, places, picks) for home in get_args(Home))
        layout, options = self.plan.layout, self.options
        captured = None
        if options.gives_batches:
            captured = capture(layout, self.description.rules, counters.track, device, host, is_step=is_step)
        readers = [self._arrivals] if options.retain and options.max_episodes is not None else []
        readers += [self._stream.arrivals] if self._stream else []
        if options.retain or readers:
            flags = self.log.append(
                counters.rows,
                length,
                device,
                host,
                is_step=is_step,
                want_flags=bool(readers),
                signature=(signature, marks is None, None if places is None else len(places), picks is None),
            )
            for reader in readers:
                reader.add(counters.rows, flags)
        return captured

    def _chunk_for(
        self,
        home: Home,
        leaves: list[Any],
        mask: Any,
        marks: Any,
        places: np.ndarray | None,
        picks: np.ndarray | None,
    ) -> Chunk:
        """Return the part of a chunk that lives in one home."""
        layout, on_device = self.plan.layout, home == "device"
        take = _device_input if on_device else np.asarray
        has_flags = layout.flags_home == home
        columns = None
        if places is None and self.columns is not None:
            columns = self.columns if on_device else self.envs
        return Chunk(
            fields=tuple(take(x) for x, f in zip(leaves, layout.fields, strict=False) if f.home == home),
            flags=tuple(take(x) for x in leaves[len(layout.fields) :]) if has_flags else (),
            marks=marks,
            mask=take(mask) if has_flags and mask is not None else None,
            columns=columns,
            places=places,
            picks=picks,
        )

    def _places(self, part: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the log's columns that a partial step fills, and which of its entries go there."""
        if part is None:
            return None, None
        places = np.searchsorted(self.envs, part)
        picks = np.flatnonzero(self.envs[np.minimum(places, len(self.envs) - 1)] == part)
        chosen = None if len(picks) == len(part) else picks.astype(np.int32)
        return places[picks].astype(np.int32), chosen

    def note_iterations(self, row: int, length: int, iteration: int, updates: int) -> None:
        """Remember the iterations of the next rows; entries of rows that were never committed are dropped."""
        while self.iterations and self.iterations[-1][0] >= row:
            self.iterations.pop()
        for update in range(updates):
            if not self.iterations or self.iterations[-1][1] != iteration + update:
                self.iterations.append((row + update * (length // updates), iteration + update))

    def is_full(self, counters: Counters) -> bool:
        """Say whether the wanted episodes are known to have ended, by the flags that have arrived."""
        if self.options.max_episodes is None or self._is_full:
            return self._is_full
        if not self.options.retain:
            return self._stream is not None and self._stream.is_full
        is_news = False
        while (arrived := self._arrivals.take(self.segmenter.rows, counters.rows)) is not None:
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
        columns, _ = self._places(part)
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
        if self._stream is None:
            return None
        settled = self._stream.take(counters.rows, is_last=is_last)
        dataset = None
        if settled is not None and self.options.gives_episodes:
            view = self.log.view(counters.rows, self.lock)
            first = int(settled.episodes.start_row.min())
            source = Source(view, settled.ranks, settled.episodes, *self._iteration_pairs(first))
            dataset = self.description.dataset(source, seen=counters.seen, kept=counters.rows, evicted=0, unaligned=0)
            self.views.add(view)
        if not self.options.retain:
            self.log.release(self._stream.needed_row, list(self.views))
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
        while self.iterations and self.iterations[-1][0] >= counters.rows:
            self.iterations.pop()
        return Source(view, ranks, table, *self._iteration_pairs()), unaligned

    def _iteration_pairs(self, row: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the row from which each iteration holds, and its number, of those that hold from `row` on."""
        first = max(bisect.bisect_right(self.iterations, row, key=lambda pair: pair[0]) - 1, 0)
        pairs = np.array(self.iterations[first:], np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _feed_up_to(self, rows: int) -> None:
        """Segment the rows that have not been; of a block with such rows all flags are fetched."""
        for block, start, stop in self.log.view(rows, self.lock).spans():
            start = max(start, self.segmenter.rows)
            if start < stop:
                self.segmenter.feed(to_host(block.flags())[start - block.start : stop - block.start])


def _rows_needed(table: Episodes, ranks: RankMap) -> int:
    last = table.start + table.length - 1 + table.has_reset_row
    return int(ranks.rows(table.column, last).max(initial=-1)) + 1


def _device_input(x: Any) -> Any:
    """Return an array that a jitted call may read later: a NumPy one is copied, since JAX may alias it."""
    return np.array(x) if isinstance(x, np.ndarray) else x
