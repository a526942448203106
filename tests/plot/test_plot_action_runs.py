"""What `plot_action_runs` draws is what `action_runs` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import bar_of

import trajlab as tl


def recording(*episodes, **options):
    return tl.from_episodes([{"action": np.array(e)} for e in episodes], **options)


@pytest.fixture
def ds():
    reasons = ["terminated", "cut", "cut", "cut"]
    return recording([0, 0, 1, 0], [1, 1, 1], [3], [1, 0], end_reason=reasons, env=[0, 1, 0, 1])


def map_of(ax):
    """Return the share (value, length) of a panel, NaN where nothing is drawn."""
    return np.ma.filled(ax.collections[0].get_array().astype(float), np.nan)


def wanted(result):
    counts = result["count"].values
    longer = np.array([[row[at:].sum() for at in range(len(row))] for row in counts], float)
    return np.where(longer > 0, longer, np.nan) / np.maximum(longer[:, :1], 1)


def test_map_dots_and_names(ds):
    ax, want = tl.plot_action_runs(ds), tl.action_runs(ds)
    np.testing.assert_array_equal(map_of(ax), wanted(want))
    assert map_of(ax)[0].tolist()[:2] == [1, 1 / 3]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), want["mean"].values)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0 (3)", "1 (3)", "2 (0)", "3 (1)"]
    assert ax.yaxis_inverted()
    assert ax.get_xlim() == (0.5, 3.5)
    assert ax.get_xlabel() == "length of the run [steps]"
    assert bar_of(ax).get_ylabel().replace("\n", " ") == "share of runs at least so long"
    assert ax.get_title().split("\n") == [
        "action: 7 runs in 4 episodes (3 cut)",
        "dots: mean length; (n): runs",
        "3 might have gone on",
    ]


def test_names_of_actions(ds):
    ax = tl.plot_action_runs(ds, labels=["left", "stay", "right", "jump"])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["left (3)", "stay (3)", "right (0)", "jump (1)"]


def test_long_runs_stand_on_a_logarithmic_scale(ds):
    assert tl.plot_action_runs(ds).get_xscale() == "linear"
    ax = tl.plot_action_runs(recording([0] * 2000, [1] * 10, [0] * 10))
    assert ax.get_xscale() == "log"
    assert ax.collections[0].get_coordinates()[0, :, 0].tolist() == [0.5, 10.5, 2000.5]
    assert map_of(ax)[0].tolist() == [1, 0.5]


def test_a_panel_for_each_group_and_component():
    rows = [np.array([[0, 1], [1, 1]]), np.array([[1, 0], [1, 1], [0, 1]])]
    ds = recording(*rows, env=[0, 1], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    axes, want = tl.plot_action_runs(ds, by="env"), tl.action_runs(ds, by="env")
    for ax, (env, joint) in zip(axes, [(0, "hip"), (0, "knee"), (1, "hip"), (1, "knee")], strict=True):
        own = want.sel(env=env, joint=joint)
        np.testing.assert_array_equal(map_of(ax), wanted(own))
        n = int(own["n"].sum())
        assert ax.get_title().split("\n") == [f"environment: {env}, {joint}", f"{n} run{'' if n == 1 else 's'}"]
    assert axes[0].figure.get_suptitle().startswith("action: 7 runs in 2 episodes")


def test_axes_given_and_keywords(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_action_runs(ds, ax=other, cmap="magma", norm="log") is other
    assert other.collections[0].get_cmap().name == "magma"
    assert "colour: share of runs at least so long" in " ".join(other.get_title(loc="right").split())
    assert not one.collections
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_action_runs(ds, ax=one, by="env")


def test_nan_is_said(ds):
    with pytest.warns(UserWarning, match="1 values"):
        ax = tl.plot_action_runs(ds.assign(action=ds["action"].where((ds["time"] != 3) | (ds["episode"] != 0))))
    assert "not shown: 1 NaN" in ax.get_title()


@pytest.mark.parametrize("by", [None, "seed"])
def test_nothing_to_draw(by, blank):
    assert [text.get_text() for text in tl.plot_action_runs(blank, by=by).texts] == ["no episodes"]


def test_texts_do_not_overlap(ds):
    labels = ["turn to the far left", "hold", "accelerate as much as possible", "brake"]
    axes = tl.plot_action_runs(ds, by="env", labels=labels)
    axes[0].figure.canvas.draw()
    boxes = [text.get_window_extent() for ax in axes for text in (ax.title, *ax.get_yticklabels())]
    boxes += [bar_of(axes[0]).get_window_extent(), axes[0].figure._suptitle.get_window_extent()]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]


def test_the_label_of_a_low_colour_bar_is_broken_into_the_figure():
    axes = tl.plot_action_runs(recording([0, 1], [1, 0], env=[0, 1]), by="env")
    figure = axes[0].figure
    figure.canvas.draw()
    box = bar_of(axes[0]).yaxis.label.get_window_extent()
    assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert "\n" in bar_of(axes[0]).get_ylabel()


def test_dots_of_many_actions_do_not_hide_each_other():
    few, many = (tl.from_episodes([{"action": np.arange(n)}]) for n in (3, 60))
    sizes = [tl.plot_action_runs(ds).lines[0].get_markersize() for ds in (few, many)]
    assert sizes[0] == 5
    ax = plt.gcf().axes[0]
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    assert 1.5 <= sizes[1] <= height / 60
