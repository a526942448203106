"""What arrays over episodes have for the cells of a log."""

import numpy as np
import pytest

from trajlab.dataset.cell_episodes import CellEpisodes
from trajlab.segment import Episodes

ROWS = 40
PARTS = [(0, ROWS), (0, 1), (7, 19), (39, ROWS)]


def some_episodes(width: int, *, in_order: bool = True) -> tuple[Episodes, np.ndarray]:
    """Return a table with gaps between episodes, and the episode of each cell (rows, width), -1 for none."""
    rng = np.random.default_rng(width)
    found = []
    for column in range(width):
        row = int(rng.integers(3))
        while row < ROWS:
            length = min(int(rng.integers(1, 9)), ROWS - row)
            found.append((row, column, length))
            row += length + int(rng.integers(2))
    found = sorted(found) if in_order else [found[i] for i in rng.permutation(len(found))]
    start, column, length = np.array(found).T
    episode_of = np.full((ROWS, width), -1)
    for episode, (first, where, size) in enumerate(found):
        episode_of[first : first + size, where] = episode
    flags = np.ones(len(found), bool)
    return Episodes(start, column, start, length, start, column, flags, flags, flags, flags), episode_of


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("width", [1, 3, 150])
class TestCells:
    def test_have_what_the_array_has_for_their_episode(self, width: int, in_order: bool):
        table, episode_of = some_episodes(width, in_order=in_order)
        cells = CellEpisodes.of(table, width)
        rng = np.random.default_rng(0)
        size = len(table.start)
        for per_episode in (
            np.arange(size),
            rng.integers(0, 256, size).astype(np.uint8),
            rng.integers(-(2**31), 2**31, size).astype(np.int32),
        ):
            for start, stop in PARTS:
                found = cells.spread(per_episode, start, stop).reshape(-1, width)
                of = episode_of[start:stop]
                assert found.dtype == per_episode.dtype
                np.testing.assert_array_equal(found[of >= 0], per_episode[of[of >= 0]])
                assert np.isin(found, np.append(per_episode, np.zeros(1, per_episode.dtype))).all()

    def test_count_on_from_what_their_episode_has(self, width: int, in_order: bool):
        table, episode_of = some_episodes(width, in_order=in_order)
        cells = CellEpisodes.of(table, width)
        rng = np.random.default_rng(0)
        size = len(table.start)
        step_of = np.arange(ROWS)[:, np.newaxis] - table.start[episode_of]
        for per_episode in (
            np.zeros(size, np.int8),
            rng.integers(-9, 200, size).astype(np.int16),
            rng.integers(-(2**62), 2**62, size),
        ):
            for start, stop in PARTS:
                found = cells.time_plus(per_episode, start, stop).reshape(-1, width)
                of = episode_of[start:stop]
                assert found.dtype == max(per_episode.dtype, np.dtype(np.int32))
                want = per_episode[of].astype(np.int64) + step_of[start:stop]
                np.testing.assert_array_equal(found[of >= 0], want[of >= 0])

    def test_count_the_steps_that_were_reached(self, width: int, in_order: bool):
        table, episode_of = some_episodes(width, in_order=in_order)
        cells = CellEpisodes.of(table, width)
        steps = np.sort(np.random.default_rng(1).integers(0, 11, (3, len(table.start))), axis=0)
        step_of = np.arange(ROWS)[:, np.newaxis] - table.start[episode_of]
        expected = np.where(episode_of >= 0, (step_of >= steps[:, episode_of]).sum(axis=0), 0)
        for start, stop in PARTS:
            np.testing.assert_array_equal(cells.are_held(start, stop), (episode_of[start:stop] >= 0).reshape(-1))
            np.testing.assert_array_equal(cells.reached(steps, start, stop), expected[start:stop].reshape(-1))
        many = np.zeros((200, len(table.start)), np.int64)
        np.testing.assert_array_equal(cells.reached(many, 0, ROWS), np.where(episode_of >= 0, 200, 0).reshape(-1))

    def test_are_located_one_by_one(self, width: int, in_order: bool):
        table, episode_of = some_episodes(width, in_order=in_order)
        row, column = np.nonzero(episode_of >= 0)
        episode, step = CellEpisodes.of(table, width).locate(row, column)
        np.testing.assert_array_equal(episode, episode_of[row, column])
        np.testing.assert_array_equal(step, row - table.start[episode])

    def test_are_located_among_some_rows(self, width: int, in_order: bool):
        table, episode_of = some_episodes(width, in_order=in_order)
        cells = CellEpisodes.of(table, width)
        for start, stop in PARTS:
            there = np.flatnonzero(episode_of[start:stop].reshape(-1) >= 0)
            for some in (there, there[:1], there[::100]):
                episode, step = cells.locate_among(some, start, stop)
                np.testing.assert_array_equal(episode, episode_of[start:stop].reshape(-1)[some])
                np.testing.assert_array_equal(step, start + some // width - table.start[episode])
