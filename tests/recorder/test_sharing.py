"""Steps of some environments share rows of the log: memory follows the steps, and each is where it belongs."""

from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl

WIDTH = 5


class Lists:
    """A recording as lists of (serial number, iteration) per environment, beside the Recorder's."""

    def __init__(self, xp, width=WIDTH, **options):
        self.xp, self.width = xp, width
        self.recorder = tl.Recorder(num_envs=width, **options)
        self.cells = defaultdict(list)
        self.cuts = defaultdict(set)
        self.serial = np.zeros(width, np.int64)

    def rows(self, length):
        """Return a chunk of the next steps of all environments."""
        serial = self.serial + np.arange(length)[:, None]
        done = (serial * 3 + np.arange(self.width)) % 7 == 0
        return {"serial": serial.astype(np.int32), "done": done}

    def note(self, envs, length, iteration):
        for env in envs:
            self.cells[env] += [(int(self.serial[env]) + i, iteration) for i in range(length)]
            self.serial[env] += length

    def give(self, tree):
        return {name: self.xp.asarray(array) for name, array in tree.items()}

    def chunk(self, length, iteration):
        self.recorder.record(self.give(self.rows(length)), iteration=iteration)
        self.note(range(self.width), length, iteration)

    def step(self, envs, how, iteration):
        step = {name: array[0] for name, array in self.rows(1).items()}
        envs = np.asarray(envs, np.int64)
        if how == "mask":
            self.recorder.record_step(self.give(step), envs=np.isin(np.arange(self.width), envs), iteration=iteration)
        elif how == "device mask":
            mask = jnp.isin(jnp.arange(self.width), envs)
            self.recorder.record_step(self.give(step), envs=mask, iteration=iteration)
        else:
            some = slice(int(envs.min()), int(envs.max()) + 1) if how == "slice" and len(envs) else envs
            envs = np.arange(self.width)[some]
            part = {name: array[envs] for name, array in step.items()}
            self.recorder.record_step(self.give(part), envs=some, iteration=iteration)
        self.note(envs.tolist(), 1, iteration)

    def mark(self, kind, envs):
        getattr(self.recorder, f"mark_{kind}")(envs)
        for env in envs:
            self.cuts[env].add(len(self.cells[env]))

    def check(self, ds):
        """Check every step and every end of an episode."""
        got, ends = defaultdict(list), defaultdict(set)
        assert (np.diff(ds["start_row"].values) >= 0).all()
        for number in np.lexsort([ds["start_row"].values, ds["env"].values]):
            one = ds.isel(episode=number)
            env, length = int(one["env"]), int(one["length"])
            got[env] += zip(
                one["serial"].values[:length].tolist(), one["iteration"].values[:length].tolist(), strict=True
            )
            ends[env].add(len(got[env]))
        assert got == {env: cells for env, cells in self.cells.items() if cells}
        for env, cells in got.items():
            done = {i + 1 for i, (serial, _) in enumerate(cells) if (serial * 3 + env) % 7 == 0}
            jumps = {i for i in range(1, len(cells)) if not 0 <= cells[i][1] - cells[i - 1][1] <= 1}
            assert done | (self.cuts[env] & set(range(1, len(cells)))) | {len(cells)} <= ends[env] | jumps
            assert ends[env] - done - self.cuts[env] - {len(cells)} <= self.gaps(cells)

    def gaps(self, cells):
        """Return where the iteration of an environment changes: rows of others between may have been missed."""
        return {i for i in range(1, len(cells)) if cells[i][1] != cells[i - 1][1]}


some_envs = st.lists(st.integers(0, WIDTH - 1), unique=True)
calls = st.one_of(
    st.tuples(st.just("step"), some_envs, st.sampled_from(["ids", "slice", "mask", "device mask"])),
    st.tuples(st.just("step"), some_envs, st.sampled_from(["ids", "slice", "mask"])),
    st.tuples(st.just("chunk"), st.integers(1, 3)),
    st.tuples(st.just("mark"), st.sampled_from(["reset", "gap"]), some_envs),
    st.tuples(st.just("iteration"), st.integers(0, 2)),
    st.tuples(st.just("read")),
)


def play(recording, sequence):
    """Make calls; return the Datasets made on the way, with how they are to be checked."""
    iteration = 0
    for name, *arguments in sequence:
        if name == "iteration":
            iteration += arguments[0]
        elif name == "read":
            if recording.recorder.num_recorded_steps:
                recording.check(recording.recorder.to_dataset())
        elif name == "mark":
            recording.mark(*arguments)
        else:
            getattr(recording, name)(*arguments, iteration)
    if recording.recorder.num_recorded_steps:
        recording.check(recording.recorder.to_dataset())


@pytest.mark.filterwarnings("ignore:no episode", "ignore:the recording may not be")
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_any_calls_give_what_lists_hold(xp):
    @examples(40 if xp is np else 6)
    @given(st.lists(calls, max_size=25))
    def check(sequence):
        play(Lists(xp), sequence)

    check()


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_rows_used_are_at_most_twice_the_steps(xp):
    rng, width, steps = np.random.default_rng(0), 256, 0
    recorder = tl.Recorder(num_envs=width)
    for _ in range(1000 if xp is np else 100):
        envs = np.sort(rng.permutation(width)[: rng.integers(1, width + 1)])
        mask = np.isin(np.arange(width), envs)
        recorder.record_step({"obs": xp.zeros(width), "done": xp.zeros(width, bool)}, envs=mask)
        steps += len(envs)
    assert recorder.num_recorded_steps * width < 1.5 * steps
    assert int(recorder.to_dataset()["length"].sum()) == steps


