"""What the self-check looks at: the table of episodes, and comparisons of observations around some of the ends."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from trajlab.block.fingerprint import fingerprints
from trajlab.block.layout import Field
from trajlab.block.view import LogView
from trajlab.capture.plan import HIDDEN
from trajlab.capture.roles import Roles
from trajlab.segment import Episodes, RankMap, Rules

MIN_CASES = 10
"""Fewer ends, or episodes, prove nothing."""
SHARE = 0.9
"""In so many of them a thing has to be seen: nearly all."""
MAX_ENDS, MIN_ENDS, RUNS = 64, 16, 4
"""Ends whose observations are compared: neighbours, in so many runs over the recording, so that few blocks are read."""
MAX_BYTES = 2**22
"""Of observations compared, where that leaves `MIN_ENDS`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """All that the self-check may use.

    Attributes
    ----------
    view : LogView
    ranks : RankMap
    episodes : Episodes
    rules : Rules
    roles : Roles
    """

    view: LogView
    ranks: RankMap
    episodes: Episodes
    rules: Rules
    roles: Roles

    @functools.cached_property
    def order(self) -> np.ndarray:
        """The episodes, column after column; in each they are in order already."""
        column = self.episodes.column
        return np.argsort(column.astype(np.uint16) if self.view.layout.width < 2**16 else column, kind="stable")

    @functools.cached_property
    def is_first(self) -> np.ndarray:
        """Which episodes are the first of their column, and begin with the first rows there are."""
        table, out = self.episodes, np.zeros(len(self.episodes.length), bool)
        column = table.column[self.order]
        first = self.order[np.append(True, column[1:] != column[:-1])[: len(column)]]
        out[first] = table.start_seen[first] & (table.start[first] == int(self.rules.drops_first))
        return out

    @functools.cached_property
    def followed(self) -> tuple[np.ndarray, np.ndarray]:
        """Episodes that ended and, for each, the one that follows, both (M,), ordered by row."""
        table, before, after = self.episodes, self.order[:-1], self.order[1:]
        is_next = (table.column[before] == table.column[after]) & table.ended[before] & table.start_seen[after]
        if self.rules.autoreset == "next_step":
            is_next &= table.has_reset_row[before]
        before, after = before[is_next], after[is_next]
        by_row = np.argsort(table.start_row[after], kind="stable")
        return before[by_row], after[by_row]

    def prints(self, fields: Sequence[Field], episode: np.ndarray, time: np.ndarray) -> np.ndarray | None:
        """Return fingerprints (M, K) of some fields at steps of episodes; None where cells cannot be compared."""
        column, found = self.episodes.column[episode], []
        for field in fields:
            rank = self.episodes.start[episode] + time - int(field.moved)
            prints = self.view.fingerprints(field.name, self.ranks.rows(column, rank), column)
            if prints is None:
                return None
            found.append(prints)
        return np.concatenate(found, axis=1) if found else None

    def fields_of(self, role: str) -> tuple[Field, ...]:
        """Return the recorded fields that fill a slot; none where some of it was not recorded."""
        found = tuple(field for field in self.view.layout.fields if field.role == role)
        return found if len(found) == len(self.roles.slots[role]) else ()

    def twins(self, slot: str) -> tuple[Field, ...]:
        """Return what `next_observation` or `final_observation` has for each leaf of the observation, or nothing."""
        by_source = {field.source: field for field in self.view.layout.fields if not field.hidden}
        by_name = {field.name: field for field in self.view.layout.fields if field.hidden}
        twins = []
        for leaf in self.fields_of("observation"):
            source = self.roles.counterpart(slot, leaf.source) or ""
            twin = by_name.get(HIDDEN + leaf.source) if slot == "final_observation" else by_source.get(source)
            if twin is None:
                return ()
            twins.append(twin)
        return tuple(twins)


