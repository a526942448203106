"""How many episodes or transitions a result leaves out stands in its attributes, also where it is none."""

import numpy as np
import pytest

import trajlab as tl

RESULTS = {
    "survival": lambda ds: tl.survival(ds),
    "milestones": lambda ds: tl.milestones(ds, "hit"),
    "learning_curve": lambda ds: tl.learning_curve(ds, num_resamples=2),
    "outliers": lambda ds: tl.outliers(ds),
    "align": lambda ds: tl.align(ds, "hit"),
    "state_trace": lambda ds: tl.state_trace(ds, "reward", align="fraction"),
    "by a coordinate": lambda ds: tl.action_histogram(ds, by="env")["env"],
    "by time": lambda ds: tl.action_histogram(ds, by="time")["time"],
    "by phase": lambda ds: tl.action_histogram(ds, by="phase")["phase"],
}


@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_left_out(name):
    ds = tl.from_episodes([{"action": np.arange(3), "reward": np.ones(3), "hit": np.arange(3) > 0}] * 8)
    assert RESULTS[name](ds).attrs["left_out"] == 0
