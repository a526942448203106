"""Weighted statistics and their percentile bootstrap intervals, on plain arrays."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import examples

from trajlab.analysis.kernels.bootstrap import bootstrap, weighted_statistics

MEAN, MEDIAN, IQM = 0, 1, 2


def limits(values, cluster=None, confidence=0.95, num_resamples=2000, seed=0):
    """Return estimate, lower and upper limit (statistic,) of one component."""
    rng = np.random.default_rng(seed)
    column = np.asarray(values, np.float64)[:, None]
    return [found[:, 0] for found in bootstrap(column, cluster, confidence, num_resamples, rng)]


@given(
    values=st.lists(st.integers(-5, 5), min_size=1, max_size=12),
    data=st.data(),
)
@examples(100)
def test_weights_are_repetitions(values, data):
    values = np.sort(np.array(values, np.float64))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)).filter(any))
    sample = np.repeat(values, weights)
    want = [sample.mean(), np.median(sample), stats.trim_mean(sample, 0.25)]
    np.testing.assert_allclose(weighted_statistics(values, np.array([weights], float))[:, 0], want)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 100])
def test_estimates_are_those_of_numpy_and_scipy(count):
    values = np.random.default_rng(count).normal(size=count)
    want = [values.mean(), np.median(values), stats.trim_mean(values, 0.25)]
    np.testing.assert_allclose(limits(values)[0], want)


def test_intervals_are_those_of_scipy_but_for_chance():
    values = np.random.default_rng(3).exponential(size=60)
    _, lower, upper = limits(values, num_resamples=20_000)
    ways = (np.mean, np.median, lambda x, axis: stats.trim_mean(x, 0.25, axis=axis))
    # SciPy before 1.15 calls it random_state.
    seed = {"rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state": 4}
    for place, way in enumerate(ways):
        want = stats.bootstrap((values,), way, method="percentile", n_resamples=20_000, **seed).confidence_interval
        np.testing.assert_allclose([lower[place], upper[place]], want, atol=0.03)


def test_intervals_of_normal_values_cover_the_mean():
    """95 % of intervals of 40 values should hold the true mean; percentile intervals of so few are a little short."""
    rng = np.random.default_rng(0)
    hits = [low[MEAN] <= 0 <= high[MEAN] for _, low, high in (limits(rng.normal(size=40)) for _ in range(300))]
    assert 0.9 <= np.mean(hits) <= 0.98


def test_clusters_are_drawn_whole():
    """Two clusters of equal values: a mean of draws of two is one of three, the mixed one half of the time."""
    values, cluster = [0.0] * 5 + [10.0] * 5, np.repeat([7, 3], 5)
    estimate, lower, upper = limits(values, cluster)
    assert (lower[MEAN], estimate[MEAN], upper[MEAN]) == (0, 5, 10)
    _, lower, upper = limits(values, cluster, confidence=0.4)
    assert (lower[MEAN], upper[MEAN]) == (5, 5)
    _, alone_lower, alone_upper = limits(values)
    assert 0 < alone_lower[MEAN] < alone_upper[MEAN] < 10


def test_clusters_of_different_size():
    """Draws of a large and a small cluster have as many values as their clusters have."""
    values, cluster = [0.0] * 8 + [9.0], np.array([0] * 8 + [1])
    _, lower, upper = limits(values, cluster, confidence=0.4)
    assert (lower[MEAN], upper[MEAN]) == (1, 1)


@pytest.mark.parametrize("cluster", [None, np.arange(50) % 7])
def test_order_of_values_does_not_matter(cluster):
    rng = np.random.default_rng(1)
    values, order = rng.normal(size=(50, 2)), rng.permutation(50)
    want = bootstrap(values, cluster, 0.9, 100, np.random.default_rng(0))
    renamed = None if cluster is None else (6 - cluster)[order]
    got = bootstrap(values[order], renamed, 0.9, 100, np.random.default_rng(0))
    np.testing.assert_array_equal(got, want)


def test_blocks_of_resamples_change_nothing(monkeypatch):
    values = np.random.default_rng(1).normal(size=(20, 2))
    want = bootstrap(values, None, 0.9, 50, np.random.default_rng(0))
    monkeypatch.setattr("trajlab.analysis.kernels.bootstrap.BLOCK", 70)
    np.testing.assert_allclose(bootstrap(values, None, 0.9, 50, np.random.default_rng(0)), want, rtol=1e-12)


def test_too_few_to_draw_from():
    for found in bootstrap(np.zeros((0, 2)), None, 0.95, 10, np.random.default_rng(0)):
        assert np.isnan(found).all()
    estimate, lower, upper = limits([3.0])
    assert estimate.tolist() == [3, 3, 3]
    assert np.isnan([lower, upper]).all()
    estimate, lower, upper = limits([3.0, 5.0], np.array([1, 1]))
    assert estimate.tolist() == [4, 4, 4]
    assert np.isnan([lower, upper]).all()


def test_nan_makes_its_component_nan_and_no_other():
    values = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, 1.0]])
    found = np.array(bootstrap(values, None, 0.95, 10, np.random.default_rng(0)))
    assert np.isfinite(found[:, :, 0]).all()
    assert np.isnan(found[:, :, 1]).all()


def test_infinite_values_count():
    estimate, lower, upper = limits([1.0, 2, 3, 4, 5, 6, 7, np.inf])
    assert estimate.tolist() == [np.inf, 4.5, 4.5]
    assert (upper[MEAN], np.isfinite(lower).all()) == (np.inf, True)
    assert limits([-np.inf, 1, 2, np.inf])[0][MEDIAN] == 1.5
    assert np.isnan(limits([-np.inf, 1, 2, np.inf])[0][MEAN])
    assert limits([np.inf, np.inf])[0][IQM] == np.inf
