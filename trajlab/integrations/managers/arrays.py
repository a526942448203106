"""What a term reads, as arrays of our own: an environment writes its next step over the tensors of this one."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.recorder.owned import owned

Fields = dict[str, Any]
"""Arrays (N, ...) by name, nested as the names are."""


def owned_fields(given: Mapping[str, Any], num_envs: int, name: str = "") -> Fields:
    """Return copies of tensors (num_envs, ...) by name: nested mappings stay so, and ``"a/b"`` is one in another.

    Raises
    ------
    TypeError
        When a value is neither an array nor a mapping of arrays.
    ValueError
        When two values have one name, or an array is masked, or not of all environments.
    """
    fields: Fields = {}
    for key, value in given.items():
        here = f"{name}.{key}" if name else str(key)
        here = here.replace("/", ".")
        if isinstance(value, Mapping):
            own = owned_fields(value, num_envs, here)
        else:
            own = owned(value, here)
            if own.shape[:1] != (num_envs,):
                raise ValueError(
                    f"field {here!r} has shape {own.shape}; expected ({num_envs}, ...), one per environment"
                )
        for part in reversed(str(key).split("/")):
            own = {part: own}
        join(fields, own)
    return fields


def join(fields: Fields, more: Mapping[str, Any], name: str = "") -> None:
    """Put further fields among others; raise ValueError where there is one of that name already."""
    for key, value in more.items():
        here = f"{name}.{key}" if name else key
        if isinstance(value, dict) and isinstance(branch := fields.setdefault(key, {}), dict):
            join(branch, value, here)
        elif key not in fields:
            fields[key] = value
        else:
            raise ValueError(f"the field {here!r} is given twice, by one term or by two; give it two names")


def on_host(given: Any) -> Any:
    """Return a tensor as a NumPy array; what is none, such as a list, a slice or None, as it is."""
    return np.asarray(given.cpu()) if hasattr(given, "cpu") else given


def merged(where: Any, fields: Fields, others: Fields) -> Fields:
    """Return `fields` of the environments `where` (N,) bool, and `others` of the rest."""
    tree: Any  # JAX's annotation of it knows no comparison
    leaves, tree = jax.tree.flatten(fields)
    rest, other_tree = jax.tree.flatten(others)
    if tree != other_tree:
        raise ValueError(
            f"after_step() gave the fields {sorted(others)} at the end of a step, and {sorted(fields)} before the "
            "reset of environments within it; it has to give the same ones"
        )
    return jax.tree.unflatten(tree, [_chosen(where, *pair) for pair in zip(leaves, rest, strict=True)])


def _chosen(where: Any, value: Any, other: Any) -> Any:
    if isinstance(value, np.ndarray):
        where = np.asarray(where).reshape(-1, *[1] * (value.ndim - 1))
        return np.where(where, value, other)
    return _chosen_on_device(where, value, other)


@jax.jit
def _chosen_on_device(where: Any, value: jax.Array, other: jax.Array) -> jax.Array:
    return jnp.where(where.reshape(-1, *[1] * (value.ndim - 1)), value, other)
