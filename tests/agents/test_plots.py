"""What is drawn of agents: the numbers of the analyses, agent by agent, and nothing of those that are done."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from agents.worlds import cells, chunk_of, convention_of, live, make_world, poisoned, record
from matplotlib.collections import LineCollection

import trajlab as tl

WORLD = make_world(50)
EPISODES = live(WORLD)


@pytest.fixture
def ds():
    return record(poisoned(WORLD), dims={"obs": ["xy"]}, coords={"xy": ["x", "y"]}, units={"obs": "m"})


def strips_of(axes):
    return [ax for ax in np.ravel(axes)[0].figure.axes if ax.get_label() == "n"]


def test_a_trace_and_its_strip_are_those_of_the_agent(ds):
    axes = tl.plot_state_trace(ds, "obs", episodes=False)
    trace = tl.state_trace(ds, "obs")
    strips = strips_of(axes)
    assert len(axes) == len(strips) == 6
    for number, (ax, strip) in enumerate(zip(axes, strips, strict=True)):
        agent, component = divmod(number, 2)
        own = trace.isel(agent=agent, xy=component)
        assert ax.get_ylabel().replace("\n", " ") == f"{WORLD.agents[agent]}, {'xy'[component]} [m]"
        mean = next(line for line in ax.lines if line.get_linewidth() == 1.8)
        np.testing.assert_array_equal(mean.get_ydata(), own["mean"])
        (stairs,) = strip.patches
        assert stairs.get_data().values.tolist() == own["n"].values.tolist()
        alive = [len(cells(WORLD, EPISODES, "obs", agent, t)) for t in range(ds.sizes["time"])]
        assert own["n"].values.tolist() == alive


def test_strips_of_groups(ds):
    axes = tl.plot_state_trace(ds, "reward", by="end_reason", episodes=False)
    trace = tl.state_trace(ds, "reward", by="end_reason")
    for agent, strip in enumerate(strips_of(axes)):
        got = [patch.get_data().values.tolist() for patch in strip.patches]
        assert got == trace["n"].isel(agent=agent).values.tolist()
    (legend,) = axes[0].figure.legends
    counts = ds["end_reason"].to_series().value_counts()
    named = [text.get_text() for text in legend.texts]
    assert sorted(named) == sorted([*(f"{k} ({n})" for k, n in counts.items()), "mean", "10–90 %", "median"])


def test_a_field_of_no_agent_has_one_panel(ds):
    ax = tl.plot_state_trace(ds, "wind", episodes=False)
    (stairs,) = strips_of(ax)[0].patches
    assert stairs.get_data().values.sum() == WORLD.end.size


def test_single_episodes_are_drawn_as_far_as_the_agent_takes_part(ds):
    axes = tl.plot_state_trace(ds, "reward", episodes=[0, 3])
    for agent, ax in enumerate(axes):
        lines = next(c for c in ax.collections if type(c) is LineCollection)
        for number, segment in zip([0, 3], lines.get_segments(), strict=True):
            one = EPISODES[number]
            counted = segment[np.isfinite(segment[:, 1]), 1]
            want = WORLD.reward[one.rows, one.env, agent][one.alive[:, agent]]
            np.testing.assert_array_equal(counted, want)


def test_histograms_count_who_takes_part(ds):
    axes = tl.plot_action_histogram(ds, labels=["left", "right", "up", "down"])
    assert [ax.get_xlabel() for ax in axes] == list(WORLD.agents)
    for agent, ax in enumerate(axes):
        taken = np.bincount(cells(WORLD, EPISODES, "action", agent), minlength=4)
        assert [bar.get_height() for bar in ax.patches] == taken.tolist()


def test_returns_of_each_agent(ds):
    axes = tl.plot_returns(ds)
    assert len(axes) == 4
    returns = tl.returns(ds)
    for agent, ax in enumerate(axes[:3]):
        drawn = np.concatenate([dots.get_offsets()[:, 1] for dots in ax.collections])
        np.testing.assert_allclose(sorted(drawn), sorted(returns.isel(agent=agent).values))


def test_an_agent_that_never_takes_part_further_leaves_its_panel_short(ds):
    last = max(one.alive.sum(0)[2] for one in EPISODES)
    (ax,) = [tl.plot_state_trace(ds.sel(agent="medic"), "reward", episodes=False)]
    mean = next(line for line in ax.lines if line.get_linewidth() == 1.8)
    assert np.isfinite(mean.get_ydata()).sum() == last


def test_long_names_are_broken_within_their_panel():
    names = ["an_agent_with_a_very_long_name_number_0", "the_adversary_number_one_of_the_left_team", "x"]
    chunk = chunk_of(WORLD, "TNA")
    ds = tl.from_rollout(chunk, convention=convention_of(WORLD, "TNA", agents=names))
    for axes in (tl.plot_action_histogram(ds), tl.plot_state_trace(ds, "reward")):
        figure = axes[0].figure
        figure.canvas.draw()
        for ax, name in zip(axes, names, strict=True):
            label = ax.xaxis.label if ax.get_xlabel() else ax.yaxis.label
            assert label.get_text().replace("\n", "") == name
            box = label.get_window_extent()
            assert box.x0 >= -1
            assert box.x1 <= figure.bbox.x1 + 1


def test_too_many_panels_say_what_to_select(ds):
    wide = ds.isel(xy=[0] * 9)
    with pytest.raises(ValueError, match="'obs' has 27 components \\(3 x 9\\); at most 24"):
        tl.plot_state_trace(wide, "obs")
    assert not plt.get_fignums()
