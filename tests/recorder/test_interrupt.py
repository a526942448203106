"""An interrupt anywhere inside `record()` loses at most that chunk, and a refused chunk changes nothing."""

import functools
import linecache
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from chunks import assert_holds, make_chunk

import trajlab as tl
import trajlab.block.append
import trajlab.block.log
from trajlab.block.block import Block

pytestmark = [
    pytest.mark.usefixtures("small_blocks"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(), reason="signals arrive in the main thread"
    ),
]

PACKAGE = str(Path(tl.__file__).parent)
ROWS = 5
BY_OPCODE = (Block.append,)
"""Functions in which every instruction is a place of its own: what a line does must not be torn apart."""


class Tracer:
    """Counts the places in the package that a call passes, and sends the interrupt signal at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.places: list[tuple[str, int, int]] = []
        self.entered: set[tuple[int, int]] = set()
        self.finely = {getattr(f, "__wrapped__", f).__code__.co_qualname for f in BY_OPCODE}

    def __call__(self, frame: Any, event: str, arg: object) -> Any:
        if event == "call":
            if not frame.f_code.co_filename.startswith(PACKAGE):
                return None
            if frame.f_code.co_qualname in self.finely:
                frame.f_trace_opcodes = True
            return self
        if event == ("opcode" if frame.f_trace_opcodes else "line") and not self.leaves_lock(frame):
            self.places.append(
                (frame.f_code.co_filename, frame.f_lineno, frame.f_lasti if frame.f_trace_opcodes else -1)
            )
            if len(self.places) - 1 == self.at:
                signal.raise_signal(signal.SIGINT)
        return self

    def leaves_lock(self, frame: Any) -> bool:
        """Say whether a frame is about to leave a lock: there Python looks for no signals."""
        place = (id(frame), frame.f_lineno)
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        is_lock = line in ("with self._lock:", "with self.lock:")
        again = is_lock and place in self.entered
        self.entered |= {place} if is_lock else set()
        return again

    def run(self, call: Callable[[], object]) -> bool:
        """Make a call; say whether it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False


def places_to_try(call: Callable[[], object]) -> list[int]:
    """Return places in a call: each line the first and the last time it is passed."""
    tracer = Tracer()
    assert not tracer.run(call)
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for number, place in enumerate(tracer.places):
        first.setdefault(place, number)
        last[place] = number
    return sorted({*first.values(), *last.values()})


# What is recorded --------------------------------------------------------------------------------------------


class Case:
    """Calls before the interrupted one, and its form."""

    def __init__(self, before: int, how: str = "chunk", **options: Any) -> None:
        self.before, self.how, self.options = before, how, options

    def chunk(self, number: int, home: str) -> Any:
        first = number * ROWS
        fields = {"numpy": ("serial", "stamp"), "jax": ("serial", "obs.position")}.get(
            home, ("serial", "stamp", "obs.position")
        )
        chunk = make_chunk(range(first, first + ROWS), home="flags_numpy" if home == "mixed" else home, only=fields)
        return jax.tree.map(lambda x: x[0], chunk) if self.how in ("step", "part") else chunk

    def record(self, recorder: tl.Recorder, number: int, home: str) -> None:
        chunk = self.chunk(number, home)
        if self.how == "step":
            recorder.record_step(chunk)
        elif self.how == "part":
            recorder.record_step(jax.tree.map(lambda x: x[:2], chunk), envs=[2, 0])
        elif self.how == "masked":
            recorder.record(chunk, mask=np.arange(ROWS * 3).reshape(ROWS, 3) % 4 > 0)
        else:
            recorder.record(chunk)

    def start(self, home: str) -> tl.Recorder:
        recorder = tl.Recorder(num_envs=3, **self.options)
        for number in range(self.before):
            self.record(recorder, number, home)
        if self.how == "marked":
            recorder.mark_reset([1])
        return recorder

    def finish(self, recorder: tl.Recorder, home: str) -> xr.Dataset:
        for number in range(self.before + 1, self.before + 3):
            self.record(recorder, number, home)
        return recorder.to_dataset().load()


CASES = {
    "first": Case(0),
    "first_step": Case(0, "step"),
    "warm": Case(2),
    "new_block": Case(4),
    "masked": Case(2, "masked"),
    "marked": Case(2, "marked"),
    "step": Case(2, "step"),
    "part": Case(2, "part"),
    "limited": Case(3, max_episodes=12),
    "some_envs": Case(2, envs=[0, 2]),
}


