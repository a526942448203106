"""A small actor-critic for discrete actions: two networks of tanh layers, in plain JAX."""

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
        From an observation to the logits of the actions.
    critic : tuple of Layer
        From an observation to its value.
    """

    actor: tuple[Layer, ...]
    critic: tuple[Layer, ...]


def init(key: PRNGKeyArray, obs_size: int, num_actions: int, hidden_sizes: tuple[int, ...]) -> Params:
    """Draw orthogonal weights; the actor's small last layer makes the first policy nearly uniform."""
    key_actor, key_critic = jax.random.split(key)
    return Params(
        actor=_init_layers(key_actor, (obs_size, *hidden_sizes, num_actions), last_scale=0.01),
        critic=_init_layers(key_critic, (obs_size, *hidden_sizes, 1), last_scale=1.0),
    )


def log_policy(params: Params, obs: Float[Array, " size"]) -> Float[Array, " actions"]:
    """Return the log-probability of each action at one observation."""
    return jax.nn.log_softmax(_apply_layers(params.actor, obs))


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
