"""Recorder terms of mjlab and Isaac Lab: every step is one transition, whatever is reset when."""

import copy
import pickle
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from integrations.fake_managers import IsaacLabEnv, MjlabEnv, install

import trajlab as tl
from trajlab.integrations import isaaclab, mjlab
from trajlab.integrations.managers import SharedRecorder

PACKAGES = ["mjlab", "mjlab by hand", "isaaclab"]


@pytest.fixture(autouse=True)
def _packages(monkeypatch):
    install(monkeypatch)
    mjlab._term.cache_clear()
    isaaclab._classes.cache_clear()
    yield
    mjlab._term.cache_clear()
    isaaclab._classes.cache_clear()


def make(package, *configs, **options):
    """Return an environment with a recorder term for each of the parameters."""
    if package == "isaaclab":
        terms = [(isaaclab.RecordEpisodes, isaaclab.RecordEpisodesCfg(params=params)) for params in configs]
        return IsaacLabEnv(terms=terms, **options)
    terms = [(mjlab.RecordEpisodes, types.SimpleNamespace(func=None, params=params)) for params in configs]
    return MjlabEnv(terms=terms, auto_reset=package == "mjlab", **options)


def actions(env, steps, seed=5):
    return np.random.default_rng(seed).normal(size=(steps, env.num_envs, 2)).astype(np.float32)


def play(env, steps, *, seed=5, by_hand=0.0):
    """Make steps, with resets by hand where they are due, and of a share `by_hand` of environments at any time."""
    shown, draws = [], np.random.default_rng(seed)
    for action in actions(env, steps, seed):
        shown.append(copy.deepcopy(env.step(action)))
        due = draws.random(env.num_envs) < by_hand
        if not env.cfg.auto_reset:
            due |= env.reset_buf
        if due.any():
            shown.append(copy.deepcopy(env.reset(np.flatnonzero(due))))
    return shown


def recorded(env, steps=40, **options):
    env.reset()
    play(env, steps, **options)
    term = env.recorder_manager.terms[0]
    return term, term.recorder.to_dataset()


