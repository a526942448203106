"""Both wrappers against plain lists, in every autoreset mode, however chunks are cut and whenever one looks."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st
from integrations.counter import Account, Counter, counters

import trajlab as tl
from trajlab.integrations.gymnasium import RecordEpisodes, RecordTrajectory, RecordVectorEpisodes

pytestmark = pytest.mark.interop

NO_SEED = np.iinfo(np.int64).min
MODES = ["NextStep", "SameStep", "Disabled"]


def check(ds, account):
    """Compare every episode with the account's."""
    tl.validate(ds, deep=True)
    ds = ds.load()
    expected = account.finished()
    assert ds.sizes["episode"] == sum(map(len, expected))
    for env, episodes in enumerate(expected):
        own = ds.isel(episode=np.flatnonzero(ds["env"].values == env))
        assert own["end_reason"].values.tolist() == [reason for _, reason, _ in episodes]
        assert own["start_seen"].values.all()
        assert own["final_known"].values.all()
        for n, (rows, _, final) in enumerate(episodes):
            one = tl.episode(own, int(own["episode"].values[n]))
            obs, action, reward, seed, step, won = zip(*rows, strict=True)
            np.testing.assert_array_equal(one["obs"], obs)
            np.testing.assert_array_equal(one["action"], action)
            np.testing.assert_array_equal(one["reward"], reward)
            np.testing.assert_array_equal(one["seed"], [NO_SEED if s is None else s for s in seed])
            np.testing.assert_array_equal(one["info.step"], step)
            if "info.won" in one:
                np.testing.assert_array_equal(one["info._won"], [w is not None for w in won])
                np.testing.assert_array_equal(one["info.won"], [bool(w) for w in won])
            np.testing.assert_array_equal(own["final_obs"].values[n], final)


def drive(envs, account, rng, steps, *, resets):
    """Step at random; reset all or some now and then, and look at the Dataset in between."""
    num = envs.num_envs

    def reset(where):
        seed = [None if rng.random() < 0.5 else int(rng.integers(1000)) for _ in range(num)]
        options = None if where.all() and rng.random() < 0.5 else {"reset_mask": where.copy()}
        obs, _ = envs.reset(seed=seed, options=options)
        account.reset(obs, where, seed)

    reset(np.ones(num, bool))
    for _ in range(steps):
        waits = np.array(account.waits)
        where = np.zeros(num, bool)
        if resets and rng.random() < 0.1:
            where = rng.random(num) < rng.choice([0.3, 1.0])
        if account.mode == "Disabled":
            where |= waits
        if where.any():
            reset(where)
        actions = rng.integers(0, 3, num)
        account.step(actions, *envs.step(actions))
        if rng.random() < 0.03:
            check(envs.recorder.to_dataset(), account)
    check(envs.recorder.to_dataset(), account)


@pytest.mark.parametrize("mode", MODES)
@given(seed=st.integers(0, 2**32 - 1), chunk=st.sampled_from([2, 3, 5, 17, None]), resets=st.booleans())
@settings(max_examples=15)
def test_vector_environments_as_plain_lists(mode, seed, chunk, resets):
    envs = RecordVectorEpisodes(counters(3, mode), chunk=chunk, infos={"step": int, "won": bool})
    drive(envs, Account(3, mode), np.random.default_rng(seed), 60, resets=resets)


@pytest.mark.parametrize("mode", MODES)
def test_reused_buffers_are_copied(mode):
    envs = RecordVectorEpisodes(counters(3, mode, copy=False), infos={"step": int})
    drive(envs, Account(3, mode), np.random.default_rng(0), 80, resets=True)


@pytest.mark.parametrize("mode", MODES)
def test_environments_in_other_processes(mode):
    # JAX warns of a fork, and rightly: it has threads.
    counting = counters(2, mode, AsyncVectorEnv, context="spawn")
    envs = RecordVectorEpisodes(counting, chunk=4, infos={"step": int})
    try:
        drive(envs, Account(2, mode), np.random.default_rng(1), 30, resets=False)
    finally:
        envs.close()


