"""Lines of a file: each closes with a checksum, so that what was torn or damaged is never taken for data."""

import zlib
from pathlib import Path
from typing import Any

from trajlab.errors import warn_user
from trajlab.io.jsonl.text import library

CHECKSUM = "crc"
_MARK, _SIZE = b',"crc":"', 18
"""How the end of a line begins, and how long it is: eight hexadecimal digits, a quote and a brace."""
SEALED = b'%b,"crc":"%08x"}\n'
"""A line, of a JSON object without its last brace and the CRC-32 of that."""
_BY_HAND = f"To edit a file by hand, take {CHECKSUM!r} out of all its lines"


def sealed(line: bytes) -> bytes:
    """Return a JSON object as a line, with the CRC-32 of all before it under the last key, `crc`."""
    body = line[:-1]
    return SEALED % (body, zlib.crc32(body))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects in the lines of a file.

    A last line that is torn, or does not have its checksum, is left out with a warning.

    Raises
    ------
    ValueError
        When another line is broken; it names the file and the line.
    """
    pieces = path.read_bytes().split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    objects: list[dict[str, Any]] = []
    for number, piece in enumerate(pieces):
        try:
            objects.append(_parsed(piece, must_check=bool(objects) and CHECKSUM in objects[0]))
        except ValueError as error:
            if number + 1 < len(pieces):
                raise ValueError(f"{path}, line {number + 1}: {error}") from None
            warn_user(f"{path}, line {number + 1}: left out, as it is torn: {error}")
    _check_alike(objects, path)
    return objects


def _parsed(piece: bytes, *, must_check: bool) -> dict[str, Any]:
    found = library().loads(piece)  # its error is a ValueError
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object; got {type(found).__name__}")
    is_checked = piece[-_SIZE : -_SIZE + len(_MARK)] == _MARK
    if is_checked and found.get(CHECKSUM) != f"{zlib.crc32(piece[:-_SIZE]):08x}":
        raise ValueError(f"it does not have its checksum: it was changed after it was written. {_BY_HAND}")
    if must_check and not is_checked:
        raise ValueError(
            f"its last key is not {CHECKSUM!r}, as in the first line: it was changed after it was written. {_BY_HAND}"
        )
    return found


def _check_alike(objects: list[dict[str, Any]], path: Path) -> None:
    if objects and CHECKSUM not in objects[0] and any(CHECKSUM in line for line in objects):
        raise ValueError(f"{path}, line 1: it has lost its checksum, which later lines have")