def test_one_environment_at_a_time():
    recorder = tl.Recorder(num_envs=8)
    for t in range(80):
        recorder.record_step({"obs": np.array([t]), "done": np.array([t >= 72])}, envs=[t % 8])
    assert recorder.num_recorded_steps == 10
    ds = recorder.to_dataset()
    assert ds["env"].values.tolist() == list(range(8))
    assert (ds["obs"].values == np.arange(10) * 8 + np.arange(8)[:, None]).all()


def test_indices_a_slice_and_a_mask_give_equal_datasets():
    datasets = []
    for how in ("ids", "slice", "mask"):
        recording = Lists(jnp)
        for envs in ([0, 1, 2], [2, 3], [4], [1, 2, 3, 4], [0], [0, 1]):
            recording.step(envs, how, 0)
        datasets.append(recording.recorder.to_dataset().load())
    for other in datasets[1:]:
        xr.testing.assert_identical(datasets[0], other)


@pytest.mark.parametrize("close", ["read", "check", "chunk", "step", "device mask", "iteration"])
def test_what_ends_the_sharing(close):
    recording = Lists(np)
    recording.step([0], "ids", 0)
    recording.step([0], "ids", 0)
    recorder = recording.recorder
    assert recorder.num_recorded_steps == 2
    before = {"chunk": 1, "step": 1, "device mask": 1}.get(close, 0)
    if close == "read":
        kept = recorder.to_dataset()
    elif close == "check":
        recorder.check()
    elif close == "device mask":
        recording.step([2], close, 0)
    elif close == "chunk":
        recording.chunk(1, 0)
    elif close == "step":
        recorder.record_step({name: array[0] for name, array in recording.rows(1).items()})
        recording.note(range(WIDTH), 1, 0)
    recording.step([3], "ids", int(close == "iteration"))
    assert recorder.num_recorded_steps == 3 + before
    if close == "read":
        assert set(kept.load()["env"].values.tolist()) == {0}
    recording.check(recorder.to_dataset())


def test_a_mark_stands_before_its_environments_next_step_only():
    recording = Lists(np)
    for envs in ([0, 1], [0], [0]):
        recording.step(envs, "ids", 0)
    recording.mark("reset", [0, 1])
    for envs in ([1], [1], [0]):
        recording.step(envs, "ids", 0)
    assert recording.recorder.num_recorded_steps == 4
    ds = recording.recorder.to_dataset()
    recording.check(ds)
    assert ds["start_row"].sel(episode=ds["env"] == 1).values.tolist()[-1] == 1


def test_marks_that_no_step_follows_wait_for_the_next_row():
    recorder = tl.Recorder(num_envs=2)
    step = {"obs": np.zeros(1), "done": np.zeros(1, bool)}
    recorder.record_step(step, envs=[0])
    recorder.record_step(step, envs=[1])
    recorder.mark_gap([1])
    recorder.record_step(step, envs=[0])
    recorder.to_dataset()
    recorder.record_step({"obs": np.zeros(2), "done": np.zeros(2, bool)})
    ds = recorder.to_dataset()
    assert list(
        zip(ds["env"].values.tolist(), ds["length"].values.tolist(), ds["start_seen"].values.tolist(), strict=True)
    ) == [
        (0, 3, True),
        (1, 1, True),
        (1, 1, False),
    ]


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_max_episodes_is_full_at_most_some_rows_late(xp):
    recorder = tl.Recorder(num_envs=3, max_episodes=2)
    for t in range(200):
        for env in range(3):
            recorder.record_step({"obs": xp.zeros(1), "done": xp.asarray([t % 5 == 4])}, envs=[env])
        jax.effects_barrier()
        if recorder.is_full:
            break
    assert 5 <= t < 80
    ds = recorder.to_dataset()
    assert ds["length"].values.tolist() == [5, 5]
    assert ds["env"].values.tolist() == [0, 1]


def test_nothing_compiles_for_each_number_of_environments_where_a_mask_says_which():
    recorder, rng = tl.Recorder(num_envs=64), np.random.default_rng(0)
    for _ in range(60):
        mask = rng.random(64) < rng.random()
        recorder.record_step({"obs": jnp.zeros(64), "done": jnp.zeros(64, bool)}, envs=mask)
    (function,) = recorder._session.log._functions.values()
    assert function._cache_size() <= 7


def test_a_call_that_was_never_counted_is_never_read():
    recording = Lists(np)
    for envs in ([0, 1], [0], [0]):
        recording.step(envs, "ids", 0)
    recorder = recording.recorder
    before = recorder._counters
    part = {"serial": np.array([99, 99], np.int32), "done": np.ones(2, bool)}
    recorder.record_step(part, envs=[1, 2])
    recorder._counters = before  # as if interrupted before it was counted
    recording.step([2], "ids", 0)
    recording.check(recorder.to_dataset())


def test_consumers_get_steps_as_they_come_and_episodes_once():
    class Keeps(tl.Consumer):
        steps, ended = 0, ()

        def on_batch(self, batch):
            self.steps += len(batch.envs)
            assert batch.fields["obs"].shape == (1, len(batch.envs))
            assert np.asarray(batch.time).shape == (1, len(batch.envs))

        def on_episodes(self, episodes):
            rows = zip(episodes["env"].values, episodes["length"].values, episodes["obs"].values, strict=True)
            self.ended += tuple((int(env), obs[:length].tolist()) for env, length, obs in rows)

    consumer = Keeps()
    with tl.Recorder(num_envs=3, retain=False, consumers=[consumer]) as recorder:
        for t in range(70):
            mask = np.arange(3) != t % 3
            recorder.record_step({"obs": np.full(3, t), "done": np.full(3, t % 10 == 9)}, envs=mask)
    assert consumer.steps == 140
    for env in range(3):
        got = [serial for number, serials in consumer.ended if number == env for serial in serials]
        assert got == [t for t in range(70) if t % 3 != env]
