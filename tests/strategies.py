"""Hypothesis strategies: random recordings in which every cell of every field holds a number of its own.

A `Stream` is a recording as rows: arrays (row, env, ...), a mask, marks and iterations. `cuts` draws how its
rows are handed over (chunks of any length, steps, partial steps) and `make_calls` turns both into calls.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from reference import Call, Mark, Record, Step

PROFILES = {"brief": 1 / 8, "quick": 1 / 2, "thorough": 30}
"""Parts of the numbers that tests ask for: for the oldest versions allowed, for each change, and for a search."""


def examples(number: int) -> settings:
    """Return settings for a property test: `number` examples, more with TRAJLAB_EXAMPLES=thorough, fewer with =brief.

    The thorough profile draws new examples each time, the others the same.
    """
    profile = os.environ.get("TRAJLAB_EXAMPLES", "quick")
    return settings(
        max_examples=max(int(number * PROFILES[profile]), 3),
        derandomize=profile != "thorough",
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@dataclass(frozen=True)
class MarkAt:
    """A mark before a row; after the last one where `row` is their number."""

    row: int
    kind: str
    envs: np.ndarray  # bool (N,)


@dataclass(frozen=True)
class Stream:
    """A recording as rows, and how it is to be understood."""

    chunk: dict[str, np.ndarray]  # dotted path -> (row, env, ...)
    extra: dict[str, np.ndarray]
    mask: np.ndarray  # bool (row, env)
    iterations: np.ndarray  # int (row,)
    marks: list[MarkAt]
    sizes: dict[str, int]  # of the axes that are environments
    is_explicit: bool  # whether iterations are given
    options: dict[str, Any] = field(default_factory=dict)  # the arguments of Recorder

    @property
    def axes(self) -> str:
        return self.options["convention"].get("axes", "TN")

    @property
    def num_rows(self) -> int:
        return len(self.iterations)

    @property
    def num_envs(self) -> int:
        return self.mask.shape[1]


@dataclass(frozen=True)
class Piece:
    """Rows handed over in one call; `how` says in which form."""

    start: int
    stop: int
    updates: int = 1
    how: str = "chunk"  # "chunk", "masked" (a mask although all cells are recorded), "step"
    envs_as: str = "mask"  # of a step, and of marks before it: "mask", "indices", "slice"
    gives_iteration: bool = True


# Streams ----------------------------------------------------------------------------------------------------


@st.composite
def bits(draw: st.DrawFn, *shape: int) -> np.ndarray:
    """Draw a bool array, each element True in half of all cases."""
    size = int(np.prod(shape))
    drawn = draw(st.binary(min_size=-(-size // 8), max_size=-(-size // 8)))
    return np.unpackbits(np.frombuffer(drawn, np.uint8), count=size).astype(bool).reshape(shape)


@st.composite
def conventions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the rules of a convention; the slots are drawn with the fields."""
    axes = ["TN"] * 4 + ["NT", "UTN", "STN", "TSN", "SUTN"]
    alignments = ["transition", "transition", "result", "result", {"state.*": "result"}, {"*": "result"}]
    alignments += [{"obs*": "result"}, {"*.a": "result", "reward": "result"}]
    alignments += [{"state.*": "result", "obs*": "result"}]
    rules = {
        "autoreset": draw(st.sampled_from(["same_step", "next_step", "disabled"])),
        "alignment": draw(st.sampled_from(alignments)),
        "flags": draw(st.sampled_from(["row", "row", "previous_row"])),
        "axes": draw(st.sampled_from(axes)),
    }
    defaults = {"autoreset": "same_step", "alignment": "transition", "flags": "row", "axes": "TN"}
    left_out = draw(st.booleans())
    return {name: rule for name, rule in rules.items() if not (left_out and rule == defaults[name])}


@st.composite
def env_sizes(draw: st.DrawFn, axes: str) -> dict[str, int]:
    """Draw the size of each axis that is merged into the environments."""
    letters = [letter for letter in axes if letter not in "UT"]
    return {letter: draw(st.integers(1, 4 if len(letters) == 1 else 2)) for letter in letters}


