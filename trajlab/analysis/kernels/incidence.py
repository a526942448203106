"""Kernel: the share of episodes that reached something by each step, where some were cut before: Aalen & Johansen."""

from typing import NamedTuple

import numpy as np


class Incidence(NamedTuple):
    """Shares that have reached something by each step.

    Attributes
    ----------
    share : array (column, step) float64
        NaN where nothing is known: all that are left were cut before.
    at_risk : array (column, step) int64
        How many have a transition at the step and had not reached it before.
    """

    share: np.ndarray
    at_risk: np.ndarray


def cumulative_incidence(times: np.ndarray, stop: np.ndarray, is_open: np.ndarray, steps: int) -> Incidence:
    """Return the cumulative incidence of each column by itself, the estimate whose formula `milestones` gives.

    Those that are open leave behind their last step.

    Parameters
    ----------
    times : array (M, column) float64
        The step at which it was reached, NaN where it was not.
    stop : array (M, column) int64
        How many steps there are in which it could be reached.
    is_open : array (M, column) of bool
        Whether it might have been reached later, where it was not.
    steps : int
        Past all of `stop`.

    References
    ----------
    Aalen & Johansen, "An empirical transition matrix for non-homogeneous Markov chains based on censored
    observations", Scandinavian Journal of Statistics 5 (1978), section 3.

    Examples
    --------
    >>> times, stop = np.array([[0.0], [np.nan], [1.0], [np.nan]]), np.array([[2], [1], [2], [2]])
    >>> cumulative_incidence(times, stop, np.array([[False], [True], [False], [False]]), 2).share
    array([[0.25 , 0.625]])
    """
    columns = times.shape[1]
    reached = ~np.isnan(times)
    leaves = np.where(reached, times, stop - 1).astype(np.int64)
    place = leaves + np.arange(columns) * steps

    def count(which: np.ndarray) -> np.ndarray:
        return np.bincount(place[which], minlength=columns * steps).reshape(columns, steps)

    there = stop > 0
    found, ended, left = count(reached), count(there & ~reached & ~is_open), count(there & ~reached & is_open)
    at_risk = np.cumsum((found + ended + left)[:, ::-1], axis=1)[:, ::-1]
    among = np.maximum(at_risk, 1)
    remain = np.cumprod(1 - (found + ended) / among, axis=1)
    before = np.concatenate([np.ones((columns, 1)), remain[:, :-1]], axis=1)
    share = np.cumsum(before * found / among, axis=1)
    share[(at_risk == 0) & (before > 0)] = np.nan
    return Incidence(share, at_risk)
