"""Episodes without a value, as without a seed: in no group, no statistic, and last in order."""

import numpy as np
import pytest

import trajlab as tl

NONE = np.iinfo(np.int64).min


@pytest.fixture
def ds():
    rec = tl.Recorder(episode_fields={"seed": "first"})
    seed = np.array([[7, NONE, 3, NONE]] * 2)
    done = np.array([[False] * 4, [True] * 4])
    rec.record({"action": np.arange(8).reshape(2, 4) % 2, "reward": np.ones((2, 4)), "seed": seed, "done": done})
    return rec.to_dataset()


@pytest.mark.parametrize("analysis", [tl.action_histogram, tl.survival, tl.outcomes])
def test_they_are_in_no_group(ds, analysis):
    with pytest.warns(UserWarning, match="by='seed': 2 of 4 episodes have no value there and are in no group"):
        result = analysis(ds, by="seed")
    assert result["seed"].values.tolist() == [3, 7]
    assert result["seed"].attrs["left_out"] == 2


def test_they_are_left_out_of_statistics(ds):
    result = tl.learning_curve(ds, value="seed", by="env", groups={"all": slice(0, 3)})
    assert result["estimate"].sel(statistic="mean").values.tolist() == [5.0]
    assert result["n"].values.tolist() == [2]
    assert result["left_out"].values.tolist() == [2]


def test_they_are_left_out_of_a_summary(ds):
    assert tl.summary(ds)["seed_mean"] == 5
    assert "seed_mean" not in tl.summary(ds.isel(episode=ds["seed"].values == NONE))


def test_they_come_last(ds):
    assert tl.action_raster(ds, sort="seed")["seed"].values.tolist() == [3, 7, NONE, NONE]


def test_the_smallest_number_of_a_variable_of_ones_own_is_a_value(ds):
    own = ds.assign_coords(own=("episode", np.array([NONE, 1, 1, NONE])))
    assert tl.action_histogram(own, by="own")["own"].values.tolist() == [NONE, 1]
