"""True episodes, and the check that a Dataset holds exactly these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

Reason = Literal["terminated", "truncated", "cut"]


@dataclass(frozen=True)
class TrueEpisode:
    """What happened in one episode; one more observation than actions."""

    obs: list[Any]
    action: list[Any]
    reward: list[float]
    reason: Reason

    def __len__(self) -> int:
        return len(self.action)

    def without_first(self) -> TrueEpisode:
        """Return what is left where the first transition was not seen."""
        return TrueEpisode(self.obs[1:], self.action[1:], self.reward[1:], self.reason)


@dataclass(frozen=True)
class Known:
    """What a convention can tell of how an episode ends."""

    has_reason: bool = True  # else `done` is all there is
    final_of_ended: bool = False
    final_of_cut: bool = False
    last_end: bool = True  # whether an end on the very last row is known
    last_final: bool = True  # whether the final observation of an episode that ends on the very last row is known


def check(
    ds: xr.Dataset,
    truth: Sequence[Sequence[TrueEpisode]],
    known: Known,
    *,
    names: tuple[str, str, str] = ("obs", "action", "reward"),
    rows_after: Sequence[int] | None = None,
) -> None:
    """Check lengths, fields, end reasons and final observations of the episodes of every environment.

    `truth` has the episodes of each environment, in order. `rows_after` says how many rows of each environment were
    recorded after its last episode's; 0 by default.
    """
    assert ds.sizes["episode"] == sum(map(len, truth))
    for env, episodes in enumerate(truth):
        own = ds.isel(episode=np.flatnonzero(ds["env"].values == env))
        assert own.sizes["episode"] == len(episodes)
        assert (np.diff(own["start_row"].values) > 0).all()
        for i, episode in enumerate(episodes):
            is_last = i == len(episodes) - 1 and not (rows_after is not None and rows_after[env])
            _check_one(own.isel(episode=i), episode, known, names, is_last)


def _check_one(got: xr.Dataset, episode: TrueEpisode, known: Known, names: tuple[str, str, str], is_last: bool) -> None:
    assert int(got["length"]) == len(episode)
    reason = "cut" if is_last and not known.last_end else episode.reason
    assert str(got["end_reason"].values) == (reason if reason == "cut" or known.has_reason else "done")
    for name, want in zip(names, (episode.obs[:-1], episode.action, episode.reward), strict=True):
        np.testing.assert_array_equal(got[name].values[: len(episode)], np.array(want), err_msg=name)
    if reason == "cut":
        has_final = known.final_of_cut
    else:
        has_final = known.final_of_ended and (known.last_final or not is_last)
    assert bool(got["final_known"]) == has_final
    if has_final:
        np.testing.assert_array_equal(got[f"final_{names[0]}"].values, np.array(episode.obs[-1]))
