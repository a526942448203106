"""The buffer where JAX traces: a whole training run in one jit, many seeds, retracing, memory, ownership."""

import copy
import dataclasses
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jax.experimental import io_callback

import trajlab as tl

T, N = 4, 3


def collect(state, key):
    """Four steps of three walkers that end at 2 or -2, from the positions in `state`."""

    def step(position, key):
        action = jax.random.randint(key, position.shape, 0, 2, jnp.int32)
        after = position + 2 * action - 1
        ended = abs(after) == 2
        row = {
            "obs": {"x": position, "y": jnp.stack([position, after], -1).astype(jnp.float32)},
            "action": action,
            "reward": ended.astype(jnp.float32),
            "terminated": ended,
            "truncated": ended & (after < -5),
        }
        return jnp.where(ended, 0, after), row

    return jax.lax.scan(step, state, jax.random.split(key, T))


def run(key, updates, keep="first", capacity=10_000, **options):
    """Collect so often in one scan, with a buffer in the carry; return it and the stacked chunks."""
    start = jnp.zeros(N, jnp.int32)
    example = jax.eval_shape(collect, start, key)[1]

    def update(carry, key):
        state, buffer = carry
        state, chunk = collect(state, key)
        return (state, tl.append(buffer, chunk)), chunk

    buffer = tl.init_buffer(example, capacity, keep=keep, **options)
    (_, buffer), chunks = jax.lax.scan(update, (start, buffer), jax.random.split(key, updates))
    return buffer, chunks


def assert_identical(left, right):
    """Check everything, attrs included."""
    assert left.attrs == {**right.attrs, "convention": left.attrs["convention"]}
    xr.testing.assert_identical(left.load().drop_attrs(deep=False), right.load().drop_attrs(deep=False))


@pytest.mark.parametrize("updates", [1, 7])
def test_one_run_equals_recorder_and_rollout(updates):
    buffer, chunks = jax.jit(run, static_argnums=1)(jax.random.key(0), updates)
    ds = tl.to_dataset(buffer)
    recorder = tl.Recorder()
    for i in range(updates):
        recorder.record(jax.tree.map(lambda x: x[i], chunks))
    assert_identical(ds, recorder.to_dataset())
    assert_identical(ds, tl.from_rollout(chunks, convention=tl.Convention(axes="UTN")))
    tl.validate(ds, deep=True)


@pytest.mark.parametrize("capacity", [T, 2 * T, 3 * T])
def test_ring_is_the_tail(capacity):
    buffer, chunks = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(1), 9, "last", capacity)
    ds = tl.to_dataset(buffer)
    whole = tl.from_rollout(chunks, convention=tl.Convention(axes="UTN"))
    first = 9 * T - capacity
    assert [ds.attrs[f"rows_{what}"] for what in ("seen", "kept", "dropped", "evicted")] == [36, capacity, 0, first]
    began = whole.isel(episode=(whole["start_row"] >= first).values)
    there = ds.sel(episode=began["episode"].values)
    common = dict(time=slice(0, there["length"].values.max()))
    xr.testing.assert_equal(there.isel(common).load(), began.isel(common).load())
    heads = ds.isel(episode=(~ds["start_seen"]).values)
    open_then = whole.isel(
        episode=((whole["start_row"] < first) & (whole["start_row"] + whole["length"] > first)).values
    )
    assert sorted(heads["env"].values) == sorted(open_then["env"].values)
    assert len(heads["env"]) + len(there["env"]) == ds.sizes["episode"]
    tl.validate(ds, deep=True)


def test_episode_that_begins_with_the_first_kept_row_is_known_to():
    done = jnp.array([[0], [1], [0], [0]], bool)
    chunk = {"obs": jnp.arange(4)[:, None], "done": done}
    buffer = tl.init_buffer(jax.tree.map(lambda x: x[:2], chunk), 2, keep="last")
    for half in (slice(0, 2), slice(2, 4)):
        buffer = tl.append(buffer, jax.tree.map(lambda x: x[half], chunk))
    ds = tl.to_dataset(buffer)
    assert ds["start_seen"].values.tolist() == [True]
    assert ds["start_row"].values.tolist() == [2]
    assert ds["episode"].values.tolist() == [1]
    assert ds["obs"].values.tolist() == [[2, 3]]


