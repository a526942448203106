"""Fields added one by one, for all environments or for some: each environment's step is what it was given."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import trajlab as tl

HOMES = pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
OBS, ACTION = np.arange(24, dtype=np.float32).reshape(6, 4), np.arange(24, dtype=np.int32).reshape(6, 4)
DONE = np.arange(6)[:, None] == np.array([2, 3, 9, 2])


def cells(ds, name, env):
    """Return a field of one environment, one transition after the other."""
    own = ds.isel(episode=np.flatnonzero(ds["env"].values == env))
    return own[name].values[own["mask"].values].tolist()


@pytest.fixture
def recorder():
    """Return a recorder of three environments with one step."""
    recorder = tl.Recorder(num_envs=3)
    recorder.add("obs", np.zeros(3))
    recorder.add("done", np.zeros(3, bool))
    return recorder


@HOMES
def test_adds_of_all_environments_equal_record_step(xp):
    added, stepped = tl.Recorder(), tl.Recorder()
    for t in range(6):
        step = {"obs": {"position": xp.asarray(OBS[t])}, "action": xp.asarray(ACTION[t]), "done": xp.asarray(DONE[t])}
        stepped.record_step(step, iteration=t // 2)
        added.add("action", step["action"], iteration=t // 2)
        added.add("obs/position", step["obs"]["position"])
        added.add("done", step["done"])
    xr.testing.assert_identical(added.to_dataset().load(), stepped.to_dataset().load())


OPTIONS = {
    "function of a slot": {"convention": tl.Convention(done=lambda chunk: chunk["over"])},
    "functions as fields": {"fields": {"place": "obs.position", "double": lambda chunk: chunk["action"] * 2}},
    "some fields": {"fields": ["action"]},
    "some environments": {"envs": [3, 1]},
    "axes": {"num_envs": 4, "convention": tl.Convention(axes="(UN)T")},
    "result": {"convention": tl.Convention(alignment="result")},
}


@HOMES
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_adds_equal_record_step_whatever_is_made_of_them(xp, options):
    added, stepped = tl.Recorder(**options), tl.Recorder(**options)
    name = "over" if options is OPTIONS["function of a slot"] else "done"
    for t in range(6):
        kind = jnp if t == 4 else np if t == 5 else xp  # arrays unlike those of the step before
        step = {"obs": {"position": kind.asarray(OBS[t])}, "action": xp.asarray(ACTION[t]), name: xp.asarray(DONE[t])}
        stepped.record_step(step)
        for field, value in step.items():
            added.add(field, value)
    xr.testing.assert_identical(added.to_dataset().load(), stepped.to_dataset().load())


def test_a_numpy_array_is_copied_once_into_the_log():
    recorder = tl.Recorder()
    for t in range(3):
        recorder.add("done", np.zeros(4, bool))
        recorder.add("obs", OBS[t])
    recorder.add("done", np.zeros(4, bool))
    added = recorder._adding._gathered.whole["done"]
    assert any(np.shares_memory(added, array) for block in recorder._session.log.blocks for array in block.host)


def test_arrays_just_like_the_last_ones_are_not_checked_again(monkeypatch):
    recorder = tl.Recorder()
    checked = []
    for t in range(4):
        recorder.add("obs", jnp.asarray(OBS[t]))
        recorder.add("done", jnp.asarray(DONE[t]))
        if t == 1:
            monkeypatch.setattr(recorder, "_take", lambda *args, **kwargs: checked.append(args))
    assert not checked
    assert recorder.num_recorded_steps == 4


@HOMES
@pytest.mark.parametrize("how", ["ids", "slice", "mask", "mixed"])
def test_adds_of_some_environments_share_steps(xp, how):
    recorder = tl.Recorder(num_envs=4)
    halves = [slice(0, 2), slice(2, 4)]
    for t in range(6):
        for number, half in enumerate(halves):
            envs = np.arange(4)[half]
            form = how if how != "mixed" else ("ids", "mask")[number]
            given = {"ids": envs[::-1], "slice": half, "mask": np.isin(np.arange(4), envs)}[form]
            where = {"ids": envs[::-1], "slice": half, "mask": slice(None)}[form]
            for name, values in (("obs", OBS), ("action", ACTION), ("done", DONE)):
                recorder.add(name, xp.asarray(values[t][where]), envs=given)
    assert recorder.num_recorded_steps == 6
    ds = recorder.to_dataset()
    for env in range(4):
        assert cells(ds, "obs", env) == OBS[:, env].tolist()
        assert cells(ds, "action", env) == ACTION[:, env].tolist()
        assert cells(ds, "done", env) == DONE[:, env].tolist()


class Reference:
    """What `add` means, one environment at a time."""

    def __init__(self, num_envs, missing):
        self.missing = missing
        self.steps = [[] for _ in range(num_envs)]
        self.open = [{} for _ in range(num_envs)]

    def add(self, name, values, envs):
        for value, env in zip(values, envs, strict=True):
            if name in self.open[env]:
                self.finish([env])
            self.open[env][name] = value

    def finish(self, envs):
        for env in envs:
            if self.open[env]:
                self.steps[env].append(self.missing | self.open[env])
                self.open[env] = {}


@pytest.mark.parametrize("home", ["numpy", "jax", "mixed"])
@pytest.mark.parametrize("seed", range(6))
def test_every_environment_makes_the_steps_that_it_was_given(home, seed):
    rng, num_envs, recorder = np.random.default_rng(seed), 3, tl.Recorder(num_envs=3)
    dtypes = {"obs": np.float32, "action": np.int32, "done": np.bool_}
    on_device = {name: home == "jax" or (home == "mixed" and name == "action") for name in dtypes}
    reference = Reference(num_envs, {"obs": None, "action": -(2**31), "done": False})
    everyone, number = np.arange(num_envs), 0
    buffers = {name: np.zeros(num_envs, dtype) for name, dtype in dtypes.items()}

    def draw(name, envs):
        """Return values that no other step has, in a buffer that the next call overwrites."""
        nonlocal number
        number += 1
        values = buffers[name][: len(envs)]
        values[:] = rng.random(len(envs)) < 0.2 if name == "done" else 10 * number + envs
        return jnp.array(values) if on_device[name] else values

    def add(name, envs):
        values = draw(name, envs)
        reference.add(name, values.tolist(), envs)
        recorder.add(name, values, envs=None if envs is everyone else envs)

    def add_whole_steps():
        for name in rng.permutation([*dtypes] * 3):
            add(name, everyone)

    def add_parts():
        for name in rng.permutation([*dtypes] * 2):
            add(name, rng.permutation(num_envs)[: rng.integers(1, num_envs + 1)])

    def mark():
        envs = rng.permutation(num_envs)[: rng.integers(1, num_envs)]
        reference.finish(envs)
        recorder.mark_gap(envs)

    def record_step():
        step = {name: draw(name, everyone) for name in dtypes}
        reference.finish(everyone)
        for name, values in step.items():
            reference.add(name, values.tolist(), everyone)
        reference.finish(everyone)
        recorder.record_step(step)

    def read():
        reference.finish(everyone)
        recorder.to_dataset()

    for name in dtypes:
        add(name, everyone)
    for act in rng.choice([add_whole_steps, add_whole_steps, add_parts, mark, record_step, read], 40):
        act()
    read()
    ds = recorder.to_dataset().load()
    for env, steps in enumerate(reference.steps):
        for name in dtypes:
            got = [None if value != value else value for value in cells(ds, name, env)]
            assert got == [step[name] for step in steps]


@HOMES
def test_what_is_missing_is_padding_and_of_a_flag_false(xp):
    recorder = tl.Recorder(num_envs=3)
    recorder.add("obs", xp.asarray(np.float32([1, 2, 3])))
    recorder.add("action", xp.asarray(np.int32([7])), envs=[1])
    recorder.add("done", xp.asarray(np.float32([1])), envs=[2])
    recorder.add("level", {"size": xp.asarray(np.uint8([4, 5]))}, envs=[2, 0])
    recorder.add("obs", xp.asarray(np.float32([8])), envs=[0])
    ds = recorder.to_dataset().load()
    assert ds["env"].values.tolist() == [0, 1, 2]
    assert ds["end_reason"].values.tolist() == ["cut", "cut", "done"]
    assert ds["length"].values.tolist() == [2, 1, 1]
    np.testing.assert_array_equal(ds["obs"].values[0], [1, 8])
    smallest = np.iinfo(np.int32).min
    assert ds["action"].values[:, 0].tolist() == [smallest, 7, smallest]
    assert ds["level.size"].values[:, 0].tolist() == [5, 255, 4]
    assert ds["level.size"].values[0, 1] == 255
    assert not ds["done"].values[0].any()


def test_an_environments_second_value_completes_its_step_and_no_other(recorder):
    recorder.add("obs", np.array([0.0, 10.0, 20.0]))
    recorder.add("obs", np.array([1.0]), envs=[0])  # the step of 0 is complete, without a flag
    recorder.add("done", np.array([True, True]), envs=[1, 2])  # still belongs to the first step of these
    recorder.add("done", np.array([False]), envs=[0])
    ds = recorder.to_dataset()
    assert [cells(ds, "obs", env) for env in range(3)] == [[0.0, 0.0, 1.0], [0.0, 10.0], [0.0, 20.0]]
    assert ds.sel(episode=ds["env"] > 0)["end_reason"].values.tolist() == ["done", "done"]


@pytest.mark.parametrize(
    "end",
    [
        lambda recorder: recorder.to_dataset(),
        lambda recorder: recorder.check(),
        lambda recorder: recorder.close(),
        lambda recorder: recorder.mark_reset(),
        lambda recorder: recorder.record_step({"obs": np.zeros(3), "done": np.zeros(3, bool)}),
        lambda recorder: recorder.add("obs", np.zeros(3), iteration=1),
    ],
    ids=["to_dataset", "check", "close", "mark", "record_step", "iteration"],
)
def test_what_is_gathered_is_recorded_before(recorder, end):
    recorder.add("obs", np.ones(3))
    end(recorder)
    ds = recorder.to_dataset()
    assert [cells(ds, "obs", env)[:2] for env in range(3)] == [[0.0, 1.0]] * 3


def test_a_mark_completes_the_steps_of_its_environments(recorder):
    recorder.add("obs", np.ones(3))
    recorder.mark_reset([1])
    recorder.add("obs", np.full(1, 2.0), envs=[1])
    recorder.add("done", np.array([True, True]), envs=[0, 2])
    ds = recorder.to_dataset()
    assert [cells(ds, "obs", env) for env in range(3)] == [[0.0, 1.0], [0.0, 1.0, 2.0], [0.0, 1.0]]
    assert ds["length"].sel(episode=ds["env"] == 1).values.tolist() == [2, 1]
    assert ds.sel(episode=ds["env"] != 1)["end_reason"].values.tolist() == ["done", "done"]


def test_values_are_owned():
    class Tensor:
        """What another package's tensor shows of itself."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    recorder, obs, reward = tl.Recorder(), np.zeros(3), np.zeros(3, np.float32)
    for t in range(4):
        obs[:], reward[:] = t, 10 + t
        recorder.add("obs", obs)
        recorder.add("reward", Tensor(reward))
        obs[:], reward[:] = -1, -1
        recorder.add("done", np.zeros(3, bool))
    ds = recorder.to_dataset()
    assert cells(ds, "obs", 1) == [0, 1, 2, 3]
    assert cells(ds, "reward", 2) == [10, 11, 12, 13]


