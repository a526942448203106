"""A plain, slow reading of the design: what a Dataset must hold, one cell after the other.

`reference_episodes` lays the calls out as one list of cells per environment and walks each list with a small
state machine. It shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import numpy as np

STANDARD_NAMES = {
    "observation": ("obs", "observation"),
    "action": ("action",),
    "reward": ("reward",),
    "terminated": ("terminated",),
    "truncated": ("truncated",),
    "done": ("done",),
    "next_observation": ("next_obs",),
    "final_observation": ("final_obs",),
}


# What a user does, in order ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """A call of `record`: arrays with the leading axes of the convention."""

    chunk: Mapping[str, Any]
    mask: np.ndarray | None = None
    iteration: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A call of `record_step`: arrays (N, ...), or (len(envs), ...) for indices and slices."""

    step: Mapping[str, Any]
    envs: Any = None
    iteration: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """A call of `mark_reset` (`kind` is "reset") or `mark_gap` ("gap")."""

    kind: str
    envs: Any = None


Call = Record | Step | Mark


# What the Dataset must hold ---------------------------------------------------------------------------------


@dataclass
class Episode:
    """One episode: its coordinates, its final observation, and its fields as lists over time."""

    env: int
    start_row: int
    start_iteration: int
    start_seen: bool
    end_reason: str = "cut"
    complete: bool = False
    final_known: bool = False
    axes: dict[str, int] = field(default_factory=dict)
    final: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, list[Any]] = field(default_factory=dict)
    iteration: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    row_before: int = -1  # of the recorded cell before the first transition
    number: int = -1  # among all that began

    @property
    def length(self) -> int:
        return len(self.iteration)


@dataclass
class Cell:
    """One recorded (unmasked) cell of an environment, and the mark that stands before it."""

    row: int
    iteration: int
    values: dict[str, Any]
    mark: str | None


@dataclass(frozen=True)
class Plan:
    """A convention with every slot settled: leaf names, and the three rules."""

    observation: list[str]
    next_observation: dict[str, str]
    final_observation: dict[str, str]
    terminated: str | None
    truncated: str | None
    done: str | None
    autoreset: str
    flags: str
    moved: set[str]

    @property
    def observation_is_moved(self) -> bool:
        return set(self.observation) <= self.moved


def reference_episodes(
    calls: Sequence[Call],
    *,
    convention: Mapping[str, Any] | None = None,
    envs: Any = None,
    max_episodes: int | None = None,
    starts_fresh: bool = True,
    num_envs: int | None = None,
    reads: Collection[int] = (),
) -> list[Episode]:
    """Return the episodes that `Recorder(...)` must give for these calls, in order of start row, then env.

    Parameters
    ----------
    calls
        What was recorded and marked, in order.
    convention
        The arguments of `Convention`; what is absent is "auto".
    envs, max_episodes, starts_fresh, num_envs
        As for `Recorder`.
    reads
        After how many calls a Dataset was made: environments that share rows go on behind the last one.
    """
    convention = dict(convention or {})
    axes = convention.get("axes", "TN")
    num_envs = num_envs or find_num_envs(calls, axes)
    plan = make_plan(convention, first_leaves(calls))
    recorded = chosen_envs(envs, num_envs)
    columns = lay_out(calls, axes, num_envs, recorded, reads)
    episodes = []
    for env in recorded:
        for episode in walk(columns[env], plan, starts_fresh, env):
            episode.axes = axes_of(env, calls, axes)
            episodes.append(episode)
    episodes.sort(key=lambda episode: (episode.start_row, episode.env))
    for number, episode in enumerate(episodes):
        episode.number = number
    return episodes if max_episodes is None else episodes[:max_episodes]


def without_rows(
    episodes: Sequence[Episode], first: int, convention: Mapping[str, Any], calls: Sequence[Call]
) -> list[Episode]:
    """Return what is left of the episodes when all rows before row `first` are gone."""
    moved = make_plan(convention, first_leaves(calls)).moved
    left = []
    for episode in episodes:
        needed = [episode.row_before, *episode.rows[:-1]] if moved else episode.rows
        lost = sum(row < first for row in needed) if first else 0
        if lost < episode.length:
            left.append(
                replace(
                    episode,
                    number=episode.number if episode.start_row >= first else -1,
                    start_row=episode.rows[lost],
                    start_iteration=episode.iteration[lost],
                    start_seen=episode.start_seen and not lost,
                    complete=episode.complete and not lost,
                    fields={name: values[lost:] for name, values in episode.fields.items()},
                    iteration=episode.iteration[lost:],
                    rows=episode.rows[lost:],
                )
            )
    return sorted(left, key=lambda episode: (episode.start_row, episode.env))


