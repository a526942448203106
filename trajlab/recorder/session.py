"""One recording: all that the first chunk fixed, and the log that grows from it."""

import dataclasses
import weakref
from collections import deque
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
from trajlab.dataset.description import Description
from trajlab.dataset.source import Source
from trajlab.recorder.marks import Mark, bits_of
from trajlab.recorder.watch import Watch
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
    """

    rows: int = 0
    seen: int = 0
    updates: int = 0
    iteration: int | None = None
    marks: tuple[Mark, ...] = ()


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
        self._is_full = False
        self._watch = Watch(self.max_episodes or 0, None)
        self.findings: tuple[Finding, ...] = ()

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
    ) -> None:
        """Write a checked chunk behind the rows that `counters` says are stored."""
        places, picks = self._places(part)
        device, host = (self._chunk_for(home, leaves, mask, marks, places, picks) for home in get_args(Home))
        want_flags = self.max_episodes is not None
        flags = self.log.append(
            counters.rows,
            length,
            device,
            host,
            is_step=is_step,
            want_flags=want_flags,
            signature=(signature, marks is None, None if places is None else len(places), picks is None),
        )
        if want_flags and flags is not None:
            while self._arriving and self._arriving[-1][0] >= counters.rows:
                self._arriving.pop()  # of a chunk that was never committed
            if hasattr(flags, "copy_to_host_async"):
                flags.copy_to_host_async()
            self._arriving.append((counters.rows, flags))

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
        if self.max_episodes is None or self._is_full:
            return self._is_full
        is_news = False
        while self._arriving:
            row, flags = self._arriving[0]
            if row + len(flags) > counters.rows or row != self.segmenter.rows:
                self._arriving.popleft()
            elif hasattr(flags, "is_ready") and not flags.is_ready():
                break
            else:
                arrived = to_host(flags)
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
                self.segmenter.feed(to_host(block.flags())[start - block.start : stop - block.start])


def _rows_needed(table: Episodes, ranks: RankMap) -> int:
    last = table.start + table.length - 1 + table.has_reset_row
    return int(ranks.rows(table.column, last).max(initial=-1)) + 1


def _device_input(x: Any) -> Any:
    """Return an array that a jitted call may read later: a NumPy one is copied, since JAX may alias it."""
    return np.array(x) if isinstance(x, np.ndarray) else x
