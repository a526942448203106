"""Episodes written as they happen: as the recorder has them, whole up to the last step, whatever goes wrong."""

import enum
import json
import math
import re
import warnings
from pathlib import Path

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st
from integrations.counter import Counter, counters
from strategies import examples

import trajlab as tl
from trajlab.integrations.gymnasium import (
    RecordEpisodes,
    RecordTrajectory,
    RecordVectorEpisodes,
    RecordVectorTrajectory,
)
from trajlab.io.jsonl import open_files

COORDS = "episode time length env start_iteration end_reason complete start_seen final_known".split()


def lines(path, number=0):
    return [json.loads(line) for line in (Path(path) / f"episode_{number:05d}.jsonl").read_text().splitlines()]


def files(path):
    return sorted(file.name for file in Path(path).iterdir())


def assert_same(ours, recorded):
    """Assert that what was written is what was recorded, seeds and options as values of the episode."""
    tl.validate(ours, deep=True)
    for name in COORDS:
        np.testing.assert_array_equal(ours[name], recorded[name], err_msg=name)
    orders = [np.lexsort([ds["env"], ds["start_row"]]) for ds in (ours, recorded)]
    np.testing.assert_array_equal(*orders)
    for name, variable in recorded.data_vars.items():
        is_held = name == "seed" or name.startswith("option.")
        assert ours[name].dtype == variable.dtype, name
        np.testing.assert_array_equal(ours[name], variable.isel(time=0) if is_held else variable, err_msg=name)
        if not is_held:
            assert ours[name].attrs == variable.attrs, name


# What is written ------------------------------------------------------------------------------------------------------


@examples(16)
@given(st.integers(0, 10_000))
def test_vectors_are_written_as_they_are_recorded(tmp_path_factory, number):
    rng = np.random.default_rng(number)
    path, mode, num = tmp_path_factory.mktemp("run"), list(AutoresetMode)[number % 3], int(rng.integers(1, 4))
    recording = RecordVectorEpisodes(counters(num, mode), infos={"step": int, "won": bool})
    envs = RecordVectorTrajectory(recording, path)
    envs.reset(seed=3)
    for _ in range(rng.integers(1, 25)):
        match rng.choice(["step"] * 8 + ["reset", "mask", "update"]):
            case "reset":
                envs.reset(seed=5)
            case "mask":
                envs.reset(options={"reset_mask": np.arange(num) <= rng.integers(0, num)})
            case "update":
                envs.iteration = recording.iteration = recording.iteration + 1
        waits = recording._steps._ended
        if mode == AutoresetMode.DISABLED and waits.any():
            envs.reset(options={"reset_mask": waits.copy()})
        envs.step(rng.integers(0, 3, num))
    envs.close()
    recorded, ours = recording.recorder.to_dataset(), tl.read_jsonl(path)
    assert_same(ours, recorded[[name for name in recorded.data_vars if name in ours]])
    assert {"obs", "action", "reward", "terminated", "truncated", "final_obs", "info.step"} <= set(ours.data_vars)


@pytest.mark.parametrize("is_reset_by_itself", [False, True])
def test_a_single_environment_is_written_as_it_is_recorded(is_reset_by_itself, tmp_path):
    inner = gym.wrappers.Autoreset(Counter()) if is_reset_by_itself else Counter()
    recording = RecordEpisodes(inner, infos={"step": int, "won": bool})
    env = RecordTrajectory(recording, tmp_path)
    rng, ended = np.random.default_rng(0), True
    env.reset(seed=4, options={"level": 2.5})
    for step in range(40):
        if (ended and not is_reset_by_itself) or step == 17:
            env.reset(options={"level": 1.0})
        *_, terminated, truncated, _ = env.step(rng.integers(0, 3))
        ended = terminated or truncated
    recorded, ours = recording.recorder.to_dataset(), tl.read_jsonl(tmp_path)
    np.testing.assert_array_equal(ours["start_row"], recorded["start_row"])
    level = recorded["option.level"].isel(time=0)
    np.testing.assert_array_equal(ours["option.level"], level)
    assert_same(ours, recorded)
    assert lines(tmp_path)[0]["options"] == {"level": 2.5 if is_reset_by_itself else 1.0}


