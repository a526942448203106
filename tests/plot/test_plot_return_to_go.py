"""What `plot_return_to_go` draws is the trace of `return_to_go`."""

import numpy as np
import pytest

import trajlab as tl


@pytest.fixture
def ds():
    episodes = [{"reward": np.array(rewards)} for rewards in ([1.0, 2.0, 4.0], [8.0, 0.0], [1.0, 1.0])]
    return tl.from_episodes(episodes, end_reason=["terminated", "terminated", "cut"])


def line_of(ax):
    """Return the values of the thick line of the mean."""
    (line,) = [line for line in ax.lines if line.get_linewidth() > 1.5]
    return line.get_ydata()


def test_the_mean_and_single_episodes(ds):
    ax, want = tl.plot_return_to_go(ds, discount=0.5), tl.return_to_go(ds, discount=0.5)
    np.testing.assert_allclose(line_of(ax), want.mean("episode"))
    (singles,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    drawn = [segment[:, 1].tolist() for segment in singles.get_segments()]
    assert drawn == [row[row.notnull()].values.tolist() for row in want]
    assert ax.get_ylabel() == "return to go, discount 0.5"
    assert "3 episodes (1 cut)" in ax.get_title()


def test_groups_and_options(ds):
    ax = tl.plot_return_to_go(ds, by="complete", episodes=False, quantiles=False, linewidth=4)
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["False (1)", "True (2)", "mean", "± standard deviation"]
    assert [line.get_linewidth() for line in ax.lines][:2] == [4, 4]
    assert ax.get_ylabel() == "return to go"


def test_of_no_episode(blank):
    assert [text.get_text() for text in tl.plot_return_to_go(blank, by="seed").texts] == ["no episodes"]
