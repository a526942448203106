"""Chunks that look right and are not: each was once recorded as something else without a word."""

import numpy as np
import pytest

import trajlab as tl

DONE = np.array([[False, False], [False, True], [True, False], [False, False]])
OBS = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize("name", ["next_obs", "final_obs"])
@pytest.mark.parametrize(
    ("obs", "other"),
    [
        (OBS.astype(np.int32), OBS + 0.5),
        (np.zeros((4, 2, 3)), np.zeros((4, 2, 2))),
        (np.full((4, 2), "ab"), np.full((4, 2), "abcdef")),
    ],
    ids=["dtype", "shape", "text"],
)
def test_a_next_or_final_observation_unlike_the_observation_is_refused(name, obs, other):
    with pytest.raises(ValueError, match=rf"'{name}' has cells of shape .* expected those of 'obs'.*Convention\("):
        tl.from_rollout({"obs": obs, name: other, "done": DONE})


def test_a_glob_of_the_alignment_that_matches_nothing_is_refused():
    rollout = {"obs": OBS, "done": DONE, "state": {"p": OBS}}
    with pytest.raises(KeyError, match=r"no field for Convention\(alignment=...\) 'states.\*'. Did you mean 'state.p'"):
        tl.from_rollout(rollout, convention=tl.Convention(alignment={"states.*": "result"}))
    with pytest.raises(ValueError, match=r"alignment\['obs'\]='auto'; expected one of 'transition', 'result'"):
        tl.Convention(alignment={"obs": "auto"})


def test_a_final_observation_unlike_the_observation_stays_a_field():
    ds = tl.from_rollout({"obs": {"a": OBS, "b": OBS}, "final_obs": {"a": OBS + 1}, "done": DONE})
    np.testing.assert_array_equal(ds["final_obs.a"].sel(episode=0)[:3], OBS[:3, 0] + 1)
    assert "final_observation=final_obs (found, but unlike the observation: an ordinary field)" in ds.convention
    assert not ds["final_known"].any()
    convention = tl.Convention(final_observation="final_obs")
    with pytest.raises(ValueError, match="has not the leaves of the observation: obs.a, obs.b"):
        tl.from_rollout({"obs": {"a": OBS, "b": OBS}, "final_obs": {"a": OBS}, "done": DONE}, convention=convention)


def test_fields_may_come_from_a_generator():
    ds = tl.from_rollout({"obs": OBS, "reward": OBS, "done": DONE}, fields=(name for name in ["obs"]))
    assert set(ds.data_vars) == {"obs", "done", "iteration"}


def test_masked_arrays_and_masks_of_floats_are_refused():
    with pytest.raises(ValueError, match="'obs' is a masked array; give its mask as mask="):
        tl.from_rollout({"obs": np.ma.masked_greater(OBS, 3), "done": DONE})
    with pytest.raises(ValueError, match="mask has dtype float64; expected bool"):
        tl.from_rollout({"obs": OBS, "done": DONE}, mask=np.full((4, 2), np.nan))


def test_iteration_goes_on_from_the_one_given():
    recorder = tl.Recorder()
    for iteration in (10, None, None):
        recorder.record({"obs": OBS[:1], "done": DONE[:1]}, iteration=iteration)
    ds = recorder.to_dataset()
    assert ds["iteration"].values.tolist() == [[10, 11, 12]] * 2
    assert ds["start_seen"].all()


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
def test_is_full_notices_the_last_of_the_wanted_episodes_whatever_is_looked_at_between(autoreset):
    recorder = tl.Recorder(max_episodes=3, convention=tl.Convention(autoreset=autoreset))
    ends = np.zeros((1, 3), bool)
    for column in range(3):
        assert not recorder.is_full
        for _ in range(4):
            recorder.record({"done": ends})
        recorder.record({"done": np.arange(3)[None] == column})
        if column == 1:
            recorder.to_dataset()
    if autoreset == "next_step":
        assert not recorder.is_full
        recorder.record({"done": ends})
    assert recorder.is_full
    assert recorder.to_dataset()["length"].values.tolist() == [5, 10, 15]
