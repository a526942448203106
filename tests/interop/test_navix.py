"""The convention "navix" on navix's own step, which resets one step later."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conventions.truth import Known, check
from flax import struct
from interop.counter import ACTIONS, ENVS, GOAL, LIMIT, observe, promoting, reward_of, true_episodes

import trajlab as tl

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of JAX's names, when it is imported
    navix_environment = pytest.importorskip("navix.environments.environment")
pytestmark = pytest.mark.interop


class State(struct.PyTreeNode):
    """What navix asks of a state, and the count."""

    key: jax.Array
    cache: jax.Array
    count: jax.Array


class Counter(navix_environment.Environment):
    """The counter, as a navix environment."""

    def _reset(self, key, cache=None):
        state = State(key, jnp.zeros(()), jnp.int32(0))
        zero = jnp.int32(0)
        return navix_environment.Timestep(zero, observe(state.count), zero, jnp.float32(0), zero, state)


def make():
    return Counter(
        height=1, width=1, max_steps=LIMIT, observation_space=None, action_space=None, reward_space=None,
        observation_fn=lambda state: observe(state.count),
        reward_fn=lambda before, action, after: reward_of(before.count, action),
        termination_fn=lambda before, action, after: after.count >= GOAL,
        transitions_fn=lambda state, action, action_set: state.replace(count=state.count + action),
    )  # fmt: skip


@pytest.fixture(scope="module")
def steps():
    """The first time step (N,) and those of a scan (T, N)."""
    env = make()

    def step(before, action):
        after = jax.vmap(env.step)(before, action)
        return after, (before, after)

    @jax.jit
    def run():
        first = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), ENVS))
        return first, jax.lax.scan(step, first, jnp.asarray(ACTIONS))[1]

    with promoting():
        first, (before, after) = run()
    return first, before, after


TRUTH = true_episodes(resets_late=True)
NAMES = ("observation", "action", "reward")
EVERYTHING = Known(final_of_ended=True, final_of_cut=True)


def test_some_environment_resets_on_its_last_row(steps):
    """Else what is known of an end on the last row but one would not be tested."""
    assert (np.asarray(steps[2].t[-1]) == 0).any()


def test_episodes_and_final_observations_are_the_true_ones(steps):
    first, _, after = steps
    recorder = tl.Recorder(convention="navix")
    recorder.record_step(first)
    recorder.record(after)
    check(recorder.to_dataset(), TRUTH, EVERYTHING, names=NAMES)


def test_a_scan_alone_lacks_the_first_step(steps):
    ds = tl.from_rollout(steps[2], convention="navix", starts_fresh=False)
    truth = [[first.without_first(), *others] for first, *others in TRUTH]
    check(ds, truth, EVERYTHING, names=NAMES)
    assert not ds["start_seen"].sel(episode=ds["start_row"] == 1).any()


def test_the_state_stands_where_the_observation_does(steps):
    first, _, after = steps
    everywhere = {"observation": "result", "state": "result", "t": "result"}
    recorder = tl.Recorder(convention=tl.Convention("navix", alignment=everywhere))
    recorder.record_step(first)
    recorder.record(after)
    ds = recorder.to_dataset()
    check(ds, TRUTH, EVERYTHING, names=NAMES)
    counts = ds["state.count"].where(ds["mask"])
    np.testing.assert_array_equal(counts, ds["observation"][..., 0].where(ds["mask"]))
    assert (ds["t"] == ds["time"]).where(ds["mask"], True).all()


def test_rows_of_its_own_ppo_need_no_more_than_the_late_reset(steps):
    _, before, after = steps
    chunk = {"obs": before.observation, "action": ACTIONS, "reward": after.reward, "done": after.is_done()}
    known = Known(has_reason=False, final_of_ended=True, last_final=False)
    ds = tl.from_rollout(chunk, convention=tl.Convention(autoreset="next_step"))
    check(ds, TRUTH, known, rows_after=np.asarray(after.t[-1]) == 0)


def test_inside_jit(steps):
    after = steps[2]

    @jax.jit
    def run():
        buffer = tl.init_buffer(after, capacity=len(ACTIONS), convention="navix", starts_fresh=False)
        return tl.append(buffer, after)

    truth = [[first.without_first(), *others] for first, *others in TRUTH]
    check(tl.to_dataset(run()), truth, EVERYTHING, names=NAMES)
