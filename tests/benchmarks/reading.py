"""A recording of ten million transitions: making its Dataset, and what the statistics cost against NumPy."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np
import xarray as xr

import trajlab as tl
from trajlab.block.read import to_host

from .data import recording
from .table import Row
from .timing import Spread, Taken, interleaved, milliseconds, ratio, taken

CELLS, ENVS, STEPS = 10_000_000, 1024, 128
ROUNDS, SLOW_ROUNDS = 9, 3


@contextlib.contextmanager
def fetched(module: str) -> Iterator[list[int]]:
    """Count the bytes that a module of trajlab takes out of the log, through its `to_host`."""
    counts: list[int] = []

    def counting(array: Any) -> np.ndarray:
        values = to_host(array)
        counts.append(values.nbytes)
        return values

    with mock.patch(f"{module}.to_host", counting):
        yield counts


def _recorded(quick: bool) -> tuple[tl.Recorder, int]:
    return recording(np.random.default_rng(0), 100_000 if quick else CELLS, 64 if quick else ENVS, STEPS)


def to_dataset(quick: bool) -> list[Row]:
    """Measure the first `to_dataset()`, which segments all rows, and a later one; count what they fetch."""
    from trajlab.segment import Segmenter

    recorder, cells = _recorded(quick)
    session = recorder._session
    assert session is not None
    flags = np.concatenate([np.asarray(block.flags()) for block, *_ in session.log.view(STEPS, None).spans()])
    done = np.tile(flags[:STEPS], (cells // flags[:STEPS].size, 1)) != 0

    def first() -> Taken:
        session.segmenter = Segmenter(session.plan.layout.width, session.description.rules)
        return taken(recorder.to_dataset)

    contenders = {
        "first": first,
        "later": lambda: taken(recorder.to_dataset),
        "peer": lambda: taken(lambda: np.nonzero(done.T)),
    }
    times = interleaved(contenders, 2 if quick else ROUNDS)
    with fetched("trajlab.block.read") as fields, fetched("trajlab.recorder.session") as read_flags:
        session.segmenter = Segmenter(session.plan.layout.width, session.description.rules)
        episodes = recorder.to_dataset().sizes["episode"]
    own, share = Spread.of(times["first"].wall), ratio(times["first"].wall, times["peer"].wall)
    text = f"{own.median:.3f} s, {share.median:.1f} times np.nonzero of the flags; {sum(fields)} bytes of fields"
    text += f", {sum(read_flags) / 1e6:.1f} MB of flags"
    return [
        Row(
            f"`to_dataset()`, {cells / 1e6:.1f} million rows, {episodes} episodes",
            "< 0.2 s, no field fetched",
            text,
            own.text(3, " s"),
            own.median < 0.2 and not fields,
        ),
        Row("... again", "", milliseconds(times["later"].wall), Spread.of(times["later"].wall * 1e3).text(1, " ms")),
    ]


def _peers(ds: xr.Dataset) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return flat arrays of what is counted, loaded, and a group per transition."""
    flat = tl.transitions(ds)
    values = {name: flat[name].values for name in ("action", "reward", "obs")}
    iteration = flat["start_iteration"].values
    edges = np.quantile(ds["start_iteration"].values, [0.25, 0.5, 0.75])
    return values | {"time": flat["time"].values}, np.searchsorted(edges, iteration)


def _mean_by_hand(step: np.ndarray, values: np.ndarray) -> np.ndarray:
    alive = np.bincount(step)[:, None]
    columns = [values[:, i].astype(np.float64) for i in range(values.shape[1])]
    mean = np.stack([np.bincount(step, weights=c) for c in columns], axis=1) / alive
    square = np.stack([np.bincount(step, weights=c * c) for c in columns], axis=1) / alive
    return np.stack([mean, np.sqrt(square - mean**2)])


def statistics(quick: bool) -> list[Row]:
    """Measure `action_histogram` and `state_trace` against NumPy on arrays already flat and loaded."""
    recorder, cells = _recorded(quick)
    ds = recorder.to_dataset()
    flat, group = _peers(ds)
    counted = tl.action_histogram(ds)["count"].values
    np.testing.assert_array_equal(counted, np.bincount(flat["action"]))
    values = int(flat["action"].max()) + 1
    counts = {
        "count": lambda: tl.action_histogram(ds)["count"],
        "count_peer": lambda: np.bincount(flat["action"]),
        "by": lambda: tl.action_histogram(ds, by="start_iteration")["count"],
        "by_peer": lambda: np.bincount(group * values + flat["action"]),
        "bins": lambda: tl.action_histogram(ds, "reward")["count"],
        "bins_peer": lambda: np.histogram(flat["reward"], bins=50),
    }
    traces = {
        "trace": lambda: tl.state_trace(ds, "obs", quantiles=False)["mean"],
        "trace_peer": lambda: _mean_by_hand(flat["time"], flat["obs"]),
        "bands": lambda: tl.state_trace(ds, "obs")["mean"],
    }
    times = measured(counts, 1 if quick else ROUNDS) | measured(traces, 1 if quick else SLOW_ROUNDS)
    label = f"`action_histogram`, {cells / 1e6:.1f} million transitions"
    return [
        _against(times, "count", "count_peer", label, "np.bincount", 2.0),
        _against(times, "by", "by_peer", '... `by="start_iteration"`', "np.bincount of group and action"),
        _against(times, "bins", "bins_peer", "... of a float32 field", "np.histogram"),
        _against(
            times, "trace", "trace_peer", "`state_trace`, 4 components, mean and std", "np.bincount per component"
        ),
        _against(times, "bands", "trace_peer", "... with three quantiles", "the same, which has none"),
    ]


def measured(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Taken]:
    """Return what each call takes, one after the other in every round."""
    return interleaved({name: (lambda call=call: taken(call)) for name, call in calls.items()}, rounds)


def _against(
    times: dict[str, Taken], name: str, peer: str, what: str, peer_text: str, most: float | None = None
) -> Row:
    spread, busy = (ratio(x, y) for x, y in zip(times[name], times[peer], strict=True))
    text = (
        f"{spread.median:.2f} ({milliseconds(times[name].wall, 0)} to {milliseconds(times[peer].wall, 0)}, {peer_text})"
    )
    text += f"; {busy.median:.2f} in processor time"
    must = "" if most is None else f"≤ {most:g} times np.bincount"
    return Row(what, must, text, spread.text(), None if most is None else spread.median <= most)