def test_keys_are_put_together():
    keys = jax.random.split(jax.random.key(0), 3)
    recorder = tl.Recorder(num_envs=3)
    recorder.add("done", np.zeros(3, bool))
    recorder.add("key", keys[1:], envs=[2, 0])
    data = recorder.to_dataset()["key"].values[:, 0]
    assert (data[[2, 0]] == np.asarray(jax.random.key_data(keys[1:]))).all()
    assert (data[1] == 2**32 - 1).all()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        (
            ("obs", np.zeros(2)),
            {},
            ValueError,
            r"field 'obs' has shape \(2,\); expected 3 entries, of all 3 environments",
        ),
        (
            ("obs", np.zeros(3)),
            {"envs": [0, 1]},
            ValueError,
            r"'obs' has shape \(3,\); expected 2 entries, of those of",
        ),
        (("obs", np.zeros((3, 1))), {}, ValueError, r"'obs' has cells of shape \(1,\); those added first had \(\)"),
        (("obs", np.zeros(3, np.float32)), {}, ValueError, "'obs' has dtype float32; those added first had float64"),
        (("obbs", np.zeros(3)), {}, ValueError, r"not in the first step: 'obbs'\. Did you mean 'obs'\?"),
        (("obs", 1.0), {}, TypeError, r"field 'obs' is of type float \(1\.0\); expected a JAX or NumPy array"),
        ((3, np.zeros(3)), {}, TypeError, "field=3; expected the name of a field, a text"),
        (("/", np.zeros(3)), {}, ValueError, "field='/'; expected a name"),
        (("obs", {}), {}, ValueError, "field 'obs' holds no array"),
        (("obs", np.zeros(1)), {"envs": [3]}, ValueError, r"envs holds \[3\]; there are 3 environments"),
        (("obs", np.zeros(2)), {"envs": [1, 1]}, ValueError, r"envs repeats \[1\]"),
        (("obs", np.zeros(3)), {"iteration": 0.5}, TypeError, "iteration=0.5; expected a whole number"),
        (("obs", np.ma.zeros(3)), {}, ValueError, "'obs' is a masked array"),
    ],
    ids=str,
)
def test_what_is_refused_adds_nothing(recorder, arguments, options, error, match):
    recorder.add("done", np.ones(3, bool))
    with pytest.raises(error, match=match):
        recorder.add(*arguments, **options)
    recorder.add("obs", np.ones(3))
    assert recorder.num_recorded_steps == 2
    assert recorder.to_dataset()["obs"].values.tolist() == [[0.0, 1.0]] * 3


