"""Proximal policy optimisation (PPO) on a gymnax environment: a small training loop to record.

Collecting and updating are one jitted function each, so that a recorder fits between them:

    agent = ppo.make("CartPole-v1", config)
    train_state = agent.init(jax.random.key(0))
    for _ in range(config.num_iterations):
        train_state, chunk, env_states = agent.collect(train_state)
        train_state = agent.update(train_state, chunk)
    chunk, env_states = agent.evaluate(train_state, jax.random.key(1), num_episodes=100)

Index t is before the action in `obs[t]`, `env_states[t]` and `value[t]`, after it in `reward[t]`, `terminated[t]`,
`truncated[t]` and `next_obs[t]`. The environment resets itself in the step that ends an episode, so `obs[t + 1]` is
then already the next episode's first observation; `next_obs[t]` is always the one the action led to.
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
from jax import Array


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes and hyperparameters; the defaults solve CartPole-v1 in some seconds on two cores.

    `max_episode_steps` is the step at which an episode is truncated, None for the environment's own. The learning
    rate falls linearly to zero over `num_iterations` updates and stays there.
    """

    num_envs: int = 32
    num_steps: int = 128
    num_iterations: int = 100
    num_epochs: int = 4
    num_minibatches: int = 8
    hidden_sizes: tuple[int, ...] = (64, 64)
    learning_rate: float = 2.5e-3
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    max_grad_norm: float = 0.5
    max_episode_steps: int | None = None

    def __post_init__(self) -> None:
        if self.num_envs * self.num_steps % self.num_minibatches:
            raise ValueError(
                f"num_envs * num_steps = {self.num_envs * self.num_steps} transitions cannot be cut into "
                f"num_minibatches = {self.num_minibatches} of equal size; choose a divisor"
            )


class Rollout(NamedTuple):
    """Transitions of N environments over T steps, on the device; each array is (T, N, ...)."""

    obs: Array  # (T, N, D) float32, before the action
    action: Array  # (T, N) int32
    reward: Array  # (T, N) float32
    terminated: Array  # (T, N) bool
    truncated: Array  # (T, N) bool
    next_obs: Array  # (T, N, D) float32, where the action led, also where an episode ends
    value: Array  # (T, N) float32, the critic's value of obs
    log_prob: Array  # (T, N) float32, of action under the policy that took it


class Layer(NamedTuple):
    """A dense layer: weight (D, H) and bias (H,)."""

    weight: Array
    bias: Array


class Params(NamedTuple):
    """Two networks that share nothing: the actor's logits and the critic's value."""

    actor: tuple[Layer, ...]
    critic: tuple[Layer, ...]


class TrainState(NamedTuple):
    """All that changes in training; `env_state` and `obs` are those the next collection starts from."""

    params: Params
    opt_state: optax.OptState
    env_state: Any
    obs: Array
    key: Array


class Agent(NamedTuple):
    """The jitted functions of one environment and configuration; see `make`."""

    init: Callable[[Array], TrainState]
    collect: Callable[[TrainState], tuple[TrainState, Rollout, Any]]
    update: Callable[[TrainState, Rollout], TrainState]
    evaluate: Callable[..., tuple[Rollout, Any]]


