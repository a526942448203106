"""What one array of a chunk is: keys or numbers, of which dtype, behind which leading dims."""

from typing import Any

import jax
import numpy as np


def is_key(leaf: Any) -> bool:
    """Say whether an array holds PRNG keys."""
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_data(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    """Return shape and dtype of the data of PRNG keys; they differ between kinds of keys."""
    return jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype))


def fits(got: Any, stored: np.dtype) -> bool:
    """Say whether values of a dtype can be stored in another without being changed."""
    if got == stored:
        return True
    if not isinstance(got, np.dtype):
        return False
    is_shorter = got.kind == stored.kind and got.kind in "US" and got.itemsize <= stored.itemsize
    return is_shorter or got.newbyteorder("=") == stored


def check_fits_jax(source: str, leaf: np.ndarray) -> None:
    """Raise TypeError where JAX cannot hold a NumPy array as it is: 64-bit numbers need x64, and text has no place."""
    is_number = leaf.dtype.kind in "biufc" or jax.dtypes.issubdtype(leaf.dtype, np.number)
    held = jax.dtypes.canonicalize_dtype(leaf.dtype.newbyteorder("=")) if is_number else None
    if held != leaf.dtype.newbyteorder("="):
        what = "cannot be held by JAX" if held is None else f"becomes {held} unless jax_enable_x64 is set"
        raise TypeError(
            f"field {source!r} has dtype {leaf.dtype}, which {what}; convert it, or leave it out: "
            f"fields=['*', '-{source}']"
        )


def axes_hint(surplus: int, axes: str = "TN") -> str:
    """Return what may be meant by leading dims that are too few, or too many, for the letters of `axes`."""
    if surplus < 0 and len(axes) + surplus == 2:
        return "For arrays (T, N) amend the convention: Convention(..., axes='TN')"
    if surplus < 0:
        return "A single environment needs an axis of its own, x[:, None]; a single step goes to Recorder.record_step()"
    return "A chunk of several steps goes to record(); further leading axes are named by Convention(axes=...)"


def lead_text(axes: str) -> str:
    """Return the letters of leading dims as a shape is written."""
    return f"({', '.join(axes)})"
