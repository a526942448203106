"""A chunk's rows as consumers get them, and where within its episode each cell stands."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from trajlab.block.append import Chunk, device_rows, flags_row, host_rows
from trajlab.block.layout import NOT_RECORDED, Layout
from trajlab.block.placement import NO_MESH
from trajlab.cell_states import first_state, times, walk
from trajlab.segment import Rules


class Track(NamedTuple):
    """Where each environment stands behind the rows so far.

    Attributes
    ----------
    state : array (width,) uint8
        See `trajlab.cell_states`.
    length : array (width,) int32
        Transitions so far of the episode under way.
    """

    state: jax.Array
    length: jax.Array

    @classmethod
    def first(cls, width: int, rules: Rules) -> "Track":
        """Return where the environments stand before the first row."""
        return cls(jnp.full(width, first_state(rules), jnp.uint8), jnp.zeros(width, jnp.int32))


class Captured(NamedTuple):
    """A chunk's rows.

    Attributes
    ----------
    rows : dict of str to array (T, N, ...)
        Of each field that is stored, by its name.
    time : array (T, N) int32
        The step within its episode of each cell, -1 where it is no transition.
    mask : array (T, N) bool or None
        False where a cell is not recorded; None where all are.
    track : Track
        Where the environments stand behind the chunk.
    """

    rows: dict[str, Any]
    time: jax.Array
    mask: jax.Array | None
    track: Track


def capture(
    layout: Layout,
    rules: Rules,
    track: Track | None,
    device: Chunk,
    host: Chunk,
    marks: np.ndarray | None,
    *,
    is_step: bool,
) -> Captured:
    """Return the rows of a checked chunk, given as its parts on the device and on the host; nothing is waited for.

    `marks` (width,) stand before each environment's next cell, in this chunk or not.
    """
    track = track or Track.first(layout.width, rules)
    on_host, flags = host_rows(host, layout, is_step=is_step)
    is_plain = device.mask is None and host.mask is None and marks is None and device.places is None
    function = _device_capture(layout, rules, is_step, is_plain)
    call = functools.partial(function, device, None if flags is None else np.array(flags), marks, track)
    if jax.sharding.get_abstract_mesh().empty:
        on_device, time, mask, track = call()
    else:
        with jax.set_mesh(NO_MESH):
            on_device, time, mask, track = call()
    homes = {"device": iter(on_device), "host": map(_read_only, on_host)}
    rows = {field.name: next(homes[field.home]) for field in layout.fields}
    return Captured(rows, time, mask, track)


def _read_only(rows: np.ndarray) -> np.ndarray:
    """Return a view of rows that cannot be written: what was added lies in the log itself."""
    view = rows.view()
    view.flags.writeable = False
    return view


@functools.lru_cache(maxsize=64)
def _device_capture(layout: Layout, rules: Rules, is_step: bool, is_plain: bool) -> Callable[..., Any]:
    """Return the jitted function that arranges a chunk's device arrays and tells its cells apart."""

    def capture(
        chunk: Chunk, flags: Any, marks: Any, track: Track
    ) -> tuple[list[jax.Array], jax.Array, jax.Array | None, Track]:
        rows, own = device_rows(chunk, layout, is_step=is_step)
        flags = own if flags is None else flags
        if chunk.places is not None:
            flags = flags_row(flags, chunk.places, layout.width)
        if marks is not None:
            flags = flags.at[0].set(flags[0] | marks)
        cells = walk(track.state, flags, rules, is_plain=is_plain)
        time, length = times(cells, track.length)
        mask = None if is_plain else (flags & NOT_RECORDED) == 0
        if chunk.places is not None:
            time, mask = time[:, chunk.places], None
        return rows, time, mask, Track(cells.after, length)

    return jax.jit(capture)
