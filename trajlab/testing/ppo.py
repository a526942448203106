"""Proximal policy optimisation (PPO) on a gymnax environment: a small training loop to record.

Collecting and updating are one jitted function each, and a recorder fits between them::

    agent = ppo.make("CartPole-v1", config)
    train_state = agent.init(jax.random.key(0))
    for _ in range(config.num_iterations):
        train_state, chunk, env_states = agent.collect(train_state)
        train_state = agent.update(train_state, chunk)
    chunk, env_states = agent.evaluate(train_state, jax.random.key(1), num_episodes=100)

Index t is before the action in `obs`, `value` and `env_states`, after it in `reward`, `terminated`, `truncated` and
`next_obs`. The step that ends an episode also resets the environment: `obs[t + 1]` is then the next episode's first
observation, and only `next_obs[t]` is the one the action led to.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import optax
from gymnax.environments.spaces import Box, Discrete
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from trajlab.testing import actor_critic
from trajlab.testing.actor_critic import Params, state_value


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes and hyperparameters; the defaults solve CartPole-v1 within seconds on two cores.

    The learning rate falls linearly, to zero after `num_iterations` updates. An episode is truncated after
    `max_episode_steps` steps, None for as many as the environment sets itself.
    """

    num_envs: int = 32
    num_steps: int = 128
    num_iterations: int = 100
    num_epochs: int = 4
    num_minibatches: int = 8
    learning_rate: float = 2.5e-3
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    max_grad_norm: float = 0.5
    hidden_sizes: tuple[int, ...] = (64, 64)
    max_episode_steps: int | None = None

    def __post_init__(self) -> None:
        if self.num_envs * self.num_steps % self.num_minibatches:
            raise ValueError(
                f"num_envs * num_steps = {self.num_envs * self.num_steps} transitions do not divide into "
                f"num_minibatches = {self.num_minibatches} of equal size; change one of the three"
            )


class Rollout(NamedTuple):
    """What N environments did in T steps.

    Attributes
    ----------
    obs : array (T, N, D) float32
    action : array (T, N) int32, or (T, N, A) float32
        A continuous one as it was drawn, also where it is beyond the bounds; the environment clips it.
    reward : array (T, N) float32
    terminated, truncated : array (T, N) bool
    next_obs : array (T, N, D) float32
        Where the action led, the final observation included.
    value : array (T, N) float32
        The critic's value of `obs` at the time.
    log_prob : array (T, N) float32
        Of `action`, under the policy that took it.
    """

    obs: Array
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_obs: Array
    value: Array
    log_prob: Array


class TrainState(NamedTuple):
    """All that changes in training; the next collection starts from `obs` (N, D) and `env_state` (N, ...)."""

    params: Params
    opt_state: Any
    obs: Array
    env_state: Any
    key: Array


class Agent(NamedTuple):
    """The jitted functions of one environment and configuration, as `make` describes them."""

    init: Callable[[Array], TrainState]
    collect: Callable[[TrainState], tuple[TrainState, Rollout, Any]]
    update: Callable[[TrainState, Rollout], TrainState]
    evaluate: Callable[..., tuple[Rollout, Any]]


