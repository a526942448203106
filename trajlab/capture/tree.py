"""Pytrees to dotted names: the leaves of a chunk and what each is called."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

Leaf = Any
"""A JAX or NumPy array."""

_names: dict[Any, tuple[str, ...]] = {}
"""Names by tree structure: finding paths costs more than flattening, and structures are few."""


def named_leaves(tree: Any) -> tuple[Any, tuple[str, ...], list[Leaf]]:
    """Return the structure, the dotted names and the leaves of a pytree.

    Dataclasses that are not registered with JAX are looked into like dicts; ``None`` leaves are absent.
    A ``/`` in a key counts as a dot, since files treat it as a folder.

    Raises
    ------
    TypeError
        When a leaf is no array.
    ValueError
        When two leaves have the same dotted name, or one has none.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    are_arrays = all(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in leaves)
    if not are_arrays:
        tree = _open_dataclasses(tree)
        leaves, structure = jax.tree_util.tree_flatten(tree)
    names = _names.get(structure)
    if names is None:
        names = _names[structure] = _find_names(tree)
    if not are_arrays:
        _check_arrays(names, leaves)
    return structure, names, leaves


def _check_arrays(names: tuple[str, ...], leaves: list[Leaf]) -> None:
    for name, leaf in zip(names, leaves, strict=True):
        if not isinstance(leaf, (jax.Array, np.ndarray)):
            raise TypeError(
                f"field {name!r} is of type {type(leaf).__name__} ({str(leaf)[:60]}); expected a JAX or NumPy array. "
                "Convert it with np.asarray, or leave it out of the chunk"
            )


def _find_names(tree: Any) -> tuple[str, ...]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    names = tuple(".".join(_key_text(key) for key in path) for path, _ in paths)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"two fields of the chunk have the same dotted name: {', '.join(map(repr, repeated))}")
    if "" in names:
        raise ValueError("the chunk is a single array without a name; expected a dict, NamedTuple or dataclass")
    return names


def _key_text(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute)).replace("/", ".")
    return str(key)


def _open_dataclasses(tree: Any) -> Any:
    """Replace dataclass instances that JAX does not know by dicts of their attributes, at any depth."""

    def open_one(leaf: Any) -> Any:
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            return {f.name: _open_dataclasses(getattr(leaf, f.name)) for f in dataclasses.fields(leaf)}
        return leaf

    return jax.tree_util.tree_map(open_one, tree)


def under(path: str, names: Sequence[str]) -> list[str]:
    """Return the names that are `path` itself or lie beneath it."""
    return [name for name in names if name == path or name.startswith(path + ".")]


def first_path(sources: Sequence[Any], names: Sequence[str]) -> str | None:
    """Return the first path of a slot's sources that names something; None where there is none, or None comes first.

    Functions among the sources are passed over.
    """
    for source in sources:
        if source is None or (isinstance(source, str) and under(source, names)):
            return source
    return None


def merge_extra(chunk: Any, extra: dict[str, Any]) -> tuple[Any, tuple[str, ...], list[Leaf]]:
    """Return structure, names and leaves of a chunk together with pytrees given by keyword.

    An extra that is one array is called by its keyword; the leaves of others get it as prefix.
    """
    structure, names, leaves = named_leaves(chunk)
    if not extra:
        return structure, names, leaves
    extra_structure, extra_names, extra_leaves = named_leaves(extra)
    twice = sorted(set(names) & set(extra_names))
    if twice:
        raise ValueError(f"{', '.join(map(repr, twice))}: given by keyword and in the chunk; rename one")
    return (structure, extra_structure), names + extra_names, leaves + extra_leaves


def call_on_chunk(function: Callable[[Any], Any], chunk: Any, where: str) -> Any:
    """Call a user's function on the chunk; its exception gets a note that says where it stands."""
    try:
        return function(chunk)
    except Exception as error:
        error.add_note(f"raised by the function given as {where}")
        raise
