"""The Recorder that the recorder terms of one environment fill together."""

import weakref
from typing import Any, Self

import numpy as np
import xarray as xr

from trajlab.integrations.managers.arrays import Fields, on_host
from trajlab.integrations.managers.step_row import SEED, StepRow
from trajlab.names import CUT, END_REASON, ENV, EPISODE, LENGTH, TIME
from trajlab.recorder import Recorder, attach
from trajlab.recorder.attached import Inlet
from trajlab.recorder.calls import as_iteration


class SharedRecorder:
    """One Recorder for all recorder terms of one environment.

    Give it to the terms by their configuration, of which managers make copies: a copy of this is still the same. What
    is pickled, or written into a file with the rest of the configuration, records nothing when it is read.

    Parameters
    ----------
    recorder : Recorder, optional
        Where the steps go; by default a new one. It must be new, and made without `convention`.

    Attributes
    ----------
    recorder : Recorder

    Examples
    --------
    >>> import copy, trajlab as tl
    >>> from trajlab.integrations.managers import SharedRecorder
    >>> shared = SharedRecorder(tl.Recorder(max_episodes=1000))
    >>> copy.deepcopy({"recorder": shared})["recorder"] is shared
    True
    """

    # No __dict__: Isaac Lab writes that of whatever stands in a configuration into a file.
    __slots__ = ("_env", "_inlet", "_iteration", "_row", "_seed", "recorder")

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = Recorder() if recorder is None else recorder
        self._row: StepRow | None = None
        self._inlet: Inlet | None = None
        self._env: weakref.ref[Any] | None = None
        self._seed: int | None = None
        self._iteration = 0

    def __copy__(self) -> Self:
        """Return itself: the copy of a configuration fills the same Recorder."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself, as a copy does."""
        return self

    def __reduce__(self) -> Any:
        """Be written as one that records nothing: what reads it, maybe elsewhere, has no use for a recording."""
        return _recording_nothing, ()

    @property
    def iteration(self) -> int:
        """The number of the update that steps from now on belong to; 0 until it is set."""
        return self._iteration

    @iteration.setter
    def iteration(self, number: Any) -> None:
        number = as_iteration(number)
        if number != self._iteration:
            self._pull()
            self._iteration = number
            if self._row is not None:
                self._row.iteration = self._iteration

    @property
    def seed(self) -> int | None:
        """The seed of episodes from now on, by default that of the environment's configuration; None for no field."""
        return self._seed

    @seed.setter
    def seed(self, number: Any) -> None:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"seed={number!r}; expected a whole number")
        if self._row is not None and self._row.seed is None and self._row.has_begun:
            raise ValueError(
                f"seed={number!r}: steps without a seed have been recorded, and every step has the same fields. Set it "
                "before the first step"
            )
        self._seed = int(number)
        if self._row is not None:
            self._row.seed = self._seed

    def get_episode(self, env_id: int) -> xr.Dataset:
        """Return the episode that is under way in one environment, as a Dataset of its own on the host.

        Later steps do not change it, and it keeps no memory of the recording's. It holds no episode where the
        environment has ended one, or was reset, and has made no step since.

        Raises
        ------
        ValueError
            When there is no such environment, nothing has been recorded, or nothing is kept (``retain=False``).
        """
        if self._row is None:
            raise ValueError("no environment fills this yet: give it to a recorder term, params={'recorder': ...}")
        num_envs = self._row.num_envs
        if not 0 <= env_id < num_envs:
            raise ValueError(f"env_id={env_id!r}; expected one of the {num_envs} environments, 0 to {num_envs - 1}")
        ds = self.recorder.to_dataset()
        newest = np.flatnonzero(ds[ENV].values == env_id)[-1:]
        if self._row.resets[env_id]:
            newest = newest[:0]
        newest = newest[ds[END_REASON].values[newest] == CUT]
        one = ds.isel({EPISODE: newest})
        return one.isel({TIME: slice(int(one[LENGTH].values.sum()))}).load()

    def set_success_to_episodes(self, env_ids: Any, values: Any) -> None:
        """Set the success of the episodes under way, or just ended, in some environments.

        It holds until the environment is reset; without it an episode has not succeeded. It needs a term with
        ``params={"success": True}``, and the episode's newest step must not have been read.

        Parameters
        ----------
        env_ids : sequence of int, slice, array (k,) or None
            None for all.
        values : bool array (k,) or (k, 1)

        Raises
        ------
        ValueError
            When no term records success by hand, or the step it belongs to has been read or was not recorded.
        """
        row, inlet = self._row, self._inlet
        if row is None or inlet is None or not row.has_success_by_hand:
            raise ValueError(
                "no recorder term takes success from here; give one of them params={'success': True}, in place of the "
                "name of a termination term or a function"
            )
        if not row.is_recording:
            return
        envs = on_host(env_ids)
        where = np.arange(row.num_envs)[slice(None) if envs is None else envs]
        given = np.asarray(on_host(values)).astype(bool)
        if given.size != where.size:
            raise ValueError(
                f"success of shape {given.shape} for {where.size} environments; expected ({where.size},) or "
                f"({where.size}, 1)"
            )
        with inlet.lock:
            row.set_success(where, given.reshape(-1))

    def close(self) -> None:
        """Close the recorder; may be called more than once."""
        self.recorder.close()

    @property
    def is_recording(self) -> bool:
        """Whether steps are still wanted: the recorder is enabled and not closed."""
        return self._row is not None and self._row.is_recording

    def join(self, env: Any) -> bool:
        """Take a further term of an environment; say whether it is the first.

        Raises
        ------
        ValueError
            When the terms of another environment fill this, or its Recorder is not new.
        """
        if self._env is not None and self._env() is not env:
            raise ValueError(
                "this SharedRecorder is filled by another environment; make one for each, and join what they record "
                "with concat()"
            )
        is_first = self._row is None
        if self._row is None:
            row = StepRow(env.num_envs)
            self._inlet = attach(self.recorder, row)
            self._row, self._env = row, weakref.ref(env)
            if self._seed is None:
                self._seed = getattr(env.cfg, SEED, None)
            row.seed, row.iteration = self._seed, self._iteration
        self._row.num_terms += 1
        return is_first

    def begin(self) -> None:
        """Begin the row of the next step: the one before is recorded."""
        row, inlet = self._parts()
        try:
            inlet.pull()
        except BaseException:
            row.lose()
            raise
        with inlet.lock:
            row.begin()

    def fill(self, fields: Fields, *, is_last: bool) -> None:
        """Put fields into the row; `is_last` where they are the last that one term has for it."""
        row, inlet = self._parts()
        with inlet.lock:
            row.fill(fields, is_last=is_last)

    def mark_reset(self, envs: Any) -> None:
        """Say that environments, None for all, were reset: their next row begins an episode."""
        row, inlet = self._parts()
        with inlet.lock:
            row.mark(on_host(envs))

    def mark_gap(self) -> None:
        """Say that a step was missed: what comes next does not follow on the newest row."""
        row, inlet = self._parts()
        with inlet.lock:
            row.miss()

    def expect_success(self) -> None:
        """Say that a term records the success that is set by hand."""
        self._parts()[0].has_success_by_hand = True

    def success_by_hand(self) -> np.ndarray:
        """Return the success (N,) that was set for the episodes under way."""
        return self._parts()[0].success_by_hand()

    def _parts(self) -> tuple[StepRow, Inlet]:
        assert self._row is not None
        assert self._inlet is not None
        return self._row, self._inlet

    def _pull(self) -> None:
        if self._inlet is not None:
            self._inlet.pull()


def _recording_nothing() -> SharedRecorder:
    return SharedRecorder(Recorder(enabled=False))