def test_seeds_equal_the_stacked_rollout():
    keys = jax.random.split(jax.random.key(2), 4)
    buffers, chunks = jax.jit(jax.vmap(lambda key: run(key, 5)))(keys)
    seeds = {"seed": [10, 20, 30, 40]}
    ds = tl.to_dataset(buffers, dims={"S": "seed"}, coords=seeds)
    rolled = tl.from_rollout(chunks, convention=tl.Convention(axes="SUTN"), dims={"S": "seed"}, coords=seeds)
    assert_identical(ds, rolled)
    assert ds["seed"].dims == ("episode",)
    for i, seed in enumerate(seeds["seed"]):
        one = tl.to_dataset(jax.tree.map(lambda x: x[i], buffers))
        own = ds.isel(episode=(ds["seed"] == seed).values)
        np.testing.assert_array_equal(own["length"].values, one["length"].values)
        np.testing.assert_array_equal(own["obs.x"].values[:, : one.sizes["time"]], one["obs.x"].values)


def test_ring_of_seeds_equals_each_seed_by_itself():
    keys = jax.random.split(jax.random.key(3), 3)
    buffers = jax.jit(jax.vmap(lambda key: run(key, 7, "last", 2 * T)[0]))(keys)
    ds = tl.to_dataset(buffers)
    for i in range(3):
        one = tl.to_dataset(jax.tree.map(lambda x: x[i], buffers))
        own = ds.isel(episode=(ds["S"] == i).values)
        for name in ("length", "start_row", "start_seen", "end_reason", "start_iteration"):
            np.testing.assert_array_equal(own[name].values, one[name].values)
        np.testing.assert_array_equal(own["action"].values[:, : one.sizes["time"]], one["action"].values)


def test_each_of_many_seeds_is_a_group():
    keys = jax.random.split(jax.random.key(2), 12)
    buffers = jax.jit(jax.vmap(lambda key: run(key, 3)[0]))(keys)
    ds = tl.to_dataset(buffers, dims={"S": "seed"})
    counts = tl.action_histogram(ds, by="seed")["count"]
    assert counts["seed"].values.tolist() == list(range(12))
    assert counts.sum("value").values.tolist() == [3 * T * N] * 12
    halves = tl.concat([ds, ds], run=["a", "b"])
    assert tl.action_histogram(halves, by="seed").sizes["seed"] == 12
    legend = tl.plot_action_histogram(ds, by="seed", groups=[0, 5, 11]).get_figure().legends
    assert [text.get_text().split()[0] for text in legend[0].get_texts()] == ["0", "5", "11"]


def test_traces_say_how_many_episodes_come_from_mid_way():
    ring = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(1), 9, "last", 2 * T)[0]
    ds = tl.to_dataset(ring)
    count = int((~ds["start_seen"]).sum())
    assert count
    assert tl.state_trace(ds, "obs.x").attrs["num_start_unseen"] == count
    title = tl.plot_state_trace(ds, "obs.x").get_figure()
    texts = " ".join(text.get_text() for text in title.findobj(lambda artist: hasattr(artist, "get_text")))
    assert f"{count} from mid-way" in texts


def test_several_leading_axes():
    keys = jax.random.split(jax.random.key(4), (2, 3))
    buffers, chunks = jax.jit(jax.vmap(jax.vmap(lambda key: run(key, 3))))(keys)
    with pytest.raises(ValueError, match="2 leading axes: expected as many distinct capital letters"):
        tl.to_dataset(buffers)
    ds = tl.to_dataset(buffers, axes="HS", dims={"H": "rate"}, coords={"rate": [0.1, 0.2]})
    rolled = tl.from_rollout(
        chunks, convention=tl.Convention(axes="HSUTN"), dims={"H": "rate"}, coords={"rate": [0.1, 0.2]}
    )
    assert_identical(ds, rolled)


