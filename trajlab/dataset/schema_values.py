"""What only the values show: the mask, the padding and the flags, read a slab of episodes at a time."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import xarray as xr

from trajlab import names
from trajlab.capture.convention import FLAG_SLOTS
from trajlab.dataset.fields import as_text, component_count, field_names, final_fields, has_own_name, is_as_recorded
from trajlab.dataset.lazy import READ_CELLS
from trajlab.padding import padding_value, shown_as

MAY_BE_SET = {
    names.TERMINATED: {names.TERMINATED, names.TRUNCATED, names.DONE},
    names.TRUNCATED: {names.TRUNCATED, names.DONE},
    names.DONE: {names.DONE},
    names.CUT: set[str](),
}
"""End reason to the flags that its last transition may carry; it must carry the one of the reason's own name."""


_LOUD = "fcimM"
"""Kinds of dtypes whose padding is hardly ever a value that was recorded."""


def deep_problems(ds: xr.Dataset) -> list[str]:
    """Return what the values of `mask`, the fields and the final observations have wrong."""
    flags = _flag_fields(ds)
    problems = _mask_problems(ds)
    for name in [*field_names(ds), names.ITERATION]:
        if name in ds.data_vars:
            problems += _field_problems(ds, name, flags.get(name))
    return problems + _final_problems(ds) + _iteration_problems(ds)


def _final_problems(ds: xr.Dataset) -> list[str]:
    """Return what is wrong with the final observations: values where none is known, none where one is.

    A whole observation of NaN, after which an episode terminated, may have been recorded so.
    """
    problems = []
    known, reason = ds[names.FINAL_KNOWN].values, as_text(ds[names.END_REASON].values)
    for name in final_fields(ds):
        variable = ds.variables[name]
        if not is_as_recorded(variable, name):
            continue
        values = variable.values
        holds = _not_padding(values, variable)
        wrong = holds & ~known.reshape(-1, *[1] * (holds.ndim - 1))
        problems += _report(ds, name, np.argwhere(wrong)[:, :1], "unknown final values")
        lacking = known & ~holds.reshape(len(known), holds[:1].size).any(axis=1) & (holds[:1].size > 0)
        if values.dtype.kind not in "im":
            lacking &= reason != names.TERMINATED
        if values.dtype.kind in _LOUD and lacking.any():
            numbers = ds[names.EPISODE].values[lacking]
            problems.append(
                f"'final_known' is True in {len(numbers)} episodes, first in episode {numbers[0]}, where {name!r} "
                "holds nothing but padding"
            )
    return problems


def _iteration_problems(ds: xr.Dataset) -> list[str]:
    """Return whether `start_iteration` differs from the iteration of the first transition, where that is there."""
    first = np.flatnonzero(ds[names.TIME].values == 0)
    if names.ITERATION not in ds.data_vars or not len(first):
        return []
    variable = ds.variables[names.ITERATION]
    if variable.dims != (names.EPISODE, names.TIME) or not is_as_recorded(variable, names.ITERATION):
        return []
    given, found = ds[names.START_ITERATION].values, variable[:, int(first[0])].values
    wrong = np.flatnonzero((given != found) & (ds[names.LENGTH].values > 0))
    if not len(wrong):
        return []
    place = wrong[0]
    return [
        f"'start_iteration' is not the 'iteration' of the first transition in {len(wrong)} episodes, first in episode "
        f"{ds[names.EPISODE].values[place]}: {given[place]}, not {found[place]}"
    ]