def make(env_name: str, config: Config | None = None) -> Agent:
    """Bind an environment and a configuration to the functions of a training loop.

    Parameters
    ----------
    env_name : str
        A gymnax environment with discrete actions and flat observations (D,).
    config : Config, optional
        Sizes and hyperparameters.

    Returns
    -------
    Agent
        - ``init(key) -> train_state`` resets N = `num_envs` environments and draws the networks.
        - ``collect(train_state) -> train_state, chunk, env_states`` samples T = `num_steps` steps. `env_states` are
          the environments' states (T, N, ...), those that `chunk.obs` shows. An episode open at the chunk's end goes
          on in the next chunk.
        - ``update(train_state, chunk) -> train_state`` learns from the chunk that was just collected.
        - ``evaluate(train_state, key, num_episodes=100) -> chunk, env_states`` acts greedily in `num_episodes` fresh
          environments until the first episode of each must have ended. The rows after it belong to further episodes,
          which are short or cut: count only the episodes that start at row 0.

    Raises
    ------
    ValueError
        If the actions are not discrete or the observations not flat.
    """
    config = Config() if config is None else config
    env, env_params = gymnax.make(env_name)
    if config.max_episode_steps is not None:
        env_params = env_params.replace(max_steps_in_episode=config.max_episode_steps)
    obs_shape = env.observation_space(env_params).shape
    action_space = env.action_space(env_params)
    if not isinstance(action_space, gymnax.environments.spaces.Discrete) or len(obs_shape) != 1:
        raise ValueError(
            f"{env_name} has actions {type(action_space).__name__} and observations of shape {obs_shape}; expected "
            "Discrete and (D,), as CartPole-v1 and Acrobot-v1 have"
        )
    optimizer = optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.adam(
            optax.linear_schedule(
                config.learning_rate, 0.0, config.num_iterations * config.num_epochs * config.num_minibatches
            ),
            eps=1e-5,
        ),
    )
    reset = functools.partial(_reset, env, env_params)
    rollout = functools.partial(_rollout, env, env_params)

    def init(key: Array) -> TrainState:
        key, key_params, key_reset = jax.random.split(key, 3)
        params = _init_params(key_params, obs_shape[0], env.num_actions, config.hidden_sizes)
        obs, env_state = reset(key_reset, config.num_envs)
        return TrainState(params, optimizer.init(params), env_state, obs, key)

    def collect(train_state: TrainState) -> tuple[TrainState, Rollout, Any]:
        start = (train_state.obs, train_state.env_state, train_state.key)
        (obs, env_state, key), chunk, env_states = rollout(train_state.params, start, config.num_steps, greedy=False)
        return train_state._replace(obs=obs, env_state=env_state, key=key), chunk, env_states

    def evaluate(train_state: TrainState, key: Array, num_episodes: int = 100) -> tuple[Rollout, Any]:
        key, key_reset = jax.random.split(key)
        start = (*reset(key_reset, num_episodes), key)
        _, chunk, env_states = rollout(train_state.params, start, env_params.max_steps_in_episode, greedy=True)
        return chunk, env_states

    return Agent(
        init=jax.jit(init),
        collect=jax.jit(collect),
        update=jax.jit(functools.partial(_update, config, optimizer)),
        evaluate=jax.jit(evaluate, static_argnames="num_episodes"),
    )


def generalized_advantage(
    reward: Array,
    terminated: Array,
    truncated: Array,
    value: Array,
    next_value: Array,
    *,
    discount: float,
    gae_lambda: float,
) -> Array:
    """Estimate advantages over a chunk.

    For t = T-1, ..., 0, with A_T = 0::

        delta_t = r_t + discount * (1 - terminated_t) * V(next_obs_t) - V(obs_t)
        A_t = delta_t + discount * gae_lambda * (1 - terminated_t) * (1 - truncated_t) * A_{t+1}

    A truncated step bootstraps from the value of the observation it led to, a terminated one does not; neither lets
    the next episode's advantages through. An episode open at the chunk's end bootstraps in the same way.

    Parameters
    ----------
    reward, value, next_value : Array
        (T, N) float; `value` is V(obs_t), `next_value` is V(next_obs_t).
    terminated, truncated : Array
        (T, N) bool.
    discount, gae_lambda : float
        Both in [0, 1].

    Returns
    -------
    Array
        (T, N) float, A_0 to A_{T-1}.

    References
    ----------
    Schulman et al. 2016, High-dimensional continuous control using generalized advantage estimation, section 3;
    in the truncated form of Schulman et al. 2017, Proximal policy optimization algorithms, section 5.
    """
    delta = reward + discount * jnp.where(terminated, 0.0, next_value) - value
    decay = jnp.where(terminated | truncated, 0.0, discount * gae_lambda)

    def step(advantage: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        delta_t, decay_t = row
        advantage = delta_t + decay_t * advantage
        return advantage, advantage

    _, advantages = jax.lax.scan(step, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)
    return advantages


def _reset(env: Any, env_params: Any, key: Array, num_envs: int) -> tuple[Array, Any]:
    """Reset environments: observations (N, D) and states (N, ...)."""
    first = jax.vmap(env.reset, (0, None))(jax.random.split(key, num_envs), env_params)
    # gymnax counts time from a Python 0, a weakly typed array that would compile the first collection twice.
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), first)