def test_environments_chosen_among_seeds():
    keys = jax.random.split(jax.random.key(5), 2)
    buffers = jax.vmap(lambda key: run(key, 3, envs=[0, 2])[0])(keys)
    ds = tl.to_dataset(buffers)
    assert sorted(set(ds["env"].values.tolist())) == [0, 2, 3, 5]
    assert sorted(set(zip(ds["env"].values.tolist(), ds["S"].values.tolist(), strict=True))) == [
        (0, 0),
        (2, 0),
        (3, 1),
        (5, 1),
    ]


def test_seeds_that_stop_at_different_times_are_refused():
    def until(key, limit):
        buffer = run(key, 1)[0]
        chunk = collect(jnp.zeros(N, jnp.int32), key)[1]
        return jax.lax.while_loop(lambda b: b.rows < limit, lambda b: tl.append(b, chunk), buffer)

    keys = jax.random.split(jax.random.key(6), 2)
    buffers = jax.vmap(until)(keys, jnp.array([2 * T, 3 * T]))
    with pytest.raises(ValueError, match=r"appended different numbers of rows.*\[8, 12\]"):
        tl.to_dataset(buffers)
    each = [tl.to_dataset(jax.tree.map(lambda x: x[i], buffers)) for i in range(2)]
    ds = tl.concat(each, run=["a", "b"])
    assert [int(ds["length"].where(ds["run"] == run, 0).sum()) for run in "ab"] == [2 * T * N, 3 * T * N]


def test_nothing_is_traced_after_the_first_call():
    traces = []

    @jax.jit
    def train(key, buffer):
        traces.append(1)

        def update(buffer, key):
            return tl.append(buffer, collect(jnp.zeros(N, jnp.int32), key)[1]), None

        return jax.lax.scan(update, buffer, jax.random.split(key, 3))[0]

    def fresh():
        example = jax.eval_shape(collect, jnp.zeros(N, jnp.int32), jax.random.key(0))[1]
        return tl.init_buffer(example, 100, keep="last", fields=["obs", "action"])

    buffer = train(jax.random.key(0), fresh())
    buffer = train(jax.random.key(1), buffer)
    train(jax.random.key(2), fresh())
    assert len(traces) == 1
    assert tl.to_dataset(buffer).attrs["rows_seen"] == 6 * T


def test_memory_does_not_grow_with_the_updates():
    def memory(updates):
        compiled = jax.jit(lambda key: run(key, updates, "last", 8 * T)[0]).lower(jax.random.key(0)).compile()
        found = compiled.memory_analysis()
        return found.temp_size_in_bytes + found.output_size_in_bytes

    assert memory(400) - memory(40) <= 2 * 360 * 8  # the keys of the updates


def test_the_buffer_is_written_in_place():
    capacity = 4096 * T
    compiled = jax.jit(lambda key: run(key, 50, "last", capacity)[0]).lower(jax.random.key(0)).compile()
    one_field = capacity * N * 4
    assert compiled.memory_analysis().temp_size_in_bytes < one_field


@pytest.mark.parametrize("wide", [False, True])
def test_x64_on_and_off(wide):
    with jax.enable_x64(wide):
        buffer, chunks = jax.jit(run, static_argnums=1)(jax.random.key(0), 5)
        big = {"obs": jnp.arange(T)[:, None] + 2**40 * wide, "done": jnp.ones((T, 1), bool)}
        ds = tl.to_dataset(buffer)
        assert_identical(ds, tl.from_rollout(chunks, convention=tl.Convention(axes="UTN")))
        stamped = tl.to_dataset(tl.append(tl.init_buffer(big, T), big))
    assert stamped["obs"].dtype == (np.int64 if wide else np.int32)
    assert stamped["obs"].values[:, 0].tolist() == [2**40 * wide + i for i in range(T)]


