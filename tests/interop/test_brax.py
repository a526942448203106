"""The convention "brax" on brax's own wrappers and its own collecting function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conventions.truth import Known, check
from interop.counter import ACTIONS, ENVS, GOAL, LIMIT, observe, promoting, reward_of, true_episodes

import trajlab as tl

brax_envs = pytest.importorskip("brax.envs.base")
pytestmark = pytest.mark.interop


class Counter(brax_envs.Env):
    """The counter, as a brax environment; its state is the number of steps in all and the count."""

    observation_size, action_size, backend = 2, 1, "none"

    def reset(self, rng):
        return self._state(jnp.int32(0), 0.0, 0.0)

    def step(self, state, action):
        count = state.pipeline_state + action[0]
        done = (count >= GOAL).astype(jnp.float32)
        after = self._state(count, reward_of(state.pipeline_state, action[0]), done)
        return state.replace(pipeline_state=after.pipeline_state, obs=after.obs, reward=after.reward, done=done)

    def _state(self, count, reward, done):
        return brax_envs.State(count, observe(count), jnp.float32(reward), jnp.float32(done), {}, {})


def collect(extra_fields):
    """Return brax's own unroll (T, N) under the fixed policy."""
    from brax.envs.wrappers.training import wrap
    from brax.training.acting import actor_step

    env = wrap(Counter(), episode_length=LIMIT)

    def step(state, action):
        return actor_step(env, state, lambda obs, key: (action[:, None], {}), None, extra_fields)

    @jax.jit
    def run():
        state = env.reset(jax.random.split(jax.random.PRNGKey(0), ENVS))
        return jax.lax.scan(step, state, jnp.asarray(ACTIONS))[1]

    with promoting():
        return run()


@pytest.fixture(scope="module")
def chunk():
    return collect(("truncation",))


def brax_truth():
    """Return the true episodes, with actions of shape (1,)."""
    from dataclasses import replace

    return [[replace(e, action=[[a] for a in e.action]) for e in episodes] for episodes in true_episodes()]


NAMES = ("observation", "action", "reward")


@pytest.mark.parametrize("name", ["brax", "mujoco_playground"])
def test_episodes_and_their_end_reasons_are_the_true_ones(chunk, name):
    check(tl.from_rollout(chunk, convention=name), brax_truth(), Known(), names=NAMES)


def test_without_the_truncation_no_reason_is_made_up():
    check(tl.from_rollout(collect(()), convention="brax"), brax_truth(), Known(has_reason=False), names=NAMES)


def test_the_next_observation_of_an_end_is_that_of_the_cached_first_state(chunk):
    ends = chunk.discount == 0
    assert ends.any()
    assert (chunk.next_observation[ends] == 0).all()


def test_flags_are_floats(chunk):
    assert chunk.discount.dtype == chunk.extras["state_extras"]["truncation"].dtype == jnp.float32


def test_stacked_states_are_results():
    from brax.envs.wrappers.training import wrap

    env = wrap(Counter(), episode_length=LIMIT)

    def step(state, action):
        after = env.step(state, action[:, None])
        return after, after

    with promoting():
        first = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), ENVS))
        states = jax.jit(lambda: jax.lax.scan(step, first, jnp.asarray(ACTIONS))[1])()
    stacked = tl.Convention("brax", observation="obs", done="done", truncated="info.truncation", alignment="result")
    recorder = tl.Recorder(["obs", "action", "reward"], convention=stacked)
    recorder.record_step(first, action=jnp.zeros(ENVS, jnp.int32))
    recorder.record(states, action=jnp.asarray(ACTIONS))
    check(recorder.to_dataset(), true_episodes(), Known(final_of_cut=True))


def test_inside_jit(chunk):
    @jax.jit
    def run():
        return tl.append(tl.init_buffer(chunk, capacity=len(ACTIONS), convention="brax"), chunk)

    check(tl.to_dataset(run()), brax_truth(), Known(), names=NAMES)


def test_what_its_ppo_trains_on_has_updates_and_environments_in_one_axis():
    def unrolled(x):  # as brax.training.agents.ppo.train does: (U, T, N) to (U * N, T)
        updates = x[:20].reshape(4, 5, *x.shape[1:])
        return updates.swapaxes(1, 2).reshape(-1, 5, *x.shape[2:])

    part = collect(("truncation",))
    recorder = tl.Recorder(convention=tl.Convention("brax", axes="(UN)T"), num_envs=ENVS)
    recorder.record(jax.tree.map(unrolled, part))
    plain = tl.from_rollout(jax.tree.map(lambda x: x[:20], part), convention="brax")
    found = recorder.to_dataset()
    assert found["iteration"].max() == 3
    for name in (*NAMES, "length", "end_reason", "env", "start_row"):
        np.testing.assert_array_equal(found[name].values, plain[name].values, err_msg=name)
