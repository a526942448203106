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
    "labels={}": lambda ds: tl.action_histogram(ds, labels={}),
    "labels=[]": lambda ds: tl.plot_action_raster(ds, labels=[]),
}
BOOLS = {
    "window=(True, 2)": lambda ds: tl.align(ds, "hit", window=(True, 2)),
    "window=[True]": lambda ds: tl.state_trace(ds, "reward", align="end", window=[True]),
    "episodes=True": lambda ds: tl.plot_path(ds, "obs[0]", "obs[1]", episodes=True),
    "threshold=True": lambda ds: tl.outliers(ds, threshold=True),
    "discount=True": lambda ds: tl.return_to_go(ds, discount=True),
    "low=True": lambda ds: tl.action_saturation(ds, "reward", low=True, high=3),
    "tolerance=[False]": lambda ds: tl.action_saturation(ds, "reward", low=0, high=3, tolerance=[False]),
    "bins=[False, True]": lambda ds: tl.action_histogram(ds, "obs", bins=[False, True]),
    "groups=[False, True, 9]": lambda ds: tl.action_histogram(ds, by="time", groups=[False, True, 9]),
    "groups=[0, True]": lambda ds: tl.action_histogram(ds, by="phase", groups=[0, True]),
    "rng=True": lambda ds: tl.learning_curve(ds, rng=True),
    "confidence=True": lambda ds: tl.survival(ds, confidence=True),
    "number=True": lambda ds: tl.episode(ds, True),
}
TOO_MANY = {
    "window=": lambda ds, n: tl.align(ds, "hit", window=(2, n)),
    "window=(": lambda ds, n: tl.state_trace(ds, "reward", align="hit", window=(n, 2)),
    "window=[": lambda ds, n: tl.state_trace(ds, "reward", align="end", window=[n]),
    "parts=": lambda ds, n: tl.state_trace(ds, "reward", align="fraction", parts=n),
    "max_lag=": lambda ds, n: tl.autocorrelation(ds, "reward", max_lag=n),
    "window=1": lambda ds, n: tl.action_entropy(ds, window=n),
    "bins=": lambda ds, n: tl.action_histogram(ds, "obs", bins=n),
    "bins=1": lambda ds, n: tl.occupancy(ds, "obs[0]", "obs[1]", bins=n),
    "groups=": lambda ds, n: tl.action_histogram(ds, by="phase", groups=n),
    "num_resamples=": lambda ds, n: tl.learning_curve(ds, num_resamples=n),
}


def recording():
    return tl.from_episodes(
        [{"obs": np.zeros((3, 2)), "action": np.arange(3), "reward": np.ones(3), "hit": np.arange(3) > 1}]
    )


@pytest.mark.parametrize("message", CALLS)
def test_message_names_argument_and_value(message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        CALLS[message](recording())
    plt.close("all")


@pytest.mark.parametrize("message", BOOLS)
def test_a_bool_is_no_number(message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}; (expected|by='phase' takes)"):
        BOOLS[message](recording())


@pytest.mark.parametrize("message", TOO_MANY)
@pytest.mark.parametrize("number", [10**12, 10**30])
def test_what_no_memory_holds_is_refused(message, number):
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}.*(at most [\d,]+|from 1 to [\d,]+)"):
        TOO_MANY[message](recording(), number)


def test_steps_may_be_as_many_as_an_episode_has():
    long = tl.from_episodes([{"reward": np.ones(12_000), "hit": np.arange(12_000) > 11_000}])
    assert tl.state_trace(long, "reward", align="end", window=(12_000, 0), quantiles=False).sizes["lag"] == 12_001
    with pytest.raises(
        ValueError, match=r"window=\(12001, 0\); expected at most 12,000 steps: the longest episode here"
    ):
        tl.state_trace(long, "reward", align="end", window=(12_001, 0))


def test_columns_may_be_of_numpy():
    ds = tl.from_episodes([{"action": np.arange(3), "reward": np.ones(3)}])
    assert len(tl.plot_overview(ds, columns=np.int64(1)))
