"""What `plot_action_rates` and `plot_action_entropy` draw is what the analyses return."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import entries, strips_of
from matplotlib.colors import to_rgba

import trajlab as tl
from trajlab.plot._style import CYCLE

BOTH = (tl.plot_action_rates, tl.plot_action_entropy)


def recording(*episodes, **options):
    return tl.from_episodes([{"action": np.array(e)} for e in episodes], **options)


@pytest.fixture
def ds():
    reasons = ["terminated", "cut", "terminated", "cut"]
    return recording([0, 2, 2, 0, 1], [0], [1, 0], [0, 0, 2], end_reason=reasons, env=[0, 0, 1, 1])


def areas(ax):
    """Return the height of each stacked area (area, time)."""
    return np.array([patch.get_data().values - patch.get_data().baseline for patch in ax.patches])


# Rates -------------------------------------------------------------------------------------------------------


def test_areas_and_strip(ds):
    ax, want = tl.plot_action_rates(ds), tl.action_rates(ds)
    np.testing.assert_allclose(areas(ax), want["share"].values.T, atol=1e-12)
    assert ax.patches[0].get_data().edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert [patch.get_facecolor() for patch in ax.patches] == [to_rgba(color) for color in CYCLE[:3]]
    assert entries(ax) == ["0", "1", "2"]
    (strip,) = strips_of(ax)
    assert strip.patches[0].get_data().values.tolist() == want["n"].values.tolist()
    assert ax.get_title().split("\n") == ["action: 4 episodes (2 cut)", "n: episodes alive"]
    assert ax.get_ylim() == (0, 1)


def test_names_of_actions(ds):
    assert entries(tl.plot_action_rates(ds, labels=["left", "stay", "right", "jump"])) == [
        "left",
        "stay",
        "right",
        "jump",
    ]


def test_the_rarest_of_many_actions_are_one_area():
    taken = [0] * 2 + [1] + [2] * 3 + [3] * 4 + [4] * 5 + [5] * 6 + [6] + [7] * 8 + [8] * 9
    ds = recording(*[[action] for action in taken])
    ax, want = tl.plot_action_rates(ds), tl.action_rates(ds)["share"].values[0]
    assert entries(ax) == ["0", "2", "3", "4", "5", "7", "8", "2 others"]
    np.testing.assert_allclose(areas(ax)[:, 0], [*want[[0, 2, 3, 4, 5, 7, 8]], want[[1, 6]].sum()])
    assert len({patch.get_facecolor() for patch in ax.patches}) == 8
    assert len(entries(tl.plot_action_rates(recording(*[[action] for action in range(8)])))) == 8


def test_a_panel_for_each_group(ds):
    axes, want = tl.plot_action_rates(ds, by="env"), tl.action_rates(ds, by="env")
    assert [ax.get_title() for ax in axes] == ["environment: 0", "environment: 1"]
    for number, (ax, strip) in enumerate(zip(axes, strips_of(axes[0]), strict=True)):
        np.testing.assert_allclose(areas(ax), want["share"].isel(env=number).values.T, atol=1e-12)
        assert strip.patches[0].get_data().values.tolist() == want["n"].isel(env=number).values.tolist()


def test_a_panel_for_each_component():
    ds = recording([[0, 1], [1, 1]], [[0, 0]])
    axes, want = tl.plot_action_rates(ds), tl.action_rates(ds)
    for number, ax in enumerate(axes):
        np.testing.assert_allclose(areas(ax), want["share"].isel(action_dim_0=number).values.T)
        assert ax.get_title() == f"action[{number}]"


def test_a_legend_inside_of_given_axes_hides_no_area(ds):
    _, given = plt.subplots()
    tl.plot_action_rates(ds, ax=given)
    given.figure.canvas.draw()
    bottom = given.get_legend().get_window_extent().y0
    assert given.transData.transform((0, 1))[1] <= bottom + 1


# Entropy -----------------------------------------------------------------------------------------------------


def test_curve_and_the_most_that_n_can_reach(ds):
    ax, want = tl.plot_action_entropy(ds), tl.action_entropy(ds)
    most, curve = ax.lines
    np.testing.assert_array_equal(curve.get_ydata(), want["entropy"].values)
    np.testing.assert_allclose(most.get_ydata(), np.log2(want["n"].values))
    assert most.get_linestyle() == ":"
    assert ax.get_ylabel() == "entropy [bits]"
    (strip,) = strips_of(ax)
    assert strip.patches[0].get_data().values.tolist() == want["n"].values.tolist()


def test_curves_of_groups(ds):
    ax, want = tl.plot_action_entropy(ds, by="env"), tl.action_entropy(ds, by="env")
    np.testing.assert_array_equal([line.get_ydata() for line in ax.lines[1::2]], want["entropy"].values)
    assert entries(ax) == ["0 (2)", "1 (2)", "most n can reach"]
    (strip,) = strips_of(ax)
    assert [patch.get_data().values.tolist() for patch in strip.patches] == want["n"].values.tolist()


def test_curves_of_components():
    ds = recording([[0, 1], [1, 1]], [[1, 1]])
    axes, want = tl.plot_action_entropy(ds), tl.action_entropy(ds)
    np.testing.assert_array_equal([ax.lines[1].get_ydata() for ax in axes], want["entropy"].values.T)
    assert [ax.get_title() for ax in axes] == ["action[0]", "action[1]"]


def test_a_single_step_is_seen():
    ax = tl.plot_action_entropy(recording([0], [1]))
    assert [line.get_marker() for line in ax.lines if len(line.get_xdata()) == 1][-1] == "o"


def test_a_window_pools_steps(ds):
    ax, want = tl.plot_action_entropy(ds, window=3), tl.action_entropy(ds, window=3)
    most, curve = ax.lines
    np.testing.assert_array_equal(curve.get_ydata(), want["entropy"].values)
    np.testing.assert_allclose(most.get_ydata(), np.log2(want["n"].values))
    assert "n: transitions within 3 steps" in ax.get_title()
    flagged = ds.assign(late=(ds["time"] > 0).broadcast_like(ds["mask"]) & ds["mask"])
    assert entries(tl.plot_action_entropy(flagged, window=3, by="late"))[:2] == ["False", "True"]
    assert entries(tl.plot_action_entropy(flagged, by="late"))[:2] == ["False (4)", "True (7)"]


def test_episodes_are_dots_and_triangles(ds):
    ax, want = tl.plot_action_entropy(ds, per="episode", color="red"), tl.action_entropy(ds, per="episode")
    dots, triangles = ax.collections
    bits = want["entropy"].values
    np.testing.assert_allclose(dots.get_offsets(), [[0, bits[0]], [2, bits[2]]])
    np.testing.assert_allclose(triangles.get_offsets(), [[1, bits[1]], [3, bits[3]]])
    assert dots.get_facecolor()[0, :3].tolist() == [1, 0, 0]
    assert entries(ax) == ["complete (2)", "not complete (2)"]
    assert ax.get_title() == "entropy of action within each episode: 4 episodes (2 cut)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("episode", "entropy [bits]")


def test_episodes_of_components_and_of_none(blank):
    ds = recording([[0, 1], [1, 1]], [[1, 1]])
    axes, want = tl.plot_action_entropy(ds, per="episode"), tl.action_entropy(ds, per="episode")
    for component, ax in enumerate(axes):
        assert ax.collections[0].get_offsets()[:, 1].tolist() == want["entropy"].values[:, component].tolist()
        assert ax.get_title() == f"action[{component}]"
    assert [text.get_text() for text in tl.plot_action_entropy(blank, per="episode").texts] == ["no episodes"]


# Both --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plot", BOTH)
def test_axes_given_and_keywords(plot, ds):
    _, (one, other) = plt.subplots(1, 2)
    assert plot(ds, ax=other, alpha=0.5) is other
    artist = other.patches[0] if plot is tl.plot_action_rates else other.lines[1]
    assert artist.get_alpha() == 0.5
    assert not one.patches
    assert not one.lines
    with pytest.raises(ValueError, match="ax= has 2 Axes, but there are 1 panels"):
        plot(ds, ax=[one, other])


@pytest.mark.parametrize("plot", BOTH)
def test_nan_is_said(plot):
    ds = recording([1, 2], [2, 2])
    with pytest.warns(UserWarning, match="1 values"):
        ax = plot(ds.assign(action=ds["action"].where((ds["time"] != 1) | (ds["episode"] != 0))))
    assert "not shown: 1 NaN" in ax.get_title()


@pytest.mark.parametrize("plot", BOTH)
@pytest.mark.parametrize("by", [None, "seed"])
def test_nothing_to_draw(plot, by, blank, ds):
    assert [text.get_text() for text in plot(blank, by=by).texts] == ["no episodes"]
    by = "env" if by else None
    for ax in np.ravel(np.asarray(plot(ds.isel(time=slice(0, 0)), by=by), object)):
        assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_agents():
    ends = np.array([[False], [True], [False]])
    agents = {name: {"a": x, "b": x + 0} for name, x in {"obs": np.zeros((3, 1)), "reward": np.zeros((3, 1))}.items()}
    chunk = {**agents, "action": {"a": np.array([[0], [1], [0]]), "b": np.array([[1], [0], [1]])}}
    chunk["done"] = {"a": np.array([[True], [True], [False]]), "b": ends, "__all__": ends}
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    for plot, result in ((tl.plot_action_rates, tl.action_rates(ds)), (tl.plot_action_entropy, tl.action_entropy(ds))):
        axes = plot(ds)
        assert [ax.get_title() for ax in axes] == ["a", "b"]
        alive = [strip.patches[0].get_data().values.tolist() for strip in strips_of(axes[0])]
        assert alive == result["n"].values.T.tolist() == [[2, 0], [2, 1]]
    assert [ax.get_title().split("\n") for ax in tl.plot_action_transitions(ds)] == [["a", "0 pairs"], ["b", "1 pair"]]


def test_the_legend_explains_the_dotted_line_only_where_it_is_seen():
    few, many = (recording(*[[0, 1, 0], [1, 0, 1]] * n) for n in (1, 50))
    ax = tl.plot_action_entropy(few)
    assert entries(ax) == ["entropy", "most n can reach"]
    assert [line.get_linestyle() for line in ax.figure.legends[0].legend_handles] == ["-", ":"]
    ax = tl.plot_action_entropy(many)  # of 100 episodes it is beyond 6 bits
    assert not ax.figure.legends
    assert ax.lines[0].get_ydata().min() > ax.get_ylim()[1]
