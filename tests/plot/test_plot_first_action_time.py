"""What `plot_first_action_time` draws are the milestones of each action."""

import numpy as np
import pytest
from drawn import entries, steps_of
from ragged import make_dataset

import trajlab as tl


def shares(ds, field, values):
    return tl.milestones(ds, {str(value): ds[field] == value for value in values})["share"]


def test_a_line_for_each_action():
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    ax = tl.plot_first_action_time(ds)
    want = shares(ds, "action", range(-2, 4))
    np.testing.assert_allclose([line.get_ydata() for line in steps_of(ax)], want.values)
    assert entries(ax)[0] == f"-2: {100 * want.values[0, -1]:.0f} %"
    assert ax.get_title().startswith("first time of each action: 8 episodes (2 cut)")
    (strip,) = [other for other in ax.figure.axes if other.get_label() == "n"]
    assert len(strip.patches) == 6


def test_a_panel_for_each_group_and_component():
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    axes = tl.plot_first_action_time(ds, "pair", by="complete", labels=["a", "b", "c"])
    assert len(axes) == 4
    part = ds.isel(episode=np.flatnonzero(ds["complete"].values))
    want = tl.milestones(part, {str(v): ds["pair"][:, :, 1] == v for v in range(3)})["share"]
    np.testing.assert_allclose([line.get_ydata()[:4] for line in steps_of(axes[3])], want.values)
    assert entries(axes[0]) == ["a", "b", "c", "median of those"]
    assert axes[3].get_title().startswith("complete: True, pair[1]\na:\u00a0")


def test_of_many_actions_those_most_taken():
    ds = tl.from_episodes([{"action": np.array([*range(30), 29])}, {"action": np.arange(10, 30)}])
    ax = tl.plot_first_action_time(ds)
    assert len(steps_of(ax)) == 24
    assert "24 of 30 values, those that most episodes have" in ax.get_title()
    assert {"10: 100 %", "29: 100 %", "0: 50 %"} <= set(entries(ax))


def test_of_no_episode(blank):
    for by in (None, "seed"):
        ax = tl.plot_first_action_time(blank, by=by)
        assert [text.get_text() for text in ax.texts] == ["no episodes"]
    ax = tl.plot_milestones(make_dataset([]), {"up": "flag", "down": lambda ds: ~ds["flag"]}, by="env")
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_groups_are_of_episodes():
    with pytest.raises(ValueError, match="group by 'start_iteration'"):
        tl.plot_first_action_time(make_dataset([2]), by="iteration")
