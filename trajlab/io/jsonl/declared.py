"""What files say of variables that are met as they come: dtypes may widen, and infos join, while files are open."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from trajlab import names
from trajlab.dataset.padding_attrs import about_padding
from trajlab.io.jsonl.describe import INFO, SEED, VALUES
from trajlab.io.jsonl.plain import Found, Plain
from trajlab.io.jsonl.specs import Place, Spec, Stands
from trajlab.io.jsonl.text import dumps, fragment
from trajlab.io.jsonl.write import spec_as_json

OPTIONS = "options"
_INT, _BOOL, _TEXT = np.dtype(np.int64), np.dtype(bool), np.dtype("<U10")
_COORDS: dict[str, tuple[np.dtype, dict[str, Any]]] = {
    names.LENGTH: (_INT, {"long_name": "episode length", "units": "steps"}),
    names.ENV: (_INT, {"long_name": "environment"}),
    names.START_ROW: (_INT, {"long_name": "first row"}),
    names.START_ITERATION: (_INT, {"long_name": "iteration at start"}),
    names.END_REASON: (_TEXT, {"long_name": "end reason"}),
    names.COMPLETE: (_BOOL, {}),
    names.START_SEEN: (_BOOL, {}),
    names.FINAL_KNOWN: (_BOOL, {}),
}
_CELLS = (names.EPISODE, names.TIME)


class Declared:
    """The specs of the files that one writer has open.

    Attributes
    ----------
    plain : Plain
    version : int
        How often a spec was given; a file that knows fewer needs those given since.
    """

    def __init__(self) -> None:
        """Begin with what every Dataset has."""
        self.plain, self.version = Plain(), 0
        self._specs: dict[str, Spec] = {}
        self._given: list[str] = []
        self._text: tuple[int, bytes] = (-1, b"")
        self._put(names.EPISODE, Spec((names.EPISODE,), (), _INT, {"long_name": "episode"}, True, "index"))
        about = {"long_name": "time", "units": "steps"}
        self._put(names.TIME, Spec((names.TIME,), (), _INT, about, True, "index"))
        self._put(names.MASK, Spec(_CELLS, (), _BOOL, {}, True, "index"))
        for name, (dtype, attrs) in _COORDS.items():
            place = (name,) if name == names.ENV else (VALUES, name)
            self._put(name, Spec((names.EPISODE,), (), dtype, attrs, True, "episode", place))
        self.declare(names.ITERATION, "step", (names.ITERATION,), (), _INT)
        self._of_episode("seed", (SEED,), np.zeros((), np.int64))

    def declare(
        self,
        name: str,
        stands: Stands,
        place: Place,
        cell: tuple[int, ...],
        dtype: np.dtype,
        attrs: Mapping[str, Any] | None = None,
        *,
        dims: tuple[str, ...] | None = None,
        is_optional: bool = False,
    ) -> None:
        """Give the spec of a variable."""
        own = tuple(f"{name}_dim_{axis}" for axis in range(len(cell))) if dims is None else dims
        leading = _CELLS if stands in ("step", "before") else _CELLS[:1]
        about = {**about_padding(dtype), "long_name": name}
        self._put(
            name, Spec((*leading, *own), cell, dtype, about | dict(attrs or {}), False, stands, place, is_optional)
        )

    def flags(self) -> None:
        """Give the specs of what each step's line says of an end."""
        for flag in (names.TERMINATED, names.TRUNCATED):
            self.declare(flag, "step", (flag,), (), _BOOL, {names.ROLE_ATTR: flag})

    def _of_episode(self, name: str, place: Place, array: np.ndarray) -> None:
        about = {names.ROLE_ATTR: names.EPISODE_FIELD_ROLE}
        self.declare(name, "episode", place, array.shape, array.dtype, about, is_optional=True)

    def _put(self, name: str, spec: Spec) -> None:
        self._specs[name] = spec
        self._given.append(name)
        self.version = len(self._given)

    def entries(self, since: int = 0) -> Any:
        """Return the specs given since a version, as `dumps` takes them."""
        if since:
            return {name: spec_as_json(self._specs[name], self.plain) for name in dict.fromkeys(self._given[since:])}
        if self._text[0] != self.version:
            everything = {name: spec_as_json(spec, self.plain) for name, spec in self._specs.items()}
            self._text = (self.version, dumps(everything))
        return fragment(self._text[1])

    def info(self, info: Mapping[str, Any]) -> Any:
        """Return the infos of a step as `dumps` takes them; numbers and arrays of them become variables."""
        found: Found = []
        shown = self.plain(info, found)
        for keys, array in found:
            self._meet(".".join((INFO, *keys)), (INFO, *keys), array)
        return shown

    def options(self, options: Mapping[str, Any]) -> Any:
        """Return the options of a reset as `dumps` takes them; numbers in them become values of an episode."""
        found: Found = []
        shown = self.plain(options, found)
        for keys, array in found:
            name = ".".join(("option", *keys))
            if name not in self._specs:
                self._of_episode(name, (OPTIONS, *keys), array)
        return shown

    def _meet(self, name: str, place: Place, array: np.ndarray) -> None:
        """Declare a value that is met for the first time, or in a wider dtype; others stay in their lines."""
        spec = self._specs.get(name)
        if spec is None:
            self.declare(name, "step", place, array.shape, array.dtype, is_optional=True)
        elif array.dtype != spec.dtype and array.shape == spec.shape and array.dtype.kind != "b" != spec.dtype.kind:
            wide = np.promote_types(spec.dtype, array.dtype)
            if wide != spec.dtype:
                self.declare(name, "step", place, spec.shape, wide, is_optional=True)
