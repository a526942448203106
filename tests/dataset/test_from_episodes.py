"""trajlab/dataset/from_episodes.py and what is warned of: names, empty lists, end reasons."""

import dataclasses
import warnings
from typing import Any, NamedTuple

import jax
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


# The final observation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", [np.array(99.0), np.array([99.0]), 99.0, np.float64(99)], ids=repr)
@pytest.mark.parametrize("name", ["final_obs", "final_observation"])
def test_a_final_observation_given_by_itself(final, name):
    ds = tl.from_episodes([{name: final, "obs": np.array([1.0, 2.0])}, {"obs": np.array([3.0, 4.0, 5.0])}])
    assert ds["length"].values.tolist() == [2, 3]
    assert ds["final_known"].values.tolist() == [True, False]
    np.testing.assert_array_equal(ds["obs"].values, [[1, 2, np.nan], [3, 4, 5]])
    np.testing.assert_array_equal(ds["final_obs"].values, [99, np.nan])
    assert name == "final_obs" or name not in ds
    tl.validate(ds, deep=True)


def test_a_final_observation_of_several_leaves():
    obs = {"a": np.zeros((2, 3)), "b": np.arange(2)}
    ds = tl.from_episodes([{"obs": obs, "final_obs": {"a": np.ones(3), "b": np.array([7])}, "reward": np.ones(2)}])
    assert ds["final_obs.a"].values.tolist() == [[1, 1, 1]]
    assert ds["final_obs.b"].values.tolist() == [7]
    assert ds["length"].item() == 2


FINALS = {
    "several rows": ({"final_obs": np.ones(2)}, r"'final_obs' has shape \(2,\).*expected one.*final_obs\[-1\]"),
    "another shape": ({"final_obs": np.ones((1, 3))}, r"has shape \(1, 3\); expected one observation, \(\) or \(1,\)"),
    "another dtype": ({"final_obs": np.array(3)}, "'final_obs' has dtype int64; 'obs' has float64"),
    "a row as well": ({"final_obs": np.ones(1), "obs": np.ones(3)}, "'obs' has 3 rows where 2 steps are; leave one"),
    "both names": ({"final_obs": np.ones(1), "final_observation": np.ones(1)}, "both 'final_obs' and 'final_observa"),
    "other leaves": ({"final_obs": {"a": np.ones(1)}}, r"has the arrays \['final_obs.a'\]; expected \['final_obs'\]"),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "message"), FINALS.values(), ids=FINALS)
def test_what_is_no_final_observation(entries, message):
    with pytest.raises(ValueError, match=f"episode 0: .*{message}"):
        tl.from_episodes([{"obs": np.ones(2), "action": np.arange(2)} | entries])


def test_a_final_observation_of_nothing():
    with pytest.raises(ValueError, match="'final_obs' is given without an observation"):
        tl.from_episodes([{"position": np.ones(2), "final_obs": np.ones(1)}])


def test_the_field_that_differs_from_the_others_is_the_one_named():
    rows = {"action": np.arange(1), "obs": np.ones(2), "reward": np.ones(2), "done": np.zeros(2, bool)}
    with pytest.raises(ValueError, match="fit together: episode 0: 'action' has 1 rows; expected 2$"):
        tl.from_episodes([rows])


# What an episode may be -----------------------------------------------------------------------------------------


class Step(NamedTuple):
    obs: Any
    action: Any


@dataclasses.dataclass
class Data:
    obs: Any
    action: Any


@pytest.mark.parametrize("kind", [Step, Data, lambda obs, action: {"obs": obs, "action": action}])
def test_episodes_of_any_kind(kind):
    ds = tl.from_episodes(kind(np.ones((n + 1, 2)), np.arange(n)) for n in (2, 1))
    assert set(ds.data_vars) == {"obs", "action", "final_obs", "iteration"}
    assert ds["length"].values.tolist() == [2, 1]
    assert ds["final_known"].all()


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ({"obs": np.ones(2)}, r"episodes is a dict; expected a list .*from_episodes\(\[episode\]\)"),
        (Step(np.ones(2), np.ones(2)), "episodes is a Step; expected a list"),
        (7, "episodes is a int; expected a list"),
        ([np.ones(2)], "episode 0 is a ndarray; expected a mapping, NamedTuple or dataclass"),
        ([{"a": np.ones(2)}, None], "episode 1 is a NoneType; expected a mapping"),
    ],
)
def test_what_is_no_episode(episodes, message):
    with pytest.raises(TypeError, match=message):
        tl.from_episodes(episodes)


def test_keys_appear_as_their_data():
    keys = jax.random.split(jax.random.key(0), 3)
    ds = tl.from_episodes([{"key": keys, "action": np.arange(3)}])
    assert ds["key"].attrs["recorded_dtype"] == "key"
    np.testing.assert_array_equal(ds["key"].values[0], jax.random.key_data(keys))
    tl.validate(ds, deep=True)


@pytest.mark.parametrize(
    ("reason", "flags", "message"),
    [
        ("truncated", {"terminated": 1}, "'truncated', but 'terminated' is set"),
        ("cut", {"done": 1}, "'cut', but 'done' is set"),
        ("terminated", {"terminated": 0}, "'terminated', but 'terminated' is not set"),
        ("terminated", {"terminated": 1, "truncated": 1, "done": 1}, None),
        ("truncated", {"done": 1}, None),
        ("terminated", {"truncated": 0}, None),
    ],
)
def test_an_end_reason_agrees_with_the_flags(reason, flags, message):
    rows = {"action": np.arange(2), **{flag: np.array([0, last]) for flag, last in flags.items()}}
    if message is None:
        tl.validate(tl.from_episodes([rows], end_reason=reason), deep=True)
    else:
        with pytest.raises(ValueError, match=f"episode 0: {message} at its last step"):
            tl.from_episodes([rows], end_reason=reason)


# Names, labels and units of dims --------------------------------------------------------------------------------


def test_a_field_called_as_a_default_dim():
    ds = tl.from_episodes([{"obs": np.zeros((2, 3)), "obs_dim_0": np.ones(2), "next_obs": np.zeros((2, 3))}])
    assert ds["obs"].dims == ds["next_obs"].dims == ("episode", "time", "obs_dim_0_")
    assert ds["obs_dim_0"].values.tolist() == [[1, 1]]
    tl.validate(ds, deep=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"units": {"obs": None}}, r"units\['obs'\]=None; expected one text"),
        ({"units": {"obs": ["m", None]}}, r"units\['obs'\]=\['m', None\]; expected one text"),
        ({"units": {"obs": {"0": 1}}}, r"units\['obs'\]=\{'0': 1\}; expected one text"),
        ({"units": "m"}, "units='m'; expected a mapping"),
        ({"dims": ["x"]}, r"dims=\['x'\]; expected a mapping"),
        ({"coords": ["x"]}, r"coords=\['x'\]; expected a mapping"),
    ],
)
def test_labels_of_the_wrong_type(given, message):
    with pytest.raises(TypeError, match=message):
        tl.from_episodes([{"obs": np.zeros((2, 2))}], **given)
