"""Every analysis against one `numpy.bincount` of as many transitions, and against factoriax on a rollout of its size."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

import trajlab as tl

from .data import recording
from .reading import measured
from .table import Row
from .timing import fastest, interleaved, milliseconds, ratio, taken

CELLS, ENVS, STEPS = 10_000_000, 1024, 128
ROUNDS = 3
EPISODES, LENGTH, ACHIEVEMENTS = 1024, 128, 26
TURNS = 5
"""Calls in a row, of which the fastest counts."""
REDUCTION, QUANTILES = 5.0, 15.0
"""Passes at most: of a reduction, and where quantiles are asked for."""

Analysis = Callable[[xr.Dataset], Any]

REDUCTIONS: dict[str, Analysis] = {
    "action_histogram": lambda ds: tl.action_histogram(ds, by="start_iteration"),
    "action_rates": lambda ds: tl.action_rates(ds),
    "action_rates, by": lambda ds: tl.action_rates(ds, by="start_iteration"),
    "action_entropy": lambda ds: tl.action_entropy(ds),
    "action_entropy, per episode": lambda ds: tl.action_entropy(ds, per="episode"),
    "action_transitions": lambda ds: tl.action_transitions(ds),
    "action_transitions, by": lambda ds: tl.action_transitions(ds, by="phase"),
    "action_ngrams, n=3": lambda ds: tl.action_ngrams(ds, n=3),
    "action_runs": lambda ds: tl.action_runs(ds),
    "first_action_time": lambda ds: tl.first_action_time(ds),
    "action_by_state": lambda ds: tl.action_by_state(ds, "obs[0]"),
    "action_saturation": lambda ds: tl.action_saturation(ds, "reward", low=0.0, high=0.9),
    "state_trace, mean": lambda ds: tl.state_trace(ds, "reward", quantiles=False),
    "state_trace, to the end": lambda ds: tl.state_trace(ds, "reward", align="end", quantiles=False),
    "state_trace, fraction": lambda ds: tl.state_trace(ds, "reward", align="fraction", quantiles=False),
    "state_trace, from an event": lambda ds: tl.state_trace(ds, "reward", align=ds["length"] // 2, quantiles=False),
    "event_times, by a function": lambda ds: tl.event_times(ds, lambda ds: ds["reward"] > 0.99),
    "state_histogram": lambda ds: tl.state_histogram(ds, "reward"),
    "occupancy": lambda ds: tl.occupancy(ds, "obs[0]", "obs[1]"),
    "autocorrelation": lambda ds: tl.autocorrelation(ds, "reward"),
    "returns": lambda ds: tl.returns(ds, discount=0.99),
    "return_to_go": lambda ds: tl.return_to_go(ds, discount=0.99),
    "event_times": lambda ds: tl.event_times(ds, "done"),
    "milestones": lambda ds: tl.milestones(ds, "done"),
    "survival": lambda ds: tl.survival(ds),
    "outcomes": lambda ds: tl.outcomes(ds),
    "summary": lambda ds: tl.summary(ds),
    "outliers": lambda ds: tl.outliers(ds),
}
SORTING: dict[str, Analysis] = {"state_trace, quantiles": lambda ds: tl.state_trace(ds, "reward")}


def analyses(quick: bool) -> list[Row]:
    """Measure each analysis of a lazy Dataset in passes; one pass sums flat, loaded rewards over each episode."""
    recorder, cells = recording(np.random.default_rng(0), 100_000 if quick else CELLS, 64 if quick else ENVS, STEPS)
    ds = recorder.to_dataset()
    flat = tl.transitions(ds)
    group, weights = np.unique(flat["episode"].values, return_inverse=True)[1], flat["reward"].values.astype(float)
    calls = {name: (lambda one=one: one(ds)) for name, one in (REDUCTIONS | SORTING).items()}
    times = measured(calls | {"pass": lambda: np.bincount(group, weights=weights)}, 1 if quick else ROUNDS)
    rows = []
    for name in calls:
        most = QUANTILES if name in SORTING else REDUCTION
        spread = ratio(times[name].wall, times["pass"].wall)
        text = f"{spread.median:.2f} passes ({milliseconds(times[name].wall, 0)})"
        label = f"`{name}`, {cells / 1e6:.1f} million transitions"
        rows.append(Row(label, f"≤ {most:g} passes", text, spread.text(), spread.median <= most))
    return rows


def _job() -> tuple[xr.Dataset, dict[str, np.ndarray]]:
    """Return whole episodes of one length as a lazy Dataset, and their arrays (episode, time, ...)."""
    rng = np.random.default_rng(0)
    arrays = {
        "actions": rng.integers(0, 18, (EPISODES, LENGTH)).astype(np.int32),
        "achievements": np.maximum.accumulate(rng.random((EPISODES, LENGTH, ACHIEVEMENTS)) < 0.01, axis=1),
    }
    done = np.zeros((LENGTH, EPISODES), bool)
    done[-1] = True
    chunk = {
        "action": jnp.asarray(arrays["actions"].T),
        "achievements": jnp.asarray(arrays["achievements"].swapaxes(0, 1)),
        "done": jnp.asarray(done),
    }
    return tl.from_rollout(chunk), arrays


def rival_analyses(quick: bool) -> list[Row]:
    """Measure four analyses that factoriax has, too, on 1,024 episodes of 128 steps: the fastest of some calls."""
    from factoriax.analysis import actions, milestones
    from factoriax.analysis.trajectory import Trajectory

    ds, arrays = _job()
    theirs = Trajectory(**arrays)
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "transition matrix": (
            lambda: tl.action_transitions(ds),
            lambda: actions.transition_matrix(theirs, num_actions=18),
        ),
        "3-grams": (lambda: tl.action_ngrams(ds, n=3), lambda: actions.action_ngrams(theirs, n=3)),
        "run lengths": (lambda: tl.action_runs(ds), lambda: actions.run_lengths(theirs)),
        "time of achievements": (
            lambda: tl.event_times(ds, "achievements"),
            lambda: milestones.achievement_timing(theirs),
        ),
    }
    rows = []
    for name, (own, other) in pairs.items():
        first = measured({"own": own, "other": other}, 1 if quick else 15)
        turns = {
            key: (lambda call=call: fastest(lambda: taken(call), TURNS))
            for key, call in [("own", own), ("other", other)]
        }
        times = interleaved(turns, 1 if quick else 15)
        faster, cold = (ratio(one["other"].wall, one["own"].wall) for one in (times, first))
        text = f"{faster.median:.1f} times faster ({milliseconds(times['own'].wall)} to {milliseconds(times['other'].wall)})"
        text += f"; {cold.median:.1f} ({milliseconds(first['own'].wall)}) when called in turn, with nothing left in the cache"
        label = f"{name}, {EPISODES} episodes of {LENGTH} steps, against factoriax"
        rows.append(Row(label, "10 times faster", text, faster.text(1), faster.median >= 10))
    return rows