def test_the_number_of_environments_has_to_be_known():
    with pytest.raises(ValueError, match=r"their number is not known yet; give it: Recorder\(num_envs=...\)"):
        tl.Recorder().add("obs", np.zeros(2), envs=[0, 1])


def test_a_step_that_is_refused_is_dropped():
    recorder = tl.Recorder()
    recorder.add("obs", np.zeros(3))
    with pytest.raises(ValueError, match="no flag|flag"):
        recorder.add("obs", np.zeros(3))
    recorder.add("obs", np.ones(3))
    recorder.add("done", np.zeros(3, bool))
    assert recorder.to_dataset()["obs"].values.tolist() == [[1.0]] * 3


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"obs": np.zeros(3)}, "no flag marks the ends of episodes: looked for .*; there are 'obs'"),
        ({"obs": np.zeros(3), "done": np.array(["a"] * 3)}, "the step was not recorded: the flag 'done' has dtype <U1"),
        ({"done": np.zeros(0, bool)}, "the step is empty"),
        ({"done": np.zeros(3, bool), "obs": np.zeros(3), "next_obs": np.zeros((3, 2))}, "the step was not recorded"),
    ],
    ids=["no flag", "dtype of a flag", "no environments", "next observation"],
)
def test_what_only_the_whole_step_tells_is_said_of_the_step(fields, match):
    recorder = tl.Recorder()
    for name, value in fields.items():
        recorder.add(name, value)
    with pytest.raises(ValueError, match=match) as caught:
        recorder.to_dataset()
    assert "the chunk" not in str(caught.value)


