"""How well episodes went over training: mean, median and interquartile mean, with bootstrap intervals."""

import numbers
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from trajlab.analysis.common import as_rows, field_of, is_blank, made_by
from trajlab.analysis.episode_values import episode_values
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import Groups
from trajlab.analysis.grouping.training import group_ends, make_training_groups
from trajlab.analysis.kernels.bootstrap import STATISTICS, bootstrap
from trajlab.analysis.survival import check_confidence
from trajlab.dataset.fields import as_text, final_names, missing_values
from trajlab.dataset.schema import validate
from trajlab.errors import check_option, is_bool, require_text, unknown_name, warn_user
from trajlab.names import (
    COMPLETE,
    ENV,
    EPISODE,
    ESTIMATE,
    FINAL_KNOWN,
    LEARNING_NAMES,
    LEFT_OUT,
    LEFT_OUT_ATTR,
    LOWER,
    NUM_NAN_ATTR,
    RETURN,
    RUN,
    START_ITERATION,
    STATISTIC,
    UPPER,
    Incomplete,
    N,
)

MOST_RESAMPLES = 1_000_000


class Interval(NamedTuple):
    """How intervals are made, as the arguments of `learning_curve` say it."""

    cluster: str | None
    confidence: float
    num_resamples: int
    rng: np.random.Generator | int


