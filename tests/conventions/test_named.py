"""Every named convention gives back the hidden run that a package's structures were made of."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from conventions.render import LIMIT, RENDERINGS, Rendering, Run, first_step, lay_out, with_axes
from conventions.truth import TrueEpisode, check
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl
from trajlab.capture.named import NAMED

TABLE = [name for name in NAMED if name != "auto"]


@st.composite
def runs(draw: st.DrawFn, rendering: Rendering) -> tuple[Run, list[int], dict[str, int]]:
    """Draw a run, where it is cut into chunks, and the sizes of its axes."""
    rows = draw(st.integers(1, 14))
    cuts = [0, *sorted(draw(st.sets(st.integers(1, rows - 1), max_size=4)) if rows > 1 else ()), rows]
    letters = [letter for letter in rendering.axes if letter not in "UT"]
    sizes = {letter: draw(st.integers(1, 2 if len(letters) > 1 else 3)) for letter in letters}
    serial = iter(range(10**6))
    columns = [draw(_column(rows, rendering, serial)) for _ in range(int(np.prod([*sizes.values()])))]
    return Run(rows, columns), cuts, sizes


@st.composite
def _column(draw: st.DrawFn, rows: int, rendering: Rendering, serial: Any) -> list[TrueEpisode]:
    """Draw the episodes of one environment; every observation is told from every other."""
    episodes: list[TrueEpisode] = []
    while sum(map(len, episodes)) < rows:
        length = draw(st.integers(1, LIMIT))
        reason = {
            "free": draw(st.sampled_from(["terminated", "truncated"])),
            "terminated": "terminated",
            "by length": "truncated" if length == LIMIT else "terminated",
        }[rendering.reasons]
        obs = [[next(serial), -1] for _ in range(length + 1)]
        action = draw(st.lists(st.integers(0, 9), min_size=length, max_size=length))
        episodes.append(TrueEpisode(obs, action, [10 * a + 1 for a in action], reason))
    return episodes


def convention_of(rendering: Rendering) -> tl.Convention:
    return tl.Convention(rendering.convention, **rendering.options)


def chunks_of(rendering: Rendering, arrays: Any, cuts: list[int], sizes: dict[str, int]) -> Any:
    """Yield each chunk as the package would return it, and what is given by keyword."""
    for start, stop in pairwise(cuts):
        part = {name: array[start:stop] for name, array in arrays.items()}
        updates = 2 if (stop - start) % 2 == 0 else 1
        chunk = with_axes(rendering.chunk(part), rendering.axes, sizes | {"U": updates})
        yield chunk, {name: part[name] for name in rendering.extra}


def record(rendering: Rendering, arrays: Any, cuts: list[int], sizes: dict[str, int], convert: Any) -> xr.Dataset:
    recorder = tl.Recorder(convention=convention_of(rendering))
    if rendering.first:
        row = first_step(arrays)
        recorder.record_step(convert(rendering.chunk(row)), **convert({name: row[name] for name in rendering.extra}))
    for chunk, extra in chunks_of(rendering, arrays, cuts, sizes):
        recorder.record(convert(chunk), **convert(extra))
    return recorder.to_dataset()


def as_jax(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


def fixed_run(rendering: Rendering) -> tuple[Run, list[int], dict[str, int]]:
    """Return a run of 8 rows in two chunks of 4."""
    lengths = [3, 1, 4, 4]
    sizes = dict.fromkeys([letter for letter in rendering.axes if letter not in "UT"], 2)
    columns = []
    for env in range(int(np.prod([*sizes.values()]))):
        order = [*lengths[env % 3 :], *lengths]
        columns.append([_episode(env, k, length, rendering) for k, length in enumerate(order)])
    return Run(8, columns), [0, 4, 8], sizes


def _episode(env: int, k: int, length: int, rendering: Rendering) -> TrueEpisode:
    is_truncated = length == LIMIT and rendering.reasons != "terminated"
    obs = [[1000 * env + 10 * k + t, -1] for t in range(length + 1)]
    return TrueEpisode(
        obs, [k] * length, [float(t) for t in range(length)], "truncated" if is_truncated else "terminated"
    )


def test_every_row_of_the_table_is_rendered():
    of_agents = {"jaxmarl", "jaxmarl_rnn"}  # tests/agents/ renders these
    assert {rendering.convention for rendering in RENDERINGS.values()} | of_agents == set(TABLE)


@pytest.mark.parametrize("name", RENDERINGS)
@examples(15)
@given(data=st.data())
def test_the_hidden_run_is_read_back(name, data):
    rendering = RENDERINGS[name]
    run, cuts, sizes = data.draw(runs(rendering))
    arrays, truth, in_reset = lay_out(run, resets_late=rendering.resets_late)
    ds = record(rendering, arrays, cuts, sizes, lambda tree: tree)
    check(ds, truth, rendering.known, names=rendering.names, rows_after=in_reset)
    assert ds["start_seen"].all()


@pytest.mark.parametrize("name", RENDERINGS)
def test_jax_and_numpy_chunks_are_read_alike(name):
    rendering = RENDERINGS[name]
    run, cuts, sizes = fixed_run(rendering)
    arrays, truth, in_reset = lay_out(run, resets_late=rendering.resets_late)
    ds = record(rendering, arrays, cuts, sizes, as_jax)
    check(ds, truth, rendering.known, names=rendering.names, rows_after=in_reset)
    xr.testing.assert_equal(ds, record(rendering, arrays, cuts, sizes, lambda tree: tree))


@pytest.mark.parametrize("name", RENDERINGS)
def test_inside_jit_as_outside(name):
    rendering = RENDERINGS[name]
    run, cuts, sizes = fixed_run(rendering)
    arrays, _, _ = lay_out(run, resets_late=rendering.resets_late)
    parts = [as_jax(part) for part in chunks_of(rendering, arrays, cuts, sizes)]
    options = {"convention": convention_of(rendering), "starts_fresh": False}

    @jax.jit
    def collect(parts):
        chunk, extra = jax.tree.map(lambda array: array[0], parts)
        buffer = tl.init_buffer(chunk, capacity=8, **options, **extra)
        return jax.lax.scan(lambda b, part: (tl.append(b, part[0], **part[1]), None), buffer, parts)[0]

    ds = tl.to_dataset(collect(jax.tree.map(lambda *arrays: jnp.stack(arrays), *parts)))
    recorder = tl.Recorder(**options)
    for chunk, extra in parts:
        recorder.record(chunk, **extra)
    xr.testing.assert_identical(ds.load(), recorder.to_dataset().load())


def test_devices_and_batches_of_stoix_are_coordinates():
    rendering = RENDERINGS["stoix"]
    run, cuts, sizes = fixed_run(rendering)
    arrays, _, _ = lay_out(run, resets_late=False)
    ds = record(rendering, arrays, cuts, sizes, lambda tree: tree)
    np.testing.assert_array_equal(ds["D"], ds["env"] // 4)
    np.testing.assert_array_equal(ds["B"], ds["env"] // 2 % 2)
    np.testing.assert_array_equal(ds["iteration"].where(ds["mask"])[:, 0], ds["start_row"] // 2)
