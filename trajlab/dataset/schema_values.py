"""What only the values show: the mask, the padding and the flags, read a slab of episodes at a time."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import xarray as xr

from trajlab import names
from trajlab.capture.convention import FLAG_SLOTS
from trajlab.dataset.fields import as_text, component_count, field_names, final_fields
from trajlab.dataset.lazy import READ_CELLS
from trajlab.padding import padding_value, shown_as

_MAY_BE_SET = {
    names.TERMINATED: {names.TERMINATED, names.TRUNCATED, names.DONE},
    names.TRUNCATED: {names.TRUNCATED, names.DONE},
    names.DONE: {names.DONE},
    names.CUT: set[str](),
}
"""End reason to the flags that its last transition may carry; it must carry the one of the reason's own name."""


def deep_problems(ds: xr.Dataset) -> list[str]:
    """Return what the values of `mask`, the fields and the final observations have wrong; all are read once."""
    flags = _flag_fields(ds)
    problems = _mask_problems(ds)
    for name in [*field_names(ds), names.ITERATION]:
        if name in ds.data_vars:
            problems += _field_problems(ds, name, flags.get(name))
    for name in final_fields(ds):
        variable, unknown = ds.variables[name], ~ds[names.FINAL_KNOWN].values
        if _is_padded(variable):
            wrong = _not_padding(variable[unknown].values, variable)
            problems += _report(ds, name, np.argwhere(wrong)[:, :1], np.flatnonzero(unknown), "unknown final values")
    return problems


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
    wrong_padding, wrong_flag = [], []
    width = component_count(variable)
    for here, mask in _slabs(ds, width):
        if flag is None and not _is_padded(variable):
            return []
        values = variable[here].values
        offset = np.array([here.start, 0])
        if _is_padded(variable):
            wrong = _not_padding(values, variable).reshape(*mask.shape, width).any(axis=-1) & ~mask
            wrong_padding.append(np.argwhere(wrong) + offset)
        if flag is not None:
            wrong_flag.append(np.argwhere(_flag_is_wrong(ds, here, values, mask, flag)) + offset)
    problems = _report(ds, name, _joined(wrong_padding), None, "padding")
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


def _is_padded(variable: xr.Variable) -> bool:
    """Say whether a variable is a recorded one, also where `where` changed its dtype, and not one a user made."""
    shown = shown_as(variable.attrs.get(names.RECORDED_DTYPE_ATTR, "?"))
    if shown is None:
        return False
    kind = variable.dtype.kind
    return kind == shown.kind or (kind in "fO" and shown.kind in "biu") or (kind in "OT" and shown.kind == "U")


def _not_padding(values: np.ndarray, variable: xr.Variable) -> np.ndarray:
    """Return where values are not the padding of the recorded dtype; NaN passes where `where` has put it."""
    shown = shown_as(variable.attrs[names.RECORDED_DTYPE_ATTR])
    assert shown is not None
    expected = padding_value(shown)
    if shown.kind in "fcmM":
        return ~pd.isna(values)
    return (values != expected) & ~pd.isna(values) if values.dtype.kind in "fO" else values != expected


def _report(ds: xr.Dataset, name: str, places: np.ndarray, episodes: np.ndarray | None, what: str) -> list[str]:
    if not len(places):
        return []
    first = places[0]
    if episodes is not None:
        where = f"episode {ds[names.EPISODE].values[episodes[first[0]]]}"
    else:
        where = "episode {}, time {}".format(*_labels(ds, first))
    padding = ds[name].attrs.get(names.PADDING_ATTR)
    return [f"{name!r} holds other values than {padding!r} in {len(places)} cells of {what}, first at {where}"]


def _labels(ds: xr.Dataset, place: np.ndarray) -> tuple[int, int]:
    """Return the labels of a cell, given as positions along episode and time."""
    episode, time = place
    return int(ds[names.EPISODE].values[episode]), int(ds[names.TIME].values[time])


def _flag_fields(ds: xr.Dataset) -> dict[str, str]:
    """Return the fields that are flags and stand on their own row, each with the flag it is."""
    if "flags=previous_row" in str(ds.attrs.get(names.CONVENTION_ATTR, "")):
        return {}
    roles = {name: ds[name].attrs.get(names.ROLE_ATTR) for name in field_names(ds) if ds[name].ndim == 2}
    flags = {name: role for name, role in roles.items() if role in FLAG_SLOTS}
    return {name: role for name, role in flags.items() if list(flags.values()).count(role) == 1}


def _flag_is_wrong(ds: xr.Dataset, here: slice, values: np.ndarray, mask: np.ndarray, flag: str) -> np.ndarray:
    """Return the cells (episode, time) in which a flag is set before the end, or not as the end reason says."""
    reason = as_text(ds[names.END_REASON].values[here])
    is_last = ds[names.TIME].values == ds[names.LENGTH].values[here, np.newaxis] - 1
    is_set = (values != 0) & mask
    may = np.array([flag in _MAY_BE_SET[r] for r in reason], bool)[:, np.newaxis]
    must = (reason == flag)[:, np.newaxis]
    return (is_set & ~(is_last & may)) | (~is_set & is_last & must)
