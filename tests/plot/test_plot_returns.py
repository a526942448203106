"""Returns and lengths as they are drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from ragged import make_dataset

import trajlab as tl


def rewards(*episodes, **options):
    return tl.from_episodes([{"reward": np.array(e, float)} for e in episodes], **options)


def points(collection):
    return collection.get_offsets().tolist()


def test_complete_and_cut_are_told_apart():
    ds = rewards([1, 2], [4], [8, 8], end_reason=["terminated", "cut", "truncated"], iteration=[0, 1, 2])
    upper, lower = tl.plot_returns(ds)
    assert [points(dots) for dots in upper.collections] == [[[0, 3], [2, 16]], [[1, 4]]]
    assert [points(dots) for dots in lower.collections] == [[[0, 2], [2, 2]], [[1, 1]]]
    (legend,) = upper.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["complete (2)", "not complete (1)"]
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("return", "episode length [steps]")
    assert lower.get_xlabel() == "iteration at start"
    assert upper.figure.get_suptitle() == "return and length of 3 episodes (1 cut)"
    assert upper.get_xlim() == lower.get_xlim()


def test_one_iteration_is_drawn_by_episode():
    _, lower = tl.plot_returns(rewards([1], [2], [3]))
    assert lower.get_xlabel() == "episode"
    assert points(lower.collections[0]) == [[0, 1], [1, 1], [2, 1]]


def test_any_coordinate_over_episodes():
    _, lower = tl.plot_returns(rewards([1], [2], env=[5, 3]), x="env")
    assert points(lower.collections[0]) == [[5, 1], [3, 1]]
    with pytest.raises(KeyError, match="Did you mean 'start_row'"):
        tl.plot_returns(rewards([1]), x="start_rwo")


def test_the_line_is_a_median_of_complete_episodes():
    ends = ["terminated"] * 20 + ["cut"] * 5
    ds = rewards(*[[i] for i in range(20)], *[[1e6]] * 5, end_reason=ends, iteration=range(25))
    upper, _ = tl.plot_returns(ds)
    (line,) = upper.lines
    assert line.get_xdata().tolist() == [2, 7, 12, 17]
    assert line.get_ydata().tolist() == [2, 7, 12, 17]
    (legend,) = upper.figure.legends
    assert legend.get_texts()[-1].get_text() == "median of every 5 complete"


def test_no_line_through_few_episodes():
    upper, _ = tl.plot_returns(rewards(*[[i] for i in range(9)]))
    assert not upper.lines


def test_a_panel_per_objective():
    ds = tl.from_episodes(
        [{"reward": np.array([[1.0, 10.0]])}],
        dims={"reward": ["goal"]},
        coords={"goal": ["speed", "energy"]},
        units={"reward": ["m", "J"]},
    )
    axes = tl.plot_returns(ds)
    assert [ax.get_ylabel() for ax in axes] == ["return: speed [m]", "return: energy [J]", "episode length [steps]"]


def test_discount_is_said():
    upper, _ = tl.plot_returns(rewards([1, 2]), discount=0.5)
    assert points(upper.collections[0]) == [[0, 2]]
    assert upper.figure.get_suptitle().endswith("discount 0.5")


def test_no_episode():
    axes = tl.plot_returns(make_dataset([]))
    assert all([text.get_text() for text in ax.texts] == ["no episodes"] for ax in axes)
    axes[0].figure.canvas.draw()


def test_many_episodes_are_an_image_in_a_file():
    ds = rewards(*[[1.0]] * 5001)
    upper, _ = tl.plot_returns(ds)
    assert upper.collections[0].get_rasterized()


def test_axes_that_are_given_are_used():
    figure, given = plt.subplots(2)
    axes = tl.plot_returns(rewards([1]), ax=given)
    assert list(axes) == list(given)
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_returns(rewards([1]), ax=given[0])


def test_keywords_reach_the_dots():
    upper, _ = tl.plot_returns(rewards([1]), marker="s", s=50)
    assert upper.collections[0].get_sizes().tolist() == [50]


def test_many_triangles_do_not_hide_all_dots():
    def clear(count):
        ds = tl.from_episodes([{"reward": np.ones(1)}] * count, end_reason=["cut"] * count)
        return tl.plot_returns(ds)[0].collections[0].get_alpha()

    assert clear(10) == 1
    assert clear(4000) == 0.3