def learning_curve(
    ds: xr.Dataset,
    *,
    value: str = RETURN,
    by: str | None = START_ITERATION,
    groups: GroupsArgument = None,
    incomplete: Incomplete = "drop",
    cluster: str | None = None,
    confidence: float = 0.95,
    num_resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> xr.Dataset:
    """Return mean, median and interquartile mean of the episodes' returns over training, with intervals.

    Parameters
    ----------
    ds : Dataset
    value : str
        ``"return"``, ``"length"``, or any coordinate or variable of numbers or bools over `episode`; its own dims are
        kept, and each component counts by itself. ``"return"`` is what `returns` computes, unless there is a variable
        of that name; other returns are added first: ``ds.assign_coords(g=tl.returns(ds, discount=0.99))``.
    by, groups
        As in `outcomes`. Groups are made of all episodes, complete or not.
    incomplete : {"drop", "keep"}
        Whether episodes that are not complete count. Their return is not the whole one, and their length a lower
        bound.
    cluster : str, optional
        A coordinate over `episode`: the intervals resample its values, each with all of its episodes in the group,
        instead of single episodes. ``"env"`` where episodes of an environment resemble each other; ``"run"`` for
        intervals that hold for another run. Environments of runs with different labels are told apart.
    confidence : float
        Level of the intervals, between 0 and 1.
    num_resamples : int
    rng : Generator or int
        NumPy's generator, or the seed of a new one; the seed 0 by default, so that the same data give the same limits.

    Returns
    -------
    Dataset
        Dims (statistic, by, ...), the statistics ``mean``, ``median`` and ``iqm``: `estimate`, and `lower` and `upper`,
        the limits of its percentile bootstrap interval, all float64. Dims (by): `n`, int64, the episodes they are of,
        and `left_out`, int64, those of the group that are not complete, or have no such value (a final observation that
        is not known, a seed that was not given). `first` and `last` as in `outcomes`. Without an episode all are NaN;
        with fewer than two episodes or clusters to draw from, the limits are.

    Raises
    ------
    KeyError
        When there is no such value, `by` or `cluster`.
    TypeError
        When the value does not hold numbers, or `rng` is no generator.
    ValueError
        When `ds` is not valid, `by` or `value` is a matter of the transition, steps of episodes were sliced away, or an
        option is out of its range.

    Notes
    -----
    The interquartile mean is that of the middle half: without the floor(n / 4) smallest and as many largest. Outliers
    hardly move it, but it hides what happens to less than a quarter of the episodes, and says nothing useful of a value
    that is only 0 or 1. In the last iterations of a recording long episodes are likelier to be cut, and what is left
    are the short ones: see `left_out`. A NaN among the values makes a group NaN, and a warning says how many there are.

    References
    ----------
    Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice", NeurIPS (2021), section 4.3.
    Efron & Tibshirani, "An introduction to the bootstrap" (1993), chapter 13.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([x, x])} for x in (0.0, 1.0, 2.0, 9.0)])
    >>> tl.learning_curve(ds)["estimate"].sel(statistic=["mean", "iqm"]).values.ravel()
    array([6., 3.])
    """
    interval = Interval(cluster, confidence, num_resamples, rng)
    ds, chosen, values = prepare_curve(ds, value, by, groups, incomplete, interval)
    return grouped_curve(ds, values, chosen, incomplete, interval)


def prepare_curve(
    ds: xr.Dataset, value: Any, by: Any, groups: GroupsArgument, incomplete: Any, interval: Interval
) -> tuple[xr.Dataset, Groups, xr.DataArray]:
    """Check all arguments; return the Dataset, its groups, and the values (episode, ...)."""
    check_option("incomplete", incomplete, Incomplete)
    check_confidence(interval.confidence)
    _check_drawing(interval.num_resamples, interval.rng)
    validate(ds)
    if is_blank(ds):
        ds, _ = field_of(ds, "reward", along=[by, interval.cluster, None if value == RETURN else value])
    chosen = make_training_groups(ds, by, groups)
    _check_cluster(ds, interval.cluster)
    values = episode_values(ds, value, LEARNING_NAMES | {*chosen.dims}, "learning_curve")
    return ds, chosen, values


def _check_drawing(num_resamples: Any, rng: Any) -> None:
    is_number = isinstance(num_resamples, numbers.Integral) and not is_bool(num_resamples)
    if not is_number or not 1 <= num_resamples <= MOST_RESAMPLES:
        raise ValueError(
            f"num_resamples={num_resamples!r}; expected a whole number from 1 to {MOST_RESAMPLES:,}, such as 1000"
        )
    if not isinstance(rng, np.random.Generator | numbers.Integral) or is_bool(rng):
        raise TypeError(f"rng={rng!r}; expected a seed, or a generator of NumPy's: np.random.default_rng(0)")
    if isinstance(rng, numbers.Integral) and rng < 0:
        raise ValueError(f"rng={rng!r}; expected a seed of at least 0")


def _check_cluster(ds: xr.Dataset, cluster: Any) -> None:
    if cluster is None:
        return
    require_text("cluster", cluster, "a coordinate over episode")
    if cluster not in ds.variables or ds.variables[cluster].dims != (EPISODE,):
        known = [str(name) for name, variable in ds.variables.items() if variable.dims == (EPISODE,)]
        raise unknown_name("coordinate over episode to cluster by,", cluster, known)


def grouped_curve(
    ds: xr.Dataset, values: xr.DataArray, groups: Groups, incomplete: Incomplete, interval: Interval
) -> xr.Dataset:
    """Return `learning_curve` for groups and values that were made already."""
    rows = as_rows(values.values).astype(np.float64)
    used = _used(ds, str(values.name), incomplete)
    group = np.zeros(len(rows), np.intp) if groups.of_episode is None else groups.of_episode
    num_nan = int((np.isnan(rows).any(axis=1) & used & (group >= 0)).sum())
    if num_nan:
        name = str(values.name)
        warn_user(f"learning_curve: {num_nan} of {int(used.sum())} episodes have NaN as {name!r}, and so their group")
    rng = np.random.default_rng(interval.rng)
    cluster = _clusters(ds, interval.cluster)
    found = []
    for code in range(groups.size):
        mine = used & (group == code)
        own = None if cluster is None else cluster[mine]
        found.append(bootstrap(rows[mine], own, interval.confidence, interval.num_resamples, rng))
    shape = (3, len(STATISTICS), groups.size, *values.shape[1:])
    arrays = np.empty((groups.size, 3, len(STATISTICS), rows.shape[1])) if not found else np.array(found)
    counts = {
        key: np.bincount(group[which & (group >= 0)], minlength=groups.size).astype(np.int64)
        for key, which in ((N, used), (LEFT_OUT, ~used))
    }
    return _labelled(ds, values, groups, np.moveaxis(arrays, 0, 2).reshape(shape), counts, interval, num_nan)


def _used(ds: xr.Dataset, value: str, incomplete: Incomplete) -> np.ndarray:
    """Return which episodes (episode,) count."""
    used = np.ones(ds.sizes[EPISODE], bool) if incomplete == "keep" else ds[COMPLETE].values.astype(bool)
    if value in final_names(ds):
        return used & ds[FINAL_KNOWN].values.astype(bool)
    if value in ds.variables and ds.variables[value].dtype.kind == "i":
        return used & ~as_rows(missing_values(ds.variables[value].transpose(EPISODE, ...))).any(axis=1)
    return used


def _clusters(ds: xr.Dataset, cluster: str | None) -> np.ndarray | None:
    """Return the number of each episode's cluster; environments of different runs differ."""
    if cluster is None:
        return None
    keys = [cluster, RUN] if cluster == ENV and RUN in ds.coords else [cluster]
    codes = [np.unique(_plain(ds[key].values), return_inverse=True)[1].reshape(-1) for key in keys]
    return codes[0] if len(codes) == 1 else codes[0] * (int(codes[1].max(initial=0)) + 1) + codes[1]


def _plain(values: np.ndarray) -> np.ndarray:
    return as_text(values) if values.dtype.kind in "OT" else values


def _labelled(
    ds: xr.Dataset,
    values: xr.DataArray,
    groups: Groups,
    arrays: np.ndarray,
    counts: dict[str, np.ndarray],
    interval: Interval,
    num_nan: int,
) -> xr.Dataset:
    """Return estimate, lower and upper limit (3, statistic, group, ...) and counts (group,) as a Dataset."""
    dims = (STATISTIC, *groups.dims, *values.dims[1:])
    if not groups.dims:
        arrays = arrays[:, :, 0]
    units = {key: values.attrs[key] for key in ("units",) if key in values.attrs}
    names = {ESTIMATE: str(values.attrs["long_name"]), LOWER: "lower limit", UPPER: "upper limit"}
    variables: dict[str, Any] = {
        key: (dims, array, {"long_name": long_name, **units})
        for (key, long_name), array in zip(names.items(), arrays, strict=True)
    }
    for key, long_name in ((N, "episodes"), (LEFT_OUT, "episodes left out")):
        variables[key] = (groups.dims, counts[key] if groups.dims else counts[key][0], {"long_name": long_name})
    inner = {str(key): coord.variable for key, coord in values.coords.items()}
    coords: dict[str, Any] = {STATISTIC: list(STATISTICS), **groups.coords(), **group_ends(groups), **inner}
    attrs = made_by(ds, "learning_curve", str(values.name))
    attrs |= {LEFT_OUT_ATTR: int(counts[LEFT_OUT].sum()), NUM_NAN_ATTR: num_nan}
    attrs |= {"confidence": float(interval.confidence), "num_resamples": int(interval.num_resamples)}
    attrs |= {"resampled": interval.cluster or EPISODE}
    return xr.Dataset(variables, coords, attrs)