@given(seed=st.integers(0, 2**32 - 1), chunk=st.sampled_from([2, 3, 17, None]))
@settings(max_examples=25)
def test_a_single_environment_as_plain_lists(seed, chunk):
    rng = np.random.default_rng(seed)
    env, account = RecordEpisodes(Counter(), chunk=chunk, infos={"step": int, "won": bool}), Account(1, "Disabled")

    def reset():
        seed = None if rng.random() < 0.5 else int(rng.integers(1000))
        account.reset(env.reset(seed=seed)[0][None], [True], [seed])

    reset()
    for _ in range(60):
        if account.waits[0] or rng.random() < 0.05:
            reset()
        action = int(rng.integers(0, 3))
        obs, reward, terminated, truncated, info = env.step(action)
        infos = {key: [value] for key, value in info.items()} | {f"_{key}": [True] for key in info}
        account.step([action], obs[None], [reward], [terminated], [truncated], infos)
        if rng.random() < 0.03:
            check(env.recorder.to_dataset(), account)
    check(env.recorder.to_dataset(), account)


def run(env, actions):
    for action in actions:
        env.step(action)


def lengths(recorder):
    ds = recorder.to_dataset()
    return list(zip(ds["length"].values.tolist(), ds["end_reason"].values.tolist(), strict=True))


def test_the_dataset_is_complete_whenever_one_looks_also_when_the_environment_is_gone():
    rec = tl.Recorder()

    def collect():
        env = RecordEpisodes(Counter(), rec)
        env.reset()
        run(env, [0, 0, 2])
        env.reset()
        run(env, [0])

    collect()
    assert rec.num_recorded_steps == 6  # four steps, and a row for each reset
    assert lengths(rec) == [(3, "terminated"), (1, "cut")]


def test_a_reset_in_mid_episode_cuts_it_and_two_in_a_row_leave_no_empty_episode():
    env = RecordEpisodes(Counter(), infos={})
    env.reset()
    env.reset()
    with pytest.raises(ValueError, match="nothing has been recorded; step the environment first"):
        env.recorder.to_dataset()
    run(env, [0, 0])
    env.reset()
    env.reset()
    run(env, [2])
    env.reset()
    env.reset()
    run(env, [1])
    ds = env.recorder.to_dataset()
    assert lengths(env.recorder) == [(2, "cut"), (1, "terminated"), (1, "cut")]
    np.testing.assert_array_equal(ds["obs"].isel(time=0), [[2, 0], [4, 0], [6, 0]])
    np.testing.assert_array_equal(ds["final_obs"], [[2, 2], [4, 1], [6, 1]])


def test_steps_behind_the_end_are_no_transitions():
    env = RecordEpisodes(Counter())
    env.reset()
    run(env, [2, 0, 0])
    env.reset()
    run(env, [0])
    assert lengths(env.recorder) == [(1, "terminated"), (1, "cut")]


def test_some_environments_go_on_while_others_wait_for_their_reset():
    class Patient(gym.vector.VectorWrapper):
        def step(self, actions):
            self.env._autoreset_envs[:] = False  # else Gymnasium's own refuses to go on
            return self.env.step(actions)

    account, envs = Account(2, "Disabled"), RecordVectorEpisodes(Patient(counters(2, "Disabled")), infos={"step": int})
    account.reset(envs.reset()[0], [True, True], [None, None])
    for actions in ([0, 0], [2, 0], [0, 0], [2, 0]):
        account.step(actions, *envs.step(np.array(actions)))
    check(envs.recorder.to_dataset(), account)
    where = np.array([True, False])
    account.reset(envs.reset(options={"reset_mask": where.copy()})[0], where, [None, None])
    for actions in ([0, 0], [2, 2], [0, 0]):
        account.step(actions, *envs.step(np.array(actions)))
    check(envs.recorder.to_dataset(), account)
    assert sorted(lengths(envs.recorder)) == [(2, "terminated"), (2, "terminated"), (6, "terminated")]


def test_autoreset_of_a_single_environment():
    env = RecordEpisodes(gym.wrappers.Autoreset(Counter()))
    env.reset()
    run(env, [0, 2, 0, 0, 0])
    ds = env.recorder.to_dataset()
    assert lengths(env.recorder) == [(2, "terminated"), (2, "cut")]
    np.testing.assert_array_equal(ds["obs"].isel(time=0), [[1, 0], [2, 0]])
    np.testing.assert_array_equal(ds["final_obs"], [[1, 2], [2, 2]])


def test_the_mode_is_the_environments_own_though_metadata_are_shared():
    same, following = counters(2, "SameStep"), counters(2, "NextStep")
    assert same.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP  # Gymnasium 1.1 to 1.3
    for envs, expected in ((same, [2, 1, 2, 1]), (following, [2, 1, 1])):
        envs = RecordVectorEpisodes(envs)
        envs.reset()
        run(envs, [[0, 2], [2, 0], [0, 0]])
        assert envs.recorder.to_dataset()["length"].values.tolist() == expected


