"""Groups of transitions by their step alone: ranges of steps, and parts of the episode."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trajlab.analysis.grouping.cut import range_labels
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat import FlatBatch
from trajlab.errors import has_bool

PHASE = "phase"
"""To group by it is to group by how much of the episode has passed."""
THIRDS = ("early", "middle", "late")
MOST_PARTS = 10_000


@dataclasses.dataclass(frozen=True, eq=False)
class RangeOf:
    """Tells the group of a transition from its step: `codes` (time,), one for each label of `cells`."""

    codes: np.ndarray
    cells: Cells

    def __call__(self, batch: FlatBatch) -> np.ndarray:
        """Return the group of each transition (M,), -1 for none."""
        return self.codes.take(self.cells.steps_of(batch.time))


@dataclasses.dataclass(frozen=True, eq=False)
class PhaseOf:
    """Tells the group of a transition from how much of its episode has passed at the middle of its step.

    Attributes
    ----------
    ends : array (part + 1,) float64
        Ascending, from 0 to 1.
    length : array (episode,) int64
        Length of each episode, 0 where it is not known.
    """

    ends: np.ndarray
    length: np.ndarray

    def __call__(self, batch: FlatBatch) -> np.ndarray:
        """Return the part of each transition (M,), -1 for none."""
        part = batch.reached(self._first_steps) - 1
        if self.ends[-1] < 1:
            part[part == len(self.ends) - 1] = -1
        return part

    @functools.cached_property
    def _first_steps(self) -> np.ndarray:
        """The first step whose middle is not before each end but that of the episode, (end, episode)."""
        never = np.iinfo(np.int32).max
        steps = [np.ceil(end * self.length - 0.5).astype(np.int32) for end in self.ends if end < 1]
        return np.stack([np.where(self.length > 0, step, never) for step in steps])


def phase_ends(groups: Any) -> np.ndarray:
    """Return the ends (part + 1,) of the parts of an episode that `groups` asks for.

    >>> phase_ends(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    number = len(THIRDS) if groups is None else groups
    if isinstance(number, int | np.integer) and not isinstance(number, bool) and number > 0:
        if number > MOST_PARTS:
            raise ValueError(f"groups={groups!r}; by='phase' takes at most {MOST_PARTS:,} parts")
        return np.arange(number + 1) / number
    problem = f"groups={groups!r}; by='phase' takes a number of equal parts, or ascending edges from 0 to 1"
    if isinstance(groups, str | Mapping) or not isinstance(groups, Sequence | np.ndarray):
        raise TypeError(problem)
    ends = np.asarray(groups)
    if ends.ndim != 1 or len(ends) < 2 or ends.dtype.kind not in "iuf" or has_bool(groups):
        raise ValueError(problem)
    if not ((ends >= 0) & (ends <= 1)).all() or not (np.diff(ends) > 0).all():
        raise ValueError(problem)
    return ends.astype(np.float64)


def phase_labels(groups: Any, ends: np.ndarray) -> np.ndarray:
    """Return what the parts are called: early, middle and late where nothing was asked for, else their ends."""
    if groups is None:
        return np.array(THIRDS)
    return range_labels(list(itertools.pairwise(ends)))
