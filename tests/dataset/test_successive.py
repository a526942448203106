"""Neighbouring transitions: every form gives each transition, and each pair, exactly once."""

import itertools
from collections import Counter

import numpy as np
import pytest
from chunks import random_rollout
from ragged import FORMS, in_form, make_dataset

import trajlab as tl
from trajlab.dataset.successive import iter_successive


def recorded(cuts=(0, 15, 16, 40), seed=0, envs=5, **options):
    """Return a lazy Dataset of rows of a log, handed over in chunks; rows are numbered in the field `serial`."""
    chunk = random_rollout(seed, envs=envs)
    chunk["serial"] = np.arange(chunk["action"].size).reshape(chunk["action"].shape)
    recorder = tl.Recorder(**options)
    for start, stop in itertools.pairwise(cuts):
        recorder.record({name: rows[start:stop] for name, rows in chunk.items()})
    return recorder.to_dataset()


def number(ds):
    """Return a Dataset in which each cell has a number of its own in `serial`."""
    shape = (ds.sizes["episode"], ds.sizes["time"])
    serial = np.arange(np.prod(shape)).reshape(shape)
    return ds.assign(serial=(("episode", "time"), serial))


def assert_each_once(ds):
    """Check transitions, pairs and places against loops over the cells."""
    values, labels, lengths = ds["serial"].values, ds["time"].values, ds["length"].values
    where = {
        int(values[e, place]): (e, int(t))
        for e, length in enumerate(lengths)
        for place, t in enumerate(labels)
        if t < length
    }
    at = {cell: serial for serial, cell in where.items()}
    want = Counter((serial, at[e, t + 1]) for serial, (e, t) in where.items() if (e, t + 1) in at)
    pairs, seen, ends, iterations = Counter(), Counter(), Counter(), ds["iteration"].values
    for one in iter_successive(ds, ["serial", "iteration"]):
        serials, last = one.batch.values["serial"].tolist(), set(one.last.tolist())
        assert len(last) == len(one.last)
        assert set(serials) <= set(where)
        pairs += Counter(
            pair for m, pair in enumerate(zip(serials, serials[one.ahead :], strict=False)) if m not in last
        )
        located = list(zip(one.batch.episode.tolist(), one.batch.time.tolist(), strict=True))
        transitions = [m for m in range(len(serials)) if where[serials[m]] == located[m]]
        assert set(range(len(serials) - one.ahead)) - last <= set(transitions)
        for m in transitions:
            e, t = located[m]
            assert one.batch.values["iteration"][m] == iterations[e, labels == t]
        seen += Counter(serials[m] for m in transitions if m >= one.shared and m not in last)
        ends += Counter(serials[m] for m in transitions if m >= one.shared and m in last)
    assert pairs == want
    assert set(seen.values()) <= {1}  # places of no transition, which hold the values of one, are among the last
    assert set(seen) | set(ends) == set(where)


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, tmp_path):
    assert_each_once(in_form(number(make_dataset([4, 1, 6, 2, 6, 3])), form, tmp_path))


@pytest.mark.parametrize("cells", [1, 10, 15, 1000])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
@pytest.mark.parametrize("cuts", [(0, 40), (0, 15, 16, 40), tuple(range(41))])
def test_rows_of_a_log(monkeypatch, cells, autoreset, cuts):
    monkeypatch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", cells)
    ds = recorded(cuts, convention=tl.Convention(autoreset=autoreset))
    assert_each_once(ds)
    (ahead,) = {one.ahead for one in iter_successive(ds, ["serial"])}
    assert ahead == (1 if autoreset == "disabled" else 5)  # then few cells are transitions, and are gathered


@pytest.mark.parametrize("select", [slice(None, None, 2), [7, 3, 0, 12, 9, 1], slice(5, 6), slice(0, 0)])
def test_some_episodes_of_a_log(monkeypatch, select):
    monkeypatch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", 15)
    assert_each_once(recorded().isel(episode=select))


@pytest.mark.parametrize("times", [slice(1, None), [0, 1, 3], slice(None, None, -1)])
def test_some_steps_of_a_log(times):
    assert_each_once(recorded().isel(time=times))


def test_recordings_put_together_are_read_each_in_its_own_way():
    first, second = recorded(), recorded(seed=1, envs=3)
    both = tl.concat([first, second.assign(serial=second["serial"] + 1000)])
    assert_each_once(both)
    assert {one.ahead for one in iter_successive(both, ["action"])} == {5, 3}


def test_a_field_beside_those_of_the_log_is_read_in_order():
    assert_each_once(number(recorded()))