def test_a_donated_array_is_told():
    obs = jnp.zeros(3)
    one = tl.Recorder()
    one.add("done", jnp.zeros(3, bool))
    one.add("obs", obs)
    obs.delete()
    with pytest.raises(ValueError, match="the array of 'obs' has been deleted or donated"):
        one.add("obs", obs)
    with pytest.raises(ValueError, match="the array of 'obs' has been deleted or donated"):
        one.close()


def test_an_array_donated_before_its_step_is_recorded_drops_that_step():
    recorder = tl.Recorder()
    for t in range(3):
        recorder.add("obs", jnp.asarray(OBS[t]))
        recorder.add("done", jnp.asarray(DONE[t]))
    obs = jnp.asarray(OBS[3])
    recorder.add("obs", obs)
    obs.delete()
    with pytest.raises(ValueError, match="the array of 'obs' has been deleted or donated"):
        recorder.add("done", jnp.asarray(DONE[3]))
    recorder.add("obs", jnp.asarray(OBS[4]))
    recorder.add("done", jnp.asarray(DONE[4]))
    assert cells(recorder.to_dataset(), "obs", 1) == OBS[[0, 1, 2, 4], 1].tolist()


def test_a_part_of_a_step_that_was_donated_drops_that_step_alone():
    recorder = tl.Recorder()
    recorder.add("obs", jnp.zeros(3))
    recorder.add("done", jnp.zeros(3, bool))
    obs = jnp.ones(1)
    recorder.add("obs", obs, envs=[0])
    recorder.add("obs", jnp.ones(1), envs=[1])
    obs.delete()
    with pytest.raises(ValueError, match="the array of 'obs' has been deleted or donated"):
        recorder.to_dataset()
    recorder.add("obs", jnp.full(3, 2.0))
    assert cells(recorder.to_dataset(), "obs", 0) == [0.0, 2.0]


