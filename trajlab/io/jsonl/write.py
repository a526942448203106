"""A Dataset as files, one per episode."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.cells import Cells
from trajlab.dataset.flat_whole import read_flat
from trajlab.dataset.parts import iter_parts
from trajlab.dataset.schema import validate
from trajlab.io.jsonl.describe import ACTION, INFO, OBS, REWARD, SEED, by_place, describe
from trajlab.io.jsonl.files import NO_EPISODES, Mode, episode_file, new_file, prepare
from trajlab.io.jsonl.lines import sealed
from trajlab.io.jsonl.plain import Plain, attrs_as_json
from trajlab.io.jsonl.specs import FORMAT, Spec, as_entry
from trajlab.io.jsonl.template import Template
from trajlab.io.jsonl.text import dtype_text, encode, encode_rows, fragment
from trajlab.padding import padding_value
from trajlab.version import package_version

_NONE, _TRUE, _FALSE = b"null", b"true", b"false"


def write_jsonl(ds: xr.Dataset, path: Any, *, mode: Mode = "create") -> None:
    """Write a Dataset as JSON Lines: a directory with one file per episode, a line per step.

    Files are called ``episode_00000.jsonl`` by the episode's number. The first line is what a reset showed, and says
    what the fields are; each further line is a step: ``t`` (from 1), ``action``, ``obs`` (what the step led to),
    ``reward``, ``terminated``, ``truncated``, ``info``, and everything else that was recorded. All of it is strict
    JSON at full precision.

    Parameters
    ----------
    ds : Dataset
        Dims ``episode`` and ``time``. Read a part at a time.
    path : str or Path
        A directory, made if it is not there.
    mode : {"create", "append", "replace"}
        What becomes of episodes that are there already: ``"create"`` refuses, ``"append"`` numbers the new ones
        behind them, ``"replace"`` deletes them first.

    Raises
    ------
    ValueError
        When `ds` is not valid, or `mode` is unknown.
    TypeError
        When a variable has a dtype that has no place in a file; it is named.
    FileExistsError
        When the directory holds episodes and the mode is ``"create"``, or `path` is a file.
    ImportError
        When orjson is not installed, which the extra `jsonl` brings.

    Notes
    -----
    What stands beyond an episode's end is not written; it comes back as the dtype's padding.

    Examples
    --------
    >>> import tempfile, numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([1, 0]), "reward": np.array([0.5, 1.0])}])
    >>> with tempfile.TemporaryDirectory() as path:
    ...     tl.write_jsonl(ds, path)
    ...     again = tl.read_jsonl(path)
    >>> again.identical(ds.load())
    True
    """
    validate(ds)
    writer = EpisodesAsLines(ds)
    directory, first = prepare(path, mode)
    writer.write(directory, first)


class EpisodesAsLines:
    """What is the same in all files of a Dataset, made once."""

    def __init__(self, ds: xr.Dataset) -> None:
        """Look at a valid Dataset's variables; nothing over `time` is read."""
        self._ds, self._specs = ds, describe(ds)
        per_step = by_place(self._specs, "step", "before")
        self._steps = [*per_step]
        self._before = [*by_place(per_step, "before")]
        self._final_of = {spec.place: name for name, spec in by_place(self._specs, "final").items()}
        self._episode = by_place(self._specs, "episode")
        places = [spec.place for spec in per_step.values()]
        own_flags = [(flag,) for flag in (names.TERMINATED, names.TRUNCATED) if (flag,) not in places]
        self._flags = [flag for (flag,) in own_flags]
        plain = dict.fromkeys((ACTION, OBS, REWARD)) | dict.fromkeys((names.TERMINATED, names.TRUNCATED), False)
        self._step = Template({"event": "step", "t": None} | plain | {INFO: {}}, [("t",), *own_flags, *places])
        shown = [(names.EPISODE,), *(self._specs[name].place for name in self._before)]
        self._reset = Template(
            {
                "event": "reset",
                "episode": None,
                OBS: None,
                INFO: {},
                names.ENV: None,
                SEED: None,
                **_header(ds, self._specs),
            },
            [*shown, (SEED,), *(spec.place for spec in self._episode.values())],
        )

    def write(self, directory: Path, first: int) -> None:
        """Write the file of each episode; numbers count from `first`."""
        for _, part in iter_parts(self._ds):
            self._write_part(part, directory, first)
        if not self._ds.sizes[names.EPISODE]:
            nulls = [_NONE] * (2 + len(self._before) + len(self._episode))
            (directory / NO_EPISODES).write_bytes(sealed(self._reset(nulls)))

    def _write_part(self, part: xr.Dataset, directory: Path, first: int) -> None:
        cells = Cells.of(part)
        rows = {name: encode_rows(values) for name, values in read_flat(part, self._steps).items()}
        values = [self._per_episode(part, name) for name in self._episode]
        finals = {place: self._per_episode(part, name) for place, name in self._final_of.items()}
        known, reason = part[names.FINAL_KNOWN].values, part[names.END_REASON].values
        length = part[names.LENGTH].values
        for e, number in enumerate((part[names.EPISODE].values + first).tolist()):
            here = slice(int(cells.offsets[e]), int(cells.offsets[e + 1]))
            own = {name: texts[here] for name, texts in rows.items()}
            shown = [own[name][0] if own[name] else _NONE for name in self._before]
            head = [b"%d" % number, *shown, self._seed(own, values, e), *(texts[e] for texts in values)]
            for name in self._before:
                last = finals.get(self._specs[name].place) if known[e] else None
                own[name] = [*own[name][1:], last[e] if last is not None else _NONE][: len(own[name])]
            labels = cells.labels[: here.stop - here.start]
            is_last = labels == length[e] - 1
            columns = [[b"%d" % t for t in (labels + 1).tolist()]]
            columns += [_flag_texts(flag, str(reason[e]), is_last) for flag in self._flags]
            columns += [own[name] for name in self._steps]
            text = sealed(self._reset(head)) + b"".join(sealed(self._step(row)) for row in zip(*columns, strict=True))
            with open(new_file(episode_file(directory, number)), "wb") as file:
                file.write(text)

    def _per_episode(self, part: xr.Dataset, name: str) -> list[bytes]:
        variable = part.variables[name]
        return encode_rows(np.moveaxis(variable.values, variable.dims.index(names.EPISODE), 0))

    def _seed(self, own: Mapping[str, list[bytes]], values: list[list[bytes]], e: int) -> bytes:
        """Return the seed of an episode, as the file shows it to readers that know no variables."""
        spec = self._specs.get(SEED)
        if spec is None or spec.dtype.kind not in "iu" or spec.shape or spec.stands not in ("step", "episode"):
            return _NONE
        text = own[SEED][:1] if spec.stands == "step" else [values[list(self._episode).index(SEED)][e]]
        return text[0] if text and text[0] != b"%d" % padding_value(spec.dtype) else _NONE