@st.composite
def row_plan(draw: st.DrawFn, axes: str, num_envs: int) -> tuple[list[int], list[MarkAt]]:
    """Draw the iteration of each row, and marks."""
    iterations: list[int] = []
    marks: list[MarkAt] = []
    length = draw(st.integers(1, 3))  # of every block, where updates are to be stacked
    iteration = draw(st.sampled_from([0, 0, 7]))
    for _ in range(draw(st.integers(1, 5))):
        for kind in draw(st.sampled_from(["", "", "", "", "", "", "", "r", "g", "gr", "rg"])):
            envs = draw(bits(num_envs)) if iterations or axes in ("TN", "NT") else np.ones(num_envs, bool)
            marks.append(MarkAt(len(iterations), {"r": "reset", "g": "gap"}[kind], envs))
        iterations += [iteration] * (length if "U" in axes else draw(st.integers(1, 5)))
        steps = [1, 1, 1, 1, 1, 1, 2, -1] if "U" in axes else [0, 0, 1, 1, 1, 1, 1, 1, 1, 2, -1]
        iteration = max(0, iteration + draw(st.sampled_from(steps)))
    if draw(st.integers(0, 4)) == 0:
        marks.append(MarkAt(len(iterations), draw(st.sampled_from(["reset", "gap"])), draw(bits(num_envs))))
    return iterations, marks


