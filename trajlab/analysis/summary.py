"""A recording in a few numbers, for a logger or a table."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows
from trajlab.analysis.tables import return_columns
from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import MAX_COMPONENTS, as_text, component_labels, is_numeric, missing_values
from trajlab.dataset.schema import require_whole, validate
from trajlab.names import COMPLETE, CUT, END_REASON, END_REASONS, EPISODE, EPISODE_FIELD_ROLE, LENGTH, ROLE_ATTR


def summary(ds: xr.Dataset) -> dict[str, int | float]:
    """Return a recording in a few numbers, by name.

    Parameters
    ----------
    ds : Dataset
        With whole episodes: not sliced in `time`.

    Returns
    -------
    dict
        Python's own ints and floats, in this order:

        - ``episodes``, ``complete``, ``cut``, ``transitions``: how many there are;
        - ``share_terminated``, ``share_truncated``, ``share_done``, ``share_cut``: of all episodes;
        - ``length_mean``, ``length_median``, ``length_std``, ``length_min``, ``length_max``: of complete episodes;
        - ``return_mean`` and so on, likewise, where there is a reward; ``return[x]_mean`` for each component or
          agent of one that has several;
        - ``info.success_mean`` and the like, of complete episodes: for each field of `episode_fields` that holds
          numbers or bools, of up to 64 components, over the episodes that have such a value.

    Raises
    ------
    ValueError
        When `ds` is not valid, or steps of its episodes were sliced away.

    Notes
    -----
    What is of no episode is left out, so that no logger gets a NaN for it: without a complete episode there is no
    mean. A NaN that was recorded stays one. Standard deviations are those of the population (ddof 0). Where many long
    episodes were cut, the complete ones are the short ones: see `survival`.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 0.5])}, {"reward": np.array([2.0])}])
    >>> numbers = tl.summary(ds)
    >>> numbers["episodes"], numbers["length_mean"], numbers["return_max"]
    (2, 1.5, 2.0)
    """
    validate(ds)
    require_whole(ds, "summary")
    complete = ds[COMPLETE].values.astype(bool)
    reason = as_text(ds[END_REASON].values)
    numbers: dict[str, int | float] = {
        "episodes": ds.sizes[EPISODE],
        "complete": int(complete.sum()),
        "cut": int((reason == CUT).sum()),
        "transitions": len(Cells.of(ds)),
    }
    if len(reason):
        numbers |= {f"share_{one}": float((reason == one).mean()) for one in END_REASONS}
    if not complete.any():
        return numbers
    columns = {LENGTH: ds[LENGTH].values, **return_columns(ds)}
    for name, values in columns.items():
        numbers |= _described(name, values[complete])
    for name, values, has_value in _episode_columns(ds):
        free = name if name not in columns else f"{name}_"
        if (complete & has_value).any():
            numbers[f"{free}_mean"] = float(values[complete & has_value].mean())
    return numbers


def _described(name: str, values: np.ndarray) -> dict[str, int | float]:
    """Return mean, median, standard deviation, minimum and maximum of values (episode,), at least one."""
    with np.errstate(invalid="ignore"):
        floats = {key: float(getattr(np, key)(values)) for key in ("mean", "median", "std")}
    return {f"{name}_{key}": number for key, number in floats.items()} | {
        f"{name}_min": values.min().item(),
        f"{name}_max": values.max().item(),
    }


def _episode_columns(ds: xr.Dataset) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the components of recorded values of whole episodes, as float64 (episode,), and which have such a value."""
    for name, array in ds.data_vars.items():
        variable = array.variable
        if variable.attrs.get(ROLE_ATTR) != EPISODE_FIELD_ROLE or not is_numeric(variable):
            continue
        labels = component_labels(ds, str(name))
        if len(labels) <= MAX_COMPONENTS:
            values = variable.values
            missing = missing_values(variable, values) if values.dtype.kind == "i" else np.zeros(values.shape, bool)
            yield from zip(labels, as_rows(values).astype(np.float64).T, ~as_rows(missing).T, strict=True)
