"""The whole job, three ways: record, cut into episodes, count actions, mean state over time.

As a module it does the job one way in its own process, several times over, and prints what it measured.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .process import forget_peak, fresh, peak_bytes, resident_bytes
from .table import Row
from .timing import ratio

STEPS, ENVS, CHUNKS = 128, 1024, 20
STATE = "player_inventory"
PROCESSES = 3
REPEATS = {"trajlab": 5, "by hand": 5, "factoriax": 2}


class Result(NamedTuple):
    """What the job gives, and what has to stay alive with it."""

    counts: np.ndarray
    mean: np.ndarray
    kept: Any


def with_trajlab(chunks: Sequence[Any], states: Sequence[Any]) -> Result:
    """Do the job with this package."""
    import trajlab as tl

    recorder = tl.Recorder()
    for chunk, state in zip(chunks, states, strict=True):
        recorder.record(chunk, state=state)
    ds = recorder.to_dataset()
    counts = tl.action_histogram(ds)["count"].values
    mean = tl.state_trace(ds, f"state.{STATE}", quantiles=False)["mean"].values
    return Result(counts, mean.reshape(len(mean), -1), (recorder, ds))


def with_factoriax(chunks: Sequence[Any], states: Sequence[Any]) -> Result:
    """Do the job with factoriax; its results count the zeros that it pads with."""
    from factoriax.analysis.recorder import RolloutRecorder
    from factoriax.analysis.state import inventory_over_time

    recorder = RolloutRecorder(record_states=True, state_fields=list(states[0]._fields))
    for chunk, state in zip(chunks, states, strict=True):
        recorder.record(chunk, state)
    trajectory = recorder.finish()
    counts = np.bincount(trajectory.actions.ravel())
    return Result(counts, inventory_over_time(trajectory), (recorder, trajectory))


def by_hand(chunks: Sequence[Any], states: Sequence[Any]) -> Result:
    """Do the job with NumPy alone, as one would write it in a notebook for this recording."""
    fields = {name: np.concatenate([np.asarray(getattr(c, name)) for c in chunks]) for name in chunks[0]._fields}
    fields |= {name: np.concatenate([np.asarray(getattr(s, name)) for s in states]) for name in states[0]._fields}
    done = fields["done"]
    rows = np.arange(len(done))[:, None]
    begins = np.ones_like(done)
    begins[1:] = done[:-1]
    step = rows - np.maximum.accumulate(np.where(begins, rows, 0), axis=0)
    env, start = np.nonzero(begins.T)
    length = np.diff(np.append(env * len(done) + start, done.size))
    counts = np.bincount(fields["action"].ravel())
    flat = step.ravel()
    alive = np.bincount(flat)
    values = fields[STATE].reshape(len(flat), -1)
    sums = [np.bincount(flat, weights=values[:, i]) for i in range(values.shape[1])]
    return Result(counts, np.stack(sums, axis=1) / alive[:, None], (fields, env, start, length))


WAYS: dict[str, Callable[[Sequence[Any], Sequence[Any]], Result]] = {
    "trajlab": with_trajlab,
    "factoriax": with_factoriax,
    "by hand": by_hand,
}


def _import(way: str) -> None:
    """Import what a way needs, which is not part of the job; xarray imports dask at the first variable it makes."""
    if way == "trajlab":
        import xarray as xr

        import trajlab  # noqa: F401

        xr.Variable("x", [0])
    if way == "factoriax":
        import factoriax.analysis.recorder
        import factoriax.analysis.state  # noqa: F401


def measure(way: str, repeats: int, chunks: int, envs: int) -> dict[str, Any]:
    """Do the job `repeats` times; the first time is that of a fresh process."""
    from .data import bytes_of, states, transitions

    rng = np.random.default_rng(0)
    chunked = [transitions(rng, STEPS, envs) for _ in range(chunks)]
    stated = [states(rng, STEPS, envs) for _ in range(chunks)]
    recorded = bytes_of(chunked, stated)
    _import(way)
    gc.collect()
    times, processor, peak, result = [], [], 0, None
    for number in range(repeats):
        result = None
        gc.collect()
        before = resident_bytes()
        forget_peak()
        start, busy = time.perf_counter(), time.process_time()
        result = WAYS[way](chunked, stated)
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
        if number == 0:
            peak = peak_bytes() - before
    assert result is not None
    return {
        "first": times[0],
        "warm": times[1:],
        "first_processor": processor[0],
        "warm_processor": processor[1:],
        "peak": peak / recorded,
        "recorded": recorded,
        "counts": result.counts.tolist(),
        "steps": len(result.mean),
        "mean": [float(np.abs(result.mean).sum()), *result.mean[0].tolist()],
    }


def _agree(found: dict[str, list[dict[str, Any]]]) -> None:
    """Raise where trajlab's answers differ from those by hand."""
    ours, theirs = found["trajlab"][0], found["by hand"][0]
    np.testing.assert_array_equal(ours["counts"], theirs["counts"])
    np.testing.assert_allclose(ours["mean"], theirs["mean"], rtol=1e-9)


