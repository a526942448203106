"""The buffer, and making one for chunks like an example."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from trajlab.block.placement import rows_shardings
from trajlab.buffer.spec import MAX_ROWS, Keep, Spec, key_of
from trajlab.capture.convention import Convention, as_convention
from trajlab.capture.fit import Fit
from trajlab.capture.plan import Plan
from trajlab.capture.select import Fields, parse_fields
from trajlab.capture.shapes import check_fits_jax
from trajlab.capture.sources import find_sources
from trajlab.cell_states import first_state
from trajlab.dataset.description import rules_of
from trajlab.errors import check_option


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("fields", "flags", "iterations", "states", "started", "rows", "iteration"),
    meta_fields=("spec",),
)
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Buffer:
    """A log of fixed size that a jitted run carries; a pytree, made by `init_buffer` and filled by `append`.

    Attributes
    ----------
    fields : tuple of arrays (capacity, N, ...)
        One per recorded field, for the N environments recorded. With ``keep="first"`` these and the next two are one
        chunk longer: what comes when the buffer is full is written behind it and never read.
    flags : array (capacity, N) uint8
        What each cell is.
    iterations : array (chunks,) int32
        The iteration of each chunk.
    states : array (chunks + 1, N) uint8
        With ``keep="last"``: what state each environment is in before each chunk that is kept, and now. Without rows
        otherwise, as is the next.
    started : array (chunks + 1, N) int32
        With ``keep="last"``: how many episodes had begun by then.
    rows : int32
        How many rows were appended.
    iteration : int32
        The last iteration appended, -1 before the first.
    spec : Spec
        All that is fixed; not an array.
    """

    fields: tuple[jax.Array, ...]
    flags: jax.Array
    iterations: jax.Array
    states: jax.Array
    started: jax.Array
    rows: jax.Array
    iteration: jax.Array
    spec: Spec

    def __repr__(self) -> str:
        """Return its sizes; nothing is fetched."""
        leads = self.rows.shape
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in (*self.fields, self.flags))
        times = f"{' x '.join(map(str, leads))} times " if leads else ""
        return (
            f"<trajlab.Buffer: {times}the {self.spec.keep} {self.spec.capacity} rows of {self.flags.shape[-1]} "
            f"environments, {size / 1e6:.1f} MB; {self.spec.names}>"
        )


def init_buffer(
    example: Any,
    capacity: int,
    *,
    keep: Keep = "first",
    convention: Convention | str = "auto",
    fields: Fields = None,
    envs: Any = None,
    starts_fresh: bool = True,
    **extra: Any,
) -> Buffer:
    """Return an empty buffer for chunks like `example`, to be carried through a jitted run.

    Parameters
    ----------
    example : pytree of arrays (T, N, ...)
        A chunk, or what `jax.eval_shape` tells of one; its values are not used. Every chunk appended must have
        these shapes and dtypes. Where its environments are split over devices, so are the buffer's.
    capacity : int
        Rows (steps of time) to keep at least; rounded up to whole chunks.
    keep : {"first", "last"}
        Which rows are kept of more than that: the first ones, or the last ones, as a ring. What was dropped
        is counted.
    convention, fields, envs, starts_fresh
        As for `Recorder`.
    **extra : array or pytree of arrays (T, N, ...)
        Examples of what `append` gets by keyword.

    Returns
    -------
    Buffer
        A pytree. Inside `vmap` each instance has its own; inside `shard_map` it holds the device's own
        environments.

    Raises
    ------
    ValueError, KeyError, TypeError
        As `Recorder.record` for a first chunk; also when `capacity` is no positive whole number, an array has
        a dtype that JAX does not hold, or ``keep="last"`` is asked for with ``autoreset="disabled"``, where it
        would be forgotten which environments have ended.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, trajlab as tl
    >>> def collect(step, _):  # 8 steps of 2 environments, whose episodes last 4 steps
    ...     time = step + jnp.arange(8)[:, None] + jnp.zeros((8, 2), int)
    ...     return step + 8, {"obs": time % 4, "done": time % 4 == 3}
    >>> @jax.jit
    ... def train(step):
    ...     example = jax.eval_shape(collect, step, None)[1]
    ...
    ...     def update(carry, _):
    ...         step, buffer = carry
    ...         step, chunk = collect(step, None)
    ...         return (step, tl.append(buffer, chunk)), None
    ...
    ...     buffer = tl.init_buffer(example, capacity=16, keep="last")
    ...     return jax.lax.scan(update, (step, buffer), length=5)[0]
    >>> step, buffer = train(0)
    >>> tl.to_dataset(buffer)["start_row"].values
    array([24, 24, 28, 28, 32, 32, 36, 36])
    """
    check_option("keep", keep, Keep)
    is_whole = isinstance(capacity, (int, np.integer)) and not isinstance(capacity, bool)
    if not (is_whole and 1 <= capacity <= MAX_ROWS):
        raise ValueError(f"capacity={capacity!r}; expected a positive whole number of rows, at most {MAX_ROWS:,}")
    for name in ("mask", "iteration", "reset"):
        if name in extra:
            raise TypeError(f"init_buffer() got {name}=, which is for append(); expected only examples of fields")
    for name in ("dims", "coords", "units", "episode_fields"):
        if name in extra:
            raise TypeError(f"init_buffer() got {name}=, which is for to_dataset(); expected only examples of fields")
    convention, fields = as_convention(convention), parse_fields(fields)
    plan, leaves, chunk_rows, updates = _plan(example, extra, convention, fields, envs)
    if keep == "last" and plan.roles.autoreset == "disabled":
        raise ValueError(
            "keep='last' with autoreset='disabled': the row that ended an episode may be overwritten, and what follows "
            "it would be taken for an episode; use keep='first', or record with a Recorder"
        )
    spec = Spec(
        plan,
        convention,
        fields,
        key=key_of(plan, convention, fields),
        keep=keep,
        capacity=-(-int(capacity) // chunk_rows) * chunk_rows,
        chunk_rows=chunk_rows,
        updates=updates,
        rules=rules_of(plan.layout, plan.roles, starts_fresh=bool(starts_fresh)),
    )
    return _empty(spec, leaves)


def _plan(
    example: Any, extra: dict[str, Any], convention: Convention, fields: Fields, envs: Any
) -> tuple[Plan, list[Any], int, int]:
    """Return the plan that an example makes, its arrays for the fields and the flags, its rows and its updates."""
    found: list[tuple[Plan, int, int]] = []

    def make(chunk: Any, more: dict[str, Any]) -> list[Any]:
        sources = find_sources(chunk, more, convention, fields)
        plan = Plan(
            sources, convention, fields, envs=envs, num_envs=None, is_step=False, is_partial=False, device_only=True
        )
        fit = Fit(plan)
        leaves = fit.leaves_of(sources)
        rows, _ = fit.check(leaves, None, is_step=False, part=None)
        found.append((plan, rows, plan.updates(leaves)))
        return leaves

    paths, _ = jax.tree_util.tree_flatten_with_path((example, extra))
    is_abstract = any(isinstance(leaf, jax.ShapeDtypeStruct) for _, leaf in paths)
    for path, leaf in paths if is_abstract else ():
        if isinstance(leaf, np.ndarray):
            check_fits_jax(jax.tree_util.keystr(path[1:]), leaf)
    leaves = jax.eval_shape(make, example, extra) if is_abstract else make(example, extra)
    plan, rows, updates = found[0]
    return plan, leaves, rows, updates


def _empty(spec: Spec, leaves: list[Any]) -> Buffer:
    """Return a buffer without rows; the arrays are split, and vary in a `shard_map`, as the example's do."""
    layout = spec.plan.layout
    rows = spec.room * spec.chunk_rows
    known = spec.chunks + 1 if spec.keep == "last" else 1  # not 0, for JAX 0.9 refuses empty arrays that are split
    shardings = rows_shardings(leaves, layout.axes, layout.width)
    is_traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)

    def zeros(leaf: Any, sharding: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
        if sharding is not None and not is_traced:
            return jnp.zeros(shape, dtype, device=sharding)
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        like = jax.random.key_data(leaf) if is_key and isinstance(leaf, jax.Array) else leaf
        made = jnp.zeros(shape, dtype) if is_key and like is leaf else jnp.zeros_like(like, dtype, shape=shape)
        return made if sharding is None else jax.sharding.reshard(made, sharding)

    fields = tuple(
        zeros(leaf, sharding, (rows, layout.width, *field.shape), field.dtype)
        for leaf, sharding, field in zip(leaves, shardings, layout.fields, strict=False)
    )
    flags = zeros(leaves[-1], shardings[-1], (rows, layout.width), jnp.uint8)
    states = zeros(leaves[-1], shardings[-1], (known, layout.width), jnp.uint8) + np.uint8(first_state(spec.rules))
    started = zeros(leaves[-1], shardings[-1], (known, layout.width), jnp.int32)
    everywhere = None if shardings[-1] is None else NamedSharding(shardings[-1].mesh, PartitionSpec())
    iterations = jnp.zeros(spec.room, jnp.int32, device=everywhere)
    none, before = (jnp.full((), number, jnp.int32, device=everywhere) for number in (0, -1))
    return Buffer(fields, flags, iterations, states, started, rows=none, iteration=before, spec=spec)
