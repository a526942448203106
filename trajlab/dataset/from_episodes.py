"""A Dataset from episodes that are already cut."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.block.block import Block
from trajlab.block.layout import Field, Layout
from trajlab.block.view import LogView
from trajlab.capture.convention import FLAG_SLOTS, STANDARD_NAMES
from trajlab.capture.tree import under
from trajlab.dataset.build import REASONS, FinalOrigins, build_dataset, empty_dataset
from trajlab.dataset.episode_input import Fields as _Episode
from trajlab.dataset.episode_input import add_finals, as_list, read_episode
from trajlab.dataset.labels import Coords, Dims, Units, make_labels
from trajlab.dataset.schema_values import MAY_BE_SET
from trajlab.dataset.source import Source
from trajlab.errors import check_option, raise_all, warn_user
from trajlab.names import EndReason
from trajlab.padding import padding_value, shown_dtype
from trajlab.segment import REASON_CUT, REASON_DONE, Episodes, RankMap, Rules, Span


def from_episodes(
    episodes: Iterable[Mapping[str, Any] | Any],
    *,
    end_reason: Sequence[str] | str | None = None,
    env: Sequence[int] | None = None,
    iteration: Sequence[int] | None = None,
    dims: Dims | None = None,
    coords: Coords | None = None,
    units: Units | None = None,
) -> xr.Dataset:
    """Return the Dataset of episodes given one by one, in their order.

    Parameters
    ----------
    episodes : sequence of mapping of str to array (L, ...)
        One mapping, NamedTuple or dataclass per episode, nested as it may be. Every episode has the same fields.
        The final observation, where it is known, is row L + 1 of the observation (`obs` or `observation`), or
        an entry `final_obs` (`final_observation`) of one observation, with or without an axis of size 1 for time.
    end_reason : str or sequence of str, optional
        How each episode ended. By default it follows from the fields `terminated`, `truncated` and `done`
        of its last step (``"cut"`` where none is set), or is ``"done"`` where there are none.
    env, iteration : sequence of int, optional
        The environment that each episode ran in and the update it belongs to; 0 by default.
    dims, coords, units
        As for `Recorder`.

    Returns
    -------
    Dataset
        As `Recorder.to_dataset` gives it, lazy. An empty list gives an empty Dataset, with a warning.

    Raises
    ------
    ValueError
        With every problem: fields, shapes, dtypes or lengths that differ, a flag set before the last step, a
        final observation that is not one, an episode without steps. When two fields would have the same name,
        an end reason is unknown or not what the flags say, or `env`, `iteration`, `coords` or `units` do not fit.
    KeyError
        When `dims` or `units` name no field, or `coords` no dim.
    TypeError
        When `episodes` is no list of mappings, a field is neither an array nor a tree of arrays, or of a dtype
        that cannot be recorded.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([1, 2])}, {"action": np.array([3])}])
    >>> ds["action"].values
    array([[                   1,                    2],
           [                   3, -9223372036854775808]])
    """
    read = [read_episode(episode, number) for number, episode in enumerate(as_list(episodes))]
    parsed = [episode.fields for episode in read]
    if not parsed:
        warn_user("no episode: the list given is empty")
        return empty_dataset()
    observation = next((name for name in STANDARD_NAMES["observation"] if under(name, list(parsed[0]))), None)
    leaves = under(observation, list(parsed[0])) if observation else []
    lengths, has_final = _lengths(parsed, leaves)
    has_final |= add_finals(read, observation, leaves, lengths)
    _check_alike(parsed, lengths, has_final, leaves)
    layout = Layout(tuple(_fields(parsed, leaves, read[0].keys)), (), "host", "TN", (("N", 1),))
    source = Source(
        *_log(parsed, layout, lengths + has_final),
        _table(lengths, has_final, _reasons(parsed, end_reason)),
        np.cumsum(lengths + has_final) - (lengths + has_final),
        _per_episode("iteration", iteration, len(parsed)),
    )
    dataset = build_dataset(
        source,
        rules=Rules("next_step", False, False, False, True, ()),
        finals=[FinalOrigins(f, None, None) for f in layout.fields if f.role == "observation"]
        if has_final.any()
        else [],
        envs=np.zeros(1, np.int64),
        env_coords={},
        labels=make_labels(layout.fields, dims, coords, units, _same_dims(layout.fields, observation)),
        attrs={names.CONVENTION_ATTR: "episodes, given one by one"}
        | dict.fromkeys((names.ROWS_SEEN_ATTR, names.ROWS_KEPT_ATTR), int(lengths.sum()))
        | dict.fromkeys((names.ROWS_DROPPED_ATTR, names.ROWS_EVICTED_ATTR, names.CELLS_UNALIGNED_ATTR), 0),
    )
    numbers = _per_episode("env", env, len(parsed))
    return dataset.assign_coords({names.ENV: dataset[names.ENV].copy(data=numbers)})


def _lengths(parsed: list[_Episode], leaves: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return each episode's length, and whether its observation has one row more."""
    lengths, finals = [], []
    for number, episode in enumerate(parsed):
        scalars = [name for name, array in episode.items() if array.ndim == 0]
        raise_all([f"{name!r} has no time axis; expected (L, ...)" for name in scalars], f"episode {number}")
        rows = [len(episode[name]) for name in leaves if name in episode]
        others = [len(array) for name, array in episode.items() if name not in leaves]
        length = max(others, key=others.count) if others else min(rows, default=0)
        lengths.append(length)
        finals.append(bool(rows) and all(row == length + 1 for row in rows))
    return np.array(lengths, np.int64), np.array(finals)


