"""How rows were handed over, and in which columns, changes no statistic."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from chunks import random_rollout

import trajlab as tl


def recorded(chunk, edges, columns=slice(None)):
    recorder = tl.Recorder()
    for start, stop in itertools.pairwise(edges):
        recorder.record({name: rows[start:stop, columns] for name, rows in chunk.items()}, iteration=0)
    return recorder.to_dataset()


STATISTICS = {
    "histogram": lambda ds: tl.action_histogram(ds, by="end_reason"),
    "bins": lambda ds: tl.action_histogram(ds, "obs", bins=7),
    "pairs": lambda ds: tl.action_transitions(ds, by="end_reason"),
    "rates": lambda ds: tl.action_rates(ds, by="complete"),
    "entropy": lambda ds: tl.action_entropy(ds, window=5),
    "entropy of episodes": lambda ds: np.sort(tl.action_entropy(ds, per="episode")["entropy"].values),
    "n-grams": lambda ds: tl.action_ngrams(ds, n=[2, 3], by="end_reason", top=None),
    "runs": lambda ds: tl.action_runs(ds, by="complete"),
    "autocorrelation": lambda ds: tl.autocorrelation(ds, "obs", by="end_reason", max_lag=6),
    "saturation": lambda ds: tl.action_saturation(ds, "obs", low=-0.5, high=0.5, by="complete"),
    "trace": lambda ds: tl.state_trace(ds, "obs"),
    "trace to the end": lambda ds: tl.state_trace(ds, "obs", align="end"),
    "trace by fraction": lambda ds: tl.state_trace(ds, "obs", align="fraction", parts=5),
    "trace by event": lambda ds: tl.state_trace(ds, "obs", align=tl.event_times(ds, lambda ds: ds["reward"] > 0.5)),
    "events": lambda ds: np.sort(tl.event_times(ds, lambda ds: ds["reward"] > 0.5)["event_time"].values),
    "windows": lambda ds: tl.state_trace(tl.align(ds, lambda ds: ds["reward"] > 0.5, window=(2, 2)), "obs"),
    "milestones": lambda ds: tl.milestones(ds, {"up": lambda ds: ds["reward"] > 0.5}, by="complete"),
    "first actions": lambda ds: np.sort(tl.first_action_time(ds)["event_time"].values, axis=0),
    "trace by group": lambda ds: tl.state_trace(ds, "reward", by="complete"),
    "returns": lambda ds: np.sort(tl.returns(ds, discount=0.9).values),
    "return to go": lambda ds: np.sort(tl.transitions(ds.assign(g=tl.return_to_go(ds, discount=0.9)))["g"].values),
    "drift": lambda ds: tl.state_histogram(ds, "obs", groups=5, bins=9),
    "outcomes": lambda ds: tl.outcomes(ds, by="start_row", groups=4),
    "learning curve": lambda ds: tl.learning_curve(ds, by="start_row", groups=4),
    "summary": lambda ds: [*tl.summary(ds).values()],
    "occupancy": lambda ds: tl.occupancy(ds, "obs[0]", "reward", by="end_reason"),
    "actions by state": lambda ds: tl.action_by_state(ds, ["obs[0]", "reward"], bins=3),
    "outliers": lambda ds: np.sort(tl.outliers(ds, threshold=1.5)["score"].values),
}


def assert_same(got, want):
    if isinstance(got, xr.Dataset):
        xr.testing.assert_allclose(got, want, rtol=1e-12)
    elif isinstance(got, pd.DataFrame):
        pd.testing.assert_frame_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=list(STATISTICS))
def test_cuts_of_chunks_and_order_of_environments(statistic):
    chunk = random_rollout()
    want = statistic(recorded(chunk, [0, 40]))
    assert_same(statistic(recorded(chunk, [0, 7, 14, 15, 33, 40])), want)
    assert_same(statistic(recorded(chunk, [0, 20, 40], np.array([3, 1, 4, 0, 2]))), want)


def test_runs_put_together_are_groups():
    first, second = (tl.from_rollout(random_rollout(seed)) for seed in (0, 1))
    both = tl.concat([first, second], run=["a", "b"])
    counts = tl.action_histogram(both, by="run")["count"]
    trace = tl.state_trace(both, "obs", by="run")
    for run, ds in (("a", first), ("b", second)):
        assert counts.sel(run=run).values.tolist() == tl.action_histogram(ds)["count"].values.tolist()
        alone = tl.state_trace(ds, "obs")["mean"]
        np.testing.assert_allclose(trace["mean"].sel(run=run, time=alone["time"]), alone)
    assert sorted(tl.returns(both).values) == sorted([*tl.returns(first).values, *tl.returns(second).values])


def test_the_given_dataset_stays_as_it_is():
    ds = tl.from_rollout(random_rollout()).load()
    before = ds.copy(deep=True)
    for statistic in STATISTICS.values():
        statistic(ds)
    xr.testing.assert_identical(ds, before)
