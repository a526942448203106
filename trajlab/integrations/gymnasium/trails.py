"""Environments to files: the fields that their spaces make, and the episode that each of them is in."""

import copy
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium import Space

from trajlab import names
from trajlab.integrations.gymnasium.spaces import Leaf, array_leaves, attrs_of
from trajlab.integrations.gymnasium.steps import Autoreset
from trajlab.io.jsonl.declared import Declared
from trajlab.io.jsonl.files import prepare
from trajlab.io.jsonl.leaves import Tree, TypedLeaf, tree_of
from trajlab.io.jsonl.live import Trail
from trajlab.io.jsonl.open_files import OpenFiles
from trajlab.recorder.calls import as_iteration

IMMUTABLE = (int, float, bool, str, np.generic)
"""Types of values that no environment can change behind one's back."""


class Writing:
    """What wrappers do that write episodes, in every autoreset mode: which of them each environment is in.

    A wrapper counts the rows: one for each step, and for resets.
    """

    def _open(
        self, path: Any, mode: Any, observation: Space, action: Space, *, num_envs: int, autoreset: Autoreset
    ) -> None:
        """Write the episodes of environments with these spaces into a directory."""
        self._files = OpenFiles(*prepare(path, mode))
        weakref.finalize(self, self._files.close)
        self._autoreset, self._iteration = autoreset, 0
        declared = Declared()
        obs, taken = (_tree(declared, space, root) for space, root in ((observation, "obs"), (action, "action")))
        reward = TypedLeaf(declared, ("reward",), "reward")
        about = {names.SCHEMA_ATTR: names.SCHEMA, names.CONVENTION_ATTR: f"gymnasium, autoreset={autoreset}"}
        declared.flags()
        self._trails = [Trail(env, self._files, declared, obs, taken, reward, about) for env in range(num_envs)]
        self._waits = np.zeros(num_envs, bool)
        self._row, self._reset_row = -1, -2

    @property
    def iteration(self) -> int:
        """The number of the update that steps from now on belong to; 0 until it is set."""
        return self._iteration

    @iteration.setter
    def iteration(self, number: Any) -> None:
        self._iteration = as_iteration(number)

    def _lose(self) -> None:
        """End all episodes where they are: what the environments did since is not known."""
        for trail in self._trails:
            trail.end()
        if self._autoreset != "disabled":
            self._waits[:] = False

    def _end(self) -> None:
        """End all episodes, and close the files."""
        self._lose()
        self._files.close()

    def _count_reset(self) -> None:
        """Count the row of a reset; resets behind each other share one."""
        if self._row != self._reset_row:
            self._row += 1
        self._reset_row = self._row

    def _begin(
        self,
        env: int,
        obs: Any,
        info: Mapping[str, Any],
        seed: Any = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        start_seen: bool = True,
    ) -> None:
        number = None if seed is None or not 0 <= int(seed) < 2**63 else int(seed)
        self._trails[env].begin(owned(obs), info=info, seed=number, options=options, start_seen=start_seen)

    def _take(self, env: int, obs: Any, info: Mapping[str, Any], *, has_ended: bool) -> None:
        """Take what an environment showed that is reset, or whose steps before are not known."""
        is_reset = bool(self._waits[env])
        if is_reset and self._autoreset == "disabled":
            return
        is_fresh = is_reset or (has_ended and self._autoreset == "same_step")
        self._waits[env] = has_ended and not is_fresh
        if not self._waits[env]:
            self._begin(env, obs, info if is_fresh else {}, start_seen=is_fresh)


def _tree(declared: Declared, space: Space, root: str) -> TypedLeaf | Tree:
    """Return the leaves of a space, whose values are fields."""
    role = {"obs": "observation"}.get(root, root)
    return tree_of([_typed(declared, leaf, role) for leaf in array_leaves(space, root)], declared.plain)


def _typed(declared: Declared, leaf: Leaf, role: str) -> TypedLeaf:
    place = tuple(key if isinstance(key, int) else str(key) for key in leaf.path)
    attrs = attrs_of(leaf.space)
    return TypedLeaf(declared, place, role, path=leaf.path[1:], cell=leaf.cell, dtype=leaf.dtype, attrs=attrs)


def owned(value: Any) -> Any:
    """Return a value in memory of one's own: an environment may fill its arrays again."""
    if isinstance(value, IMMUTABLE):
        return value
    return value.copy() if type(value) is np.ndarray else copy.deepcopy(value)