def _check_alike(parsed: list[_Episode], lengths: np.ndarray, has_final: np.ndarray, leaves: list[str]) -> None:
    first, problems = parsed[0], []
    for number, episode in enumerate(parsed):
        label = f"episode {number}"
        if not lengths[number]:
            problems.append(f"{label} has no step")
        if set(episode) != set(first):
            problems.append(f"{label} has the fields {sorted(episode)}; episode 0 has {sorted(first)}")
            continue
        for name, array in episode.items():
            rows = lengths[number] + (has_final[number] and name in leaves)
            if len(array) != rows:
                problems.append(f"{label}: {name!r} has {len(array)} rows; expected {rows}")
            if array.shape[1:] != first[name].shape[1:]:
                problems.append(
                    f"{label}: {name!r} has cells of shape {array.shape[1:]}; episode 0 {first[name].shape[1:]}"
                )
            if array.dtype != first[name].dtype and array.dtype.kind != "U":
                problems.append(f"{label}: {name!r} has dtype {array.dtype}; episode 0 {first[name].dtype}")
        for flag in FLAG_SLOTS:
            early = np.flatnonzero(np.asarray(episode.get(flag, np.zeros(0))).astype(bool)[:-1])
            if len(early):
                problems.append(f"{label}: {flag!r} is set at step {early[0]}, before the last; cut it there")
    raise_all(problems, "the episodes do not fit together")


def _fields(parsed: list[_Episode], leaves: list[str], keys: frozenset[str]) -> list[Field]:
    """Return the fields, the observation's leaves marked as such; strings are as wide as the widest."""
    roles = {name: slot for slot, standard in STANDARD_NAMES.items() for name in standard}
    out = []
    for name, array in parsed[0].items():
        dtype = np.result_type(*(episode[name].dtype for episode in parsed)) if array.dtype.kind == "U" else array.dtype
        shown_dtype(dtype)
        role = "observation" if name in leaves else roles.get(name, "")
        out.append(Field(name, name, array.shape[1:], dtype.newbyteorder("="), "host", role=role, is_key=name in keys))
    return out


