"""pandas tables: one row per episode, or one per transition."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from trajlab import names
from trajlab.analysis.common import field_of, is_blank
from trajlab.analysis.returns import sum_rewards
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import (
    MAX_COMPONENTS,
    choose_fields,
    component_count,
    component_labels,
    is_episode_field,
    is_numeric,
    missing_values,
    resolve_field,
)
from trajlab.dataset.flat_whole import read_flat
from trajlab.dataset.schema import require_whole, validate
from trajlab.errors import warn_user
from trajlab.names import RETURN

Column = Any
"""What pandas makes a column of: an array of NumPy's or of its own."""


def episode_table(ds: xr.Dataset) -> pd.DataFrame:
    """Return a table with one row per episode.

    Parameters
    ----------
    ds : Dataset
        Dims ``episode`` and ``time``.

    Returns
    -------
    pandas.DataFrame
        Index `episode`. Columns: the coordinates over `episode` (`length`, `env`, `end_reason`, `complete`,
        ...); where there is a reward, ``return``, as `returns` gives it without a discount, float64
        (``return[x]`` for each component of one that has several); and variables over `episode` alone, one of
        that very name with a trailing underscore, with a column for each of up to 64 components of those that
        `episode_fields` made. Where an episode has no such value, as a `seed` that was not given, a column of
        signed integers shows ``<NA>`` (dtype ``Int64`` and the like). The length of an episode that is not
        `complete` is a lower bound, and its return is not the whole one.

    Raises
    ------
    ValueError
        When `ds` is not valid, or steps of its episodes were sliced away.

    Notes
    -----
    A NaN among the rewards makes the return NaN, and a warning says so. Only the reward is read.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 0.5])}, {"reward": np.array([2.0])}])
    >>> tl.episode_table(ds)[["length", "return"]]
             length  return
    episode
    0             2     1.5
    1             1     2.0
    """
    validate(ds)
    require_whole(ds, "episode_table")
    known = [name for name in names.EPISODE_COORDS if name in ds.coords]
    coords = [name for name in ds.coords if ds.variables[name].dims == (names.EPISODE,) and name != names.EPISODE]
    computed = return_columns(ds)
    added = [name for name, v in ds.data_vars.items() if v.dims == (names.EPISODE,)]
    called = _free_columns([*map(str, known), *map(str, coords), *map(str, added)], set(computed))
    columns: dict[str, Column] = {
        called[str(name)]: ds[name].values for name in [*known, *(name for name in coords if name not in known)]
    }
    columns |= computed
    columns |= {called[str(name)]: _shown(ds.variables[name], ds[name].values) for name in added}
    columns |= _component_values(ds)
    return pd.DataFrame(columns, index=pd.Index(ds[names.EPISODE].values, name=names.EPISODE))


def _shown(variable: xr.Variable, values: np.ndarray) -> Column:
    """Return a column (episode,) of a recorded field, with ``<NA>`` where padding says that an integer is missing."""
    missing = missing_values(variable, values)
    return pd.arrays.IntegerArray(np.array(values), missing) if values.dtype.kind == "i" and missing.any() else values


def _component_values(ds: xr.Dataset) -> dict[str, Column]:
    """Return the components of recorded fields with several values per episode, as the one of each agent."""
    columns: dict[str, Column] = {}
    for name in map(str, ds.data_vars):
        variable = ds.variables[name]
        has_several = is_episode_field(variable) and variable.dims[:1] == (names.EPISODE,) and variable.ndim > 1
        count = int(np.prod(variable.shape[1:], dtype=np.int64))
        if has_several and count <= MAX_COMPONENTS:
            values = variable.values.reshape(len(variable), count)
            shown = [_shown(variable, component) for component in values.T]
            columns |= dict(zip(component_labels(ds, name), shown, strict=True))
    return columns


def _free_columns(wanted: list[str], taken: set[str]) -> dict[str, str]:
    """Return a column for each name, with a trailing underscore where it is one of those `taken`, with a warning."""
    called = {}
    for name in wanted:
        column = name
        while column in taken or (column != name and column in wanted):
            column += "_"
        if column != name:
            warn_user(f"episode_table: {name!r} of the Dataset is the column {column!r}; {name!r} is computed")
        called[name] = column
    return called


