"""What `plot_autocorrelation` draws is what `autocorrelation` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import strip_of

import trajlab as tl


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    ds = tl.from_episodes([{"x": rng.normal(size=(n, 2)), "y": rng.normal(size=n)} for n in (5, 9, 12, 3)])
    return ds.assign_coords(policy=("episode", ["a", "b", "a", "b"]))


def curves(ax):
    """Return what is drawn beside the line at 0."""
    return [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]


def test_the_curve_zero_and_pairs(ds):
    ax, want = tl.plot_autocorrelation(ds, "y"), tl.autocorrelation(ds, "y")
    (curve,) = curves(ax)
    np.testing.assert_array_equal(curve, want["autocorrelation"])
    assert [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 2] == [[0, 0]]
    (steps,) = strip_of(ax).patches
    np.testing.assert_array_equal(steps.get_data().values, want["n"])
    assert strip_of(ax).get_xlabel() == "lag [steps]"
    assert ax.get_title() == "autocorrelation of y: 4 episodes\nn: pairs"
    low, high = ax.get_ylim()
    assert low < np.nanmin(curve)
    assert high > 1


def test_groups_and_components(ds):
    axes, want = (
        tl.plot_autocorrelation(ds, "x", by="policy", max_lag=4),
        tl.autocorrelation(ds, "x", by="policy", max_lag=4),
    )
    assert [ax.get_ylabel() for ax in axes] == ["x[0]", "x[1]"]
    for component, ax in enumerate(axes):
        np.testing.assert_array_equal(curves(ax), want["autocorrelation"].isel(x_dim_0=component))
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a (15)", "b (10)"]
    assert legend.get_title().get_text() == "policy (pairs at lag 1)"


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_autocorrelation(ds, "y", ax=other, color="red", linewidth=3) is other
    (line,) = [line for line in other.lines if line.get_linewidth() == 3]
    assert line.get_color() == "red"
    assert not one.lines


@pytest.mark.filterwarnings("ignore:autocorrelation.*NaN")
def test_nothing_but_nan_and_no_episode(ds, blank):
    ax = tl.plot_autocorrelation(ds.assign(y=ds["y"] * np.nan), "y")
    assert np.isnan(curves(ax)).all()
    assert np.isfinite(ax.get_ylim()).all()
    assert [text.get_text() for text in tl.plot_autocorrelation(blank, "y", by="seed").texts] == ["no episodes"]
