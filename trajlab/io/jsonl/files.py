"""Files of a directory: one per episode, named by its number."""

import os
import re
from pathlib import Path
from typing import Any, Literal

from trajlab.errors import check_option

Mode = Literal["create", "append", "replace"]
"""What becomes of the episodes that a directory holds already: they are refused, continued or deleted."""

NO_EPISODES = "no_episodes.jsonl"
"""The file that says what the fields of a Dataset without episodes are."""
APPENDING = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
"""How files are opened."""
_NAME = re.compile(r"episode_(\d{5,18})\.jsonl")


def as_path(path: Any) -> Path:
    """Return a path; raise TypeError where it is none."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r}; expected the path of a directory, a text or a pathlib.Path")
    return Path(path)


def episode_file(directory: Path, number: int) -> Path:
    """Return the file of an episode."""
    return directory / f"episode_{number:05d}.jsonl"


def episode_files(directory: Path) -> list[Path]:
    """Return the files of episodes in the order of their numbers: 99999 comes before 100000."""
    found = [(int(match[1]), path) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def number_of(path: Path) -> int | None:
    """Return the number that a file's name tells, None where it tells none."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else None


def new_file(path: Path) -> int:
    """Make the file of an episode, open to append; raise FileExistsError where another writer has made it."""
    try:
        return os.open(path, APPENDING | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise FileExistsError(
            f"{path} is there, but was not when this writer began: another one writes into {path.parent}, too, or its "
            "recorder was reset and counts from 0 again. Give each a directory of its own; a writer that is made with "
            "mode='append' goes on behind the files that are there"
        ) from None


def prepare(path: Any, mode: Any) -> tuple[Path, int]:
    """Return a directory that is ready to be written to, and the number from which episodes count there.

    Raises
    ------
    FileExistsError
        When it holds episodes and the mode is ``"create"``, or is no directory.
    ValueError, TypeError
        When the mode is unknown, or `path` is no path.
    """
    check_option("mode", mode, Mode)
    directory = as_path(path)
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory} is a file; expected a directory, which gets one file per episode")
    directory.mkdir(parents=True, exist_ok=True)
    files = episode_files(directory)
    if files and mode == "create":
        raise FileExistsError(
            f"{directory} holds the episodes of an earlier run ({len(files)} files, the last is {files[-1].name}). "
            "Give another directory, mode='append' to go on behind them, or mode='replace' to delete them"
        )
    if mode == "replace":
        for file in files:
            file.unlink()
        files = []
    (directory / NO_EPISODES).unlink(missing_ok=True)
    return directory, 0 if not files else (number_of(files[-1]) or 0) + 1