def test_keys_half_floats_and_functions_of_the_chunk():
    def make(key):
        return {
            "obs": jnp.ones((T, N, 2), jnp.bfloat16),
            "key": jax.random.split(key, (T, N)),
            "done": jnp.ones((T, N), jnp.float32),
        }

    fields = {"doubled": lambda chunk: chunk["obs"] * 2, "key": "key"}

    @jax.jit
    def train(key):
        buffer = tl.init_buffer(jax.eval_shape(make, key), T, fields=fields)
        return tl.append(buffer, make(key))

    key = jax.random.key(7)
    ds, want = tl.to_dataset(train(key)), tl.from_rollout(make(key), fields=fields)
    xr.testing.assert_identical(ds.load(), want.load())
    assert ds["doubled"].attrs["recorded_dtype"] == "bfloat16"
    assert ds["key"].attrs["recorded_dtype"] == "key"


def test_dataset_outlives_the_donated_buffer():
    buffer, _ = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(0), 5, "first", 8 * T)
    ring, _ = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(0), 5, "last", 2 * T)
    add = jax.jit(tl.append, donate_argnums=0)
    chunk = jax.tree.map(jnp.zeros_like, collect(jnp.zeros(N, jnp.int32), jax.random.key(1))[1])
    for each in (buffer, ring):
        ds = tl.to_dataset(each)
        want = ds.copy().load()
        later = each
        for _ in range(3):
            later = add(later, chunk)
        jax.block_until_ready(later)
        xr.testing.assert_identical(ds.load(), want)
        assert tl.to_dataset(later).attrs["rows_seen"] == 8 * T
        with pytest.raises(ValueError, match="deleted or donated"):
            tl.to_dataset(each)


def test_copies_where_rows_are_not_readable_by_the_host(monkeypatch):
    ring, _ = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(0), 5, "last", 2 * T)
    first, _ = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(0), 5, "first", 2 * T)
    exact, _ = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(0), 2, "last", 2 * T)
    buffers = [ring, first, exact]
    want = [tl.to_dataset(buffer).load() for buffer in buffers]
    for module in ("trajlab.buffer.reading", "trajlab.block.read"):
        monkeypatch.setattr(f"{module}.is_host_readable", lambda array: isinstance(array, np.ndarray))
    for buffer, loaded in zip(buffers, want, strict=True):
        ds = tl.to_dataset(buffer)
        for leaf in jax.tree.leaves(buffer):
            leaf.delete()
        xr.testing.assert_identical(ds.load(), loaded)


@pytest.mark.parametrize("keep", ["first", "last"])
def test_buffer_fetched_to_the_host_may_be_overwritten(keep):
    buffer = jax.jit(run, static_argnums=(1, 2, 3))(jax.random.key(0), 5, keep, 2 * T)[0]
    fetched = jax.tree.map(np.array, jax.device_get(buffer))
    ds = tl.to_dataset(fetched)
    for leaf in jax.tree.leaves(fetched):
        leaf[...] = 0
    xr.testing.assert_identical(ds.load(), tl.to_dataset(buffer).load())


def test_host_callback_records_in_order_with_iterations():
    recorder, plain = tl.Recorder(), tl.Recorder()

    @jax.jit
    def train(key):
        def update(state, given):
            key, number = given
            state, chunk = collect(state, key)
            io_callback(plain.record, None, chunk, ordered=True)
            io_callback(
                lambda chunk, number: recorder.record(chunk, iteration=number), None, chunk, number, ordered=True
            )
            return state, chunk

        numbers = 100 + jnp.arange(20)
        return jax.lax.scan(update, jnp.zeros(N, jnp.int32), (jax.random.split(key, 20), numbers))[1]

    chunks = train(jax.random.key(8))
    jax.effects_barrier()
    want = tl.from_rollout(chunks, convention=tl.Convention(axes="UTN"))
    assert_identical(plain.to_dataset(), want)
    ds = recorder.to_dataset()
    assert sorted(set(ds["start_iteration"].values.tolist())) == sorted(
        set((want["start_iteration"].values + 100).tolist())
    )
    np.testing.assert_array_equal(ds["obs.x"].values, want["obs.x"].values)


