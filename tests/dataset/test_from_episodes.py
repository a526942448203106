"""trajlab/dataset/from_episodes.py and what is warned of: names, empty lists, end reasons."""

import warnings

import numpy as np
import pytest

import trajlab as tl
from trajlab.dataset.build import empty_dataset


def test_a_reserved_name_is_told_once_at_the_users_line():
    with pytest.warns(UserWarning, match="the field 'time' has a reserved name and is recorded as 'time_'") as seen:
        ds = tl.from_episodes([{"time": np.arange(2.0)}, {"time": np.arange(3.0)}])
    assert [warning.filename for warning in seen] == [__file__]
    assert ds["time_"].values[1].tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:the field 'time' has a reserved name")
def test_two_fields_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two fields would be called 'time_': 'time' and 'time_'; rename one"):
        tl.from_episodes([{"time": np.arange(2.0), "time_": np.ones(2)}])
    with pytest.raises(ValueError, match="two fields would be called 'time_'"):
        tl.from_episodes([{"time_": np.arange(2.0), "time": np.ones(2)}])


def test_an_empty_list_is_an_empty_dataset_with_a_warning():
    with pytest.warns(UserWarning, match="no episode: the list given is empty") as seen:
        ds = tl.from_episodes([])
    assert seen[0].filename == __file__
    assert ds.sizes["episode"] == 0
    tl.validate(ds, deep=True)


def test_the_dataset_of_a_disabled_recorder_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tl.validate(empty_dataset())
        tl.validate(tl.Recorder(enabled=False).to_dataset())


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({}, "done"),
        ({"done": 0}, "cut"),
        ({"done": 1}, "done"),
        ({"terminated": 1, "truncated": 1}, "terminated"),
        ({"truncated": 1}, "truncated"),
        ({"terminated": 0, "done": 1}, "truncated"),
        ({"truncated": 0, "done": 1}, "terminated"),
        ({"terminated": 0, "truncated": 0, "done": 1}, "done"),
        ({"terminated": 0, "truncated": 1, "done": 1}, "truncated"),
    ],
)
def test_end_reasons_follow_from_the_last_step(flags, reason):
    ds = tl.from_episodes([{"action": np.arange(2), **{flag: np.array([0, last]) for flag, last in flags.items()}}])
    assert ds["end_reason"].item() == reason
    rows = {"action": np.arange(2)[:, None], **{flag: np.array([[0], [last]]) for flag, last in flags.items()}}
    if flags:
        assert tl.from_rollout(rows)["end_reason"].item() == reason


@pytest.mark.parametrize("reason", ["terminated", "truncated", "done", "cut"])
def test_end_reasons_that_are_given(reason):
    ds = tl.from_episodes([{"action": np.arange(2)}], end_reason=reason)
    assert ds["end_reason"].item() == reason
    assert ds["complete"].item() == (reason != "cut")


def test_cells_of_a_read_with_a_step_are_counted_one_by_one():
    ds = tl.from_episodes([{"action": np.arange(n)} for n in (5, 2, 9)])
    array = ds["action"].variable._data.array
    for times in (np.arange(0, 9, 2), np.array([7, 0, 3]), np.arange(0)):
        mask = ds["mask"].values[:, times]
        assert array.cells_of([np.arange(3), times]) == mask.sum()
