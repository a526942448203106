"""Windows of steps around a step of each episode, read from the episodes when they are looked at."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from trajlab.dataset.cells import Cells
from trajlab.dataset.fields import component_count, padding_of
from trajlab.dataset.flat import MAX_BYTES, FlatBatch
from trajlab.dataset.joined import read_points
from trajlab.dataset.lazy import Inner, LazyArray, lazy_base
from trajlab.names import EPISODE, LAG, MASK, TIME


class Windows:
    """Which transition of an episode stands at each lag.

    Attributes
    ----------
    cells : Cells
        Of the Dataset the windows are of.
    episodes : array (window,)
        Positions along its `episode`.
    origin : array (window,) int64
        The label of `time` at lag 0.
    lags : array (lag,) int64
    """

    def __init__(self, cells: Cells, episodes: np.ndarray, origin: np.ndarray, lags: np.ndarray) -> None:
        """Make windows of some episodes."""
        self.cells, self.episodes, self.origin, self.lags = cells, episodes, origin, lags

    def locate(self, window: np.ndarray, lag: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the position along `time` (M,) of windows at lags, by position, and whether a transition is there."""
        labels = self.cells.labels
        if not len(labels):
            return np.zeros(len(window), np.intp), np.zeros(len(window), bool)
        label = self.origin[window] + self.lags[lag]
        if self.cells.has_gaps:
            step = np.minimum(np.searchsorted(labels, label), len(labels) - 1)
        else:
            step = np.clip(label - labels[0], 0, len(labels) - 1)
        there = (labels[step] == label) & (step < self.cells.counts[self.episodes[window]])
        return self.cells.positions(step), there

    def mask(self) -> np.ndarray:
        """Return where a transition is, (window, lag)."""
        labels = self.cells.labels
        if len(labels) and not self.cells.has_gaps:
            first = (labels[0] - self.origin)[:, np.newaxis]
            return (self.lags >= first) & (self.lags < first + self.cells.counts[self.episodes, np.newaxis])
        shape = (len(self.episodes), len(self.lags))
        window, lag = (index.ravel() for index in np.indices(shape))
        return self.locate(window, lag)[1].reshape(shape)


class WindowArray(LazyArray):
    """A variable over (episode, time, ...) as one over (window, lag, ...), padded where no transition is."""

    def __init__(self, variable: xr.Variable, windows: Windows) -> None:
        """Show a variable; reading reads from it."""
        super().__init__((len(windows.episodes), len(windows.lags), *variable.shape[2:]), variable.dtype)
        self.variable, self.windows = variable.copy(deep=False), windows

    def read(self, cells: tuple[np.ndarray, ...], inner: Inner) -> np.ndarray:
        """Return the values of windows at lags."""
        window, lag = cells
        position, there = self.windows.locate(window, lag)
        points = self.windows.episodes[window[there]], position[there]
        found = read_points(self.variable, points, inner)
        if len(found) == len(window):
            return found
        out = np.full((len(window), *found.shape[1:]), padding_of(self.variable), self.dtype)
        out[there] = found
        return out


def iter_windows(ds: xr.Dataset, fields: Iterable[str]) -> Iterator[FlatBatch]:
    """Yield the transitions of a Dataset of windows as `iter_flat` does; `time` is the position along `lag`."""
    names = list(fields)
    variables: dict[Any, xr.Variable] = {name: ds.variables[name] for name in names}
    width = sum(v.dtype.itemsize * component_count(v) for v in variables.values()) * ds.sizes[LAG]
    step = max(MAX_BYTES // max(width, 1), 1)
    for start in range(0, ds.sizes[EPISODE], step):
        mask = ds.variables[MASK][start : start + step].values
        window, lag = np.nonzero(mask)
        values = {name: _read(variable, start, mask, (window, lag)) for name, variable in variables.items()}
        if len(window):
            yield _batch(values, window + start, lag)


def _read(variable: xr.Variable, start: int, mask: np.ndarray, there: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return what a variable has where a mask of windows from `start` on says so; `there` is where that is."""
    if lazy_base(variable) is None:
        return variable[start : start + len(mask)].values[mask]
    window, lag = there
    return read_points(variable, (window + start, lag), (slice(None),) * (variable.ndim - 2))


def _batch(values: dict[str, np.ndarray], episode: np.ndarray, lag: np.ndarray) -> FlatBatch:
    return FlatBatch(values, lambda: episode, lambda: lag)


def is_windows(ds: object) -> bool:
    """Say whether something is a Dataset of windows, as `align` makes them."""
    return isinstance(ds, xr.Dataset) and MASK in ds.coords and ds.variables[MASK].dims == (EPISODE, LAG)


def as_steps(ds: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with the dims (episode, time), for what looks at names only: of windows `lag` is called so."""
    return ds.rename({LAG: TIME}) if is_windows(ds) else ds
