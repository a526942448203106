"""Which episode each cell of a log belongs to."""

from typing import Any

import numpy as np
import pytest

from trajlab.dataset.cell_episodes import CellEpisodes


def some_episodes(width: int, rows: int, order: Any) -> tuple[CellEpisodes, np.ndarray]:
    """Return episodes with gaps between them, and the begin of that of each cell (rows, width), -1 for none."""
    rng = np.random.default_rng(width)
    begin_of = np.full((rows, width), -1)
    found = []
    for column in range(width):
        row = int(rng.integers(3))
        while row < rows:
            stop = min(row + int(rng.integers(1, 9)), rows)
            begin_of[row:stop, column] = row
            found.append((row, stop, column))
            row = stop + int(rng.integers(2))
    begin, end, columns = np.array(sorted(found)).T
    given = None if order is None else order.permutation(len(begin))
    return CellEpisodes(given, begin, end, columns, width), begin_of


@pytest.mark.parametrize("width", [1, 3, 150])
def test_cells_are_of_the_episode_that_holds_them(width: int):
    episodes, begin_of = some_episodes(width, 40, None)
    columns = np.tile(np.arange(width), (40, 1))
    for start, stop in ((0, 40), (0, 1), (7, 19), (39, 40)):
        held = episodes.are_held(start, stop).reshape(-1, width)
        np.testing.assert_array_equal(held, begin_of[start:stop] >= 0)
        places = episodes.places(start, stop).reshape(-1, width)
        np.testing.assert_array_equal(episodes.begin[places][held], begin_of[start:stop][held])
        np.testing.assert_array_equal(episodes.column[places][held], columns[start:stop][held])


def test_what_is_known_of_episodes_in_another_order_is_put_into_that_of_their_begins():
    episodes, _ = some_episodes(5, 30, np.random.default_rng(0))
    assert episodes.order is not None
    known = np.empty(len(episodes.begin), int)
    known[episodes.order] = episodes.begin
    np.testing.assert_array_equal(episodes.sorted(known), episodes.begin)
