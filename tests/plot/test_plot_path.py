"""What `plot_path` draws are the steps of single episodes, joined within each."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from agents.worlds import live, make_world, poisoned, record
from drawn import bars_of
from matplotlib.colors import to_hex, to_rgba
from ragged import FORMS, in_form, make_dataset

import trajlab as tl


def recording(*paths, final=True, **options):
    rows = [{"obs": np.array(path, float), "reward": np.arange(len(path) - final, dtype=float) % 3} for path in paths]
    return tl.from_episodes(rows, **options)


@pytest.fixture
def ds():
    """Two episodes: of three steps and a final observation, and of one step and a final observation."""
    return recording([[0, 0], [1, 0], [1, 1], [2, 2]], [[5, 5], [6, 5]], end_reason=["terminated", "cut"])


def lines_of(ax):
    return [segment.tolist() for segment in ax.collections[0].get_segments()]


def marks_of(ax):
    names = {"o": "start", "s": "terminated", "^": "truncated", "D": "end", "x": "cut"}
    return {names[line.get_marker()]: line.get_xydata().tolist() for line in ax.lines}


def test_steps_up_to_the_final_observation(ds):
    ax = tl.plot_path(ds, "obs[0]", "obs[1]")
    assert lines_of(ax) == [[[0, 0], [1, 0]], [[1, 0], [1, 1]], [[1, 1], [2, 2]], [[5, 5], [6, 5]]]
    assert ax.collections[0].get_array().tolist() == [0, 1, 2, 0]
    assert marks_of(ax) == {"start": [[0, 0], [5, 5]], "terminated": [[2, 2]], "cut": [[6, 5]]}
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["start (2)", "terminated (1)", "cut (1)"]
    assert [bar.get_ylabel() for bar in bars_of(ax)] == ["time [steps]"]
    assert ax.get_title() == "paths of 2 episodes (1 cut)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("obs[0]", "obs[1]")


def test_without_final_observations():
    ax = tl.plot_path(recording([[0, 0], [1, 0]], [[5, 5]], final=False), "obs[0]", "obs[1]")
    assert lines_of(ax) == [[[0, 0], [1, 0]]]
    assert marks_of(ax) == {"start": [[0, 0], [5, 5]], "end": [[1, 0], [5, 5]]}


def test_final_observations_that_are_not_known(ds):
    ds = ds.load()
    ds["final_known"].values[0] = False
    ax = tl.plot_path(ds, "obs[0]", "obs[1]")
    assert marks_of(ax)["terminated"] == [[1, 1]]
    assert "final observation not known: 1" in ax.get_title()


def test_each_end_has_a_mark_and_an_entry_of_its_own():
    rows = [[[0, n], [1, n], [2, n]] for n in range(4)]
    ax = tl.plot_path(recording(*rows, end_reason=["truncated", "terminated", "done", "cut"]), "obs[0]", "obs[1]")
    ends = {mark: places for mark, places in marks_of(ax).items() if mark != "start"}
    assert ends == {"terminated": [[2, 1]], "truncated": [[2, 0]], "end": [[2, 2]], "cut": [[2, 3]]}
    texts = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert texts == ["start (4)", "terminated (1)", "truncated (1)", "end (1)", "cut (1)"]


def test_of_another_field_there_is_no_final_value(ds):
    ax = tl.plot_path(ds, "obs[0]", "reward")
    assert marks_of(ax)["terminated"] == [[1, 2]]
    assert "final" not in ax.get_title()


def test_colour_of_a_component(ds):
    ax = tl.plot_path(ds, "obs[0]", "obs[1]", color="reward")
    assert ax.collections[0].get_array().tolist() == [0, 1, 2, 0]
    assert bars_of(ax)[0].get_ylabel() == "reward"
    with pytest.raises(KeyError, match="no component 'rewad'. Did you mean 'reward'"):
        tl.plot_path(ds, "obs[0]", "obs[1]", color="rewad")


def test_lines_of_one_colour_are_drawn_as_one(ds):
    for color in ("tab:red", (1, 0, 0)):
        ax = tl.plot_path(ds, "obs[0]", "obs[1]", color=color)
        assert lines_of(ax) == [[[0, 0], [1, 0], [1, 1], [2, 2]], [[5, 5], [6, 5]]]
        assert to_hex(ax.collections[0].get_color()[0]) == to_hex(color)
        assert not bars_of(ax)
    same = ds.assign(reward=ds["reward"] * 0)
    ax = tl.plot_path(same, "obs[0]", "obs[1]", color="reward")
    assert lines_of(ax) == [[[0, 0], [1, 0], [1, 1], [2, 2]], [[5, 5], [6, 5]]]


def test_long_paths_have_the_colours_of_each_step():
    rows = np.random.default_rng(0).normal(size=(3001, 2))
    ax = tl.plot_path(recording(rows), "obs[0]", "obs[1]")
    segments, values = ax.collections[0].get_segments(), ax.collections[0].get_array()
    assert 200 < len(segments) <= 256
    np.testing.assert_array_equal(np.concatenate([segment[:-1] for segment in segments]), rows[:-1])
    steps = np.cumsum([0, *(len(segment) - 1 for segment in segments)])[:-1]
    np.testing.assert_array_equal(values, steps)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_draws_the_episodes_asked_for(form, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    ax = tl.plot_path(in_form(ds, form, tmp_path), "obs[0]", "pair[1]", episodes=[0, 2, 4], color="0.5")
    want = [np.stack([(one := tl.episode(ds, n))["obs"].values[:, 0], one["pair"].values[:, 1]], 1) for n in (0, 2, 4)]
    assert sorted(lines_of(ax)) == sorted(rows.tolist() for rows in want)
    assert sorted(marks_of(ax)["start"]) == sorted(rows[0].tolist() for rows in want)
    assert marks_of(ax)["cut"] == [want[1][-1].tolist()]
    assert "paths of episodes 0, 2, 4 (3 of 6 episodes, 2 cut)" in ax.get_title()


def test_some_of_many_episodes():
    ds = recording(*[[[i, 0], [i, 1]] for i in range(100)])
    ax = tl.plot_path(ds, "obs[0]", "obs[1]")
    drawn = [line[0][0] for line in lines_of(ax)]
    assert len(drawn) == 30
    assert (drawn[0], drawn[-1]) == (0, 99)
    assert ax.get_title() == "paths of 30 of 100 episodes"
    assert "episode 99 (1 of 100 episodes)" in tl.plot_path(ds, "obs[0]", "obs[1]", episodes=[99]).get_title()
    assert len(lines_of(tl.plot_path(ds, "obs[0]", "obs[1]", episodes=50))) == 50
    with pytest.raises(KeyError, match="100"):
        tl.plot_path(ds, "obs[0]", "obs[1]", episodes=[100])


def test_after_a_slice_of_time_only_neighbours_are_joined(ds):
    ax = tl.plot_path(ds.isel(time=[0, 2]), "obs[0]", "obs[1]")
    assert lines_of(ax) == [[[1, 1], [2, 2]], [[5, 5], [6, 5]]]
    assert ax.collections[1].get_offsets().tolist() == [[0, 0]]
    assert marks_of(ax) == {"start": [[0, 0], [5, 5]], "terminated": [[2, 2]], "cut": [[6, 5]]}
    ax = tl.plot_path(ds.isel(time=slice(0, 2)), "obs[0]", "obs[1]")
    assert lines_of(ax) == [[[0, 0], [1, 0]], [[5, 5], [6, 5]]]
    assert ax.collections[1].get_offsets().tolist() == []
    assert "terminated" not in marks_of(ax)
    assert "start" not in marks_of(tl.plot_path(ds.isel(time=slice(1, None)), "obs[0]", "obs[1]"))


def test_starts_that_were_not_seen_have_no_mark():
    chunk = {"obs": np.arange(8.0).reshape(4, 1, 2), "done": np.array([[0], [1], [0], [0]], bool)}
    ax = tl.plot_path(tl.from_rollout(chunk, starts_fresh=False), "obs[0]", "obs[1]")
    assert marks_of(ax)["start"] == [[4, 5]]
    assert "(1 cut, 1 from mid-way)" in ax.get_title()


def test_nan_parts_a_path_and_is_said():
    ds = recording([[0, 0], [1, np.nan], [2, 0], [3, 0]])
    ax = tl.plot_path(ds, "obs[0]", "obs[1]")
    assert lines_of(ax) == [[[2, 0], [3, 0]]]
    assert "not shown: 1 point with NaN" in ax.get_title()
    ds = ds.assign(reward=ds["reward"].where(ds["time"] != 2))
    ax = tl.plot_path(ds, "obs[0]", "obs[1]", color="reward")
    ax.figure.canvas.draw()
    assert to_hex(ax.collections[0].get_edgecolor()[-1]) == to_hex("0.45")
    assert "grey: colour is NaN" in ax.get_title()


def test_agents_end_where_they_are_done():
    world = make_world(20)
    ds = record(poisoned(world))
    ax = tl.plot_path(ds, "obs[scout,0]", "obs[scout,1]", episodes=len(ds["episode"]), color="0.5")
    want, ends = [], {"end": [], "terminated": [], "truncated": [], "cut": []}
    for one, reason in zip(live(world), ds["end_reason"].values, strict=True):
        lived = one.alive[:, 0]
        places = world.obs[one.rows, one.env, 0][lived].astype(float).tolist()
        want += [places] if len(places) > 1 else []
        ends[str(reason) if lived[-1] and reason != "done" else "end"].append(places[-1])
    assert sorted(lines_of(ax)) == sorted(want)
    marks = {mark: sorted(places) for mark, places in marks_of(ax).items() if mark != "start"}
    assert marks == {reason: sorted(places) for reason, places in ends.items() if places}


def test_to_scale_where_units_are_the_same():
    rows = np.random.default_rng(0).normal(size=(9, 2))
    for units, aspect in (("m", 1), (None, "auto"), (["m", "s"], "auto")):
        ax = tl.plot_path(recording(rows, units=None if units is None else {"obs": units}), "obs[0]", "obs[1]")
        assert ax.get_aspect() == aspect


def test_axes_given_and_style(ds):
    _, (one, other) = plt.subplots(1, 2)
    assert tl.plot_path(ds, "obs[0]", "obs[1]", ax=other, linewidth=3, cmap="magma", norm="log") is other
    assert other.collections[0].get_linewidth() == [3]
    assert other.collections[0].cmap.name == "magma"
    assert not one.collections
    with plt.style.context("dark_background"):
        dark = tl.plot_path(ds, "obs[0]", "obs[1]")
    assert sum(to_rgba(dark.collections[0].cmap(0.0))[:3]) > 0.9


def test_of_no_episode(blank):
    ax = tl.plot_path(blank, "obs[0]", "obs[1]")
    assert [text.get_text() for text in ax.texts] == ["no episodes"]


def test_of_one_step():
    ax = tl.plot_path(recording([[1, 2]], final=False), "obs[0]", "obs[1]")
    assert lines_of(ax) == []
    assert marks_of(ax) == {"start": [[1, 2]], "end": [[1, 2]]}
