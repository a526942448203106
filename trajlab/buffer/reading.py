"""From a buffer that a jitted run returned to the Dataset of its episodes."""

import dataclasses
import functools
import math
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from trajlab.block.block import Block
from trajlab.block.layout import MARKS, NOT_RECORDED, Layout
from trajlab.block.placement import NO_MESH, automatic, explicit_mesh, rows_shardings
from trajlab.block.read import host_view, is_host_readable, to_host
from trajlab.block.view import LogView
from trajlab.buffer.carry import Buffer
from trajlab.buffer.lead_in import lead_in
from trajlab.check import find, warn_about
from trajlab.dataset.description import Description, EpisodeFields
from trajlab.dataset.labels import Coords, Dims, Units
from trajlab.dataset.source import Source
from trajlab.errors import check_option
from trajlab.names import Incomplete
from trajlab.segment import Episodes, RankMap, Segmenter, without_first

_APART = "make a Dataset of each, to_dataset(jax.tree.map(lambda x: x[i], buffer)), and concat() them"


def to_dataset(
    buffer: Buffer,
    *,
    axes: str | None = None,
    incomplete: Incomplete = "keep",
    dims: Dims | None = None,
    coords: Coords | None = None,
    units: Units | None = None,
    episode_fields: EpisodeFields | None = None,
) -> xr.Dataset:
    """Return what a jitted run appended to its buffer as a Dataset over (episode, time, ...).

    The Dataset owns what it shows: the buffer may be donated or deleted afterwards. On an accelerator its rows are
    copied there once, on the CPU only where they have to be put in order.

    Parameters
    ----------
    buffer : Buffer
        As `append` returned it, with leading axes where it was made inside `vmap`.
    axes : str, optional
        A capital letter for each leading axis. They are merged into the environments and become episode
        coordinates, as with `Convention.axes`; ``"S"`` by default where there is one.
    incomplete : {"keep", "drop"}
        ``"drop"`` leaves out episodes that are not `complete`.
    dims, coords, units, episode_fields
        As for `Recorder`; ``dims={"S": "seed"}`` names a leading axis, ``coords={"seed": [...]}`` labels it.

    Returns
    -------
    Dataset
        Schema 1. `start_row` counts from the first row appended. With ``keep="last"`` an episode whose head was
        overwritten has ``start_seen=False`` and its number may be another in a later Dataset of the same run.

    Raises
    ------
    ValueError
        When nothing was appended, the buffer was deleted or donated, `axes` does not fit, or the instances of a
        `vmap` appended different numbers of chunks.
    TypeError
        When called while JAX traces, or with something else than a buffer.

    Warns
    -----
    UserWarning
        When the rows do not look like what the convention says; see `Recorder.check`.
    """
    check_option("incomplete", incomplete, Incomplete)
    _check_buffer(buffer)
    spec = buffer.spec
    lead = buffer.rows.shape
    layout = _layout(buffer, lead, _letters(axes, len(lead)))
    described = Description(
        layout,
        spec.plan.roles,
        spec.plan.same_dims,
        starts_fresh=spec.rules.starts_fresh,
        dims=dims,
        coords=coords,
        units=units,
        episode_fields=episode_fields,
    )
    seen = _alike("numbers of rows", to_host(buffer.rows))
    if not seen:
        raise ValueError("nothing has been recorded; append a chunk to the buffer first")
    kept = min(seen, spec.capacity)
    evicted = seen - kept if spec.keep == "last" else 0
    table, unaligned, ranks = _episodes(buffer, evicted, kept)
    rows, iterations = _iterations(buffer, evicted, kept)
    first = evicted % spec.capacity
    arrays = tuple(_in_order(array, first, kept, len(lead)) for array in buffer.fields)
    view = LogView(layout, (Block.sealed(layout, arrays),), kept, threading.RLock())
    warn_about(find(view, ranks, table, spec.rules, spec.plan.roles))
    if incomplete == "drop":
        table = table.take(table.ended & table.start_seen)
    source = Source(view, ranks, table, rows, iterations, first_row=evicted)
    return described.dataset(source, seen=seen, kept=kept, evicted=evicted, unaligned=unaligned)


def _check_buffer(buffer: Any) -> None:
    if not isinstance(buffer, Buffer):
        raise TypeError(f"to_dataset() got a {type(buffer).__name__}; expected a buffer that init_buffer() made")
    leads = buffer.rows.ndim
    for name, own in (("iterations", 1), ("flags", 2), ("states", 2), ("started", 2), ("iteration", 0)):
        array = getattr(buffer, name)
        if array.shape[: max(array.ndim - own, 0)] != buffer.rows.shape:
            raise ValueError(
                f"the buffer's arrays have not the same leading axes: {leads} of `rows`, {array.ndim - own} of "
                f"`{name}`; return all of it with the same out_axes"
            )
    for leaf in jax.tree.leaves(buffer):
        if isinstance(leaf, jax.ShapeDtypeStruct):
            raise TypeError("to_dataset() got shapes without values; call it on what the compiled function returns")
        if isinstance(leaf, jax.core.Tracer):
            raise TypeError(
                "to_dataset() was called inside a function that JAX traces (jit, scan, vmap); return the buffer from "
                "it and call to_dataset() on that"
            )
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            raise ValueError("the buffer has been deleted or donated; call to_dataset() on the one that came of it")


def _letters(axes: Any, count: int) -> str:
    """Return a letter for each leading axis."""
    if not (axes is None or isinstance(axes, str)):
        raise TypeError(f"axes={axes!r}; expected a text of capital letters")
    if axes is None and count <= 1:
        return "S"[:count]
    if not count:
        raise ValueError(f"axes={axes!r}; the buffer has no leading axis: leave it out")
    if axes is None or len(axes) != count or len(set(axes)) != count or not (axes.isalpha() and axes.isupper()):
        raise ValueError(
            f"axes={axes!r}; the buffer has {count} leading axes: expected as many distinct capital letters, such as "
            f"{'HSABCDEFG'[:count]!r}"
        )
    return axes


