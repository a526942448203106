"""Files of episodes under way: they stay open while these are few."""

import os
from pathlib import Path

from trajlab.io.jsonl.files import APPENDING, episode_file, new_file

MAX_OPEN = 64
"""Files that stay open between steps; further ones are opened for each line."""


class OpenFiles:
    """The files of a directory that are being written."""

    def __init__(self, directory: Path, first: int) -> None:
        """Begin with the episode number `first`."""
        self._directory, self._next = directory, first
        self._open: dict[int, int] = {}

    def begin(self) -> tuple[int, int | None]:
        """Make the file of a new episode; return its number, and the file where it stays open.

        Raises
        ------
        FileExistsError
            When another writer has made it.
        """
        number = self._next
        file = new_file(episode_file(self._directory, number))
        self._next += 1
        if len(self._open) >= MAX_OPEN:
            os.close(file)
            return number, None
        self._open[number] = file
        return number, file

    def append(self, number: int, text: bytes) -> None:
        """Append lines to an episode's file that does not stay open."""
        file = os.open(episode_file(self._directory, number), APPENDING)
        try:
            write_all(file, text)
        finally:
            os.close(file)

    def end(self, number: int) -> None:
        """Close an episode's file."""
        file = self._open.pop(number, None)
        if file is not None:
            os.close(file)

    def close(self) -> None:
        """Close all files."""
        for number in list(self._open):
            self.end(number)


def write_all(file: int, text: bytes) -> None:
    """Write all of a text to an open file."""
    written = os.write(file, text)
    while written < len(text):  # as a disk that fills up does
        written += os.write(file, text[written:])
