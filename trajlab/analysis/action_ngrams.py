"""Which sequences of actions are the most frequent."""

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from trajlab.analysis.coded_rows import CodedBatch, CodedRows, reduce_coded
from trajlab.analysis.common import field_of, inner_dims, made_by, require_free_dims
from trajlab.analysis.discrete import require_discrete
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups, make_groups
from trajlab.analysis.kernels.ngrams import LIMIT, Coder, Digits, Halves, whole_sequences
from trajlab.analysis.kernels.numbers import NumberCounter
from trajlab.analysis.labels import LabelsArgument, check_labels, on_labels
from trajlab.dataset.cells import Cells
from trajlab.errors import warn_user, whole_number
from trajlab.names import COUNT, LABEL, NGRAM, NGRAM_NAMES, NUM_NAN_ATTR, SHARE, N


def action_ngrams(
    ds: xr.Dataset,
    field: str = "action",
    *,
    n: int | Sequence[int] = 2,
    top: int | None = 20,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
) -> pd.DataFrame:
    """Return the most frequent n-grams: sequences of `n` actions in consecutive steps of one episode.

    An episode of `L` steps has `max(L - n + 1, 0)` of them, which overlap. After a slice of `time` only neighbouring
    steps are consecutive. Where several agents share an environment, an agent must take part (`alive`) in all of them.

    Parameters
    ----------
    ds : Dataset
    field : str
        The action, or any other field of integers, bools or text; each of its components is counted by itself.
    n : int or sequence of int
        How many actions, at least 1; several numbers for a sweep.
    top : int or None
        How many n-grams to return of each group, component and `n`; None for all.
    by, groups
        As in `action_histogram`. Where `by` differs from step to step, the first action of an n-gram decides.
    labels : sequence or mapping, optional
        As in `action_histogram`.

    Returns
    -------
    pandas.DataFrame
        One row per n-gram, the most frequent of each group, component and `n` first; those of equal count in the order
        of their values. Columns: the group, called as `by`; one for each of the field's own dims, called so; ``n``;
        ``ngram``, a tuple of values; ``label``, a tuple of texts, where there are `labels`; ``count``, int64; and
        ``share``, float64, the part of all n-grams of that group, component and `n`. A NaN is in no n-gram: a warning
        and `attrs`, which tell how the table was made, say how many there are (`num_nan`).

    Raises
    ------
    KeyError
        When there is no such field or coordinate.
    TypeError
        When `n` or `top` is no whole number, or `labels` is a single text.
    ValueError
        When `n` or `top` is below 1, the field is continuous or has more than 1,024 distinct values, `labels` or
        `groups` do not fit it, or a dim of it has a name that the result uses itself.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"action": np.array([0, 1, 1, 0, 1])}, {"action": np.array([1, 0])}])
    >>> print(tl.action_ngrams(ds, labels=["left", "right"])[["label", "count", "share"]].to_string(index=False))
             label  count  share
     (left, right)      2    0.4
     (right, left)      2    0.4
    (right, right)      1    0.2
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    return grouped_ngrams(ds, name, make_groups(ds, by, groups), n, top, labels)[0]


def grouped_ngrams(
    ds: xr.Dataset, name: str, groups: Groups, n: Any, top: Any, labels: Any
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return `action_ngrams` of the field called `name` for groups that were made already, and where each row belongs.

    That is the place ``group * components + component``.
    """
    longest = int(Cells.of(ds).counts.max(initial=0))
    lengths, names = [length for length in check_lengths(n) if length <= longest], check_labels(labels)
    most = None if top is None else whole_number("top", top)
    kind = require_discrete(ds, name, "action_ngrams")
    require_free_dims(ds, name, (*groups.dims, *NGRAM_NAMES), "action_ngrams")
    reduce = functools.partial(_count, lengths=lengths, most=most)
    rows, (found, num_nan) = reduce_coded(ds, name, groups, kind, "action_ngrams", reduce)
    if num_nan:
        warn_user(f"action_ngrams: {num_nan} values of {name!r} are NaN, and in no n-gram; attrs['num_nan'] says so")
    texts = None
    if names is not None:
        on_labels(rows.values, np.zeros((1, len(rows.values)), np.int64), names, name)
        texts = np.array([names[value] for value in rows.values.tolist()], object)
    place = np.repeat(np.array([one.place for one in found], np.intp), [len(one.counts) for one in found])
    table = _table(ds, name, groups, place, found, rows.values, texts)
    table.attrs = made_by(ds, "action_ngrams", name) | {NUM_NAN_ATTR: num_nan}
    return table, place