def make(env_name: str, config: Config | None = None) -> Agent:
    """Bind an environment and a configuration to the functions of a training loop.

    Parameters
    ----------
    env_name : str
        A gymnax environment with discrete or continuous actions and observations (D,).
    config : Config, optional
        By default `Config()`.

    Returns
    -------
    Agent
        - ``init(key) -> train_state`` draws the networks and resets N = `num_envs` environments.
        - ``collect(train_state) -> (train_state, chunk, env_states)`` samples T = `num_steps` steps. `env_states` are
          the environments' states (T, N, ...) that `chunk.obs` shows. An episode still open at the chunk's end goes on
          in the next one.
        - ``update(train_state, chunk) -> train_state`` learns from the chunk that has just been collected.
        - ``evaluate(train_state, key, num_episodes=100) -> (chunk, env_states)`` acts greedily in `num_episodes` fresh
          environments, for as many steps as an episode can have. Count the episodes that start in row 0, one per
          environment: those after them end within the chunk only if they are short.

    Raises
    ------
    ValueError
        If the actions are neither Discrete nor Box, or the observations not (D,).
    """
    config = config or Config()
    env, env_params = gymnax.make(env_name)
    if config.max_episode_steps is not None:
        env_params = env_params.replace(max_steps_in_episode=config.max_episode_steps)
    action_space, obs_shape = env.action_space(env_params), env.observation_space(env_params).shape
    if not isinstance(action_space, Discrete | Box) or len(obs_shape) != 1:
        raise ValueError(
            f"{env_name} has {type(action_space).__name__} actions and observations of shape {obs_shape}; expected "
            "Discrete or Box actions and a shape (D,), as CartPole-v1 has"
        )
    is_continuous = isinstance(action_space, Box)
    action_size = math.prod(action_space.shape) if is_continuous else action_space.n
    optimizer = _optimizer(config)
    reset = functools.partial(_reset, env, env_params)
    act = functools.partial(_act, env, env_params)

    def init(key: PRNGKeyArray) -> TrainState:
        key, key_params, key_reset = jax.random.split(key, 3)
        params = actor_critic.init(
            key_params, obs_shape[0], action_size, config.hidden_sizes, is_continuous=is_continuous
        )
        obs, env_state = reset(key_reset, config.num_envs)
        return TrainState(params, optimizer.init(params), obs, env_state, key)

    def collect(train_state: TrainState) -> tuple[TrainState, Rollout, Any]:
        start = (train_state.obs, train_state.env_state, train_state.key)
        (obs, env_state, key), chunk, env_states = act(train_state.params, start, config.num_steps, greedy=False)
        return train_state._replace(obs=obs, env_state=env_state, key=key), chunk, env_states

    def evaluate(train_state: TrainState, key: PRNGKeyArray, num_episodes: int = 100) -> tuple[Rollout, Any]:
        key, key_reset = jax.random.split(key)
        start = (*reset(key_reset, num_episodes), key)
        _, chunk, env_states = act(train_state.params, start, env_params.max_steps_in_episode, greedy=True)
        return chunk, env_states

    return Agent(
        init=jax.jit(init),
        collect=jax.jit(collect),
        update=jax.jit(functools.partial(_update, config, optimizer)),
        evaluate=jax.jit(evaluate, static_argnames="num_episodes"),
    )


def generalized_advantage(
    reward: Float[Array, "time env"],
    terminated: Bool[Array, "time env"],
    truncated: Bool[Array, "time env"],
    value: Float[Array, "time env"],
    next_value: Float[Array, "time env"],
    *,
    discount: float,
    gae_lambda: float,
) -> Float[Array, "time env"]:
    """Estimate the advantage of each action of a chunk.

    For t = T-1, ..., 0, starting from A_T = 0::

        delta_t = reward_t + discount * (1 - terminated_t) * V(next_obs_t) - V(obs_t)
        A_t = delta_t + discount * gae_lambda * (1 - terminated_t) * (1 - truncated_t) * A_{t+1}

    A truncated step is credited with the value of the observation it led to, a terminated one with nothing; neither
    sees the episode that follows. An episode open at the chunk's end is treated as if truncated there.

    Parameters
    ----------
    reward, terminated, truncated : array (T, N)
        What the actions produced.
    value, next_value : array (T, N)
        V(obs_t) and V(next_obs_t).
    discount, gae_lambda : float
        Both from 0 to 1.

    Returns
    -------
    array (T, N)
        A_0, ..., A_{T-1}.

    References
    ----------
    Schulman et al. 2016, High-dimensional continuous control using generalized advantage estimation, section 3.
    Schulman et al. 2017, Proximal policy optimization algorithms, equations 11 and 12: cut at the chunk's end.
    """
    delta = reward + discount * jnp.where(terminated, 0.0, next_value) - value
    decay = jnp.where(terminated | truncated, 0.0, discount * gae_lambda)

    def step(following: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        delta_t, decay_t = row
        advantage = delta_t + decay_t * following
        return advantage, advantage

    return jax.lax.scan(step, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)[1]


def _optimizer(config: Config) -> optax.GradientTransformation:
    num_updates = config.num_iterations * config.num_epochs * config.num_minibatches
    schedule = optax.linear_schedule(config.learning_rate, 0.0, num_updates)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(schedule, eps=1e-5))