def test_an_environment_that_raises_leaves_what_was_recorded():
    env = RecordEpisodes(Counter(), infos={})
    env.reset()
    run(env, [0, 0])
    with pytest.raises(RuntimeError, match="broken"):
        env.step(-1)
    assert lengths(env.recorder) == [(2, "cut")]
    env.reset()
    run(env, [2])
    assert lengths(env.recorder) == [(2, "cut"), (1, "terminated")]
    assert env.recorder.to_dataset()["start_seen"].values.tolist() == [True, True]


def test_an_environment_that_raises_behind_its_end_begins_anew_with_its_reset():
    env = RecordEpisodes(Counter())
    env.reset()
    run(env, [0, 2])
    with pytest.raises(RuntimeError, match="broken"):
        env.step(-1)
    env.reset()
    run(env, [0])
    assert lengths(env.recorder) == [(2, "terminated"), (1, "cut")]
    assert env.recorder.to_dataset()["start_seen"].values.tolist() == [True, True]


def test_environments_that_raise_behind_their_ends_begin_anew_with_resets_of_some_at_a_time(tmp_path):
    recording = RecordVectorEpisodes(counters(2, AutoresetMode.DISABLED))
    envs = RecordTrajectory(recording, tmp_path)
    envs.reset()
    envs.step(np.array([2, 2]))
    with pytest.raises(AssertionError, match="_autoreset_envs"):  # Gymnasium's, of steps behind the end
        envs.step(np.array([0, 0]))
    for mask in ([True, False], [True, True]):
        envs.reset(options={"reset_mask": np.array(mask)})
    envs.step(np.array([2, 2]))
    for ds in (recording.recorder.to_dataset(), tl.read_jsonl(tmp_path)):
        assert ds["start_seen"].values.tolist() == [True] * 4
        assert ds["complete"].values.tolist() == [True] * 4


def test_stepping_on_after_an_exception_is_a_gap():
    envs = RecordVectorEpisodes(counters(2, "NextStep"))
    envs.reset()
    run(envs, [[0, 0]])
    with pytest.raises(RuntimeError, match="broken"):
        envs.step([0, -1])
    run(envs, [[0, 0], [0, 0]])
    ds = envs.recorder.to_dataset()
    assert ds["length"].values.tolist() == [1, 1, 1, 1]
    assert ds["start_seen"].values.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(ds["obs"].values[2:, 0], [[1, 3], [101, 2]])


def test_a_first_step_that_raises_leaves_a_gap():
    env = RecordEpisodes(Counter())
    env.reset()
    with pytest.raises(RuntimeError, match="broken"):
        env.step(-1)
    run(env, [0, 0, 0])
    ds = env.recorder.to_dataset()
    assert ds["start_seen"].values.tolist() == [False]
    np.testing.assert_array_equal(ds["obs"].values[0], [[1, 1], [1, 2]])


def test_an_environment_that_was_reset_before_it_was_wrapped():
    bare = Counter()
    bare.reset()
    env = RecordEpisodes(bare)
    run(env, [0, 0, 2])
    env.reset()
    run(env, [2])
    ds = env.recorder.to_dataset()
    assert lengths(env.recorder) == [(2, "terminated"), (1, "terminated")]
    assert ds["start_seen"].values.tolist() == [False, True]


@pytest.mark.parametrize("mode", MODES)
def test_a_recorder_that_is_reset_begins_with_what_the_environments_show(mode):
    envs = RecordVectorEpisodes(counters(3, mode), chunk=4)
    envs.reset()
    run(envs, [[0, 0, 0], [0, 2, 0]])
    if mode == "Disabled":
        envs.reset(options={"reset_mask": np.array([False, True, False])})
    envs.recorder.reset()
    assert envs.recorder.num_recorded_steps == 1  # what they show now
    run(envs, [[0, 0, 0], [2, 0, 2]])
    ds = envs.recorder.to_dataset()
    by_env = {env: ds.isel(episode=np.flatnonzero(ds["env"].values == env)) for env in range(3)}
    assert by_env[0]["start_seen"].values.tolist() == [False]
    np.testing.assert_array_equal(by_env[0]["obs"].values[0, :2], [[1, 2], [1, 3]])
    assert by_env[1]["start_seen"].values[0]
    np.testing.assert_array_equal(by_env[1]["obs"].values[0, 0], [102, 0])
    assert by_env[2]["end_reason"].values[0] == "terminated"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("by", ["environment", "recorder"])
