"""A hidden true run, and what each package's collecting function would return of it.

A run is a list of true episodes per environment and a number of rows T. It is laid out as arrays (T, N, ...) of what
an environment with auto-reset shows, at once or one step later, and these are put into the package's own structure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from conventions.truth import Known, TrueEpisode

LIMIT = 4
"""Steps after which episodes are truncated, where reasons follow from lengths."""

Arrays = dict[str, np.ndarray]
"""What stands on each row, (T, N, ...): `before` and `after` are the observations shown around the action, `true_after`
what the action led to, `last_terminated` and `last_truncated` the flags of the row before."""


@dataclass(frozen=True)
class Run:
    """True episodes of each environment; the last one of each goes on at least until row `rows`."""

    rows: int
    columns: list[list[TrueEpisode]]


# Laying out -------------------------------------------------------------------------------------------------


def lay_out(run: Run, *, resets_late: bool) -> tuple[Arrays, list[list[TrueEpisode]], np.ndarray]:
    """Return the arrays of a run, the episodes as far as its rows go, and which environments end in a reset row."""
    columns, truths, in_reset = [], [], []
    for env, episodes in enumerate(run.columns):
        rows, truth = _column(episodes, run.rows, resets_late, env)
        columns.append(rows)
        truths.append(truth)
        in_reset.append(rows[-1]["is_reset"])
    names = columns[0][0]
    arrays = {name: np.stack([np.stack([row[name] for row in rows]) for rows in columns], axis=1) for name in names}
    for flag in ("terminated", "truncated"):
        arrays[f"last_{flag}"] = np.concatenate([np.zeros_like(arrays[flag][:1]), arrays[flag][:-1]])
    return arrays, truths, np.array(in_reset)


def _column(
    episodes: list[TrueEpisode], length: int, resets_late: bool, env: int
) -> tuple[list[dict[str, Any]], list[TrueEpisode]]:
    """Return the first `length` rows of one environment, and the episodes in them."""
    rows: list[dict[str, Any]] = []
    truth: list[TrueEpisode] = []
    for episode, following in zip(episodes, [*episodes[1:], episodes[0]], strict=True):
        start = len(rows)
        for t in range(min(len(episode), length - start)):
            is_end = t == len(episode) - 1 and episode.reason != "cut"
            shown = following.obs[0] if is_end and not resets_late else episode.obs[t + 1]
            rows.append(
                _row(episode.obs[t], shown, episode.obs[t + 1], episode.action[t], episode.reward[t], t)
                | {"terminated": is_end and episode.reason == "terminated"}
                | {"truncated": is_end and episode.reason == "truncated"}
            )
        taken = len(rows) - start
        if taken:
            truth.append(episode if taken == len(episode) else _head(episode, taken))
        if resets_late and episode.reason != "cut" and taken == len(episode) and len(rows) < length:
            rows.append(_row(episode.obs[-1], following.obs[0], following.obs[0], 99, 0.0, -1, is_reset=True))
        if len(rows) == length:
            return rows, truth
    raise AssertionError(f"environment {env} has too few episodes for {length} rows")


def _row(before: Any, after: Any, true_after: Any, action: int, reward: float, t: int, is_reset: bool = False) -> Any:
    return {
        "before": np.array(before, np.float32),
        "after": np.array(after, np.float32),
        "true_after": np.array(true_after, np.float32),
        "action": np.int32(action),
        "reward": np.float32(reward),
        "t": np.int32(t + 1),
        "is_reset": np.bool_(is_reset),
        "terminated": np.bool_(False),
        "truncated": np.bool_(False),
    }


def _head(episode: TrueEpisode, length: int) -> TrueEpisode:
    return TrueEpisode(episode.obs[: length + 1], episode.action[:length], episode.reward[:length], "cut")


def first_step(arrays: Arrays) -> Arrays:
    """Return the row (N, ...) of a time step that no action led to: the first observation."""
    row = {name: np.zeros_like(array[0]) for name, array in arrays.items()}
    return row | {"after": arrays["before"][0], "true_after": arrays["before"][0]}


def with_axes(tree: Any, axes: str, sizes: Mapping[str, int]) -> Any:
    """Return arrays (rows, envs, ...) with the axes of a convention, U among them, of these sizes but for T."""

    def move(array: np.ndarray) -> np.ndarray:
        letters = [letter for letter in axes if letter not in "UT"]
        lead = [sizes["U"], -1, *(sizes[letter] for letter in letters)]
        split = array.reshape(*lead, *array.shape[2:])
        order = [["U", "T", *letters].index(letter) for letter in axes]
        rest = range(len(lead), split.ndim)
        return split.transpose(*order, *rest)

    return tree if axes == "TN" else jax.tree.map(move, tree)


# The packages' structures -----------------------------------------------------------------------------------


class BraxTransition(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    discount: Any
    next_observation: Any
    extras: Any = ()


class PureTransition(NamedTuple):
    """Of purejaxrl's PPO, with and without a recurrent network."""

    done: Any
    action: Any
    value: Any
    reward: Any
    log_prob: Any
    obs: Any
    info: Any


