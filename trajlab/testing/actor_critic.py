"""A small actor-critic, for discrete or continuous actions: two networks of tanh layers, in plain JAX."""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class Layer(NamedTuple):
    """A dense layer.

    Attributes
    ----------
    weight : array (D, H) float32
    bias : array (H,) float32
    """

    weight: Array
    bias: Array


class Params(NamedTuple):
    """Two networks that share nothing.

    Attributes
    ----------
    actor : tuple of Layer
        From an observation to the logits of the actions, or to the mean of a continuous one.
    critic : tuple of Layer
        From an observation to its value.
    log_std : array (A,) float32 or None
        Logarithm of the standard deviation of each component of a continuous action, whatever the observation.
    """

    actor: tuple[Layer, ...]
    critic: tuple[Layer, ...]
    log_std: Array | None


def init(
    key: PRNGKeyArray, obs_size: int, action_size: int, hidden_sizes: tuple[int, ...], *, is_continuous: bool
) -> Params:
    """Draw orthogonal weights; the actor's small last layer makes the first policy nearly the same everywhere.

    `action_size` is the number of discrete actions, or of components of a continuous one.
    """
    key_actor, key_critic = jax.random.split(key)
    return Params(
        actor=_init_layers(key_actor, (obs_size, *hidden_sizes, action_size), last_scale=0.01),
        critic=_init_layers(key_critic, (obs_size, *hidden_sizes, 1), last_scale=1.0),
        log_std=jnp.zeros(action_size) if is_continuous else None,
    )


def draw(params: Params, obs: Float[Array, " size"], key: PRNGKeyArray, *, greedy: bool) -> Array:
    """Return an action at one observation, () int32 or (A,) float32; the likeliest one where `greedy`."""
    out = _apply_layers(params.actor, obs)
    if params.log_std is None:
        return out.argmax() if greedy else jax.random.categorical(key, out)
    return out if greedy else out + jnp.exp(params.log_std) * jax.random.normal(key, out.shape)


def log_prob(params: Params, obs: Float[Array, " size"], action: Array) -> Float[Array, ""]:
    """Return the logarithm of an action's probability at one observation, or of its density."""
    out = _apply_layers(params.actor, obs)
    if params.log_std is None:
        return jax.nn.log_softmax(out)[action]
    return jax.scipy.stats.norm.logpdf(action, out, jnp.exp(params.log_std)).sum()


def entropy(params: Params, obs: Float[Array, " size"]) -> Float[Array, ""]:
    """Return the entropy of the policy at one observation, in nats."""
    if params.log_std is not None:
        return (params.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum()
    log_probs = jax.nn.log_softmax(_apply_layers(params.actor, obs))
    return -(jnp.exp(log_probs) * log_probs).sum()


def state_value(params: Params, obs: Float[Array, " size"]) -> Float[Array, ""]:
    """Return the value of one observation."""
    return _apply_layers(params.critic, obs).squeeze()


def _init_layers(key: PRNGKeyArray, sizes: tuple[int, ...], last_scale: float) -> tuple[Layer, ...]:
    scales = [math.sqrt(2)] * (len(sizes) - 2) + [last_scale]
    keys = jax.random.split(key, len(scales))
    return tuple(
        Layer(jax.nn.initializers.orthogonal(scale)(layer_key, shape), jnp.zeros(shape[1]))
        for layer_key, scale, shape in zip(keys, scales, itertools.pairwise(sizes), strict=True)
    )


def _apply_layers(layers: tuple[Layer, ...], x: Float[Array, " size"]) -> Float[Array, " out"]:
    *hidden, last = layers
    for layer in hidden:
        x = jnp.tanh(x @ layer.weight + layer.bias)
    return x @ last.weight + last.bias