def test_a_reset_row_holds_nothing_of_the_step_that_stood_in_its_place(mode, by):
    envs = RecordVectorEpisodes(counters(3, mode), chunk=4)
    envs.reset(seed=[1, 2, 3])
    run(envs, [[0, 1, 2]])
    if mode == "Disabled":
        envs.reset(options={"reset_mask": np.array([False, False, True])})
    run(envs, [[0, 1, 0]])
    envs.recorder.to_dataset()
    run(envs, [[0, 1, 0]])  # where the first reset stood
    envs.recorder.reset()
    if by == "environment":
        envs.reset()
    run(envs, [[0, 1, 0]])
    first = envs._steps.waiting().chunk
    assert np.isnan(first["reward"][0]).all()
    assert (first["action"][0] == np.iinfo(np.int64).min).all()
    assert (first["seed"][0] == NO_SEED).all()
    assert (first["info"]["step"][0] == np.iinfo(np.int64).min).all()
    assert envs.recorder.check() == []


class Misleading(gym.vector.VectorEnv):
    """Resets within the step that ends an episode, and says that it does so with the next."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self):
        self.inner = counters(4, "SameStep")
        for name in (
            "num_envs",
            "single_observation_space",
            "single_action_space",
            "observation_space",
            "action_space",
        ):
            setattr(self, name, getattr(self.inner, name))

    def reset(self, **options):
        return self.inner.reset(**options)

    def step(self, actions):
        return *self.inner.step(actions)[:4], {}


def test_what_the_self_check_finds_is_mended_where_the_environments_are_made():
    envs = RecordVectorEpisodes(Misleading())
    envs.reset()
    run(envs, [[0, 0, 0, 0]] * 40)
    (finding,) = envs.recorder.check()
    assert finding.name == "no_reset_row"
    assert "Convention" not in finding.mend
    assert "metadata['autoreset_mode']" in finding.mend
    assert str(finding) in repr(envs.recorder)


def test_seeds_and_options_hold_for_their_episode():
    envs = RecordVectorEpisodes(counters(2, "NextStep"))
    envs.reset(seed=7, options={"level": 3, "wind": np.array([0.5, 1.0])})
    run(envs, [[0, 0], [2, 0], [0, 0], [0, 0]])
    ds = envs.recorder.to_dataset().load()
    assert ds["seed"].values[:, 0].tolist() == [7, 8, NO_SEED]
    assert ds["option.level"].values[:, 0].tolist() == [3, 3, NO_SEED]
    np.testing.assert_array_equal(ds["option.wind"].values[:, 0], [[0.5, 1.0], [0.5, 1.0], [np.nan, np.nan]])


def test_options_and_seeds_reach_the_environment():
    class Strict(Counter):
        def reset(self, *, seed=None, options=None):
            self.got = seed, options
            return super().reset(seed=seed)

    env = RecordEpisodes(Strict())
    env.reset(seed=5, options={"level": 1})
    assert env.unwrapped.got == (5, {"level": 1})
    assert env.get_wrapper_attr("episode") == 1


def test_options_that_are_no_numbers_are_named_once():
    env = RecordEpisodes(Counter())

    def play():
        for size in (1, 2.5):
            env.reset(options={"map": [[1], [2, 3]], "word": "a", "size": size})
            run(env, [2])

    with pytest.warns(UserWarning, match="option '(map|word)': not recorded") as caught:
        play()
    assert len(caught) == 2
    assert env.recorder.to_dataset()["option.size"].values.tolist() == [[1], [2.5]]


def test_a_seed_too_large_is_none_and_says_so():
    env = RecordEpisodes(Counter())
    with pytest.warns(UserWarning, match="more than 63 bits"):
        env.reset(seed=2**64)
    run(env, [0])
    assert env.recorder.to_dataset()["seed"].item() == NO_SEED


def test_iterations_are_the_users():
    env = RecordEpisodes(Counter())
    env.reset()
    for number in range(3):
        env.iteration = number
        run(env, [0, 0])
    ds = env.recorder.to_dataset()
    assert ds["iteration"].values.tolist() == [[0, 0, 1, 1, 2, 2]]
    with pytest.raises(TypeError, match="whole number"):
        env.iteration = 1.5


def test_a_recorders_choices_hold():
    rec = tl.Recorder(["obs", "reward"], envs=[2, 0], max_episodes=3, dims={"obs": ["x"]}, coords={"x": ["n", "t"]})
    envs = RecordVectorEpisodes(counters(3, "NextStep"), rec, chunk=2)
    envs.reset()
    steps = 0
    while not rec.is_full:
        envs.step([0, 2, 2])
        steps += 1
    assert steps <= 10  # of the three that started first the longest takes six, and two rows may wait
    ds = rec.to_dataset()
    assert ds["env"].values.tolist() == [0, 2, 2]
    assert ds["obs"].sel(x="t").values[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert "action" not in ds
    assert "seed" not in ds


def test_closing_ends_the_recording_and_not_the_environment():
    rec = tl.Recorder()
    env = RecordEpisodes(Counter(), rec)
    with rec:
        env.reset()
        run(env, [0, 0])
    run(env, [0])
    env.reset()
    env.close()
    assert lengths(rec) == [(2, "cut")]


def test_closing_the_environment_leaves_the_recorder_open():
    env = RecordEpisodes(Counter())
    env.reset()
    run(env, [0])
    env.close()
    assert "2 rows wait to be recorded" in repr(env.recorder)
    assert lengths(env.recorder) == [(1, "cut")]
    assert "2 recorded, 0 dropped" in repr(env.recorder)


def test_a_disabled_recorder_costs_nothing():
    env = RecordEpisodes(Counter(), tl.Recorder(enabled=False))
    env.reset()
    run(env, [0])
    assert env.recorder.to_dataset().sizes["episode"] == 0


def test_marks_of_the_user_stand_where_they_were_given():
    env = RecordEpisodes(Counter())
    env.reset()
    run(env, [0, 0])
    env.recorder.mark_gap()
    run(env, [0, 0, 0])
    ds = env.recorder.to_dataset()
    assert ds["start_seen"].values.tolist() == [True, False]
    assert ds["length"].values.tolist() == [2, 2]


def test_recorders_that_cannot_be_filled():
    used = tl.Recorder()
    used.record({"obs": np.zeros((2, 1)), "done": np.zeros((2, 1), bool)})
    begun = tl.Recorder()
    begun.add("obs", np.zeros(1))
    for recorder in (used, begun):
        with pytest.raises(ValueError, match="has recorded already"):
            RecordEpisodes(Counter(), recorder)
    with pytest.raises(ValueError, match="made with convention="):
        RecordEpisodes(Counter(), tl.Recorder(convention=tl.Convention(autoreset="next_step")))
    rec = tl.Recorder()
    RecordEpisodes(Counter(), rec)
    with pytest.raises(ValueError, match="filled by an environment"):
        RecordEpisodes(Counter(), rec)
    with pytest.raises(ValueError, match="filled by an environment"):
        rec.record({"done": np.zeros((1, 1), bool)})


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="chunk=1; expected"):
        RecordEpisodes(Counter(), chunk=1)
    with pytest.raises(TypeError, match="exclude='obs'"):
        RecordEpisodes(Counter(), exclude="obs")
    with pytest.raises(KeyError, match="no field for exclude= 'rewards'. Did you mean 'reward'"):
        RecordEpisodes(Counter(), exclude=["rewards"])
    envs = counters(2, "NextStep")
    envs.autoreset_mode, envs.metadata = None, {}
    with pytest.raises(ValueError, match="autoreset mode None in its metadata"):
        RecordVectorEpisodes(envs)
    envs.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    assert RecordVectorEpisodes(envs).num_envs == 2


def test_a_wrapper_can_be_made_again_from_its_spec():
    gym.register("trajlab/Counter-v0", Counter)
    env = RecordEpisodes(gym.make("trajlab/Counter-v0"), exclude=["seed"])
    again = gym.make(env.spec)
    assert isinstance(again, RecordEpisodes)
    assert again.recorder is not env.recorder
    again.reset()
    run(again, [0])
    assert "seed" not in again.recorder.to_dataset()


def test_resets_of_some_environments_behind_each_other_begin_them_all():
    envs = RecordVectorEpisodes(counters(2, AutoresetMode.SAME_STEP), exclude=["info.won"])
    envs.reset()
    envs.step(np.zeros(2, int))
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.reset()
    envs.step(np.array([2, 0]))
    envs.step(np.array([0, 0]))
    ds = envs.recorder.to_dataset()
    assert ds["env"].values.tolist() == [0, 1, 0, 1, 0]
    assert ds["length"].values.tolist() == [1, 1, 1, 2, 1]
