"""Episodes as users give them: their fields as arrays, and their final observations."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from trajlab.capture.convention import STANDARD_NAMES
from trajlab.capture.select import select_fields
from trajlab.capture.shapes import is_key
from trajlab.capture.tree import named_leaves, under
from trajlab.errors import raise_all

Fields = dict[str, np.ndarray]

_FINAL = STANDARD_NAMES["final_observation"]


@dataclasses.dataclass(frozen=True)
class EpisodeInput:
    """One episode.

    Attributes
    ----------
    fields : dict of str to array (L, ...)
        By their names in the Dataset.
    finals : dict of str to array
        What stands at or beneath `final_obs` or `final_observation`.
    keys : frozenset of str
        The fields given as PRNG keys, which are here their data.
    """

    fields: Fields
    finals: Fields
    keys: frozenset[str]


def as_list(episodes: Any) -> list[Any]:
    """Return the episodes as a list; raise TypeError where they are none."""
    if isinstance(episodes, Mapping) or hasattr(episodes, "_fields") or not isinstance(episodes, Iterable):
        raise TypeError(
            f"episodes is a {type(episodes).__name__}; expected a list with one mapping of field to array for each "
            "episode; for a single episode: from_episodes([episode])"
        )
    return list(episodes)


def read_episode(episode: Any, number: int) -> EpisodeInput:
    """Return the fields of one episode; the first tells of those renamed."""
    entries = _entries(episode, number)
    for name in _FINAL:
        if isinstance(entries.get(name), bool | int | float | complex | str | np.generic):
            entries[name] = np.asarray(entries[name])  # one observation may be a single number
    try:
        _, found, leaves = named_leaves(entries)
        is_final = {path for name in _FINAL for path in under(name, list(found))}
        chosen = select_fields(None, [name for name in found if name not in is_final], {}, (), warn=number == 0)
    except (TypeError, ValueError) as error:
        error.add_note(f"in episode {number}")
        raise
    are_keys = {name for name, leaf in zip(found, leaves, strict=True) if is_key(leaf)}
    arrays = {
        name: np.asarray(jax.random.key_data(leaf) if name in are_keys else leaf)
        for name, leaf in zip(found, leaves, strict=True)
    }
    return EpisodeInput(
        {name: arrays[source] for name, source in chosen.items()},
        {name: arrays[name] for name in found if name in is_final},
        frozenset(name for name, source in chosen.items() if source in are_keys),
    )


def _entries(episode: Any, number: int) -> dict[Any, Any]:
    """Return what an episode holds, by name."""
    if isinstance(episode, Mapping):
        return dict(episode)
    if isinstance(episode, tuple) and hasattr(episode, "_asdict"):
        return dict(episode._asdict())
    if dataclasses.is_dataclass(episode) and not isinstance(episode, type):
        return {field.name: getattr(episode, field.name) for field in dataclasses.fields(episode)}
    raise TypeError(
        f"episode {number} is a {type(episode).__name__}; expected a mapping, NamedTuple or dataclass of field to array"
    )


def add_finals(
    episodes: list[EpisodeInput], observation: str | None, leaves: list[str], lengths: np.ndarray
) -> np.ndarray:
    """Put each final observation given by itself behind the episode's observation, in place.

    Parameters
    ----------
    episodes : list of EpisodeInput
    observation : str or None
        The name of the observation, and `leaves` those of its leaves.
    lengths : array (episode,) of int

    Returns
    -------
    array (episode,) of bool
        Whether one was given.

    Raises
    ------
    ValueError
        When one has other leaves than the observation, another dtype or another shape than one of it, or the
        observation has a row for it already.
    """
    problems: list[str] = []
    for number, episode in enumerate(episodes):
        if episode.finals:
            label = f"episode {number}"
            found = [f"{label}: {text}" for text in _final_problems(episode, observation, leaves, int(lengths[number]))]
            problems += found
            for leaf in [] if found else leaves:
                last = episode.finals[_final_of(episode, observation, leaf)]
                array = episode.fields[leaf]
                episode.fields[leaf] = np.concatenate([array, last.reshape(1, *array.shape[1:])])
    raise_all(problems, "a final observation does not fit")
    return np.array([bool(episode.finals) for episode in episodes])


def _final_of(episode: EpisodeInput, observation: str | None, leaf: str) -> str:
    """Return what the final value of a leaf of the observation is called: `final_obs.camera` for `obs.camera`."""
    root = next(name for name in _FINAL if under(name, list(episode.finals)))
    return root + leaf[len(observation or "") :]


def _final_problems(episode: EpisodeInput, observation: str | None, leaves: list[str], length: int) -> list[str]:
    """Return why an episode's final observation is none."""
    given = list(episode.finals)
    roots = [name for name in _FINAL if under(name, given)]
    if len(roots) > 1:
        return [f"both {roots[0]!r} and {roots[1]!r} are given; leave one out"]
    if observation is None:
        return [
            f"{roots[0]!r} is given without an observation ({' or '.join(map(repr, STANDARD_NAMES['observation']))}); "
            "rename it, if it is something else"
        ]
    matched = {_final_of(episode, observation, leaf): leaf for leaf in leaves}
    if set(matched) != set(given):
        return [f"{roots[0]!r} has the arrays {sorted(given)}; expected {sorted(matched)}, as {observation!r} has"]
    problems = []
    for name, leaf in matched.items():
        if leaf not in episode.fields:
            continue  # told of elsewhere
        last, array = episode.finals[name], episode.fields[leaf]
        cell = array.shape[1:]
        if len(array) > length:
            problems.append(
                f"{name!r} is given, and {leaf!r} has {len(array)} rows where {length} steps are; leave one out"
            )
        elif last.shape not in (cell, (1, *cell)):
            mend = f"; give its last row, {name}[-1]" if last.ndim > 0 and last.shape[1:] == cell else ""
            problems.append(
                f"{name!r} has shape {last.shape}; expected one observation, {cell} or {(1, *cell)}, as {leaf!r} has "
                f"shape {array.shape}{mend}"
            )
        elif last.dtype != array.dtype and last.dtype.kind != "U":
            problems.append(f"{name!r} has dtype {last.dtype}; {leaf!r} has {array.dtype}")
    return problems