def test_chunk_refused_in_a_host_callback_says_why():
    recorder = tl.Recorder()

    @jax.jit
    def train(x):
        io_callback(recorder.record, None, {"obs": x}, ordered=True)
        return x

    def wait():
        jax.block_until_ready(train(jnp.zeros((T, N))))
        jax.effects_barrier()

    with pytest.raises(Exception, match="no flag marks the ends of episodes"):
        wait()


@jax.numpy_dtype_promotion("standard")
def test_purejaxrl_style_training_records_itself():
    from trajlab.testing import ppo

    config = ppo.Config(
        num_envs=4, num_steps=16, num_iterations=6, num_minibatches=2, num_epochs=1, max_episode_steps=20
    )
    agent = ppo.make("CartPole-v1", config)

    def train(key, keep):
        train_state = agent.init(key)
        example, states = jax.eval_shape(agent.collect, train_state)[1:]
        buffer = tl.init_buffer(example, 3 * 16 if keep == "last" else 6 * 16, keep=keep, state=states)

        def update(carry, _):
            train_state, buffer = carry
            train_state, chunk, states = agent.collect(train_state)
            buffer = tl.append(buffer, chunk, state=states)
            return (agent.update(train_state, chunk), buffer), (chunk, states)

        (_, buffer), stacked = jax.lax.scan(update, (train_state, buffer), length=6)
        return buffer, stacked

    buffer, (chunks, states) = jax.jit(train, static_argnums=1)(jax.random.key(0), "first")
    ds = tl.to_dataset(buffer)
    want = tl.from_rollout(chunks, convention=tl.Convention(axes="UTN"), state=states)
    assert_identical(ds, want)
    assert ds["final_known"].values.all()
    assert set(ds["end_reason"].values) <= {"terminated", "truncated", "cut"}
    seeds, _ = jax.jit(jax.vmap(train, (0, None)), static_argnums=1)(jax.random.split(jax.random.key(0), 2), "last")
    assert tl.to_dataset(seeds).attrs["rows_evicted"] == 3 * 16


def test_repr_says_the_sizes_and_fetches_nothing():
    example = jax.eval_shape(collect, jnp.zeros(N, jnp.int32), jax.random.key(0))[1]
    seen = []
    jax.jit(lambda: seen.append(repr(tl.init_buffer(example, 8, keep="last", fields=["action"]))))()
    assert seen == ["<trajlab.Buffer: the last 8 rows of 3 environments, 0.0 MB; action, terminated, truncated>"]
    buffers = jax.vmap(lambda key: run(key, 1)[0])(jax.random.split(jax.random.key(0), 2))
    assert repr(buffers).startswith("<trajlab.Buffer: 2 times the first 10000 rows of 3 environments, 1.4 MB; action")


def test_field_without_a_component_is_kept():
    chunk = {"obs": jnp.zeros((T, N, 0)), "done": jnp.zeros((T, N), bool)}
    ds = tl.to_dataset(tl.append(tl.init_buffer(chunk, 8), chunk))
    assert ds["obs"].shape == (N, T, 0)


def test_buffer_may_be_copied_and_pickled():
    buffer = tl.append(tl.init_buffer(plain(), 8), plain())
    want = tl.to_dataset(buffer).load()
    for other in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        xr.testing.assert_identical(
            tl.to_dataset(tl.append(other, plain())).load().isel(time=slice(T)).assign_coords(length=want["length"]),
            want.assign_attrs(rows_seen=8, rows_kept=8),
        )


