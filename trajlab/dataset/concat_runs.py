"""Which run each episode of several Datasets is from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.fields import as_text


def check_labels(run: Any, count: int) -> list[Any] | None:
    """Return the labels that `run` gives to `count` Datasets, or None where it is None.

    Raises
    ------
    ValueError
        When they are not one for each Dataset in order, one is NaN, or two that differ would be the same, as 1
        and ``"1"`` would.
    TypeError
        When one is neither text nor a number.
    """
    if run is None:
        return None
    given = np.asarray(run) if hasattr(run, "__array__") and np.ndim(run) else run
    has_order = isinstance(given, Iterable) and not isinstance(given, str | Mapping | set | frozenset)
    labels = [*given] if has_order else None
    if labels is None or len(labels) != count:
        raise ValueError(f"run={run!r}; expected a list of {count} labels, one for each Dataset")
    for label in labels:
        if not isinstance(label, str | int | float | np.integer | np.floating | np.bool_):
            raise TypeError(f"run label {label!r} is a {type(label).__name__}; expected text or a number")
        if label != label:
            raise ValueError("run label nan names no run; expected text or a number")
    array = np.asarray(labels)
    if array.dtype.kind not in "biufU" or len(np.unique(array)) < len(set(labels)):
        raise ValueError(f"run={labels!r} cannot be told apart as an array of {array.dtype}; give them all as text")
    return labels


def run_labels(parts: Sequence[xr.Dataset], run: Sequence[Any] | None) -> np.ndarray:
    """Return the label (episode,) of each episode: what `concat` says of its argument `run`.

    Raises
    ------
    ValueError
        When the Datasets have labels that do not tell them apart, and `run` gives none.
    """
    old = [_old_runs(ds) for ds in parts]
    sizes = [ds.sizes[names.EPISODE] for ds in parts]
    if run is not None:
        return np.concatenate(_given(np.asarray(run), old, sizes))
    if all(before is None for before in old):
        return np.repeat(np.arange(len(parts)), sizes)
    known = [before for before, size in zip(old, sizes, strict=True) if before is not None and size]
    if len(known) == np.count_nonzero(sizes) and _differ(known):
        return np.concatenate(known) if known else np.zeros(0, np.int64)
    if all(before.dtype.kind in "iu" for before in known):
        return np.concatenate(_renumbered(old, sizes))
    raise ValueError(
        "some of these have a coordinate 'run' with names, and the others none or the same ones; "
        f"give {len(parts)} labels with run=[...]"
    )


def _old_runs(ds: xr.Dataset) -> np.ndarray | None:
    """Return the labels of runs that a Dataset has already, one per episode."""
    if names.RUN not in ds.coords:
        return None
    labels = np.asarray(ds[names.RUN].broadcast_like(ds[names.LENGTH]).values)
    return as_text(labels) if labels.dtype.kind in "OT" else labels


def _differ(labels: Sequence[np.ndarray]) -> bool:
    """Say whether no two arrays of labels share one, in the dtype that holds them all."""
    together = np.concatenate(labels) if labels else np.zeros(0)
    return len(np.unique(together)) == sum(len(np.unique(some)) for some in labels)


def _given(labels: np.ndarray, old: Sequence[np.ndarray | None], sizes: Sequence[int]) -> list[np.ndarray]:
    """Return the label of each Dataset for all of its episodes; before the old ones where it has several."""
    return [
        np.full(size, label) if before is None or len(np.unique(before)) < 2
        else np.array([f"{label}/{o}" for o in before])
        for label, before, size in zip(labels, old, sizes, strict=True)
    ]  # fmt: skip


def _renumbered(old: Sequence[np.ndarray | None], sizes: Sequence[int]) -> list[np.ndarray]:
    """Give each run of each Dataset the next number."""
    labels, start = [], 0
    for before, size in zip(old, sizes, strict=True):
        distinct, inverse = np.unique(np.zeros(size, int) if before is None else before, return_inverse=True)
        labels.append(start + inverse.astype(np.int64))
        start += max(len(distinct), 1)
    return labels
