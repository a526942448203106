"""What calls have added of a field, each of all environments or of some."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


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


def are_complete(pieces: Mapping[str, tuple[Piece, ...]], envs: np.ndarray | None) -> bool:
    """Say whether every field has come for just these environments."""
    return all(any(is_same(one.envs, envs) for one in own) for own in pieces.values())


def common(pieces: list[Piece], envs: np.ndarray | None) -> np.ndarray | None:
    """Return the environments that some of the pieces and `envs` have in common."""
    if any(piece.envs is None for piece in pieces):
        return envs
    own = np.unique(np.concatenate([piece.envs for piece in pieces]))
    return own if envs is None else own[np.isin(own, envs)]


def is_same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Say whether two choices of environments are the same in the same order."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)
