"""The log: blocks that are filled to the last row, sealed, never copied and never written again."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chunks import assert_holds, make_chunk
from hypothesis import given
from hypothesis import strategies as st
from strategies import bits, examples

import trajlab as tl
import trajlab.block.log
from trajlab.block.append import Chunk, device_append, host_append
from trajlab.block.layout import DONE, FLAG_BITS, GAP, NOT_RECORDED, RESET, Field, Layout, lead
from trajlab.block.log import MIN_BYTES, MIN_CHUNKS, Log

HOMES = ("numpy", "jax", "mixed", "flags_numpy")


def blocks_of(recorder):
    """Return the first row and the capacity of each block."""
    return [(block.start, block.capacity) for block in recorder._session.log.blocks]


def pointers(block):
    """Return where a block's arrays lie."""
    return [array.unsafe_buffer_pointer() for array in block.box[-1][0]] + [array.ctypes.data for array in block.host]


def record(recorder, lengths, home):
    """Record chunks of these lengths; return the number of rows."""
    row = recorder.num_recorded_steps
    for length in lengths:
        recorder.record(make_chunk(range(row, row + length), home=home))
        row += length
    return row


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make blocks of four chunks."""
    monkeypatch.setattr(trajlab.block.log, "MIN_BYTES", 1)


# Where rows go -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(
    ("lengths", "want"),
    [
        ([5, 5, 5, 5], [(0, 20)]),  # full to the last row
        ([5, 5, 5, 5, 5], [(0, 20), (20, 20)]),
        ([5, 15], [(0, 20)]),
        ([5, 16], [(0, 20), (5, 64)]),  # sealed short rather than split
        ([5, 14, 1, 1], [(0, 20), (20, 20)]),
        ([5, 14, 2], [(0, 20), (19, 20)]),
        ([5, 15, 3, 9, 1], [(0, 20), (20, 20)]),
        ([1, 1, 1, 1, 1], [(0, 4), (4, 4)]),
        ([1, 50], [(0, 4), (1, 200)]),  # a chunk that is longer than the block
    ],
    ids=str,
)
def test_writes_at_a_blocks_edge(home, lengths, want):
    recorder = tl.Recorder()
    rows = record(recorder, lengths, home)
    assert blocks_of(recorder) == want
    assert_holds(recorder.to_dataset(), range(rows))


@pytest.mark.parametrize("home", HOMES)
def test_chunks_of_many_lengths(home):
    recorder = tl.Recorder()
    rng = np.random.default_rng(0)
    lengths = [1, *rng.choice([1, 3, 30], 30).tolist()]
    rows = record(recorder, lengths, home)
    assert rows == sum(lengths)
    edges = blocks_of(recorder)
    assert len(edges) > 2
    ends = np.cumsum(lengths)
    for (start, capacity), (following, _) in zip(edges, edges[1:], strict=False):
        assert following <= start + capacity
        assert following in ends  # no chunk lies in two blocks
    assert_holds(recorder.to_dataset(), range(rows))


@pytest.mark.parametrize("home", HOMES)
def test_growth_never_copies(home):
    recorder = tl.Recorder()
    record(recorder, [5] * 4, home)
    first = recorder._session.log.blocks[0]
    before, held = pointers(first), [np.array(x) for x in (*first.box[-1][0], *first.host)]
    for _ in range(20):
        record(recorder, [5], home)
        assert recorder._session.log.blocks[0] is first
        assert pointers(first) == before
    assert len(recorder._session.log.blocks) == 6
    for was, now in zip(held, (*first.box[-1][0], *first.host), strict=True):
        np.testing.assert_array_equal(now, was)


@pytest.mark.parametrize("home", HOMES)
def test_an_open_block_is_written_in_place(home):
    recorder = tl.Recorder()
    record(recorder, [5], home)
    before = pointers(recorder._session.log.blocks[-1])
    record(recorder, [5], home)
    recorder.to_dataset()["serial"].values  # noqa: B018
    record(recorder, [5], home)
    assert pointers(recorder._session.log.blocks[-1]) == before


@pytest.mark.parametrize(("length", "row_bytes"), [(1, 10), (128, 1000), (1000, 10**6), (7, 1)])
def test_sizes_of_blocks(monkeypatch, length, row_bytes):
    monkeypatch.setattr(trajlab.block.log, "MIN_BYTES", MIN_BYTES)
    field = Field("x", "x", (row_bytes - 1,), np.dtype(np.uint8), "host")
    log = Log(Layout((field,), ("done",), "host", "TN", (("N", 1),)))
    capacity = log._capacity(length)
    assert capacity % length == 0
    assert capacity >= MIN_CHUNKS * length
    assert MIN_BYTES <= capacity * row_bytes < max(MIN_BYTES + length * row_bytes, MIN_CHUNKS * length * row_bytes + 1)
    assert log._capacity(1) == log._capacity(length) == capacity
    assert log._capacity(capacity) == max(MIN_CHUNKS * capacity, -(-MIN_BYTES // (capacity * row_bytes)) * capacity)
    log.exact = True
    assert log._capacity(length) == length


def test_a_rollout_gets_one_block_that_fits():
    ds = tl.from_rollout(make_chunk(range(7), home="jax"))
    (block,) = ds["serial"].variable._data.array.source.view.blocks
    assert block.capacity == 7


# Rows that do not count --------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", HOMES)
def test_what_is_not_committed_is_written_over(home):
    recorder = tl.Recorder()
    record(recorder, [5, 5, 5, 5], home)
    counters = recorder._counters
    record(recorder, [5], home)  # opens a block
    recorder._counters = counters
    assert_holds(recorder.to_dataset(), range(20))
    record(recorder, [3], home)  # goes into it
    assert blocks_of(recorder) == [(0, 20), (20, 20)]
    assert_holds(recorder.to_dataset(), range(23))


@pytest.mark.parametrize("home", HOMES)
def test_an_empty_block_that_is_too_small_is_replaced(home):
    recorder = tl.Recorder()
    record(recorder, [5, 5, 5, 5], home)
    counters = recorder._counters
    record(recorder, [1], home)
    recorder._counters = counters
    record(recorder, [30], home)
    assert blocks_of(recorder) == [(0, 20), (20, 120)]
    assert_holds(recorder.to_dataset(), range(50))


def test_an_empty_block_that_was_lost_is_replaced():
    recorder = tl.Recorder()
    record(recorder, [5, 5, 5, 5], "jax")
    counters = recorder._counters
    record(recorder, [5], "jax")
    recorder._counters = counters
    recorder._session.log.blocks[-1].box[-1][0][0].delete()
    record(recorder, [5], "jax")
    assert_holds(recorder.to_dataset(), range(25))


# Views -------------------------------------------------------------------------------------------------------


def view_of(recorder, rows):
    return recorder._session.log.view(rows, threading.RLock())


@pytest.mark.parametrize("home", HOMES)
def test_views_hold_the_blocks_of_their_rows(home):
    recorder = tl.Recorder()
    record(recorder, [5, 14, 5, 5], home)  # blocks of 0 to 19 (one row short) and 19 to 39
    log = recorder._session.log
    for rows, spans in ((5, [(0, 5)]), (19, [(0, 19)]), (20, [(0, 19), (19, 20)]), (29, [(0, 19), (19, 29)])):
        view = view_of(recorder, rows)
        assert [(start, stop) for _, start, stop in view.spans()] == spans
        assert view.blocks == tuple(log.blocks[: len(spans)])


@pytest.mark.parametrize("home", HOMES)
def test_cells_are_read_in_the_order_asked_for_across_blocks(home):
    recorder = tl.Recorder()
    record(recorder, [5] * 10, home)
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 50, 200), rng.integers(0, 3, 200)
    view = view_of(recorder, 50)
    for name in ("serial", "obs.position"):
        whole = np.concatenate([view.read_rows(name, *span) for span in view.spans()])
        np.testing.assert_array_equal(view.read(name, rows, columns), whole[rows, columns])
    np.testing.assert_array_equal(view.read("serial", rows, columns), rows)
    assert view.read("obs.position", rows[:0], columns[:0]).shape == (0, 3)
    assert view.read("obs.position", rows[:0], columns[:0], (1,)).shape == (0,)


@pytest.mark.parametrize("home", HOMES)
def test_rows_of_an_open_block_are_copied_and_no_read_can_be_written(home):
    recorder = tl.Recorder()
    record(recorder, [5] * 5, home)
    view = view_of(recorder, 25)
    (_, *sealed), (_, *opened) = view.spans()
    first = view.read_rows("serial", view.blocks[0], *sealed)
    last = view.read_rows("serial", view.blocks[1], *opened)
    assert not first.flags.writeable
    before = pointers(view.blocks[1])
    record(recorder, [5], home)
    assert pointers(view.blocks[1]) == before  # a view of a donated array would make JAX copy the whole block
    record(recorder, [5] * 4, home)
    assert first[:, 0].tolist() == list(range(20))
    assert last[:, 0].tolist() == list(range(20, 25))
    view.read("serial", np.array([0]), np.array([0]))[:] = 99
    assert_holds(recorder.to_dataset(), range(50))


# The append on both sides ------------------------------------------------------------------------------------

FIELDS = (
    Field("a", "a", (2,), np.dtype(np.float32), "device"),
    Field("b", "b", (), np.dtype(np.int32), "device"),
)


@st.composite
def appends(draw):
    """Draw what makes a layout, a chunk for it, and whether it is a step."""
    axes = draw(st.sampled_from(["TN", "NT", "UTN", "STN", "SUTN"]))
    is_step = axes in ("TN", "NT") and draw(st.booleans())
    num_envs, length = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    all_sizes = {"T": length, "U": 2, "N": num_envs, "S": 2}
    sizes = tuple((letter, all_sizes[letter]) for letter in axes if letter not in "UT")
    total = int(np.prod([size for _, size in sizes]))
    columns = draw(st.none() | st.lists(st.integers(0, total - 1), min_size=1, unique=True).map(sorted))
    part = draw(st.none() | st.lists(st.integers(0, total - 1), min_size=1, unique=True)) if is_step else None
    slots = draw(st.sampled_from([("done",), ("terminated", "truncated"), ("terminated", "truncated", "done")]))
    letters = [letter for letter in axes if not (is_step and letter in "UT")]
    shape = (len(part),) if part is not None else tuple(all_sizes[letter] for letter in letters)
    width = total if columns is None else len(columns)
    own = np.arange(total) if columns is None else np.array(columns)
    places, picks = (None, None) if part is None else map(np.array, ([], []))
    if part is not None:
        here = [i for i, env in enumerate(part) if env in own]
        places = np.searchsorted(own, np.array(part)[here]).astype(np.int32)
        picks = np.array(here, np.int32) if draw(st.booleans()) or len(here) < len(part) else None
    chunk = Chunk(
        fields=tuple(draw_values(draw, (*shape, *field.shape)).astype(field.dtype) for field in FIELDS),
        flags=tuple(draw(bits(*shape)) for _ in slots),
        marks=draw(st.none() | st.just(np.where(draw(bits(width)), draw(st.sampled_from([RESET, GAP])), np.uint8(0)))),
        mask=None if part is not None else draw(st.none() | bits(*shape)),
        columns=np.array(columns, np.int32) if columns is not None and part is None else None,
        places=places,
        picks=picks,
    )
    return (slots, axes, sizes, None if columns is None else tuple(columns)), chunk, is_step


def draw_values(draw, shape):
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape) + draw(st.integers(1, 1000))


@examples(40)
@given(appends(), st.integers(0, 4))
def test_device_and_host_write_the_same(drawn, row):
    (slots, axes, sizes, columns), chunk, is_step = drawn
    layout = Layout(FIELDS, slots, "device", axes, sizes, columns)
    capacity = row + 8
    shapes = [((capacity, layout.width, *field.shape), field.dtype) for field in FIELDS]
    arrays = [np.full(shape, 7, dtype) for shape, dtype in [*shapes, ((capacity, layout.width), np.dtype(np.uint8))]]
    on_device = tuple(jnp.asarray(array) for array in arrays)
    function = device_append(layout, is_step=is_step, want_flags=True)
    written, flags = function(on_device, row, jax.tree.map(jnp.asarray, chunk))
    on_host = Layout(FIELDS, slots, "host", axes, sizes, columns)
    host_flags = host_append(tuple(arrays), row, chunk, on_host, is_step=is_step)
    for device, host in zip((*written, flags), (*arrays, host_flags), strict=True):
        np.testing.assert_array_equal(device, host)


def test_flags_by_hand():
    layout = Layout((), ("terminated", "done"), "host", "TN", (("N", 3),))
    flags = np.zeros((5, 3), np.uint8)
    chunk = Chunk(
        fields=(),
        flags=(np.array([[1, 0, 0], [0, 0, 1]], bool), np.array([[1.0, 0.0, 2.0], [0.0, np.nan, 0.0]])),
        marks=np.array([0, RESET, GAP], np.uint8),
        mask=np.array([[True, True, False], [True, True, True]]),
    )
    host_append((flags,), 2, chunk, layout, is_step=False)
    terminated = FLAG_BITS["terminated"]
    want = [[terminated | DONE, RESET, NOT_RECORDED | GAP], [0, DONE, terminated]]
    assert flags[2:4].tolist() == want
    assert not flags[:2].any()
    assert not flags[4:].any()


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_leading_axes(xp):
    x = xp.arange(2 * 3 * 4 * 5 * 2).reshape(2, 3, 4, 5, 2)
    got = lead(x, "SUTN", is_step=False)
    assert got.shape == (12, 10, 2)
    for s, u, t, n in np.ndindex(2, 3, 4, 5):
        assert got[u * 4 + t, s * 5 + n].tolist() == x[s, u, t, n].tolist()
    assert lead(x[:, 0, 0], "SUTN", is_step=True).shape == (1, 10, 2)