class CraftaxTransition(NamedTuple):
    done: Any
    action: Any
    value: Any
    reward_e: Any
    reward_i: Any
    reward: Any
    log_prob: Any
    obs: Any
    next_obs: Any
    info: Any


class StoixTransition(NamedTuple):
    done: Any
    truncated: Any
    action: Any
    value: Any
    reward: Any
    log_prob: Any
    bootstrap_value: Any
    obs: Any
    info: Any


class StoixRecurrentTransition(NamedTuple):
    done: Any
    truncated: Any
    action: Any
    value: Any
    reward: Any
    log_prob: Any
    obs: Any
    hstates: Any
    info: Any


class SelfplayOutput(NamedTuple):
    """Of pgx's AlphaZero example, with the action."""

    obs: Any
    action: Any
    reward: Any
    terminated: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TimeStep:
    """Jumanji's."""

    step_type: Any
    reward: Any
    discount: Any
    observation: Any
    extras: Any = field(default_factory=dict)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Timestep:
    """Navix's."""

    t: Any
    observation: Any
    action: Any
    reward: Any
    step_type: Any
    state: Any
    info: Any = field(default_factory=dict)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Trajectory:
    """Rejax's."""

    obs: Any
    action: Any
    log_prob: Any
    reward: Any
    value: Any
    done: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Storage:
    """CleanRL's, of its JAX scripts."""

    obs: Any
    actions: Any
    logprobs: Any
    dones: Any
    values: Any
    advantages: Any
    returns: Any
    rewards: Any


def _done(a: Arrays) -> np.ndarray:
    return a["terminated"] | a["truncated"]


def _last_done(a: Arrays) -> np.ndarray:
    return a["last_terminated"] | a["last_truncated"]


def brax(a: Arrays) -> Any:
    done, truncated = _done(a).astype(np.float32), a["truncated"].astype(np.float32)
    extras = {"policy_extras": {"log_prob": a["reward"]}, "state_extras": {"truncation": truncated}}
    return BraxTransition(a["before"], a["action"], a["reward"], 1 - done, a["after"], extras)


def gymnax(a: Arrays) -> Any:
    flags = {"terminated": a["terminated"], "truncated": a["truncated"]}
    info = flags | {"final_observation": a["true_after"]}
    return {"obs": a["before"], "action": a["action"], "reward": a["reward"], "next_obs": a["after"], "info": info}


def purejaxrl(a: Arrays) -> Any:
    info = {"returned_episode": _done(a), "discount": 1 - _done(a).astype(np.float32)}
    return PureTransition(_done(a), a["action"], a["reward"], a["reward"], a["reward"], a["before"], info)


def purejaxrl_rnn(a: Arrays) -> Any:
    return purejaxrl(a)._replace(done=_last_done(a))


def craftax(a: Arrays) -> Any:
    value = a["reward"]
    return CraftaxTransition(
        _done(a), a["action"], value, value, value, a["reward"], value, a["before"], a["after"], {"timestep": value}
    )


def rejax(a: Arrays) -> Any:
    return Trajectory(a["before"], a["action"], a["reward"], a["reward"], a["reward"], _done(a))


def stoix(a: Arrays) -> Any:
    value = a["reward"]
    info = {"episode_return": value, "is_terminal_step": _done(a)}
    return StoixTransition(
        a["terminated"], a["truncated"], a["action"], value, a["reward"], value, value, a["before"], info
    )


def stoix_rnn(a: Arrays) -> Any:
    value = a["reward"]
    flags = (a["last_terminated"], a["last_truncated"])
    return StoixRecurrentTransition(
        *flags, a["action"], value, a["reward"], value, a["before"], {"policy": a["before"]}, {}
    )


def jumanji(a: Arrays) -> Any:
    step_type = np.where(a["t"] == 0, 0, np.where(_done(a), 2, 1)).astype(np.int8)
    return TimeStep(step_type, a["reward"], 1 - a["terminated"].astype(np.float32), a["after"])


def jumanji_next_obs(a: Arrays) -> Any:
    return replace(jumanji(a), extras={"next_obs": a["true_after"]})


def navix(a: Arrays) -> Any:
    action = np.where(a["is_reset"], 0, a["action"]).astype(np.int32)
    step_type = a["truncated"] * np.int32(1) + a["terminated"] * np.int32(2)
    state = {"grid": a["after"], "key": np.stack([a["t"], a["t"]], axis=-1).astype(np.uint32)}
    return Timestep(a["t"], a["after"], action, a["reward"], step_type, state, {"return": a["reward"]})


