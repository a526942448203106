"""Each kind of space, as observation and as action, of one environment and of several."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import trajlab as tl
from trajlab.integrations.gymnasium import RecordEpisodes, RecordVectorEpisodes

pytestmark = pytest.mark.interop

GRAPH = spaces.Graph(spaces.Box(0, 1, (2,)), None)
KINDS = {
    "box": spaces.Box(-1, 1, (2, 3), np.float32),
    "image": spaces.Box(0, 255, (4, 4, 3), np.uint8),
    "discrete": spaces.Discrete(4, start=-1),
    "multi_discrete": spaces.MultiDiscrete([3, 5], start=[1, 2]),
    "multi_binary": spaces.MultiBinary(3),
    "text": spaces.Text(5),
    "dict": spaces.Dict({"position": spaces.Box(-1, 1, (2,)), "deep": spaces.Dict({"word": spaces.Text(3)})}),
    "tuple": spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 1, (), np.float64)]),
}


class Sampled(gym.Env):
    """Shows samples of a space, takes actions of the same, and remembers both."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, space):
        self.observation_space = self.action_space = space
        self.observation_space.seed(0)
        self.shown, self.taken = [], []

    def show(self):
        self.shown.append(self.observation_space.sample())
        return self.shown[-1]

    def reset(self, *, seed=None, options=None):
        return self.show(), {}

    def step(self, action):
        self.taken.append(action)
        return self.show(), 1.0, len(self.taken) % 3 == 0, False, {}


def leaves(value, name):
    if isinstance(value, dict | tuple):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {path: x for key, inner in pairs for path, x in leaves(inner, f"{name}.{key}").items()}
    return {name: value}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["single", "NextStep", "SameStep"])
def test_values_come_back_as_they_were(kind, mode):
    space = KINDS[kind]
    if mode == "single":
        inner = [Sampled(space)]
        env = RecordEpisodes(inner[0])
        actions = [space.sample() for _ in range(3)]
    else:
        envs = gym.vector.SyncVectorEnv([lambda: Sampled(space)] * 2, autoreset_mode=mode)
        inner = envs.envs
        env = RecordVectorEpisodes(envs)
        actions = [env.action_space.sample() for _ in range(3)]
    env.reset()
    for action in actions:
        env.step(action)
    ds = env.recorder.to_dataset().load()
    tl.validate(ds, deep=True)
    assert ds["length"].values.tolist() == [3] * len(inner)
    for n, one in enumerate(inner):
        for t in range(3):
            for name, value in (leaves(one.shown[t], "obs") | leaves(one.taken[t], "action")).items():
                got = ds[name].values[n, t]
                np.testing.assert_array_equal(got, value)
                assert got.dtype.kind == "U" or got.dtype == np.asarray(value).dtype
        for name, value in leaves(one.shown[3], "final_obs").items():
            np.testing.assert_array_equal(ds[name].values[n], value)
    assert ds["final_known"].values.all()


def test_names_dtypes_and_attributes_come_from_the_spaces(tmp_path):
    box = spaces.Box(np.array([-1, -np.inf], np.float32), np.array([1, 2], np.float32))
    space = spaces.Dict(
        {
            "box": box,
            "table": spaces.Box(np.array([[0, 1], [2, 3]], np.float32), 4),
            "even": spaces.Box(0, 255, (2,), np.uint8),
            "free": spaces.Box(-np.inf, np.inf, (2,)),
        }
        | {kind: KINDS[kind] for kind in ("discrete", "multi_discrete", "text")}
    )
    env = RecordEpisodes(Sampled(space))
    env.reset()
    env.step(space.sample())
    ds = env.recorder.to_dataset()
    own = {name: {key: array.attrs.get(key) for key in ("low", "high", "n", "start")} for name, array in ds.items()}
    nothing = dict.fromkeys(("low", "high", "n", "start"))
    assert own["obs.box"] == own["final_obs.box"] == nothing | {"low": "[-1.0, -inf]", "high": [1.0, 2.0]}
    assert own["obs.table"] == nothing | {"low": [0, 1, 2, 3], "high": 4}
    assert own["obs.even"] == nothing | {"low": 0, "high": 255}
    assert own["obs.free"] == nothing
    assert own["action.discrete"] == nothing | {"n": 4, "start": -1}
    assert own["action.multi_discrete"] == nothing | {"n": [3, 5], "start": [1, 2]}
    assert ds["obs.text"].attrs["max_length"] == 5
    assert type(own["obs.even"]["low"]) is int
    json.dumps({name: array.attrs for name, array in ds.items()}, allow_nan=False)
    ds.to_netcdf(tmp_path / "a.nc")


