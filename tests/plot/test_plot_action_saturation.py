"""What `plot_action_saturation` draws is what `action_saturation` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import entries
from matplotlib.colors import to_rgba

import trajlab as tl


@pytest.fixture
def ds():
    episodes = [
        {"action": np.array([[-1, 0.5, 1], [0, 3, 1]]), "ctrl": np.array([[-1, 0.5, 1], [0, 1, 1]])},
        {"action": np.array([[0, -1, 1.0]]), "ctrl": np.array([[0, -1, 0.9]])},
    ]
    joints = {"dims": {key: ["joint"] for key in ("action", "ctrl")}, "coords": {"joint": ["hip", "knee", "toe"]}}
    return tl.from_episodes(episodes, end_reason=["terminated", "cut"], env=[3, 5], **joints)


def heights(ax):
    """Return the height of each bar (side, bar)."""
    return np.array([[bar.get_height() for bar in bars] for bars in ax.containers])


def test_a_bar_for_each_component(ds):
    ax, want = tl.plot_action_saturation(ds, low=-1, high=1), tl.action_saturation(ds, low=-1, high=1)
    np.testing.assert_allclose(heights(ax), want["share"].values.T)
    bottoms = np.array([[bar.get_y() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose(bottoms[1:], np.cumsum(want["share"].values.T, axis=0)[:-1])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["hip", "knee", "toe"]
    assert entries(ax) == ["low", "inside", "high"]
    one = ds.isel(joint=[0])
    counts = tl.action_saturation(one, low=-1, high=1)["count"].values[0]
    assert entries(tl.plot_action_saturation(one, low=-1, high=1)) == [
        f"{side} ({count})" for side, count in zip(["low", "inside", "high"], counts, strict=True)
    ]
    assert ax.get_title().split("\n") == ["action at its bounds -1 and 1", "3 transitions of 2 episodes (1 cut)"]
    assert ax.get_ylim() == (0, 1)


def test_a_panel_for_each_component_of_groups(ds):
    options = {"low": -1, "high": [1, 1, 1.5], "tolerance": 0.1, "executed": "ctrl", "by": "env"}
    axes, want = tl.plot_action_saturation(ds, **options), tl.action_saturation(ds, **options)
    assert [ax.get_title() for ax in axes] == ["hip", "knee", "toe"]
    for number, ax in enumerate(axes):
        np.testing.assert_allclose(heights(ax), want["share"].isel(joint=number).values.T)
        (marks,) = ax.lines
        assert marks.get_ydata().tolist() == want["clipped"].isel(joint=number).values.tolist()
        assert [text.get_text() for text in ax.get_xticklabels()] == ["3 (2)", "5 (1)"]
    assert entries(axes[0])[-1] == "other than ctrl"
    assert axes[0].figure.get_suptitle().startswith("action at its bounds, within 0.1")


def test_long_names_lie_on_their_side(ds):
    ds = ds.assign_coords(joint=[f"the {name} of the left hind leg" for name in ds["joint"].values])
    ax = tl.plot_action_saturation(ds, low=-1, high=1, executed="ctrl")
    want = tl.action_saturation(ds, low=-1, high=1, executed="ctrl")
    widths = np.array([[bar.get_width() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose(widths, want["share"].values.T)
    assert ax.lines[0].get_xdata().tolist() == want["clipped"].values.tolist()
    assert ax.yaxis_inverted()
    assert [text.get_text() for text in ax.get_yticklabels()] == ds["joint"].values.tolist()


def test_without_bounds_bars_are_of_what_was_clipped(ds):
    ax, want = tl.plot_action_saturation(ds, executed="ctrl"), tl.action_saturation(ds, executed="ctrl")
    assert heights(ax).tolist() == [want["clipped"].values.tolist()]
    assert entries(ax) == ["other than ctrl"]
    assert not ax.lines
    assert ax.get_title().split("\n")[0] == "action other than ctrl"
    axes = tl.plot_action_saturation(ds, executed="ctrl", by="env")
    assert [text.get_text() for text in axes[0].get_xticklabels()] == ["3", "5"]


def test_axes_given_and_style(ds):
    _, axes = plt.subplots(1, 3)
    drawn = tl.plot_action_saturation(ds, low=-1, high=1, by="env", ax=axes, color="red", alpha=0.5)
    assert list(drawn) == list(axes)
    assert axes[1].patches[0].get_facecolor() == to_rgba("red", 0.5)
    with pytest.raises(ValueError, match="ax= has 3 Axes, but there are 1 panels"):
        tl.plot_action_saturation(ds, low=-1, high=1, ax=axes)


def test_what_is_not_shown_is_said(ds):
    ds = ds.assign(action=ds["action"].where(ds["time"] == 0))
    with pytest.warns(UserWarning, match="3 values of 'action' are NaN"):
        ax = tl.plot_action_saturation(ds, low=-1, high=1)
    assert "not shown: 3 NaN" in ax.get_title()


@pytest.mark.parametrize("by", [None, "seed"])
def test_of_no_episode(blank, by):
    ax = tl.plot_action_saturation(blank, by=by)
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_names_of_sixty_letters_leave_room_for_bars():
    ds = tl.from_episodes([{"action": np.ones((2, 3))}] * 12)
    for count in (2, 12):
        names = [f"a run whose name goes on and on and on, and ends at last {i % count}" for i in range(12)]
        axes = tl.plot_action_saturation(
            ds.assign_coords(kind=("episode", names)), low=-1, high=1, by="kind", groups=names[:count]
        )
        figure = axes[0].figure
        figure.canvas.draw()
        (legend,) = figure.legends
        for ax in axes:
            texts = [text.get_window_extent() for text in ax.get_xticklabels()]
            assert min(box.y0 for box in texts) >= legend.get_window_extent().y1
            assert ax.get_window_extent().height > 0.15 * figure.bbox.height