def check_lengths(n: Any) -> list[int]:
    """Return the lengths that `n` asks for, each once; raise TypeError or ValueError where it is none."""
    several = isinstance(n, Iterable) and not isinstance(n, str | bytes) and getattr(n, "ndim", 1) > 0
    lengths = list(dict.fromkeys(whole_number("n", one) for one in (n if several else [n])))
    if not lengths:
        raise ValueError(f"n={n!r}; expected a whole number, at least 1, or several of them")
    return lengths


def _coder(rows: CodedRows, n: int) -> Coder:
    """Return how sequences of `n` codes are written; a pass over all rows where digits do not do."""
    digits = Digits(n, len(rows.values))
    if digits.size * max(rows.components * rows.groups.size, 1) <= LIMIT:
        return digits
    half = _coder(rows, -(-n // 2))
    counter = NumberCounter(half.size)
    for batch in rows.batches(half.n):
        numbers, whole, _ = _sequences(batch, half)
        counter.add(numbers, whole)
    return Halves(n, half, counter.result()[0])


def _sequences(batch: CodedBatch, coder: Coder) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the numbers (K, component) of sequences that end in rows not shared, which are whole, and their groups."""
    first = max(batch.shared - coder.n + 1, 0)
    numbers = coder.encode(batch.codes[first:])
    whole = whole_sequences(batch.present, batch.follows, coder.n)[first:]
    return numbers, whole, None if batch.group is None else batch.group[first : first + len(numbers)]


class _Found(NamedTuple):
    """The most frequent sequences of one group and component (`place`): codes (K, n), counts (K,); and of how many."""

    place: int
    codes: np.ndarray
    counts: np.ndarray
    total: int


def _count(rows: CodedRows, lengths: Sequence[int], most: int | None) -> tuple[list[_Found], int]:
    """Return the `most` frequent sequences of each group, component and length, in this order; and how many are NaN."""
    components, places = rows.components, rows.components * rows.groups.size
    coders = [_coder(rows, n) for n in lengths]
    counters = [NumberCounter(coder.size * places) for coder in coders]
    num_nan = 0
    for batch in rows.batches(max(lengths, default=1)):
        num_nan += batch.num_nan
        for coder, counter in zip(coders, counters, strict=True):
            numbers, whole, group = _sequences(batch, coder)
            if group is not None:
                numbers += (group * (components * coder.size))[:, np.newaxis]
                whole = whole & (group >= 0)[:, np.newaxis]
            if components > 1:
                numbers += np.arange(components) * coder.size
            counter.add(numbers, whole)
    found = []
    for coder, counter in zip(coders, counters, strict=True):
        numbers, counts = counter.result()
        edges = np.searchsorted(numbers, np.arange(places + 1) * coder.size)
        for place, (start, stop) in enumerate(itertools.pairwise(edges)):
            chosen = start + _most_frequent(counts[start:stop], most)
            codes = coder.decode(numbers[chosen] - place * coder.size)
            found.append(_Found(place, codes, counts[chosen], int(counts[start:stop].sum())))
    return sorted(found, key=lambda one: one.place), num_nan


def _most_frequent(counts: np.ndarray, most: int | None) -> np.ndarray:
    """Return the places of the largest counts, descending, equal ones in their order."""
    if most is None or most >= len(counts):
        return np.argsort(-counts, kind="stable")
    enough = np.flatnonzero(counts >= np.sort(counts)[-most])
    return enough[np.argsort(-counts[enough], kind="stable")][:most]


def _table(
    ds: xr.Dataset,
    name: str,
    groups: Groups,
    place: np.ndarray,
    found: Sequence[_Found],
    values: np.ndarray,
    texts: np.ndarray | None,
) -> pd.DataFrame:
    """Return what was found as rows of a table."""
    repeats = [len(one.counts) for one in found]
    dims, shape = inner_dims(ds, name), ds.variables[name].shape[2:]
    group, *inner = np.unravel_index(place, (groups.size, *shape)) if len(place) else [place] * (1 + len(shape))
    columns: dict[str, Any] = dict.fromkeys(groups.dims, groups.labels[group])
    for dim, where, size in zip(dims, inner, shape, strict=True):
        columns[dim] = (ds[dim].values if dim in ds.coords else np.arange(size))[where]
    columns[N] = np.repeat(np.array([one.codes.shape[1] for one in found], np.int64), repeats)
    columns[NGRAM] = _tuples(found, values)
    if texts is not None:
        columns[LABEL] = _tuples(found, texts)
    columns[COUNT] = np.concatenate([np.zeros(0, np.int64), *(one.counts for one in found)])
    columns[SHARE] = columns[COUNT] / np.repeat(np.array([one.total for one in found], np.int64), repeats)
    return pd.DataFrame(columns)


def _tuples(found: Sequence[_Found], values: np.ndarray) -> pd.Series:
    return pd.Series([tuple(row) for one in found for row in values[one.codes].tolist()], dtype=object)