def _flag_texts(flag: str, reason: str, is_last: np.ndarray) -> list[bytes]:
    """Return a flag as the end reason has it: null on the last step where that does not tell."""
    ended = _TRUE if reason == flag else _NONE if reason == names.DONE else _FALSE
    return [ended if last else _FALSE for last in is_last.tolist()]


def _header(ds: xr.Dataset, specs: Mapping[str, Spec]) -> dict[str, Any]:
    """Return what the first line says of all episodes alike."""
    plain = Plain()
    entries = {name: spec_as_json(spec, plain) for name, spec in specs.items()}
    for name in by_place(specs, "shared"):
        entries[name]["values"] = fragment(encode(ds.variables[name].values))
    return {
        "schema": FORMAT,
        "version": package_version(),
        "attrs": attrs_as_json(ds.attrs, plain),
        "time": _labels_as_json(ds.variables[names.TIME].values),
        "variables": entries,
    }


def spec_as_json(spec: Spec, plain: Plain) -> dict[str, Any]:
    """Return a spec as `dumps` takes it."""
    return as_entry(spec) | {"dtype": dtype_text(spec.dtype), "attrs": attrs_as_json(spec.attrs, plain)}


def _labels_as_json(labels: np.ndarray) -> Any:
    """Return labels as their beginning, end and step where these tell them all, else as a list."""
    steps = np.diff(labels)
    if len(labels) and (len(steps) == 0 or (steps[0] > 0 and (steps == steps[0]).all())):
        step = int(steps[0]) if len(steps) else 1
        return {"start": int(labels[0]), "stop": int(labels[-1]) + 1, "step": step}
    return labels.tolist()