# The convention ---------------------------------------------------------------------------------------------


def leaves(tree: Any, path: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of nested dicts under their dotted paths."""
    if not isinstance(tree, Mapping):
        return {path: np.asarray(tree)}
    found: dict[str, np.ndarray] = {}
    for name, branch in tree.items():
        found |= leaves(branch, f"{path}.{name}" if path else name)
    return found


def call_leaves(call: Record | Step) -> dict[str, np.ndarray]:
    """Return every array of a call, those of its extra arguments too."""
    chunk = call.chunk if isinstance(call, Record) else call.step
    return leaves(chunk) | leaves(call.extra)


def first_leaves(calls: Sequence[Call]) -> dict[str, np.ndarray]:
    """Return the arrays of the first call that records."""
    return next(call_leaves(call) for call in calls if not isinstance(call, Mark))


def make_plan(convention: Mapping[str, Any], arrays: Mapping[str, Any]) -> Plan:
    """Settle every "auto" of a convention."""
    path = {slot: find_slot(convention.get(slot, "auto"), slot, arrays) for slot in STANDARD_NAMES}
    observation = leaves_under(path["observation"], arrays)
    sources = [leaf for slot in ("next_observation", "final_observation") for leaf in leaves_under(path[slot], arrays)]
    kept = [leaf for slot in ("action", "reward") for leaf in leaves_under(path[slot], arrays)]
    flags = [path[flag] for flag in ("terminated", "truncated", "done") if path[flag]]
    alignment = convention.get("alignment", "transition")
    moved = find_moved(alignment, arrays, observation) - {*sources, *kept, *flags}
    return Plan(
        observation=observation,
        next_observation=match_leaves(path["observation"], path["next_observation"], arrays),
        final_observation=match_leaves(path["observation"], path["final_observation"], arrays),
        terminated=path["terminated"],
        truncated=path["truncated"],
        done=path["done"],
        autoreset=convention.get("autoreset", "same_step"),
        flags=convention.get("flags", "row"),
        moved=moved,
    )


def find_slot(given: str | None, slot: str, arrays: Mapping[str, Any]) -> str | None:
    """Return the path of a slot, None where there is none."""
    if given != "auto":
        return given
    return next((name for name in STANDARD_NAMES[slot] if leaves_under(name, arrays)), None)


def leaves_under(path: str | None, arrays: Mapping[str, Any]) -> list[str]:
    """Return the names of the arrays at a path or below it."""
    return [name for name in arrays if path is not None and (name == path or name.startswith(path + "."))]


def match_leaves(observation: str | None, source: str | None, arrays: Mapping[str, Any]) -> dict[str, str]:
    """Return, for each leaf of the observation, the leaf of `source` that stands at the same place in it."""
    if source is None or observation is None:
        return {}
    pairs = {leaf: source + leaf.removeprefix(observation) for leaf in leaves_under(observation, arrays)}
    return {leaf: other for leaf, other in pairs.items() if other in arrays}


def find_moved(alignment: str | Mapping[str, str], arrays: Mapping[str, Any], observation: list[str]) -> set[str]:
    """Return the fields that stand on the row of the action that led to them."""
    if isinstance(alignment, str):
        return set(observation) if alignment == "result" else set()
    globs = [glob for glob, where in alignment.items() if where == "result"]
    return {name for name in arrays for glob in globs if fnmatchcase(name, glob)}


# Calls to cells ---------------------------------------------------------------------------------------------


def find_num_envs(calls: Sequence[Call], axes: str) -> int:
    """Return N, read from the first call that shows it."""
    for call in calls:
        if isinstance(call, Record):
            sizes = axis_sizes(call, axes)
            return int(np.prod([sizes[letter] for letter in env_letters(axes)]))
        if isinstance(call, Step) and (call.envs is None or np.asarray(call.envs).dtype == bool):
            return len(next(iter(call_leaves(call).values())))
    raise ValueError("num_envs is needed: no call shows the number of environments")


def env_letters(axes: str) -> list[str]:
    """Return the axes that are environments, in the order of the arrays."""
    return [letter for letter in axes if letter not in "UT"]


def axis_sizes(call: Record, axes: str) -> dict[str, int]:
    """Return the size of each leading axis."""
    return dict(zip(axes, next(iter(call_leaves(call).values())).shape, strict=False))


def axes_of(env: int, calls: Sequence[Call], axes: str) -> dict[str, int]:
    """Return where an environment stands on each axis merged into the environments."""
    letters = env_letters(axes)
    if letters == ["N"]:
        return {}
    sizes = axis_sizes(next(call for call in calls if isinstance(call, Record)), axes)
    places = list(product(*(range(sizes[letter]) for letter in letters)))[env]
    return {letter: place for letter, place in zip(letters, places, strict=True) if letter != "N"}


def chosen_envs(envs: Any, num_envs: int) -> list[int]:
    """Return the numbers of the environments that None, indices, a slice or a bool mask name, as given."""
    numbers = range(num_envs)
    if envs is None:
        return list(numbers)
    if isinstance(envs, slice):
        return list(numbers[envs])
    if np.asarray(envs).dtype == bool:
        return [env for env in numbers if envs[env]]
    return [int(env) for env in envs]


def lay_out(
    calls: Sequence[Call], axes: str, num_envs: int, recorded: Sequence[int], reads: Collection[int] = ()
) -> list[list[Cell]]:
    """Return one list of recorded cells per environment, each with the mark that stands before it.

    Steps of some environments share rows, each going to its environment's next one, until a call is not of that kind.
    """
    columns: list[list[Cell]] = [[] for _ in range(num_envs)]
    pending: list[str | None] = [None] * num_envs
    row = num_updates = 0  # `row` is the end: no environment that is recorded has a cell there
    next_row = [0] * num_envs
    newest: int | None = None  # the iteration of the newest row
    for number, call in enumerate(calls):
        if number in reads:
            next_row = [row] * num_envs
        if isinstance(call, Mark):
            for env in chosen_envs(call.envs, num_envs):
                pending[env] = call.kind
            continue
        first = first_iteration(call, num_updates, newest)
        if newest is not None and not 0 <= first - newest <= 1:
            pending = [mark if mark == "reset" else "gap" for mark in pending]
        shares = isinstance(call, Step) and call.envs is not None
        if not shares or first != newest:
            next_row = [row] * num_envs
        for cells, iteration in call_rows(call, axes, num_envs, first):
            for env, values in cells.items():
                mark = "reset" if pending[env] == "old reset" else pending[env]
                columns[env].append(Cell(next_row[env], iteration, values, mark))
                pending[env] = None
                next_row[env] += 1
            row = max(next_row[env] for env in recorded) if shares else row + 1
            next_row = next_row if shares else [row] * num_envs
            newest = iteration
        # A reset given before this call says nothing of what happened in updates missed after it.
        pending = ["old reset" if mark == "reset" else mark for mark in pending]
        if isinstance(call, Record):
            num_updates = first + axis_sizes(call, axes).get("U", 1)
    return columns


def first_iteration(call: Record | Step, num_updates: int, newest: int | None) -> int:
    """Return the iteration of a call's first row; calls of `record` are counted, stacked updates one by one."""
    if call.iteration is not None:
        return call.iteration
    if isinstance(call, Record):
        return num_updates
    return 0 if newest is None else newest


def call_rows(
    call: Record | Step, axes: str, num_envs: int, first: int
) -> Iterator[tuple[dict[int, dict[str, Any]], int]]:
    """Yield each row of a call: the values of its unmasked cells by environment, and its iteration."""
    if isinstance(call, Step):
        yield step_cells(call, num_envs), first
        return
    sizes = axis_sizes(call, axes)
    arrays = call_leaves(call)
    for u, t in product(range(sizes.get("U", 1)), range(sizes["T"])):
        cells = {}
        for env, place in enumerate(product(*(range(sizes[letter]) for letter in env_letters(axes)))):
            where = {"U": u, "T": t} | dict(zip(env_letters(axes), place, strict=True))
            index = tuple(where[letter] for letter in axes)
            if call.mask is None or call.mask[index]:
                cells[env] = {name: array[index] for name, array in arrays.items()}
        yield cells, first + u


def step_cells(call: Step, num_envs: int) -> dict[int, dict[str, Any]]:
    """Return the values of a step by environment."""
    envs = chosen_envs(call.envs, num_envs)
    is_full = call.envs is None or (not isinstance(call.envs, slice) and np.asarray(call.envs).dtype == bool)
    arrays = call_leaves(call)
    return {
        env: {name: array[env if is_full else place] for name, array in arrays.items()}
        for place, env in enumerate(envs)
    }


# Cells to episodes ------------------------------------------------------------------------------------------


def end_at(cell: Cell, plan: Plan) -> str | None:
    """Return why the flags on a cell end an episode, None where they do not."""
    terminated = plan.terminated is not None and bool(cell.values[plan.terminated])
    truncated = plan.truncated is not None and bool(cell.values[plan.truncated])
    done = plan.done is not None and bool(cell.values[plan.done])
    if plan.done is not None and plan.truncated is None and plan.terminated is not None:
        truncated = done and not terminated
    if plan.done is not None and plan.terminated is None and plan.truncated is not None:
        terminated = done and not truncated
    if terminated:
        return "terminated"
    if truncated:
        return "truncated"
    return "done" if done else None


def end_of(cells: list[Cell], k: int, plan: Plan) -> tuple[str | None, bool]:
    """Return why cell `k` ends its episode (None: it does not), and whether its flags have arrived."""
    if plan.flags == "row":
        return end_at(cells[k], plan), True
    if k + 1 == len(cells) or cells[k + 1].mark is not None:
        return None, False
    return end_at(cells[k + 1], plan), True


def walk(cells: list[Cell], plan: Plan, starts_fresh: bool, env: int) -> list[Episode]:
    """Cut the cells of one environment into episodes."""
    episodes: list[Episode] = []
    state = "start"  # what the next cell is: "start", "inside", "reset row", "dead"
    seen = starts_fresh  # whether the next episode's start is seen
    previous: int | None = None  # the cell before, where no mark parts them
    open_episode: Episode | None = None
    ended: Episode | None = None  # the episode whose reset row is awaited
    for k, cell in enumerate(cells):
        if cell.mark is not None:
            state, seen, previous, open_episode = "start", cell.mark == "reset", None, None
        after_end = {"same_step": "start", "next_step": "reset row", "disabled": "dead"}[plan.autoreset]
        if state == "reset row":
            if ended is not None:
                add_final_from_reset_row(ended, cell, plan)
            state, seen = "start", True
        elif state == "dead":
            pass
        elif plan.moved and previous is None:  # nothing stands before it: dropped
            seen = seen and plan.observation_is_moved
            if end_of(cells, k, plan)[0]:
                state, seen, ended = after_end, True, None
        else:
            if state == "start":
                open_episode = Episode(env, cell.row, cell.iteration, seen)
                open_episode.row_before = -1 if previous is None else cells[previous].row
                episodes.append(open_episode)
                state = "inside"
            assert open_episode is not None
            add_transition(open_episode, cells, k, previous, plan)
            reason, _ = end_of(cells, k, plan)
            add_final_from_last(open_episode, cells, k, plan)
            if reason:
                open_episode.end_reason = reason
                open_episode.complete = open_episode.start_seen
                state, seen, ended, open_episode = after_end, True, open_episode, None
        previous = k
    for episode in episodes:
        episode.final_known = bool(plan.observation) and all(leaf in episode.final for leaf in plan.observation)
        episode.final = episode.final if episode.final_known else {}
    return episodes


def add_transition(episode: Episode, cells: list[Cell], k: int, previous: int | None, plan: Plan) -> None:
    """Append cell `k`; what stands on the row of its result is read from the cell before."""
    for name in cells[k].values:
        if name in plan.final_observation.values():
            continue
        if name in plan.moved:
            assert previous is not None
            episode.fields.setdefault(name, []).append(cells[previous].values[name])
        else:
            episode.fields.setdefault(name, []).append(cells[k].values[name])
    episode.iteration.append(cells[k].iteration)
    episode.rows.append(cells[k].row)


def add_final_from_last(episode: Episode, cells: list[Cell], k: int, plan: Plan) -> None:
    """Read the final observation from cell `k`, the last transition as far as is known."""
    values = cells[k].values
    reason, arrived = end_of(cells, k, plan)
    episode.final = {}
    for leaf in plan.observation:
        is_replaced = plan.autoreset == "same_step" and (reason is not None or not arrived)
        if reason is not None and leaf in plan.final_observation:
            episode.final[leaf] = values[plan.final_observation[leaf]]
        elif leaf in plan.next_observation:
            episode.final[leaf] = values[plan.next_observation[leaf]]
        elif leaf in plan.moved and not is_replaced:
            episode.final[leaf] = values[leaf]


def add_final_from_reset_row(episode: Episode, cell: Cell, plan: Plan) -> None:
    """Read from the reset row what is not known yet; a moved leaf shows the next episode's start there."""
    for leaf in plan.observation:
        if leaf not in episode.final and leaf not in plan.moved:
            episode.final[leaf] = cell.values[leaf]
