"""The values of what is grouped by: whether these can be grouped, and how they are read."""

import numpy as np
import xarray as xr

from trajlab.analysis.discrete import as_discrete, discrete_kind
from trajlab.analysis.grouping.steps import PHASE
from trajlab.analysis.kernels.counting import ValueCounter
from trajlab.analysis.kernels.masks import count_set, either
from trajlab.dataset.alive_rows import AliveRows
from trajlab.dataset.fields import as_text, field_names
from trajlab.dataset.flat import FlatBatch, iter_flat
from trajlab.errors import FriendlyKeyError, unknown_name
from trajlab.names import EPISODE, ITERATION, RESULT_NAMES, TIME


def check_by(ds: xr.Dataset, by: str) -> None:
    """Raise unless `by` is something to group by."""
    known = [str(n) for n, v in ds.variables.items() if v.dims == (EPISODE,)] + [ITERATION, TIME, PHASE]
    if by not in ds.variables:
        if by.partition("[")[0] in field_names(ds):
            raise FriendlyKeyError(
                f"by={by!r} is a component of a field, not a variable. Make one of it first, as in "
                "ds.assign(near=(ds['obs'].isel(obs_dim_0=0) < 1).where(ds.mask, False))"
            )
        raise unknown_name("coordinate to group by", by, known)
    if by in RESULT_NAMES:
        raise ValueError(f"by={by!r} is a name that the result uses itself; rename it first: ds.rename({by}='my_{by}')")
    variable = ds.variables[by]
    if variable.dims not in ((EPISODE,), (EPISODE, TIME)):
        raise ValueError(
            f"by={by!r} has dims {variable.dims}; expected one value per episode or per transition: "
            f"{', '.join(map(repr, known))}"
        )


def kind_of(ds: xr.Dataset, by: str) -> str:
    """Return what a variable over transitions is told apart by; raise where it is continuous."""
    kind = discrete_kind(ds, by)
    if kind is None:
        raise ValueError(
            f"by={by!r} is continuous ({ds.variables[by].dtype}) and differs from transition to transition; expected "
            "integers, bools or text. Cut it first, as in ds.assign(near=(ds['x'] < 1).where(ds.mask, False))"
        )
    return kind


def as_plain(values: np.ndarray) -> np.ndarray:
    """Return text as NumPy text, whatever a file made of it, and objects that all are bools as bools."""
    if values.dtype.kind == "O" and len(values) and set(map(type, values.tolist())) <= {bool, np.bool_}:
        return values.astype(bool)
    return as_text(values) if values.dtype.kind in "OTS" else values


def read_values(batch: FlatBatch, by: str, kind: str, alive: AliveRows) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values (M, 1) to group by, and which are missing or those of an agent that takes no part."""
    rows, missing = as_discrete(batch.values[by], kind)
    return rows, either(missing, alive.missing(batch, batch.values[by].shape))


def transition_values(ds: xr.Dataset, by: str, kind: str, alive: AliveRows) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the distinct values of a variable over transitions, how many have each, and how many have none."""
    counter = ValueCounter()
    num_missing = 0
    for batch in iter_flat(ds, [by, *alive.needed]):
        rows, left_out = read_values(batch, by, kind, alive)
        dead = alive.missing(batch, rows.shape[:1])
        num_missing += count_set(left_out, dead)
        counter.add(rows, None, left_out)
    values, counts = counter.result()
    return values, counts[0, 0], num_missing