def _rollout(
    env: Any, env_params: Any, params: Params, start: tuple[Array, Any, Array], num_steps: int, *, greedy: bool
) -> tuple[tuple[Array, Any, Array], Rollout, Any]:
    """Act for `num_steps` from `start` = (obs, env_state, key); also return where it ended, in the same form."""

    def step(carry: tuple[Array, Any, Array], _: None) -> tuple[tuple[Array, Any, Array], tuple[Rollout, Any]]:
        obs, env_state, key = carry
        key, key_action, key_step = jax.random.split(key, 3)
        log_probs, value = jax.vmap(_policy, (None, 0))(params, obs)
        action = jnp.argmax(log_probs, axis=-1) if greedy else jax.random.categorical(key_action, log_probs)
        log_prob = jax.vmap(jnp.take)(log_probs, action)
        keys = jax.random.split(key_step, action.size)
        # gymnax multiplies integers by floats, also where a caller has set strict dtype promotion.
        with jax.numpy_dtype_promotion("standard"):
            after_obs, after_state, reward, terminated, truncated, info = jax.vmap(env.step, (0, 0, 0, None))(
                keys, env_state, action, env_params
            )
        next_obs = info["final_observation"]
        transition = Rollout(obs, action, reward, terminated, truncated, next_obs, value, log_prob)
        return (after_obs, after_state, key), (transition, env_state)

    end, (chunk, env_states) = jax.lax.scan(step, start, length=num_steps)
    return end, chunk, env_states


def _update(
    config: Config, optimizer: optax.GradientTransformation, train_state: TrainState, chunk: Rollout
) -> TrainState:
    """Take `num_epochs` passes over the chunk, each in a new order cut into `num_minibatches`."""
    key, key_epochs = jax.random.split(train_state.key)
    _, next_value = jax.vmap(jax.vmap(functools.partial(_policy, train_state.params)))(chunk.next_obs)
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
    permute = functools.partial(jax.random.permutation, x=advantage.size)
    orders = jax.vmap(permute)(jax.random.split(key_epochs, config.num_epochs))

    def step(carry: tuple[Params, optax.OptState], order: Array) -> tuple[tuple[Params, optax.OptState], None]:
        params, opt_state = carry
        minibatch = jax.tree.map(lambda x: x[order], batch)
        grads = jax.grad(_loss)(params, config, *minibatch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), None

    carry = (train_state.params, train_state.opt_state)
    (params, opt_state), _ = jax.lax.scan(step, carry, orders.reshape(config.num_epochs * config.num_minibatches, -1))
    return train_state._replace(params=params, opt_state=opt_state, key=key)


def _loss(params: Params, config: Config, transitions: Rollout, advantage: Array, target: Array) -> Array:
    """Average the clipped surrogate, value and entropy losses (Schulman et al. 2017, equations 7 and 9)."""
    log_probs, value = jax.vmap(_policy, (None, 0))(params, transitions.obs)
    ratio = jnp.exp(jax.vmap(jnp.take)(log_probs, transitions.action) - transitions.log_prob)
    clipped = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    advantage = jax.nn.standardize(advantage)
    surrogate = jnp.minimum(ratio * advantage, clipped * advantage).mean()
    value_loss = jnp.square(value - target).mean() / 2
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=-1).mean()
    return -surrogate + config.value_weight * value_loss - config.entropy_weight * entropy


def _policy(params: Params, obs: Array) -> tuple[Array, Array]:
    """Map one observation (D,) to the actions' log-probabilities (A,) and the value ()."""
    return jax.nn.log_softmax(_mlp(params.actor, obs)), _mlp(params.critic, obs).squeeze()


def _mlp(layers: tuple[Layer, ...], x: Array) -> Array:
    *hidden, last = layers
    for layer in hidden:
        x = jnp.tanh(x @ layer.weight + layer.bias)
    return x @ last.weight + last.bias


def _init_params(key: Array, obs_size: int, num_actions: int, hidden_sizes: tuple[int, ...]) -> Params:
    """Draw orthogonal weights; the small last actor layer starts the policy near uniform."""
    key_actor, key_critic = jax.random.split(key)
    return Params(
        actor=_init_mlp(key_actor, (obs_size, *hidden_sizes, num_actions), last_scale=0.01),
        critic=_init_mlp(key_critic, (obs_size, *hidden_sizes, 1), last_scale=1.0),
    )


def _init_mlp(key: Array, sizes: tuple[int, ...], last_scale: float) -> tuple[Layer, ...]:
    scales = [math.sqrt(2)] * (len(sizes) - 2) + [last_scale]
    keys = jax.random.split(key, len(scales))
    return tuple(
        Layer(jax.nn.initializers.orthogonal(scale)(layer_key, (size, next_size)), jnp.zeros(next_size))
        for layer_key, scale, size, next_size in zip(keys, scales, sizes[:-1], sizes[1:], strict=True)
    )