def test_ring_numbers_are_given_once():
    done = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 0], bool)
    convention = tl.Convention(flags="previous_row")
    chunks = [{"obs": jnp.array([[i]]), "done": jnp.array([[d]])} for i, d in enumerate(done)]
    buffer = tl.init_buffer(chunks[0], 2, keep="last", convention=convention)
    found = {}
    for chunk in chunks:
        buffer = tl.append(buffer, chunk)
        ds = tl.to_dataset(buffer)
        for number, row, seen in zip(
            ds["episode"].values, ds["start_row"].values, ds["start_seen"].values, strict=True
        ):
            if seen:
                assert found.setdefault(int(row), int(number)) == number
    assert found == {0: 0, 2: 1, 4: 2, 6: 3, 7: 4}


@pytest.mark.parametrize("length", [1, 2])
def test_ring_knows_a_reset_row_behind_masked_cells(length):
    done, mask = np.array([1, 0, 0, 0, 0, 0], bool)[:, None], np.array([1, 0, 0, 0, 1, 1], bool)[:, None]
    chunk = {"obs": jnp.arange(6)[:, None], "done": jnp.asarray(done)}
    cut = [jax.tree.map(lambda x: x[i : i + length], (chunk, mask)) for i in range(0, 6, length)]
    buffer = tl.init_buffer(cut[0][0], 2, keep="last", convention=tl.Convention(autoreset="next_step"))
    for part, recorded in cut:
        buffer = tl.append(buffer, part, mask=recorded)
    ds = tl.to_dataset(buffer)
    assert ds["start_row"].values.tolist() == [5]
    assert ds["start_seen"].values.tolist() == [True]
    assert ds["obs"].values.tolist() == [[5]]


# What is refused ------------------------------------------------------------------------------------------------------


