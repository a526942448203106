"""One episode without padding, and all transitions without padding."""

import operator
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import final_fields, final_names, is_per_transition, padding_of
from trajlab.dataset.flat_whole import read_flat
from trajlab.dataset.joined import Frame, JoinedArray
from trajlab.dataset.lazy import as_slice, is_in_memory, lazy_variable
from trajlab.dataset.schema import validate
from trajlab.errors import FriendlyKeyError, is_bool


def episode(ds: xr.Dataset, number: int, *, final: bool = False) -> xr.Dataset:
    """Return one episode, as long as it is.

    Parameters
    ----------
    ds : Dataset
        Dims ``episode`` and ``time``.
    number : int
        The episode's number: its label, not its position.
    final : bool
        Append the final observation as one more step to the fields it belongs to.

    Returns
    -------
    Dataset
        Over `time` and the fields' own dims, lazy where `ds` is; what is known of the episode (`length`,
        `env`, ...) are scalar coordinates. With `final`, the label of the last step is the episode's length;
        `mask` is False there, and fields that have no final value hold their padding: NaN, the smallest
        integer. The variables ``final_...`` are then gone.

    Raises
    ------
    KeyError
        When there is no such episode.
    TypeError
        When `number` is no integer.
    ValueError
        When `ds` is not valid; with `final`, where the final observation is not known, or the last step was
        sliced away.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 0.0])}, {"reward": np.array([2.0])}])
    >>> tl.episode(ds, 1)["reward"].values
    array([2.])
    """
    validate(ds)
    position = _position(ds, number)
    one = ds.isel({names.EPISODE: position})
    labels, length = one[names.TIME].values, int(one[names.LENGTH])
    there = np.flatnonzero(labels < length)
    one = one.isel({names.TIME: as_slice(there[np.argsort(labels[there], kind="stable")])})
    return _with_final(ds, one, position) if final else one


def _position(ds: xr.Dataset, number: Any) -> int:
    """Return the position of the episode with a number."""
    try:
        wanted = None if is_bool(number) else operator.index(number.item() if hasattr(number, "item") else number)
    except (TypeError, ValueError):
        wanted = None
    if wanted is None:
        raise TypeError(f"number={number!r}; expected the number of an episode, an integer")
    found = np.flatnonzero(ds[names.EPISODE].values == wanted)
    if len(found) != 1:
        raise unknown_episode(wanted, ds[names.EPISODE].values)
    return int(found[0])


def unknown_episode(wanted: int, numbers: np.ndarray) -> KeyError:
    """Return the KeyError for the number of an episode that is none of those of a Dataset."""
    return FriendlyKeyError(f"no episode {wanted}: {_available(numbers)}")


def _available(numbers: np.ndarray) -> str:
    """Say which episodes there are, with the gaps in their numbers."""
    if not len(numbers):
        return "the Dataset holds none"
    numbers = np.sort(numbers)
    text = f"the Dataset holds {len(numbers)}, numbered {numbers[0]} to {numbers[-1]}"
    before = np.flatnonzero(np.diff(numbers) > 1)
    gaps = [(int(numbers[i]) + 1, int(numbers[i + 1]) - 1) for i in before[:5]]
    if not gaps:
        return text
    more = ", ..." if len(before) > 5 else ""
    return f"{text} without {', '.join(str(a) if a == b else f'{a} to {b}' for a, b in gaps)}{more}"


def _with_final(ds: xr.Dataset, one: xr.Dataset, position: int) -> xr.Dataset:
    """Return an episode with its final observation behind the last step."""
    finals = {field: name for name, field in final_fields(ds).items()}
    _check_final(ds, one, finals)
    length = int(one[names.LENGTH])
    variables: dict[Any, Any] = {}
    for name, variable in one.variables.items():
        if variable.dims[:1] == (names.TIME,):
            final = ds.variables[finals[str(name)]][position : position + 1] if name in finals else None
            variables[name] = _appended(variable, final)
        elif name not in finals.values():
            variables[name] = variable
    time = np.append(one[names.TIME].values, length)
    variables[names.TIME] = xr.Variable(names.TIME, time, one[names.TIME].attrs)
    coords = {name: variables.pop(name) for name in one.coords}
    return xr.Dataset(variables, coords, one.attrs)


