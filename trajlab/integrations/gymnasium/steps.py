"""Steps to rows: what an environment returns, with a row of its own for each reset by hand.

A row holds what its action led to, so that T transitions take T + 1 observations: the first stands on a reset row,
which is no transition, and the last of an episode is its final one. Where an environment resets within the step that
ends an episode, the final observation stands beside the next episode's first one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from trajlab.block.layout import GAP, RESET
from trajlab.capture.convention import Convention
from trajlab.integrations.columns import Column, common_dtype
from trajlab.integrations.gymnasium.held import Held
from trajlab.integrations.gymnasium.infos import DeclaredInfos, InfoColumns
from trajlab.integrations.gymnasium.mends import MENDS
from trajlab.integrations.gymnasium.spaces import Leaf, attrs_of
from trajlab.integrations.paths import Path, at, dotted, is_excluded
from trajlab.integrations.rows import WaitingRows

Autoreset = Literal["next_step", "same_step", "disabled"]

CHUNK = 128
"""Rows that are handed over at a time, by default."""
FIRST_ROWS, MAX_BYTES = 2048, 2**23
"""Until the first episode has ended so many rows wait, or so many bytes, at most."""
OF_THE_END = ("episode", "_episode")
"""What Gymnasium's vector RecordEpisodeStatistics adds, beside `final_info`, to the infos of a step with an end."""