def test_lines_are_those_of_the_older_format(tmp_path):
    env = RecordTrajectory(Counter(), tmp_path)
    env.reset(seed=1)
    for action in (0, 1, 2):
        env.step(action)
    head, *steps = lines(tmp_path)
    assert (head["event"], head["episode"], head["obs"], head["info"], head["seed"]) == (
        "reset",
        0,
        [1.0, 0.0],
        {"born": 1},
        1,
    )
    assert [(step["event"], step["t"], step["action"]) for step in steps] == [
        ("step", 1, 0),
        ("step", 2, 1),
        ("step", 3, 2),
    ]
    assert [step["obs"] for step in steps] == [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]
    assert [step["reward"] for step in steps] == [0.125, 0.25, 0.375]
    assert [step["terminated"] for step in steps] == [False, False, True]
    assert steps[-1]["info"] == {"step": 3, "won": False}


def test_files_reduced_to_the_older_format_hold_the_same(tmp_path):
    env = RecordTrajectory(Counter(), tmp_path)
    for actions in ([0, 1, 2], [0] * 6, [1, 1]):
        env.reset()
        for action in actions:
            env.step(action)
    env.close()
    ours = tl.read_jsonl(tmp_path).load()
    for path in tmp_path.iterdir():
        keys = "event episode t action obs reward terminated truncated info".split()
        kept = [
            {key: line[key] for key in keys if key in line} for line in map(json.loads, path.read_text().splitlines())
        ]
        path.write_text("\n".join(map(json.dumps, kept)))
    older = tl.read_jsonl(tmp_path).load()
    for name in ours.variables:
        np.testing.assert_array_equal(ours[name], older[name], err_msg=name)
        assert ours[name].dtype == older[name].dtype, name


def test_a_line_is_there_when_the_step_returns(tmp_path):
    env = RecordTrajectory(Counter(), tmp_path)
    env.reset()
    for count in (1, 2, 3):
        env.step(0)
        assert len(lines(tmp_path)) == count + 1
        assert tl.read_jsonl(tmp_path)["length"].values.tolist() == [count]


class Everything(gym.Env):
    """Shows a tree of arrays of many kinds, and takes one."""

    observation_space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (2, 2), np.uint8),
            "pair": spaces.Tuple([spaces.Box(-1, 1, (1,), np.float32), spaces.Discrete(3)]),
            "text": spaces.Text(5),
            "many": spaces.Sequence(spaces.Discrete(3)),
            "bits": spaces.MultiBinary(3),
        }
    )
    action_space = spaces.Dict({"turn": spaces.Box(-1, 1, (), np.float32), "buttons": spaces.MultiDiscrete([2, 3])})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.action_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        action["buttons"][:] = 0  # an environment may do so
        return self.observation_space.sample(), 1, False, False, {}


@pytest.mark.parametrize("is_vector", [False, True])
def test_trees_of_arrays_become_fields_and_what_has_no_fixed_shape_stays_in_the_lines(is_vector, tmp_path):
    env = gym.vector.SyncVectorEnv([Everything]) if is_vector else Everything()
    env = RecordTrajectory(env, tmp_path)
    shown = [env.reset(seed=1)[0]]
    actions = []
    for _ in range(3):
        action = env.action_space.sample()
        actions.append(np.array(action["buttons"]))
        shown.append(env.step(action)[0])
    ds = tl.read_jsonl(tmp_path)
    fields = {"obs.image": np.uint8, "obs.pair.0": np.float32, "obs.pair.1": np.int64, "obs.bits": np.int8}
    for name, dtype in (fields | {"action.turn": np.float32, "action.buttons": np.int64}).items():
        assert ds[name].dtype == dtype, name
    assert ds["obs.text"].dtype.kind == "U"
    assert "obs.many" not in ds
    one = (lambda value: value[0]) if is_vector else (lambda value: value)
    np.testing.assert_array_equal(ds["obs.image"][0], np.stack([one(obs["image"]) for obs in shown[:3]]))
    np.testing.assert_array_equal(ds["final_obs.pair.0"][0], one(shown[3]["pair"][0]))
    np.testing.assert_array_equal(ds["action.buttons"][0], np.stack([one(action) for action in actions]))
    assert ds["obs.text"].values[0].tolist() == [one(obs["text"]) for obs in shown[:3]]
    assert lines(tmp_path)[1]["obs"]["many"] == [int(x) for x in one(shown[1]["many"])]


