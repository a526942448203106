"""Seeds and options: what a reset was given holds for the episode that begins with it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from trajlab.errors import warn_user
from trajlab.integrations.gymnasium.infos import KINDS, as_array, named_single

NO_SEED = int(np.iinfo(np.int64).min)
"""The seed of an episode that was given none."""


class Held:
    """The seed and the options of each environment's episode under way.

    Attributes
    ----------
    seeds : array (N,) int64
    options : dict of str to array (N, ...)
        By dotted name, each with its mask (N,) under `_name`, as a vector environment's infos have it.
    """

    def __init__(self, num_envs: int) -> None:
        """Hold nothing."""
        self.seeds = np.full(num_envs, NO_SEED)
        self.options: dict[str, np.ndarray] = {}
        self._is_empty = True

    def set(self, where: np.ndarray, seed: Any, options: Mapping[str, Any]) -> None:
        """Hold what a reset of the environments `where` (N,) bool was given."""
        self.drop(where)
        if seed is not None:
            self.seeds[where] = seeds_of(seed, len(where))[where]
        for name, value in named_single(options):
            array = as_array(value)
            self._set_option(name, np.array(None) if array is None else array, where)
        self._is_empty = self._is_empty and seed is None and not self.options

    def drop(self, where: np.ndarray) -> None:
        """Forget what these environments were given: another episode begins."""
        if self._is_empty or not where.any():
            return
        self.seeds[where] = NO_SEED
        for name in self.options:
            if name.startswith("_"):
                self.options[name][where] = False

    def _set_option(self, name: str, value: np.ndarray, where: np.ndarray) -> None:
        old = self.options.get(name)
        if old is None or old.shape[1:] != value.shape or {old.dtype.kind, value.dtype.kind} - set(KINDS):
            old = np.zeros((len(where), *value.shape), value.dtype)
            self.options[f"_{name}"] = np.zeros(len(where), bool)
        new = old.astype(np.promote_types(old.dtype, value.dtype))
        new[where] = value
        self.options[name] = new
        self.options[f"_{name}"][where] = True


def seeds_of(seed: Any, num_envs: int) -> np.ndarray:
    """Return the seed (N,) int64 of each environment, as Gymnasium spreads one: seed, seed + 1, ..."""
    each = [seed + i for i in range(num_envs)] if isinstance(seed, int | np.integer) else list(seed)
    if any(one is not None and int(one) > np.iinfo(np.int64).max for one in each):
        warn_user("a seed has more than 63 bits; it is given to the environment, but recorded as none")
        each = [None if one is None or int(one) > np.iinfo(np.int64).max else one for one in each]
    return np.array([NO_SEED if one is None else int(one) for one in each], np.int64)
