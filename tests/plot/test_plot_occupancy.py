"""What `plot_occupancy` draws is what `occupancy` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import bar_of
from matplotlib.colors import LogNorm

import trajlab as tl


def recording(*episodes, **options):
    return tl.from_episodes([{"at": np.array(e)} for e in episodes], **options)


@pytest.fixture
def ds():
    return recording([[0, 0], [0, 1], [2, 1]], [[0, 1]], env=[0, 1], end_reason=["terminated", "cut"])


def maps(axes):
    return [ax.collections[0].get_array().T for ax in np.ravel(np.asarray(axes, object))]


def test_counts_edges_and_bar(ds):
    ax, want = tl.plot_occupancy(ds, "at[0]", "at[1]"), tl.occupancy(ds, "at[0]", "at[1]")
    (drawn,) = maps(ax)
    np.testing.assert_array_equal(drawn.filled(0), want["count"].values)
    np.testing.assert_array_equal(drawn.mask, want["count"].values == 0)
    corners = ax.collections[0].get_coordinates()
    assert corners[0, :, 0].tolist() == [-0.5, 0.5, 1.5, 2.5]
    assert corners[:, 0, 1].tolist() == [-0.5, 0.5, 1.5]
    assert (ax.get_xlabel(), ax.get_ylabel(), bar_of(ax).get_ylabel()) == ("at[0]", "at[1]", "transitions")
    assert ax.get_title() == "occupancy: 4 transitions of 2 episodes (1 cut)"
    assert ax.collections[0].norm.vmin == 0
    assert ax.get_aspect() == 1


def test_shares_of_groups_in_one_scale(ds):
    axes, want = tl.plot_occupancy(ds, "at[0]", "at[1]", by="env"), tl.occupancy(ds, "at[0]", "at[1]", by="env")
    np.testing.assert_array_equal([drawn.filled(0) for drawn in maps(axes)], want["share"].values)
    assert {ax.collections[0].norm.vmax for ax in axes} == {1}
    assert [ax.get_title() for ax in axes] == ["environment: 0\n3 transitions", "environment: 1\n1 transition"]
    assert axes[0].figure.get_suptitle() == "occupancy: 2 episodes (1 cut)"
    assert bar_of(axes[0]).get_ylabel() == "share of transitions"


@pytest.mark.parametrize("norm", ["log", LogNorm()])
def test_a_norm_is_that_of_all_panels(ds, norm):
    axes = tl.plot_occupancy(ds, "at[0]", "at[1]", by="env", norm=norm)
    scales = {(ax.collections[0].norm.vmin, ax.collections[0].norm.vmax) for ax in axes}
    assert scales == {(1 / 3, 1)}


def test_what_is_not_shown_is_said():
    ds = recording([[np.nan, 0], [0, 0], [3, 0]])
    with pytest.warns(UserWarning, match="1 transitions have NaN"):
        ax = tl.plot_occupancy(ds, "at[0]", "at[1]", bins=([0, 1, 2], 1))
    title = " ".join(ax.get_title().split())
    assert "1 transition of 1 episode" in title
    assert title.endswith("not shown: 1 outside of the bins, 1 NaN")


@pytest.mark.parametrize(
    ("scale", "units", "aspect"), [(1, "m", 1), (1, ["m", "m/s"], "auto"), (1, None, "auto"), (50, "m", "auto")]
)
def test_to_scale_where_units_are_the_same(scale, units, aspect):
    rows = np.random.default_rng(0).normal(size=(50, 2)) * [1, scale]
    ax = tl.plot_occupancy(recording(rows, units=None if units is None else {"at": units}), "at[0]", "at[1]")
    assert ax.get_aspect() == aspect


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_occupancy(ds, "at[0]", "at[1]", ax=other, cmap="magma", vmax=9) is other
    assert (other.collections[0].cmap.name, other.collections[0].norm.vmax) == ("magma", 9)
    assert "colour: transitions" in other.get_title()
    assert not one.collections
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_occupancy(ds, "at[0]", "at[1]", by="env", ax=one)


def test_rare_cells_stand_out_from_a_dark_ground(ds):
    with plt.style.context("dark_background"):
        ax = tl.plot_occupancy(ds, "at[0]", "at[1]")
    assert sum(ax.collections[0].cmap(0.0)[:3]) > 0.9


def test_nothing_to_draw(blank, ds):
    for by in (None, "seed"):
        ax = tl.plot_occupancy(blank, "at[0]", "at[1]", by=by)
        assert [text.get_text() for text in ax.texts] == ["no episodes"]
    ax = tl.plot_occupancy(ds, "at[0]", "at[1]", bins=([7, 8], [7, 8]))
    assert [text.get_text() for text in ax.texts] == ["no transitions"]
    assert "not shown: 4 outside of the bins" in ax.get_title()


def test_too_many_panels(ds):
    ds = recording(*[[[0, 1]]] * 25).assign_coords(policy=("episode", np.arange(25)))
    with pytest.raises(ValueError, match="by='policy' has 25 groups, one panel each; at most 24"):
        tl.plot_occupancy(ds, "at[0]", "at[1]", by="policy", groups={str(i): i for i in range(25)})
