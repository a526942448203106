"""What `plot_action_ngrams` draws is what `action_ngrams` returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

import trajlab as tl


def recording(*episodes, **options):
    return tl.from_episodes([{"action": np.array(e)} for e in episodes], **options)


@pytest.fixture
def ds():
    return recording(
        [0, 0, 1, 0, 2, 2], [1, 1], [3], [1, 0, 1], end_reason=["terminated", "cut", "cut", "cut"], env=[0, 1, 0, 1]
    )


def drawn(ax):
    """Return the name, the share and the count of each bar, from top to bottom."""
    names = [text.get_text() for text in ax.get_yticklabels()]
    return list(
        zip(names, [bar.get_width() for bar in ax.patches], [text.get_text() for text in ax.texts], strict=True)
    )


def wanted(table, column="ngram"):
    names = [" → ".join(map(str, ngram)) for ngram in table[column]]
    return list(zip(names, table["share"], [f"{count:,}" for count in table["count"]], strict=True))


def test_bars_names_and_counts(ds):
    ax = tl.plot_action_ngrams(ds)
    assert drawn(ax) == wanted(tl.action_ngrams(ds))
    assert ax.yaxis_inverted()
    assert ax.get_title().split("\n") == ["action: most frequent 2-grams of 4 episodes (3 cut)", "8 n-grams"]
    assert ax.get_xlabel() == "share of n-grams"
    assert len(drawn(tl.plot_action_ngrams(ds, top=1))) == 1


def test_names_of_actions(ds):
    labels = ["left", "stay", "right", "jump"]
    assert drawn(tl.plot_action_ngrams(ds, labels=labels)) == wanted(tl.action_ngrams(ds, labels=labels), "label")


def test_long_names_are_cut_but_not_to_the_same(ds):
    labels = ["turn the left wheel until it touches", "turn the right wheel until it touches", "hold", "jump"]
    names = [name for name, _, _ in drawn(tl.plot_action_ngrams(ds, labels=labels, n=4))]
    assert names[0] == "turn the l… → turn the l… → turn the r… → turn the l…"


def test_long_names_that_differ_at_their_ends_leave_room_for_the_bars(ds):
    labels = [f"a name that only its very last letter tells apart from others: {end}" for end in "abcd"]
    ax = tl.plot_action_ngrams(ds, labels=labels)
    ax.figure.canvas.draw()
    assert all(text.get_window_extent().x0 >= 0 for text in ax.get_yticklabels())
    names = [name for name, _, _ in drawn(ax)]
    assert len(set(names)) == len(names)


def test_a_panel_for_each_group_component_and_length():
    rows = [np.array([[0, 1], [1, 1], [1, 0]]), np.array([[1, 0], [1, 1], [0, 1]])]
    ds = recording(*rows, env=[0, 1], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    axes, table = tl.plot_action_ngrams(ds, n=[1, 2], by="env"), tl.action_ngrams(ds, n=[1, 2], by="env")
    panels = [(env, joint, n) for env in (0, 1) for joint in ("hip", "knee") for n in (1, 2)]
    for ax, (env, joint, n) in zip(axes, panels, strict=True):
        part = table[(table["env"] == env) & (table["joint"] == joint) & (table["n"] == n)]
        assert drawn(ax) == wanted(part)
        assert ax.get_title().split("\n") == [f"environment: {env}, {joint}, n = {n}", f"{4 - n} n-grams"]
    assert len({ax.get_xlim() for ax in axes[::2]}) == 1
    assert axes[0].figure.get_suptitle() == "action: most frequent n-grams of 2 episodes"


def test_axes_given_and_keywords(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_action_ngrams(ds, ax=other, color="red") is other
    assert other.patches[0].get_facecolor() == to_rgba("red")
    assert not one.patches
    with pytest.raises(ValueError, match="ax= has 1 Axes, but there are 2 panels"):
        tl.plot_action_ngrams(ds, ax=one, n=[1, 2])
    with pytest.raises(ValueError, match="makes 25 panels for each of 1: 25; at most 24"):
        tl.plot_action_ngrams(ds, n=range(1, 26))


def test_low_axes_name_only_some_bars():
    _, ax = plt.subplots(figsize=(3, 1.2))
    tl.plot_action_ngrams(recording(np.random.default_rng(0).integers(0, 9, 400)), ax=ax, top=40)
    assert len(ax.patches) == 40
    assert 3 < len(ax.get_yticks()) < 20
    assert not ax.texts


def test_nan_is_said(ds):
    with pytest.warns(UserWarning, match="1 values"):
        ax = tl.plot_action_ngrams(ds.assign(action=ds["action"].where((ds["time"] != 5) | (ds["episode"] != 0))))
    assert "not shown: 1 NaN" in ax.get_title()


def test_nothing_to_draw(blank):
    for by in (None, "seed"):
        assert [text.get_text() for text in tl.plot_action_ngrams(blank, by=by).texts] == ["no episodes"]
    assert [text.get_text() for text in tl.plot_action_ngrams(recording([1], [0])).texts] == ["no n-grams"]


def test_texts_do_not_overlap(ds):
    labels = ["turn to the far left", "hold", "accelerate as much as possible", "brake"]
    axes = tl.plot_action_ngrams(ds, n=[2, 3, 4], by="env", labels=labels)
    axes[0].figure.canvas.draw()
    boxes = [text.get_window_extent() for ax in axes for text in (ax.title, *ax.get_yticklabels(), *ax.texts)]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
