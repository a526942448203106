"""Infos: what is missing is missing and not 0, and what cannot be recorded is named once."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from integrations.counter import Counter, counters

from trajlab.integrations.gymnasium import RecordEpisodes, RecordVectorEpisodes
from trajlab.integrations.gymnasium.infos import named_values

pytestmark = pytest.mark.interop

NO_INT = np.iinfo(np.int64).min


class Scripted(Counter):
    """Gives these infos, one per step."""

    def __init__(self, *infos):
        super().__init__()
        self.infos = iter(infos)

    def step(self, action):
        *result, _ = super().step(action)
        return *result, next(self.infos)


def record(*infos, **kwargs):
    env = RecordEpisodes(Scripted(*infos), **kwargs)
    env.reset()
    for _ in infos:
        env.step(0)
    return env.recorder.to_dataset().isel(episode=0).load()


def test_missing_values_are_missing():
    ds = record({"x": 0.5, "n": 3, "won": False, "pose": np.ones(2)}, {}, {"x": None, "deep": {"a": np.float32(1)}})
    np.testing.assert_array_equal(ds["info.x"], [0.5, np.nan, np.nan])
    assert ds["info.n"].values.tolist() == [3, NO_INT, NO_INT]
    assert ds["info._won"].values.tolist() == [True, False, False]
    np.testing.assert_array_equal(ds["info.pose"], [[1, 1], [np.nan] * 2, [np.nan] * 2])
    np.testing.assert_array_equal(ds["info.deep.a"], [np.nan, np.nan, 1])
    assert ds["info.deep.a"].dtype == np.float32


def test_masks_of_vector_infos_nest():
    infos = {
        "a": {"b": np.arange(3), "_b": np.array([True, False, True])},
        "_a": np.array([True, True, False]),
        "c": np.zeros(3),
    }
    (b, value, mask), (c, _, everywhere) = named_values(infos)
    assert (b, c, everywhere) == ("a.b", "c", None)
    assert value.tolist() == [0, 1, 2]
    assert mask.tolist() == [True, False, False]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_episode_statistics_stand_on_the_step_that_ends(mode):
    envs = gym.wrappers.vector.RecordEpisodeStatistics(counters(2, mode))
    envs = RecordVectorEpisodes(envs, exclude=["info.episode.t"])
    envs.reset()
    for actions in ([0, 0], [2, 0], [0, 0], [0, 2]):
        envs.step(actions)
    ds = envs.recorder.to_dataset(incomplete="drop").load()
    last = ds.isel(time=ds["length"] - 1)
    assert last["info.episode.l"].values.tolist() == ds["length"].values.tolist() == [2, 4]
    assert (ds["info.episode.l"] != NO_INT).where(ds["mask"]).sum() == 2


def test_of_a_reset_in_the_same_step_the_infos_are_those_of_the_end():
    envs = RecordVectorEpisodes(counters(2, "SameStep"))
    envs.reset()
    for actions in ([0, 0], [2, 0], [0, 0]):
        envs.step(actions)
    ds = envs.recorder.to_dataset().load()
    assert ds["info.step"].values.tolist() == [[1, 2, NO_INT], [1, 2, 3], [1, NO_INT, NO_INT]]
    assert "info.born" not in ds  # the info of a reset belongs to no step


def test_an_end_without_its_observation_is_refused():
    class Forgetful(gym.vector.VectorWrapper):
        def step(self, actions):
            *result, infos = self.env.step(actions)
            return *result, {key: value for key, value in infos.items() if not key.endswith("final_obs")}

    envs = RecordVectorEpisodes(Forgetful(counters(2, "SameStep")))
    envs.reset()
    with pytest.raises(ValueError, match=r"'final_obs'\] is missing for the environments \[1\]"):
        envs.step([0, 2])
    envs = RecordVectorEpisodes(Forgetful(counters(2, "SameStep")), exclude=["obs"])
    envs.reset()
    envs.step([0, 2])
    assert "final_obs" not in envs.recorder.to_dataset()


def test_what_cannot_be_recorded_is_named_once():
    with pytest.warns(UserWarning, match="info 'word': not recorded, as it holds neither numbers") as caught:
        ds = record({"word": "a"}, {"word": "b"}, {"word": "c"})
    assert len(caught) == 1
    assert "info.word" not in ds


def test_a_value_unlike_the_first_is_missing_and_named_once():
    with pytest.warns(UserWarning, match=r"info 'x': a value is left out: 'info.x' has shape \(1, 3\)") as caught:
        ds = record({"x": 1.5}, {"x": np.zeros(3)}, {"x": np.zeros(3)}, {"x": 2})
    assert len(caught) == 1
    np.testing.assert_array_equal(ds["info.x"], [1.5, np.nan, np.nan, 2])


def test_values_first_seen_at_the_first_end_are_recorded():
    env = RecordEpisodes(Scripted(*[{}] * 5, {"score": 2.0}), chunk=2)
    env.reset()
    for _ in range(6):
        env.step(0)
    assert env.recorder.to_dataset()["info.score"].values[0, -1] == 2.0


def test_a_late_value_is_named_with_its_declaration():
    env = RecordEpisodes(Scripted({}, {"score": 2.0, "pose": np.ones(2)}))
    env.reset()
    env.step(0)
    env.recorder.to_dataset()
    with pytest.warns(UserWarning, match="Declare it") as caught:
        env.step(0)
    texts = [str(warning.message) for warning in caught]
    assert "infos={'score': 'float64'}" in texts[0]
    assert "infos={'pose': np.zeros((2,), 'float64')}" in texts[1]


def test_declared_values_and_no_others():
    declared = {"score": "float64", "pose": np.zeros(2), "flag": bool}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = record({"other": 1, "word": "a"}, {"score": 2, "pose": np.ones(2)}, infos=declared)
    assert sorted(name for name in ds if name.startswith("info")) == [
        "info._flag",
        "info.flag",
        "info.pose",
        "info.score",
    ]
    np.testing.assert_array_equal(ds["info.score"], [np.nan, 2])
    with pytest.raises(TypeError, match=r"infos\['word'\]='U5'; expected the dtype of a number"):
        record(infos={"word": "U5"})


def test_excluded_infos_are_left_out_in_silence():
    ds = record({"word": "a", "x": 1.0, "y": 2.0}, exclude=["info.word", "info.x"])
    assert "info.x" not in ds
    assert "info.y" in ds


def test_whole_numbers_become_floats_where_the_next_is_one():
    ds = record({"x": 1}, {}, {"x": 0.5})
    np.testing.assert_array_equal(ds["info.x"], [1, np.nan, 0.5])


def test_a_number_too_large_for_its_field_is_missing_and_not_another():
    with pytest.warns(UserWarning, match="info 'n': a value is left out: 'info.n' has dtype int64; expected int8"):
        ds = record({"n": np.int8(3)}, {"n": 4}, {"n": 300})
    assert ds["info.n"].values.tolist() == [3, 4, -128]