def _check_final(ds: xr.Dataset, one: xr.Dataset, finals: dict[str, str]) -> None:
    number, length = int(one[names.EPISODE]), int(one[names.LENGTH])
    known = ds[names.FINAL_KNOWN].values
    if not finals or not known.any():
        raise ValueError(
            f"the final observation of episode {number} is not known, nor that of any other (final_known is False): "
            "record the true next observation, or name it with Convention(final_observation=...)"
        )
    if not bool(one[names.FINAL_KNOWN]):
        raise ValueError(
            f"the final observation of episode {number}, which ended as {str(one[names.END_REASON].values)!r}, is not "
            f"known; it is for {known.sum()} of {len(known)} episodes: ds.isel(episode=ds.final_known.values)"
        )
    if one.sizes[names.TIME] < length:
        raise ValueError(
            f"steps of episode {number} are not in this Dataset: it holds {one.sizes[names.TIME]} of {length}; take "
            "the episode before slicing `time`"
        )


def _appended(variable: xr.Variable, final: xr.Variable | None) -> xr.Variable:
    """Return a variable over `time` with one more step: the final value, or padding."""
    shape = (len(variable) + 1, *variable.shape[1:])
    frame = Frame((len(variable), 1), (None, None))
    array = JoinedArray(frame, [variable, final], shape, variable.dtype, padding_of(variable), lead=1)
    joined = lazy_variable(tuple(map(str, variable.dims)), array, variable.attrs)
    return joined.load() if is_in_memory(variable) else joined


def transitions(ds: xr.Dataset) -> xr.Dataset:
    """Return all transitions over one dim, without padding.

    Safe for ``groupby`` and plain reductions, as there is no padding to leave out. The cost follows the
    transitions and not the padded shape; each field is fetched once, in slabs, and the result is in memory.

    Parameters
    ----------
    ds : Dataset
        Dims ``episode`` and ``time``; where `time` is sliced, the transitions that are left.

    Returns
    -------
    Dataset
        Dim ``transition`` in the order of `ds`' episodes, then time, and the fields' own dims; dtypes as in
        `ds`. The coordinates of `ds` (`length`, `env`, ...), `episode` and `time` themselves and `iteration` are
        coordinates over `transition`, none of them an index: ``.set_index(transition=("episode", "time"))``
        makes one. `mask` and the final observations are left out.

    Raises
    ------
    ValueError
        When `ds` is not valid.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 0.0])}, {"reward": np.array([2.0])}])
    >>> flat = tl.transitions(ds)
    >>> flat["reward"].values, flat["episode"].values
    (array([1., 0., 2.]), array([0, 0, 1]))
    >>> flat["reward"].groupby("episode").sum().values
    array([1., 2.])
    """
    validate(ds)
    cells = Cells.of(ds)
    whole = cells.span(0, len(cells))
    left_out = {names.MASK, *final_names(ds)}
    kept = [name for name in ds.variables if name not in left_out]
    flat = read_flat(ds, [name for name in kept if is_per_transition(ds.variables[name])])
    variables: dict[Any, xr.Variable] = {}
    for name in kept:
        variable = ds.variables[name]
        if name in flat:
            dims = (names.TRANSITION, *variable.dims[2:])
            variables[name] = xr.Variable(dims, flat[name], _without_padding(variable.attrs))
        else:
            variables[name] = _repeated(_repeated(variable, names.EPISODE, whole.episode), names.TIME, whole.position)
    coords = {name: variables.pop(name) for name in (*ds.coords, names.ITERATION) if name in variables}
    return xr.Dataset(variables, coords, ds.attrs)


def _repeated(variable: xr.Variable, dim: str, positions: np.ndarray) -> xr.Variable:
    """Return a variable over one dim with its value at each transition; others as they are."""
    if dim not in variable.dims:
        return variable
    axis = variable.dims.index(dim)
    dims = [names.TRANSITION if d == dim else d for d in variable.dims]
    return xr.Variable(dims, variable.values.take(positions, axis=axis), _without_padding(variable.attrs))


def _without_padding(attrs: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in attrs.items() if key != names.PADDING_ATTR}