def _layout(buffer: Buffer, lead: tuple[int, ...], letters: str) -> Layout:
    """Return the layout of the rows with the leading axes merged into the environments."""
    layout = buffer.spec.plan.for_width(buffer.flags.shape[-1]).layout
    twice = {"T", "U", *(letter for letter, _ in layout.sizes)} & set(letters)
    if twice:
        raise ValueError(f"axes={letters!r}: {', '.join(map(repr, sorted(twice)))} is an axis of the chunks already")
    sizes = (*zip(letters, lead, strict=True), *layout.sizes)
    columns = layout.columns
    if columns is not None:
        columns = tuple(place * layout.num_envs + column for place in range(math.prod(lead)) for column in columns)
    return dataclasses.replace(layout, sizes=sizes, columns=columns)


def _alike(what: str, values: np.ndarray) -> int:
    """Return the one value that all instances of a `vmap` have."""
    found = np.unique(values)
    if not len(found):
        raise ValueError("the buffer has a leading axis of length 0: there is no instance of it")
    if len(found) > 1:
        raise ValueError(f"the instances of the buffer appended different {what}: {found.tolist()}; {_APART}")
    return int(found[0])


def _episodes(buffer: Buffer, evicted: int, kept: int) -> tuple[Episodes, int, RankMap]:
    """Return the table of the kept rows' episodes, the cells left out, and the map of their ranks."""
    spec, leads = buffer.spec, buffer.rows.ndim
    rules = spec.rules
    flags = _merged(to_host(buffer.flags), leads)[np.arange(evicted, evicted + kept) % (spec.room * spec.chunk_rows)]
    segmenter = Segmenter(flags.shape[1], rules)
    if not evicted:
        segmenter.feed(flags)
        return *segmenter.table(), segmenter.ranks()
    slot = evicted // spec.chunk_rows % (spec.chunks + 1)
    states, started = (_merged(to_host(array), leads)[slot] for array in (buffer.states, buffer.started))
    before, marks = lead_in(states, rules)
    flags[0] |= np.where(flags[0] & MARKS, np.uint8(0), marks)
    segmenter.feed(flags)
    whole = Segmenter(flags.shape[1], rules)
    whole.feed(np.concatenate([before, flags]))
    table = without_first(
        whole.table()[0],
        np.count_nonzero((before & NOT_RECORDED) == 0, axis=0),
        segmenter.ranks(),
        drops_first=rules.drops_first,
        started=int(started.sum(dtype=np.int64)),
    )
    return table, segmenter.table()[1], segmenter.ranks()


def _merged(array: np.ndarray, leads: int) -> np.ndarray:
    """Return (rows, columns, ...) of an array with leading axes, which are merged into the environments."""
    if not leads:
        return array
    return np.moveaxis(array, leads, 0).reshape(_rows_shape(array, array.shape[leads], leads))


def _rows_shape(array: Any, rows: int, leads: int) -> tuple[int, ...]:
    """Return (rows, columns, ...), the shape of an array with its leading axes merged into the environments."""
    return rows, math.prod(array.shape[:leads]) * array.shape[leads + 1], *array.shape[leads + 2 :]


def _iterations(buffer: Buffer, evicted: int, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, counted from the first kept one, from which each iteration holds, and the iterations."""
    spec = buffer.spec
    chunks = np.arange(evicted // spec.chunk_rows, (evicted + kept) // spec.chunk_rows)
    stored = to_host(buffer.iterations).reshape(-1, buffer.iterations.shape[-1])[:, chunks % spec.room]
    if (stored != stored[0]).any():
        raise ValueError(f"the instances of the buffer appended different iterations; {_APART}")
    update = np.arange(spec.updates)
    rows = (chunks * spec.chunk_rows - evicted)[:, None] + update * (spec.chunk_rows // spec.updates)
    return rows.ravel(), (stored[0].astype(np.int64)[:, None] + update).ravel()


def _in_order(array: jax.Array | np.ndarray, first: int, rows: int, leads: int) -> Any:
    """Return the kept rows of a field as (rows, columns, ...), the oldest first, in an array that nobody donates.

    JAX leaves a buffer alone while a NumPy view of it is alive, so on the CPU a view is enough.
    """
    if not is_host_readable(array):
        (sharding,) = rows_shardings([array], "S" * leads + "TN", _rows_shape(array, rows, leads)[1])
        with jax.set_mesh(NO_MESH):
            return _copied(array, first, rows, leads, sharding)
    view = host_view(array)
    by_time = np.moveaxis(view, leads, 0)
    ordered = np.concatenate([by_time[first:], by_time[:first]]) if first else by_time[:rows]
    merged = ordered.reshape(_rows_shape(view, rows, leads))
    return merged.copy() if isinstance(array, np.ndarray) and np.may_share_memory(merged, view) else merged


@functools.partial(jax.jit, static_argnames=("first", "rows", "leads", "sharding"))
def _copied(array: jax.Array, first: int, rows: int, leads: int, sharding: Any) -> jax.Array:
    def copied(array: jax.Array) -> jax.Array:
        by_time = jnp.moveaxis(array, leads, 0)
        ordered = jnp.concatenate([by_time[first:], by_time[:first]]) if first else by_time[:rows]
        return jnp.array(ordered.reshape(_rows_shape(array, rows, leads)), copy=True)

    out = automatic(copied, sharding)(array)
    return out if sharding is None or explicit_mesh(sharding) else jax.lax.with_sharding_constraint(out, sharding)