def numbered(num_rows: int, num_envs: int, inner: tuple[int, ...], dtype: str, place: int) -> np.ndarray:
    """Return an array (row, env, ...) in which every cell is told from every other, of other fields too."""
    cell = np.arange(num_rows * num_envs).reshape(num_rows, num_envs, *(1 for _ in inner))
    component = np.arange(int(np.prod(inner))).reshape(inner)
    if dtype == "bool":
        return (cell * 2654435761 >> 7 + place) % 2 == component % 2
    if dtype == "uint8":
        return np.where(component % 2, place, cell % 251 + component // 2).astype(dtype)
    value = cell + 1 + 1000 * place + 100_000 * component
    return (value + 2**40 * (np.dtype(dtype).itemsize == 8)).astype(dtype)


@st.composite
def field_shapes(draw: st.DrawFn, wide: bool) -> dict[str, tuple[tuple[int, ...], str]]:
    """Draw the fields of a chunk beside its flags: inner shape and dtype by dotted path."""
    observation = draw(st.sampled_from(["obs", "obs", "observation"]))
    nested = {".a": ((2,), "float32"), ".b.x": ((), "int32")}
    plain = {"": ((2,), "float32")}
    observed = nested if draw(st.booleans()) else plain
    fields = {observation + leaf: shape for leaf, shape in observed.items()}
    fields |= {"action": ((), "int32"), "reward": ((), "float32")}
    if draw(st.booleans()):
        fields |= {"next_obs" + leaf: shape for leaf, shape in observed.items()}
    if draw(st.booleans()):
        fields |= {"final_obs" + leaf: shape for leaf, shape in observed.items()}
    if draw(st.booleans()):
        fields |= {"image": ((2, 2), "uint8"), "info.lit": ((), "bool"), "info.a": ((1,), "float32")}
    if wide and draw(st.booleans()):
        fields |= {"stamp": ((), "int64"), "exact": ((2,), "float64")}
    return fields


@st.composite
def flags(draw: st.DrawFn, num_rows: int, num_envs: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Draw the flags and, where they have names of their own, the slots they fill."""
    choices: list[tuple[str, ...]] = [("terminated",), ("truncated",), ("done",)]
    choices += [("terminated", "truncated"), ("terminated", "done"), ("truncated", "done")]
    choices += [("terminated", "truncated", "done")]
    dtype = draw(st.sampled_from(["bool", "bool", "bool", "float32", "uint8"]))
    rename = draw(st.integers(0, 3)) == 0
    arrays, slots = {}, {}
    for flag in draw(st.sampled_from(choices)):
        name = f"last_{flag}" if rename else flag
        rare = draw(bits(num_rows, num_envs)) & draw(bits(num_rows, num_envs))
        arrays[name] = rare.astype(dtype)
        if rename:
            slots[flag] = name
    return arrays, slots


@st.composite
def env_choices(draw: st.DrawFn, num_envs: int) -> Any:
    """Draw the `envs` of a recorder: all, indices in any order, a slice or a mask; never none of them."""
    kind = draw(st.sampled_from([None, None, "indices", "slice", "mask"]))
    if kind is None:
        return None
    if kind == "slice":
        return slice(draw(st.integers(0, num_envs - 1)), None, draw(st.integers(1, 2)))
    chosen = draw(st.lists(st.integers(0, num_envs - 1), min_size=1, unique=True))
    return chosen if kind == "indices" else np.isin(np.arange(num_envs), chosen)


@st.composite
def streams(draw: st.DrawFn, wide: bool = True, explicit: bool | None = None, whole: bool = False) -> Stream:
    """Draw a recording.

    Parameters
    ----------
    wide
        With 64-bit fields, which only NumPy arrays hold.
    explicit
        Whether the iteration is always given; None: sometimes.
    whole
        Every environment and every episode is kept.
    """
    convention = draw(conventions())
    axes = convention.get("axes", "TN")
    sizes = draw(env_sizes(axes))
    num_envs = int(np.prod(list(sizes.values())))
    iterations, marks = draw(row_plan(axes, num_envs))
    num_rows = len(iterations)
    shapes = draw(field_shapes(wide))
    places = {name: place for place, name in enumerate(shapes)}
    chunk = {name: numbered(num_rows, num_envs, *shapes[name], places[name]) for name in shapes}
    flag_arrays, slots = draw(flags(num_rows, num_envs))
    extra = {"state.a": numbered(num_rows, num_envs, (2,), "float32", 20)}
    extra |= {"state.deep.b": numbered(num_rows, num_envs, (), "int32", 21)}
    if draw(st.booleans()):
        extra["advantage"] = numbered(num_rows, num_envs, (), "float32", 22)
    is_masked = draw(st.booleans())
    options: dict[str, Any] = {"convention": convention | slots, "starts_fresh": draw(st.booleans())}
    if not whole:
        options["envs"] = draw(env_choices(num_envs))
        options["max_episodes"] = draw(st.sampled_from([None, None, 1, 2, 3, 5]))
    return Stream(
        chunk=chunk | flag_arrays,
        extra=extra,
        mask=draw(bits(num_rows, num_envs)) | draw(bits(num_rows, num_envs)) | (not is_masked),
        iterations=np.array(iterations),
        marks=marks,
        sizes=sizes,
        is_explicit=draw(st.booleans()) if explicit is None else explicit,
        options=options,
    )


def permuted(stream: Stream, order: np.ndarray) -> Stream:
    """Return the stream with its environments in another order: new env j was env order[j]."""
    return replace(
        stream,
        chunk={name: array[:, order] for name, array in stream.chunk.items()},
        extra={name: array[:, order] for name, array in stream.extra.items()},
        mask=stream.mask[:, order],
        marks=[replace(mark, envs=mark.envs[order]) for mark in stream.marks],
    )


# Cuts -------------------------------------------------------------------------------------------------------


@st.composite
def cuts(draw: st.DrawFn, stream: Stream) -> list[Piece]:
    """Draw how the rows are handed over: never across a mark or (unless stacked) a change of iteration."""
    must = {mark.row for mark in stream.marks} | set(1 + np.flatnonzero(np.diff(stream.iterations)))
    free = draw(bits(stream.num_rows)) & draw(bits(stream.num_rows))
    inner = [row for row in range(1, stream.num_rows) if row in must or free[row]]
    edges = [0, *inner, stream.num_rows]
    pieces = [draw(piece_forms(stream, start, stop)) for start, stop in pairwise(edges)]
    if "U" in stream.axes and draw(st.booleans()):
        pieces = stacked(pieces, stream)
    return pieces


@st.composite
def piece_forms(draw: st.DrawFn, stream: Stream, start: int, stop: int) -> Piece:
    """Draw the form in which rows are handed over."""
    is_step = stop - start == 1 and stream.axes in ("TN", "NT") and draw(st.booleans())
    return Piece(
        start=start,
        stop=stop,
        how="step" if is_step else draw(st.sampled_from(["chunk", "masked"])),
        envs_as=draw(st.sampled_from(["mask", "indices", "slice"])),
        gives_iteration=draw(st.booleans()),
    )


def stacked(pieces: list[Piece], stream: Stream) -> list[Piece]:
    """Join pieces of equal length into one of several updates, where the iteration goes up by one."""
    joined = pieces[:1]
    marked = {mark.row for mark in stream.marks}
    for piece in pieces[1:]:
        last = joined[-1]
        same_length = piece.stop - piece.start == (last.stop - last.start) // last.updates
        step = stream.iterations[piece.start] - stream.iterations[last.stop - 1]
        if same_length and step == 1 and piece.start not in marked:
            joined[-1] = replace(last, stop=piece.stop, updates=last.updates + 1)
        else:
            joined.append(piece)
    return joined


# Calls ------------------------------------------------------------------------------------------------------


def make_calls(stream: Stream, pieces: list[Piece]) -> list[Call]:
    """Return the calls that hand a stream over in these pieces."""
    calls: list[Call] = []
    for piece in pieces:
        calls += [make_mark(mark, piece.envs_as) for mark in stream.marks if mark.row == piece.start]
        calls.append(make_step(stream, piece) if piece.how == "step" else make_chunk(stream, piece))
    calls += [make_mark(mark, "mask") for mark in stream.marks if mark.row == stream.num_rows]
    return calls


def recorder_options(stream: Stream, calls: list[Call]) -> dict[str, Any]:
    """Return the arguments of the recorder, with `num_envs` where the calls do not show it in time."""
    first = calls[0]
    is_shown = isinstance(first, Record) or (not isinstance(first, Mark) and first.envs is None)
    is_needed = not is_shown and stream.axes in ("TN", "NT")
    return stream.options | ({"num_envs": stream.num_envs} if is_needed else {})


def make_mark(mark: MarkAt, envs_as: str) -> Mark:
    """Return the call of a mark; None stands for all environments."""
    return Mark(mark.kind, None if mark.envs.all() else named_envs(mark.envs, envs_as))


def named_envs(chosen: np.ndarray, envs_as: str) -> Any:
    """Return a choice of environments as a bool mask, as indices (last first) or, if possible, a slice."""
    numbers = np.flatnonzero(chosen)
    if envs_as == "slice" and len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return chosen if envs_as == "mask" else [int(number) for number in numbers[::-1]]


def make_step(stream: Stream, piece: Piece) -> Step:
    """Return a call of `record_step` for a piece of one row."""
    chosen = stream.mask[piece.start]
    envs = None if chosen.all() and piece.envs_as == "mask" else named_envs(chosen, piece.envs_as)
    is_full = envs is None or isinstance(envs, np.ndarray)
    where: Any = (piece.start,) if is_full else (piece.start, envs)
    iteration = int(stream.iterations[piece.start])
    is_new = piece.start == 0 or stream.iterations[piece.start - 1] != iteration
    return Step(
        step=nested({name: array[where].copy() for name, array in stream.chunk.items()}),
        envs=envs,
        iteration=iteration if stream.is_explicit and (is_new or piece.gives_iteration) else None,
        extra=nested({name: array[where].copy() for name, array in stream.extra.items()}),
    )


def make_chunk(stream: Stream, piece: Piece) -> Record:
    """Return a call of `record` with the axes of the convention."""
    mask = stream.mask[piece.start : piece.stop]
    is_masked = piece.how == "masked" or not mask.all()
    return Record(
        chunk=nested({name: with_axes(array, stream, piece) for name, array in stream.chunk.items()}),
        mask=with_axes(stream.mask, stream, piece) if is_masked else None,
        iteration=int(stream.iterations[piece.start]) if stream.is_explicit else None,
        extra=nested({name: with_axes(array, stream, piece) for name, array in stream.extra.items()}),
    )


def with_axes(array: np.ndarray, stream: Stream, piece: Piece) -> np.ndarray:
    """Return rows (row, env, ...) of a piece in the axes of the convention."""
    sizes = {"U": piece.updates, "T": (piece.stop - piece.start) // piece.updates} | stream.sizes
    plain = ["U", "T", *stream.sizes]
    rows = array[piece.start : piece.stop].reshape(*(sizes[letter] for letter in plain), *array.shape[2:])
    if "U" not in stream.axes:
        plain, rows = plain[1:], rows[0]
    order = [plain.index(letter) for letter in stream.axes]
    return rows.transpose(*order, *range(len(plain), rows.ndim)).copy()


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted paths as nested dicts."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, name = path.split(".")
        branch = tree
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[name] = value
    return tree


@st.composite
def recordings(draw: st.DrawFn, wide: bool = True) -> tuple[list[Call], dict[str, Any]]:
    """Draw calls and the arguments of the recorder they go to; `wide` as for `streams`."""
    stream = draw(streams(wide=wide))
    calls = make_calls(stream, draw(cuts(stream)))
    return calls, recorder_options(stream, calls)


# Reading ----------------------------------------------------------------------------------------------------

# Chunks that a block takes; None: as the package chooses, which is all of so short a recording.
block_sizes = st.sampled_from([None, 1, 2, 4])


@st.composite
def index_along(draw: st.DrawFn, size: int) -> Any:
    """Draw an index along one dim: a number, a slice or numbers, repeated ones and negative ones among them."""
    numbers = st.integers(-size, size - 1)
    steps = st.sampled_from([None, 1, 2, -1])
    slices = st.builds(slice, st.none() | numbers, st.none() | numbers, steps)
    return draw(numbers | slices | st.lists(numbers, max_size=4))


@st.composite
def indexers(draw: st.DrawFn, num_episodes: int, num_times: int) -> dict[str, Any]:
    """Draw the arguments of `isel`: each dim for itself, or single points."""
    sizes = {"episode": num_episodes, "time": num_times}
    if draw(st.booleans()):
        return {dim: draw(index_along(size)) for dim, size in sizes.items() if draw(st.booleans())}
    length = draw(st.integers(0, 5))
    points = {dim: [draw(st.integers(-size, size - 1)) for _ in range(length)] for dim, size in sizes.items()}
    return {dim: xr.DataArray(np.array(numbers, int), dims="point") for dim, numbers in points.items()}
