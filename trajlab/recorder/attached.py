"""What fills a Recorder by itself: a source that gathers single steps and hands them over as chunks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from trajlab.capture.convention import Convention
from trajlab.check import FindingName
from trajlab.names import At


class Rows(NamedTuple):
    """Rows that a source hands over.

    Attributes
    ----------
    chunk : pytree of arrays (T, N, ...)
    mask : array (T, N) bool or None
        False where a cell is not recorded.
    marks : array (N,) uint8
        The mark, reset or gap, that stands before each environment's first cell; 0 for none.
    iteration : int
    is_step : bool
        Whether the chunk is one step, arrays (N, ...).
    """

    chunk: Any
    mask: np.ndarray | None
    marks: np.ndarray
    iteration: int
    is_step: bool = False


class RowSource(ABC):
    """Gathers rows until a Recorder takes them.

    The Recorder holds its source and not the other way round, so that rows outlive whoever gathered them and
    no cycle keeps memory. All methods are called under the Recorder's lock.

    Attributes
    ----------
    convention : Convention
        How the rows are laid out.
    attrs : mapping of str to mapping
        Attributes of fields, by their names in the chunk.
    mends : mapping of str to str
        What mends a finding of the self-check, by its name, where that is not an argument of the Recorder.
    num_waiting : int
        Rows that have not been taken.
    episode_fields : mapping of str to {"first", "last"}
        Fields that hold one value per episode, where they are recorded under this name.
    """

    convention: Convention
    attrs: Mapping[str, Mapping[str, Any]]
    mends: Mapping[FindingName, str]
    num_waiting: int
    episode_fields: Mapping[str, At] = MappingProxyType({})

    @abstractmethod
    def waiting(self) -> Rows | None:
        """Return the rows that wait, None where there are none; they wait on until `taken`."""

    @abstractmethod
    def taken(self) -> None:
        """Forget the rows that `waiting` returned: they are recorded."""

    @abstractmethod
    def restart(self) -> None:
        """Forget all rows that wait: the recording starts over."""

    @abstractmethod
    def stop(self) -> None:
        """Gather no more rows: the recording has ended."""


class Inlet(NamedTuple):
    """What a Recorder gives to whoever gathers rows for it.

    Attributes
    ----------
    lock : context manager
        The Recorder's lock, held while rows are gathered.
    pull : callable
        Takes all rows that wait.
    """

    lock: AbstractContextManager[Any]
    pull: Callable[[], None]
