"""What `plot_action_by_state` draws is what `action_by_state` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import trajlab as tl


def recording(cells, actions, **options):
    rows = [{"at": np.array(c), "action": np.array(a)} for c, a in zip(cells, actions, strict=True)]
    return tl.from_episodes(rows, **options)


@pytest.fixture
def line():
    return recording([[0, 0, 2], [2, 2]], [[1, 1, 0], [2, 0]], env=[0, 1], end_reason=["terminated", "cut"])


@pytest.fixture
def plane():
    rng = np.random.default_rng(0)
    cells = [rng.integers(0, 3, (n, 2)) for n in (30, 40)]
    return recording(cells, [rng.integers(0, 3, len(c)) for c in cells], env=[0, 1])


def extra(ax, label):
    return [other for other in ax.figure.axes if other.get_label() == label]


def test_stacked_shares_and_strip(line):
    ax, want = tl.plot_action_by_state(line, "at"), tl.action_by_state(line, "at")
    tops = np.array([patch.get_data().values for patch in ax.patches]).T
    np.testing.assert_allclose(tops, np.cumsum(want["share"].values, axis=1))
    assert ax.patches[0].get_data().edges.tolist() == [-0.5, 0.5, 1.5, 2.5]
    (strip,) = extra(ax, "n")
    assert strip.patches[0].get_data().values.tolist() == want["n"].values.tolist()
    assert (strip.get_xlabel(), strip.get_ylabel()) == ("at", "n")
    assert ax.get_title().split("\n") == ["action by state: 5 transitions of 2 episodes (1 cut)", "n: transitions"]
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]


def test_most_frequent_action(plane):
    ax, want = tl.plot_action_by_state(plane, ["at[0]", "at[1]"]), tl.action_by_state(plane, ["at[0]", "at[1]"])
    (mesh,) = ax.collections
    np.testing.assert_array_equal(mesh.get_array().T, want["count"].values.argmax(-1))
    ax.figure.canvas.draw()
    faces = mesh.get_facecolor().reshape(3, 3, 4).swapaxes(0, 1)
    assert (faces[..., 3] == np.where(want["n"].values < 10, 0.35, 1)).all()
    handles = ax.figure.legends[0].get_patches()
    first = int(want["count"].values[0, 0].argmax())
    assert to_hex(faces[0, 0, :3]) == to_hex(handles[first].get_facecolor())
    assert ax.get_title().endswith("the most frequent action; pale: fewer than 10 transitions")


def test_bins_without_transitions_are_not_drawn():
    ax = tl.plot_action_by_state(recording([[[0, 0], [2, 1]]], [[1, 0]]), ["at[0]", "at[1]"])
    assert ax.collections[0].get_array().mask.T.tolist() == [[False, True], [True, True], [True, False]]


def test_more_than_eight_actions_share_grey():
    cells = [np.stack([np.arange(12), np.zeros(12, int)], 1).repeat(2, 0)[:-3]]
    ds = recording(cells, [np.arange(12).repeat(2)[:-3]])
    ax = tl.plot_action_by_state(ds, ["at[0]", "at[1]"])
    assert ax.collections[0].get_array().ravel().tolist() == [*range(7), 7, 7, 7, 7]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()][-1] == "4 others"


def test_panels_of_groups(plane):
    axes = tl.plot_action_by_state(plane, ["at[0]", "at[1]"], by="env")
    want = tl.action_by_state(plane, ["at[0]", "at[1]"], by="env")["count"].values
    for ax, counts in zip(axes, want, strict=True):
        drawn = ax.collections[0].get_array().T
        np.testing.assert_array_equal(drawn, np.ma.masked_where(counts.sum(-1) == 0, counts.argmax(-1)))
    assert [ax.get_title() for ax in axes] == ["environment: 0\n30 transitions", "environment: 1\n40 transitions"]


def test_lines_of_means():
    ds = recording([[0.0, 0.2, 0.8], [0.1, 1.0]], [[1.0, 3.0, 5.0], [4.0, 6.0]], env=[0, 1], units={"action": "N"})
    ax, want = tl.plot_action_by_state(ds, "at", bins=2), tl.action_by_state(ds, "at", bins=2)
    (mean,) = ax.lines
    np.testing.assert_allclose(mean.get_ydata(), want["mean"].values.repeat(2))
    assert mean.get_xdata().tolist() == [0, 0.5, 0.5, 1]
    corners = ax.collections[0].get_paths()[0].vertices
    np.testing.assert_allclose(corners[:, 1].max(), float((want["mean"] + want["std"]).max()))
    assert ax.get_ylabel() == "action [N]"
    by_env = tl.plot_action_by_state(ds, "at", bins=2, by="env")
    drawn = [line.get_ydata()[::2] for line in by_env.lines]
    np.testing.assert_allclose(drawn, tl.action_by_state(ds, "at", bins=2, by="env")["mean"].values)
    (legend,) = by_env.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0 (3)", "1 (2)", "mean", "± standard deviation"]
    assert legend.get_title().get_text() == "environment (n)"


def test_maps_of_means_have_a_scale_for_each_component():
    rng = np.random.default_rng(0)
    cells = [np.indices((2, 2)).reshape(2, 4).T.repeat(10, axis=0)] * 2
    ds = recording(cells, [1 + rng.random((40, 2)) for _ in range(2)], env=[0, 1])
    axes = tl.plot_action_by_state(ds, ["at[0]", "at[1]"], by="env")
    want = np.moveaxis(tl.action_by_state(ds, ["at[0]", "at[1]"], by="env")["mean"].values, -1, 1)
    np.testing.assert_allclose([ax.collections[0].get_array().T for ax in axes], want.reshape(4, 2, 2))
    scales = [(ax.collections[0].norm.vmin, ax.collections[0].norm.vmax) for ax in axes]
    assert scales[0] == scales[2] == (want[:, 0].min(), want[:, 0].max())
    assert scales[1] == scales[3] != scales[0]
    labels = [bar.get_ylabel() for bar in extra(axes[0], "<colorbar>")]
    assert labels == ["mean of action[0]", "mean of action[1]"] * 2


def test_colours_of_means_span_the_bins_that_are_not_pale():
    cells = np.array([[0, 0]] * 10 + [[0, 1]] * 10 + [[1, 0]] * 9)
    ds = recording([cells], [np.repeat([1.0, 2.0, 9.0], [10, 10, 9])])
    (mesh,) = tl.plot_action_by_state(ds, ["at[0]", "at[1]"]).collections
    assert (mesh.get_clim(), mesh.colorbar.extend) == ((1, 2), "max")
    (mesh,) = tl.plot_action_by_state(ds, ["at[0]", "at[1]"], alpha=1).collections
    assert (mesh.get_clim(), mesh.colorbar.extend) == ((1, 9), "neither")
    few = recording([[[0, 0], [0, 1]]], [[1.0, 2.0]])
    (mesh,) = tl.plot_action_by_state(few, ["at[0]", "at[1]"]).collections
    assert mesh.get_clim() == (1, 2)  # where all are pale, all are spanned


def test_means_of_both_signs_are_told_apart():
    cells = np.array([[0, 0]] * 10 + [[0, 1]] * 10)
    ds = recording([cells], [np.repeat([-1.0, 3.0], 10)])
    (mesh,) = tl.plot_action_by_state(ds, ["at[0]", "at[1]"]).collections
    assert (mesh.get_clim(), mesh.get_cmap().name) == ((-3, 3), "coolwarm")
    (mesh,) = tl.plot_action_by_state(ds, ["at[0]", "at[1]"], cmap="magma").collections
    assert (mesh.get_clim(), mesh.get_cmap().name) == ((-1, 3), "magma")


def test_axes_given_and_style(line, plane):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_action_by_state(line, "at", ax=other, linewidth=3) is other
    assert other.patches[0].get_linewidth() == 3
    tl.plot_action_by_state(plane, ["at[0]", "at[1]"], ax=one, alpha=0.5)
    assert one.collections[0].get_alpha() == 0.5
    assert "pale" not in one.get_title()
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_action_by_state(line, "at", by="env", ax=one)


def test_what_is_missing_is_said():
    ds = recording([[0.0, np.nan, 9.0, 0.5]], [[1.0, 1.0, 1.0, np.nan]])
    with pytest.warns(UserWarning, match="NaN"):
        ax = tl.plot_action_by_state(ds, "at", bins=[0, 1])
    assert ax.get_title().split("\n")[-2:] == ["not shown: 1 outside of the bins, 1 NaN", "NaN: 1 action"]


@pytest.mark.parametrize("state", ["obs[0]", ["obs[0]", "obs[1]"]])
@pytest.mark.parametrize("by", [None, "seed"])
def test_nothing_to_draw(blank, state, by):
    ax = tl.plot_action_by_state(blank, state, by=by)
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_nothing_within_the_bins(line):
    ax = tl.plot_action_by_state(line, "at", bins=[7, 8])
    assert [text.get_text() for text in ax.texts] == ["no transitions"]
