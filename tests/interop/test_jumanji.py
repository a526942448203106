"""The convention "jumanji" on jumanji's own auto-reset and vmap wrappers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from conventions.truth import Known, check
from interop.counter import ACTIONS, ENVS, GOAL, LIMIT, observe, promoting, reward_of, true_episodes

import trajlab as tl

jumanji_env = pytest.importorskip("jumanji.env")
pytestmark = pytest.mark.interop


class State(NamedTuple):
    key: jax.Array
    count: jax.Array
    steps: jax.Array


class Seen(NamedTuple):
    """An observation of two leaves, as jumanji's have."""

    numbers: jax.Array
    mask: jax.Array


def see(count):
    return Seen(observe(count), count > 2)


class Counter(jumanji_env.Environment):
    """The counter, as a jumanji environment; truncation is a last step with discount 1."""

    def __init__(self, agents=()):
        self.agents = agents

    observation_spec = action_spec = property(lambda self: None)

    def reset(self, key):
        from jumanji.types import restart

        count = jnp.int32(0)
        return State(key, count, jnp.int32(0)), restart(see(count), shape=self.agents)

    def step(self, state, action):
        from jumanji.types import StepType, TimeStep

        after = State(state.key, state.count + action, state.steps + 1)
        is_terminated = after.count >= GOAL
        is_last = is_terminated | (after.steps >= LIMIT)
        return after, TimeStep(
            step_type=jnp.where(is_last, StepType.LAST, StepType.MID),
            reward=jnp.broadcast_to(reward_of(state.count, action), self.agents),
            discount=jnp.broadcast_to(jnp.where(is_terminated, 0.0, 1.0), self.agents),
            observation=see(after.count),
            extras={},
        )


def collect(agents=(), **options):
    """Return the first time step (N,) and those of a scan (T, N)."""
    from jumanji.wrappers import AutoResetWrapper, VmapWrapper

    env = VmapWrapper(AutoResetWrapper(Counter(agents), **options))

    @jax.jit
    def run():
        state, first = env.reset(jax.random.split(jax.random.PRNGKey(0), ENVS))
        return first, jax.lax.scan(env.step, state, jnp.asarray(ACTIONS))[1]

    with promoting():
        return run()


NAMES = ("observation.numbers", "action", "reward")


def record(first, steps):
    """Record the first time step, with any action, and then the scan's."""
    recorder = tl.Recorder(convention="jumanji")
    recorder.record_step(first, action=jnp.zeros_like(jnp.asarray(ACTIONS[0])))
    recorder.record(steps, action=jnp.asarray(ACTIONS))
    return recorder.to_dataset()


def test_episodes_are_the_true_ones():
    ds = record(*collect())
    check(ds, true_episodes(), Known(final_of_cut=True), names=NAMES)
    assert ds["complete"].sum() == sum(e.reason != "cut" for episodes in true_episodes() for e in episodes)
    assert ds.attrs["cells_unaligned"] == ENVS


def test_final_observations_are_known_where_the_wrapper_was_asked_for_them():
    known = Known(final_of_ended=True, final_of_cut=True)
    ds = record(*collect(next_obs_in_extras=True))
    check(ds, true_episodes(), known, names=NAMES)
    assert ds["final_observation.mask"].dtype == bool


def test_a_scan_alone_lacks_the_first_step():
    _, steps = collect()
    ds = tl.from_rollout(steps, convention="jumanji", action=jnp.asarray(ACTIONS), starts_fresh=False)
    truth = [[first.without_first(), *others] for first, *others in true_episodes()]
    check(ds, truth, Known(final_of_cut=True), names=NAMES)
    assert not ds["start_seen"].sel(episode=ds["start_row"] == 1).any()


def test_rewards_and_discounts_of_several_agents():
    ds = record(*collect(agents=(2,)))
    assert ds["reward"].dims == ("episode", "time", "reward_dim_0")
    one_agent = ds.drop_vars("reward").assign(reward=ds["reward"].isel(reward_dim_0=0))
    check(one_agent, true_episodes(), Known(final_of_cut=True), names=NAMES)


def test_inside_jit():
    _, steps = collect(next_obs_in_extras=True)

    @jax.jit
    def run(action):
        options = {"convention": "jumanji", "starts_fresh": False}
        buffer = tl.init_buffer(steps, capacity=len(ACTIONS), action=action, **options)
        return tl.append(buffer, steps, action=action)

    truth = [[first.without_first(), *others] for first, *others in true_episodes()]
    known = Known(final_of_ended=True, final_of_cut=True)
    check(tl.to_dataset(run(jnp.asarray(ACTIONS))), truth, known, names=NAMES)