class Steps(WaitingRows):
    """The rows of one environment, or of some that step together.

    Parameters
    ----------
    observation, action : sequence of Leaf
        What to record of them.
    num_envs : int
    autoreset : {"next_step", "same_step", "disabled"}
        What the environment does after an end.
    is_single : bool
        Whether values come without an axis over environments.
    chunk : int or None
        Rows to hand over at a time, at least 2, once an episode has ended.
    exclude : sequence of str
        Names and globs of what is not recorded.
    infos : mapping or None
        The infos to record; None for those that come in the first chunk.

    Attributes
    ----------
    is_lost : bool
        Whether steps have been missed, so that it is not known what the environments showed last.
    """

    mends = MENDS

    def __init__(
        self,
        observation: Sequence[Leaf],
        action: Sequence[Leaf],
        *,
        num_envs: int,
        autoreset: Autoreset,
        is_single: bool,
        chunk: int | None,
        exclude: Sequence[str],
        infos: DeclaredInfos,
    ) -> None:
        has_reward = not is_excluded("reward", exclude)
        leaves = [*observation, *action]
        attrs = {dotted(leaf.path): found for leaf in leaves if (found := attrs_of(leaf.space))}
        convention = _convention(autoreset, bool(observation), bool(action), has_reward)
        super().__init__(*_sizes(chunk, leaves, num_envs), num_envs, convention, attrs)
        self.autoreset, self._is_single, self.is_lost = autoreset, is_single, True
        self._observation, self._action = observation, action
        self._obs_columns: list[tuple[Path, Column]] = []
        self._final_columns: list[tuple[Path, Column]] = []
        self._action_columns: list[Column] = []
        self._reward: Column | None = None
        self._flags = [self.add((name,), (), np.dtype(bool)) for name in ("terminated", "truncated")]
        self._seed = None if is_excluded("seed", exclude) else self.add(("seed",), (), np.dtype(np.int64))
        self._held = Held(num_envs)
        self._infos = InfoColumns("info", self, infos, exclude)
        self._options = InfoColumns("option", self, None, exclude)
        self._has_reward, self._has_actions = has_reward, False
        self._none = np.zeros(num_envs, bool)
        self._ended, self._fresh, self._any_ended = self._none, self._none, False
        self._last = 0

    def needs_mark(self, where: np.ndarray) -> bool:
        """Say whether a reset of the environments `where` (N,) bool cuts an episode: rows must be taken before it."""
        return self.is_lost or bool((where & ~self._ended).any())

    def reset(self, obs: Any, where: np.ndarray, seed: Any, options: Mapping[str, Any]) -> None:
        """Write the row of a reset by hand of the environments `where` (N,) bool: what they show, and no transition.

        A reset row that still waits, and no step behind it, is replaced.
        """
        if self.is_lost:
            self._mark_gap()
        marked = where & ~self._ended
        cells = where
        if self.num_waiting and not self._has_step:
            cells = where | self._cells[0]
            self.num_waiting = 0
        if marked.any():
            self.mark(RESET, marked)
        row = self.num_waiting
        self._write_obs(row, obs)
        self._clear_step(row)
        self._held.set(where, seed, options)
        self._wait_for_reset(self._ended & ~where)
        self._fresh = self._fresh | where
        self.is_lost, self._last = False, row
        self.commit(is_step=False, cells=None if cells.all() else cells)

    def read_action(self, action: Any) -> list[np.ndarray]:
        """Return copies of the leaves of an action, before an environment may change it."""
        return [np.array(at(action, leaf.path[1:])) for leaf in self._action]

    def step(
        self,
        action: list[np.ndarray],
        obs: Any,
        reward: Any,
        terminated: Any,
        truncated: Any,
        infos: Mapping[str, Any],
    ) -> None:
        """Write the row of a step: the leaves of the action, and what `env.step` returned.

        Raises ValueError where something does not fit; the step is then not recorded.
        """
        if self._any_ended and self.autoreset == "disabled" and self._ended.all():
            return  # stepped on behind the end, which is no transition of any episode
        if self.is_lost:
            self._mark_gap()
        if not self._has_actions:
            self._add_step_columns(action, reward)
        row = self.num_waiting
        for column, value in zip(self._action_columns, action, strict=True):
            column.put(row, value)
        if self._reward is not None:
            self._reward.put(row, reward)
        self._write_obs(row, obs)
        ended = self._write_flags(row, terminated, truncated)
        has_end = bool(np.count_nonzero(ended))
        if self._any_ended and self.autoreset == "next_step":
            self._held.drop(self._ended)
        self._write_held(row)
        self._infos.clear(row)
        if has_end and self.autoreset == "same_step":
            self._write_end(row, ended, infos)
        elif infos:
            self._write_infos(row, infos)
        self.is_lost, self._last = False, row
        cells = ~self._ended if self._any_ended and self.autoreset == "disabled" else None
        self._note_ends(ended, has_end)
        self.commit(is_step=True, has_end=has_end, cells=cells)

    def _note_ends(self, ended: np.ndarray, has_end: bool) -> None:
        """Note which environments show the beginning of an episode, and which wait for a reset."""
        before, self._fresh = self._ended, self._none
        if self.autoreset == "next_step":
            self._fresh = before
        if not (has_end or self._any_ended):
            return
        if self.autoreset == "same_step":
            self._fresh = ended
            self._held.drop(ended)
        elif self.autoreset == "next_step":
            self._wait_for_reset(ended & ~before)
        else:
            self._wait_for_reset(before | ended)

    def _wait_for_reset(self, which: np.ndarray) -> None:
        self._ended, self._any_ended = which, bool(np.count_nonzero(which))

    def restart(self) -> None:
        """Forget the rows that wait; begin again with what the environments show now."""
        super().restart()
        if self.is_lost:
            return
        for _, column in self._obs_columns:
            column.rows[0] = column.rows[self._last]
        self._clear_step(0)
        begins = self._fresh | self._ended
        self.mark(GAP, ~begins)
        self.mark(RESET, begins)
        self._last = 0
        self.commit(is_step=False, cells=~self._ended if self._any_ended else None)

    def _clear_step(self, row: int) -> None:
        """Make all values of a row but the observation missing: it is no step, and its memory was used before."""
        shown = [column for _, column in self._obs_columns]
        for column in self._columns.values():
            if column not in shown:
                column.clear(row)

    def _mark_gap(self) -> None:
        """Say that rows were missed, but not of an environment that is never reset by itself and still waits for it.

        A reset row that waits tells nothing any more of what the next action is chosen from.
        """
        self.taken()
        if self.autoreset != "disabled":
            self._wait_for_reset(self._none)
        self.mark(GAP, ~self._ended)

    def _write_obs(self, row: int, obs: Any) -> None:
        if not self._obs_columns:
            self._add_obs_columns(obs)
        for path, column in self._obs_columns:
            column.put(row, at(obs, path))

    def _write_flags(self, row: int, *flags: Any) -> np.ndarray:
        """Write both flags; return where an episode ended (N,), in memory of its own."""
        for column, value in zip(self._flags, flags, strict=True):
            if not self._is_single and np.shape(value) != self._none.shape:
                raise ValueError(f"{column.name!r} has shape {np.shape(value)}; expected {self._none.shape}")
            column.rows[row] = value
        return self._flags[0].rows[row] | self._flags[1].rows[row]

    def _write_held(self, row: int) -> None:
        if self._seed is not None:
            self._seed.rows[row] = self._held.seeds
        if self._held.options:
            self._options.clear(row)
            self._options.write(row, self._held.options)

    def _write_infos(self, row: int, infos: Mapping[str, Any]) -> None:
        """Write the infos of a step, but not those of an environment that was reset, or waits for it."""
        if not self._is_single:
            self._infos.write(row, infos, ~self._ended if self._any_ended else None)
        elif not self._any_ended:
            self._infos.write_single(row, infos)

    def _write_end(self, row: int, ended: np.ndarray, infos: Mapping[str, Any]) -> None:
        """Write final observations and the infos of a step behind which some environments have been reset.

        Their infos are in `final_info`; what stands beside it comes from the reset.
        """
        if self._final_columns:
            self._write_final_obs(row, ended, infos)
        own = {key: value for key, value in infos.items() if key.removeprefix("_") not in ("final_obs", "final_info")}
        self._infos.write(row, {key: own.pop(key) for key in OF_THE_END if key in own})
        self._infos.write(row, own, ~ended)
        self._infos.write(row, infos.get("final_info", {}), ended)

    def _write_final_obs(self, row: int, ended: np.ndarray, infos: Mapping[str, Any]) -> None:
        finals: Any = infos.get("final_obs")
        there = np.zeros_like(ended) if finals is None else np.asarray(infos.get("_final_obs", ended), bool)
        if (ended & ~there).any():
            raise ValueError(
                f"infos['final_obs'] is missing for the environments {np.flatnonzero(ended & ~there).tolist()}, which "
                "ended and were reset in the same step. If they never give it, leave observations out: exclude=['obs']"
            )
        is_batched = isinstance(finals, Mapping | tuple)
        for env in np.flatnonzero(ended).tolist():
            for path, column in self._final_columns:
                value = at(finals, path)[env] if is_batched else at(finals[env], path)
                column.put_one(row, env, value)

    def _add_obs_columns(self, obs: Any) -> None:
        for leaf in self._observation:
            path = leaf.path[1:]
            dtype = common_dtype(leaf.dtype, at(obs, path))
            self._obs_columns.append((path, self.add(leaf.path, leaf.cell, dtype, is_single=self._is_single)))
            if self.autoreset == "same_step":
                self._final_columns.append((path, self.add(("final_obs", *path), leaf.cell, dtype)))

    def _add_step_columns(self, action: list[np.ndarray], reward: Any) -> None:
        """Make the columns whose dtypes the first step decides."""
        self._action_columns = [
            self.add(leaf.path, leaf.cell, common_dtype(leaf.dtype, value), is_single=self._is_single)
            for leaf, value in zip(self._action, action, strict=True)
        ]
        if self._has_reward:
            dtype = np.asarray(reward).dtype
            is_float = dtype.kind == "f" and not self._is_single
            self._reward = self.add(
                ("reward",), (), dtype if is_float else np.dtype(np.float64), is_single=self._is_single
            )
        self._has_actions = True