def _reset(env: Any, env_params: Any, key: PRNGKeyArray, num_envs: int) -> tuple[Array, Any]:
    """Return first observations (N, D) and environment states (N, ...)."""
    first = jax.vmap(env.reset, (0, None))(jax.random.split(key, num_envs), env_params)
    # gymnax counts time from the Python number 0. Left weakly typed, it would compile `collect` twice.
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), first)


def _act(
    env: Any, env_params: Any, params: Params, start: tuple[Array, Any, Array], num_steps: int, *, greedy: bool
) -> tuple[tuple[Array, Any, Array], Rollout, Any]:
    """Act from `start` = (obs, env_state, key); return such a triple to go on from, the chunk and the states."""

    def step(carry: tuple[Array, Any, Array], _: None) -> tuple[tuple[Array, Any, Array], tuple[Rollout, Any]]:
        obs, env_state, key = carry
        key, key_action, key_step = jax.random.split(key, 3)
        draw = functools.partial(actor_critic.draw, greedy=greedy)
        action = jax.vmap(draw, (None, 0, 0))(params, obs, jax.random.split(key_action, len(obs)))
        log_prob = jax.vmap(actor_critic.log_prob, (None, 0, 0))(params, obs, action)
        value = jax.vmap(state_value, (None, 0))(params, obs)
        keys = jax.random.split(key_step, len(obs))
        reset_obs, reset_state, reward, terminated, truncated, info = jax.vmap(env.step, (0, 0, 0, None))(
            keys, env_state, action, env_params
        )
        next_obs = info["final_observation"]
        transition = Rollout(obs, action, reward, terminated, truncated, next_obs, value, log_prob)
        return (reset_obs, reset_state, key), (transition, env_state)

    end, (chunk, env_states) = jax.lax.scan(step, start, length=num_steps)
    return end, chunk, env_states


def _update(
    config: Config, optimizer: optax.GradientTransformation, train_state: TrainState, chunk: Rollout
) -> TrainState:
    """Go over the chunk `num_epochs` times, each in a new order and cut into `num_minibatches`."""
    next_value = jax.vmap(jax.vmap(functools.partial(state_value, train_state.params)))(chunk.next_obs)
    advantage = generalized_advantage(
        chunk.reward,
        chunk.terminated,
        chunk.truncated,
        chunk.value,
        next_value,
        discount=config.discount,
        gae_lambda=config.gae_lambda,
    )
    batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (chunk, advantage, advantage + chunk.value))
    key, key_order = jax.random.split(train_state.key)
    orders = jax.vmap(lambda key: jax.random.permutation(key, advantage.size))(
        jax.random.split(key_order, config.num_epochs)
    )

    def step(carry: tuple[Params, Any], minibatch: Array) -> tuple[tuple[Params, Any], None]:
        params, opt_state = carry
        gradient = jax.grad(_loss)(params, config, *jax.tree.map(lambda x: x[minibatch], batch))
        change, opt_state = optimizer.update(gradient, opt_state)
        return (optax.apply_updates(params, change), opt_state), None

    start = (train_state.params, train_state.opt_state)
    (params, opt_state), _ = jax.lax.scan(step, start, orders.reshape(config.num_epochs * config.num_minibatches, -1))
    return train_state._replace(params=params, opt_state=opt_state, key=key)


def _loss(
    params: Params,
    config: Config,
    transitions: Rollout,
    advantage: Float[Array, " batch"],
    value_target: Float[Array, " batch"],
) -> Float[Array, ""]:
    """Return the loss of Schulman et al. 2017, equations 7 and 9, averaged over a minibatch."""
    log_prob = jax.vmap(actor_critic.log_prob, (None, 0, 0))(params, transitions.obs, transitions.action)
    value = jax.vmap(state_value, (None, 0))(params, transitions.obs)
    ratio = jnp.exp(log_prob - transitions.log_prob)
    clipped = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    advantage = jax.nn.standardize(advantage)
    surrogate = jnp.minimum(ratio * advantage, clipped * advantage).mean()
    value_loss = jnp.square(value - value_target).mean() / 2
    entropy = jax.vmap(actor_critic.entropy, (None, 0))(params, transitions.obs).mean()
    return -surrogate + config.value_weight * value_loss - config.entropy_weight * entropy
