"""What `plot_survival` draws is what `survival` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import strip_of

import trajlab as tl


def recording(lengths, reasons, **coords):
    ds = tl.from_episodes([{"reward": np.zeros(n)} for n in lengths], end_reason=reasons)
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


@pytest.fixture
def ds():
    lengths, ended = [1, 2, 2, 4, 6, 6], ["terminated", "cut", "terminated", "terminated", "truncated", "terminated"]
    return recording(lengths, ended, policy=["a", "b"] * 3)


def test_line_band_and_median(ds):
    ax, want = tl.plot_survival(ds), tl.survival(ds)
    line, dot = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), want["survival"].values)
    np.testing.assert_array_equal(dot.get_xydata(), [[want["median"].item(), 0.5]])
    (band,) = ax.collections
    corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
    assert (1.0, float(want["lower"].values[1])) in corners
    assert (1.0, float(want["upper"].values[1])) in corners
    (steps,) = strip_of(ax).patches
    np.testing.assert_array_equal(steps.get_data().values, want["n"].values)
    assert "6 episodes (1 cut)" in ax.get_title()
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["estimate", "95 % interval", "median 4"]
    assert legend.legend_handles[2].get_marker() == dot.get_marker()


def test_groups(ds):
    ax, want = tl.plot_survival(ds, by="policy"), tl.survival(ds, by="policy")
    drawn = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 1]
    np.testing.assert_array_equal(drawn, want["survival"].values)
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *["a (3): median 2", "b (3): median 4"],
        *["95 % interval", "median"],
    ]
    assert legend.get_title().get_text() == "policy (episodes)"
    assert len(strip_of(ax).patches) == 2


def test_median_that_is_not_reached():
    ax = tl.plot_survival(recording([3, 4], ["cut", "cut"]))
    assert len(ax.lines) == 1
    (legend,) = ax.figure.legends
    assert legend.get_texts()[2].get_text() == "median not reached"
    assert legend.legend_handles[2].get_color() == "none"


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_survival(ds, ax=other, color="red", linewidth=3) is other
    assert (other.lines[0].get_color(), other.lines[0].get_linewidth()) == ("red", 3)
    assert not one.lines


def test_left_out_is_said():
    chunk = {"obs": np.zeros((6, 2)), "done": np.array([[0, 1], [1, 0], [0, 0], [0, 1], [1, 0], [0, 0]], bool)}
    ax = tl.plot_survival(tl.from_rollout(chunk, starts_fresh=False))
    assert "not shown: 2 whose start was not seen" in ax.get_title()


def test_of_no_episode(blank):
    ax = tl.plot_survival(blank)
    assert not ax.lines
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_level_has_to_be_between_0_and_1(ds):
    with pytest.raises(ValueError, match="confidence=1; expected a level between 0 and 1"):
        tl.plot_survival(ds, confidence=1)


def test_a_legend_in_given_axes_stands_above_the_curves(ds):
    _, ax = plt.subplots(figsize=(2.5, 2.8))
    tl.plot_survival(ds, by="policy", ax=ax)
    ax.figure.canvas.draw()
    bottom = ax.get_legend().get_window_extent().y0
    assert ax.transData.transform((0, 1))[1] <= bottom
    assert max(ax.get_yticks()) == 1
