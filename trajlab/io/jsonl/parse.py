"""One file as the arrays of an episode, checked: what a file says of itself is believed only where its lines agree."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trajlab import names
from trajlab.errors import warn_user
from trajlab.io.jsonl.columns import decoded, optional, required
from trajlab.io.jsonl.describe import by_place
from trajlab.io.jsonl.lines import read_lines
from trajlab.io.jsonl.older import is_older, with_fields
from trajlab.io.jsonl.specs import FORMAT, Spec, at, parse_specs
from trajlab.io.jsonl.text import MAX_WIDTH, decode

MAX_STEPS = 2**24
"""A file's word alone makes no more labels of `time` than this."""


@dataclasses.dataclass(frozen=True)
class Parsed:
    """One episode.

    Attributes
    ----------
    path : Path
    number : int
    attrs : mapping
        Of the Dataset.
    labels : array (time,) int64 or None
        The labels of `time` that the file knows of, in their order; None where it was written step by step.
    specs : mapping of str to Spec
    count : int
        Number of its steps that are there.
    is_whole : bool
        Whether these are all that the first line tells of; False where it does not tell.
    steps : mapping of str to array (count, ...)
        Variables over episode and time.
    missing : mapping of str to array (count,) bool
        Where an optional one of these has no value.
    values : mapping of str to array
        Variables over episode, those that have a value.
    """

    path: Path
    number: int
    attrs: Mapping[str, Any]
    labels: np.ndarray | None
    specs: Mapping[str, Spec]
    count: int
    is_whole: bool
    steps: Mapping[str, np.ndarray]
    missing: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]


def parse_file(path: Path) -> Parsed | None:
    """Return the episode in a file, None (with a warning) where it holds not even a first line.

    An episode whose last steps are not there is cut behind those that are.

    Raises
    ------
    ValueError
        When something is wrong with a line; it names the file and the line.
    """
    lines = read_lines(path)
    if not lines:
        warn_user(f"{path} is left out: it has no first line")
        return None
    if is_older(lines[0]):
        lines = with_fields(path, lines)
    head, steps = lines[0], lines[1:]
    try:
        number, attrs, labels, specs = _head(head)
    except ValueError as error:
        raise ValueError(f"{path}, line 1: {error}") from None
    known = _labels_there(path, labels, steps)
    specs, dtypes = _amended(path, specs, steps)
    arrays, missing = _steps(path, specs, dtypes, lines)
    values = _values(path, specs, head)
    is_whole = _is_whole(values, labels, len(steps))
    if not is_whole:
        values = {name: value for name, value in values.items() if not _is_of_the_end(name, specs[name])}
        values |= _finals(path, specs, lines) if steps else {}
        values |= _derived(specs, lines, values, known)
    elif steps:
        values |= _finals(path, specs, lines)
    specs = _narrowed(specs, arrays | values)
    return Parsed(path, number, attrs, labels, specs, len(steps), is_whole, arrays, missing, values)


def _head(line: Mapping[str, Any]) -> tuple[int, Mapping[str, Any], np.ndarray | None, dict[str, Spec]]:
    if line.get("event") != "reset":
        raise ValueError(f"'event' is {line.get('event')!r}; expected 'reset'")
    if line.get("schema") != FORMAT:
        raise ValueError(f"'schema' is {line.get('schema')!r}; this version of trajlab reads {FORMAT}")
    number, attrs = line.get("episode"), line.get("attrs", {})
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63
    if not (is_number or number is None):
        raise ValueError(f"'episode' is {number!r}; expected a number from 0")
    if not isinstance(attrs, dict):
        raise ValueError("'attrs' is no object")
    return -1 if number is None else number, attrs, _labels(line.get("time")), parse_specs(line.get("variables"))


def _labels(given: Any) -> np.ndarray | None:
    """Return the labels of `time`, given as a list, or by their beginning, end and step."""
    if given is None:
        return None
    if isinstance(given, list):
        labels = decode(given, np.dtype(np.int64), (len(given),))
    else:
        limits = [given.get(key) for key in ("start", "stop", "step")] if isinstance(given, dict) else []
        whole = [n for n in limits if type(n) is int and abs(n) < 2**62]
        if len(whole) != 3 or whole[2] < 1:
            raise ValueError(f"'time' is {str(given)[:80]}; expected a list or 'start', 'stop' and 'step'")
        if len(range(*whole)) > MAX_STEPS:
            raise ValueError(f"'time' has {len(range(*whole))} labels; more than {MAX_STEPS} are not read")
        labels = np.arange(*whole)
    if len(np.unique(labels)) < len(labels) or (labels < 0).any():
        raise ValueError("'time' holds a label twice, or a negative one")
    return labels


def _amended(
    path: Path, specs: dict[str, Spec], steps: list[dict[str, Any]]
) -> tuple[dict[str, Spec], dict[str, list[tuple[int, np.dtype]]]]:
    """Return specs with those that later lines give, and from which step on values stand in which dtype."""
    dtypes = {name: [(0, spec.dtype)] for name, spec in specs.items()}
    for place, line in enumerate(steps):
        if "variables" in line:
            try:
                new = parse_specs(line["variables"])
            except ValueError as error:
                raise ValueError(f"{path}, line {place + 2}: {error}") from None
            specs = specs | new
            for name, spec in new.items():
                start = place + (spec.stands == "before")  # what a step led to is what the next begins with
                dtypes.setdefault(name, [(0, spec.dtype)]).append((start, spec.dtype))
    return specs, dtypes


