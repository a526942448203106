"""What `plot_action_raster` draws is what `action_raster` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import entries
from matplotlib.colors import to_rgba
from ragged import FORMS, in_form, make_dataset

import trajlab as tl
from trajlab.plot._style import CYCLE


def recording(*episodes, **options):
    return tl.from_episodes([{"action": np.array(e)} for e in episodes], **options)


def image_of(ax):
    """Return what an image shows (episode, time), NaN where that is nothing."""
    return np.ma.filled(ax.images[0].get_array().astype(float), np.nan)


def wanted(raster, values):
    """Return the place of each value among some, NaN in the padding."""
    places = np.searchsorted(values, raster.values).astype(float)
    longest = int(raster["length"].max())
    return np.where(raster["mask"], places, np.nan)[:, :longest]


def test_image_legend_and_titles():
    ds = recording([0, 2, 2], [2], [0, 0], end_reason=["terminated", "cut", "terminated"])
    ax = tl.plot_action_raster(ds)
    np.testing.assert_array_equal(image_of(ax), wanted(tl.action_raster(ds), [0, 1, 2]))
    image = ax.images[0]
    assert image.get_extent() == [-0.5, 2.5, 2.5, -0.5]
    assert entries(ax) == ["0", "1", "2"]
    handles = ax.figure.legends[0].legend_handles
    assert [patch.get_facecolor() for patch in handles] == [to_rgba(color) for color in CYCLE[:3]]
    assert image.to_rgba(image.get_array())[0, 0].tolist() == list(to_rgba(CYCLE[2]))
    assert image.to_rgba(image.get_array())[0, 1, 3] == 0
    assert ax.get_title().split("\n") == ["action: 3 episodes (1 cut)", "sorted by episode length"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("episode length [steps]", "time [steps]")
    assert [ax.yaxis.get_major_formatter()(place, 0) for place in (-1, 0, 0.5, 1, 2, 3)] == ["", "1", "", "2", "3", ""]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["action", "flag"])
def test_every_form_of_a_dataset(form, field, tmp_path):
    ds = in_form(make_dataset([4, 1, 6, 2, 6, 3]), form, tmp_path)
    raster = tl.action_raster(ds, field, sort="env").load()
    values = [False, True] if field == "flag" else np.arange(-2, 4)
    np.testing.assert_array_equal(image_of(tl.plot_action_raster(ds, field, sort="env")), wanted(raster, values))


def test_names_of_actions():
    ax = tl.plot_action_raster(recording([0, 1]), labels=["left", "stay", "right"])
    assert entries(ax) == ["left", "stay", "right"]


def test_many_actions_stand_along_a_colour_bar():
    labels = [f"action {i}" for i in range(12)]
    ax = tl.plot_action_raster(recording(np.arange(12)), labels=labels)
    (bar,) = [other for other in ax.figure.axes if other.get_label() == "<colorbar>"]
    assert [text.get_text() for text in bar.get_yticklabels()] == labels
    assert image_of(ax)[0].tolist() == list(range(12))
    assert len(np.unique(ax.images[0].to_rgba(ax.images[0].get_array())[0], axis=0)) == 12
    numbers = tl.plot_action_raster(recording([0, 200]))
    assert image_of(numbers)[0].tolist() == [0, 200]


def test_continuous_fields():
    ds = make_dataset([4, 1, 6])
    axes = tl.plot_action_raster(ds, "obs", sort="return")
    raster = tl.action_raster(ds, "obs", sort="return")
    for component, ax in enumerate(axes):
        want = raster.where(raster["mask"]).isel(obs_dim_0=component)
        np.testing.assert_array_equal(image_of(ax), want)
        assert ax.get_title() == f"obs[{component}]"
    assert sum(ax.get_label() == "<colorbar>" for ax in axes[0].figure.axes) == 3
    assert axes[0].get_ylabel() == "return"
    with pytest.raises(ValueError, match="labels= names actions 0, 1, ...; 'obs' is continuous"):
        tl.plot_action_raster(ds, "obs", labels=["left"])


def test_more_episodes_and_steps_than_pixels():
    rng = np.random.default_rng(0)
    ds = recording(*[rng.integers(0, 4, n) for n in rng.integers(1, 500, 300)])
    _, ax = plt.subplots(figsize=(2, 1.5))
    tl.plot_action_raster(ds, ax=ax)
    height, width = image_of(ax).shape
    rows, steps = -(-300 // height), -(-int(ds["length"].max()) // width)
    assert rows > 1
    assert steps > 1
    raster = tl.action_raster(ds).load()
    want = wanted(raster, range(4))[::rows, ::steps]
    np.testing.assert_array_equal(image_of(ax), want)
    title = " ".join(ax.get_title(loc="right").split())
    assert f"action: every {rows}rd of 300 episodes" in title if rows == 3 else f"every {rows}th of 300" in title
    assert f"every {steps}" in title
    assert ax.images[0].get_extent()[2] == height * rows - 0.5


def test_sliced_steps_stand_where_they_belong():
    ds = make_dataset([4, 1, 6, 2]).isel(time=slice(2, None))
    assert tl.plot_action_raster(ds).images[0].get_extent()[:2] == [1.5, 5.5]
    ax = tl.plot_action_raster(make_dataset([6, 6]).isel(time=[5, 0, 1]))
    assert [ax.xaxis.get_major_formatter()(place, 0) for place in range(4)] == ["0", "1", "5", ""]
    values = make_dataset([6, 6])["action"].values[:, [0, 1, 5]]
    np.testing.assert_array_equal(image_of(ax), values - values.min())


def test_axes_given_and_keywords():
    ds = recording([0, 1, 0], [1])
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_action_raster(ds, ax=other, cmap="magma", alpha=0.5) is other
    assert other.images[0].get_cmap().name == "magma"
    assert other.images[0].get_alpha() == 0.5
    assert len(entries(other)) == 2
    assert not one.images
    with pytest.raises(ValueError, match="ax= has 2 Axes, but there are 1 panels"):
        tl.plot_action_raster(ds, ax=[one, other])


def test_nan_and_text():
    ds = recording([1, 2, 2, 1], [2])
    ds = ds.assign(action=ds["action"].where(ds["time"] != 1))
    ax = tl.plot_action_raster(ds)
    assert "not shown: 1 NaN" in ax.get_title()
    np.testing.assert_array_equal(image_of(ax), [[1, np.nan, np.nan, np.nan], [0, np.nan, 1, 0]])
    assert entries(tl.plot_action_raster(recording(["go", "brake"], ["go"]))) == ["brake", "go"]


def test_agents_that_are_done_are_not_shown():
    ends = np.array([[False], [True], [False]])
    two = {name: {"a": x, "b": x + 0} for name, x in {"obs": np.zeros((3, 1)), "reward": np.zeros((3, 1))}.items()}
    chunk = {**two, "action": {"a": np.array([[0], [1], [0]]), "b": np.array([[1], [0], [1]])}}
    chunk["done"] = {"a": np.array([[True], [True], [False]]), "b": ends, "__all__": ends}
    axes = tl.plot_action_raster(tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"])))
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    np.testing.assert_array_equal(image_of(axes[0]), [[0, np.nan], [0, np.nan]])
    np.testing.assert_array_equal(image_of(axes[1]), [[1, np.nan], [1, 0]])


def test_nothing_to_draw(blank):
    for sort in ("length", "return", None):
        assert [text.get_text() for text in tl.plot_action_raster(blank, sort=sort).texts] == ["no episodes"]


def test_texts_do_not_overlap():
    ds = make_dataset([40, 10, 60, 20, 60, 30])
    axes = tl.plot_action_raster(ds, "pair", labels=["turn to the far left", "hold", "accelerate as much as possible"])
    axes[0].figure.canvas.draw()
    boxes = [
        text.get_window_extent() for ax in axes for text in (ax.title, *ax.get_yticklabels(), *ax.get_xticklabels())
    ]
    boxes += [axes[0].figure.legends[0].get_window_extent(), axes[0].figure._suptitle.get_window_extent()]
    boxes = [box for box in boxes if box.width]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
