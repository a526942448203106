"""Traces as they are drawn: lines and bands hold the numbers, and how many are alive stands beneath."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from drawn import strip_of, strips_of
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.colors import to_rgba
from ragged import make_dataset

import trajlab as tl
from trajlab.plot._style import neutral


def heights(*episodes, **options):
    return tl.from_episodes([{"height": np.array(e, float)} for e in episodes], **options)


def singles(ax):
    (found,) = [artist for artist in ax.collections if isinstance(artist, LineCollection)]
    return found


def bands(ax):
    return [artist for artist in ax.collections if isinstance(artist, FillBetweenPolyCollection)]


def drawn_text(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_line_is_the_mean():
    ds = heights([1, 5, 6], [3], end_reason=["terminated", "cut"], units={"height": "m"})
    ax = tl.plot_state_trace(ds, "height")
    trace = tl.state_trace(ds, "height")
    median, mean = ax.lines[:2]
    np.testing.assert_equal(mean.get_xdata(), [0, 1, 2])
    np.testing.assert_equal(mean.get_ydata(), trace["mean"])
    np.testing.assert_equal(median.get_ydata(), trace["quantiles"].sel(quantile=0.5))
    assert drawn_text(ax.figure) == ["mean", "10–90 %", "median", "2 single episodes"]
    assert ax.get_ylabel() == "height [m]"
    assert ax.get_title() == "height: 2 episodes (1 cut)\nn: episodes alive"


def test_the_band_spans_the_quantiles():
    ds = heights([0, 0], [10, 20])
    (band,) = bands(tl.plot_state_trace(ds, "height", quantiles=(0.25, 0.75)))
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == 2.5
    assert corners[:, 1].max() == 15
    outer, inner = bands(tl.plot_state_trace(ds, "height", quantiles=(0.75, 0.25, 0, 1)))
    assert outer.get_paths()[0].vertices[:, 1].max() == 20
    assert inner.get_paths()[0].vertices[:, 1].max() == 15


def test_without_quantiles_the_band_is_the_deviation():
    ax = tl.plot_state_trace(heights([0, 0], [10, 20]), "height", quantiles=False)
    (band,) = bands(ax)
    assert band.get_paths()[0].vertices[:, 1].max() == 20
    assert drawn_text(ax.figure) == ["mean", "± standard deviation", "2 single episodes"]


def test_how_many_are_alive_stands_beneath():
    ax = tl.plot_state_trace(heights([1, 1, 1], [2]), "height")
    (strip,) = strips_of(ax)
    (steps,) = strip.patches
    assert steps.get_data().values.tolist() == [2, 1, 1]
    assert strip.get_ylabel() == "n"
    assert strip.get_xlabel() == "time [steps]"
    assert strip.get_yticks().tolist() == [0, 2]
    ax.figure.canvas.draw()
    assert strip.get_position().y1 < ax.get_position().y0
    assert strip.get_xlim() == ax.get_xlim()


def test_single_episodes_stand_behind():
    ax = tl.plot_state_trace(heights([1, 5, 6], [3, 2]), "height")
    segments = singles(ax).get_segments()
    assert [segment.tolist() for segment in segments] == [[[0, 1], [1, 5], [2, 6]], [[0, 3], [1, 2]]]
    assert singles(ax).get_zorder() < min(line.get_zorder() for line in ax.lines)


def test_single_episodes_are_spread_over_all_whatever_their_length():
    ds = heights(*[[float(i)] * (1 + i % 5) for i in range(101)])
    ax = tl.plot_state_trace(ds, "height", episodes=5)
    assert [segment[0, 1] for segment in singles(ax).get_segments()] == [0, 25, 50, 75, 100]
    assert drawn_text(ax.figure)[-1] == "5 single episodes"


def test_single_episodes_by_number_and_none():
    ds = heights([1.0], [2.0], [3.0]).isel(episode=[2, 1])
    ax = tl.plot_state_trace(ds, "height", episodes=[1])
    assert [segment[0, 1] for segment in singles(ax).get_segments()] == [2]
    ax = tl.plot_state_trace(ds, "height", episodes=False)
    assert len(singles(ax).get_segments()) == 0
    assert drawn_text(ax.figure)[-1] == "median"
    with pytest.raises(KeyError) as caught:
        tl.plot_state_trace(ds, "height", episodes=[0])
    assert str(caught.value) == "no episode 0: the Dataset holds 2, numbered 1 to 2"


def test_a_negative_number_of_single_episodes_is_refused():
    ds = heights([1.0], [2.0])
    assert len(singles(tl.plot_state_trace(ds, "height", episodes=0)).get_segments()) == 0
    with pytest.raises(ValueError, match="episodes=-1; expected how many"):
        tl.plot_state_trace(ds, "height", episodes=-1)


def test_groups_are_colours():
    ds = heights([1, 1], [3, 3], [9, 9], env=[0, 0, 1])
    ax = tl.plot_state_trace(ds, "height", by="env", quantiles=False)
    first, second = ax.lines
    np.testing.assert_equal(first.get_ydata(), [2, 2])
    np.testing.assert_equal(second.get_ydata(), [9, 9])
    assert not np.array_equal(first.get_color(), second.get_color())
    colors = singles(ax).get_colors()
    np.testing.assert_allclose(colors[0][:3], first.get_color()[:3])
    np.testing.assert_allclose(colors[2][:3], second.get_color()[:3])
    assert drawn_text(ax.figure) == ["0 (2)", "1 (1)", "mean", "± standard deviation", "3 single episodes"]
    assert ax.figure.legends[0].get_title().get_text() == "environment (episodes)"
    assert ax.get_title().endswith("\nn: episodes alive")
    (strip,) = strips_of(ax)
    assert [steps.get_data().values.tolist() for steps in strip.patches] == [[2, 2], [1, 1]]


def test_the_legend_of_groups_says_what_their_lines_are():
    ax = tl.plot_state_trace(heights([1, 1], [3, 3], [9, 9], env=[0, 0, 1]), "height", by="env")
    (legend,) = ax.figure.legends
    grey = to_rgba(neutral(ax))
    drawn = dict(zip(drawn_text(ax.figure), legend.legend_handles, strict=True))
    assert [*drawn] == ["0 (2)", "1 (1)", "mean", "10–90 %", "median", "3 single episodes"]
    styles = {name: (drawn[name].get_linestyle(), drawn[name].get_linewidth()) for name in ("mean", "median")}
    assert styles == {"mean": ("-", 1.8), "median": ("--", 1.0)}
    assert drawn["3 single episodes"].get_linewidth() == singles(ax).get_linewidth()[0]
    assert {to_rgba(drawn[name].get_color()) for name in ("mean", "median", "3 single episodes")} == {grey}
    assert drawn["10–90 %"].get_facecolor()[:3] == grey[:3]


def test_a_panel_per_component():
    ds = tl.from_episodes(
        [{"state": np.array([[1.0, 10.0], [2.0, 20.0]])}],
        dims={"state": ["axis"]},
        coords={"axis": ["x", "angle"]},
        units={"state": ["m", "rad"]},
    )
    axes = tl.plot_state_trace(ds, "state")
    assert axes.shape == (2,)
    assert [ax.get_ylabel() for ax in axes] == ["x [m]", "angle [rad]"]
    assert [ax.lines[1].get_ydata().tolist() for ax in axes] == [[1, 2], [10, 20]]
    assert len(strips_of(axes[0])) == 2
    assert axes[0].figure.get_suptitle().startswith("state: 1 episode\n")


def test_a_single_step_is_seen():
    ax = tl.plot_state_trace(heights([1.0], [3.0]), "height")
    assert any(line.get_marker() == "o" and line.get_ydata().tolist() == [2] for line in ax.lines)


@pytest.mark.parametrize("by", [None, "env"])
def test_no_episode(by):
    axes = tl.plot_state_trace(make_dataset([]), "obs", by=by)
    assert all([text.get_text() for text in ax.texts] == ["no episodes"] for ax in axes)
    axes[0].figure.canvas.draw()


def test_axes_that_are_given_are_used():
    figure, (left, right) = plt.subplots(1, 2)
    before = left.get_position()
    ax = tl.plot_state_trace(heights([1, 2]), "height", ax=left)
    assert ax is left
    assert plt.get_fignums() == [figure.number]
    (strip,) = strips_of(ax)
    figure.canvas.draw()
    assert before.y0 <= strip.get_position().y0 + 1e-9
    assert ax.get_position().y1 <= before.y1 + 1e-9
    assert not right.lines


def test_axes_placed_by_hand_are_split_too():
    figure = plt.figure()
    ax = tl.plot_state_trace(heights([1, 2]), "height", ax=figure.add_axes((0.1, 0.1, 0.8, 0.8)))
    (strip,) = strips_of(ax)
    assert strip.get_position().y0 == pytest.approx(0.1)
    assert strip.get_position().y1 < ax.get_position().y0


def test_images_are_refused():
    ds = tl.from_episodes([{"image": np.zeros((2, 8, 8, 3), np.uint8)}])
    with pytest.raises(ValueError, match=r"'image' has 192 components \(8 x 8 x 3\).*Select some: ds.isel"):
        tl.plot_state_trace(ds, "image")


@pytest.mark.parametrize(
    ("shape", "panels"),
    [((84, 84), 9), ((10, 5), 15), ((5, 10), 20), ((8, 8, 3), 24), ((30,), 3), ((25, 1, 2), 6), ((2, 30, 30), 18)],
)
def test_the_advice_on_many_components_works(shape, panels):
    ds = tl.from_episodes([{"reward": np.zeros((1, *shape))}])
    for draw in (lambda ds: tl.plot_state_trace(ds, "reward"), tl.plot_learning_curve):
        with pytest.raises(ValueError, match="components .* at most 24 are drawn.*Select some: ds.isel") as told:
            draw(ds)
        assert len(draw(eval(str(told.value).partition("Select some: ")[2], {"ds": ds}))) == panels


def test_the_advice_on_a_single_panel_works():
    ds = tl.from_episodes([{"x": np.zeros((1, 2, 3))}])
    ax = plt.subplots()[1]
    with pytest.raises(ValueError, match="there are 6 panels to draw.*or select components first: ds.isel") as told:
        tl.plot_state_trace(ds, "x", ax=ax)
    assert tl.plot_state_trace(eval(str(told.value).partition("first: ")[2], {"ds": ds}), "x", ax=ax) is ax


def test_keywords_reach_the_line_of_the_mean():
    ax = tl.plot_state_trace(heights([1, 2]), "height", linewidth=5)
    assert [line.get_linewidth() for line in ax.lines] == [1, 5]


def test_a_warning_is_for_the_caller():
    with pytest.warns(UserWarning, match="'height' has NaN") as seen:
        tl.plot_state_trace(heights([1, np.nan]), "height")
    assert seen[0].filename == __file__


def test_colours_stand_out_from_a_dark_ground():
    light = tl.plot_state_trace(heights([1, 2]), "height").lines[0].get_color()
    with plt.style.context("dark_background"):
        dark = tl.plot_state_trace(heights([1, 2]), "height").lines[0].get_color()
    assert light != dark


def test_no_global_option_changes():
    before = dict(plt.rcParams)
    ds = heights([1, 2], [3])
    tl.plot_state_trace(ds, "height")
    assert dict(plt.rcParams) == before


ALIGNED = [("end", "steps to the end", "lag"), ("fraction", "fraction of the episode", "fraction")]


@pytest.mark.parametrize(("align", "label", "dim"), ALIGNED)
def test_aligned(align, label, dim):
    ds = tl.from_episodes(
        [{"x": np.arange(n, dtype=float)} for n in (3, 5, 4)], end_reason=["terminated", "truncated", "cut"]
    )
    ax, want = tl.plot_state_trace(ds, "x", align=align), tl.state_trace(ds, "x", align=align)
    line = next(line for line in ax.lines if line.get_linewidth() == 1.8)
    np.testing.assert_array_equal(line.get_xdata(), want[dim].values)
    np.testing.assert_array_equal(line.get_ydata(), want["mean"].values)
    strip = strip_of(ax)
    assert strip.get_xlabel() == label
    np.testing.assert_array_equal(strip.patches[0].get_data().values, want["n"].values)
    edges = strip.patches[0].get_data().edges
    np.testing.assert_allclose((edges[:-1] + edges[1:]) / 2, want[dim].values)
    assert "not shown: 1" in ax.get_title()
    ends = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    want_ends = {"end": [[-2, 0], [-4, 0]], "fraction": [[1 / 6, 5 / 6], [0.1, 0.9]]}[align]
    np.testing.assert_allclose([[x.min(), x.max()] for x in ends], want_ends)


def test_aligned_by_an_event():
    ds = tl.from_episodes([{"x": np.arange(n, dtype=float)} for n in (9, 5, 4)])
    times = xr.DataArray([4, 1, np.nan], {"episode": ds["episode"]}, ["episode"])
    ax = tl.plot_state_trace(ds, "x", align=times, window=(2, 3))
    assert strip_of(ax).get_xlabel() == "steps from the event"
    (mark,) = [line for line in ax.lines if list(line.get_xdata()) == [0, 0]]
    assert mark.get_ydata()[0] == 0
    assert "not shown: 1 without the event" in ax.get_title()
    inside = np.concatenate([segment[:, 0] for segment in ax.collections[0].get_segments()])
    assert (inside.min(), inside.max()) == (-2, 3)
