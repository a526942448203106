"""What was asked of a recording, how far it is, and what a call adds to it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from trajlab.check import FindingName
from trajlab.recorder.captured import Track
from trajlab.recorder.marks import Mark
from trajlab.recorder.sharing import Window


class Options(NamedTuple):
    """What was asked of a recording.

    `exact` makes each block as long as its chunk; `attrs` are attributes of fields, by their names in the chunk;
    `retain` keeps the rows; `gives_batches` and `gives_episodes` say what consumers are to get of them; `mends` are
    those of findings, by their names.
    """

    starts_fresh: bool
    max_episodes: int | None
    dims: Any
    coords: Any
    units: Any
    episode_fields: Any = None
    exact: bool = False
    attrs: Any = None
    retain: bool = True
    gives_batches: bool = False
    gives_episodes: bool = False
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
    track : Track or None
        Where the environments stand behind the rows, where consumers want to know.
    bits : array (width,) uint8 or None
        Earlier marks, that already waited for a row and found no cell in it.
    window : Window or None
        The last rows, where environments still make their steps one by one.
    """

    rows: int = 0
    seen: int = 0
    updates: int = 0
    iteration: int | None = None
    marks: tuple[Mark, ...] = ()
    track: Track | None = None
    bits: np.ndarray | None = None
    window: Window | None = None

    @property
    def fixed(self) -> int:
        """Rows that are filled for good."""
        return self.rows if self.window is None else self.window.start


class Call(NamedTuple):
    """What a call of `record` or `record_step` says beside its arrays.

    Attributes
    ----------
    length : int
        Rows of the chunk.
    signature : hashable
        What the append compiles for.
    is_step : bool
    mask : array or None
    envs : array (k,) int64 or None
        The environments that made a step, where some did.
    is_whole : bool
        Whether the arrays are of all environments nevertheless.
    updates : int
        Updates of the chunk.
    iteration : int
        Of its first row.
    jumps : bool
        Whether that is no successor of the last row's.
    """

    length: int
    signature: Any
    is_step: bool
    mask: Any = None
    envs: np.ndarray | None = None
    is_whole: bool = True
    updates: int = 1
    iteration: int = 0
    jumps: bool = False
