"""What is read to tell who takes part: nothing until it is asked for, then the flags of whole episodes, once."""

import numpy as np
import pytest
from agents.worlds import chunk_of, convention_of, make_world
from recorder.test_fetch import LAZY, Gate

import trajlab as tl
import trajlab.block.read
import trajlab.recorder.session
from trajlab.dataset import alive


@pytest.fixture(params=["numpy", "jax"])
def gated(request, monkeypatch):
    """A Dataset of three blocks or more, with a gate that counts what is read."""
    gate = Gate()
    monkeypatch.setattr(trajlab.block.log, "MIN_BYTES", 1)
    monkeypatch.setattr(trajlab.block.read, "to_host", gate)
    monkeypatch.setattr(trajlab.recorder.session, "to_host", gate.take_flags)
    world = make_world(30, rows=60)
    recorder = tl.Recorder(convention=convention_of(world))
    for start in range(0, 60, 5):
        recorder.record(chunk_of(world.part(slice(start, start + 5)), home=request.param))
    return recorder.to_dataset(), gate


CALLS = {name: LAZY[name] for name in ("repr", "html", "nbytes", "sizes and dtypes")} | {
    "drop": lambda ds: repr(ds.drop_vars(["obs", "wind"])),
    "rename": lambda ds: repr(ds.rename(obs="seen", agent="player")),
    "copy": lambda ds: repr(ds.copy(deep=True)["alive"]),
    "coordinates": lambda ds: repr(ds.assign_coords(team=("agent", [0, 0, 1])).coords),
    "stack": tl.stack_fields,
    "concat": lambda ds: tl.concat([ds, ds]),
    "some agents": lambda ds: repr(ds.sel(agent=["scout"])),
    "one agent": lambda ds: repr(ds.sel(agent="scout")["alive"].isel(episode=3)),
    "validate": tl.validate,
}


@pytest.mark.parametrize("what", CALLS)
def test_nothing_is_fetched(gated, what):
    ds, gate = gated
    CALLS[what](ds)
    assert gate.fetched() == 0


def test_one_episode_reads_its_own_flags_once(gated):
    ds, gate = gated
    length = int(ds["length"][2])
    got = ds["alive"].isel(episode=2).values
    assert gate.fetched() == length * 3
    np.testing.assert_array_equal(ds["alive"].isel(episode=2, time=slice(0, 2), agent=1), got[:2, 1])
    assert gate.fetched() == 0
    np.testing.assert_array_equal(ds["alive"].values[2], got)
    assert gate.fetched() == (60 * 3 - length) * 3


def test_statistics_read_a_field_and_the_flags_of_agents(gated):
    ds, gate = gated
    tl.action_histogram(ds)
    assert gate.fetched() == 60 * 3 * 3 * (4 + 1)
    tl.returns(ds)
    assert gate.fetched() == 60 * 3 * 3 * 4
    tl.state_trace(ds, "wind")
    assert gate.fetched() == 60 * 3 * 4


def test_flags_are_found_in_portions(monkeypatch):
    world = make_world(31, rows=80)
    ds = tl.from_rollout(chunk_of(world), convention=convention_of(world))
    whole = ds["alive"].values
    monkeypatch.setattr(alive, "READ_CELLS", 6)  # fewer than most episodes have
    again = tl.from_rollout(chunk_of(world), convention=convention_of(world))
    np.testing.assert_array_equal(again["alive"], whole)
    np.testing.assert_array_equal(again["alive"].isel(episode=[5, 2, 5]), whole[[5, 2, 5]])