def plain(rows=T, envs=N, **more):
    return {"obs": jnp.zeros((rows, envs, 2)), "done": jnp.zeros((rows, envs), bool)} | more


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: tl.init_buffer(plain(), 0), ValueError, "capacity=0; expected a positive whole number"),
        (lambda: tl.init_buffer(plain(), 2.5), ValueError, "capacity=2.5"),
        (lambda: tl.init_buffer(plain(), 8, keep="latest"), ValueError, "keep='latest'; expected one of 'first', 'last'"),
        (lambda: tl.init_buffer(plain(), 8, fields=["acton"]), KeyError, "acton"),
        (lambda: tl.init_buffer({"obs": jnp.zeros((4, 3))}, 8), ValueError, "no flag marks the ends"),
        (
            lambda: tl.init_buffer(plain(x=np.zeros((T, N), np.float64)), 8),
            TypeError, "field 'x' has dtype float64, which becomes float32 unless jax_enable_x64",
        ),
        (lambda: tl.init_buffer(plain(x=np.full((T, N), "a")), 8), TypeError, "field 'x'.*cannot be held by JAX"),
        (lambda: tl.init_buffer(plain(x=3.0), 8), TypeError, "field 'x' is of type float"),
        (
            lambda: tl.init_buffer(plain(), 8, keep="last", convention=tl.Convention(autoreset="disabled")),
            ValueError, "keep='last' with autoreset='disabled'",
        ),
        (lambda: tl.init_buffer(plain(), 2**31), ValueError, "capacity=2147483648; expected .* at most 1,073,741,824"),
        (lambda: tl.init_buffer(plain(), 8, mask=jnp.ones((T, N), bool)), TypeError, r"got mask=, which is for append\(\)"),
        (lambda: tl.init_buffer(plain(), 8, dims={"obs": ["x", "y"]}), TypeError, r"got dims=, which is for to_dataset\(\)"),
        (lambda: tl.init_buffer({"dones": jnp.zeros((T, N), bool)}, 8), ValueError, "Did you mean 'dones'"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(), iteration=np.int64(2**32)), ValueError, "iteration=.*from 0 to"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(), reset="yes"), ValueError, "reset has shape"),
        (
            lambda: tl.init_buffer(jax.eval_shape(lambda: plain()) | {"x": np.zeros((T, N))}, 8),
            TypeError, "'x'.*float64, which becomes float32",
        ),
        (lambda: tl.to_dataset(jax.eval_shape(lambda: tl.init_buffer(plain(), 8))), TypeError, "shapes without values"),
        (lambda: tl.to_dataset(tl.init_buffer(plain(), 8), axes=1), TypeError, "axes=1"),
        (
            lambda: tl.to_dataset(jax.vmap(lambda x: tl.init_buffer(plain(x=x), 8))(jnp.zeros((0, T, N)))),
            ValueError, "leading axis of length 0",
        ),
        (
            lambda: tl.to_dataset(dataclasses.replace(tl.init_buffer(plain(), 8), iterations=jnp.zeros((2, 3), jnp.int32))),
            ValueError, "not the same leading axes",
        ),
        (lambda: tl.append(plain(), plain()), TypeError, r"append\(\) got a dict"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(rows=5)), ValueError, "the chunk has 5 rows, the example had 4"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(envs=2)), ValueError, "this chunk has 2 environments"),
        (
            lambda: tl.append(tl.init_buffer(plain(), 8), plain() | {"obs": jnp.zeros((T, N, 3))}),
            ValueError, r"field 'obs' has cells of shape \(3,\)",
        ),
        (
            lambda: tl.append(tl.init_buffer(plain(), 8), plain() | {"obs": jnp.zeros((T, N, 2), jnp.int32)}),
            ValueError, "field 'obs' has dtype int32; the first one's was float32",
        ),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(x=jnp.zeros((T, N)))), ValueError, "new in this chunk: 'x'"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), {"done": plain()["done"]}), ValueError, "missing from this chunk: 'obs'"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(), iteration=1.5), TypeError, "iteration.*expected a whole number"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(), reset=jnp.zeros(2, bool)), ValueError, "reset has shape"),
        (lambda: tl.append(tl.init_buffer(plain(), 8), plain(), mask=jnp.zeros((T, 2), bool)), ValueError, "mask has shape"),
        (lambda: tl.to_dataset(tl.init_buffer(plain(), 8)), ValueError, "nothing has been recorded"),
        (lambda: tl.to_dataset(tl.Recorder()), TypeError, r"to_dataset\(\) got a Recorder"),
        (lambda: jax.jit(tl.to_dataset)(tl.init_buffer(plain(), 8)), TypeError, "inside a function that JAX traces"),
        (
            lambda: tl.to_dataset(tl.append(tl.init_buffer(plain(), 8), plain()), axes="S"),
            ValueError, "axes='S'; the buffer has no leading axis",
        ),
    ],
)  # fmt: skip
def test_refused_with_what_to_do(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_full_buffer_counts_what_it_drops_and_warns_of_no_episode():
    masked = jnp.zeros((T, N), bool)
    buffer = tl.append(tl.init_buffer(plain(), 1), plain(), mask=masked)
    buffer = tl.append(buffer, plain())
    with pytest.warns(UserWarning, match="no episode"):
        ds = tl.to_dataset(buffer)
    assert ds.attrs["rows_dropped"] == T
    assert ds.sizes["episode"] == 0


def test_reset_by_hand_and_jumping_iterations():
    buffer = tl.init_buffer(plain(), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffer = tl.append(buffer, plain(), iteration=3)
        buffer = tl.append(buffer, plain(), reset=jnp.array([True, False, False]))
        buffer = tl.append(buffer, plain(), iteration=9, reset=np.array([False, True, False]))
    ds = tl.to_dataset(buffer)
    got = sorted(
        zip(*(ds[name].values.tolist() for name in ("env", "start_row", "start_iteration", "start_seen")), strict=True)
    )
    assert got == [
        (0, 0, 3, True), (0, 4, 4, True), (0, 8, 9, False),
        (1, 0, 3, True), (1, 8, 9, True),
        (2, 0, 3, True), (2, 8, 9, False),
    ]  # fmt: skip
