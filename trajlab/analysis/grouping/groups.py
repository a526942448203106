"""Groups of episodes or transitions: what `by=` and `groups=` mean."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from trajlab.analysis.common import title_of, units_of
from trajlab.analysis.grouping.by_values import as_plain, check_by, kind_of, read_values, transition_values
from trajlab.analysis.grouping.cut import GroupsArgument, choose_kinds, cut_values
from trajlab.analysis.grouping.steps import PHASE, PhaseOf, RangeOf, phase_ends, phase_labels
from trajlab.analysis.kernels.counting import places_dtype
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import missing_values
from trajlab.dataset.flat import FlatBatch
from trajlab.errors import require_text, warn_user
from trajlab.names import (
    AXIS_ROLE,
    COMPLETE,
    EPISODE,
    GROUPS_ATTR,
    ITERATION,
    LAG,
    LEFT_OUT_ATTR,
    LENGTH,
    ROLE_ATTR,
    RUN,
    TIME,
)

MAX_TABLE = 2**20
"""Whole numbers that span less than this are looked up in a table, others searched for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Which group each transition belongs to.

    Attributes
    ----------
    name : str or None
        What was grouped by; None for a single group of all.
    labels : array (group,)
        Values, or texts such as ``"0–124"`` for ranges of them.
    values : array (value,)
        Distinct values, ascending.
    codes : array (value,) intp
        Group of each; -1 for none.
    of_episode : array (episode,) intp or None
        Group of each episode; None where it is a matter of the transition.
    kind : str
        What transitions are told apart by, as `discrete_kind` says it.
    attrs : dict
        What to say about them on a result.
    alive : AliveRows
        Where the value is that of an agent: whether it takes part.
    locate : callable or None
        Where the group follows from the step alone: returns that of each transition of a batch.
    """

    name: str | None
    labels: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    of_episode: np.ndarray | None
    kind: str
    attrs: dict[str, Any]
    alive: AliveRows
    locate: Callable[[FlatBatch], np.ndarray] | None = None

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @property
    def is_per_episode(self) -> bool:
        """Whether all transitions of an episode are in one group, as they are where there is a single one."""
        return self.name is None or self.of_episode is not None

    @property
    def fields(self) -> list[str]:
        """Variables that a batch must hold for `index`."""
        if self.name is None or self.is_per_episode or self.locate is not None:
            return []
        return [self.name, *self.alive.needed]

    def index(self, batch: FlatBatch) -> np.ndarray | None:
        """Return the group of each transition (M,), -1 for none; None where there is a single group."""
        if self.name is None:
            return None
        if self._narrow is not None:
            return batch.spread(self._narrow)
        if self.locate is not None:
            return self.locate(batch)
        rows, missing = read_values(batch, self.name, self.kind, self.alive)
        if missing is None:
            return self._code(rows[:, 0])
        group = np.full(len(rows), -1, np.intp)
        present = ~missing[:, 0]
        group[present] = self._code(rows[present, 0])
        return group

    @functools.cached_property
    def _narrow(self) -> np.ndarray | None:
        """Group of each episode in 32 bits, of which a cache holds more."""
        return None if self.of_episode is None else self.of_episode.astype(np.int32)

    @functools.cached_property
    def first_places(self) -> Callable[[int], np.ndarray]:
        """What returns ``group * size`` for each episode, below 0 for none; for one `size` the same array each time."""
        return functools.cache(self._first_places)

    def _first_places(self, size: int) -> np.ndarray:
        assert self.of_episode is not None
        return self.of_episode.astype(places_dtype(self.size * size)) * size

    def _code(self, values: np.ndarray) -> np.ndarray:
        """Return the group of each value, all of which are among `values`."""
        if not len(values):
            return np.zeros(0, np.intp)
        if self._table is not None:
            return self._table[values - self.values[0]]
        return self.codes[np.searchsorted(self.values, values)]

    @functools.cached_property
    def _table(self) -> np.ndarray | None:
        """Group of each whole number from the smallest value to the largest, where these are not too many."""
        if self.values.dtype.kind != "i" or not 0 <= self.values[-1] - self.values[0] < MAX_TABLE:
            return None
        table = np.full(self.values[-1] - self.values[0] + 1, -1, np.intp)
        table[self.values - self.values[0]] = self.codes
        return table

    @property
    def dims(self) -> tuple[str, ...]:
        """The dim that groups add to a result."""
        return () if self.name is None else (self.name,)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of that dim."""
        return () if self.name is None else (self.size,)

    def coords(self) -> dict[str, Any]:
        """Return the coordinate that labels the groups."""
        return {} if self.name is None else {self.name: (self.name, self.labels, self.attrs)}