def return_columns(ds: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the return of each component of the reward per episode; nothing where no field is the reward."""
    if is_blank(ds):
        return {RETURN: np.zeros(0)}
    try:
        name = resolve_field(ds, "reward")
    except KeyError:
        return {}
    if not is_numeric(ds.variables[name]):
        return {}
    return dict(zip(component_labels(ds, name, base=RETURN), sum_rewards(ds, name).T, strict=True))


def to_dataframe(ds: xr.Dataset, fields: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table with one row per transition.

    Parameters
    ----------
    ds : Dataset
        Dims ``episode`` and ``time``; where `time` is sliced, the transitions that are left.
    fields : str or sequence of str, optional
        Names, globs and exclusions (``"-info.*"``), in the order of the columns; by default all. A field of
        more than 64 components, such as an image, is taken only where it is named exactly.

    Returns
    -------
    pandas.DataFrame
        Index `episode` and `time`, as `xarray.Dataset.to_dataframe` has it, without padding;
        ``.reset_index()`` makes columns of them. Columns: what tells the rows' origins apart (`run`, `env`,
        coordinates over `episode` that were added, `iteration`), then one per component, named as by
        `stack_fields`, in the field's own dtype. Where agents share an environment, ``alive[x]`` says which of them
        take part; the values of the others are as recorded. What describes whole episodes is in `episode_table`, and
        joins on the index: ``df.join(tl.episode_table(ds)["end_reason"])``.

    Raises
    ------
    KeyError
        When an entry of `fields` matches none.
    ValueError
        When `ds` is not valid.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 0.5])}, {"reward": np.array([2.0])}])
    >>> tl.to_dataframe(ds)["reward"].groupby("episode").mean().tolist()
    [0.75, 2.0]
    """
    validate(ds)
    if is_blank(ds) and fields is not None:
        given = [fields] if isinstance(fields, str) else fields
        plain = [name for name in given if not name.startswith("-") and not set(name) & set("*?[")]
        ds, fields = functools.reduce(lambda ds, name: field_of(ds, name)[0], plain, ds), plain
    chosen, _ = choose_fields(ds, fields)
    cells = Cells.of(ds)
    span = cells.span(0, len(cells))
    episode, time = span.episode, span.time
    columns = {name: ds[name].values[episode] for name in _origins(ds)}
    of_agents = any(AliveRows.of(ds, name).needed for name in chosen)
    before = [names.ITERATION] * (names.ITERATION in ds.data_vars) + [names.ALIVE] * of_agents
    columns |= _component_columns(ds, before + chosen)
    index = pd.MultiIndex(
        levels=[ds[names.EPISODE].values, cells.labels],
        codes=[episode, np.searchsorted(cells.labels, time)],
        names=[names.EPISODE, names.TIME],
    )
    return pd.DataFrame(columns, index=index, copy=False)


def _origins(ds: xr.Dataset) -> list[str]:
    """Return the coordinates over `episode` that tell rows apart; those that describe an episode are not."""
    described = {names.EPISODE, *names.EPISODE_COORDS} - {names.ENV}
    found = [str(name) for name in ds.coords if ds.variables[name].dims == (names.EPISODE,) and name not in described]
    return sorted(found, key=lambda name: (name != names.RUN, name != names.ENV))


def _component_columns(ds: xr.Dataset, fields: list[str]) -> dict[str, np.ndarray]:
    """Return the components of fields at every transition, each contiguous, in order of episode and time."""
    flat = read_flat(ds, list(dict.fromkeys(fields)))
    columns: dict[str, np.ndarray] = {}
    for name in [*flat]:
        values = flat.pop(name)
        block = np.ascontiguousarray(values.reshape(len(values), component_count(ds.variables[name])).T)
        columns |= dict(zip(component_labels(ds, name), block, strict=True))
    return columns
