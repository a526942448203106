"""The toy PPO: what a chunk holds, and that it learns."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from trajlab.testing import ppo

NUM_STEPS, NUM_ENVS, MAX_EPISODE_STEPS = 64, 16, 20
CONFIG = ppo.Config(num_envs=NUM_ENVS, num_steps=NUM_STEPS, max_episode_steps=MAX_EPISODE_STEPS)


@pytest.fixture(autouse=True, scope="module")
def _standard_promotion():
    """Gymnax and optax combine integers with floats, which strict promotion refuses."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def agent():
    return ppo.make("CartPole-v1", CONFIG)


@pytest.fixture(scope="module")
def collected(agent, _standard_promotion):
    """A train state after one collection, and that collection as NumPy arrays."""
    train_state, chunk, env_states = agent.collect(agent.init(jax.random.key(0)))
    return train_state, jax.tree.map(np.asarray, chunk), jax.tree.map(np.asarray, env_states)


def test_a_chunk_has_the_shapes_and_dtypes_documented(collected):
    _, chunk, env_states = collected
    assert {name: (x.shape, x.dtype) for name, x in chunk._asdict().items()} == {
        "obs": ((NUM_STEPS, NUM_ENVS, 4), np.float32),
        "action": ((NUM_STEPS, NUM_ENVS), np.int32),
        "reward": ((NUM_STEPS, NUM_ENVS), np.float32),
        "terminated": ((NUM_STEPS, NUM_ENVS), np.bool_),
        "truncated": ((NUM_STEPS, NUM_ENVS), np.bool_),
        "next_obs": ((NUM_STEPS, NUM_ENVS, 4), np.float32),
        "value": ((NUM_STEPS, NUM_ENVS), np.float32),
        "log_prob": ((NUM_STEPS, NUM_ENVS), np.float32),
    }
    assert {x.shape for x in jax.tree.leaves(env_states)} == {(NUM_STEPS, NUM_ENVS)}
    assert set(np.unique(chunk.action)) == {0, 1}
    assert (chunk.reward == 1).all()
    assert (chunk.log_prob < 0).all()


def test_env_states_are_those_that_obs_shows(collected):
    _, chunk, env_states = collected
    shown = np.stack([env_states.x, env_states.x_dot, env_states.theta, env_states.theta_dot], axis=-1)
    np.testing.assert_array_equal(chunk.obs, shown)


def test_next_obs_is_the_next_row_except_where_the_environment_was_reset(collected):
    _, chunk, _ = collected
    ended = (chunk.terminated | chunk.truncated)[:-1]
    same = (chunk.next_obs[:-1] == chunk.obs[1:]).all(axis=-1)
    np.testing.assert_array_equal(same, ~ended)
    assert (np.abs(chunk.obs[1:][ended]) <= 0.05).all()  # where CartPole starts


def test_terminated_is_a_fallen_pole_and_truncated_the_step_limit(collected):
    _, chunk, env_states = collected
    x, _, theta, _ = np.moveaxis(chunk.next_obs, -1, 0)
    np.testing.assert_array_equal(chunk.terminated, (np.abs(x) > 2.4) | (np.abs(theta) > np.deg2rad(12)))
    np.testing.assert_array_equal(chunk.truncated, env_states.time == MAX_EPISODE_STEPS - 1)
    ended = chunk.terminated | chunk.truncated
    np.testing.assert_array_equal(env_states.time[0], 0)
    np.testing.assert_array_equal(env_states.time[1:], np.where(ended, 0, env_states.time + 1)[:-1])
    assert (chunk.terminated & ~chunk.truncated).any()
    assert (chunk.truncated & ~chunk.terminated).any()


def test_the_next_chunk_goes_on_where_the_last_one_stopped(agent, collected):
    train_state, chunk, env_states = collected
    _, following, following_states = agent.collect(train_state)
    open_at_end = ~(chunk.terminated | chunk.truncated)[-1]
    assert open_at_end.any()
    np.testing.assert_array_equal(following.obs[0][open_at_end], chunk.next_obs[-1][open_at_end])
    np.testing.assert_array_equal(following_states.time[0], np.where(open_at_end, env_states.time[-1] + 1, 0))


def test_an_update_changes_the_networks_and_not_the_environments(agent):
    before, chunk, _ = agent.collect(agent.init(jax.random.key(0)))
    after = agent.update(before, chunk)
    changed = [bool((a != b).any()) for a, b in zip(*map(jax.tree.leaves, (before.params, after.params)), strict=True)]
    assert all(changed)
    assert (after.obs == before.obs).all()
    assert (after.env_state.time == before.env_state.time).all()
    assert after.key != before.key


