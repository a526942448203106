"""What a consumer is, and what it gets."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """One call's rows as a consumer gets them: the arrays that were given, before the call returns.

    Nothing is copied. An array may be donated, or written again, once `Recorder.record` has returned: a computation
    on the device that has been started before is safe, whoever keeps an array copies it.

    Attributes
    ----------
    fields : mapping of str to array (T, N, ...)
        By the names of the Dataset: JAX arrays as they came from the device, perhaps still being computed, and NumPy
        arrays that cannot be written. A single step has T = 1.
    time : array (T, N) int32
        The step within its episode of each transition, on the device; -1 where a cell is none: a reset row, a masked
        one, or what comes after an end until the environment is reset by hand.
    mask : array (T, N) bool or None
        False where a cell was not recorded; None where all were.
    envs : array (N,) int64
        The environments' own numbers.
    columns : array (N,) int32 or None
        Which of the environments that are recorded these are; None for all.
    num_envs : int
        How many environments are recorded.
    moved : frozenset of str
        Fields that stand one row late (see `Convention.alignment`): the value at a transition is that of the
        environment's transition or cell before.
    agents : frozenset of str
        Fields with several agents, of which some may no longer take part.
    dims : mapping of str to tuple of str
        Names of each field's own dims.
    coords : mapping of str to xarray variable
        Labels of these dims, where they have some.
    attrs : mapping of str to mapping
        Units and what else is said of each field.
    first_row : int
        Number of the first row, counted from the recorder's first; a step of some environments may have found room
        in earlier ones.
    iteration : int
        The update of the first row.
    """

    fields: Mapping[str, Any]
    time: jax.Array
    mask: Any
    envs: np.ndarray
    columns: np.ndarray | None
    num_envs: int
    moved: frozenset[str]
    agents: frozenset[str]
    dims: Mapping[str, tuple[str, ...]]
    coords: Mapping[str, Any]
    attrs: Mapping[str, Mapping[str, Any]]
    first_row: int
    iteration: int


class Consumer:
    """What gets the rows of a `Recorder` as they come; a class to derive from.

    A recorder calls the methods that a subclass defines, in the order of its `consumers`, from the thread that
    called `record` and never while it holds its own lock: a consumer may read from the recorder. One that raises is
    reported with a warning, closed, and called no more.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> class Lengths(tl.Consumer):
    ...     def on_episodes(self, episodes):
    ...         print(episodes["length"].values, episodes["end_reason"].values)
    >>> with tl.Recorder(retain=False, consumers=[Lengths()]) as rec:
    ...     rec.record({"obs": np.zeros((4, 1)), "done": np.array([[False], [True], [False], [False]])})
    [2] ['done']
    [2] ['cut']
    """

    def on_batch(self, batch: Batch) -> None:
        """Take the rows of one call of `Recorder.record` or `record_step`."""

    def on_episodes(self, episodes: xr.Dataset) -> None:
        """Take episodes that have ended, or have been cut, since the last call: a Dataset like any other.

        They come when their flags have arrived from the device, which may be some calls later. When the recorder is
        closed the rest comes, and those under way as ``"cut"``.
        """

    def close(self) -> None:
        """Finish: nothing comes any more. Called once, when the recorder is closed or Python exits."""


def wants(consumer: Consumer, method: str) -> bool:
    """Say whether a consumer's class defines a method of `Consumer` itself."""
    return getattr(type(consumer), method) is not getattr(Consumer, method)