def _labels_there(path: Path, labels: np.ndarray | None, steps: list[dict[str, Any]]) -> np.ndarray:
    """Return the label of `time` of each step; raise ValueError where one is not the next."""
    expected = np.arange(len(steps)) if labels is None else np.sort(labels)[: len(steps)]
    for place, line in enumerate(steps):
        if line.get("event") != "step":
            raise ValueError(f"{path}, line {place + 2}: 'event' is {line.get('event')!r}; expected 'step'")
        if place >= len(expected) or line.get("t") != int(expected[place]) + 1 or isinstance(line.get("t"), bool):
            wanted = int(expected[place]) + 1 if place < len(expected) else "no further step"
            raise ValueError(f"{path}, line {place + 2}: 't' is {line.get('t')!r}; expected {wanted}")
    return expected[: len(steps)]


def _steps(
    path: Path,
    specs: Mapping[str, Spec],
    dtypes: Mapping[str, list[tuple[int, np.dtype]]],
    lines: list[dict[str, Any]],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the variables over episode and time, and where an optional one is missing."""
    arrays, missing = {}, {}
    for name, spec in by_place(specs, "step", "before").items():
        shown = lines[:-1] if spec.stands == "before" else lines[1:]
        parts, gaps = [], []
        starts = [start for start, _ in dtypes[name]]
        for (start, dtype), stop in zip(dtypes[name], [*starts[1:], len(shown)], strict=True):
            own = dataclasses.replace(spec, dtype=dtype)
            read = optional if spec.is_optional else required
            values, is_missing = read(path, name, shown[start:stop], own, start + 1 + (spec.stands == "step"))
            parts.append(values if values.dtype.kind in "US" else values.astype(spec.dtype, copy=False))
            gaps.append(is_missing)
        arrays[name] = np.concatenate(parts) if len(parts) > 1 else parts[0]
        if spec.is_optional:
            missing[name] = np.concatenate(gaps)
    return arrays, missing


def _values(path: Path, specs: Mapping[str, Spec], head: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the variables over `episode` that the first line has a value of."""
    found = {}
    for name, spec in by_place(specs, "episode").items():
        try:
            value = at(head, spec.place)
        except KeyError:
            continue
        if value is not None or spec.dtype.kind == "O":
            found[name] = decoded(path, name, [value], spec, 1)[0, ...]
    return found


def _narrowed(specs: dict[str, Spec], arrays: Mapping[str, np.ndarray]) -> dict[str, Spec]:
    """Return specs with the dtypes that values have, where these are texts far shorter than the file says."""
    texts = {name: array for name, array in arrays.items() if array.dtype.kind in "US"}
    wide = [name for name in texts if specs[name].dtype.itemsize > 4 * MAX_WIDTH]
    return specs | {name: dataclasses.replace(specs[name], dtype=arrays[name].dtype) for name in wide}


def _is_whole(values: Mapping[str, np.ndarray], labels: np.ndarray | None, count: int) -> bool:
    """Say whether all steps are there that the first line tells of."""
    if names.LENGTH not in values or labels is None:
        return False
    return count == int((labels < values[names.LENGTH]).sum())


def _is_of_the_end(name: str, spec: Spec) -> bool:
    """Say whether a value was of the episode's last step, which is not there."""
    is_final = name.startswith(names.FINAL_PREFIX) and spec.attrs.get(names.ROLE_ATTR) != names.EPISODE_FIELD_ROLE
    return is_final or name in (names.LENGTH, names.END_REASON, names.COMPLETE)


def _finals(path: Path, specs: Mapping[str, Spec], lines: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the final observations: what the last line shows, where it shows something."""
    found = {}
    for name, spec in by_place(specs, "final").items():
        try:
            value = at(lines[-1], spec.place)
        except KeyError:
            continue
        if value is not None:
            found[name] = decoded(path, name, [value], spec, len(lines))[0, ...]
    return found


def _derived(
    specs: Mapping[str, Spec], lines: list[dict[str, Any]], values: Mapping[str, np.ndarray], labels: np.ndarray
) -> dict[str, np.ndarray]:
    """Return what the steps that are there tell of an episode: its length, its end."""
    flags = [flag for flag in (names.TERMINATED, names.TRUNCATED) if lines[-1].get(flag) is True]
    is_final = [name in values for name in by_place(specs, "final")]
    reason = flags[0] if flags else names.CUT
    is_complete = bool(values.get(names.START_SEEN, np.True_)) and reason != names.CUT
    return {
        names.LENGTH: np.array(labels[-1] + 1 if len(labels) else 0),
        names.END_REASON: np.array(reason),
        names.COMPLETE: np.array(is_complete),
        names.FINAL_KNOWN: np.array(bool(is_final) and all(is_final)),
    }
