"""A Dataset of one rollout, without a Recorder."""

from typing import Any

import xarray as xr

from trajlab.capture.convention import Convention
from trajlab.capture.select import Fields
from trajlab.dataset.description import EpisodeFields
from trajlab.dataset.labels import Coords, Dims, Units
from trajlab.names import Incomplete
from trajlab.recorder.recorder import Recorder


class _RolloutRecorder(Recorder):
    """A recorder whose one block is as long as the chunk it is made for."""

    _exact = True


def from_rollout(
    chunk: Any,
    *,
    convention: Convention | str = "auto",
    fields: Fields = None,
    envs: Any = None,
    max_episodes: int | None = None,
    starts_fresh: bool = True,
    num_envs: int | None = None,
    dims: Dims | None = None,
    coords: Coords | None = None,
    units: Units | None = None,
    episode_fields: EpisodeFields | None = None,
    mask: Any = None,
    iteration: int | None = None,
    incomplete: Incomplete = "keep",
    **extra: Any,
) -> xr.Dataset:
    """Return the Dataset of one rollout: what `Recorder.record` and `Recorder.to_dataset` would give.

    Parameters
    ----------
    chunk : pytree of arrays (T, N, ...)
        As for `Recorder.record`; so are `mask`, `iteration` and `extra`.
    convention, fields, envs, max_episodes, starts_fresh, num_envs, dims, coords, units, episode_fields
        As for `Recorder`.
    incomplete : {"keep", "drop"}
        As for `Recorder.to_dataset`.

    Raises
    ------
    ValueError, KeyError, TypeError
        As `Recorder.record`.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> tl.from_rollout({"obs": np.zeros((4, 2)), "done": np.zeros((4, 2), bool)}).sizes["episode"]
    2
    """
    recorder = _RolloutRecorder(
        fields,
        convention=convention,
        envs=envs,
        max_episodes=max_episodes,
        starts_fresh=starts_fresh,
        num_envs=num_envs,
        dims=dims,
        coords=coords,
        units=units,
        episode_fields=episode_fields,
    )
    recorder.record(chunk, mask=mask, iteration=iteration, **extra)
    return recorder.to_dataset(incomplete=incomplete)
