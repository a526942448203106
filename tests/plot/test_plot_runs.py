"""Several runs as they are drawn: told apart, named, counted, and nothing over anything else."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.transforms import Bbox

import trajlab as tl
from trajlab.plot._style import CYCLE


def episodes(*rewards, **options):
    rows = [{"action": np.arange(len(e)) % 3, "reward": np.array(e, float)} for e in rewards]
    return tl.from_episodes(rows, **options)


def several(labels, number=12):
    rng = np.random.default_rng(0)
    runs = [
        episodes(
            *[rng.normal(i, size=rng.integers(1, 9)) for _ in range(number)],
            end_reason=["cut" if e % 6 == 5 else "terminated" for e in range(number)],
            iteration=range(number),
        )
        for i in range(len(labels))
    ]
    return tl.concat(runs, run=labels)


PLOTS = {
    "bars": lambda ds, **options: tl.plot_action_histogram(ds, by="run", **options),
    "outlines": lambda ds, **options: tl.plot_action_histogram(ds, "reward", by="run", **options),
    "trace": lambda ds, **options: tl.plot_state_trace(ds, "reward", by="run", **options),
    "returns": lambda ds, **options: tl.plot_returns(ds, by="run", **options),
}


def first(axes):
    return np.ravel(np.asarray(axes, object))[0]


def legend_of(axes):
    ax = first(axes)
    return ax.get_legend() or ax.figure.legends[0]


def entries(axes):
    return [text.get_text() for text in legend_of(axes).get_texts()]


def points(collection):
    return collection.get_offsets().tolist()


# Returns --------------------------------------------------------------------------------------------------------


def test_returns_of_each_run_have_dots_and_a_line_of_their_own():
    long = episodes(*[[i] for i in range(20)], iteration=range(20))
    short = episodes([5, 5], [7], [1], end_reason=["terminated", "cut", "terminated"], iteration=[0, 10, 19])
    ds = tl.concat({"long": long, "short": short})
    upper, lower = axes = tl.plot_returns(ds, by="run")
    dots, few, cut = upper.collections
    assert points(dots) == [[i, i] for i in range(20)]
    assert points(few) == [[0, 10], [19, 1]]
    assert points(cut) == [[10, 7]]
    assert points(lower.collections[1]) == [[0, 2], [19, 1]]
    (line,) = upper.lines
    assert line.get_ydata().tolist() == [2, 7, 12, 17]
    assert to_rgba(line.get_color())[:3] == tuple(dots.get_facecolor()[0, :3]) == to_rgba(CYCLE[0])[:3]
    assert tuple(few.get_facecolor()[0, :3]) == tuple(cut.get_edgecolor()[0, :3]) == to_rgba(CYCLE[1])[:3]
    assert entries(axes) == ["long (20)", "short (2)", "not complete (1)"]
    assert legend_of(axes).get_title().get_text() == "run (complete episodes)"
    assert [handle.get_linestyle() for handle in legend_of(axes).legend_handles] == ["-", "None", "None"]
    title = "return and length of 23 episodes (1 cut)\nlines: median of every 5 complete"
    assert upper.figure.get_suptitle() == title


def test_the_dots_of_a_small_run_are_large_and_in_front():
    ds = tl.concat({"small": episodes([1.0]), "big": episodes(*[[1.0]] * 3000)})
    small, big = tl.plot_returns(ds, by="run")[0].collections
    assert small.get_sizes()[0] > big.get_sizes()[0]
    assert small.get_alpha() > big.get_alpha()
    assert small.get_zorder() > big.get_zorder()


def test_runs_without_iterations_are_drawn_over_each_other():
    ds = tl.concat({"a": episodes([1, 2], [3]), "b": episodes([4], [5])})
    _, lower = tl.plot_returns(ds, by="run")
    assert lower.get_xlabel() == "first row"
    assert [points(dots) for dots in lower.collections] == [[[0, 2], [2, 1]], [[0, 1], [1, 1]]]
    assert tl.plot_returns(tl.concat({"a": episodes([1], [2])}), by="run")[1].get_xlabel() == "episode"


def test_some_runs_only():
    axes = tl.plot_returns(several(range(3)), by="run", groups=[2, 0], discount=0.5)
    assert entries(axes)[:2] == ["2 (10)", "0 (10)"]
    assert "in no group: 12 episodes" in axes[0].figure.get_suptitle()
    for plot, what in (("bars", "12 episodes"), ("trace", "12 episodes")):
        ax = PLOTS[plot](several(range(3)), groups=[2, 0])
        assert f"in no group: {what}" in ax.get_title()


def test_returns_by_any_coordinate_over_episodes():
    ds = several(["a", "b"])
    assert entries(tl.plot_returns(ds, by="end_reason")) == ["cut (0)", "terminated (20)", "not complete (4)"]
    assert entries(tl.plot_returns(ds, by="start_iteration"))[0] == "0–2 (6)"
    with pytest.raises(ValueError, match=r"by='iteration' has a value per transition.*group by 'start_iteration'"):
        tl.plot_returns(ds, by="iteration")
    with pytest.raises(ValueError, match="by='action' has a value per transition; expected a coordinate over episode$"):
        tl.plot_returns(ds, by="action")
    with pytest.raises(KeyError, match="Did you mean 'run'"):
        tl.plot_returns(ds, by="runs")
    with pytest.raises(ValueError, match="groups=2 needs by="):
        tl.plot_returns(ds, groups=2)


def test_keywords_for_the_dots_of_runs():
    ds = several(["a", "b"], 3)
    numbers = np.arange(6)
    upper, _ = tl.plot_returns(ds, by="run", c=numbers)
    assert [dots.get_array().tolist() for dots in upper.collections] == [[0, 1, 2], [3, 4, 5]]
    upper, _ = axes = tl.plot_returns(ds, by="run", color="red")
    assert [dots.get_facecolor()[0, :3].tolist() for dots in upper.collections] == [[1, 0, 0]] * 2
    assert legend_of(axes).legend_handles[0].get_markerfacecolor() == "red"


def test_no_run():
    with pytest.warns(UserWarning, match="no episode"):
        blank = tl.from_episodes([])
    for ds in (blank, several(["a", "b"]).isel(episode=[])):
        for plot in (PLOTS["bars"], PLOTS["trace"], PLOTS["returns"]):
            ax = first(plot(ds))
            assert [text.get_text() for text in ax.texts] == ["no episodes"]
            ax.figure.canvas.draw()


# What tells runs apart ------------------------------------------------------------------------------------------


def looks(plot, axes):
    """Return what the legend shows of each run: colour, and form."""
    named = zip(legend_of(axes).legend_handles, entries(axes), strict=True)
    handles = [handle for handle, text in named if text.endswith(")") and "not" not in text]
    if plot == "bars":
        return [(h.get_facecolor(), h.get_hatch()) for h in handles]
    if plot == "outlines":
        return [(to_rgba(h.get_color()), h.get_linestyle()) for h in handles]
    return [(to_rgba(h.get_markeredgecolor()), h.get_marker()) for h in handles]


@pytest.mark.parametrize("plot", PLOTS)
def test_runs_that_are_kinds_differ_in_hue_and_then_in_form(plot):
    for labels in ([f"seed {i}" for i in range(24)], range(24)):
        found = looks(plot, PLOTS[plot](several(labels, 2)))
        assert len(set(found)) == 24
        assert [color[:3] for color, *_ in found[:8]] == [to_rgba(color)[:3] for color in CYCLE]
        assert [color for color, *_ in found[8:16]] == [color for color, *_ in found[:8]]


@pytest.mark.parametrize("plot", PLOTS)
def test_runs_that_are_amounts_go_from_dark_to_light(plot):
    found = looks(plot, PLOTS[plot](several([10.0 ** (-i / 4) for i in range(26)], 2)))
    wanted = matplotlib.colormaps["viridis"](np.linspace(0, 0.87, 26))
    np.testing.assert_allclose([color[:3] for color, *_ in found], wanted[:, :3])


@pytest.mark.parametrize("plot", PLOTS)
def test_more_than_can_be_told_apart_are_refused(plot):
    for labels, some in (([f"seed {i}" for i in range(25)], r"\['seed 0', 'seed 1'\]"), (range(25), r"\[0, 1\]")):
        with pytest.raises(ValueError, match=rf"by='run' has 25 groups; at most 24 are .* groups={some}, or join"):
            PLOTS[plot](several(labels, 1))


def test_markers_on_the_mean_and_dashes_beneath():
    ds = several(range(10), 3)
    ax = tl.plot_state_trace(ds, "reward", by="run", quantiles=False, episodes=False)
    assert [line.get_marker() for line in ax.lines if line.get_linewidth() == 1.8] == ["None"] * 8 + ["s"] * 2
    (strip,) = [other for other in ax.figure.axes if other.get_label() == "n"]
    assert [steps.get_linestyle() for steps in strip.patches] == ["-"] * 8 + ["--"] * 2


def test_lines_far_apart_are_dashed_too():
    rows = tl.from_episodes([{"action": np.array([0, 5000])}])
    ax = tl.plot_action_histogram(tl.concat([rows] * 9), by="run")
    styles = [lines.get_linestyle()[0] for lines in ax.collections if isinstance(lines, LineCollection)]
    assert [dashes is None for _, dashes in styles] == [True] * 8 + [False]


def test_a_colour_given_for_hatched_bars():
    ds = several(range(9), 2)
    ax = tl.plot_action_histogram(ds, by="run", color="red")
    assert {bar.get_facecolor() for bar in ax.patches} == {to_rgba("red")}
    ax = tl.plot_action_histogram(ds, by="run", fc="red", ec="blue")
    assert {bar.get_edgecolor() for bar in ax.patches} == {to_rgba("blue")}


# Where the legend stands ----------------------------------------------------------------------------------------

SETS = {
    "two": ["ppo", "sac"],
    "six": [f"method {letter}" for letter in "abcdef"],
    "twelve": list(range(12)),
    "rates": [1e-5 * 2**i for i in range(12)],
    "long": [f"PPO with layer norm, entropy 0.0{i}, clip 0.2, gae 0.95, seed {i}" for i in range(6)],
    "longer than a line": [f"{'PPO with layer norm, entropy 0.01, clip 0.2, ' * 3}seed {i}" for i in range(6)],
    "wide": ["W" * 150 + str(i) for i in range(3)],
}


@pytest.mark.parametrize("labels", SETS)
@pytest.mark.parametrize("plot", PLOTS)
def test_the_legend_stands_below_and_within_the_figure(plot, labels):
    axes = PLOTS[plot](several(SETS[labels]))
    figure = first(axes).figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    legend = legend_of(axes).get_window_extent(renderer)
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert legend.y0 >= 0
    lowest = min(ax.get_tightbbox(renderer).y0 for ax in figure.axes)
    assert legend.y1 <= lowest + 1
    assert first(axes).get_window_extent(renderer).height > 60
    text = " ".join(" ".join(entries(axes)).split())
    assert all(str(label)[:60] in text for label in SETS[labels] if isinstance(label, str) and " " in label)


@pytest.mark.parametrize("labels", SETS)
@pytest.mark.parametrize("plot", ["bars", "trace", "returns"])
def test_a_legend_within_axes_leaves_the_data_free(plot, labels):
    figure, given = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    axes = PLOTS[plot](several(SETS[labels]), ax=given[0] if plot == "returns" else given[0, 0])
    figure.canvas.draw()
    ax = first(axes)
    renderer = figure.canvas.get_renderer()
    texts = Bbox.union([text.get_window_extent(renderer) for text in legend_of(axes).get_texts()])
    frame = ax.get_window_extent(renderer)
    if texts.y1 > frame.y1:  # there was no room for it inside
        assert frame.y1 <= texts.y0
        assert texts.y1 <= ax.title.get_window_extent(renderer).y0
        assert texts.x0 >= figure.bbox.x0
    else:
        assert texts.y0 > ax.transData.transform((0, top_of(ax)))[1]
        assert texts.x0 >= frame.x0
    assert texts.x1 <= frame.x1


def top_of(ax):
    """Return the largest value drawn."""
    tops = [bar.get_height() for bar in ax.patches]
    tops += [np.nanmax(np.asarray(line.get_ydata(), float)) for line in ax.lines]
    tops += [
        np.max(path.vertices[:, 1])
        for found in ax.collections
        for path in found.get_paths()
        if not len(found.get_offsets()) > 1
    ]
    tops += [np.max(found.get_offsets()[:, 1]) for found in ax.collections if len(found.get_offsets()) > 1]
    return max(tops)


@pytest.mark.parametrize("label", ["_hidden", "$x_{$", "", "a\nb"])
def test_labels_of_any_text(label):
    for plot in PLOTS.values():
        axes = plot(several([label, "other"], 3))
        first(axes).figure.canvas.draw()
        assert len(entries(axes)) >= 2


def test_rates_that_are_nearly_the_same_are_told_apart():
    texts = entries(PLOTS["bars"](several([0.1, 0.1 + 1e-9], 1)))
    assert [text.split()[0] for text in texts] == ["0.1", "0.100000001"]
