"""What `plot_milestones` draws is what `milestones` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import entries, steps_of, strips_of

import trajlab as tl


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    lengths = [3, 1, 6, 2, 2, 5, 1, 4]
    ds = tl.from_episodes(
        [{"height": rng.normal(size=n)} for n in lengths], end_reason=["terminated", "cut", "truncated", "done"] * 2
    )
    return ds.assign_coords(policy=("episode", ["a", "b"] * 4))


EVENTS = {"up": lambda ds: ds["height"] > 0.2, "down": lambda ds: ds["height"] < -0.5}


def test_lines_medians_and_n(ds):
    ax, want = tl.plot_milestones(ds, EVENTS), tl.milestones(ds, EVENTS)
    drawn = [line.get_ydata() for line in steps_of(ax)]
    np.testing.assert_array_equal(drawn, want["share"].values)
    dots = [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert [x for x, _ in dots] == want["median"].values.tolist()
    (strip,) = strips_of(ax)
    np.testing.assert_array_equal([patch.get_data().values for patch in strip.patches], want["n"].values)
    finals = [f"{name}: {want['share'].sel(event=name).values[-1]:.0%}".replace("%", " %") for name in EVENTS]
    assert entries(ax) == [*finals, "median of those"]
    assert ax.get_title().startswith("milestones of 8 episodes (2 cut)")


def test_a_single_event_has_a_line_for_each_group(ds):
    ax, want = tl.plot_milestones(ds, EVENTS["up"], by="policy"), tl.milestones(ds, EVENTS["up"], by="policy")
    np.testing.assert_array_equal([line.get_ydata() for line in steps_of(ax)], want["share"].values)
    assert [text.split(":")[0] for text in entries(ax)] == ["a (4)", "b (4)", "median of those"]


def test_several_events_have_a_panel_for_each_group(ds):
    axes, want = tl.plot_milestones(ds, EVENTS, by="policy"), tl.milestones(ds, EVENTS, by="policy")
    for ax, policy in zip(axes, "ab", strict=True):
        drawn = [line.get_ydata() for line in steps_of(ax)]
        np.testing.assert_array_equal(drawn, want["share"].sel(policy=policy).values)
        assert ax.get_title().startswith(f"policy: {policy}\nup:\u00a0")
    assert entries(axes[0]) == ["up", "down", "median of those"]
    assert len(strips_of(axes[0])) == 2


def test_components_have_a_line_each():
    ds = tl.from_episodes(
        [{"obs": np.array([[0.0, 5.0], [3.0, 0.0]])}], dims={"obs": ["axis"]}, coords={"axis": ["x", "y"]}
    )
    assert entries(tl.plot_milestones(ds, lambda ds: ds["obs"] > 1)) == ["x: 100 %", "y: 100 %", "median of those"]


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_milestones(ds, EVENTS["up"], ax=other, color="red") is other
    assert steps_of(other)[0].get_color() == "red"
    assert not one.lines
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_milestones(ds, EVENTS, by="policy", ax=one)


def test_an_episode_of_one_step():
    ax = tl.plot_milestones(tl.from_episodes([{"hit": np.array([True])}]), "hit")
    assert [line.get_marker() for line in ax.lines if line.get_marker() != "None"] == ["o", "o"]
    assert ax.get_title().startswith("hit, of 1 episode")


def test_of_no_episode(blank):
    ax = tl.plot_milestones(blank, "hit")
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_too_many_lines():
    ds = tl.from_episodes([{"obs": np.ones((2, 30))}])
    with pytest.raises(ValueError, match="30 events; at most 24"):
        tl.plot_milestones(ds, lambda ds: ds["obs"] > 0)


def test_the_legend_explains_dots_only_where_there_are_any(ds):
    (legend,) = tl.plot_milestones(ds, EVENTS).figure.legends
    assert [handle.get_marker() for handle in legend.legend_handles] == ["None", "None", "o"]
    never = tl.plot_milestones(ds, lambda ds: ds["height"] > 99)
    assert entries(never) == ["reached: 0 %"]
    assert not [line for line in never.lines if line.get_marker() == "o"]
