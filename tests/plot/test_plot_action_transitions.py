"""What `plot_action_transitions` draws is what `action_transitions` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import bar_of

import trajlab as tl


def recording(*episodes, **options):
    return tl.from_episodes([{"action": np.array(e)} for e in episodes], **options)


@pytest.fixture
def ds():
    return recording(
        [0, 0, 1, 0], [1, 1], [3], [1, 0], end_reason=["terminated", "cut", "cut", "cut"], env=[0, 1, 0, 1]
    )


def images(axes):
    return [ax.images[0].get_array() for ax in np.ravel(np.asarray(axes, object))]


def test_matrix_numbers_and_bar(ds):
    ax, want = tl.plot_action_transitions(ds), tl.action_transitions(ds)
    (matrix,) = images(ax)
    np.testing.assert_array_equal(np.ma.filled(matrix, np.nan), want["probability"].values)
    numbers = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert numbers == {(0, c): t for c, t in enumerate(["0.50", "0.50", "0.00", "0.00"])} | {
        (1, c): t for c, t in enumerate(["0.67", "0.33", "0.00", "0.00"])
    }
    assert bar_of(ax).get_ylabel() == "probability of the next one"
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("action", "next action")
    assert ax.get_title().split("\n") == [
        "action and the next one: 5 pairs in 4 episodes (3 cut)",
        "pale: fewer than 10 pairs; no colour: nothing followed",
    ]
    assert ax.yaxis_inverted()


def test_rows_of_few_pairs_are_pale():
    ds = recording([0] * 11, [1] * 10)
    (image,) = tl.plot_action_transitions(ds).images
    assert image.get_alpha().tolist() == [[1, 1], [0.35, 0.35]]
    for options in ({"normalize": False}, {"alpha": 1.0}):
        ax = tl.plot_action_transitions(ds, **options)
        assert np.ndim(ax.images[0].get_alpha()) == 0
        assert "pale" not in ax.get_title()


def test_numbers_are_read_on_their_cells():
    ds = recording([0, 0] + [1, 0] * 10, [2, 0])
    colors = {text.get_text(): text.get_color() for text in tl.plot_action_transitions(ds).texts}
    assert (colors["0.09"], colors["0.91"]) == ("white", "black")
    row = [t.get_color() for t in tl.plot_action_transitions(ds).texts if t.get_position()[1] == 2]
    assert row == ["black"] * 3  # pale on white
    with plt.style.context("dark_background"):
        row = [t.get_color() for t in tl.plot_action_transitions(ds).texts if t.get_position()[1] == 2]
    assert row == ["white"] * 3


def test_counts(ds):
    ax, want = tl.plot_action_transitions(ds, normalize=False), tl.action_transitions(ds)
    (matrix,) = images(ax)
    np.testing.assert_array_equal(matrix, want["count"].values)
    assert bar_of(ax).get_ylabel() == "pairs"
    assert {text.get_text() for text in ax.texts} == {"0", "1", "2"}
    assert "nothing followed" not in ax.get_title()
    once = tl.plot_action_transitions(recording([0, 1]), normalize=False)
    assert {text.get_text() for text in once.texts} == {"0", "1"}


def test_a_panel_for_each_group_and_component():
    rows = [np.array([[0, 1], [1, 1]]), np.array([[1, 0], [1, 1], [0, 1]])]
    ds = recording(*rows, env=[0, 1], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    axes, want = tl.plot_action_transitions(ds, by="env"), tl.action_transitions(ds, by="env")
    drawn = [np.ma.filled(matrix, np.nan) for matrix in images(axes)]
    np.testing.assert_array_equal(drawn, want["probability"].values.reshape(4, 2, 2))
    assert [ax.get_title().split("\n") for ax in axes] == [
        ["environment: 0, hip", "1 pair"],
        ["environment: 0, knee", "1 pair"],
        ["environment: 1, hip", "2 pairs"],
        ["environment: 1, knee", "2 pairs"],
    ]
    assert len({ax.images[0].norm.vmax for ax in axes}) == 1
    assert axes[0].figure.get_suptitle().startswith("action and the next one: pairs in 2 episodes")


def test_names_of_actions():
    labels = ["left", "hold on to whatever is there for as long as it lasts"]
    ax = tl.plot_action_transitions(recording([0, 1]), labels=labels)
    for axis in (ax.xaxis, ax.yaxis):
        texts = [text.get_text() for text in axis.get_ticklabels()]
        assert texts[0] == "left"
        assert texts[1].startswith("hold")
        assert len(texts[1]) == 24


def test_names_are_not_shortened_to_the_same():
    labels = [f"turn the {side} wheel until it touches the kerb" for side in ("left", "right")]
    ax = tl.plot_action_transitions(recording([0, 1]), labels=labels)
    texts = [text.get_text() for text in ax.get_yticklabels()]
    assert ["left" in texts[0], "right" in texts[1]] == [True, True]
    assert max(map(len, texts)) <= 24


def test_many_actions_have_some_ticks_and_no_numbers():
    ax = tl.plot_action_transitions(recording(np.arange(200)))
    assert not ax.texts
    assert 5 < len(ax.get_yticks()) < 60
    assert ax.get_yticklabels()[1].get_text() == str(int(ax.get_yticks()[1]))


def test_axes_given_and_keywords(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_action_transitions(ds, ax=other, cmap="magma", vmax=2) is other
    assert other.images[0].get_cmap().name == "magma"
    assert other.images[0].norm.vmax == 2
    assert "colour: probability of the next one" in " ".join(other.get_title(loc="right").split())
    assert not one.images
    _, given = plt.subplots(1, 2)
    tl.plot_action_transitions(ds, ax=given, by="env", normalize=False, norm="log")
    assert [matrix.shape for matrix in images(given)] == [(4, 4), (4, 4)]
    assert "environment: 0" in given[0].get_title()
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_action_transitions(ds, ax=one, by="env")


def test_nan_is_said():
    ds = recording([1, 2, 2, 1])
    ds = ds.assign(action=ds["action"].where(ds["time"] != 1))
    with pytest.warns(UserWarning, match="1 values"):
        ax = tl.plot_action_transitions(ds)
    assert "not shown: 1 NaN" in ax.get_title()


def test_nothing_to_draw(blank):
    for by in (None, "seed"):
        ax = tl.plot_action_transitions(blank, by=by)
        assert [text.get_text() for text in ax.texts] == ["no episodes"]
    ax = tl.plot_action_transitions(recording([1], [0]))
    assert [text.get_text() for text in ax.texts] == ["no pairs"]
    assert not ax.images


def test_too_many_panels(ds):
    ds = recording(*[[0, 1]] * 25).assign_coords(policy=("episode", np.arange(25)))
    with pytest.raises(ValueError, match="by='policy' has 25 groups.*25 panels; at most 24"):
        tl.plot_action_transitions(ds, by="policy", groups={str(i): i for i in range(25)})


def test_texts_do_not_overlap():
    labels = ["turn to the far left", "hold", "accelerate as much as possible", "brake"]
    ds = recording(*[[0, 1, 2, 3, 0]] * 6, env=[0, 1, 2] * 2)
    axes = tl.plot_action_transitions(ds, by="env", labels=labels)
    axes[0].figure.canvas.draw()
    boxes = [text.get_window_extent() for ax in axes for text in (ax.title, *ax.get_yticklabels()) if text.get_text()]
    boxes += [bar_of(axes[0]).get_window_extent(), axes[0].figure._suptitle.get_window_extent()]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