def pgx(a: Arrays) -> Any:
    return SelfplayOutput(a["before"], a["action"], a["reward"], _done(a))


def pgx_per_player(a: Arrays) -> Any:
    over = np.stack([_done(a), _done(a) | (a["t"] > 1)], axis=-1)  # a player may be out before the game is over
    return {"obs": a["before"], "action": a["action"], "rewards": a["reward"], "terminated": over}


def cleanrl(a: Arrays) -> Any:
    value = a["reward"]
    return Storage(a["before"], a["action"], value, _last_done(a), value, value, value, a["reward"])


def envpool(a: Arrays) -> Any:
    flags = {"terminated": a["terminated"], "truncated": a["truncated"]}
    info = {"elapsed_step": a["t"], "env_id": np.broadcast_to(np.arange(a["t"].shape[1], dtype=np.int32), a["t"].shape)}
    return {"obs": a["before"], "action": a["action"], "reward": a["reward"], **flags, "info": info}


def envpool_gym(a: Arrays) -> Any:
    """Of the interface with four results."""
    info = {"elapsed_step": a["t"], "TimeLimit.truncated": a["truncated"]}
    return {"obs": a["before"], "action": a["action"], "reward": a["reward"], "done": _done(a), "info": info}


# What each convention can know ------------------------------------------------------------------------------

ALL = Known(final_of_ended=True, final_of_cut=True)
LATE = Known(final_of_ended=True, last_final=False)


@dataclass(frozen=True)
class Rendering:
    """How a package shows a run, and what its convention can know of it."""

    convention: str
    chunk: Callable[[Arrays], Any]
    known: Known
    options: Mapping[str, Any] = field(default_factory=dict)  # what is amended
    resets_late: bool = False
    names: tuple[str, str, str] = ("obs", "action", "reward")
    first: bool = False  # whether the time step of before the first action is recorded first
    extra: tuple[str, ...] = ()  # what is given by keyword
    axes: str = "TN"
    reasons: Literal["free", "terminated", "by length"] = "free"


DONE = Known(has_reason=False)
OBSERVATION = ("observation", "action", "reward")
RENDERINGS: dict[str, Rendering] = {
    "brax": Rendering("brax", brax, Known(), names=OBSERVATION),
    "mujoco_playground": Rendering("mujoco_playground", brax, Known(), names=OBSERVATION),
    "gymnax": Rendering("gymnax", gymnax, ALL),
    "gymnax_0": Rendering("gymnax_0", purejaxrl, DONE),
    "purejaxrl": Rendering("purejaxrl", purejaxrl, DONE),
    "purejaxrl_rnn": Rendering("purejaxrl_rnn", purejaxrl_rnn, replace(DONE, last_end=False)),
    "craftax": Rendering("craftax", craftax, DONE),
    "rejax": Rendering("rejax", rejax, DONE),
    "stoix": Rendering("stoix", stoix, Known(), axes="DUBTN"),
    "stoix_rnn": Rendering("stoix_rnn", stoix_rnn, Known(last_end=False), axes="DUBTN"),
    "jumanji": Rendering(
        "jumanji", jumanji, Known(final_of_cut=True), names=OBSERVATION, first=True, extra=("action",)
    ),
    "jumanji, next_obs": Rendering("jumanji", jumanji_next_obs, ALL, names=OBSERVATION, first=True, extra=("action",)),
    "navix": Rendering("navix", navix, ALL, names=OBSERVATION, resets_late=True, first=True),
    "pgx": Rendering("pgx", pgx, Known(), reasons="terminated"),
    "pgx, per player": Rendering(
        "pgx", pgx_per_player, Known(), names=("obs", "action", "rewards"), reasons="terminated"
    ),
    "cleanrl": Rendering("cleanrl", cleanrl, replace(DONE, last_end=False), names=("obs", "actions", "rewards")),
    "cleanrl, envpool": Rendering(
        "cleanrl",
        cleanrl,
        replace(DONE, final_of_ended=True, last_end=False),
        options={"autoreset": "next_step"},
        names=("obs", "actions", "rewards"),
        resets_late=True,
    ),
    "envpool": Rendering("envpool", envpool, LATE, resets_late=True),
    "envpool, gym": Rendering("envpool", envpool_gym, LATE, resets_late=True),
    "envpool, elapsed_step": Rendering(
        "envpool",
        lambda a: envpool_gym(a) | {"info": {"elapsed_step": a["t"]}},
        LATE,
        options={"truncated": lambda chunk: chunk["done"] & (chunk["info"]["elapsed_step"] >= LIMIT)},
        resets_late=True,
        reasons="by length",
    ),
}
