"""A consumer that writes finished episodes."""

from typing import Any

import xarray as xr

from trajlab import names
from trajlab.consumers.consumer import Consumer
from trajlab.io.jsonl.files import Mode, prepare
from trajlab.io.jsonl.text import library
from trajlab.io.jsonl.write import EpisodesAsLines


class JsonlWriter(Consumer):
    """Write the episodes of a `Recorder` as JSON Lines, each when it has ended.

    Every episode is a whole file as soon as the recorder knows its end, and no file stays open. `write_jsonl` says
    what a file holds, and `read_jsonl` makes a Dataset of them: the one that `Recorder.to_dataset` would give of the
    same rows, but for the attributes that count rows, which are those of the last file.

    Parameters
    ----------
    path : str or Path
        A directory, made if it is not there.
    mode : {"create", "append", "replace"}
        What becomes of episodes that are there already: ``"create"`` refuses, ``"append"`` numbers new ones behind
        them, ``"replace"`` deletes them.

    Raises
    ------
    FileExistsError
        When the directory holds episodes and the mode is ``"create"``, or `path` is a file.
    ValueError, TypeError
        When `mode` is unknown, or `path` is no path.
    ImportError
        When orjson is not installed, which the extra `jsonl` brings.

    Examples
    --------
    >>> import tempfile, numpy as np, trajlab as tl
    >>> path = tempfile.TemporaryDirectory()
    >>> with tl.Recorder(retain=False, consumers=[tl.JsonlWriter(path.name)]) as rec:
    ...     rec.record({"obs": np.zeros((4, 1)), "done": np.array([[False], [True], [False], [False]])})
    >>> tl.read_jsonl(path.name)["end_reason"].values
    array(['done', 'cut'], dtype='<U10')
    >>> path.cleanup()
    """

    def __init__(self, path: Any, *, mode: Mode = "create") -> None:
        library()
        self._directory, self._first = prepare(path, mode)

    def on_episodes(self, episodes: xr.Dataset) -> None:
        """Write a file for each of these episodes."""
        if episodes.sizes[names.EPISODE]:
            EpisodesAsLines(episodes).write(self._directory, self._first)