def _convention(autoreset: Autoreset, has_obs: bool, has_action: bool, has_reward: bool) -> Convention:
    """Return what the rows mean; where resets are by hand, each has a row like that of an environment's own."""
    return Convention(
        observation="obs" if has_obs else None,
        action="action" if has_action else None,
        reward="reward" if has_reward else None,
        terminated="terminated",
        truncated="truncated",
        done=None,
        next_observation=None,
        final_observation="final_obs" if has_obs and autoreset == "same_step" else None,
        autoreset="same_step" if autoreset == "same_step" else "next_step",
        alignment="result",
        flags="row",
        axes="TN",
    )


def _sizes(chunk: int | None, leaves: Sequence[Leaf], num_envs: int) -> tuple[int, int]:
    """Return how many rows are handed over at a time, and how many there is memory for."""
    row_bytes = num_envs * sum(math.prod(leaf.cell) * leaf.dtype.itemsize for leaf in leaves)
    room = min(max(MAX_BYTES // max(row_bytes, 1), 2), FIRST_ROWS)
    if chunk is None:
        return min(CHUNK, room), room
    if isinstance(chunk, bool) or not isinstance(chunk, int | np.integer) or chunk < 2:
        raise ValueError(f"chunk={chunk!r}; expected the number of rows to hand over at a time, at least 2, or None")
    return int(chunk), max(int(chunk), room)
