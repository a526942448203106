"""The convention "gymnax" on gymnax's own step, auto-reset and log wrapper."""

import jax
import jax.numpy as jnp
import pytest
from conventions.truth import Known, check
from flax import struct
from interop.counter import ACTIONS, ENVS, GOAL, LIMIT, observe, promoting, reward_of, true_episodes

import trajlab as tl

gymnax_environment = pytest.importorskip("gymnax.environments.environment")
pytestmark = pytest.mark.interop


@struct.dataclass
class State(gymnax_environment.EnvState):
    count: jax.Array


class Counter(gymnax_environment.Environment):
    """The counter, as a gymnax environment."""

    @property
    def default_params(self):
        return gymnax_environment.EnvParams(max_steps_in_episode=LIMIT)

    def step_env(self, key, state, action, params):
        after = State(time=state.time + 1, count=state.count + action)
        return observe(after.count), after, reward_of(state.count, action), after.count >= GOAL, {}

    def reset_env(self, key, params):
        state = State(time=jnp.int32(0), count=jnp.int32(0))
        return observe(state.count), state


@pytest.fixture(scope="module", params=[False, True], ids=["bare", "LogWrapper"])
def chunk(request):
    """Collect a rollout (T, N) as users do: one scan over a vmapped step."""
    from gymnax.wrappers import LogWrapper

    env = LogWrapper(Counter()) if request.param else Counter()
    params = Counter().default_params
    keys = jax.random.split(jax.random.key(0), ENVS)

    def step(carry, action):
        obs, state = carry
        after, state, reward, terminated, truncated, info = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, state, action, params
        )
        row = {"obs": obs, "action": action, "reward": reward, "next_obs": after, "info": info}
        return (after, state), row | {"terminated": terminated, "truncated": truncated}

    with promoting():
        first = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
        return jax.jit(lambda: jax.lax.scan(step, first, jnp.asarray(ACTIONS))[1])()


EVERYTHING = Known(final_of_ended=True, final_of_cut=True)


def test_episodes_and_final_observations_are_the_true_ones(chunk):
    check(tl.from_rollout(chunk, convention="gymnax"), true_episodes(), EVERYTHING)


def test_flags_are_found_in_the_info_too(chunk):
    bare = {name: value for name, value in chunk.items() if name not in ("terminated", "truncated")}
    check(tl.from_rollout(bare, convention="gymnax"), true_episodes(), EVERYTHING)


def test_without_the_info_no_final_observation_is_made_up(chunk):
    bare = {name: value for name, value in chunk.items() if name != "info"}
    check(tl.from_rollout(bare, convention="gymnax"), true_episodes(), Known())


def test_done_alone_tells_no_reason(chunk):
    bare = {name: chunk[name] for name in ("obs", "action", "reward", "next_obs")}
    bare["done"] = chunk["terminated"] | chunk["truncated"]
    for name in ("gymnax_0", "purejaxrl", "craftax", "rejax"):
        check(tl.from_rollout(bare, convention=name), true_episodes(), Known(has_reason=False))


def test_inside_jit(chunk):
    @jax.jit
    def run():
        buffer = tl.init_buffer(chunk, capacity=len(ACTIONS), convention="gymnax")
        return tl.append(buffer, chunk)

    check(tl.to_dataset(run()), true_episodes(), EVERYTHING)
