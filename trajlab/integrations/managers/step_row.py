"""The row of the newest step: several terms fill it, and it waits until the next one begins."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from trajlab.block.layout import GAP, RESET
from trajlab.capture.convention import Convention
from trajlab.check import FindingName
from trajlab.integrations.managers.arrays import Fields, join
from trajlab.names import At
from trajlab.recorder.attached import Rows, RowSource

SUCCESS, SEED = "success", "seed"
CONVENTION = Convention(
    observation=("obs", None),
    action=("action", None),
    reward=("reward", None),
    terminated="terminated",
    truncated="truncated",
    done=None,
    next_observation=None,
    final_observation=("final_obs", None),
    autoreset="same_step",
    alignment="transition",
    flags="row",
    axes="TN",
)
"""What the rows mean: the observation is the one the action was chosen from, and resets by hand are marked."""


class StepRow(RowSource):
    """The row of the newest step of some environments, with the marks that stand before it.

    A row is complete when as many terms as there are have filled it. It waits, so that an episode's success can be
    told after its last step.

    Attributes
    ----------
    num_envs, num_terms : int
    iteration : int
        The iteration of the row that waits.
    seed : int or None
        The seed of rows from now on.
    is_recording : bool
        False once the recording has ended.
    has_begun : bool
        Whether there has been a step.
    has_success_by_hand : bool
        Whether the row's success is what was set for the episodes.
    """

    convention = CONVENTION
    attrs: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    mends: Mapping[FindingName, str] = MappingProxyType({})
    episode_fields: Mapping[str, At] = MappingProxyType({SUCCESS: "last", SEED: "first"})

    def __init__(self, num_envs: int) -> None:
        """Begin without a row."""
        self.num_envs, self.num_terms, self.iteration = num_envs, 0, 0
        self.num_waiting, self.is_recording, self.has_begun = 0, True, False
        self.has_success_by_hand = False
        self.seed: int | None = None
        self._row: Fields | None = None
        self._filled = 0
        self._marks, self._next_marks = (np.zeros(num_envs, np.uint8) for _ in range(2))
        self._success = np.zeros(num_envs, bool)
        self._ends: tuple[Any, ...] = ()

    @property
    def resets(self) -> np.ndarray:
        """Which environments (num_envs,) have been reset since the newest step, as far as it was told."""
        return self._next_marks != 0

    def begin(self) -> None:
        """Begin the row of the next step; one that was not completed is lost."""
        if self._row is not None:
            self.lose()
        self._success[self.resets] = False
        self._marks, self._next_marks = self._next_marks, np.zeros_like(self._marks)
        self._row, self._filled, self.num_waiting, self.has_begun = {}, 0, 0, True
        if self.seed is not None:
            self._row[SEED] = np.full(self.num_envs, self.seed, np.int64)

    def lose(self) -> None:
        """Forget a row that was not completed; environments that have not been reset since go on behind a gap."""
        self.taken()
        self._next_marks[self._next_marks == 0] = GAP

    def miss(self) -> None:
        """Say that a step was missed: all environments go on behind a gap."""
        self._next_marks[:] = GAP

    def fill(self, fields: Fields, *, is_last: bool) -> None:
        """Put fields into the row; `is_last` where they are the last that one term has for it."""
        if self._row is None:
            return
        join(self._row, fields)
        self._filled += is_last
        self.num_waiting = int(self._filled == self.num_terms)
        if is_last and "terminated" in fields:
            self._ends = fields["terminated"], fields["truncated"]

    def success_by_hand(self) -> np.ndarray:
        """Return a copy of the success (num_envs,) that was set for the episodes under way."""
        return self._success.copy()

    def set_success(self, where: np.ndarray, values: np.ndarray) -> None:
        """Set the success of the newest step's episodes in the environments `where` (k,), until they are reset."""
        if self._row is None or SUCCESS not in self._row:
            raise ValueError(
                "there is no step whose success could be set: set it after a step, before the next, and before the "
                "recording is read"
            )
        self._row[SUCCESS][where] = values
        is_open = ~self.resets[where]
        self._success[where[is_open]] = values[is_open]

    def mark(self, envs: Any) -> None:
        """Say that environments, None for all, were reset; their next row begins an episode."""
        self._next_marks[slice(None) if envs is None else envs] = RESET

    def waiting(self) -> Rows | None:
        """Return the row if it is complete."""
        if not (self.is_recording and self.num_waiting):
            return None
        return Rows(self._row, None, self._marks, self.iteration, is_step=True)

    def taken(self) -> None:
        """Forget the row that `waiting` returned."""
        self._row, self.num_waiting = None, 0

    def restart(self) -> None:
        """Forget the row; what goes on in mid-episode does so behind a gap."""
        self.taken()
        if not self.has_begun:
            return
        ended = np.zeros(self.num_envs, bool)
        for flag in self._ends:
            ended |= np.asarray(jax.device_get(flag)).astype(bool)
        begins = ended | (self._next_marks == RESET)
        self._next_marks = np.where(begins, RESET, GAP).astype(np.uint8)

    def stop(self) -> None:
        """Gather no more rows."""
        self.taken()
        self.is_recording = False