def _log(parsed: list[_Episode], layout: Layout, rows: np.ndarray) -> tuple[LogView, RankMap]:
    """Return the log in which the episodes stand one behind the other, in one column."""
    total = int(rows.sum())
    block = Block(0, total, layout)
    for array, field in zip(block.host, layout.fields, strict=False):
        values = np.concatenate([_filled(episode[field.name], int(n)) for episode, n in zip(parsed, rows, strict=True)])
        array[:, 0] = values
    block.host[-1][:] = 0
    base = np.zeros(1, np.int64)
    return LogView(layout, (block,), total, threading.RLock()), RankMap((Span(0, total, base),))


def _filled(array: np.ndarray, rows: int) -> np.ndarray:
    """Return an array with padding behind it up to `rows` rows."""
    if len(array) == rows:
        return array
    more = np.empty((rows - len(array), *array.shape[1:]), array.dtype)
    more[...] = padding_value(shown_dtype(array.dtype))
    return np.concatenate([array, more])


def _table(lengths: np.ndarray, has_final: np.ndarray, reason: np.ndarray) -> Episodes:
    rows = lengths + has_final
    start = np.cumsum(rows) - rows
    yes = np.ones(len(lengths), bool)
    number = np.arange(len(lengths))
    return Episodes(number, np.zeros_like(number), start, lengths, start, reason, yes, yes, yes, has_final)


def _reasons(parsed: list[_Episode], given: Sequence[str] | str | None) -> np.ndarray:
    """Return the number of each episode's end reason: as given, or else by the flags of its last step."""
    numbers = {str(reason): number for number, reason in enumerate(REASONS)}
    if given is not None:
        texts = [given] * len(parsed) if isinstance(given, str) else [str(text) for text in given]
        if len(texts) != len(parsed):
            raise ValueError(f"end_reason has {len(texts)} entries for {len(parsed)} episodes")
        for text in texts:
            check_option("end_reason", text, EndReason)
        raise_all(_disagreements(parsed, texts), "end_reason= does not agree with the flags")
        return np.array([numbers[text] for text in texts], np.int8)
    flags = [flag for flag in FLAG_SLOTS if flag in parsed[0]]
    if not flags:
        return np.full(len(parsed), REASON_DONE, np.int8)
    implied = {names.TERMINATED: names.TRUNCATED, names.TRUNCATED: names.TERMINATED}
    out = []
    for episode in parsed:
        hits = [flag for flag in flags if np.asarray(episode[flag][-1]).astype(bool).any()]
        if hits == [names.DONE] and len(flags) == 2:
            hits = [implied[flags[0]]]  # with done and one of the two others, the third follows
        out.append(max((numbers[flag] for flag in hits), default=REASON_CUT))
    return np.array(out, np.int8)


def _disagreements(parsed: list[_Episode], reasons: list[str]) -> list[str]:
    """Return where a flag of the last step is set that an end reason rules out, or its own is not."""
    problems = []
    for number, (episode, reason) in enumerate(zip(parsed, reasons, strict=True)):
        for flag in FLAG_SLOTS:
            if flag not in episode:
                continue
            is_set = bool(np.asarray(episode[flag][-1]).astype(bool).any())
            if (is_set and flag not in MAY_BE_SET[reason]) or (not is_set and flag == reason):
                state = "set" if is_set else "not set"
                problems.append(f"episode {number}: {reason!r}, but {flag!r} is {state} at its last step")
    return problems


def _per_episode(name: str, values: Sequence[int] | None, count: int) -> np.ndarray:
    if values is None:
        return np.zeros(count, np.int64)
    array = np.asarray(values)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}; expected {count} whole numbers")
    return array.astype(np.int64)


def _same_dims(fields: Sequence[Field], observation: str | None) -> dict[str, str]:
    out = {}
    for field in fields:
        for following in STANDARD_NAMES["next_observation"]:
            if observation and under(following, [field.name]):
                out[field.name] = observation + field.name[len(following) :]
    return out