@pytest.mark.parametrize(
    ("space", "name"),
    [(GRAPH, "Graph"), (spaces.Sequence(spaces.Discrete(2)), "Sequence"), (spaces.OneOf([KINDS["box"]]), "OneOf")],
    ids=["graph", "sequence", "one_of"],
)
def test_spaces_without_a_shape_are_refused_by_name_and_can_be_left_out(space, name):
    whole = spaces.Dict({"map": space, "x": spaces.Discrete(3)})
    with pytest.raises(ValueError, match=rf"(?s)'obs.map' is in a {name} space.*exclude=\['obs.map'\]"):
        RecordEpisodes(Sampled(whole))
    env = RecordEpisodes(Sampled(whole), exclude=["obs.map", "action.map"])
    env.reset()
    env.step(whole.sample())
    assert [name for name in env.recorder.to_dataset() if "." in name] == ["action.x", "obs.x", "final_obs.x"]


def test_a_misspelt_exclusion_is_named():
    with pytest.raises(KeyError, match=r"no leaf for exclude= 'obs.positon'. Did you mean 'obs.position'\?"):
        RecordEpisodes(Sampled(KINDS["dict"]), exclude=["obs.positon"])


def test_without_observations_the_episodes_are_the_same():
    env = RecordEpisodes(Sampled(KINDS["box"]), exclude=["obs", "action", "reward", "seed"])
    env.reset()
    for _ in range(3):
        env.step(env.action_space.sample())
    ds = env.recorder.to_dataset()
    assert ds["length"].values.tolist() == [3]
    assert [*ds.data_vars] == ["terminated", "truncated", "iteration"]


class Loose(gym.Env):
    """Shows and takes what its spaces do not promise."""

    observation_space, action_space = spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)

    def __init__(self, *shown):
        self.shown = iter(shown)

    def reset(self, *, seed=None, options=None):
        return next(self.shown), {}

    def step(self, action):
        return next(self.shown), 1, False, False, {}


def test_doubles_stay_doubles_and_a_reward_may_be_whole():
    env = RecordEpisodes(Loose(np.array([0.1, 0.2]), np.zeros(2, np.float32)))
    env.reset()
    env.step(np.array([1]))
    ds = env.recorder.to_dataset()
    assert ds["obs"].dtype == ds["reward"].dtype == np.float64
    assert ds["obs"].values[0, 0].tolist() == [0.1, 0.2]
    assert ds["action"].values.tolist() == [[1]]


def test_an_action_is_recorded_as_it_was_given():
    class Clips(Loose):
        action_space = spaces.Box(-1, 1, (2,), np.float32)

        def step(self, action):
            np.clip(action, -1, 1, out=action)
            return super().step(action)

    env = RecordEpisodes(Clips(*np.zeros((2, 2), np.float32)))
    env.reset()
    env.step(np.array([3, 0], np.float32))
    assert env.recorder.to_dataset()["action"].values.tolist() == [[[3, 0]]]


@pytest.mark.parametrize(
    ("shown", "message"),
    [(np.zeros(3, np.float32), r"'obs' has shape \(3,\); expected \(2,\)"), (["a", "b"], "'obs' has dtype <U1")],
    ids=["shape", "dtype"],
)
def test_what_does_not_fit_the_first_observation_is_refused(shown, message):
    env = RecordEpisodes(Loose(np.zeros(2, np.float32), shown))
    env.reset()
    with pytest.raises(ValueError, match=message):
        env.step(0)


def test_a_text_longer_than_its_space_is_not_cut_off():
    env = RecordEpisodes(Loose("abc", "abcdef"))
    env.observation_space = env.env.observation_space = spaces.Text(3)
    env = RecordEpisodes(env.env)
    env.reset()
    with pytest.raises(ValueError, match="'obs' holds 'abcdef', longer than its space allows"):
        env.step(0)
