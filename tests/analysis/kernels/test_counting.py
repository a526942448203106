"""Counts of values and places, in tables that are smaller and larger than a batch."""

import numpy as np
import pytest

from trajlab.analysis.kernels.counting import PlaceCounter, ValueCounter


@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("groups", [3, 500])
def test_values_are_counted_in_their_groups_whatever_comes_when(groups: int, components: int):
    rng = np.random.default_rng(groups)
    expected = np.zeros((groups, components, 9), np.int64)
    counter = ValueCounter(groups, components)
    for values_met in ([2, 5], [2, 5], [0, 8], [5]):
        values = rng.choice(values_met, (200, components)).astype(np.uint8)
        group = rng.integers(-1, groups, 200)
        missing = rng.random(values.shape) < 0.25
        for row, component in zip(*np.nonzero(~missing & (group >= 0)[:, np.newaxis]), strict=True):
            expected[group[row], component, values[row, component]] += 1
        counter.add(values, group, missing)
    counter.add(np.full((4, components), 7), np.zeros(4, np.intp), np.ones((4, components), bool))
    values, counts = counter.result()
    np.testing.assert_array_equal(values, [0, 2, 5, 8])
    np.testing.assert_array_equal(counts, expected[..., values])


@pytest.mark.parametrize("size", [3, 500])
def test_places_are_counted_but_those_below_zero(size: int):
    rng = np.random.default_rng(size)
    batches = [rng.integers(-1, size, 40).astype(np.int32) for _ in range(3)]
    counter = PlaceCounter(size)
    for places in batches:
        counter.add(places)
    joined = np.concatenate(batches)
    np.testing.assert_array_equal(counter.counts, np.bincount(joined[joined >= 0], minlength=size))
