"""Values at one place of many lines, as an array: each of the dtype and shape that the file says."""

from pathlib import Path
from typing import Any

import numpy as np

from trajlab.errors import warn_user
from trajlab.io.jsonl.specs import Place, Spec, at
from trajlab.io.jsonl.text import decode


def required(
    path: Path, name: str, lines: list[dict[str, Any]], spec: Spec, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values in some lines, each of which must have one; `first` is the number of the first line."""
    values = []
    for place, line in enumerate(lines):
        try:
            values.append(at(line, spec.place))
        except KeyError:
            raise ValueError(f"{path}, line {first + place}: {_dotted(spec.place)!r} is missing") from None
    return decoded(path, name, values, spec, first), np.zeros(len(lines), bool)


def optional(
    path: Path, name: str, lines: list[dict[str, Any]], spec: Spec, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of those lines that have one, and which have none; one of another shape or kind is none."""
    values, is_missing, odd = [], np.ones(len(lines), bool), 0
    for place, line in enumerate(lines):
        try:
            value = at(line, spec.place)
            if value is not None:
                values.append(decode([value], spec.dtype, (1, *spec.shape)))
                is_missing[place] = False
        except KeyError:
            pass
        except ValueError:
            odd += 1
    if odd:
        warn_user(
            f"{path}: {odd} values of {name!r} from line {first} on are left out, as they are not {spec.dtype} of the "
            f"shape {spec.shape}"
        )
    return np.concatenate([np.empty((0, *spec.shape), spec.dtype), *values]), is_missing


def decoded(path: Path, name: str, values: list[Any], spec: Spec, first: int) -> np.ndarray:
    """Return values (M, ...) of lines from number `first` on; raise ValueError where one has another shape or kind."""
    try:
        return decode(values, spec.dtype, (len(values), *spec.shape))
    except ValueError as error:
        line = first + _first_wrong(values, spec)
        raise ValueError(f"{path}, line {line}: {name!r} ({_dotted(spec.place)}): {error}") from None


def _first_wrong(values: list[Any], spec: Spec) -> int:
    """Return the place of the first value that is wrong by itself, else 0."""
    for place, value in enumerate(values):
        try:
            decode([value], spec.dtype, (1, *spec.shape))
        except ValueError:
            return place
    return 0


def _dotted(place: Place) -> str:
    return ".".join(map(str, place))
