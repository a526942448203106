"""Plots of next to nothing, with texts of any kind and keywords by any alias."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.text import Text
from matplotlib.transforms import Bbox

import trajlab as tl
from trajlab.plot import _text


@pytest.fixture
def ds():
    return tl.from_episodes(
        [
            {"action": np.array([1, 0, 1]), "reward": np.array([1.0, 2, 3])},
            {"action": np.array([1]), "reward": np.ones(1)},
        ]
    )


def all_masked():
    chunk = {"obs": np.zeros((3, 2)), "action": np.zeros((3, 2), int), "reward": np.zeros((3, 2))}
    rec = tl.Recorder()
    rec.record({**chunk, "done": np.zeros((3, 2), bool)}, mask=np.zeros((3, 2), bool))
    with pytest.warns(UserWarning, match="no episode"):
        return rec.to_dataset()


def said(axes):
    axes = list(np.ravel(np.asarray(axes, object)))
    axes[0].figure.canvas.draw()
    return [[text.get_text() for text in ax.texts] for ax in axes]


# Nothing to draw ---------------------------------------------------------------------------------------------


def test_no_episode_and_no_field(blank):
    assert said(tl.plot_action_histogram(blank)) == [["no episodes"]]
    assert said(tl.plot_action_histogram(blank, by="seed", labels=["left", "right"])) == [["no episodes"]]
    assert said(tl.plot_state_trace(blank, "state.position")) == [["no episodes"]]
    assert said(tl.plot_state_trace(blank, "state.position", by="end_reason")) == [["no episodes"]]
    assert said(tl.plot_returns(blank, x="seed")) == [["no episodes"]] * 2


@pytest.mark.parametrize("by", [None, "env", "end_reason"])
def test_no_time_step(by, ds):
    for empty in (all_masked(), ds.isel(time=slice(0, 0))):
        assert said(tl.plot_state_trace(empty, "reward", by=by)) == [["no episodes"]]
        assert said(tl.plot_action_histogram(empty, by=by)) == [["no episodes"]]


@pytest.mark.parametrize(
    "draw",
    [
        lambda ds: tl.plot_survival(ds, by="seed"),
        lambda ds: tl.plot_outcomes(ds, by="seed"),
        lambda ds: tl.plot_learning_curve(ds, by="seed", num_resamples=2),
        lambda ds: tl.plot_state_histogram(ds, "action", over="seed"),
        lambda ds: tl.plot_action_histogram(ds, by="seed"),
    ],
)
def test_no_group_has_a_member(ds, draw):
    (texts,) = said(draw(ds.isel(episode=[]).assign_coords(seed=("episode", np.zeros(0)))))
    assert texts == ["no episodes"]
    with pytest.warns(UserWarning, match="in no group"):
        (texts,) = said(draw(ds.assign_coords(seed=("episode", [np.nan, np.nan]))))
    assert texts in (["no episodes"], ["no values"])


def test_no_action_is_counted(ds):
    cut = tl.from_episodes([{"action": np.array([1, 0, 1])}], end_reason=["cut"])
    assert said(tl.plot_action_histogram(cut, by="phase")) == [["no values"]]
    with pytest.warns(UserWarning, match="NaN"):
        assert said(tl.plot_action_histogram(ds.assign(action=ds["action"].where(False)))) == [["no values"]]


def test_no_component_is_refused():
    ds = tl.from_episodes([{"x": np.ones((2, 0)), "reward": np.ones((2, 0))}])
    for draw in (tl.plot_action_histogram, tl.plot_state_histogram, tl.plot_autocorrelation, tl.plot_state_trace):
        with pytest.raises(ValueError, match=r"'x' has components of shape \(0,\), so none to draw"):
            draw(ds, "x")
    with pytest.raises(ValueError, match="none to draw"):
        tl.plot_learning_curve(ds, num_resamples=2)


def test_no_group_is_refused(ds):
    for plot in (tl.plot_action_histogram, tl.plot_state_trace):
        with pytest.raises(ValueError, match="groups={} names no group"):
            plot(ds, "action", by="env", groups={})


def test_groups_of_steps_have_the_colours_of_an_order(ds):
    for by in ("phase", "time"):
        ax = tl.plot_action_histogram(ds, by=by)
        colors = [to_rgba(bars[0].get_facecolor()) for bars in ax.containers]
        assert colors[0] == plt.get_cmap("viridis")(0.0)
        assert len(set(colors)) == 3


def test_groups_where_there_are_none_are_no_keyword_of_an_artist(ds):
    for plot in (tl.plot_action_raster, tl.plot_state_histogram):
        with pytest.raises(TypeError, match="by='env': this plot has no such argument"):
            plot(ds, "reward", by="env")


# Keywords ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [{"lw": 5, "c": "red"}, {"linewidth": 5, "color": "red"}])
def test_the_line_of_the_mean_takes_aliases(ds, kwargs):
    ax = tl.plot_state_trace(ds, "reward", quantiles=False, **kwargs)
    (line,) = [line for line in ax.lines if line.get_linewidth() == 5]
    assert to_rgba(line.get_color()) == to_rgba("red")


def test_dots_take_a_colour_by_any_name(ds):
    for kwargs in ({"c": "red"}, {"color": "red"}, {"facecolor": "red"}, {"fc": "red", "lw": 2}):
        upper, _ = tl.plot_returns(ds, **kwargs)
        dots = upper.collections[0]
        assert dots.get_facecolor()[0, :3].tolist() == [1, 0, 0]
        assert dots.get_linewidths().tolist() == [kwargs.get("lw", 0)]
        (legend,) = upper.figure.legends
        assert legend.legend_handles[0].get_markerfacecolor() == "red"


def test_dots_may_have_a_number_each():
    reasons = ["terminated", "cut", "terminated"]
    ds = tl.from_episodes([{"reward": np.ones(n)} for n in (1, 2, 3)], end_reason=reasons)
    upper, _ = tl.plot_returns(ds, c=[10.0, 20, 30])
    assert upper.collections[0].get_array().tolist() == [10, 30]


@pytest.mark.parametrize("kwargs", [{"c": "red"}, {"color": "red"}, {"fc": "red", "ec": "blue"}])
def test_bars_take_aliases(ds, kwargs):
    for options in ({}, {"bins": 2}, {"labels": ["a rather long name", "another long name" * 4]}):
        ax = tl.plot_action_histogram(ds, lw=3, **options, **kwargs)
        assert ax.patches[0].get_facecolor() == to_rgba("red")
        assert ax.patches[0].get_linewidth() == 3
        if "ec" in kwargs:
            assert ax.patches[0].get_edgecolor() == to_rgba("blue")


@pytest.mark.parametrize("kwargs", [{"lw": 3, "c": "red"}, {"linewidths": 3, "colors": "red"}])
def test_needles_take_aliases(kwargs):
    ds = tl.from_episodes([{"action": np.array([0, 5000])}])
    (lines,) = tl.plot_action_histogram(ds, **kwargs).collections
    assert lines.get_linewidths().tolist() == [3]
    assert lines.get_colors()[0].tolist() == list(to_rgba("red"))


# Texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["$$", "$5 and $x_{$", r"$\nothing$", "a_b^c", "$"])
def test_any_text_is_drawn(text):
    ds = tl.from_episodes(
        [{"x": np.array([[0.0, 1], [2, 3]]), "reward": np.ones(2), "action": np.array([0, 1])}],
        dims={"x": ["axis"]},
        coords={"axis": [text, "b"]},
        units={"x": text, "reward": text},
    ).assign_coords(kind=("episode", [text]))
    ds["kind"].attrs["long_name"] = text
    for label in (text, f"{text} {text} and so on"):
        said(tl.plot_action_histogram(ds, labels=[label, "other"], by="kind"))
    said(tl.plot_state_trace(ds, "x", by="kind"))
    said(tl.plot_returns(ds, x="kind"))
    ds["x"].attrs["long_name"] = ds["reward"].attrs["long_name"] = text
    said(tl.plot_state_trace(ds, "x"))
    said(tl.plot_action_histogram(ds, "reward", bins=2))


def test_a_formula_stays_one():
    ds = tl.from_episodes([{"action": np.array([0, 1])}])
    ax = tl.plot_action_histogram(ds, labels=[r"$\theta$", "$$"])
    assert [text.get_text() for text in ax.get_xticklabels()] == [r"$\theta$", r"\$\$"]


# Axes --------------------------------------------------------------------------------------------------------


def test_too_few_axes_are_told_what_helps(ds):
    one = plt.subplots()[1]
    with pytest.raises(ValueError, match=r"there are 2 panels to draw; expected 2 Axes, .* for the length$"):
        tl.plot_returns(ds, ax=one)
    joints = tl.from_episodes([{"action": np.zeros((2, 2))}], dims={"action": ["joint"]})
    with pytest.raises(ValueError, match=r"select components first: ds.isel\({'joint': \[0\]}\)"):
        tl.plot_state_trace(joints, "action", ax=one)
    assert tl.plot_state_trace(joints.isel({"joint": [0]}), "action", ax=one) is one
    with pytest.raises(ValueError, match=r"expected 1 Axes, as in ax=plt.subplots\(1\)\[1\]$"):
        tl.plot_state_trace(ds, "reward", ax=plt.subplots(2)[1])


def test_labels_of_a_mapping_stand_below_their_bars():
    ds = tl.from_episodes([{"action": np.array([7, 500, 7])}])
    ax = tl.plot_action_histogram(ds, labels={500: "far", 7: "near"})
    assert [bar.get_height() for bar in ax.patches] == [2, 1]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["near", "far"]


def test_a_derived_field_is_called_by_its_own_name():
    ds = tl.from_episodes([{"obs": np.arange(3.0), "reward": np.ones(3)}])
    derived = ds.assign(speed=ds["obs"] * 2)
    assert "speed" in tl.plot_state_trace(derived, "speed").get_ylabel()
    derived["speed"].attrs["long_name"] = "speed of the cart"
    assert "speed of the cart" in tl.plot_state_trace(derived, "speed").get_ylabel()
    result = tl.action_histogram(derived.assign(is_far=(ds["obs"] > 1)), "is_far")
    assert result["value"].attrs["long_name"] == "is_far"


def test_steps_are_not_looked_at_one_by_one(ds, monkeypatch):
    def iter_bezier(*_, **__):
        raise AssertionError("seconds for tens of thousands of steps")

    monkeypatch.setattr("matplotlib.path.Path.iter_bezier", iter_bezier)
    ax = tl.plot_state_trace(ds, "reward")
    (strip,) = (other for other in ax.figure.axes if other.get_label() == "n")
    assert strip.get_ylim() == (0, pytest.approx(2.2))
    assert strip.dataLim.intervalx.tolist() == [-0.5, 2.5]
    assert tl.plot_action_rates(ds).dataLim.bounds == (-0.5, 0, 3, 1)


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_legends_of_long_names_neither_leave_small_axes_nor_cover_what_they_show(ds, layout):
    names = [f"the policy that was trained with the large replay buffer, number {i}" for i in range(2)]
    figure, ax = plt.subplots(figsize=(2.6, 3.0), layout=layout)
    tl.plot_survival(ds.assign_coords(seed=("episode", names)), by="seed", ax=ax)
    figure.canvas.draw()
    legend, axes = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert figure.bbox.x0 <= legend.x0 < legend.x1 <= axes.x1 + 1
    top = ax.transData.transform((0, 1))[1]  # of what is drawn: all survive the first step
    assert axes.y0 < top <= legend.y0 + 1
    assert legend.y1 <= (title_of(ax).get_window_extent().y0 if layout else axes.y1)


LONG = [f"{name}_the_policy_that_was_trained_with_a_large_replay_buffer_{name}" for name in "abcdef"]
SMALL = {
    "rates": lambda ds, ax: tl.plot_action_rates(ds, labels=LONG, ax=ax),
    "histogram": lambda ds, ax: tl.plot_action_histogram(ds, by="policy", labels=LONG, ax=ax),
    "trace": lambda ds, ax: tl.plot_state_trace(ds, "reward", by="policy", ax=ax),
    "survival": lambda ds, ax: tl.plot_survival(ds, by="policy", ax=ax),
    "outcomes": lambda ds, ax: tl.plot_outcomes(ds, by="policy", ax=ax),
    "entropy": lambda ds, ax: tl.plot_action_entropy(ds, by="policy", ax=ax),
    "raster": lambda ds, ax: tl.plot_action_raster(ds, labels=LONG, ax=ax),
    "first time": lambda ds, ax: tl.plot_first_action_time(ds, labels=LONG, ax=ax),
    "autocorrelation": lambda ds, ax: tl.plot_autocorrelation(ds, "reward", by="policy", ax=ax),
    "saturation": lambda ds, ax: tl.plot_action_saturation(ds, "reward", low=-1.0, high=1.0, by="policy", ax=ax),
}


@pytest.mark.parametrize("size", [(2.0, 2.0), (3.3, 2.5)], ids=["tiny", "narrow"])
@pytest.mark.parametrize("plot", SMALL.values(), ids=SMALL)
def test_six_names_of_sixty_letters_fit_into_a_small_figure(plot, size):
    rng = np.random.default_rng(0)
    episodes = [{"action": rng.integers(0, 6, n), "reward": rng.normal(size=n)} for n in rng.integers(5, 40, 30)]
    ds = tl.from_episodes(episodes, end_reason=["cut", *["terminated"] * 3, "truncated"] * 6)
    ds = ds.assign_coords(policy=("episode", LONG * 5))
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    plot(ds, ax)
    figure.canvas.draw()
    legend, axes = ax.get_legend(), ax.get_window_extent()
    texts = Bbox.union([text.get_window_extent() for text in legend.get_texts()])
    assert figure.bbox.x0 <= texts.x0 < texts.x1 <= axes.x1
    assert title_of(ax).get_window_extent().y1 <= figure.bbox.y1
    if texts.y1 > axes.y1:  # above what is shown, and below the title
        assert axes.y1 <= texts.y0
        written = title_of(ax)
        assert texts.y1 <= written.get_window_extent().y0
        assert written.get_window_extent().x0 >= figure.bbox.x0
    assert axes.height > 0.15 * figure.bbox.height
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(set(labels)) == len(labels)


def test_a_legend_in_a_grid_within_a_grid_leaves_its_neighbours_as_they_are(ds):
    names = [f"the policy that was trained with the large replay buffer, number {i}" for i in range(2)]
    figure = plt.figure(figsize=(9.0, 5.0), layout="constrained")
    above, *others = figure.add_gridspec(1, 2)[0].subgridspec(2, 2).subplots().flat
    sizes = [other.xaxis.label.get_fontsize() for other in others]
    tl.plot_survival(ds.assign_coords(seed=("episode", names)), by="seed", ax=above)
    figure.canvas.draw()
    assert above.xaxis.label.get_fontsize() < sizes[0]
    assert [other.xaxis.label.get_fontsize() for other in others] == sizes
    assert above.get_legend().get_window_extent().x0 >= figure.bbox.x0


def test_four_plots_of_six_groups_in_one_figure_of_the_usual_size():
    rng = np.random.default_rng(0)
    episodes = [{"action": rng.integers(0, 4, n), "reward": rng.normal(size=n)} for n in rng.integers(5, 60, 60)]
    ds = tl.from_episodes(episodes, end_reason=["terminated", "cut"] * 30)
    ds = ds.assign_coords(policy=("episode", [f"policy {i % 6}" for i in range(60)]))
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.8), layout="constrained")
    tl.plot_milestones(ds, lambda ds: ds["action"] == 1, by="policy", ax=axes[0, 0])
    tl.plot_return_to_go(ds, by="policy", ax=axes[0, 1])
    tl.plot_outcomes(ds, by="policy", ax=axes[1, 0])
    tl.plot_action_histogram(ds, by="policy", ax=axes[1, 1])
    figure.canvas.draw()
    for ax in axes.flat:
        assert ax.get_window_extent().height > 0.04 * figure.bbox.height
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(set(texts)) == len(texts)


def test_texts_in_a_subfigure_are_as_long_as_in_a_figure_of_its_size(ds):
    ds["reward"].attrs["long_name"] = "the angular velocity of the left front wheel in the frame of the vehicle"
    _, ax = plt.subplots(figsize=(4, 3))
    half = plt.figure(figsize=(8, 3)).subfigures(1, 2)[0]
    wide, narrow = tl.plot_state_trace(ds, "reward", ax=ax), tl.plot_state_trace(ds, "reward", ax=half.subplots())
    assert narrow.get_title() == wide.get_title()
    assert narrow.get_ylabel() == wide.get_ylabel()


def test_axes_with_no_room_at_all_are_drawn_in(ds):
    _, ax = plt.subplots(figsize=(0.6, 0.6), layout="constrained")
    tl.plot_survival(ds, by="env", ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(text.startswith("95") and text.endswith("interval") for text in texts)


def title_of(ax):
    """Return the text above Axes, wherever it stands."""
    title = ax.get_title() or ax.get_title(loc="right")
    return next(text for text in ax.get_children() if isinstance(text, Text) and text.get_text() == title)


ALIKE = [f"action number {number} with a rather long descriptive name" for number in range(5)]


@pytest.mark.parametrize("name", ["action_ngrams", "action_transitions", "action_runs"])
def test_long_names_of_actions_leave_room_for_each_group(name):
    """They differ in the middle only, where labels are cut first."""
    rng = np.random.default_rng(0)
    teams = [f"experiment group {number % 6} with a name of about sixty letters, more or less" for number in range(12)]
    ds = tl.from_episodes([{"action": rng.integers(0, 5, 30)} for _ in teams])
    ds = ds.assign_coords(team=("episode", teams))
    axes = np.ravel(getattr(tl, f"plot_{name}")(ds, labels=ALIKE, by="team"))
    figure = axes[0].figure
    figure.draw_without_rendering()
    for ax in axes[:6]:
        assert ax.get_window_extent().width > 0.1 * figure.bbox.width
    names = [ax.get_yticklabels() for ax in axes[:6:3]]
    assert len({text.get_text() for text in names[0]}) >= 5
    for ax in axes[:6]:
        boxes = [text.get_window_extent() for text in ax.get_yticklabels() if text.get_visible() and text.get_text()]
        others = [other.get_window_extent() for other in axes[:6] if other is not ax]
        assert not any(box.overlaps(other) for box in boxes for other in others)


@pytest.mark.parametrize(
    ("labels", "most", "want"),
    [
        (["left", "right"], 5, ["left", "right"]),
        (["a long name", "another one"], 6, ["a…name", "a… one"]),
        (["one and the same"] * 2, 7, ["on…same"] * 2),
        (ALIKE, 6, [f"…{number}…" for number in range(5)]),
        (["group 1 of three (12)", "group 2 of three (12)"], 9, ["…1… (12)", "…2… (12)"]),
        (["left", "left and up", "left and down"], 5, None),
        (["$x$" * 9, "$x$" * 8], 4, None),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_names_that_are_cut_stay_different(labels, most, want, ends):
    got = _text.told_apart(labels, most, ends=ends)
    assert len(set(got)) == len(set(labels))
    assert all(len(short) <= max(len(label), most) for short, label in zip(got, labels, strict=True))
    if want is not None and ends:
        assert got == want


def test_names_beside_low_bars_stay_different():
    labels = [f"the action of the arm with number {number} that moves it a little further" for number in range(8)]
    _, ax = plt.subplots(figsize=(5, 2.2), layout="constrained")
    tl.plot_action_histogram(tl.from_episodes([{"action": np.arange(40) % 8}]), labels=labels, ax=ax)
    assert len({text.get_text() for text in ax.get_yticklabels()}) == 8
