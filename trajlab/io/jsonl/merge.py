"""Episodes of several files put together: their specs made one, and gaps filled with padding."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from trajlab import names
from trajlab.io.jsonl.parse import MAX_STEPS, Parsed
from trajlab.io.jsonl.specs import Spec
from trajlab.padding import padding_value

MAX_FILLED = 2**28
"""Bytes of padding that are made for values that files do not have, on the word of a file alone."""


@dataclasses.dataclass(frozen=True)
class Merged:
    """Episodes that fit together.

    Attributes
    ----------
    episodes : list of Parsed
    specs : mapping of str to Spec
    labels : array (time,) int64
        In the order in which they were.
    attrs : mapping
        Of the Dataset: those of the last file, whose counts of rows are the newest.
    """

    episodes: list[Parsed]
    specs: Mapping[str, Spec]
    labels: np.ndarray
    attrs: Mapping[str, Any]

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """Number of steps of each episode, (episode,) int64."""
        return np.array([episode.count for episode in self.episodes], np.int64)

    @functools.cached_property
    def ranks(self) -> np.ndarray:
        """Place of each label of `time` among them all, (time,) int64."""
        return np.argsort(np.argsort(self.labels))

    @property
    def is_from_zero(self) -> bool:
        """Whether the labels are 0, 1, 2, ..."""
        return bool((self.labels == np.arange(len(self.labels))).all())

    def missing(self, name: str) -> np.ndarray:
        """Return where an optional variable over episode and time has no value, (M,) bool."""
        return np.concatenate([one.missing.get(name, np.ones(one.count, bool)) for one in self.episodes])

    def rows(self, name: str) -> np.ndarray:
        """Return a variable at all steps of all episodes, (M, ...)."""
        spec = self.specs[name]
        held = [one.steps[name].astype(spec.dtype, copy=False) for one in self.episodes if name in one.steps]
        values = np.concatenate([np.empty((0, *spec.shape), spec.dtype), *held])
        if not spec.is_optional:
            return values
        out = self._filled(int(self.counts.sum()), name)
        out[~self.missing(name)] = values
        return out

    def per_episode(self, name: str) -> np.ndarray:
        """Return a variable for all episodes, (episode, ...)."""
        spec = self.specs[name]
        there = [place for place, one in enumerate(self.episodes) if name in one.values]
        if len(there) == len(self.episodes):
            out = np.empty((len(there), *spec.shape), spec.dtype)
        else:
            out = self._filled(len(self.episodes), name)
        for place in there:
            out[place] = self.episodes[place].values[name]
        return out

    def _filled(self, count: int, name: str) -> np.ndarray:
        spec = self.specs[name]
        size = count * int(np.prod([float(n) for n in spec.shape])) * spec.dtype.itemsize
        held = sum(one.path.stat().st_size for one in self.episodes)
        if size > max(MAX_FILLED, 64 * held):
            where = f"{self.episodes[0].path}, line 1"
            raise ValueError(f"{where}: {name!r} would be {size} bytes of padding, from files of {held} bytes")
        return np.full((count, *spec.shape), missing_value(spec.dtype), spec.dtype)


def missing_value(dtype: np.dtype) -> Any:
    """Return what stands where a value is missing."""
    return {"O": np.nan, "T": ""}[dtype.kind] if dtype.kind in "OT" else padding_value(dtype)


def merge(episodes: list[Parsed]) -> Merged:
    """Return episodes as one whole, in the order of their numbers.

    Raises
    ------
    ValueError
        When two have the same number, or other variables, dtypes, shapes or labels of `time`.
    """
    episodes = sorted(episodes, key=lambda one: one.number)
    for before, one in itertools.pairwise(episodes):
        if before.number == one.number:
            raise ValueError(f"{one.path}, line 1: 'episode' is {one.number}, as in {before.path}")
    specs: dict[str, Spec] = dict(episodes[0].specs)
    for one in episodes[1:]:
        if one.specs is not episodes[0].specs:
            specs = _joined(specs, one, episodes[0])
    attrs = episodes[-1].attrs
    return Merged(episodes, specs, _labels(episodes), attrs)


def _joined(specs: dict[str, Spec], one: Parsed, first: Parsed) -> dict[str, Spec]:
    out = {}
    for name in dict.fromkeys([*specs, *one.specs]):
        ours, theirs = specs.get(name), one.specs.get(name)
        if ours is None or theirs is None:
            only = ours or theirs
            assert only is not None
            if not (only.is_optional or only.stands == "final"):
                raise ValueError(_differs(name, one, first, "it is in one of the files only"))
            out[name] = only
        else:
            out[name] = _one_spec(name, ours, theirs, one, first)
    return out


def _one_spec(name: str, ours: Spec, theirs: Spec, one: Parsed, first: Parsed) -> Spec:
    """Return the spec of a variable in all files: that of the last, with the wider of two dtypes."""
    if ours == theirs:
        return theirs
    for what in ("dims", "shape", "stands", "is_coord", "is_optional", "values"):
        a, b = getattr(ours, what), getattr(theirs, what)
        if a != b and not (what == "stands" and {a, b} == {"step", "before"}):
            raise ValueError(_differs(name, one, first, f"its {what} are {str(b)[:60]} and {str(a)[:60]}"))
    if ours.dtype.kind != theirs.dtype.kind and not ours.is_optional:
        raise ValueError(_differs(name, one, first, f"it has dtype {theirs.dtype} and {ours.dtype}"))
    try:
        return dataclasses.replace(theirs, dtype=np.promote_types(ours.dtype, theirs.dtype))
    except TypeError as error:
        raise ValueError(_differs(name, one, first, str(error))) from None


def _differs(name: str, one: Parsed, first: Parsed, how: str) -> str:
    return (
        f"{one.path}, line 1: {name!r} does not fit {first.path}: {how}. Read files that differ one by one, or keep "
        "recordings of different kinds in directories of their own"
    )


def _labels(episodes: list[Parsed]) -> np.ndarray:
    """Return the labels of `time` of all episodes: as given, where all files give the same, else in ascending order."""
    given = [_own_labels(one) for one in episodes]
    if all(np.array_equal(labels, given[0]) for labels in given):
        return given[0]
    joined = np.unique(np.concatenate(given))
    if len(joined) > max(MAX_STEPS, sum(one.count for one in episodes)):
        raise ValueError(
            f"{episodes[0].path}, line 1: 'time' of all files has {len(joined)} labels; not so many are read"
        )
    for one in episodes:
        count = int((joined < one.values.get(names.LENGTH, 0)).sum())
        if count != one.count:
            raise ValueError(
                f"{one.path}, line 1: 'time' leaves out steps that other files have ({one.count} of {count} are "
                "there); read it by itself"
            )
    return joined


def _own_labels(one: Parsed) -> np.ndarray:
    return np.arange(one.count) if one.labels is None else one.labels
