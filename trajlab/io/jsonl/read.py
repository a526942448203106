"""Files as a Dataset: the episodes that they hold, in the order of their numbers."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.build import empty_dataset
from trajlab.dataset.flat_array import FlatInMemory
from trajlab.dataset.lazy import lazy_variable
from trajlab.dataset.padding_attrs import about_padding
from trajlab.dataset.source import MaskArray
from trajlab.errors import warn_user
from trajlab.io.jsonl.files import NO_EPISODES, as_path, episode_files
from trajlab.io.jsonl.merge import Merged, merge, missing_value
from trajlab.io.jsonl.parse import Parsed, parse_file
from trajlab.io.jsonl.plain import attrs_of_json
from trajlab.io.jsonl.specs import Spec


def read_jsonl(path: Any) -> xr.Dataset:
    """Read the episodes that `write_jsonl`, a `JsonlWriter` or a wrapper wrote.

    Parameters
    ----------
    path : str or Path
        The directory, or the file of a single episode. It may still be written to.

    Returns
    -------
    Dataset
        Equal to the one that was written, dtypes and attributes included, its episodes in the order of their numbers.
        The rows are in memory, and the padding is made when a field is read. An empty directory gives an empty Dataset,
        with a warning.

    Raises
    ------
    ValueError
        When a line other than the last of a file is broken, or the files do not fit together: it names file and line.
    FileNotFoundError
        When there is no such directory or file.
    ImportError
        When orjson is not installed, which the extra `jsonl` brings.

    Warns
    -----
    UserWarning
        Where the last line of a file is torn, which is left out, or the first one, whose file is. An episode whose
        end is not there is ``"cut"`` behind the steps that are.

    Notes
    -----
    Nothing in a file is run, and it is believed only as far as its lines agree with what it says of itself.

    Files that say nothing of their fields are read, too, as older wrappers write them: a first line of `event`,
    `episode` and `obs`, and steps of `event`, `t`, `action`, `obs`, `reward`, `terminated`, `truncated` and perhaps
    `info`. Their numbers become int64, float64 or bool, and episodes stand behind each other. Of a directory files by
    the names that `write_jsonl` gives are read, and no others.
    """
    path = as_path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}; expected a directory of episodes, or the file of one")
    files = episode_files(path) if path.is_dir() else [path]
    episodes = [episode for file in files if (episode := parse_file(file)) is not None and _is_any(episode)]
    if not episodes:
        return _without_episodes(path)
    return _dataset(merge(_with_first_rows(episodes)))


def _is_any(episode: Parsed) -> bool:
    """Say whether a file holds an episode: a step, or none where its steps were sliced away before it was written."""
    return episode.number >= 0 and (episode.count > 0 or episode.is_whole)


def _with_first_rows(episodes: list[Parsed]) -> list[Parsed]:
    """Return episodes with their first rows: one whose file tells none follows the one before, behind a reset row."""
    found, row = [], 0
    for one in episodes:
        if names.START_ROW not in one.values:
            one = dataclasses.replace(one, values={**one.values, names.START_ROW: np.array(row + 1)})
        row = int(one.values[names.START_ROW]) + one.count
        found.append(one)
    return found


def _without_episodes(path: Path) -> xr.Dataset:
    where = " in files called episode_00000.jsonl and so on" if path.is_dir() else ""
    warn_user(f"no episode: {path} holds none{where}")
    header = parse_file(path / NO_EPISODES) if (path / NO_EPISODES).is_file() else None
    return empty_dataset() if header is None else _dataset(merge([header])).isel({names.EPISODE: slice(0, 0)})


# From what was merged -------------------------------------------------------------------------------------------------


def _dataset(merged: Merged) -> xr.Dataset:
    variables: dict[str, xr.Variable] = {}
    for name, spec in merged.specs.items():
        attrs = attrs_of_json(spec.attrs)
        match spec.stands:
            case "index":
                variables[name] = _index(name, merged, attrs)
            case "shared":
                variables[name] = xr.Variable(spec.dims, spec.shared(), attrs)
            case "step" | "before":
                variables |= _per_step(name, spec, merged, attrs)
            case "final" | "episode":
                variables[name] = _per_episode(name, spec, merged, attrs)
    coords = {name: variables.pop(name) for name, spec in merged.specs.items() if spec.is_coord}
    return xr.Dataset(variables, coords, attrs_of_json(merged.attrs))


def _index(name: str, merged: Merged, attrs: dict[str, Any]) -> xr.Variable:
    if name == names.EPISODE:
        return xr.Variable(names.EPISODE, np.array([one.number for one in merged.episodes], np.int64), attrs)
    if name == names.TIME:
        return xr.Variable(names.TIME, merged.labels, attrs)
    length = np.array([int(one.values[names.LENGTH]) for one in merged.episodes], np.int64)
    if merged.is_from_zero:
        return lazy_variable((names.EPISODE, names.TIME), MaskArray(length, len(merged.labels)), attrs)
    return xr.Variable((names.EPISODE, names.TIME), merged.labels < length[:, np.newaxis], attrs)


def _per_step(name: str, spec: Spec, merged: Merged, attrs: dict[str, Any]) -> dict[str, xr.Variable]:
    """Return a variable over episode and time; beside an optional bool the mask `_name` of where it has a value."""
    values = merged.rows(name)
    out = {name: _spread(values, spec.dims, merged, attrs)}
    if spec.is_optional and spec.dtype == np.bool_:
        parent, dot, last = name.rpartition(".")
        mask = f"{parent}{dot}_{last}"
        about = {**about_padding(np.dtype(bool)), "long_name": mask}
        out[mask] = _spread(~merged.missing(name), spec.dims[:2], merged, about)
    return out


def _spread(values: np.ndarray, dims: Sequence[str], merged: Merged, attrs: dict[str, Any]) -> xr.Variable:
    """Return rows (M, ...) as a variable over episode and time."""
    if values.dtype.kind not in "OT":
        return lazy_variable(dims, FlatInMemory(values, merged.counts, merged.ranks), attrs)
    out = np.full((len(merged.counts), len(merged.ranks), *values.shape[1:]), missing_value(values.dtype), values.dtype)
    out[merged.ranks < merged.counts[:, np.newaxis]] = values  # objects are few, and no lazy array holds them
    return xr.Variable(dims, out, attrs)


def _per_episode(name: str, spec: Spec, merged: Merged, attrs: dict[str, Any]) -> xr.Variable:
    axis = spec.dims.index(names.EPISODE)
    return xr.Variable(spec.dims, np.moveaxis(merged.per_episode(name), 0, axis), attrs)
