"""An array of our own with the values that somebody else's has now, who may write over them at any time."""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_CPU = 1
"""The number of the host's memory in DLPack."""


def owned(value: Any, name: str) -> Any:
    """Return a copy of an array, called `name`, which nobody else writes to.

    What lies in the host's memory becomes a NumPy array, what lies elsewhere a JAX array. A torch tensor on another
    device is copied there, behind what torch has been asked to do so far, and handed to JAX without a second copy;
    where JAX does not know the device, it goes to the host. What else speaks DLPack is waited for.

    Raises
    ------
    TypeError
        When it is no array, or one that JAX traces.
    ValueError
        When it is a masked array, or has been deleted.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _owned_tensor(value.detach(), torch)
    if isinstance(value, jax.Array):
        check_usable(value, name)
        return jnp.array(value, copy=True)
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name!r} is a masked array; give its data, for the environments that have some")
    if isinstance(value, np.ndarray):
        return np.array(value)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        if int(value.__dlpack_device__()[0]) == _CPU:
            return np.array(np.from_dlpack(value))
        return jnp.array(jnp.from_dlpack(value), copy=True).block_until_ready()
    raise TypeError(
        f"field {name!r} is of type {type(value).__name__} ({str(value)[:60]}); expected a JAX or NumPy array, or one "
        "of a package that knows DLPack"
    )


def check_usable(value: jax.Array, name: str) -> None:
    """Raise where a JAX array is traced, or has been deleted."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"field {name!r} was added inside a function that JAX traces; return it and add it outside")
    if value.is_deleted():
        raise ValueError(f"the array of {name!r} has been deleted or donated; add it before it is donated")


def _owned_tensor(tensor: Any, torch: Any) -> Any:
    if tensor.device.type == "cpu" and tensor.dtype is not torch.bfloat16:
        return np.array(np.from_dlpack(tensor))
    own = tensor.clone(memory_format=torch.contiguous_format)
    if own.device.type == "cuda" and jax.default_backend() != "gpu":
        return _owned_tensor(own.cpu(), torch)
    return jnp.from_dlpack(own)