@functools.cache
def clean(name: str, home: str, *, is_lost: bool) -> xr.Dataset:
    """Return the Dataset of a recording without an interrupt."""
    case = CASES[name]
    recorder = case.start(home)
    if not is_lost:
        case.record(recorder, case.before, home)
    return case.finish(recorder, home)


def check_after(name: str, home: str, recorder: tl.Recorder) -> str:
    """Check that recording goes on as if the interrupted chunk had been recorded, or had not; say which."""
    case = CASES[name]
    rows = 1 if case.how in ("step", "part") else ROWS
    assert not recorder._lock._is_owned()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    is_lost = recorder.num_recorded_steps == case.before * rows
    assert is_lost or recorder.num_recorded_steps == (case.before + 1) * rows
    xr.testing.assert_identical(case.finish(recorder, home), clean(name, home, is_lost=is_lost))
    return "lost" if is_lost else "kept"


TRIED = [
    *((name, home, slice(None)) for name in ("warm", "new_block") for home in ("numpy", "jax")),
    # What shares most of its lines with these.
    *((name, "mixed", slice(0, None, 2)) for name in ("warm", "new_block")),
    *((name, "jax", slice(1, None, 2)) for name in ("limited", "step", "part")),
    *((name, "numpy", slice(0, None, 2)) for name in ("limited", "masked", "marked", "some_envs", "step")),
    # A first call has hundreds of lines, nearly all the same whatever the home.
    ("first", "numpy", slice(0, None, 4)),
    ("first", "jax", slice(2, None, 4)),
    ("first_step", "jax", slice(0, None, 4)),
]
"""Case, home, and which of the lines."""


@pytest.mark.parametrize(("name", "home", "some"), TRIED, ids=lambda value: "" if isinstance(value, slice) else value)
def test_interrupted_at_every_line(name, home, some):
    case = CASES[name]
    clean(name, home, is_lost=True)
    clean(name, home, is_lost=False)
    recorder = case.start(home)
    seen: Counter[str] = Counter()
    for place in places_to_try(lambda: case.record(recorder, case.before, home))[some]:
        recorder = case.start(home)
        call = functools.partial(case.record, recorder, case.before, home)
        assert Tracer(place).run(call), "the interrupt was swallowed"
        seen[check_after(name, home, recorder)] += 1
    assert seen["lost"] > 20
    assert set(seen) <= {"lost", "kept"}


def test_flags_of_a_lost_chunk_are_forgotten_also_while_earlier_ones_are_on_their_way(monkeypatch):
    case, home = CASES["limited"], "jax"
    kind = type(jnp.zeros(1))
    with monkeypatch.context() as patch:
        patch.setattr(kind, "is_ready", lambda self: False)
        recorder = case.start(home)
        places = places_to_try(lambda: case.record(recorder, case.before, home))
    lost = 0
    for place in places[-30:]:
        recorder = case.start(home)
        with monkeypatch.context() as patch:
            patch.setattr(kind, "is_ready", lambda self: False)
            assert Tracer(place).run(functools.partial(case.record, recorder, case.before, home))
            is_lost = recorder.num_recorded_steps == case.before * ROWS
            for number in range(case.before + 1, case.before + 3):
                case.record(recorder, number, home)
        assert recorder.is_full in (True, False)
        xr.testing.assert_identical(recorder.to_dataset().load(), clean("limited", home, is_lost=is_lost))
        lost += is_lost
    assert lost > 5


# Cold calls: JAX runs Python code of its own after the donated call ----------------------------------------


