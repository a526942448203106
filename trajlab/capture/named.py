"""The table of named conventions: one row per package whose rollouts have a shape of their own.

A row gives the settings of `trajlab.Convention` that differ from ``"auto"``. Each comment says what makes the
package's rollouts hard to read, as its code of November 2026 has it.
"""

from typing import Any

from trajlab.capture.tree import named_leaves
from trajlab.errors import unknown_name


def read(chunk: Any, path: str) -> Any:
    """Return the array under a dotted path of a chunk; raise KeyError that says what the chunk holds."""
    arrays = find(chunk)
    if path not in arrays:
        raise unknown_name("field", path, list(arrays))
    return arrays[path]


def find(chunk: Any) -> dict[str, Any]:
    """Return the arrays of a chunk by their dotted paths."""
    _, names, leaves = named_leaves(chunk)
    return dict(zip(names, leaves, strict=True))


def brax_done(chunk: Any) -> Any:
    """Return where the discount is 0, as it is where an episode ends."""
    return read(chunk, "discount") == 0


def for_all(flag: Any, like: Any) -> Any:
    """Return a flag that is set where it is for all agents; `like` has no axis of agents."""
    return flag if flag.ndim <= like.ndim else flag.reshape(*like.shape, -1).all(-1)


def jumanji_done(chunk: Any) -> Any:
    """Return where a step is the last."""
    return read(chunk, "step_type") == 2


def jumanji_terminated(chunk: Any) -> Any:
    """Return where a last step has discount 0, for all agents."""
    last = jumanji_done(chunk)
    return last & for_all(read(chunk, "discount") == 0, last)


def navix_terminated(chunk: Any) -> Any:
    """Return where the step is of the type termination."""
    return read(chunk, "step_type") == 2


def navix_truncated(chunk: Any) -> Any:
    """Return where the step is of the type truncation."""
    return read(chunk, "step_type") == 1


def pgx_terminated(chunk: Any) -> Any:
    """Return where the game is over for all players; None where the chunk has no flag per player."""
    arrays = find(chunk)
    flag = arrays.get("terminated")
    games = next((arrays[name] for name in ("current_player", "action", "truncated") if name in arrays), None)
    if flag is None or games is None or flag.ndim <= games.ndim:
        return None
    return for_all(flag, games)


# The discount is 1 - done, on truncation too; flags are floats. What tells truncation is there if the collecting
# function was asked for it. The next observation of an episode's last step is that of a cached first state.
BRAX: dict[str, Any] = {
    "done": ("done", brax_done),
    "truncated": ("extras.state_extras.truncation", "truncated", None),
    "next_observation": None,
    "autoreset": "same_step",
}

# Only `done`, whether an episode terminated or ran out of time; and an observation "after the step" is already the
# next episode's first where it ended.
DONE_ONLY: dict[str, Any] = {
    "done": "done",
    "next_observation": None,
    "autoreset": "same_step",
}

# `done` is termination alone. What its learner makes of a transition has axes before time: devices (pmap), updates
# (scan), batch (vmap). The next observation of its replay systems is the true one.
STOIX: dict[str, Any] = {
    "terminated": "done",
    "truncated": "truncated",
    "done": None,
    "autoreset": "same_step",
    "axes": "DUBTN",
}

JAXMARL: dict[str, Any] = {
    "done": ("global_done", "done"),
    "next_observation": None,
    "autoreset": "same_step",
    "agent_done": ("done", None),
}

NAMED: dict[str, dict[str, Any]] = {
    "auto": {},
    "brax": BRAX,
    "mujoco_playground": BRAX,  # trained by brax's agents; what a full reset makes random is the first state alone
    # From 1.0 on. The true next observation is in the info of every step; the one returned is replaced at an end.
    "gymnax": {
        "terminated": ("terminated", "info.terminated"),
        "truncated": ("truncated", "info.truncated"),
        "next_observation": ("info.final_observation", None),
        "autoreset": "same_step",
    },
    "gymnax_0": DONE_ONLY,
    "purejaxrl": DONE_ONLY,
    # Stores `last_done`, which the network is reset by: the flag of the row before.
    "purejaxrl_rnn": DONE_ONLY | {"flags": "previous_row"},
    "stoix": STOIX,
    # Stores `last_done` and `last_truncated`, under the names of `done` and `truncated`.
    "stoix_rnn": STOIX
    | {
        "terminated": ("last_done", "done"),
        "truncated": ("last_truncated", "truncated"),
        "flags": "previous_row",
    },
    # A TimeStep is what an action led to, and does not hold the action. At an end the observation is replaced by the
    # next episode's first; the true one is in the extras where the wrapper was asked for it.
    "jumanji": {
        "terminated": jumanji_terminated,
        "done": jumanji_done,
        "next_observation": ("extras.next_obs", None),
        "alignment": "result",
        "autoreset": "same_step",
    },
    # A Timestep is what its action led to. The step after an end ignores the action and resets: a row of t = 0.
    "navix": {
        "terminated": navix_terminated,
        "truncated": navix_truncated,
        "alignment": "result",
        "autoreset": "next_step",
    },
    # Its baselines store a `next_obs` that the auto-reset has replaced at an end.
    "craftax": DONE_ONLY,
    # The stored action is the policy's, before it is clipped to what the environment takes.
    "rejax": DONE_ONLY,
    # Rewards, and in wrappers flags too, are per player. At an end the observation is replaced.
    "pgx": {
        "reward": ("rewards", "reward", None),
        "terminated": (pgx_terminated, "terminated", None),
        "next_observation": None,
        "autoreset": "same_step",
    },
    # Plural names; `dones` are those of the row before. With envpool the reset comes one step later.
    "cleanrl": {
        "action": ("actions", "action", None),
        "reward": ("rewards", "reward", None),
        "done": ("dones", "done"),
        "next_observation": None,
        "flags": "previous_row",
    },
    # The step after an end ignores the action and resets. Without a flag for truncation, `elapsed_step` tells it to
    # those who know the limit.
    "envpool": {
        "truncated": ("truncated", "info.TimeLimit.truncated", None),
        "autoreset": "next_step",
    },
    # Dicts per agent with `__all__`, or agents flattened into the environments (axes="T(AN)"), where `global_done` is
    # that flag, repeated for each agent. Name the agents: agents=env.agents.
    "jaxmarl": JAXMARL,
    # The recurrent ones store each agent's done of the row before, beside the `global_done` of the row.
    "jaxmarl_rnn": JAXMARL | {"agent_flags": "previous_row"},
}

SIGNATURES: dict[str, tuple[str, ...]] = {
    "brax": ("discount", "next_observation"),
    "navix": ("step_type", "t"),
    "jumanji": ("step_type", "discount"),
    "cleanrl": ("dones", "actions"),
    "gymnax": ("info.terminated",),
}
"""Fields by which the chunks of a package are known where they have no flag of a standard name."""
