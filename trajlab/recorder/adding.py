"""Gathering a step whose fields come one by one, each for all environments or for some."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from trajlab.capture.convention import FLAG_SLOTS, Convention
from trajlab.capture.devices import check_not_deleted
from trajlab.capture.envs import env_columns
from trajlab.capture.tree import under
from trajlab.errors import did_you_mean
from trajlab.recorder.calls import as_array
from trajlab.recorder.values import Template, assembled, owned_leaves

Write = Callable[[Mapping[str, Any], Any, int | None], None]
"""Records a step, given its arrays by name, the environments as `Recorder.record_step` takes them, the iteration."""


class Piece(NamedTuple):
    """What one call added of a field.

    Attributes
    ----------
    value : array (N, ...) or (k, ...)
    envs : array (k,) int64 or None
        The environments that it is of; None for all.
    places : array (k,) int64 or None
        Where in `value` each of them stands; None where `value` has just these, in order.
    is_whole : bool
        Whether `value` has an entry for each environment.
    """

    value: Any
    envs: np.ndarray | None
    places: np.ndarray | None
    is_whole: bool

    def without(self, envs: np.ndarray) -> "Piece | None":
        """Return the piece without some environments, None where nothing is left."""
        own = np.arange(len(self.value)) if self.envs is None else self.envs
        places = np.arange(len(own)) if self.places is None else self.places
        left = ~np.isin(own, envs)
        return self._replace(envs=own[left], places=places[left]) if left.any() else None

    def has_all(self, envs: np.ndarray | None) -> bool:
        """Say whether the piece is of all these environments."""
        return self.envs is None or (envs is not None and bool(np.isin(envs, self.envs).all()))

    def of(self, envs: np.ndarray | None) -> bool:
        """Say whether the piece is of some of these environments."""
        return self.envs is None or envs is None or bool(np.isin(self.envs, envs).any())


class Gathered(NamedTuple):
    """The step that is being gathered; replaced as a whole."""

    pieces: Mapping[str, tuple[Piece, ...]]
    iteration: int | None


class Adding:
    """Gathers what is added until an environment's step is complete, and lets it be recorded then.

    Complete is a step that has every field of the first one, or of which a field comes for the second time.
    """

    def __init__(self, convention: Convention) -> None:
        """Start with nothing."""
        self._gathered = Gathered({}, None)
        self._templates: dict[str, Template] = {}
        self._is_fixed = False
        self._flags = [path for slot in FLAG_SLOTS for path in convention.sources(slot) if isinstance(path, str)]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is gathered."""
        return not self._gathered.pieces

    def _num_envs(self, value: Any, envs: Any) -> int:
        """Return the number of environments, which no step has said yet: that of what was added before, or is now."""
        for template in self._templates.values():
            return template.num_envs
        if getattr(envs, "dtype", None) == np.dtype(bool):
            return len(envs)
        shape = getattr(next(iter(jax.tree.leaves(value)), None), "shape", ())
        if envs is None:
            return int(shape[0]) if shape else 1
        raise ValueError(
            "the first call adds a field of only some environments, so their number is not known yet; "
            "give it: Recorder(num_envs=...)"
        )

    def add(
        self,
        field: Any,
        value: Any,
        envs: Any,
        *,
        num_envs: int | None,
        iteration: int | None,
        write: Write,
    ) -> None:
        """Add a field, or a tree of them, of all or some environments; record with `write` what is complete.

        Raises what `Recorder.add` raises; then nothing is added.
        """
        is_whole = False
        if num_envs is None:
            num_envs = self._num_envs(value, as_array(envs))
        if envs is not None:
            envs = as_array(envs)
            is_whole = getattr(envs, "dtype", None) == np.dtype(bool)
            envs = env_columns(envs, num_envs, "envs")
        template = self._templates.get(field)
        if envs is None and template is not None and template.is_like(value):
            values = {field: value}
        else:
            values = owned_leaves(field, value)
            for name, leaf in values.items():
                self._check(name, leaf, num_envs if envs is None or is_whole else len(envs), envs, num_envs)
        if not (iteration is None or self._gathered.iteration in (None, iteration)):
            self.write_out(None, write)
        if again := [one for name in values for one in self._gathered.pieces.get(name, ()) if one.of(envs)]:
            self.write_out(_common(again, envs), write)
        for name, leaf in values.items():
            if name not in self._templates:
                self._templates[name] = Template.of(leaf, num_envs, is_flag=self._is_flag(name))
        if envs is not None and not len(envs):
            return
        pieces, before = dict(self._gathered.pieces), self._gathered.iteration
        for name, leaf in values.items():
            piece = Piece(leaf, envs, envs if is_whole else None, is_whole or envs is None)
            pieces[name] = (*pieces.get(name, ()), piece)
        self._gathered = Gathered(pieces, before if iteration is None else iteration)
        if self._is_fixed and len(pieces) == len(self._templates) and _are_complete(pieces, envs):
            self.write_out(envs, write)

    def _is_flag(self, name: str) -> bool:
        return any(under(path, [name]) for path in self._flags)

    def _check(self, name: str, leaf: Any, count: int, envs: np.ndarray | None, num_envs: int) -> None:
        """Raise ValueError where an array does not fit what has been added before, or its environments."""
        template = self._templates.get(name)
        if template is None and self._is_fixed:
            raise ValueError(
                f"not in the first step: {name!r}.{did_you_mean(name, self._templates)} Every step holds the fields "
                f"of the first one: {', '.join(map(repr, self._templates))}"
            )
        if not leaf.ndim or len(leaf) != count:
            of = f"all {count} environments; give those of some with envs=" if count == num_envs else "those of envs="
            raise ValueError(f"field {name!r} has shape {tuple(leaf.shape)}; expected {count} entries, of {of}")
        if template is not None:
            template.check(name, leaf)

    def write_out(self, envs: np.ndarray | None, write: Write) -> None:
        """Record what is gathered of some environments, or of all; what is refused is dropped."""
        gathered = self._gathered
        if self._is_all(gathered.pieces, envs):
            self._write({name: own[0].value for name, own in gathered.pieces.items()}, None, {}, write)
            return
        pieces = {name: [piece for piece in own if piece.of(envs)] for name, own in gathered.pieces.items()}
        if not any(pieces.values()):
            return
        own = [piece.envs for found in pieces.values() for piece in found]
        whole = envs is None and any(one is None for one in own)
        if not whole:
            there = [one if one is not None else envs for one in own]
            chosen = np.unique(np.concatenate([one for one in there if one is not None]))
            envs = chosen if envs is None else chosen[np.isin(chosen, envs)]
        left: dict[str, tuple[Piece, ...]] = {}
        if not whole and envs is not None:
            for name, parts in gathered.pieces.items():
                kept = tuple(part for piece in parts if (part := piece.without(envs)) is not None)
                left |= {name: kept} if kept else {}
        step, which = self._step(pieces, None if whole else envs)
        self._write(step, which, left, write)

    def _is_all(self, pieces: Mapping[str, tuple[Piece, ...]], envs: np.ndarray | None) -> bool:
        """Say whether every field is there, in one piece for all environments, and all are asked for."""
        return (
            envs is None
            and len(pieces) == len(self._templates) > 0
            and all(len(own) == 1 and own[0].envs is None for own in pieces.values())
        )

    def _write(self, step: Mapping[str, Any], envs: Any, left: Mapping[str, tuple[Piece, ...]], write: Write) -> None:
        """Record a step, and gather on with what is left."""
        iteration = self._gathered.iteration
        # Left out before it is recorded: an interrupt, or a refusal, loses it, and nothing is recorded twice.
        self._gathered = Gathered(left, iteration if left else None)
        try:
            write(step, envs, iteration)
            self._is_fixed = True
        finally:
            if not (self._is_fixed or left):
                self._templates.clear()

    def _step(self, pieces: Mapping[str, list[Piece]], envs: np.ndarray | None) -> tuple[dict[str, Any], Any]:
        """Return the arrays of a step by name, and the environments, as `Recorder.record_step` takes them."""
        single = {name: found[0] for name, found in pieces.items() if len(found) == 1}
        if envs is not None and len(single) == len(self._templates):
            first = next(iter(single.values())).envs
            is_alike = all(one.places is None and _is_same(one.envs, first) for one in single.values())
            if is_alike and first is not None and len(first) == len(envs):
                return {name: piece.value for name, piece in single.items()}, first
        step = {name: self._values(name, pieces.get(name, []), envs) for name in self._templates}
        if envs is None:
            return step, None
        mask = np.zeros(next(iter(self._templates.values())).num_envs, bool)
        mask[envs] = True
        return step, mask

    def _values(self, name: str, pieces: list[Piece], envs: np.ndarray | None) -> Any:
        """Return the values (N, ...) of a field, with what is missing of the environments as padding."""
        if len(pieces) == 1 and pieces[0].is_whole and pieces[0].has_all(envs):
            return pieces[0].value
        for piece in pieces:
            check_not_deleted({name: piece.value})
        return assembled(self._templates[name], [(piece.value, piece.envs, piece.places) for piece in pieces])


def _are_complete(pieces: Mapping[str, tuple[Piece, ...]], envs: np.ndarray | None) -> bool:
    """Say whether every field has come for just these environments."""
    return all(any(_is_same(one.envs, envs) for one in own) for own in pieces.values())


def _common(pieces: list[Piece], envs: np.ndarray | None) -> np.ndarray | None:
    """Return the environments that some of the pieces and `envs` have in common."""
    if any(piece.envs is None for piece in pieces):
        return envs
    own = np.unique(np.concatenate([piece.envs for piece in pieces]))
    return own if envs is None else own[np.isin(own, envs)]


def _is_same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Say whether two choices of environments are the same in the same order."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)
