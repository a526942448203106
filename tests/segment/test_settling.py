"""Episodes handed out as they settle are those of the whole recording, each once; little is kept of what is done."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from trajlab.block.layout import DONE, GAP, NOT_RECORDED, RESET, TERMINATED
from trajlab.segment import Episodes, Rules, Segmenter, Settling

BYTES = [0, DONE, TERMINATED, NOT_RECORDED, RESET, GAP, RESET | DONE, GAP | DONE, NOT_RECORDED | RESET]
KINDS = [
    Rules(autoreset, previous_row, drops, drops and not is_result, fresh, ("done", "terminated"))
    for autoreset, previous_row, drops, is_result, fresh in itertools.product(
        ["same_step", "next_step", "disabled"], *[[False, True]] * 4
    )
    if drops or not is_result
]
COMPARED = [name for name in Episodes._fields if name not in ("settled", "last_flag_known")]


@examples(600)
@given(st.sampled_from(KINDS), st.integers(1, 3), st.integers(1, 24), st.data())
def test_settled_episodes_are_those_of_the_whole_recording(rules, width, rows, data):
    drawn = data.draw(
        st.lists(st.sampled_from([0, 0, 0, *map(int, BYTES)]), min_size=rows * width, max_size=rows * width)
    )
    flags = np.array(drawn, np.uint8).reshape(rows, width)
    whole = Segmenter(width, rules)
    whole.feed(flags)
    want, _ = whole.table()

    settling, row, parts = Settling(width, rules), 0, []
    while row < rows:
        count = data.draw(st.integers(1, 5))
        settling.feed(flags[row : row + count])
        row += count
        if data.draw(st.booleans()):
            needed = settling.needed_row
            settled = settling.take()
            parts.append(settled.episodes)
            first = settled.ranks.rows(settled.episodes.column, settled.episodes.start - rules.drops_first)
            assert (first >= needed).all()  # what it reads has not been given up
    parts.append(settling.take(also_open=True).episodes)
    got = Episodes(*(np.concatenate(values) for values in zip(*parts, strict=True)))
    got = got.take(np.argsort(got.number))
    for name in COMPARED:
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name), err_msg=name)


def test_nothing_is_kept_of_what_is_done():
    settling = Settling(4, KINDS[0])
    rng = np.random.default_rng(0)
    for _ in range(200):
        flags = np.where(rng.random((16, 4)) < 0.2, DONE, 0).astype(np.uint8)
        flags[rng.random((16, 4)) < 0.1] = NOT_RECORDED
        settling.feed(flags)
        settling.take()
    assert settling.rows - settling.needed_row < 200
    assert len(settling._fed.events[0].row) < 20
    assert sum(span.rows for span in settling._fed.spans) < 400