def test_what_another_thread_adds_does_not_come_between(recorder):
    finish = recorder._finish_step

    def finish_slowly(envs=None):
        finish(envs)
        if not threads:
            threads.append(threading.Thread(target=recorder.add, args=("obs", np.full(3, 2.0))))
            threads[0].start()
            threads[0].join(0.2)

    recorder.record_step({"obs": np.zeros(3), "done": np.zeros(3, bool)})
    recorder.add("obs", np.zeros(3))
    recorder.add("done", np.zeros(3, bool))
    threads: list[threading.Thread] = []
    recorder._finish_step = finish_slowly
    recorder.record_step({"obs": np.ones(3), "done": np.zeros(3, bool)})
    threads[0].join()
    recorder.add("done", np.zeros(3, bool))
    assert cells(recorder.to_dataset(), "obs", 0) == [0.0, 0.0, 0.0, 1.0, 2.0]


def test_consumers_cannot_write_into_the_log():
    class Scales(tl.Consumer):
        def on_batch(self, batch):
            batch.fields["obs"][...] *= 2

    recorder = tl.Recorder(consumers=[Scales()])
    recorder.add("obs", np.ones(3))
    recorder.add("done", np.zeros(3, bool))
    with pytest.warns(UserWarning, match="read-only"):
        recorder.add("obs", np.ones(3))
    recorder.add("done", np.zeros(3, bool))
    assert cells(recorder.to_dataset(), "obs", 0) == [1.0, 1.0]


def test_what_ends_a_block_is_not_hidden_by_a_step_that_cannot_be_recorded():
    recorder = tl.Recorder()
    recorder.add("obs", np.zeros(3))
    with pytest.raises(ZeroDivisionError) as caught, recorder:
        raise ZeroDivisionError
    assert "no flag marks the ends" in caught.value.__notes__[0]


def test_disabled_closed_and_reset():
    off = tl.Recorder(enabled=False)
    off.add("obs", None)
    recorder = tl.Recorder()
    recorder.add("obs", np.zeros(2))
    recorder.reset()
    recorder.add("other", np.zeros(2))
    recorder.add("done", np.zeros(2, bool))
    recorder.close()
    assert "obs" not in recorder.to_dataset()
    with pytest.raises(ValueError, match="this Recorder is closed"):
        recorder.add("obs", np.zeros(2))