class Scripted(gym.Env):
    """Returns what it is told to."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, obs=(), infos=(), rewards=()):
        self.obs, self.infos, self.rewards = iter(obs), iter(infos), iter(rewards)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if options:
            raise RuntimeError("broken")
        return np.zeros(2, np.float32), {}

    def step(self, action):
        if action is None:
            raise RuntimeError("broken")
        obs = next(self.obs, np.ones(2, np.float32))
        return obs, next(self.rewards, 0.0), False, False, next(self.infos, {})


def played(path, steps, actions=None, **script):
    """Return the Dataset of so many steps of a scripted environment."""
    env = RecordTrajectory(Scripted(**script), path)
    env.reset()
    for step in range(steps):
        env.step(np.zeros(1, np.float32) if actions is None else actions[step])
    env.close()
    return tl.read_jsonl(path)


def test_numbers_that_are_not_finite_are_strict_json(tmp_path):
    obs = [np.array(values, np.float32) for values in ([math.nan, 1], [math.inf, -math.inf], [-0.0, 0.1])]
    ds = played(tmp_path, 3, obs=obs, rewards=[math.nan, math.inf, 1.0], infos=[{"x": math.nan}, {"x": 1}, {"x": None}])
    assert [line["obs"] for line in lines(tmp_path)[1:]] == [["NaN", 1.0], ["Infinity", "-Infinity"], [-0.0, 0.1]]
    np.testing.assert_array_equal(ds["obs"][0, 1:], obs[:2])
    assert ds["final_obs"].values.tobytes() == obs[2].tobytes()
    np.testing.assert_array_equal(ds["reward"][0], [math.nan, math.inf, 1.0])
    np.testing.assert_array_equal(ds["info.x"][0], [math.nan, 1.0, math.nan])


class Colour(enum.Enum):
    RED = 1


def test_infos_of_any_kind_stop_nothing(tmp_path):
    infos = [
        {
            "flag": np.bool_(True),
            "array": jnp.arange(3),
            "half": jnp.asarray(1 / 3, jnp.bfloat16),
            "colour": Colour.RED,
        },
        {"flag": False, "count": np.uint64(2**64 - 1), "deep": {"er": np.float32(0.1)}, "colour": Colour.RED},
        {"text": "\ud800é", "big": 2**80, "list": [1, [2, {3: None}]], 7: 8, "self": object},
    ]
    infos[2]["loop"] = infos[2]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ds = played(tmp_path, 3, infos=infos)
    warned = sorted(re.search(r"of type \S*?(\w+) has", str(one.message))[1] for one in found)
    assert warned == ["Colour", "dict", "int", "list", "type"]
    _, first, second, third = lines(tmp_path)
    assert first["info"]["colour"]["repr"] == "<Colour.RED: 1>"
    assert (first["info"]["array"], second["info"]["count"]) == ([0, 1, 2], 2**64 - 1)
    assert (third["info"]["text"], third["info"]["list"], third["info"]["7"]) == ("\\ud800é", [1, [2, {"3": None}]], 8)
    assert ds["info.flag"].values.tolist() == [[True, False, False]]
    assert ds["info._flag"].values.tolist() == [[True, True, False]]
    assert ds["info.array"].values[0, 0].tolist() == [0, 1, 2]
    assert ds["info.array"].dtype == np.int32
    assert ds["info.count"].values[0].tolist() == [2**64 - 1] * 3  # missing is the largest
    assert ds["info.deep.er"].values[0, 1] == np.float32(0.1)
    assert ds["info.half"].values[0, 0] == np.float32(jnp.asarray(1 / 3, jnp.bfloat16))


def test_a_value_of_a_wider_dtype_makes_the_field_wider_and_keeps_what_was(tmp_path):
    infos = [{"x": np.float32(0.1)}, {"x": 0.1}, {"x": 3}]
    actions = [np.array([0.1], np.float32), np.array([0.1]), np.array([0.5], np.float32)]
    ds = played(tmp_path, 3, infos=infos, actions=actions)
    assert ds["info.x"].values.tolist() == [[float(np.float32(0.1)), 0.1, 3.0]]
    assert ds["action"].values[0, :, 0].tolist() == [float(np.float32(0.1)), 0.1, 0.5]


def test_an_info_of_another_shape_is_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match=r"episode_00000.jsonl: 1 values of 'info.x' from line 2 on are left out"):
        ds = played(tmp_path, 3, infos=[{"x": 1}, {"x": [1, 2]}, {"x": 3}])
    assert ds["info.x"].values[0].tolist() == [1, np.iinfo(int).min, 3]


def test_rewards_may_be_vectors(tmp_path):
    ds = played(tmp_path, 2, rewards=[np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    assert ds["reward"].dims == ("episode", "time", "reward_dim_0")
    assert ds["reward"].values.tolist() == [[[1.0, 2.0], [3.0, 4.0]]]


def test_arrays_that_do_not_lie_in_order_are_written(tmp_path):
    obs = np.arange(8, dtype=np.float32)
    ds = played(tmp_path, 2, obs=[obs[::4], obs.astype(">f4")[:2]], actions=[np.zeros(1), jnp.ones(1)])
    assert ds["obs"].values[0].tolist() == [[0, 0], [0, 4]]
    assert ds["final_obs"].values.tolist() == [[0, 1]]
    assert ds["action"].values[0, :, 0].tolist() == [0, 1]


def test_a_number_may_stand_for_an_array_with_one_entry(tmp_path):
    ds = played(tmp_path, 3, actions=[0.5, 0.25, np.float32(0.125)], rewards=[1, np.float32(0.1), True])
    assert ds["action"].values[0].tolist() == [[0.5], [0.25], [0.125]]
    assert ds["reward"].values[0].tolist() == [1.0, float(np.float32(0.1)), 1.0]


def test_what_is_like_the_step_before_but_not_quite_is_written_as_it_is(tmp_path):
    """An observation of the same shape in another dtype, numbers of other types, infos, an end: each once, between others."""
    f32 = np.ones(2, np.float32)
    odd = [f32 / 3, f32.astype(float) / 3, f32 / 3, np.ma.array(f32), [0.5, 0.25], f32[::-1], np.int8([1, 2])]
    rewards = [0.5, np.float64(0.5), np.float32(0.1), 2, np.array(0.5), math.inf, 0.5]
    infos = [{}, {"a": 1}, {}, {"null": None}, {}, {"a": 2}, {}]
    ds = played(tmp_path, 7, obs=odd, rewards=rewards, infos=infos)
    shown = [*ds["obs"].values[0, 1:], ds["final_obs"].values[0]]
    np.testing.assert_array_equal(shown, np.array([np.asarray(one, float) for one in odd]))
    np.testing.assert_array_equal(ds["reward"][0], np.array(rewards, float))
    assert [line["info"] for line in lines(tmp_path)[1:]] == infos
    assert [line["t"] for line in lines(tmp_path)[1:]] == list(range(1, 8))


# What goes wrong ------------------------------------------------------------------------------------------------------


def test_resets_that_fail_or_that_nothing_follows_leave_no_file(tmp_path):
    env = RecordTrajectory(Scripted(), tmp_path)
    with pytest.raises(RuntimeError, match="broken"):
        env.reset(options={"break": True})
    env.reset()
    env.reset()
    assert files(tmp_path) == []
    env.step(np.zeros(1, np.float32))
    env.reset()
    env.close()
    env.close()
    assert files(tmp_path) == ["episode_00000.jsonl"]
    ds = tl.read_jsonl(tmp_path)
    assert (ds["end_reason"].item(), ds["complete"].item(), ds["final_known"].item()) == ("cut", False, True)


def test_a_step_that_raises_leaves_what_was_before_and_the_next_begin_unseen(tmp_path):
    env = RecordTrajectory(Scripted(), tmp_path)
    env.reset()
    action = np.zeros(1, np.float32)
    env.step(action)
    with pytest.raises(RuntimeError, match="broken"):
        env.step(None)
    for _ in range(3):
        env.step(action)
    ds = tl.read_jsonl(tmp_path)
    assert ds["length"].values.tolist() == [1, 2]  # what the first step behind the gap began with is not known
    assert ds["start_seen"].values.tolist() == [True, False]
    assert ds["end_reason"].values.tolist() == ["cut", "cut"]


def test_a_value_that_does_not_fit_is_an_error_that_names_it(tmp_path):
    env = RecordTrajectory(Scripted(obs=[np.zeros(3, np.float32), "text"]), tmp_path)
    env.reset()
    with pytest.raises(ValueError, match=r"'obs' has shape \(3,\); expected \(2,\), as its space"):
        env.step(np.zeros(1, np.float32))
    env.reset()
    with pytest.raises(ValueError, match=r"'obs' has shape \(\)"):
        env.step(np.zeros(1, np.float32))
    assert files(tmp_path) == []


def test_a_directory_of_an_earlier_run_is_refused_continued_or_replaced(tmp_path):
    for mode in ("create", "append", "append"):
        env = RecordTrajectory(Scripted(), tmp_path, mode=mode)
        env.reset()
        env.step(np.zeros(1, np.float32))
    assert files(tmp_path) == [f"episode_0000{number}.jsonl" for number in range(3)]
    with (tmp_path / "episode_00002.jsonl").open("ab") as file:
        file.write(b'{"event":"step","t":')
    with pytest.raises(FileExistsError, match="holds the episodes of an earlier run"):
        RecordTrajectory(Scripted(), tmp_path)
    env = RecordTrajectory(Scripted(), tmp_path, mode="append")
    env.reset()
    env.step(np.zeros(1, np.float32))
    with pytest.warns(UserWarning, match="episode_00002.jsonl, line 3: left out, as it is torn"):
        assert tl.read_jsonl(tmp_path)["length"].values.tolist() == [1, 1, 1, 1]
    RecordTrajectory(Scripted(), tmp_path, mode="replace")
    assert files(tmp_path) == []


def test_two_wrappers_of_one_directory_do_not_mix_their_lines(tmp_path):
    first, second = (RecordTrajectory(Scripted(), tmp_path) for _ in range(2))
    for env in (first, second):
        env.reset()
    first.step(np.zeros(1, np.float32))
    with pytest.raises(FileExistsError, match=r"episode_00000.jsonl is there, but was not.* directory of its own"):
        second.step(np.ones(1, np.float32))
    first.step(np.zeros(1, np.float32))
    assert tl.read_jsonl(tmp_path)["action"].values.tolist() == [[[0.0], [0.0]]]


def test_what_was_written_is_read_written_and_read_again(tmp_path):
    first = played(tmp_path / "a", 3, infos=[{"x": 1, "won": True}, {}, {"x": 2}])
    tl.write_jsonl(first, tmp_path / "b")
    again = tl.read_jsonl(tmp_path / "b")
    assert again.load().identical(first.load())


def test_open_files_are_few_however_many_environments_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(open_files, "MAX_OPEN", 2)
    envs = RecordTrajectory(counters(5, AutoresetMode.NEXT_STEP), tmp_path)
    assert isinstance(envs, RecordVectorTrajectory)
    envs.reset()
    for step in range(12):
        envs.step(np.where(np.arange(5) == step % 5, 2, 0))
        assert len(envs._files._open) <= 2
    envs.close()
    assert envs._files._open == {}
    ds = tl.read_jsonl(tmp_path)
    assert ds["length"].sum() == sum(len(lines(tmp_path, number)) - 1 for number in ds["episode"].values)
