"""The Kaplan-Meier estimate of episode length."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl


def of_lengths(ended, cut=(), **coords):
    """Return a Dataset with episodes of these lengths, terminated and cut."""
    lengths = [*ended, *cut]
    reasons = ["terminated"] * len(ended) + ["cut"] * len(cut)
    ds = tl.from_episodes([{"reward": np.zeros(n)} for n in lengths], end_reason=reasons)
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


def test_published_example():
    """Remission times of leukaemia under 6-MP: Freireich et al. (1963), in Kleinbaum & Klein, "Survival Analysis"."""
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    result = tl.survival(of_lengths(ended, censored))
    at = result["survival"].sel(time=[6, 7, 10, 13, 16, 22, 23]).values
    np.testing.assert_allclose(at, [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], atol=5e-4)
    assert result["n"].sel(time=[6, 7, 10, 13, 16, 22, 23]).values.tolist() == [21, 17, 15, 12, 11, 7, 6]
    assert result["median"].item() == 23


def naive(lengths, is_end, steps):
    """Return the product of the shares that survive each step."""
    out, left = [], 1.0
    for t in range(steps):
        at_risk = sum(n >= t for n in lengths)
        ends = sum(n == t and end for n, end in zip(lengths, is_end, strict=True))
        left *= 1 - ends / at_risk if at_risk else np.nan
        out.append(np.nan if not at_risk and left > 0 else left)
    return out


@given(
    data=st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from(["terminated", "done", "truncated", "cut"])), min_size=1
    )
)
@examples(100)
def test_equals_the_product_of_what_is_left_at_each_step(data):
    lengths, reasons = zip(*data, strict=True)
    ds = tl.from_episodes([{"x": np.zeros(n)} for n in lengths], end_reason=list(reasons))
    result = tl.survival(ds)
    is_end = [reason in ("terminated", "done") for reason in reasons]
    want = np.array(naive(lengths, is_end, max(lengths) + 1))
    np.testing.assert_allclose(result["survival"].values, want)
    low, high = result["lower"].values, result["upper"].values
    known = np.isfinite(low)
    assert (low[known] <= want[known] + 1e-12).all()
    assert (want[known] <= high[known] + 1e-12).all()
    assert result["n"].values.tolist() == [sum(n >= t for n in lengths) for t in range(max(lengths) + 1)]
    half = np.flatnonzero(want <= 0.5)
    np.testing.assert_equal(result["median"].item(), float(half[0]) if len(half) else np.nan)
    np.testing.assert_allclose(result["restricted_mean"].item(), want[: max(lengths)].sum())


def test_without_censoring_it_is_the_share_and_the_mean():
    result = tl.survival(of_lengths([1, 2, 2, 5]))
    assert result["survival"].values.tolist() == [1, 0.75, 0.25, 0.25, 0.25, 0]
    assert result["restricted_mean"].item() == np.mean([1, 2, 2, 5])


def test_cut_episodes_are_no_short_ones():
    result = tl.survival(of_lengths([10, 10], cut=[1] * 8))
    assert result["median"].item() == 10


def test_interval_is_that_of_log_log():
    """At one end of ten, by hand: S = 0.9, exp(±1.96 se) with se² = Greenwood's sum over log(S)²."""
    result = tl.survival(of_lengths([1] + [5] * 9))
    se = np.sqrt(1 / (10 * 9)) / abs(np.log(0.9))
    limits = 0.9 ** np.exp(np.array([1, -1]) * 1.959964 * se)
    np.testing.assert_allclose([result["lower"].values[1], result["upper"].values[1]], limits, rtol=1e-5)
    narrow = tl.survival(of_lengths([1] + [5] * 9), confidence=0.5)
    assert narrow["lower"].values[1] > result["lower"].values[1]


def test_groups_share_the_horizon():
    ds = of_lengths([2, 4, 8, 8], cut=[3, 20], policy=["a", "a", "b", "b", "a", "b"])
    result = tl.survival(ds, by="policy")
    assert result["survival"].dims == ("policy", "time")
    assert result.attrs["horizon"] == 4
    assert result["n"].values[:, 0].tolist() == [3, 3]
    assert np.isnan(result["survival"].sel(policy="b").values[21:]).all()
    np.testing.assert_allclose(result["restricted_mean"].values, [1 + 1 + 2 / 3 + 2 / 3, 4])
    assert np.isfinite(result["survival"].sel(policy="a").values).all()


def test_beyond_the_longest_cut_one_nothing_is_known():
    ds = of_lengths([2], cut=[5])
    ds = tl.concat([ds, of_lengths([9])], run=["a", "b"])
    alone = tl.survival(ds, by="run")["survival"].sel(run="a").values
    assert alone[:6].tolist() == [1, 1, 0.5, 0.5, 0.5, 0.5]
    assert np.isnan(alone[6:]).all()


def test_episodes_from_mid_way_are_left_out():
    chunk = {"obs": np.zeros((6, 2)), "done": np.array([[0, 1], [1, 0], [0, 0], [0, 1], [1, 0], [0, 0]], bool)}
    result = tl.survival(tl.from_rollout(chunk, starts_fresh=False))
    assert result.attrs["left_out"] == 2
    assert result["n"].values[0] == 4
    assert result["n"].attrs["long_name"] == "episodes at risk"


def test_of_no_episode(blank):
    result = tl.survival(blank)
    assert result["survival"].shape == (1,)
    assert np.isnan(result["median"])
    assert result["n"].values.tolist() == [0]


def test_no_warning_where_the_interval_is_not_defined():
    ds = of_lengths([3, 4], cut=[2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tl.survival(ds)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_level_has_to_be_between_0_and_1(confidence):
    with pytest.raises(ValueError, match="between 0 and 1, such as 0.95"):
        tl.survival(of_lengths([1]), confidence=confidence)


def test_groups_are_of_episodes():
    with pytest.raises(ValueError, match="group by 'start_iteration'"):
        tl.survival(of_lengths([1]), by="iteration")


def test_of_no_group():
    ds = tl.from_episodes([{"reward": np.ones(2)}]).assign_coords(seed=("episode", [np.nan]))
    with pytest.warns(UserWarning, match="in no group"):
        result = tl.survival(ds, by="seed")
    assert result["survival"].dims == ("seed", "time")
    assert result["survival"].shape == result["n"].shape == (0, 3)
    assert result["median"].shape == (0,)
