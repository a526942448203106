"""Making a buffer and appending to it: pure functions, to be used where JAX traces."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from trajlab.block.append import Chunk, device_rows, put_rows
from trajlab.block.layout import GAP, RESET, Layout
from trajlab.block.placement import automatic, rows_shardings, shardings_of
from trajlab.buffer.lead_in import advance, first_state
from trajlab.capture.convention import STANDARD_NAMES, Convention, as_convention
from trajlab.capture.plan import Plan, check_fits_jax, find_sources
from trajlab.capture.select import Fields, parse_fields
from trajlab.dataset.description import rules_of
from trajlab.errors import check_option
from trajlab.segment import Rules

Keep = Literal["first", "last"]
MAX_ROWS = 2**30
"""Of a buffer. What is appended is counted in 32 bits, which is room for 2**31 - 1 rows in a run."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """What is fixed about a buffer. Two made alike are equal, so that nothing compiles anew for the second.

    Attributes
    ----------
    plan : Plan
    convention : Convention
    fields : list, mapping or None
    key : tuple
        All that tells one plan from another.
    keep : {"first", "last"}
    capacity : int
        Rows kept.
    chunk_rows, updates : int
        Rows of a chunk, and how many updates it holds.
    rules : Rules
        What the flags mean.
    """

    plan: Plan = dataclasses.field(compare=False)
    convention: Convention = dataclasses.field(compare=False)
    fields: Fields = dataclasses.field(compare=False)
    key: tuple[Any, ...]
    keep: Keep
    capacity: int
    chunk_rows: int
    updates: int
    rules: Rules

    @property
    def chunks(self) -> int:
        """Chunks kept."""
        return self.capacity // self.chunk_rows

    @property
    def room(self) -> int:
        """Chunks for which there is room; one more than are kept where what comes too late is written behind them."""
        return self.chunks + (self.keep == "first")

    def __repr__(self) -> str:
        """Return what two buffers may differ in, for JAX prints this where their structures do."""
        return f"Spec(keep={self.keep!r}, capacity={self.capacity}, chunk_rows={self.chunk_rows}, {self.names})"

    @property
    def names(self) -> str:
        """Names of the recorded fields, as text."""
        return ", ".join(field.name for field in self.plan.layout.fields if not field.hidden)


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
        key=_key(plan, convention, fields),
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
            sources, convention, fields, envs=envs, num_envs=None, is_step=False, is_partial=False, inside_jit=True
        )
        leaves = plan.leaves_of(sources)
        rows, _ = plan.check(leaves, None, is_step=False, part=None)
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


def _key(plan: Plan, convention: Convention, fields: Fields) -> tuple[Any, ...]:
    """Return all that tells one plan from another, to be compared and hashed."""
    functions = tuple(value for slot in STANDARD_NAMES if callable(value := getattr(convention, slot)))
    asked = tuple(fields.items()) if isinstance(fields, Mapping) else fields if fields is None else tuple(fields)
    return plan.layout, plan.roles.found, functions, asked


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


def append(
    buffer: Buffer, chunk: Any, *, mask: Any = None, iteration: Any = None, reset: Any = None, **extra: Any
) -> Buffer:
    """Return the buffer with one more chunk; pure, for use inside `jit`, `scan`, `vmap` and `shard_map`.

    In the carry of a scan the buffer is written in place. Called from Python, one chunk at a time, it would be
    copied each time: use a `Recorder`, or ``jax.jit(append, donate_argnums=0)``.

    Parameters
    ----------
    buffer : Buffer
    chunk : pytree of arrays (T, N, ...)
        Of the example's fields, shapes and dtypes.
    mask : bool array (T, N), optional
        False where a cell is no transition; the episode goes on across it.
    iteration : int scalar, optional
        Number of the update; by default one more than that of the chunk before, the first being 0. A jump by
        more than one, or back, is a gap.
    reset : bool scalar or array (N,), optional
        True where the environment was reset by hand before the chunk: its first row starts an episode.
    **extra : array or pytree of arrays (T, N, ...)
        As the example's.

    Returns
    -------
    Buffer

    Raises
    ------
    ValueError, KeyError, TypeError
        While JAX traces, where the chunk does not fit the example.
    """
    if not isinstance(buffer, Buffer):
        raise TypeError(f"append() got a {type(buffer).__name__}; expected a buffer that init_buffer() made")
    spec = buffer.spec
    plan = spec.plan.with_num_envs(_num_envs(buffer))
    sources = find_sources(chunk, extra, spec.convention, spec.fields)
    leaves = plan.leaves_of(sources)
    length, _ = plan.check(leaves, mask, is_step=False, part=None)
    if length != spec.chunk_rows:
        raise ValueError(
            f"the chunk has {length} rows, the example had {spec.chunk_rows}; a buffer takes chunks of one length. "
            "A Recorder takes any"
        )
    first = _iteration(buffer, iteration)
    jumps = None if iteration is None else _jumps(buffer, first)
    by_hand = None if reset is None else _by_hand(reset, plan.layout)
    write = automatic(functools.partial(_write, plan.layout), shardings_of(buffer))
    return write(buffer, leaves, mask, first, jumps, by_hand)


def _write(
    layout: Layout, buffer: Buffer, leaves: list[Any], mask: Any, first: jax.Array, jumps: Any, by_hand: Any
) -> Buffer:
    """Return the buffer with a checked chunk, whose first update is the iteration `first`."""
    spec = buffer.spec
    num_fields = len(layout.fields)
    marks = _marks(layout, jumps, by_hand)
    rows, flags = device_rows(
        Chunk(
            fields=tuple(leaves[:num_fields]),
            flags=tuple(leaves[num_fields:]),
            marks=marks,
            mask=mask,
            columns=None if layout.columns is None else np.array(layout.columns, np.int32),
        ),
        layout,
        is_step=False,
    )
    assert flags is not None
    number = buffer.rows // spec.chunk_rows
    place = number % spec.room if spec.keep == "last" else jnp.minimum(number, spec.chunks)
    row = place * spec.chunk_rows
    states, started = buffer.states, buffer.started
    if spec.keep == "last":
        now, then = number % (spec.chunks + 1), (number + 1) % (spec.chunks + 1)
        state, begun = advance(states[now], flags, spec.rules, is_plain=mask is None and marks is None)
        states = put_rows(states, state[None], then)
        started = put_rows(started, (started[now] + begun)[None], then)
    return Buffer(
        fields=tuple(put_rows(array, x, row) for array, x in zip(buffer.fields, rows, strict=True)),
        flags=put_rows(buffer.flags, flags, row),
        iterations=put_rows(buffer.iterations, first[None], place),
        states=states,
        started=started,
        rows=buffer.rows + spec.chunk_rows,
        iteration=first + (spec.updates - 1),
        spec=spec,
    )


def _num_envs(buffer: Buffer) -> int:
    """Return the number of environments by the buffer's width, where all of them are recorded."""
    layout = buffer.spec.plan.layout
    width = buffer.flags.shape[-1]
    return layout.num_envs if width == layout.width else width


