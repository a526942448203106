"""Several recordings put together as one Dataset."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.concat_checks import agreement_problems, common_attrs, common_dtype
from trajlab.dataset.concat_runs import check_labels, run_labels
from trajlab.dataset.fields import padding_of
from trajlab.dataset.flatten import Flattener
from trajlab.dataset.joined import Frame, JoinedArray
from trajlab.dataset.lazy import is_in_memory, lazy_variable
from trajlab.dataset.schema import find_problems
from trajlab.dataset.source import MaskArray
from trajlab.errors import raise_all

_SUMMED = (
    names.ROWS_SEEN_ATTR,
    names.ROWS_KEPT_ATTR,
    names.ROWS_DROPPED_ATTR,
    names.ROWS_EVICTED_ATTR,
    names.CELLS_UNALIGNED_ATTR,
)
_JOINED = (names.CONVENTION_ATTR, names.VERSION_ATTR)


def concat(
    datasets: Iterable[xr.Dataset] | Mapping[Any, xr.Dataset], *, run: Sequence[Any] | None = None
) -> xr.Dataset:
    """Put recordings one behind the other along `episode`.

    Nothing is fetched, and the Datasets given, which may be lazy, loaded or open from a file, stay as they
    are. dtypes and padding are kept, where a plain `xarray.concat` turns integers and masks to floats.

    Parameters
    ----------
    datasets : iterable of Dataset, or mapping of label to Dataset
        With the same fields, dims, dtypes and labels. They may differ in their numbers of episodes and steps.
    run : sequence, optional
        A label for each, text or number; equal ones are one run. By default 0, 1, ..., or the labels of a
        coordinate `run` that they have already: kept where they differ, renumbered where they are integers.
        A Dataset of several runs that is given a label gets ``"label/old label"``. Text and numbers together
        become text.

    Returns
    -------
    Dataset
        Lazy. Episodes are numbered anew from 0; the coordinate `run` (episode) tells where each comes from, and
        ``by="run"`` compares them. A Dataset without an episode leaves no run behind. Attributes that count rows
        are summed.

    Raises
    ------
    ValueError
        Listing every way in which the Datasets are not valid or do not fit together: fields, dims, dtypes,
        labels, units, steps that were sliced away. When the labels are not as many as the Datasets, one is NaN,
        or two that differ would be one run, as 1 and ``"1"``.
    TypeError
        When a label is neither text nor a number, or one Dataset is given instead of a list.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> a = tl.from_episodes([{"reward": np.array([1.0, 0.0])}, {"reward": np.array([2.0])}])
    >>> b = tl.from_episodes([{"reward": np.array([3.0, 4.0, 5.0])}])
    >>> ds = tl.concat({"before": a, "after": b})
    >>> ds["run"].values.tolist(), ds["episode"].values.tolist()
    (['before', 'before', 'after'], [0, 1, 2])
    """
    if isinstance(datasets, xr.Dataset):  # type: ignore[unreachable]
        raise TypeError("expected several Datasets, as a list: concat([a, b])")
    if isinstance(datasets, Mapping):
        if run is not None:
            raise ValueError("run= was given with a mapping, whose keys are the labels; give one of them")
        datasets, run = list(datasets.values()), list(datasets)
    parts = [*datasets]
    labels = _check(parts, run)
    return _joined(parts, run_labels(parts, labels))


def _check(parts: list[xr.Dataset], run: Any) -> list[Any] | None:
    """Return the labels given; raise ValueError with every reason why Datasets cannot be put together."""
    if not parts:
        raise ValueError("no Dataset to put together; give at least one")
    labels = check_labels(run, len(parts))
    problems = [f"dataset {number}: {text}" for number, ds in enumerate(parts) for text in find_problems(ds)]
    raise_all(problems, "these cannot be put together")
    raise_all(agreement_problems(_with_episodes(parts)), "these Datasets do not fit together")
    return labels


def _with_episodes(parts: list[xr.Dataset]) -> dict[int, xr.Dataset]:
    """Return the Datasets that hold episodes, by their numbers; the first where none does."""
    holding = {number: ds for number, ds in enumerate(parts) if ds.sizes[names.EPISODE]}
    return holding or {0: parts[0]}


# Variables ------------------------------------------------------------------------------------------------------------


def _joined(parts: list[xr.Dataset], runs: np.ndarray) -> xr.Dataset:
    holding = [*_with_episodes(parts).values()]
    time = np.unique(np.concatenate([ds[names.TIME].values for ds in holding]))
    length = np.concatenate([ds[names.LENGTH].values for ds in holding])
    sizes, places = [ds.sizes[names.EPISODE] for ds in holding], [_places(ds, time) for ds in holding]
    flat = Flattener(Frame(tuple(sizes), tuple(places), length, time))
    joined = {
        name: _variable(name, holding, flat, time)
        for name in holding[0].variables
        if name not in (names.EPISODE, names.TIME, names.MASK, names.RUN)
    }
    coords = {
        names.EPISODE: (names.EPISODE, np.arange(len(length)), holding[0][names.EPISODE].attrs),
        names.TIME: (names.TIME, time, holding[0][names.TIME].attrs),
        **{name: joined[name] for name in holding[0].coords if name in joined},
        names.MASK: _mask(holding, flat, time, length),
        names.RUN: (names.EPISODE, runs, {"long_name": "run"}),
    }
    data = {name: joined[name] for name in holding[0].data_vars}
    return xr.Dataset(data, coords, _attrs(parts))


def _variable(name: Any, parts: list[xr.Dataset], flat: Flattener, time: np.ndarray) -> xr.Variable:
    """Return one variable of the whole: lazy where it has more than the dim `episode`."""
    variables = [ds.variables[name].transpose(names.EPISODE, names.TIME, ..., missing_dims="ignore") for ds in parts]
    first, attrs = variables[0], common_attrs(variables)
    if names.EPISODE not in first.dims:
        return _along_time(variables, parts, time) if names.TIME in first.dims else first.copy(deep=False)
    dtype = common_dtype(variables)
    assert dtype is not None
    if first.ndim == 1 and all(map(is_in_memory, variables)):
        return xr.Variable(first.dims, np.concatenate([v.values.astype(dtype) for v in variables]), attrs)
    lead = 2 if names.TIME in first.dims else 1
    frame, pieces = flat(variables, lead)
    shape = (sum(frame.sizes), *([len(time)] * (lead - 1)), *first.shape[lead:])
    array = JoinedArray(frame, pieces, shape, dtype, padding_of(first), lead=lead)
    return lazy_variable(tuple(map(str, first.dims)), array, attrs)


def _places(ds: xr.Dataset, time: np.ndarray) -> np.ndarray | None:
    """Return where each label of `time` stands in a Dataset, -1 where it does not; None where all are the same."""
    if np.array_equal(ds[names.TIME].values, time):
        return None
    return ds.indexes[names.TIME].get_indexer(time)


def _along_time(variables: list[xr.Variable], parts: list[xr.Dataset], time: np.ndarray) -> xr.Variable:
    """Return a variable over `time` alone, each label's value from the first that has it."""
    first = variables[0].transpose(names.TIME, ...)
    values = np.empty((len(time), *first.shape[1:]), common_dtype(variables))
    for variable, ds in reversed(list(zip(variables, parts, strict=True))):
        values[np.searchsorted(time, ds[names.TIME].values)] = variable.transpose(names.TIME, ...).values
    return xr.Variable(first.dims, values, common_attrs(variables))


def _mask(parts: list[xr.Dataset], flat: Flattener, time: np.ndarray, length: np.ndarray) -> xr.Variable:
    if np.array_equal(time, np.arange(len(time))):
        attrs = common_attrs([ds.variables[names.MASK] for ds in parts])
        return lazy_variable((names.EPISODE, names.TIME), MaskArray(length, len(time)), attrs)
    return _variable(names.MASK, parts, flat, time)


def _attrs(parts: list[xr.Dataset]) -> dict[str, Any]:
    """Sum what counts rows, list what differs in how the recordings were made, keep what else is equal."""
    attrs: dict[str, Any] = {}
    for key in dict.fromkeys(key for ds in parts for key in ds.attrs):
        values = [ds.attrs[key] for ds in parts if key in ds.attrs]
        if key in _SUMMED:
            attrs[key] = int(sum(values))
        elif key in _JOINED:
            attrs[key] = " | ".join(dict.fromkeys(map(str, values)))
        elif all(np.array_equal(value, values[0]) for value in values):
            attrs[key] = values[0]
    return attrs