class Ends:
    """Some of the ends, M of them, and which observations around them are equal.

    Attributes
    ----------
    before, after : int array (M,)
        The episode that ended and the one that followed.
    has_home : bool array (M,)
        Whether the first episode of the environment is known from its start, and is another than `after`.
    """

    def __init__(self, recording: Recording) -> None:
        """Choose the ends."""
        self.recording = recording
        before, after = recording.followed
        chosen = spread(len(before), self._room())
        self.before, self.after = before[chosen], after[chosen]
        table = recording.episodes
        firsts = np.flatnonzero(recording.is_first)
        self._home = np.full(recording.view.layout.width, -1)
        self._home[table.column[firsts]] = firsts
        self.has_home = self._home[table.column[self.after]] >= 0
        self.length, self.length_after = table.length[self.before], table.length[self.after]

    def _room(self) -> int:
        cells = sum(field.cell_bytes for field in self.recording.fields_of("observation"))
        return int(np.clip(MAX_BYTES // max(7 * cells, 1), MIN_ENDS, MAX_ENDS))

    def _places(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the places compared, as episodes and time steps; one that is not there is another that is."""
        zero = np.zeros_like(self.before)
        home = np.where(self.has_home, self._home[self.recording.episodes.column[self.after]], self.after)
        is_next_step = self.recording.rules.autoreset == "next_step"
        return {
            "own start": (self.before, zero),
            "last but one": (self.before, np.maximum(self.length - 2, 0)),
            "last": (self.before, self.length - 1),
            "reset row": (self.before, self.length - (not is_next_step)),
            "start": (self.after, zero),
            "second": (self.after, np.minimum(self.length_after - 1, 1)),
            "home": (home, zero),
        }

    def _at_places(self, fields: Sequence[Field], *names: str) -> Mapping[str, np.ndarray]:
        """Return the fingerprints at some places, by default all."""
        places = {name: place for name, place in self._places().items() if not names or name in names}
        episode, time = (np.concatenate([place[axis] for place in places.values()]) for axis in (0, 1))
        prints = self.recording.prints(fields, episode, time) if len(episode) else None
        return {} if prints is None else dict(zip(places, np.split(prints, len(places)), strict=True))

    @functools.cached_property
    def observations(self) -> Mapping[str, np.ndarray]:
        """Fingerprints of the observations at each place; empty where there are none to compare."""
        return self._at_places(self.recording.fields_of("observation"))

    @functools.cached_property
    def following(self) -> Mapping[str, np.ndarray]:
        """The same of the next observations that are recorded beside them."""
        return self._at_places(self.recording.twins("next_observation"), "last but one", "last", "start")

    @functools.cached_property
    def finals(self) -> Mapping[str, np.ndarray]:
        """The same of the final observations."""
        return self._at_places(self.recording.twins("final_observation"), "last")

    @functools.cached_property
    def is_unpaid(self) -> Mapping[str, np.ndarray]:
        """Say at each place whether the reward is 0."""
        fields = self.recording.fields_of("reward")
        found = self._at_places(fields, "start", "second", "home")
        if not found:
            return {}
        return {place: (prints == prints_of(fields, 0)).all(axis=1) for place, prints in found.items()}

    def same(self, a: str, b: str) -> np.ndarray:
        """Say at each end whether two observations are equal."""
        return (self.observations[a] == self.observations[b]).all(axis=1)


def prints_of(fields: Sequence[Field], value: float) -> np.ndarray:
    """Return the fingerprints of cells that hold one value."""
    place = np.zeros(1, np.intp)
    cells = [np.full((1, 1, *field.shape), value).astype(field.dtype) for field in fields]
    found = [fingerprints([cell], place, place, place) for cell in cells]
    return np.concatenate([prints for prints in found if prints is not None], axis=1)


def spread(count: int, size: int) -> np.ndarray:
    """Return the indices of at most `size` out of `count` things: runs of neighbours, the first and last among them."""
    if count <= size:
        return np.arange(count)
    run = size // RUNS
    return np.unique(np.linspace(0, count - run, RUNS).astype(int)[:, None] + np.arange(run))


def nearly_all(seen: np.ndarray, where: np.ndarray) -> bool:
    """Say whether a thing is seen at nearly all of the cases that `where` picks, and these are enough."""
    cases = np.count_nonzero(where)
    return bool(cases >= MIN_CASES and np.count_nonzero(seen & where) >= SHARE * cases)