def _iteration(buffer: Buffer, given: Any) -> jax.Array:
    """Return the iteration of a chunk's first update."""
    if given is None:
        return buffer.iteration + 1
    number = given if isinstance(given, jax.Array) else np.asarray(given)
    if number.shape != () or not jnp.issubdtype(number.dtype, jnp.integer):
        raise TypeError(f"iteration={given!r}; expected a whole number")
    if not isinstance(number, jax.core.Tracer) and not 0 <= int(number) < 2**31:
        raise ValueError(f"iteration={given!r}; expected a whole number from 0 to {2**31 - 1}")
    return jnp.asarray(number).astype(jnp.int32)


def _jumps(buffer: Buffer, first: jax.Array) -> jax.Array:
    """Say whether the iteration jumps before a chunk."""
    step = first - buffer.iteration
    return (buffer.rows > 0) & ((step < 0) | (step > 1))


def _by_hand(reset: Any, layout: Layout) -> jax.Array:
    """Return `reset` as an array, checked."""
    array = reset if isinstance(reset, jax.Array) else np.asarray(reset)
    if array.shape not in ((), (layout.num_envs,)) or array.dtype != np.bool_:
        raise ValueError(
            f"reset has shape {array.shape} and dtype {array.dtype}; expected a bool, or one for each of the "
            f"{layout.num_envs} environments"
        )
    return jnp.asarray(array)


def _marks(layout: Layout, jumps: jax.Array | None, by_hand: jax.Array | None) -> jax.Array | None:
    """Return the marks (width,) before a chunk: a reset by hand, else a gap where the iteration jumps."""
    marks = None if jumps is None else jnp.broadcast_to(jnp.where(jumps, GAP, np.uint8(0)), layout.width)
    if by_hand is None:
        return marks
    by_hand = jnp.broadcast_to(by_hand, layout.num_envs)
    if layout.columns is not None:
        by_hand = by_hand[np.array(layout.columns)]
    return jnp.where(by_hand, RESET, np.uint8(0) if marks is None else marks)