def check_equal(ds, truth, *, has_final=True):
    """Check a Dataset against the plain lists of an environment."""
    tl.validate(ds, deep=True)
    expected = sorted(truth.episodes, key=lambda episode: (episode["start_row"], episode["env"]))
    assert ds["env"].values.tolist() == [episode["env"] for episode in expected]
    assert ds["start_row"].values.tolist() == [episode["start_row"] for episode in expected]
    assert ds["end_reason"].values.tolist() == [episode["end_reason"] for episode in expected]
    assert ds["length"].values.min() > 0
    assert ds["start_seen"].values.all()
    for number, episode in enumerate(expected):
        found = tl.episode(ds, number)
        for name in ("obs", "action", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(found[name].values, episode[name], err_msg=f"{name} of {number}")
        is_known = episode["final"] is not None
        assert bool(ds["final_known"][number]) == is_known
        if is_known:
            np.testing.assert_array_equal(ds["final_obs"][number].values, episode["final"])


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("by_hand", [0.0, 0.2])
def test_every_step_is_one_transition(package, by_hand):
    env = make(package, {})
    _, ds = recorded(env, by_hand=by_hand)
    check_equal(ds, env.truth)
    ended = ds["end_reason"].values != "cut"
    assert (ds["final_known"].values[ended] == (package != "mjlab")).all()
    assert ended.sum() > 20


@pytest.mark.parametrize("package", PACKAGES)
def test_two_resets_in_a_row_make_no_empty_episode(package):
    env = make(package, {}, end=0.0)
    for _ in range(2):
        env.reset()
    play(env, 3)
    env.reset()
    env.reset([1])
    env.reset([1, 2])
    play(env, 2)
    ds = env.recorder_manager.terms[0].recorder.to_dataset()
    check_equal(ds, env.truth)
    assert ds["length"].values.tolist() == [3, 3, 3, 2, 2, 2]


@pytest.mark.parametrize("package", PACKAGES)
def test_an_episode_that_ended_is_not_cut_by_its_reset(package):
    env = make(package, {}, end=1.0)
    _, ds = recorded(env, 3)
    assert set(ds["end_reason"].values) == {"terminated"}
    assert ds["length"].values.tolist() == [1] * 9


@pytest.mark.parametrize("package", PACKAGES)
def test_what_was_recorded_stays_when_the_environment_closes(package):
    env = make(package, {})
    term, before = recorded(env)
    env.close()
    env.close()
    assert term.recorder.to_dataset().load().identical(before.load())
    env.step(actions(env, 1)[0])  # an environment that goes on is not recorded
    assert term.recorder.num_recorded_steps == 40


@pytest.mark.parametrize("package", PACKAGES)
def test_noise_history_and_resets_are_the_same_with_a_term(package):
    def shown(*configs):
        env = make(package, *configs)
        if package == "isaaclab" and not configs:
            env.recorder_manager.active_terms = ["none"]  # Isaac Lab itself looks once more where there is a term
        env.reset()
        return play(env, 15, by_hand=0.2), env

    plain, env = shown()
    observed, same = shown({}, {"recorder": SharedRecorder()})
    for a, b in zip(plain, observed, strict=True):
        np.testing.assert_array_equal(a[env.group], b[env.group])
    assert env.noise.bit_generator.state == same.noise.bit_generator.state
    assert env.rng.bit_generator.state == same.rng.bit_generator.state


@pytest.mark.parametrize("package", PACKAGES)
def test_several_terms_fill_one_recorder(package):
    shared = SharedRecorder()
    env = make(
        package,
        {"recorder": shared, "observation": "critic"},
        {
            "recorder": shared,
            "before_step": {"state": lambda env: {"robot/steps": env.count[:, 2], "robot/id": env.count[:, 0]}},
        },
        {"recorder": shared, "after_step": {"landed": lambda env: env.count[:, 2]}},
    )
    _, ds = recorded(env, by_hand=0.2)
    assert {"obs.count", "state.robot.steps", "state.robot.id", "landed"} <= set(ds.data_vars)
    flat = tl.transitions(ds)
    np.testing.assert_array_equal(flat["obs.count"][:, 2], flat["time"])
    np.testing.assert_array_equal(flat["state.robot.steps"], flat["time"])
    np.testing.assert_array_equal(flat["state.robot.id"], flat["env"])
    np.testing.assert_array_equal(flat["landed"], flat["time"] + 1)  # of the step that ends an episode, too
    assert ("final_obs.count" in ds) == (package != "mjlab")


@pytest.mark.parametrize("package", PACKAGES)
def test_fields_may_lie_on_the_device(package):
    class Foreign:
        """An array of another package, that speaks DLPack."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **_):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    reads = {
        "landed": lambda env: jnp.array(env.count[:, 2], copy=True),
        "wide": lambda env: Foreign(env.count.reshape(-1, 3)),
    }
    env = make(package, {"after_step": reads})
    _, ds = recorded(env, by_hand=0.2)
    flat = tl.transitions(ds)
    np.testing.assert_array_equal(flat["landed"], flat["time"] + 1)
    np.testing.assert_array_equal(flat["wide"][:, 2], flat["time"] + 1)
    own = env.recorder_manager.terms[0]._own_after()
    assert isinstance(own["landed"], jax.Array)
    assert isinstance(own["wide"], np.ndarray)  # as it lies in the host's memory


def test_fields_after_a_step_are_the_same_ones_at_every_moment():
    env = make(
        "mjlab", {"after_step": {"x": lambda env: env.count if env.count[:, 2].any() else {"y": env.count}}}, end=1.0
    )
    env.reset()
    with pytest.raises(ValueError, match="it has to give the same ones"):
        play(env, 1)


def test_a_term_takes_its_first_state_from_after_a_reset():
    env = make("isaaclab", {"before_step": {"state": lambda env: env.count}})
    _, ds = recorded(env)
    np.testing.assert_array_equal(ds["state"].isel(time=0).values[:, 2], 0)


@pytest.mark.parametrize("package", PACKAGES)
def test_several_groups_and_none(package):
    group = "policy" if package == "isaaclab" else "actor"
    _, ds = recorded(make(package, {"observation": [group, "critic"]}))
    assert {f"obs.{group}", "obs.critic.count"} <= set(ds.data_vars)
    _, ds = recorded(make(package, {"observation": None}))
    assert not any("obs" in str(name) for name in ds.data_vars)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_term_can_be_subclassed(package):
    base = (isaaclab if package == "isaaclab" else mjlab).RecordEpisodes

    class Mine(base):
        def after_step(self):
            return {**super().after_step(), "doubled": 2 * self._env.reward_buf}

    env = make(package, {})
    env.recorder_manager = type(env.recorder_manager)([(Mine, types.SimpleNamespace(params={}))], env)
    _, ds = recorded(env)
    np.testing.assert_array_equal(tl.transitions(ds)["doubled"], 2 * tl.transitions(ds)["reward"])


@pytest.mark.parametrize("package", PACKAGES)
def test_success_and_seed_are_values_of_episodes(package):
    _, ds = recorded(make(package, {"success": "success"}, seed=11))
    assert ds["success"].dims == ds["seed"].dims == ("episode",)
    assert set(ds["seed"].values.tolist()) == {11}
    expected = (ds["end_reason"].values == "terminated") & (ds["length"].values % 2 == 0)
    np.testing.assert_array_equal(ds["success"], expected)
    assert expected.any()


def test_isaac_lab_takes_success_from_the_term_of_that_name(monkeypatch):
    assert "success" in recorded(make("isaaclab", {}))[1]
    monkeypatch.setattr(IsaacLabEnv, "has_success", False)
    assert "success" not in recorded(make("isaaclab", {}))[1]


@pytest.mark.parametrize("package", PACKAGES)
def test_success_by_hand_holds_until_a_reset(package):
    env = make(package, {"success": True}, num_envs=4, end=0.0)
    env.reset()
    term = env.recorder_manager.terms[0]
    play(env, 2)
    term.set_success_to_episodes([0, 2], np.array([[True], [True]]))
    play(env, 2)
    term.set_success_to_episodes([2], [False])
    env.reset([0, 2])
    play(env, 1)
    env.end = 1.0
    play(env, 1)  # ends all
    term.set_success_to_episodes(None, [True, False, True, False])
    env.end = 0.0
    play(env, 1)
    ds = term.recorder.to_dataset()
    found = {
        (env, row): value
        for env, row, value in zip(
            ds["env"].values.tolist(), ds["start_row"].values.tolist(), ds["success"].values.tolist(), strict=True
        )
    }
    assert found == {
        (0, 0): True, (1, 0): False, (2, 0): False, (3, 0): False,
        (0, 4): True, (2, 4): True,
        (0, 6): False, (1, 6): False, (2, 6): False, (3, 6): False,
    }  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_a_seed_and_an_iteration_can_be_set(package):
    shared = SharedRecorder()
    env = make(package, {"recorder": shared}, end=0.0)
    env.reset()
    play(env, 2)
    shared.seed, shared.iteration = 7, 1
    env.reset()
    play(env, 2)
    ds = shared.recorder.to_dataset()
    assert ds["seed"].values.tolist() == [0, 0, 0, 7, 7, 7]
    assert ds["start_iteration"].values.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("package", PACKAGES)
def test_an_episode_under_way_is_a_dataset_of_its_own(package):
    env = make(package, {}, end=0.0)
    env.reset()
    term = env.recorder_manager.terms[0]
    play(env, 4)
    one = term.get_episode(1)
    assert one.sizes["episode"] == 1
    assert one.sizes["time"] == 4
    before = one.copy(deep=True)
    play(env, 3, seed=6)
    env.reset([1])
    assert one.identical(before)
    assert term.get_episode(1).sizes["episode"] == 0
    assert term.get_episode(0)["length"].values.tolist() == [7]
    play(env, 1)
    assert term.get_episode(1)["length"].values.tolist() == [1]
    env.end = 1.0
    play(env, 1)
    assert term.get_episode(1).sizes["episode"] == 0
    with pytest.raises(ValueError, match="env_id=3; expected one of the 3 environments, 0 to 2"):
        term.get_episode(3)
    with pytest.raises(ValueError, match="no environment fills this yet"):
        SharedRecorder().get_episode(0)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_snapshot_holds_no_memory_of_the_recording(package):
    term, _ = recorded(make(package, {}, num_envs=64, end=0.0), 3)
    for name, array in term.get_episode(0).variables.items():
        values = array.values
        owner = values if values.base is None else values.base
        assert owner.nbytes <= 2 * values.nbytes, name


@pytest.mark.parametrize("num_envs", [256, 4096])
@pytest.mark.parametrize("package", ["mjlab", "isaaclab"])
def test_stored_bytes_are_those_of_plain_lists(package, num_envs):
    widths = {"joints": 37, "velocities": 37, "targets": 19, "scan": 72}
    payload = {name: np.zeros((num_envs, width), np.float32) for name, width in widths.items()}
    payload |= {name: np.zeros(num_envs, bool) for name in ("contact", "slip", "aim")}
    reads = {name: lambda env, name=name: payload[name] for name in payload}
    env = make(package, {"observation": None, "after_step": reads}, num_envs=num_envs, end=0.0)
    env.write_truth = lambda *_: None  # it would take most of the time
    recorder, rng = env.recorder_manager.terms[0].recorder, np.random.default_rng(0)

    for steps in (4, 3):  # the second time into memory that was used before
        recorder.reset()
        env.reset()
        stored = {(name, number): [] for name in payload for number in (0, num_envs // 2, num_envs - 1)}
        for _ in range(steps):
            for array in payload.values():  # in place, as a simulator does
                array[:] = rng.integers(0, 2, array.shape) if array.dtype == bool else rng.random(array.shape)
            for (name, number), values in stored.items():
                values.append(payload[name][number].copy())
            env.step(np.zeros((num_envs, 2), np.float32))
        ds = recorder.to_dataset()
        assert ds.sizes["episode"] == num_envs
        for (name, number), values in stored.items():
            assert tl.episode(ds, number)[name].values.tobytes() == np.stack(values).tobytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_recorder_that_starts_over_shows_no_old_step(package):
    env = make(package, {}, end=0.0)
    env.reset()
    play(env, 3)
    recorder = env.recorder_manager.terms[0].recorder
    recorder.reset()
    with pytest.raises(ValueError, match="nothing has been recorded"):
        recorder.to_dataset()
    env.reset([0])
    play(env, 2)
    ds = recorder.to_dataset()
    assert ds["length"].values.tolist() == [2, 2, 2]
    assert ds["start_seen"].values.tolist() == [True, False, False]  # the others go on in mid-episode


@pytest.mark.parametrize("package", ["mjlab", "isaaclab"])
def test_a_recorder_starts_over_behind_the_end_of_episodes(package):
    env = make(package, {}, end=1.0)
    env.reset()
    play(env, 2)
    recorder = env.recorder_manager.terms[0].recorder
    recorder.reset()
    env.end = 0.0
    play(env, 2)
    assert recorder.to_dataset()["start_seen"].values.all()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_step_that_breaks_off_is_a_gap(package):
    env = make(package, {}, end=0.0)
    env.reset()
    play(env, 3)
    whole, env.compute = env.compute, lambda **_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        env.step(actions(env, 1)[0])
    env.compute = whole
    play(env, 3)
    ds = env.recorder_manager.terms[0].recorder.to_dataset()
    assert ds["end_reason"].values.tolist() == ["cut"] * 6
    assert ds["start_seen"].values.tolist() == [True] * 3 + [False] * 3
    assert ds["length"].values.tolist() == [3] * 3 + [3 if package == "isaaclab" else 2] * 3
    for number in range(6):
        found = tl.episode(ds, number).isel(time=slice(1, None))  # the first action saw what was shown before the break
        np.testing.assert_allclose(found["reward"], found["action"][:, 0] + np.round(found["obs"][:, 2]) + 1, rtol=1e-5)


def test_an_interrupted_step_in_mjlab_and_a_reset():
    env = make("mjlab", {}, end=0.0)
    env.reset()
    play(env, 2)
    whole, env.compute = env.compute, lambda **_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        env.step(actions(env, 1)[0])
    env.compute = whole
    env.reset([0])
    play(env, 2)
    ds = env.recorder_manager.terms[0].recorder.to_dataset()
    assert ds["length"].values.tolist() == [2] * 6
    assert ds["start_seen"].values.tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize("package", PACKAGES)
def test_a_disabled_recorder_reads_nothing(package):
    env = make(
        package, {"recorder": SharedRecorder(tl.Recorder(enabled=False)), "before_step": {"x": lambda env: 1 / 0}}
    )
    env.reset()
    play(env, 3)
    assert env.recorder_manager.terms[0].recorder.to_dataset().sizes["episode"] == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_fields_and_environments_can_be_chosen(package):
    recorder = tl.Recorder(["*", "-obs", "-seed"], envs=[2, 0], episode_fields={"success": "first"})
    _, ds = recorded(make(package, {"recorder": SharedRecorder(recorder), "success": "success"}))
    assert "obs" not in ds
    assert "seed" not in ds
    assert set(ds["env"].values.tolist()) == {0, 2}
    assert ds["success"].dims == ("episode",)


BAD = [
    (
        {"observations": "actor"},
        KeyError,
        "no parameter of this recorder term 'observations'. Did you mean 'observation'",
    ),
    ({"recorder": 3}, TypeError, "recorder=3; expected a SharedRecorder"),
    ({"before_step": ["x"]}, TypeError, "before_step=.'x'.; expected a mapping of names to functions"),
    ({"recorder": SharedRecorder(tl.Recorder(convention="brax"))}, ValueError, "made with convention="),
]


@pytest.mark.parametrize("package", ["mjlab", "isaaclab"])
@pytest.mark.parametrize(("params", "error", "text"), BAD, ids=[text[:12] for *_, text in BAD])
def test_a_wrong_configuration_is_refused_at_once(package, params, error, text):
    with pytest.raises(error, match=text):
        make(package, params)


BAD_FIELDS = [
    ({"observation": "critics"}, KeyError, "no observation group 'critics'. Did you mean 'critic'"),
    ({"before_step": {"x": lambda env: "text"}}, TypeError, "field 'x' is of type str"),
    ({"before_step": {"x": lambda env: [1, 2]}}, TypeError, "field 'x' is of type list"),
    (
        {"after_step": {"x/y": lambda env: env.count[:2]}},
        ValueError,
        r"field 'x.y' has shape \(2, 3\); expected \(3, ...\)",
    ),
    ({"after_step": {"obs": lambda env: env.reward_buf}}, ValueError, "the field 'obs' is given twice"),
    ({"success": "succes"}, KeyError, "no termination term for success= 'succes'. Did you mean 'success'"),
]


@pytest.mark.parametrize("package", ["mjlab", "isaaclab"])
@pytest.mark.parametrize(("params", "error", "text"), BAD_FIELDS, ids=[text[:20] for *_, text in BAD_FIELDS])
def test_a_field_that_does_not_fit_is_refused_in_its_step(package, params, error, text):
    env = make(package, params)
    with pytest.raises(error, match=text):
        recorded(env, 1)


def test_a_field_that_changes_is_refused_once():
    sizes = iter([2, 2, 5, 2, 2, 2, 2])
    env = make("isaaclab", {"before_step": {"x": lambda env: np.zeros((3, next(sizes)))}}, end=0.0)
    env.reset()
    with pytest.raises(ValueError, match="'x' has cells of shape"):
        play(env, 4)
    play(env, 3)
    ds = env.recorder_manager.terms[0].recorder.to_dataset()
    assert ds["length"].values.tolist() == [2] * 3 + [3] * 3
    assert ds["start_seen"].values.tolist() == [True] * 3 + [False] * 3


def test_mistakes_with_a_shared_recorder():
    shared = SharedRecorder()
    env = make("isaaclab", {"recorder": shared})
    with pytest.raises(ValueError, match="filled by another environment"):
        make("isaaclab", {"recorder": shared})
    with pytest.raises(ValueError, match=r"give one of them params=\{'success': True\}"):
        shared.set_success_to_episodes([0], [True])
    with pytest.raises(TypeError, match=r"iteration=1\.5; expected a whole number"):
        shared.iteration = 1.5
    with pytest.raises(TypeError, match="seed='a'; expected a whole number"):
        shared.seed = "a"
    with pytest.raises(ValueError, match="is filled by an environment"):
        shared.recorder.record({"done": np.zeros((1, 3), bool)})
    with pytest.raises(TypeError, match="give SharedRecorder"):
        copy.deepcopy({"recorder": tl.Recorder()})
    assert env.recorder_manager.terms[0].shared is shared


def test_a_configuration_can_be_copied_and_written():
    shared = SharedRecorder()
    make("isaaclab", {"recorder": shared})
    assert copy.copy(shared) is copy.deepcopy([shared])[0] is shared
    assert not hasattr(shared, "__dict__")  # which Isaac Lab would write into a file
    read = pickle.loads(pickle.dumps({"recorder": shared}))
    env = make("isaaclab", read)
    env.reset()
    play(env, 2)
    assert read["recorder"].recorder.num_recorded_steps == 0


def test_success_by_hand_needs_its_step():
    env = make("isaaclab", {"success": True}, end=0.0)
    term = env.recorder_manager.terms[0]
    with pytest.raises(ValueError, match="set it after a step, before the next"):
        term.set_success_to_episodes([0], [True])
    env.reset()
    play(env, 1)
    with pytest.raises(ValueError, match=r"success of shape \(2,\) for 1 environments"):
        term.set_success_to_episodes([0], [True, False])
    term.recorder.to_dataset()
    with pytest.raises(ValueError, match="before the recording is read"):
        term.set_success_to_episodes([0], [True])


def test_a_seed_comes_before_the_first_step():
    env = make("isaaclab", {}, seed=None)
    env.reset()
    play(env, 1)
    with pytest.raises(ValueError, match="Set it before the first step"):
        env.recorder_manager.terms[0].shared.seed = 3


def test_names_that_need_the_packages():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing_'"):
        mjlab.Nothing_  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Nothing_'"):
        isaaclab.Nothing_  # noqa: B018
    assert mjlab.RecordEpisodes is mjlab.RecordEpisodes


def test_the_checks_find_nothing_wrong():
    for package in PACKAGES:
        env = make(package, {}, num_envs=8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            term, _ = recorded(env, 60)
        assert term.recorder.check() == []


@pytest.mark.parametrize("package", PACKAGES)
def test_finished_episodes_go_to_consumers(package):
    class Keep(tl.Consumer):
        def __init__(self):
            self.found = []

        def on_episodes(self, episodes):
            for number in range(episodes.sizes["episode"]):
                one = episodes.isel(episode=number)
                self.found.append((int(one["episode"]), int(one["length"]), str(one["end_reason"].values)))

    keep = Keep()
    streamed = make(package, {"recorder": SharedRecorder(tl.Recorder(retain=False, consumers=[keep]))})
    streamed.reset()
    play(streamed, 20, by_hand=0.1)
    with pytest.raises(ValueError, match="retain=False"):
        streamed.recorder_manager.terms[0].get_episode(0)
    streamed.close()
    _, ds = recorded(make(package, {}), 20, by_hand=0.1)
    expected = zip(
        ds["episode"].values.tolist(), ds["length"].values.tolist(), ds["end_reason"].values.tolist(), strict=True
    )
    assert sorted(keep.found) == sorted(expected)
