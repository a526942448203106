"""What `plot_learning_curve` draws is what `learning_curve` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import entries, strip_of

import trajlab as tl


def of_returns(values, reasons=None, iteration=None, **coords):
    episodes = [{"reward": np.array([0.0, value])} for value in values]
    ds = tl.from_episodes(episodes, end_reason=reasons or ["terminated"] * len(episodes), iteration=iteration)
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


@pytest.fixture
def ds():
    reasons = ["terminated"] * 7 + ["cut"]
    return of_returns([0, 1, 2, 9, 5, 7, 3, 8], reasons, [0, 0, 0, 10, 10, 10, 20, 20], policy=["a", "b"] * 4)


@pytest.mark.parametrize("statistic", ["mean", "median", "iqm"])
def test_line_and_band(ds, statistic):
    ax = tl.plot_learning_curve(ds, statistic=statistic, confidence=0.8)
    want = tl.learning_curve(ds, confidence=0.8).sel(statistic=statistic)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), [0, 10, 20])
    np.testing.assert_array_equal(line.get_ydata(), want["estimate"].values)
    (band,) = ax.collections
    corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
    for key in ("lower", "upper"):
        assert {(0.0, float(want[key].values[0])), (10.0, float(want[key].values[1]))} <= corners
    name = {"iqm": "interquartile mean"}.get(statistic, statistic)
    assert entries(ax) == [name, "80 % interval"]
    assert ax.get_ylabel() == "return"


def test_number_of_episodes_and_of_those_left_out(ds):
    ax = tl.plot_learning_curve(ds)
    complete, rest = strip_of(ax).containers
    assert [bar.get_height() for bar in complete] == [3, 3, 1]
    assert [(bar.get_y(), bar.get_height()) for bar in rest] == [(3, 0), (3, 0), (1, 1)]
    assert "n: complete episodes; fainter: 1 left out" in ax.get_title()
    kept = tl.plot_learning_curve(ds, incomplete="keep")
    assert len(strip_of(kept).containers) == 1
    assert kept.get_title().endswith("n: episodes")


def test_an_interval_without_neighbours_is_a_bar():
    ax = tl.plot_learning_curve(of_returns([1, 2, 5, 3, 4], iteration=[0, 0, 1, 2, 2]))
    (bars,) = ax.collections
    assert [path[0][0] for path in bars.get_segments()] == [0, 2]


def test_groups_without_order_are_dots(ds):
    ax = tl.plot_learning_curve(ds, by="policy", cluster="env")
    want = tl.learning_curve(ds, by="policy", cluster="env").sel(statistic="mean")
    (line,) = ax.lines
    assert line.get_linestyle() == "None"
    np.testing.assert_array_equal(line.get_ydata(), want["estimate"].values)
    assert [text.get_text() for text in strip_of(ax).get_xticklabels()] == ["a", "b"]
    assert "resampling 'env' as a whole" in ax.get_title()


def test_components_have_panels_and_units():
    ds = tl.from_episodes([{"reward": np.array([[1.0, 10], [1, 10]])}, {"reward": np.array([[4.0, 0]])}])
    ds = ds.assign_coords(reward_dim_0=["speed", "cost"])
    ds["reward"].attrs["units"] = "m"
    axes = tl.plot_learning_curve(ds)
    assert [ax.get_ylabel() for ax in axes] == ["return[speed] [m]", "return[cost] [m]"]
    assert [ax.lines[0].get_ydata().tolist() for ax in axes] == [[3], [10]]


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_learning_curve(ds, ax=other, color="red", marker="s") is other
    assert (other.lines[0].get_color(), other.lines[0].get_marker()) == ("red", "s")
    assert not one.lines


def test_no_complete_episode(blank):
    ax = tl.plot_learning_curve(of_returns([1.0], ["cut"]))
    assert [text.get_text() for text in ax.texts] == ["no complete episodes"]
    ax = tl.plot_learning_curve(blank)
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_what_cannot_be_drawn(ds):
    with pytest.raises(ValueError, match="statistic='avg'; expected one of 'mean', 'median', 'iqm'"):
        tl.plot_learning_curve(ds, statistic="avg")
    wide = ds.assign(x=(("episode", "part"), np.zeros((8, 30))))
    with pytest.raises(ValueError, match="'x' has 30 components .30.; at most 24 are drawn"):
        tl.plot_learning_curve(wide, value="x")
    with pytest.raises(ValueError, match="ax= has 2 Axes, but there are 1 panels"):
        tl.plot_learning_curve(ds, ax=plt.subplots(1, 2)[1])