def test_each_function_compiles_once(agent):
    train_state = agent.init(jax.random.key(1))
    for _ in range(3):
        train_state, chunk, _ = agent.collect(train_state)
        train_state = agent.update(train_state, chunk)
    assert agent.collect._cache_size() == 1
    assert agent.update._cache_size() == 1


def test_evaluation_holds_one_whole_episode_of_each_environment(agent, collected):
    train_state, _, _ = collected
    chunk, env_states = agent.evaluate(train_state, jax.random.key(1), num_episodes=5)
    assert chunk.action.shape == (MAX_EPISODE_STEPS, 5)
    assert (env_states.time[0] == 0).all()
    assert (chunk.terminated | chunk.truncated).any(axis=0).all()
    assert (chunk.log_prob >= np.log(0.5)).all()  # the likelier of two actions


@pytest.mark.parametrize(
    ("ends_with", "expected"),
    [
        (None, [6.5625, 6.25, 5.0]),
        ("terminated", [5.25, 1.0, 5.0]),
        ("truncated", [6.25, 5.0, 5.0]),
    ],
)
def test_advantage_stops_at_ends_and_bootstraps_from_truncated_steps_alone(ends_with, expected):
    never, at_step_1 = jnp.zeros((3, 1), bool), jnp.array([[False], [True], [False]])
    advantage = ppo.generalized_advantage(
        reward=jnp.ones((3, 1)),
        terminated=at_step_1 if ends_with == "terminated" else never,
        truncated=at_step_1 if ends_with == "truncated" else never,
        value=jnp.zeros((3, 1)),
        next_value=jnp.full((3, 1), 8.0),
        discount=0.5,
        gae_lambda=0.5,
    )
    assert advantage[:, 0].tolist() == expected


def test_continuous_actions_are_those_drawn_and_likeliest_at_their_mean():
    agent = ppo.make("Reacher-misc", CONFIG)
    train_state, chunk, _ = agent.collect(agent.init(jax.random.key(0)))
    assert (chunk.action.shape, chunk.action.dtype) == ((NUM_STEPS, NUM_ENVS, 2), np.float32)
    assert np.abs(chunk.action.std() - 1) < 0.05  # the first policy: mean near 0, deviation 1
    assert np.abs(chunk.action).max() > 1  # not clipped to the bounds
    layers = train_state.params.actor
    hidden = np.tanh(np.tanh(chunk.obs @ layers[0].weight) @ layers[1].weight)  # offsets are 0 at first
    density = stats.norm.logpdf(chunk.action, hidden @ layers[2].weight).sum(axis=-1)
    np.testing.assert_allclose(chunk.log_prob, density, rtol=1e-3, atol=1e-3)
    best, _ = agent.evaluate(train_state, jax.random.key(1), num_episodes=3)
    np.testing.assert_allclose(best.log_prob, -np.log(2 * np.pi), rtol=1e-3)
    learnt = agent.update(train_state, chunk)
    assert (learnt.params.log_std != 0).all()


def test_an_environment_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"observations of shape \(10, 10, 4\); expected Discrete or Box"):
        ppo.make("Breakout-MinAtar")


def test_minibatches_of_unequal_size_are_refused():
    with pytest.raises(ValueError, match=r"15 transitions do not divide into num_minibatches = 4"):
        ppo.Config(num_envs=3, num_steps=5, num_minibatches=4)


def trained(env_name, config, seed):
    agent = ppo.make(env_name, config)
    train_state = agent.init(jax.random.key(seed))
    for _ in range(config.num_iterations):
        train_state, chunk, _ = agent.collect(train_state)
        train_state = agent.update(train_state, chunk)
    return agent, train_state


@pytest.mark.slow
def test_it_swings_the_pendulum_up():
    config = ppo.Config(discount=0.95, learning_rate=1e-3, num_epochs=8)
    agent, train_state = trained("Pendulum-v1", config, seed=0)
    evaluation, _ = agent.evaluate(train_state, jax.random.key(1), num_episodes=100)
    assert np.asarray(evaluation.reward).sum(axis=0).mean() >= -250  # chance: about -1200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_it_solves_cartpole(seed):
    start = time.perf_counter()
    agent, train_state = trained("CartPole-v1", ppo.Config(), seed)
    evaluation, _ = agent.evaluate(train_state, jax.random.key(1000 + seed), num_episodes=100)
    ended = np.asarray(evaluation.terminated | evaluation.truncated)
    in_first_episode = np.cumsum(ended, axis=0) - ended == 0
    mean_return = np.asarray(evaluation.reward).sum(axis=0, where=in_first_episode).mean()
    assert ended.any(axis=0).all()
    assert mean_return >= 450
    assert time.perf_counter() - start < 90
