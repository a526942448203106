"""Groups of steps: by='time' and by='phase'."""

import numpy as np
import pytest
import ragged

import trajlab as tl


def counting(*lengths, **options):
    """Return episodes whose action is the number of the step."""
    return tl.from_episodes([{"action": np.arange(n)} for n in lengths], **options)


def test_ranges_of_steps():
    counts = tl.action_histogram(counting(2, 4), by="time", groups=[0, 2, 4])["count"]
    assert counts["time"].values.tolist() == ["0–1", "2–4"]
    assert counts.values.tolist() == [[2, 2, 0, 0], [0, 0, 1, 1]]
    chosen = tl.action_histogram(counting(2, 4), by="time", groups={"start": 0, "rest": slice(2, None)})
    assert chosen["count"].sum("value").values.tolist() == [2, 2]
    assert chosen["time"].attrs["left_out"] == 2


def test_thirds_of_an_episode():
    counts = tl.action_histogram(counting(6, 3), by="phase")["count"]
    assert counts["phase"].values.tolist() == ["early", "middle", "late"]
    assert counts.values.tolist() == [[2, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 0, 1, 1]]


def test_a_step_belongs_to_the_part_its_middle_is_in():
    by_length = [tl.action_histogram(counting(n), by="phase")["count"].sum("value").values.tolist() for n in (1, 2, 4)]
    assert by_length == [[0, 1, 0], [1, 0, 1], [1, 2, 1]]


def test_edges_of_phases_leave_out_the_rest():
    counts = tl.action_histogram(counting(10), by="phase", groups=[0.5, 0.9])["count"]
    assert counts["phase"].values.tolist() == ["0.5–0.9"]
    assert counts["value"].values.tolist() == [5, 6, 7, 8]
    assert counts.values.tolist() == [[1, 1, 1, 1]]


def test_the_phase_of_a_cut_episode_is_not_known():
    result = tl.action_histogram(counting(3, 5, end_reason=["terminated", "cut"]), by="phase")
    assert result["count"].values.sum() == 3
    assert result["phase"].attrs["left_out"] == 5


def test_a_variable_called_phase_goes_first():
    ds = counting(2, 2).assign_coords(phase=("episode", ["one", "two"]))
    assert tl.action_histogram(ds, by="phase")["phase"].values.tolist() == ["one", "two"]


@pytest.mark.parametrize("form", ragged.FORMS)
@pytest.mark.parametrize("by", ["time", "phase"])
def test_against_a_loop(form, by, tmp_path):
    ds = ragged.make_dataset([4, 1, 6, 3, 5, 2])
    result = tl.action_histogram(ragged.in_form(ds, form, tmp_path), by=by, groups=2, bins=[-3, 0, 5])
    want = np.zeros((2, 2), int)
    for episode in range(ds.sizes["episode"]):
        one = ds.isel(episode=episode)
        n = int(one["length"])
        for step in range(n):
            place = int(step > 1) if by == "time" else int(2 * step + 1 >= n)
            if by == "time" or bool(one["complete"]):
                want[place, int(one["action"][step] >= 0)] += 1
    assert result["count"].values.tolist() == want.tolist()


def test_results_over_time_and_over_episodes_refuse_them():
    ds = counting(3, 2)
    for analysis in (tl.action_rates, tl.action_entropy, tl.state_trace):
        with pytest.raises(ValueError, match="by='time' asks for ranges"):
            analysis(ds, "action", by="time")
    for by in ("time", "phase"):
        with pytest.raises(ValueError, match="has a value per transition"):
            tl.survival(ds, by=by)


def test_a_trace_by_phase_says_how_many_transitions_it_is_of():
    trace = tl.state_trace(counting(6, 3), "action", by="phase", quantiles=False)
    assert trace["n"].values.tolist() == [[2, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 0, 1, 1]]
    assert trace["mean"].sel(phase="late").values[2] == 2.0


@pytest.mark.parametrize(
    ("groups", "error"),
    [("early", TypeError), ({"a": 0.5}, TypeError), ([0, 2], ValueError), (0, TypeError), ([0.5], ValueError)],
)
def test_wrong_parts(groups, error):
    with pytest.raises(error, match="by='phase' takes a number of equal parts"):
        tl.action_histogram(counting(3), by="phase", groups=groups)


def test_no_episode():
    empty = counting(3).isel(episode=[])
    assert tl.action_histogram(empty, by="phase")["count"].shape == (3, 0)
    assert tl.action_histogram(empty, by="time", groups=2)["count"].sum() == 0
