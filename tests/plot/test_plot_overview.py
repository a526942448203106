"""The panels of `plot_overview` are those of the plots it is made of."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from agents.worlds import make_world, poisoned, record
from matplotlib.colors import to_rgba

import trajlab as tl

ACTIONS = ["left", "right"]


def recording(count=12, iterations=6, **options):
    rng = np.random.default_rng(0)
    episodes = [
        {"obs": rng.normal(size=(n, 2)), "action": rng.integers(0, 2, n), "reward": rng.normal(size=n)}
        for n in rng.integers(1, 9, count)
    ]
    reasons = ["cut" if i % 4 == 3 else "terminated" for i in range(count)]
    given = {"iteration": [i * iterations // count for i in range(count)], "end_reason": reasons}
    return tl.from_episodes(episodes, units={"obs": ["m", "s"]}, **given | options)


def titles(axes):
    return [ax.get_title() for ax in axes]


def drawn(ax):
    """Return the numbers of all lines, bars and outlines in a panel."""
    out = [line.get_xydata() for line in ax.lines]
    for patch in ax.patches:
        out.append(np.array(patch.get_bbox().bounds if hasattr(patch, "get_bbox") else patch.get_data().values))
    return out


def assert_same(ax, other):
    for one, two in zip(drawn(ax), drawn(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_panels_are_those_of_the_single_plots():
    ds = recording()
    axes = tl.plot_overview(ds, labels=ACTIONS)
    assert titles(axes) == ["return", "episode length", "how episodes end", "action", "obs[0]", "obs[1]"]
    phases = {"by": "start_iteration", "groups": 4}
    assert_same(axes[0], tl.plot_learning_curve(ds))
    assert_same(axes[1], tl.plot_survival(ds, **phases))
    assert_same(axes[2], tl.plot_outcomes(ds))
    assert_same(axes[3], tl.plot_action_histogram(ds, labels=ACTIONS, **phases))
    for ax, other in zip(axes[4:], tl.plot_state_trace(ds, "obs", quantiles=(0.1, 0.9), **phases), strict=True):
        assert_same(ax, other)
    assert [text.get_text() for text in axes[3].get_xticklabels()] == ACTIONS
    assert axes[5].get_ylabel() == "obs[1] [s]"


def test_frame_says_what_it_is_of():
    figure = tl.plot_overview(recording())[0].figure
    assert figure.get_suptitle().split("\n") == [
        "12 episodes (3 cut), 9 complete; 50 transitions",
        "bands: 95 % intervals, of states 10–90 % of the episodes; n: episodes",
    ]
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "iteration at start (episodes)"
    assert [text.get_text() for text in legend.get_texts()] == ["0 (2)", "1–2 (4)", "3 (2)", "4–5 (4)"]
    lines = figure.axes[1].lines
    assert [handle.get_color().tolist() for handle in legend.legend_handles] == [
        line.get_color().tolist() for line in lines if line.get_linewidth() == 1.8
    ]


def test_legend_of_the_end_reasons_takes_no_room_from_the_bars():
    axes = tl.plot_overview(recording())
    assert [text.get_text() for text in axes[2].get_legend().get_texts()] == ["terminated (9)", "cut (3)"]
    assert axes[2].get_ylim() == (0, 1)
    assert tl.plot_overview(tl.from_episodes([{"x": np.ones(3)}] * 2, end_reason="truncated"))[0].get_ylim() == (
        -0.02,
        1.02,
    )
    assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["median"]
    assert all(ax.get_legend() is None for ax in [axes[0], *axes[3:]])


def test_panels_stand_in_line():
    ds = recording().assign(far=lambda ds: 1e6 * ds["reward"])
    axes = tl.plot_overview(ds, state=["far", "obs"], labels=["left", "a name longer than that"])
    axes[0].figure.canvas.draw()
    strips = [ax for ax in axes[0].figure.axes if ax.get_label() == "n"]
    for column in range(3):
        lefts = [ax.get_window_extent().x0 for ax in axes[column::3]]
        np.testing.assert_allclose(lefts, lefts[0])
        assert sum(abs(strip.get_window_extent().x0 - lefts[0]) < 1e-6 for strip in strips) >= 1


def test_panels_of_named_components_say_which():
    ds = recording(dims={"obs": ["axis"]}, coords={"axis": ["height", "speed"]})
    axes = tl.plot_overview(ds)
    assert titles(axes)[4:] == ["obs: height", "obs: speed"]
    assert [ax.get_ylabel() for ax in axes[4:]] == ["height [m]", "speed [s]"]


def test_without_phases_of_training():
    ds = recording(iterations=1)
    axes = tl.plot_overview(ds)
    assert not axes[0].figure.legends
    assert_same(axes[0], tl.plot_learning_curve(ds, by="start_row"))
    assert_same(axes[3], tl.plot_action_histogram(ds))
    assert_same(axes[4], tl.plot_state_trace(ds, "obs", quantiles=(0.1, 0.9))[0])


def test_what_a_recording_lacks_has_no_panel():
    ds = recording()
    assert titles(tl.plot_overview(ds.drop_vars("reward")))[0] == "episode length"
    unended = recording(end_reason=["cut"] * 12)
    assert titles(tl.plot_overview(unended.drop_vars("obs"))) == ["return", "action"]
    pixels = tl.from_episodes([{"obs": np.zeros((3, 8, 9)), "action": np.zeros((3, 2))}])
    assert titles(tl.plot_overview(pixels)) == ["episode length", "how episodes end", "action[0]", "action[1]"]


def test_fields_of_the_state_and_first_components():
    ds = recording().assign(far=lambda ds: (ds["obs"] > 1).any("obs_dim_0"))
    wide = tl.from_episodes([{"x": np.zeros((3, 6)), "y": np.arange(3), "reward": np.ones(3)}])
    assert titles(tl.plot_overview(ds, state=["far", "obs"]))[4:] == ["far", "obs[0]", "obs[1]"]
    axes = tl.plot_overview(wide, state=["y", "x"])
    assert titles(axes)[3:] == ["y", "x[0] (4 of 6 components)", "x[1]", "x[2]", "x[3]"]
    assert [ax.get_ylabel() for ax in axes[4:]] == ["x[0]", "x[1]", "x[2]", "x[3]"]


def test_parts_of_an_action_and_components_of_a_reward():
    rng = np.random.default_rng(1)
    chunk = {
        "obs": {"pos": rng.normal(size=(40, 3, 2)), "speed": rng.normal(size=(40, 3))},
        "action": {"steer": rng.normal(size=(40, 3)), "gear": rng.integers(0, 4, (40, 3))},
        "gain": rng.normal(size=(40, 3, 2)),
        "done": rng.random((40, 3)) < 0.1,
    }
    ds = tl.from_rollout(chunk, convention=tl.Convention(reward="gain"))
    axes = tl.plot_overview(ds, by="env")
    assert titles(axes) == [
        *["return[0]", "return[1]", "episode length", "how episodes end"],
        *["action.gear", "action.steer", "obs.pos[0]", "obs.pos[1]", "obs.speed"],
    ]
    means = axes[1].lines[0].get_ydata()
    want = tl.returns(ds, reward="gain")[:, 1].where(ds["complete"]).groupby(ds["env"]).mean()
    np.testing.assert_allclose(means, want)
    assert axes[0].figure.legends[0].get_texts()[0].get_text().startswith("0 (")


def test_what_there_is_no_room_for_is_named():
    rng = np.random.default_rng(1)
    parts = {f"part{i}": rng.normal(size=(9, 2, 3)) for i in range(7)}
    ds = tl.from_rollout({"obs": parts, "done": rng.random((9, 2)) < 0.3})
    axes = tl.plot_overview(ds)
    assert titles(axes)[2:] == [*(f"obs.part0[{i}]" for i in range(3)), "obs.part1[0] (1 of 3 components)"]
    left = axes[0].figure.get_suptitle().replace("\n", " ")
    assert left.endswith("not shown: obs.part2, obs.part3, obs.part4, obs.part5 and 1 more")
    every = [f"obs.part{i}" for i in range(7)]
    with pytest.raises(ValueError, match="there would be 26 panels; at most 24.*in state="):
        tl.plot_overview(ds, state=[*every, "obs.part0"])


def test_by_end_reason():
    ds = recording()
    axes = tl.plot_overview(ds, by="end_reason")
    assert_same(axes[2], tl.plot_outcomes(ds))
    assert_same(axes[3], tl.plot_action_histogram(ds, by="end_reason"))
    chosen = {"groups": {"ended": "terminated"}}
    assert_same(
        tl.plot_overview(ds, by="end_reason", **chosen)[3], tl.plot_action_histogram(ds, by="end_reason", **chosen)
    )


def test_agents():
    ds = record(poisoned(make_world(20)))
    axes = tl.plot_overview(ds)
    assert titles(axes)[-4:] == [
        *["obs[scout,0] (4 of 6 components)", "obs[scout,1]"],
        *["obs[carrier,0]", "obs[carrier,1]"],
    ]
    trace = tl.state_trace(ds, "obs")["mean"].isel(agent=1, obs_dim_0=0)
    np.testing.assert_array_equal(axes[-2].lines[0].get_ydata(), trace)


def test_what_is_not_shown_is_said():
    ds = recording()
    ds = ds.assign(action=ds["action"].where(ds["time"] > 0)).assign_coords(kind=("episode", ["a", "b"] * 6))
    ds["kind"][:3] = "c"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = tl.plot_overview(ds, by="kind", groups=["a", "b"])
    assert axes[3].get_title() == "action\nnot shown: 12 NaN"
    assert axes[0].figure.get_suptitle().endswith("in no group: 3 episodes")


def test_long_names_of_actions_are_broken():
    names = ["move towards the door on the left", "move towards the door on the right"]
    texts = [text.get_text() for text in tl.plot_overview(recording(), labels=names)[3].get_yticklabels()]
    assert texts == ["move towards the\ndoor on the left", "move towards the\ndoor on the\nright"]


def test_columns_and_dark_ground():
    narrow = tl.plot_overview(recording(), columns=1)[0].figure
    wide = tl.plot_overview(recording())[0].figure
    assert narrow.get_figwidth() == pytest.approx(wide.get_figwidth() / 3)
    assert narrow.get_figheight() > wide.get_figheight()
    with plt.style.context("dark_background"):
        axes = tl.plot_overview(recording(iterations=1))
        axes[0].figure.canvas.draw()
        assert axes[0].lines[0].get_color() == "#56B4E9"
        assert to_rgba(axes[0].get_facecolor()) == (0, 0, 0, 1)


def test_of_no_episode(blank):
    for ds, options in ((blank, {}), (blank, {"by": "seed"}), (recording().isel(episode=[]), {})):
        (ax,) = tl.plot_overview(ds, **options)
        assert [text.get_text() for text in ax.texts] == ["no episodes"]
        assert ax.get_title() == "0 episodes, 0 complete; 0 transitions"


def test_of_one_step():
    axes = tl.plot_overview(recording(1, 1))
    axes[0].figure.canvas.draw()
    assert len(axes) == 6


def test_what_is_refused():
    ds = recording()
    with pytest.raises(ValueError, match="columns=0; expected at least 1"):
        tl.plot_overview(ds, columns=0)
    with pytest.raises(KeyError, match="Did you mean 'obs'"):
        tl.plot_overview(ds, state="ob")
    with pytest.raises(TypeError, match="plot_overview: 'word' has dtype <U1"):
        tl.plot_overview(tl.from_episodes([{"word": np.array(["a"])}]), state="word")
    with pytest.raises(ValueError, match="group by 'start_iteration'"):
        tl.plot_overview(ds, by="iteration")
    with pytest.raises(ValueError, match="no reward, no action.*name fields to draw: state="):
        tl.plot_overview(tl.from_episodes([{"x": np.ones(2)}], end_reason=["cut"]))
    assert not plt.get_fignums()


def test_images_and_boards_are_named_but_not_traced():
    rng = np.random.default_rng(0)
    parts = {"board": (3, 3), "image": (9, 9), "place": (2,)}
    chunk = {
        "obs": {name: rng.normal(size=(6, 1, *shape)) for name, shape in parts.items()},
        "done": np.ones((6, 1), bool),
    }
    ds = tl.from_rollout(chunk)
    axes = tl.plot_overview(ds)
    assert titles(axes) == ["episode length", "how episodes end", "obs.place[0]", "obs.place[1]"]
    assert axes[0].figure.get_suptitle().endswith("not shown: obs.board, obs.image")
    assert titles(tl.plot_overview(ds, state="obs.board"))[-3:] == [
        *["obs.board[0,0] (3 of 9 components)", "obs.board[0,1]", "obs.board[0,2]"],
    ]
    unended = tl.from_rollout({key: value if key == "obs" else np.zeros((6, 1), bool) for key, value in chunk.items()})
    with pytest.raises(ValueError, match="no observation of numbers .* name fields to draw"):
        tl.plot_overview(unended.drop_vars("obs.place"))


def test_labels_of_actions_that_are_binned_are_refused():
    ds = recording().drop_vars("action")
    speed = recording()["obs"].isel(obs_dim_0=0, drop=True).assign_attrs(role="action", long_name="speed")
    binned = ds.assign(speed=speed)
    with pytest.raises(ValueError, match="labels= names actions 0, 1, ...; 'speed' is binned"):
        tl.plot_overview(binned, labels=ACTIONS)
    both = tl.plot_overview(recording().assign(speed=speed), labels=ACTIONS)
    assert [text.get_text() for text in both[3].get_xticklabels()] == ACTIONS


def test_the_label_of_lengths_is_not_longer_than_their_panel():
    ax = tl.plot_overview(recording())[1]
    ax.figure.canvas.draw()
    assert ax.yaxis.label.get_window_extent().height < ax.get_window_extent().height
