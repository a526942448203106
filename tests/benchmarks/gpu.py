"""What has to hold on a GPU; without one it says so and does nothing. `--quick` runs tiny sizes also on the CPU."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import trajlab as tl

from .bare import Bare
from .data import bytes_of, recording, wait
from .loop import loop
from .steps import make_step
from .table import Row
from .timing import Spread, Taken, interleaved, milliseconds, ratio, taken

CALLS, ROUNDS = 200, 15
STEP_LIMIT, STEP_SECONDS = 2.0, 0.06e-3
COPY_LIMIT = 1.25
READ_SECONDS = 5e-3


def _step_row(envs: int, quick: bool) -> Row:
    """Measure `record_step()` against a bare append of the same arrays, both into memory already touched."""
    calls = 5 if quick else CALLS
    step = make_step(np.random.default_rng(envs), envs, jnp.asarray)
    recorder, bare = tl.Recorder(), Bare({name: x[None] for name, x in step.items()}, calls)

    def ours() -> None:
        for _ in range(calls):
            recorder.record_step(step)
        wait(recorder)

    def theirs() -> None:
        for _ in range(calls):
            bare.append_step(step)
        bare.wait()

    def turn() -> Taken:
        recorder.reset()
        return taken(ours)

    times = interleaved({"ours": turn, "bare": lambda: taken(theirs)}, 2 if quick else ROUNDS, warmup=2)
    share, each = ratio(times["ours"].wall, times["bare"].wall), Spread.of(times["ours"].wall / calls)
    text = f"{share.median:.2f} ({each.median * 1e3:.3f} ms to {np.median(times['bare'].wall) / calls * 1e3:.3f} ms)"
    must = f"≤ {STEP_LIMIT:g} times a bare jitted append, ≤ {STEP_SECONDS * 1e3:g} ms"
    passed = share.median <= STEP_LIMIT and each.median <= STEP_SECONDS
    return Row(f"`record_step()`, {envs} envs, {calls} calls", must, text, share.text(), passed)


def _copy_row(quick: bool) -> Row:
    """Measure `record()` of one big chunk against a copy of as many bytes on the device."""
    envs = 8 if quick else 4096
    values = jnp.ones((128, envs, 256), jnp.float32)
    chunk = {"obs": values, "next_obs": values + 1, "done": jnp.zeros((128, envs), bool)}
    one = jnp.ones(bytes_of(chunk) // 4, jnp.float32)
    copy = jax.jit(jnp.copy)
    jax.block_until_ready((chunk, one))
    recorder = tl.Recorder()

    def ours() -> None:
        recorder.record(chunk)
        wait(recorder)

    def turn() -> Taken:
        recorder.reset()
        return taken(ours)

    contenders = {"record": turn, "copy": lambda: taken(lambda: copy(one).block_until_ready())}
    times = interleaved(contenders, 2 if quick else ROUNDS, warmup=2)
    share = ratio(times["record"].wall, times["copy"].wall)
    size, bandwidth = bytes_of(chunk), 2 * one.nbytes / Spread.of(times["copy"].wall).median
    text = f"{share.median:.2f} ({milliseconds(times['record'].wall, 3)}; copies at {bandwidth / 1e9:.0f} GB/s)"
    must = f"≤ {COPY_LIMIT:g} times 2 × bytes / copy bandwidth"
    what = f"`record()`, {len(chunk)} fields, {size / 1e9:.2f} GB, touched memory"
    return Row(what, must, text, share.text(), share.median <= COPY_LIMIT)


def _under_way(quick: bool) -> Callable[[int], dict[str, jax.Array]]:
    """Return what gives a chunk that computes for about so many turns, each of some tenths of a millisecond."""

    @jax.jit
    def collect(matrix: jax.Array, turns: jax.Array) -> dict[str, jax.Array]:
        last = jax.lax.fori_loop(0, turns, lambda _, m: jnp.tanh(m @ m), matrix)
        obs = jnp.broadcast_to(last[:8, :8], (32, 8, 8))
        return {"obs": obs, "done": obs[..., 0] > 0.5}

    matrix = jnp.eye(64 if quick else 2048)
    return lambda turns: collect(matrix, jnp.asarray(turns))


def _sync_rows(quick: bool) -> list[Row]:
    """Record while the chunk still computes and fetching is forbidden; then with `max_episodes`, which may fetch.

    Of the guards only that from the device to the host forbids what would wait. In the other direction each call
    sends the number of a row, a Python int, which JAX counts as an implicit transfer.
    """
    collect = _under_way(quick)
    plain, counting = tl.Recorder(), tl.Recorder(max_episodes=10**6)
    return [
        _sync_row(plain, collect, quick, "disallow", "under a guard against device-to-host transfers"),
        _sync_row(counting, collect, quick, "allow", "with `max_episodes`, which fetches flags that are ready"),
        _host_to_device_row(plain),
    ]


def _sync_row(recorder: tl.Recorder, collect: Any, quick: bool, guard: str, label: str) -> Row:
    calls = 5 if quick else 100
    recorder.record(collect(1))
    wait(recorder)
    chunk = collect(200 if quick else 2000)
    fault = ""
    start = time.perf_counter()
    try:
        with jax.transfer_guard_device_to_host(guard):
            for _ in range(calls):
                recorder.record(chunk)
    except Exception as error:  # whatever JAX raises, the row shows it
        fault = f"{type(error).__name__}: {str(error)[:100]}; "
    returned = time.perf_counter() - start
    pending = not chunk["done"].is_ready()
    wait(recorder)
    text = f"{fault}{returned * 1e3:.1f} ms, the chunk {'still computing' if pending else 'ready'} then"
    text += f", all done after {time.perf_counter() - start:.2f} s"
    return Row(f"{calls} `record()` of a chunk under way, {label}", "no wait", text, "(1)", not fault and pending)


def _host_to_device_row(recorder: tl.Recorder) -> Row:
    """Say whether a call of `record()` also passes the guard against implicit transfers to the device."""
    chunk = {"obs": jnp.zeros((32, 8, 8)), "done": jnp.zeros((32, 8), bool)}
    try:
        with jax.transfer_guard_host_to_device("disallow"):
            recorder.record(chunk)
        text = "passes"
    except Exception as error:  # whatever JAX raises, the row shows it
        text = f"refused: {str(error).splitlines()[0][:100]}"
    return Row("... one call under a guard against implicit host-to-device transfers", "", text, "(1)")


def _read_row(quick: bool) -> Row:
    """Measure reading one episode of a big recording."""
    recorder, cells = recording(np.random.default_rng(0), 20_000 if quick else 10_000_000, 16 if quick else 1024, 128)
    ds = recorder.to_dataset()

    def read(number: int) -> np.ndarray:
        return ds["obs"].isel(episode=number).values

    first = taken(lambda: read(3)).wall
    times = np.array([taken(lambda: read(3)).wall for _ in range(5 if quick else 50)])
    others = np.array([taken(lambda number=number: read(number)).wall for number in range(4, 24)])
    text = f"{milliseconds(times, 2)}; the first time {first * 1e3:.0f} ms; others, as new lengths compile, up to"
    text += f" {others.max() * 1e3:.0f} ms, median {milliseconds(others, 2)}"
    what = f'`ds["obs"].isel(episode=3).values` of {cells / 1e6:.1f} million rows'
    spread = Spread.of(times * 1e3)
    return Row(what, f"< {READ_SECONDS * 1e3:g} ms", text, spread.text(2, " ms"), spread.median < READ_SECONDS * 1e3)


def gpu(quick: bool) -> list[Row]:
    """Measure what has a target of its own on a GPU."""
    if jax.default_backend() == "cpu" and not quick:
        return [Row("on a GPU", "", "no GPU", "")]
    parts: list[Callable[[], list[Row]]] = [
        lambda: [_step_row(envs, quick) for envs in (256, 4096)],
        lambda: [_copy_row(quick)],
        lambda: _sync_rows(quick),
        lambda: [_read_row(quick)],
        lambda: loop(quick),
    ]
    device: Any = jax.devices()[0]
    rows = [Row(f"on {device.device_kind} ({device.platform})", "", "", "")]
    for part in parts:
        rows += part()
    return rows