@pytest.fixture
def interrupted_when_cold(monkeypatch):
    """Send the signal after each call of the append that JAX compiles for; count these calls."""
    cold = []

    def device_append(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        function = trajlab.block.append.device_append(*args, **kwargs)

        def call(arrays: Any, row: Any, chunk: Any) -> Any:
            before = function._cache_size()
            out = function(arrays, row, chunk)
            if function._cache_size() > before:
                cold.append(chunk)
                signal.raise_signal(signal.SIGINT)
            return out

        return call

    monkeypatch.setattr(trajlab.block.log, "device_append", device_append)
    return cold


def insist(call: Callable[[], object]) -> int:
    """Make a call again until it is not interrupted; return how often it was."""
    for interrupts in range(5):
        try:
            call()
        except KeyboardInterrupt:
            continue
        return interrupts
    pytest.fail("interrupted again and again")


class Cold:
    """Calls that JAX compiles for, each of rows from `start` on; `length` makes one test's shapes its own."""

    def __init__(self, length: int) -> None:
        self.length = length

    def chunk(self, start: int, length: int | None = None) -> Any:
        rows = range(start, start + (length or self.length))
        return make_chunk(rows, home="jax", only=("serial", "reward"))

    def plain(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record(self.chunk(start))

    def shorter(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record(self.chunk(start, self.length - 1))

    def committed(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record(jax.device_put(self.chunk(start), jax.devices()[0]))

    def partly_committed(self, recorder: tl.Recorder, start: int) -> None:
        chunk = self.chunk(start)
        recorder.record(chunk | {"reward": jax.device_put(chunk["reward"], jax.devices()[0])})

    def weakly_typed(self, recorder: tl.Recorder, start: int) -> None:
        chunk = self.chunk(start)
        reward = sum(jnp.where(chunk["reward"] == x, x, 0.0) for x in np.unique(chunk["reward"]).tolist())
        assert reward.weak_type
        recorder.record(chunk | {"reward": reward})

    def partly_numpy(self, recorder: tl.Recorder, start: int) -> None:
        chunk = self.chunk(start)
        recorder.record(chunk | {"reward": np.asarray(chunk["reward"])})

    def masked(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record(self.chunk(start), mask=np.ones((self.length, 3), bool))

    def masked_by_jax(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record(self.chunk(start), mask=jnp.ones((self.length, 3), bool))

    def masked_by_committed(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record(self.chunk(start), mask=jax.device_put(np.ones((self.length, 3), bool), jax.devices()[0]))

    def marked(self, recorder: tl.Recorder, start: int) -> None:
        recorder.mark_reset()
        recorder.record(self.chunk(start))

    def step(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record_step(jax.tree.map(lambda x: x[0], self.chunk(start, 1)))

    def step_of_some(self, recorder: tl.Recorder, start: int) -> None:
        step = jax.tree.map(lambda x: x[0], self.chunk(start, 1))
        recorder.record_step(step, envs=[0, 1, 2])

    def step_by_mask(self, recorder: tl.Recorder, start: int) -> None:
        recorder.record_step(jax.tree.map(lambda x: x[0], self.chunk(start, 1)), envs=np.ones(3, bool))


COLD = [name for name in vars(Cold) if not name.startswith("_") and name != "chunk"]
FROM_ELSEWHERE = ("plain", "shorter", "partly_committed", "marked", "step")


@pytest.mark.parametrize(
    ("number", "name", "second"),
    [(i, name, "plain") for i, name in enumerate(COLD)]
    + [(20 + i, name, "committed") for i, name in enumerate(FROM_ELSEWHERE)],
)
def test_nothing_is_lost_where_jax_compiles(interrupted_when_cold, number, name, second):
    calls, recorder = Cold(4 + number), tl.Recorder()
    interrupts = 0
    for call in ("plain", second, name, "plain", second, name):
        interrupts += insist(lambda call=call: getattr(calls, call)(recorder, recorder.num_recorded_steps))
    assert interrupts == len(interrupted_when_cold) > 0
    assert_holds(recorder.to_dataset(), range(recorder.num_recorded_steps))


def test_nothing_is_lost_where_jax_compiles_for_fewer_of_the_given_environments(interrupted_when_cold):
    recorder = tl.Recorder(envs=[0, 2, 3], num_envs=5)
    step = jax.tree.map(lambda x: x[0], make_chunk([0], 2, home="jax", only=("reward",)))
    choices = [[0, 2], [0, 1], [1, 4], [3, 4], [0, 3], [1, 2]]
    for envs in choices:
        insist(lambda envs=envs: recorder.record_step(step, envs=envs))
    assert len(interrupted_when_cold) == 2  # of two and of one of them; of none nothing is written
    ds = recorder.to_dataset()
    recorded = [env for envs in choices for env in sorted(envs) if env in (0, 2, 3)]
    assert sorted(ds["env"].values.repeat(ds["length"].values).tolist()) == sorted(recorded)


def test_interrupted_by_a_timer_in_cold_calls():
    signal.signal(signal.SIGALRM, lambda *args: signal.raise_signal(signal.SIGINT))
    interrupted = 0
    recorder = tl.Recorder()
    recorder.record(make_chunk(range(59), home="jax", only=("serial",)))
    try:
        for trial in range(12):
            start = recorder.num_recorded_steps
            chunk = make_chunk(range(start, start + 60 + trial), home="jax", only=("serial",))
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.004 * 1.4**trial)
                recorder.record(chunk)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert interrupted
    assert_holds(recorder.to_dataset(), range(recorder.num_recorded_steps))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Other calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["numpy", "jax"])
def test_reset_is_done_or_not_done(home):
    case = Case(3)
    recorder = case.start(home)
    places = places_to_try(recorder.reset)
    for place in places:
        recorder = case.start(home)
        kept = recorder.to_dataset()
        assert Tracer(place).run(recorder.reset)
        assert not recorder._lock._is_owned()
        rows = recorder.num_recorded_steps
        assert rows in (0, 3 * ROWS)
        case.record(recorder, 9, home)
        serials = [*range(rows), *range(9 * ROWS, 10 * ROWS)]
        for ds, want in ((recorder.to_dataset(), serials), (kept, range(3 * ROWS))):
            assert_holds(ds, want)


@pytest.mark.parametrize("home", ["numpy", "jax"])
def test_to_dataset_gives_the_same_after_an_interrupt(home):
    case = Case(6)
    want = case.start(home).to_dataset().load()
    for place in places_to_try(case.start(home).to_dataset)[:: 2 if home == "numpy" else 4]:
        recorder = case.start(home)
        assert Tracer(place).run(recorder.to_dataset)
        assert not recorder._lock._is_owned()
        xr.testing.assert_identical(recorder.to_dataset().load(), want)


# Refused chunks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["warm", "new_block", "limited", "marked"])
@pytest.mark.parametrize("home", ["numpy", "jax"])
def test_a_refused_chunk_changes_nothing(name, home):
    case = CASES[name]
    recorder = case.start(home)
    before = recorder._counters
    good = case.chunk(case.before, home)
    for bad in (good | {"serial": good["serial"][1:]}, good | {"new": good["serial"]}, {"serial": good["serial"]}):
        with pytest.raises(ValueError, match="serial|new|missing"):
            recorder.record(bad)
        with pytest.raises(ValueError, match="mask has shape"):
            recorder.record(good, mask=np.ones((2, 2), bool))
        assert recorder._counters == before
    xr.testing.assert_identical(case.finish(recorder, home), clean(name, home, is_lost=True))


# Fields added one by one ---------------------------------------------------------------------------------------


def add_step(recorder: tl.Recorder, number: int, home: str) -> None:
    """Add the fields of a step that says its number in each of them."""
    for name, dtype in (("obs", np.float32), ("serial", np.int32), ("done", np.bool_)):
        values = np.full(3, 0 if name == "done" else number, dtype)
        is_numpy = home == "numpy" or (home == "mixed" and name == "serial")
        recorder.add(name, values if is_numpy else jnp.asarray(values))


@pytest.mark.parametrize("home", ["numpy", "jax", "mixed"])
def test_interrupted_adds_lose_at_most_their_step(home: str) -> None:
    before = 3

    def start() -> tl.Recorder:
        recorder = tl.Recorder()
        for number in range(before):
            add_step(recorder, number, home)
        return recorder

    recorder = start()
    for at in places_to_try(functools.partial(add_step, recorder, before, home))[::2]:
        recorder = start()
        assert Tracer(at).run(functools.partial(add_step, recorder, before, home))
        for number in range(before + 1, before + 4):
            add_step(recorder, number, home)
        ds = recorder.to_dataset()
        serial, obs = ds["serial"].values, ds["obs"].values
        whole = (serial >= 0) & ~np.isnan(obs)
        np.testing.assert_array_equal(serial[whole], obs[whole])
        for own in serial:
            numbers = own[own >= 0].tolist()
            assert numbers == sorted(set(numbers))
            assert {*range(before), *range(before + 1, before + 4)} <= set(numbers)