def make_groups(ds: xr.Dataset, by: Any, groups: Any = None) -> Groups:
    """Return the groups that `by` and `groups` ask for.

    Parameters
    ----------
    ds : Dataset
    by : str or None
        A coordinate or variable over `episode`, or one over `episode` and `time` that is not continuous:
        above all `iteration`, or `action`. ``"time"``: ranges of steps. ``"phase"``: parts of each complete episode
        from its first step to its last, where the Dataset has no variable of that name.
    groups : int, sequence, mapping or None
        None: each value is a group; more than 8 distinct numbers are cut into 4 ranges. An int: so many ranges.
        Ranges hold about equal numbers of episodes, or of transitions where `by` is a matter of the
        transition. A sequence of numbers: edges, each range with its left one, the last with both. A sequence
        of texts, for a `by` that is text: these values, in this order. A mapping from a label to what `sel`
        would take: a value, a list of values, or a slice with both ends in it.

        ``by="run"``: each run is a group, however many and whatever its label, and a sequence names runs.

        ``by="phase"``: None for an early, a middle and a late third; a number of equal parts; or edges from 0 to 1.

    Raises
    ------
    KeyError
        When `by` is unknown.
    ValueError, TypeError
        When `by` cannot be grouped by, or `groups` does not fit it.
    """
    if by is None:
        if groups is not None:
            raise ValueError(f"groups={groups!r} needs by=, the coordinate to group by")
        nothing = np.zeros(0, np.int64)
        return Groups(None, np.zeros(1, np.int64), nothing, nothing, None, "", {}, AliveRows())
    require_text("by", by, "a coordinate or variable")
    if by == TIME:
        return _time_groups(ds, groups)
    if by == PHASE and PHASE not in ds.variables:
        return _phase_groups(ds, groups)
    check_by(ds, by)
    return _groups_of_episodes(ds, by, groups) if ds[by].ndim == 1 else _groups_of_transitions(ds, by, groups)


def _groups_of_episodes(ds: xr.Dataset, by: str, groups: Any) -> Groups:
    """Return groups by a coordinate over `episode`."""
    missing = missing_values(ds.variables[by])
    present = as_plain(ds.variables[by].values[~missing])
    values, first, weights = np.unique(present, return_index=True, return_counts=True)
    _report_missing(by, int(missing.sum()), weights, "episodes")
    if is_category(ds, by):
        labels, codes, text = choose_kinds(values, weights, groups, by, "episodes", first)
    else:
        labels, codes, text = cut_values(values, weights, groups, by, "episodes")
    of_episode = np.full(len(missing), -1, np.intp)
    of_episode[~missing] = codes[np.searchsorted(values, present)]
    attrs = _about(ds, by, text, int((of_episode < 0).sum()))
    return Groups(by, labels, values, codes, of_episode, "", attrs, AliveRows())


def _groups_of_transitions(ds: xr.Dataset, by: str, groups: Any) -> Groups:
    """Return groups by a variable over `episode` and `time`."""
    kind, alive = kind_of(ds, by), AliveRows.of(ds, by)
    values, weights, num_missing = transition_values(ds, by, kind, alive)
    _report_missing(by, num_missing, weights, "transitions")
    labels, codes, text = cut_values(values, weights, groups, by, "transitions")
    attrs = _about(ds, by, text, int(weights[codes < 0].sum()) + num_missing)
    return Groups(by, labels, values, codes, None, kind, attrs, alive)