def _slabs(ds: xr.Dataset, width: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slabs of episodes, each with its mask (episode, time) as `length` gives it."""
    length, time = ds[names.LENGTH].values, ds[names.TIME].values
    step = max(1, READ_CELLS // max(len(time) * width, 1))
    for start in range(0, len(length), step):
        here = slice(start, start + step)
        yield here, time < length[here, np.newaxis]


def _mask_problems(ds: xr.Dataset) -> list[str]:
    mask = ds.variables[names.MASK]
    for here, expected in _slabs(ds):
        wrong = np.argwhere(mask[here].values != expected)
        if len(wrong):
            episode, time = _labels(ds, wrong[0] + (here.start, 0))
            return [f"'mask' is not `time < length`, first at episode {episode}, time {time}"]
    return []


def _field_problems(ds: xr.Dataset, name: str, flag: str | None) -> list[str]:
    """Read one field and return what is wrong with its padding and, where it is a flag, its ends."""
    variable = ds.variables[name]
    is_padded = is_as_recorded(variable, name)
    wrong_padding, wrong_flag = [], []
    width = component_count(variable)
    for here, mask in _slabs(ds, width):
        if flag is None and not is_padded:
            return []
        values = variable[here].values
        offset = np.array([here.start, 0])
        if is_padded:
            wrong = _not_padding(values, variable).reshape(*mask.shape, width).any(axis=-1) & ~mask
            wrong_padding.append(np.argwhere(wrong) + offset)
        if flag is not None:
            wrong_flag.append(np.argwhere(_flag_is_wrong(ds, here, values, mask, flag)) + offset)
    problems = _report(ds, name, _joined(wrong_padding), "padding")
    places = _joined(wrong_flag)
    if len(places):
        episode, time = _labels(ds, places[0])
        reason = ds[names.END_REASON].values[places[0][0]]
        problems.append(
            f"the flag {name!r} does not agree with 'end_reason' in {len(places)} cells, first at episode {episode} "
            f"({reason}), time {time}"
        )
    return problems


def _joined(places: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(places) if places else np.zeros((0, 2), int)


def _not_padding(values: np.ndarray, variable: xr.Variable) -> np.ndarray:
    """Return where values are not the padding of the recorded dtype; NaN passes for a missing string, as files have."""
    shown = shown_as(variable.attrs[names.RECORDED_DTYPE_ATTR])
    assert shown is not None
    expected = padding_value(shown)
    if shown.kind in "fcmM":
        return ~pd.isna(values)
    return (values != expected) & ~pd.isna(values) if values.dtype.kind == "O" else values != expected


def _report(ds: xr.Dataset, name: str, places: np.ndarray, what: str) -> list[str]:
    """Say how many cells hold something else than padding; `places` are positions along episode, or also time."""
    if not len(places):
        return []
    where = f"episode {ds[names.EPISODE].values[places[0][0]]}"
    if len(places[0]) > 1:
        where = "episode {}, time {}".format(*_labels(ds, places[0]))
    padding = ds.variables[name].attrs.get(names.PADDING_ATTR)
    return [f"{name!r} holds other values than {padding!r} in {len(places)} cells of {what}, first at {where}"]


def _labels(ds: xr.Dataset, place: np.ndarray) -> tuple[int, int]:
    """Return the labels of a cell, given as positions along episode and time."""
    episode, time = place
    return int(ds[names.EPISODE].values[episode]), int(ds[names.TIME].values[time])


def _flag_fields(ds: xr.Dataset) -> dict[str, str]:
    """Return the fields that are flags and stand on their own row, each with the flag it is."""
    if "flags=previous_row" in str(ds.attrs.get(names.CONVENTION_ATTR, "")):
        return {}
    fields = [name for name in field_names(ds) if ds[name].ndim == 2 and has_own_name(ds.variables[name], name)]
    roles = {name: ds.variables[name].attrs.get(names.ROLE_ATTR) for name in fields}
    flags = {name: role for name, role in roles.items() if role in FLAG_SLOTS}
    return {name: role for name, role in flags.items() if list(flags.values()).count(role) == 1}


def _flag_is_wrong(ds: xr.Dataset, here: slice, values: np.ndarray, mask: np.ndarray, flag: str) -> np.ndarray:
    """Return the cells (episode, time) in which a flag is set before the end, or not as the end reason says."""
    reason = as_text(ds[names.END_REASON].values[here])
    is_last = ds[names.TIME].values == ds[names.LENGTH].values[here, np.newaxis] - 1
    is_set = (values != 0) & mask
    may = np.array([flag in MAY_BE_SET[r] for r in reason], bool)[:, np.newaxis]
    must = (reason == flag)[:, np.newaxis]
    return (is_set & ~(is_last & may)) | (~is_set & is_last & must)
