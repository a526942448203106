"""What `plot_state_histogram` draws is what `state_histogram` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from agents.worlds import make_world, poisoned, record

import trajlab as tl


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    episodes = [
        {
            "obs": rng.normal(size=(n, 2)),
            "room": rng.integers(0, 3, n),
            "word": np.array(["go", "stay"])[np.arange(n) % 2],
        }
        for n in (3, 6, 2, 60)
    ]
    return tl.from_episodes(episodes, end_reason=["done", "cut", "done", "done"], units={"obs": "m"})


def maps(axes):
    """Return what each heat map shows (panel, bin, column), NaN where it has no colour."""
    return [
        np.ma.filled(np.ma.asarray(ax.collections[0].get_array(), float), np.nan)
        for ax in np.ravel(np.asarray(axes, object))
    ]


def labelled(figure, label):
    return [ax for ax in figure.axes if ax.get_label() == label]


def test_columns_and_rows_stand_where_the_numbers_do(ds):
    axes, want = tl.plot_state_histogram(ds, "obs"), tl.state_histogram(ds, "obs")
    for number, (ax, drawn) in enumerate(zip(axes, maps(axes), strict=True)):
        own = want.isel(obs_dim_0=number)
        np.testing.assert_array_equal(drawn, own["share"].values.T)
        corners = ax.collections[0].get_coordinates()
        np.testing.assert_allclose(corners[1:, 0, 1], want["bin_right"])
        middle = (want["last"].values[:-1] + want["first"].values[1:]) / 2
        np.testing.assert_allclose(corners[0, 1:-1, 0], middle)
        assert ax.get_title() == f"obs[{number}] [m]"
    figure = axes[0].figure
    heights = [bar.get_height() for bar in labelled(figure, "n")[1].patches]
    assert heights == want["count"].isel(obs_dim_0=1).sum("bin").values.tolist()
    assert len(labelled(figure, "<colorbar>")) == 1
    assert figure.get_suptitle().split("\n") == ["obs: 71 transitions of 4 episodes (1 cut)", "n: transitions"]


@pytest.mark.parametrize(("field", "texts"), [("room", ["0", "1", "2"]), ("word", ["go", "stay"])])
def test_values_have_a_row_each(ds, field, texts):
    ax, want = tl.plot_state_histogram(ds, field, over="end_reason"), tl.state_histogram(ds, field, over="end_reason")
    np.testing.assert_array_equal(maps(ax)[0], want["share"].values.T)
    assert [text.get_text() for text in ax.get_yticklabels()] == texts
    (strip,) = labelled(ax.figure, "n")
    assert [text.get_text() for text in strip.get_xticklabels()] == ["cut", "done"]
    assert ax.get_ylabel() == field


def test_a_column_without_a_value_has_no_colour(ds):
    ax = tl.plot_state_histogram(ds, "room", over="length", groups={"one": 3, "none": 99, "rest": slice(4, 60)})
    (drawn,) = maps(ax)
    assert np.isnan(drawn).all(axis=0).tolist() == [False, True, False]
    world = record(poisoned(make_world(20)))
    axes, want = tl.plot_state_histogram(world, "action"), tl.state_histogram(world, "action")["share"]
    np.testing.assert_array_equal(maps(axes), want.transpose("agent", "value", "time"))


def test_scale_of_colours(ds):
    for options, want in (({}, (0, None)), ({"vmax": 0.5}, (0, 0.5)), ({"norm": "linear", "vmin": 0.1}, (0.1, None))):
        ax = tl.plot_state_histogram(ds, "room", cmap="magma", **options)
        largest = float(tl.state_histogram(ds, "room")["share"].max())
        assert ax.collections[0].get_clim() == (want[0], want[1] or largest)
        assert ax.collections[0].get_cmap().name == "magma"


def test_axes_given(ds):
    _, axes = plt.subplots(1, 3)
    assert list(tl.plot_state_histogram(ds, "obs", ax=axes[1:])) == list(axes[1:])
    assert not axes[0].collections


def test_what_is_not_shown_is_said(ds):
    ax = tl.plot_state_histogram(ds.isel(obs_dim_0=0), "obs", bins=[0, 0.5])
    below, above = ((ds["obs"][..., 0] < 0).sum().item(), (ds["obs"][..., 0] > 0.5).sum().item())
    assert ax.get_title().split("\n")[-1] == f"not shown: {below} below the bins, {above} above the bins"
    (drawn,) = maps(ax)
    assert np.isnan(drawn).any()


@pytest.mark.parametrize("over", ["time", "seed", "phase"])
def test_of_no_episode(blank, over):
    ax = tl.plot_state_histogram(blank, "x", over=over)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.texts] == ["no episodes"]
