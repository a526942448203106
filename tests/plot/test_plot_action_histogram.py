"""Histograms as they are drawn: artists hold the numbers, texts say what they are."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import StepPatch
from ragged import make_dataset

import trajlab as tl


def actions(*episodes, dtype=np.int32, **options):
    return tl.from_episodes([{"action": np.array(e, dtype)} for e in episodes], **options)


def heights(ax):
    return [bar.get_height() for bar in ax.patches]


def texts(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_bars_are_the_counts():
    ax = tl.plot_action_histogram(actions([2, 4, 2], [3], end_reason=["terminated", "cut"]))
    assert isinstance(ax, plt.Axes)
    assert heights(ax) == [2, 1, 1]
    assert [bar.get_x() + bar.get_width() / 2 for bar in ax.patches] == pytest.approx([2, 3, 4])
    assert texts(ax.xaxis) == ["2", "3", "4"]
    assert ax.get_title() == "action: 4 transitions of 2 episodes (1 cut)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("action", "transitions")
    assert not ax.figure.legends


def test_labels_name_the_bars():
    ax = tl.plot_action_histogram(actions([0]), labels=["left", "right"])
    assert heights(ax) == [1, 0]
    assert texts(ax.xaxis) == ["left", "right"]


def test_long_labels_lie_beside_their_bars():
    names = [f"place the block number {i}" for i in range(12)]
    ax = tl.plot_action_histogram(actions([0, 0, 11]), labels=names)
    assert texts(ax.yaxis) == names
    assert [bar.get_width() for bar in ax.patches] == [2, *[0] * 10, 1]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("transitions", "action")
    bottom, top = (ax.yaxis.get_ticklabels()[i].get_window_extent().y0 for i in (0, 1))
    assert bottom > top  # the first name stands at the top


def test_groups_stand_side_by_side_as_shares():
    ax = tl.plot_action_histogram(actions([0, 1, 1, 1], [0], end_reason=["terminated", "cut"]), by="end_reason")
    first, second = ax.containers
    assert [bar.get_height() for bar in first] == [1, 0]
    assert [bar.get_height() for bar in second] == [0.25, 0.75]
    assert first[0].get_x() < second[0].get_x() < first[1].get_x()
    assert first[0].get_facecolor() != second[0].get_facecolor()
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cut (1)", "terminated (4)"]
    assert legend.get_title().get_text() == "end reason (transitions)"
    assert ax.get_ylabel() == "share of the group's transitions"


def test_ranges_are_said_in_the_legend():
    ds = actions(*[[0]] * 12, iteration=range(12))
    ax = tl.plot_action_histogram(ds, by="start_iteration")
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"{text} (3)" for text in ("0–2", "3–5", "6–8", "9–11")]


def test_a_panel_per_component():
    ds = actions([[0, 2], [1, 2]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    axes = tl.plot_action_histogram(ds)
    assert axes.shape == (2,)
    assert [heights(ax) for ax in axes] == [[1, 1, 0], [0, 0, 2]]
    assert [ax.get_xlabel() for ax in axes] == ["hip", "knee"]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    assert axes[0].figure.get_suptitle() == "action: 2 transitions of 1 episode"


def test_bins_are_an_outline_over_their_edges():
    ds = actions([0.0, 0.25, 1.0], dtype=np.float64, units={"action": "N"})
    ax = tl.plot_action_histogram(ds, bins=2)
    (outline,) = ax.patches
    assert isinstance(outline, StepPatch)
    np.testing.assert_equal(outline.get_data().values, [2, 1])
    np.testing.assert_equal(outline.get_data().edges, [0, 0.5, 1])
    assert ax.get_xlabel() == "action [N]"


def test_what_lies_outside_is_said():
    ax = tl.plot_action_histogram(actions([0.0, 5.0], [-5.0, 9.0], dtype=np.float64), bins=[0, 1])
    assert "not shown: 1 below the bins, 2 above the bins" in ax.get_title()


def test_many_values_are_an_outline():
    ax = tl.plot_action_histogram(actions(np.arange(200)))
    (outline,) = ax.patches
    assert outline.get_data().values.sum() == 200
    assert outline.get_data().edges[[0, -1]].tolist() == [-0.5, 199.5]


def test_values_far_apart_are_lines():
    ax = tl.plot_action_histogram(actions([0, 5000, 5000]))
    (lines,) = ax.collections
    assert [segment[:, 1].tolist() for segment in lines.get_segments()] == [[0, 1], [0, 2]]


def test_bools():
    ax = tl.plot_action_histogram(actions([True, False, True], dtype=bool))
    assert heights(ax) == [1, 2]
    assert texts(ax.xaxis) == ["False", "True"]


@pytest.mark.parametrize("field", ["action", "obs", "pair"])
def test_no_episode(field):
    axes = np.ravel(tl.plot_action_histogram(make_dataset([]), field, by="env"))
    assert all([text.get_text() for text in ax.texts] == ["no episodes"] for ax in axes)
    axes[0].figure.canvas.draw()


def test_axes_that_are_given_are_used():
    figure, ax = plt.subplots()
    assert tl.plot_action_histogram(actions([1, 2], [1]), by="env", ax=ax) is ax
    assert plt.get_fignums() == [figure.number]
    assert ax.get_legend() is not None
    legend, bars = ax.get_legend(), ax.patches
    figure.canvas.draw()
    assert legend.get_window_extent().y0 > max(bar.get_window_extent().y1 for bar in bars)


def test_too_few_axes_are_refused():
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_action_histogram(make_dataset([2]), "pair", ax=plt.subplots()[1])


def test_images_are_refused():
    ds = tl.from_episodes([{"image": np.zeros((2, 8, 8, 3), np.uint8)}])
    with pytest.raises(ValueError, match=r"'image' has 192 components \(8 x 8 x 3\); at most 24 are drawn"):
        tl.plot_action_histogram(ds, "image")


def test_keywords_reach_the_bars():
    ax = tl.plot_action_histogram(actions([1]), color="red", alpha=0.5)
    assert ax.patches[0].get_facecolor() == (1, 0, 0, 0.5)


@pytest.mark.parametrize("number", [2, 7])
@pytest.mark.parametrize("given", [False, True])
def test_names_of_sixty_letters_leave_room_for_bars(number, given):
    names = [f"{'a label that goes on and on and does not end before ' * 2}{i}" for i in range(number)]
    ax = plt.subplots(figsize=(3, 3), layout="constrained")[1] if given else None
    ax = tl.plot_action_histogram(actions([0, 0, 1], [1]), labels=names, by="env", ax=ax)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert all(one.y0 > other.y1 for one, other in itertools.pairwise(boxes))
    assert ax.xaxis.label.get_window_extent().x1 <= ax.figure.bbox.x1
    assert len({text.get_text() for text in ax.get_yticklabels()}) == len(boxes)
    assert ax.get_window_extent().width > 0.35 * ax.figure.bbox.width
