"""Gathering a step whose fields come one by one, each for all environments or for some."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from trajlab.capture.convention import FLAG_SLOTS, Convention
from trajlab.capture.devices import check_not_deleted
from trajlab.capture.envs import env_columns
from trajlab.capture.tree import under
from trajlab.errors import did_you_mean
from trajlab.recorder.calls import as_array
from trajlab.recorder.pieces import Piece, are_complete, common, is_same
from trajlab.recorder.values import Like, Template, assembled, owned_leaves

Write = Callable[[Mapping[str, Any], Any, int | None], Any]
"""Records a step, given its arrays by name, the environments as `Recorder.record_step` takes them, the iteration.

Returns the arrays' signature, where another step of arrays just like these may be recorded by it.
"""

Rooms = Callable[[], Mapping[str, np.ndarray]]
"""Finds the memory of the next row, by field."""


class Gathered(NamedTuple):
    """The step that is being gathered; replaced as a whole, but for `whole`, to which fields are added one at a time.

    Attributes
    ----------
    whole : dict of str to array (N, ...)
        Fields of all environments, just like those of the last step of these; as long as there are no others.
    pieces : mapping of str to tuple of Piece
        Else everything.
    iteration : int or None
    rooms : mapping of str to NumPy array (N, ...)
        Where NumPy values of `whole` go: the next row of the log, as long as nothing else is written there.
    """

    whole: dict[str, Any]
    pieces: Mapping[str, tuple[Piece, ...]]
    iteration: int | None
    rooms: Mapping[str, np.ndarray] = MappingProxyType({})


_NOTHING = Gathered({}, {}, None)


class Known(NamedTuple):
    """What the arrays of a step of all environments were, by name, and the signature that recording them gave."""

    likes: Mapping[str, Like]
    signature: Any


class Adding:
    """Gathers what is added until an environment's step is complete, and lets it be recorded then.

    Complete is a step that has every field of the first one, or of which a field comes for the second time.
    """

    def __init__(self, convention: Convention) -> None:
        """Start with nothing."""
        self._gathered = _NOTHING
        self._templates: dict[str, Template] = {}
        self._is_fixed = False
        self._known = Known({}, None)
        self._flags = [path for slot in FLAG_SLOTS for path in convention.sources(slot) if isinstance(path, str)]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is gathered."""
        return not (self._gathered.whole or self._gathered.pieces)

    @property
    def is_complete(self) -> bool:
        """Whether a step of all environments waits that has every field of the first one."""
        return 0 < len(self._gathered.whole) == len(self._templates)

    def put(self, field: Any, value: Any, iteration: int | None, find_rooms: Rooms) -> bool:
        """Add a field of all environments to a step of such; say whether it was added.

        It is left to `add` where there is more to be looked at: no first step yet, a step of some environments under
        way, another iteration, an array unlike that of the last step.
        """
        whole, pieces, own, rooms = self._gathered
        like = self._known.likes.get(field) if isinstance(field, str) else None
        if like is None or pieces or field in whole or not like.fits(value):
            return False
        if not (iteration is None or own is None or iteration == own):
            return False
        rooms = rooms if whole else find_rooms()
        if not like.on_device:
            value = _copied(value, rooms.get(field))
        if whole and iteration in (None, own):
            whole[field] = value
        else:
            self._gathered = Gathered({**whole, field: value}, {}, own if iteration is None else iteration, rooms)
        return True

    def taken(self) -> tuple[dict[str, Any], int | None, Any]:
        """Return the step that is complete, its iteration, and its signature; it is no longer gathered."""
        gathered, self._gathered = self._gathered, _NOTHING
        return gathered.whole, gathered.iteration, self._known.signature

    def _as_pieces(self) -> None:
        """Let fields that are to be told apart by environments be pieces, none of which lies in the log."""
        whole, _, iteration, rooms = self._gathered
        if whole:
            own = {name: np.array(value) if value is rooms.get(name) else value for name, value in whole.items()}
            pieces = {name: (Piece(value, None, None, True),) for name, value in own.items()}
            self._gathered = Gathered({}, pieces, iteration)

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
        values = owned_leaves(field, value)
        for name, leaf in values.items():
            self._check(name, leaf, num_envs if envs is None or is_whole else len(envs), num_envs)
        if not (iteration is None or self._gathered.iteration in (None, iteration)):
            self.write_out(None, write)
        if not self._are_known(values, envs) or any(name in self._gathered.whole for name in values):
            self._as_pieces()
        if again := [one for name in values for one in self._gathered.pieces.get(name, ()) if one.of(envs)]:
            self.write_out(common(again, envs), write)
        for name, leaf in values.items():
            if name not in self._templates:
                self._templates[name] = Template.of(leaf, num_envs, is_flag=self._is_flag(name))
        if envs is None or len(envs):
            self._gather(values, envs, iteration, is_whole=is_whole)
            pieces = self._gathered.pieces
            if self._is_fixed and len(pieces) == len(self._templates) and are_complete(pieces, envs):
                self.write_out(envs, write)

    def _gather(
        self, values: Mapping[str, Any], envs: np.ndarray | None, iteration: int | None, *, is_whole: bool
    ) -> None:
        """Keep arrays of all or some environments for the step that is gathered; `is_whole` if of all nevertheless."""
        whole, given, before, rooms = self._gathered
        iteration = before if iteration is None else iteration
        if not given and self._are_known(values, envs):
            self._gathered = Gathered({**whole, **values}, given, iteration, rooms)
            return
        pieces = dict(given)
        for name, leaf in values.items():
            piece = Piece(leaf, envs, envs if is_whole else None, is_whole or envs is None)
            pieces[name] = (*pieces.get(name, ()), piece)
        self._gathered = Gathered({}, pieces, iteration)

    def _are_known(self, values: Mapping[str, Any], envs: np.ndarray | None) -> bool:
        """Say whether values are of all environments, and just like those of the last step of these."""
        likes = self._known.likes
        return envs is None and all(name in likes and likes[name].fits(leaf) for name, leaf in values.items())

    def _is_flag(self, name: str) -> bool:
        return any(under(path, [name]) for path in self._flags)

    def _check(self, name: str, leaf: Any, count: int, num_envs: int) -> None:
        """Raise ValueError where an array does not fit what has been added before, or its `count` environments."""
        template = self._templates.get(name)
        if template is None and self._is_fixed:
            raise ValueError(
                f"not in the first step: {name!r}.{did_you_mean(name, self._templates)} Every step holds the fields "
                f"of the first one: {', '.join(map(repr, self._templates))}; add there, with envs=[], what no "
                "environment has yet"
            )
        if not leaf.ndim or len(leaf) != count:
            of = f"all {count} environments; give those of some with envs=" if count == num_envs else "those of envs="
            raise ValueError(f"field {name!r} has shape {tuple(leaf.shape)}; expected {count} entries, of {of}")
        if template is not None:
            template.check(name, leaf)

    def write_out(self, envs: np.ndarray | None, write: Write) -> None:
        """Record what is gathered of some environments, or of all; what is refused is dropped."""
        self._as_pieces()
        gathered = self._gathered
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
        self._write(pieces, None if whole else envs, left, write)

    def _write(
        self,
        pieces: Mapping[str, list[Piece]],
        envs: np.ndarray | None,
        left: Mapping[str, tuple[Piece, ...]],
        write: Write,
    ) -> None:
        """Record a step put together from pieces, and gather on with what is left."""
        iteration = self._gathered.iteration
        # Left out before it is put together: an interrupt, or a refusal, loses it, and nothing is recorded twice.
        self._gathered = Gathered({}, left, iteration if left else None)
        try:
            step, which = self._step(pieces, envs)
            signature = write(step, which, iteration)
            self._is_fixed = True
            if which is None:
                self._known = Known({name: Like.of(value) for name, value in step.items()}, signature)
        finally:
            if not (self._is_fixed or left):
                self._templates.clear()

    def _step(self, pieces: Mapping[str, list[Piece]], envs: np.ndarray | None) -> tuple[dict[str, Any], Any]:
        """Return the arrays of a step by name, and the environments, as `Recorder.record_step` takes them."""
        single = {name: found[0] for name, found in pieces.items() if len(found) == 1}
        if envs is not None and len(single) == len(self._templates):
            first = next(iter(single.values())).envs
            is_alike = all(one.places is None and is_same(one.envs, first) for one in single.values())
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
        return assembled(self._templates[name], pieces)


def _copied(value: np.ndarray, room: np.ndarray | None) -> np.ndarray:
    """Return a copy of an array, in memory that is there for it where there is some."""
    if room is None:
        return np.array(value)
    room[...] = value
    return room