def job(quick: bool) -> list[Row]:
    """Measure the job in fresh processes, the three ways in turn: first time, warm, peak memory."""
    chunks, envs, processes = (3, 64, 1) if quick else (CHUNKS, ENVS, PROCESSES)
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(processes):
        for way in list(WAYS)[:: 1 if number % 2 else -1]:
            repeats = 2 if quick else REPEATS[way]
            found[way].append(fresh("job", way, str(repeats), str(chunks), str(envs)))
    _agree(found)
    return [*_time_rows(found, chunks, envs), *_memory_rows(found)]


def _time_rows(found: dict[str, list[dict[str, Any]]], chunks: int, envs: int) -> list[Row]:
    size = found["trajlab"][0]["recorded"] / 1e6
    rows = []
    for label, key, least in (("first time in a process", "first", 6.0), ("warm", "warm", 2.5)):
        times, processor = _medians(found, key), _medians(found, f"{key}_processor")
        raw = ", ".join(f"{way} {np.median(values):.2f} s" for way, values in times.items())
        faster = ratio(times["factoriax"], times["trajlab"])
        what = f"{chunks} chunks (T={STEPS}, N={envs}), {size:.0f} MB, {label}: against factoriax"
        text = f"{faster.median:.1f} times faster ({raw})"
        rows.append(Row(what, f"≥ {least:g} times faster", text, faster.text(1), faster.median >= least))
        share, busy = (ratio(x["trajlab"], x["by hand"]) for x in (times, processor))
        text = f"{share.median:.2f} times; {busy.median:.2f} in processor time"
        rows.append(Row(f"... {label}: against by hand", "≤ 1.2 times", text, share.text(), share.median <= 1.2))
    return rows


def _medians(found: dict[str, list[dict[str, Any]]], key: str) -> dict[str, list[float]]:
    """Return one number per process and way."""
    return {way: [float(np.median(run[key])) for run in runs] for way, runs in found.items()}


def _memory_rows(found: dict[str, list[dict[str, Any]]]) -> list[Row]:
    peaks = {way: [run["peak"] for run in runs] for way, runs in found.items()}
    raw = ", ".join(f"{way} {np.median(values):.2f}" for way, values in peaks.items())
    own, share = ratio(peaks["trajlab"], [1.0] * len(peaks["trajlab"])), ratio(peaks["trajlab"], peaks["by hand"])
    return [
        Row(
            "... peak memory above that before the first record, chunks excluded",
            "≤ 1.5 times the recorded bytes",
            f"{own.median:.2f} ({raw})",
            own.text(),
            own.median <= 1.5,
        ),
        Row(
            "... peak memory: against by hand",
            "≤ 1.2 times",
            f"{share.median:.2f} times",
            share.text(),
            share.median <= 1.2,
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    for option in ("repeats", "chunks", "envs"):
        parser.add_argument(option, type=int)
    given = parser.parse_args()
    print(json.dumps(measure(given.way, given.repeats, given.chunks, given.envs)))
