"""What `plot_outcomes` draws is what `outcomes` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import strip_of
from matplotlib.colors import to_rgba

import trajlab as tl


def ended(reasons, iteration=None, **coords):
    ds = tl.from_episodes([{"reward": np.zeros(2)} for _ in reasons], end_reason=list(reasons), iteration=iteration)
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


@pytest.fixture
def ds():
    return ended(["terminated", "truncated", "terminated", "cut", "terminated", "truncated"], [0, 0, 10, 10, 20, 20])


def heights(ax):
    """Return the heights of bars (group, end reason)."""
    return np.array([[bar.get_height() for bar in container] for container in ax.containers]).T


def test_bars_stand_where_iterations_do(ds):
    ax, want = tl.plot_outcomes(ds), tl.outcomes(ds)
    np.testing.assert_array_equal(heights(ax), want["share"].values)
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.containers[0]]
    assert ends == [(-5, 5), (5, 15), (15, 25)]
    tops = [bar.get_y() + bar.get_height() for bar in ax.containers[-1]]
    np.testing.assert_allclose(tops, 1)
    assert [bar.get_height() for bar in strip_of(ax).containers[0]] == [2, 2, 2]
    assert "6 episodes (1 cut)" in ax.get_title()


def test_legend_names_end_reasons_that_occur(ds):
    ax = tl.plot_outcomes(ds)
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["terminated (3)", "truncated (2)", "cut (1)"]
    assert ax.containers[3][0].get_hatch() == "////"
    colors = [container[0].get_facecolor() for container in ax.containers]
    assert len(set(colors)) == 4


def test_an_end_reason_has_the_same_colour_everywhere(ds):
    only = tl.plot_outcomes(ds.isel(episode=[1]))
    assert only.containers[1][0].get_facecolor() == tl.plot_outcomes(ds).containers[1][0].get_facecolor()
    bars = tl.plot_outcomes(ds).containers
    lines = [line.get_color() for line in tl.plot_state_trace(ds, "reward", by="end_reason").lines[::2]]
    assert [to_rgba(color) for color in lines] == [bars[number][0].get_facecolor() for number in (3, 0, 1)]


def test_named_groups_stand_side_by_side(ds):
    ax = tl.plot_outcomes(ds, groups={"late": slice(20, None), "early": slice(None, 0)})
    strip = strip_of(ax)
    assert [text.get_text() for text in strip.get_xticklabels()] == ["late", "early"]
    np.testing.assert_array_equal(heights(ax)[:, 0], [0.5, 0.5])
    assert "in no group: 2 episodes" in ax.get_title()


def test_environments_stand_side_by_side(ds):
    ax = tl.plot_outcomes(ds.assign_coords(env=("episode", [0, 0, 0, 9, 9, 9])), by="env")
    assert [text.get_text() for text in strip_of(ax).get_xticklabels()] == ["0", "9"]


def test_empty_group_is_no_bar(ds):
    ax = tl.plot_outcomes(ds, groups=[0, 5, 8, 30])
    assert len(ax.containers[0]) == 2


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_outcomes(ds, ax=other, edgecolor="red", linewidth=2) is other
    bar = other.containers[0][0]
    assert (bar.get_edgecolor(), bar.get_linewidth()) == (to_rgba("red"), 2)
    assert not one.containers


def test_of_no_episode(blank):
    for by in ("start_iteration", None):
        ax = tl.plot_outcomes(blank, by=by)
        assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_the_end_reason_is_no_group(ds):
    with pytest.raises(ValueError, match="is what is counted"):
        tl.plot_outcomes(ds, by="end_reason")