def _report_missing(by: str, number: int, weights: np.ndarray, what: str) -> None:
    """Warn of episodes or transitions that have no value; `weights` are those that have one, by their values."""
    if number:
        total = number + int(weights.sum())
        warn_user(f"by={by!r}: {number} of {total} {what} have no value there and are in no group")


def _about(ds: xr.Dataset, by: str, text: str, left_out: int) -> dict[str, Any]:
    """Return what to say on a result about groups of a variable."""
    return {"long_name": title_of(ds, by), **units_of(ds, by), GROUPS_ATTR: text, LEFT_OUT_ATTR: left_out}


def make_episode_groups(ds: xr.Dataset, by: Any, groups: Any = None) -> Groups:
    """Return the groups of `by`; raise ValueError where it is a matter of the transition."""
    if by is not None:
        require_text("by", by, "a coordinate over episode")
    is_of_steps = by == TIME or (by == PHASE and PHASE not in ds.variables)
    if by is not None and (
        is_of_steps or (by in ds.variables and ds.variables[by].dims in ((EPISODE, TIME), (EPISODE, LAG)))
    ):
        mend = "; group by 'start_iteration'" if by == ITERATION else ""
        raise ValueError(f"by={by!r} has a value per transition; expected a coordinate over episode{mend}")
    return make_groups(ds, by, groups)


def _time_groups(ds: xr.Dataset, groups: GroupsArgument) -> Groups:
    """Return groups of steps: each by itself, ranges with about as many transitions, edges or what a mapping says."""
    cells = Cells.of(ds)
    weights = np.cumsum(np.bincount(cells.counts, minlength=len(cells.labels) + 1)[::-1])[::-1][1:]
    labels, codes, text = cut_values(cells.labels, weights, groups, TIME, "transitions")
    return _step_groups(TIME, labels, _about(ds, TIME, text, int(weights[codes < 0].sum())), RangeOf(codes, cells))


def _phase_groups(ds: xr.Dataset, groups: GroupsArgument) -> Groups:
    """Return groups of transitions by how much of their episode has passed; those that are not complete are in none."""
    ends = phase_ends(groups)
    is_complete = ds[COMPLETE].values.astype(bool)
    locate = PhaseOf(ends, np.where(is_complete, ds[LENGTH].values, 0))
    left_out = int(Cells.of(ds).counts[~is_complete].sum())
    text = f"parts of each complete episode at {', '.join(f'{end:.4g}' for end in ends)}"
    attrs = {"long_name": "phase of the episode", GROUPS_ATTR: text, LEFT_OUT_ATTR: left_out}
    return _step_groups(PHASE, phase_labels(groups, ends), attrs, locate)


def _step_groups(
    name: str, labels: np.ndarray, attrs: dict[str, Any], locate: Callable[[FlatBatch], np.ndarray]
) -> Groups:
    nothing = np.zeros(0, np.int64)
    return Groups(name, labels, nothing, nothing, None, "", attrs, AliveRows(), locate)


def refuse_time(groups: Groups, what: str) -> None:
    """Raise ValueError where a result over `time` is asked for by ranges of `time`."""
    if groups.name == TIME:
        raise ValueError(
            f"{what}: by='time' asks for ranges of what the result goes over anyway; expected a coordinate over "
            "episode, or 'phase'. To look at some steps only: ds.isel(time=slice(0, 100))"
        )


def is_category(ds: xr.Dataset, by: str) -> bool:
    """Say whether the values of a coordinate only name something, also where they are numbers: runs, seeds."""
    return by == RUN or ds.variables[by].attrs.get(ROLE_ATTR) == AXIS_ROLE
