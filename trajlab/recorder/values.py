"""Values of one field: owned, checked against the first ones, put together from pieces, or missing."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.capture.fit import kind_of
from trajlab.capture.shapes import fits, is_key
from trajlab.capture.tree import named_leaves
from trajlab.padding import padding_value, shown_dtype
from trajlab.recorder.owned import check_usable, owned
from trajlab.recorder.pieces import Piece


def owned_leaves(field: Any, value: Any) -> dict[str, Any]:
    """Return the arrays of a field, or of the fields below it, by dotted name, as arrays that nobody overwrites.

    JAX arrays are taken as they are; NumPy ones, and those of other packages by DLPack, are copied.

    Raises
    ------
    TypeError
        When the name is no text, or a value no array.
    ValueError
        When the name is empty, or a value is a masked array or has been deleted.
    """
    if not isinstance(field, str):
        raise TypeError(f"field={field!r}; expected the name of a field, a text")
    name = field.replace("/", ".").strip(".")
    if not name:
        raise ValueError(f"field={field!r}; expected a name, such as 'obs' or 'states/position'")
    if not isinstance(value, Mapping):
        return {name: _owned(name, value)}
    _, names, leaves = named_leaves({name: _owned_tree(name, value)})
    if not leaves:
        raise ValueError(f"field {name!r} holds no array: {value!r}")
    return dict(zip(names, leaves, strict=True))


def _owned_tree(name: str, tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _owned_tree(f"{name}.{key}", branch) for key, branch in tree.items()}
    return _owned(name, tree)


def _owned(name: str, value: Any) -> Any:
    if not isinstance(value, jax.Array):
        return owned(value, name)
    check_usable(value, name)
    return value


class Like(NamedTuple):
    """What an array was, so that one just like it is not looked at again: its type, and all that JAX compiles for."""

    type: Any
    kind: tuple[Any, ...]
    on_device: bool

    @classmethod
    def of(cls, array: Any) -> "Like":
        """Return what an array is."""
        return cls(type(array), kind_of(array), isinstance(array, jax.Array))

    def fits(self, value: Any) -> bool:
        """Say whether a value is an array just like this one, and there."""
        own, kind, on_device = self
        return type(value) is own and kind_of(value) == kind and not (on_device and value.is_deleted())


class Template(NamedTuple):
    """What all values of a field have in common.

    Attributes
    ----------
    num_envs : int
    shape : tuple of int
        Of one environment's value.
    dtype : dtype
        As JAX or NumPy names it.
    key_impl : object or None
        The kind of PRNG keys.
    is_flag, on_device : bool
    """

    num_envs: int
    shape: tuple[int, ...]
    dtype: Any
    key_impl: Any
    is_flag: bool
    on_device: bool

    @classmethod
    def of(cls, value: Any, num_envs: int, *, is_flag: bool) -> "Template":
        """Return the template that the first value of a field makes."""
        impl = jax.random.key_impl(value) if is_key(value) else None
        return cls(num_envs, tuple(value.shape[1:]), value.dtype, impl, is_flag, isinstance(value, jax.Array))

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError where a value is not like the first one."""
        if tuple(value.shape[1:]) != self.shape:
            raise ValueError(
                f"field {name!r} has cells of shape {tuple(value.shape[1:])}; those added first had {self.shape}"
            )
        if value.dtype == self.dtype:
            return
        is_key_either = self.key_impl is not None or is_key(value)
        is_text = not is_key_either and np.dtype(self.dtype).kind in "US" and value.dtype.kind == self.dtype.kind
        if is_key_either or not (is_text or fits(np.dtype(value.dtype), np.dtype(self.dtype))):
            raise ValueError(f"field {name!r} has dtype {value.dtype}; those added first had {self.dtype}")


def assembled(template: Template, pieces: Sequence[Piece]) -> Any:
    """Return a field's values (N, ...), put together from pieces; what none of them has is padding, of a flag False."""
    if not pieces:
        return _missing(template)
    values = tuple(piece.value for piece in pieces)
    if not any(isinstance(value, jax.Array) for value in values):
        longest = max((value.dtype for value in values), key=lambda dtype: dtype.itemsize)
        out = np.full((template.num_envs, *template.shape), _padding(template), longest)
        for value, envs, places, _ in pieces:
            out[slice(None) if envs is None else envs] = value if places is None else value[places]
        return out
    indices = tuple(
        (np.arange(template.num_envs) if envs is None else envs, np.arange(len(value)) if places is None else places)
        for value, envs, places, _ in pieces
    )
    return _scattered(_missing(template), values, indices)


@jax.jit
def _scattered(out: jax.Array, values: tuple[Any, ...], indices: tuple[tuple[Any, Any], ...]) -> jax.Array:
    for value, (envs, places) in zip(values, indices, strict=True):
        out = out.at[envs].set(value[places])
    return out


@functools.lru_cache(maxsize=256)
def _missing(template: Template) -> Any:
    """Return what stands for a field that no environment has, (N, ...)."""
    shape = (template.num_envs, *template.shape)
    if template.key_impl is not None:
        empty = jax.eval_shape(lambda: jax.random.split(jax.random.key(0, impl=template.key_impl), 1))
        data = jax.eval_shape(jax.random.key_data, empty).shape[1:]
        return jax.random.wrap_key_data(jnp.full((*shape, *data), np.uint32(0xFFFFFFFF)), impl=template.key_impl)
    out = np.full(shape, _padding(template), template.dtype)
    return jax.device_put(out) if template.on_device else out


def _padding(template: Template) -> Any:
    """Return the padding of a field as it is stored: that of its Dataset, or the nearest that its dtype has."""
    dtype = np.dtype(template.dtype)
    if template.is_flag:
        return np.zeros((), dtype)
    if jax.dtypes.issubdtype(dtype, np.integer) and dtype.type.__module__ != "numpy":
        return np.array(
            jnp.iinfo(dtype).min if jax.dtypes.issubdtype(dtype, np.signedinteger) else jnp.iinfo(dtype).max, dtype
        )
    return np.array(padding_value(shown_dtype(dtype))).astype(dtype)
