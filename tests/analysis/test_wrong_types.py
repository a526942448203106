"""Arguments of a wrong type: the message names the argument and what was given for it."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

import trajlab as tl

CALLS = {
    "by=3": lambda ds: tl.occupancy(ds, "obs[0]", "obs[1]", by=3),
    "by=['env']": lambda ds: tl.survival(ds, by=["env"]),
    "by=7": lambda ds: tl.outcomes(ds, by=7),
    "over=3": lambda ds: tl.state_histogram(ds, "obs", over=3),
    "field=None": lambda ds: tl.action_saturation(ds, None),
    "field=['reward']": lambda ds: tl.returns(ds, reward=["reward"]),
    "action=3": lambda ds: tl.action_by_state(ds, "obs[0]", 3),
    "action_by_state: None": lambda ds: tl.action_by_state(ds, None),
    "value=3": lambda ds: tl.learning_curve(ds, value=3),
    "cluster=['env']": lambda ds: tl.learning_curve(ds, cluster=["env"]),
    "confidence='0.95'": lambda ds: tl.survival(ds, confidence="0.95"),
    "num_resamples=True": lambda ds: tl.learning_curve(ds, num_resamples=True),
    "rng=-1": lambda ds: tl.learning_curve(ds, rng=-1),
    "bins=['a', 'b']": lambda ds: tl.action_histogram(ds, "obs", bins=["a", "b"]),
    "x=3": lambda ds: tl.plot_returns(ds, x=3),
    "episodes=2.5": lambda ds: tl.plot_path(ds, "obs[0]", "obs[1]", episodes=2.5),
    "episodes='all'": lambda ds: tl.plot_path(ds, "obs[0]", "obs[1]", episodes="all"),
    "episodes=[0.5]": lambda ds: tl.plot_path(ds, "obs[0]", "obs[1]", episodes=[0.5]),
    "color=3": lambda ds: tl.plot_path(ds, "obs[0]", "obs[1]", color=3),
    "ax= has 'mine'": lambda ds: tl.plot_survival(ds, ax="mine"),
    "columns=True": lambda ds: tl.plot_overview(ds, columns=True),
}


@pytest.mark.parametrize("message", CALLS)
def test_message_names_argument_and_value(message):
    ds = tl.from_episodes([{"obs": np.zeros((3, 2)), "action": np.arange(3), "reward": np.ones(3)}])
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        CALLS[message](ds)
    plt.close("all")


def test_columns_may_be_of_numpy():
    ds = tl.from_episodes([{"action": np.arange(3), "reward": np.ones(3)}])
    assert len(tl.plot_overview(ds, columns=np.int64(1)))
