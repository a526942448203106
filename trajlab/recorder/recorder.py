"""The Recorder: takes chunks during training, gives xarray Datasets."""

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np
import xarray as xr

from trajlab.block.interrupts import uninterrupted
from trajlab.block.layout import GAP, RESET
from trajlab.capture.convention import Convention, as_convention
from trajlab.capture.select import Fields, parse_fields
from trajlab.check import Finding
from trajlab.consumers.consumer import Consumer
from trajlab.dataset.build import empty_dataset
from trajlab.dataset.description import EpisodeFields, check_episode_fields
from trajlab.dataset.labels import Coords, Dims, Units
from trajlab.errors import check_option
from trajlab.names import Incomplete
from trajlab.recorder.adding import Adding
from trajlab.recorder.delivery import Delivery, close_at_exit
from trajlab.recorder.marks import Mark
from trajlab.recorder.recording import Recording
from trajlab.recorder.state import Counters, Options
from trajlab.recorder.summary import html_summary, text_summary


class Recorder(Recording):
    """Record what a vectorised training loop does, episode by episode.

    Chunks stay on the device they come from: one call of `record` is one asynchronous write per field. Where
    environments are split over several devices, each keeps its own. A recorder owns what it holds; arrays may be
    donated or overwritten once `record` has returned.

    Parameters
    ----------
    fields : list of str, mapping or None
        Which fields to record: None for all; names and globs, with exclusions
        (``["*", "-info.*"]``); or a mapping of new names to dotted paths or functions of the chunk. Flags
        are always recorded.
    convention : Convention or str
        How the chunks are laid out; ``"auto"`` finds standard names and assumes auto-reset in the same step.
    envs : sequence of int, slice or bool array, optional
        The environments to record; all by default. They keep their own numbers.
    max_episodes : int, optional
        Record until the first so many episodes to *start* have ended. (The first to finish would be the
        short ones.)
    starts_fresh : bool
        Whether recording begins with the first step of an episode in every environment.
    enabled : bool
        False makes every call a no-op.
    num_envs : int, optional
        Number of environments; needed only if the first call is a `record_step` of some of them, or where the
        convention's `axes` has them flattened into one with the updates.
    dims : mapping of str to list of str, optional
        Names of a field's own dims: ``{"obs": ["component"]}``. An extra letter of `Convention.axes` is
        named the same way: ``{"S": "seed"}``.
    coords : mapping of str to sequence, optional
        Labels of dims: ``{"component": ["x", "v"]}``.
    units : mapping, optional
        Unit of a field, or one for each label of its dim: ``{"obs": ["m", "m/s"]}``.
    episode_fields : mapping of str to {"first", "last"}, optional
        Fields shown with one value per episode, that of its first or last recorded transition, as variables over
        `episode`: ``{"info.success": "last", "seed": "first"}``. Analyses take those of one number as `by`.
    retain : bool
        False keeps no rows but those of episodes under way, where a consumer asks for episodes; without one of these,
        none. `to_dataset` then raises.
    consumers : sequence of Consumer
        What gets the rows, or the episodes that have finished, as they come; `close` closes them, and so does the end
        of Python. Until then they are no other Recorder's.

    Raises
    ------
    ValueError, TypeError
        When an argument is none of those listed; what concerns the fields is checked by the first `record`.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> rec = tl.Recorder()
    >>> obs = np.array([[0.0], [1.0], [2.0], [0.0]])  # (T, N) = (4, 1)
    >>> done = np.array([[False], [False], [True], [False]])
    >>> rec.record({"obs": obs, "done": done})
    >>> rec.to_dataset()["length"].values
    array([3, 1])
    """

    _exact = False

    def __init__(
        self,
        fields: Fields = None,
        *,
        convention: Convention | str = "auto",
        envs: Any = None,
        max_episodes: int | None = None,
        starts_fresh: bool = True,
        enabled: bool = True,
        num_envs: int | None = None,
        dims: Dims | None = None,
        coords: Coords | None = None,
        units: Units | None = None,
        episode_fields: EpisodeFields | None = None,
        retain: bool = True,
        consumers: Sequence[Consumer] = (),
    ) -> None:
        for name, value in (("max_episodes", max_episodes), ("num_envs", num_envs)):
            is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if value is not None and not (is_whole and value >= 1):
                raise ValueError(f"{name}={value!r}; expected a positive whole number or None")
        check_episode_fields(episode_fields)
        delivery = Delivery(consumers)
        if not (retain or consumers):
            raise ValueError(
                "retain=False without consumers= would record nothing; expected a consumer, or retain=True"
            )
        options = Options(
            starts_fresh,
            max_episodes,
            dims,
            coords,
            units,
            episode_fields,
            self._exact,
            retain=bool(retain),
            gives_batches=delivery.wants("on_batch"),
            gives_episodes=delivery.wants("on_episodes"),
        )
        super().__init__(
            parse_fields(fields), as_convention(convention), envs, num_envs, options, delivery, enabled=enabled
        )
        if consumers:
            empty_dataset()  # at the end of Python xarray could no longer import what it imports for its first Dataset
            close_at_exit(self, delivery)

    def record(self, chunk: Any, *, mask: Any = None, iteration: int | None = None, **extra: Any) -> None:
        """Record one chunk; returns at once, also while the chunk is still being computed.

        Parameters
        ----------
        chunk : pytree of arrays (T, N, ...)
            A dict, NamedTuple, dataclass or flax struct, nested as it may be, of JAX or NumPy arrays. T may
            differ from call to call.
        mask : bool array (T, N), optional
            False where a cell is no transition; the episode goes on across it.
        iteration : int, optional
            Number of the update; by default one more than that of the call before, the first being 0. A jump
            by more than one, or back, is a gap.
        **extra : array or pytree of arrays (T, N, ...)
            Recorded beside the chunk: ``state=states`` gives ``state.position``, ``advantage=a`` gives
            ``advantage``.

        Raises
        ------
        ValueError
            When shapes, dtypes, the number of environments or the field set do not fit, no flag marks ends, or
            arrays lie on other devices than the rest or than the first chunk. Nothing of the chunk is then stored.
        KeyError
            When a field or path is not in the chunk.
        TypeError
            When a leaf is no array, or when called while JAX traces.
        """
        if self._enabled:
            self._check_unattached()
            with self._lock:
                self._finish_step()  # under the lock: what another thread adds next may lie where this row will
                self._take(chunk, extra, mask=mask, iteration=iteration, envs=None, is_step=False)
            self._delivery.hand_out()

    def record_step(self, step: Any, *, envs: Any = None, iteration: int | None = None, **extra: Any) -> None:
        """Record one step of all environments, or of some.

        Parameters
        ----------
        step : pytree of arrays (N, ...)
            With `envs` as indices or a slice, arrays (len(envs), ...); as a bool mask, (N, ...).
        envs : sequence of int, slice or bool array (N,), optional
            The environments that made a step. The others' episodes go on at their next one.
        iteration : int, optional
            Number of the update; by default the last one recorded, 0 at first.
        **extra : array or pytree of arrays
            As for `record`.

        Raises
        ------
        ValueError, KeyError, TypeError
            As `record`; also where `envs` is out of range, repeats an environment, or its length differs
            from the arrays'.

        Notes
        -----
        Steps of some environments share rows of the log, which are as wide as all of them: each goes to its
        environment's next free one, where `envs` is known on the host. After a chunk, a step of all, or a Dataset, all
        go on at the end. A bool mask on the device takes a whole row. With indices, each new number of
        environments compiles once; with a mask on the host only each power of two.
        """
        if self._enabled:
            self._check_unattached()
            with self._lock:
                self._finish_step()
                self._take(step, extra, mask=None, iteration=iteration, envs=envs, is_step=True)
            self._delivery.hand_out()

    def add(self, field: str, value: Any, *, envs: Any = None, iteration: int | None = None) -> None:
        """Add one field to the step that is being gathered, of all environments or of some.

        An environment's step is recorded once it has all fields of the first step, or when a field that it has
        already is added again; also by `record`, `record_step`, `to_dataset`, `check`, `close`, and a mark before it.
        Steps of some environments share rows, as those of `record_step` do.

        Parameters
        ----------
        field : str
            Its name; ``"/"`` and ``"."`` stand for folders.
        value : array (N, ...), or mapping of names to such
            With `envs` as indices or a slice, (len(envs), ...); as a bool mask, (N, ...). A JAX or NumPy array, or
            one of a package that knows DLPack; all but JAX arrays are copied at once.
        envs : sequence of int, slice or bool array (N,), optional
            The environments that it is of. A mask on the device is waited for.
        iteration : int, optional
            As for `record_step`; another than the step's own begins a new step.

        Raises
        ------
        ValueError, TypeError
            When the field was not in the first step, or its shape or dtype differ from before; where the number of
            entries, or `envs`, do not fit. What is added is then left out. What only `record_step` can tell, a step
            without any flag for instance, is told when the step is recorded; the step is then dropped.

        Notes
        -----
        What an environment lacks of a field is padding, as it is in a Dataset, and False of a flag. A JAX array
        must not be donated before its step is recorded.

        Examples
        --------
        >>> import numpy as np, trajlab as tl
        >>> rec = tl.Recorder(num_envs=3)
        >>> rec.add("obs", np.array([0.0, 1.0, 2.0]))
        >>> rec.add("done", np.array([False, True, False]))
        >>> rec.add("bonus", np.array([5.0]), envs=[1])
        >>> rec.to_dataset()["bonus"].values[:, 0]
        array([nan,  5., nan])
        """
        if not self._enabled:
            return
        self._check_unattached()
        with self._lock:
            self._add(field, value, envs, iteration)
        self._delivery.hand_out()

    def mark_reset(self, envs: Any = None) -> None:
        """Say that all or some environments were reset by hand: their next row starts an episode.

        Parameters
        ----------
        envs : sequence of int, slice or bool array (N,), optional
            All by default. Of several marks before one row the last holds.

        Raises
        ------
        ValueError, TypeError
            When `envs` is out of range, repeats an environment, or is none of these. Before the first chunk
            the number of environments may not be known; then `record` raises.
        """
        self._pull_and_hand_out()
        self._mark(Mark(RESET, envs))

    def mark_gap(self, envs: Any = None) -> None:
        """Say that rows were missed: open episodes are cut, and what follows has ``start_seen=False``.

        Parameters
        ----------
        envs : sequence of int, slice or bool array (N,), optional
            All by default. Of several marks before one row the last holds.

        Raises
        ------
        ValueError, TypeError
            As `mark_reset`.
        """
        self._pull_and_hand_out()
        self._mark(Mark(GAP, envs))

    @property
    def is_full(self) -> bool:
        """Whether `max_episodes` episodes have ended, as far as their flags have arrived: late perhaps, never early."""
        with self._lock:
            return self._session is not None and self._session.is_full(self._counters)

    @property
    def num_recorded_steps(self) -> int:
        """Number of rows recorded: steps of time, not steps times environments."""
        return self._counters.rows + (self._source.num_waiting if self._source else 0)

    def to_dataset(self, *, incomplete: Incomplete = "keep") -> xr.Dataset:
        """Return what was recorded so far as a Dataset over (episode, time, ...); no field is fetched.

        The Dataset never changes, whatever is recorded or reset afterwards.

        Parameters
        ----------
        incomplete : {"keep", "drop"}
            ``"drop"`` leaves out episodes that are not `complete`.

        Raises
        ------
        ValueError
            When nothing has been recorded, or nothing is kept (``retain=False``).

        Warns
        -----
        UserWarning
            When the rows do not look like what the convention says; see `check`.
        """
        check_option("incomplete", incomplete, Incomplete)
        if not self._options.retain:
            raise ValueError(
                "this Recorder was made with retain=False and keeps no rows; ask its consumers, such as result() of a "
                "StreamingHistogram, or read what they have written"
            )
        if not self._enabled:
            return empty_dataset()
        self._pull_and_hand_out()
        with self._lock:
            self._pull()
            self._finish_step()
            if self._session is None or not self._counters.rows:
                calls = "call record(chunk), record_step(step) or add(field, value)"
                first = "step the environment" if self._source else calls
                raise ValueError(f"nothing has been recorded; {first} first")
            self._counters = self._session.closed(self._counters)
            return self._session.dataset(self._counters, incomplete)

    def check(self) -> list[Finding]:
        """Return signs that the recording is read by another convention than it was made with.

        Each says what was seen, in how many cases, and the argument that would mend it. `to_dataset` looks for the
        same and warns of what it finds, once each; only integer actions it leaves alone, for they have to be read.

        Returns
        -------
        list of Finding
            Each with `name`, `seen`, `count`, `of`, `unit` and `mend`; empty where nothing was found, or too little
            was recorded to tell. No finding is no proof: from arrays alone, many a mistake cannot be seen.

        Notes
        -----
        What has to be seen nearly always has to be seen in 90 percent of at least 10 cases; for a first step that
        was lost, or environments that never end, one environment is enough. Observations are
        compared where they lie, at up to 64 ends spread over the recording.

        Examples
        --------
        >>> import numpy as np, trajlab as tl
        >>> rec = tl.Recorder(convention=tl.Convention(autoreset="next_step"))
        >>> obs = np.tile([0.0, 1.0, 2.0], 20)[:, None] * np.ones(4)  # (T, N) = (60, 4); each episode starts at 0
        >>> rec.record({"obs": obs, "done": obs == 2.0})
        >>> [(finding.name, finding.count, finding.of) for finding in rec.check()]
        [('no_reset_row', 64, 64)]
        """
        with self._lock:
            self._pull()
            self._finish_step()
            if self._session is None or not self._counters.rows or not self._options.retain:
                return []
            self._counters = self._session.closed(self._counters)
            return self._session.check(self._counters)

    def reset(self) -> None:
        """Forget all that was recorded; Datasets handed out keep theirs. Allocations that none reads are kept.

        Consumers keep what they have got; episodes under way never come.
        """
        self._delivery.hand_out()
        with self._lock, uninterrupted():
            self._counters = Counters()
            self._adding = Adding(self._convention)
            if self._session is not None:
                self._session.clear()
            if self._source is not None:
                self._source.restart()

    def close(self) -> None:
        """End the recording: later `record` calls raise. What was recorded stays readable. May be called twice.

        Consumers get what is left, and are closed.
        """
        try:
            with self._lock:
                if self._closed:
                    return
                try:
                    self._pull()
                    self._finish_step()
                finally:
                    self._closed = True
                    if self._source is not None:
                        self._source.stop()
                    self._add_finished(is_last=True)
        finally:
            self._delivery.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a recorder holds memory of the device, and a lock."""
        raise TypeError(
            "a Recorder is neither copied nor pickled; keep what it recorded, rec.to_dataset(). Of an environment that "
            "records itself copy the one within: env.unwrapped. In a configuration that is copied, as managers do with "
            "theirs, give SharedRecorder(rec) of trajlab.integrations.managers"
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close; what ended the block goes on, with a note where closing failed, too."""
        try:
            self.close()
        except Exception as problem:
            if error is None:
                raise
            error.add_note(f"closing the Recorder failed, too: {problem}")

    def __del__(self) -> None:
        """Close, so that consumers get what is left, and are closed."""
        if "_delivery" in self.__dict__ and self._delivery.has_consumers:
            self.close()

    def __repr__(self) -> str:
        """Return the summary as text."""
        return text_summary(self._summary())

    def _repr_html_(self) -> str:
        """Return the summary as HTML."""
        return html_summary(self._summary())
