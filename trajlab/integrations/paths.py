"""Paths: where a field stands in a tree of dicts and tuples, and its dotted name."""

import fnmatch
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

Path = tuple[Hashable, ...]
"""The keys under which a field stands in the chunk."""


def dotted(path: Path) -> str:
    """Return the name of the field that stands under these keys."""
    return ".".join(map(str, path))


def nested(columns: Iterable[tuple[Path, np.ndarray]]) -> dict[Hashable, Any]:
    """Return arrays as a tree of dicts, each under the keys of its path."""
    tree: dict[Hashable, Any] = {}
    for path, array in columns:
        branch = tree
        for key in path[:-1]:
            branch = branch.setdefault(key, {})
        branch[path[-1]] = array
    return tree


def at(tree: Any, path: Path) -> Any:
    """Return what stands under the keys of a path."""
    for key in path:
        tree = tree[key]
    return tree


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a dotted name is one of the patterns, lies beneath one, or matches one that is a glob."""
    return any(name == p or name.startswith(f"{p}.") or fnmatch.fnmatchcase(name, p) for p in patterns)
