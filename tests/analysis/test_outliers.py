"""Episodes of unusual length or return."""

import numpy as np
import pandas as pd
import pytest
import ragged
from scipy import stats

import trajlab as tl
from trajlab.analysis.outliers import robust_scores

USUAL = [9.0, 10, 11, 10, 9, 10, 11, 10, 12, 8]


def of_returns(values, reasons=None, **coords):
    episodes = [{"reward": np.array([0.0, value])} for value in values]
    ds = tl.from_episodes(episodes, end_reason=reasons or ["terminated"] * len(episodes))
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


def test_the_strangest_comes_first():
    table = tl.outliers(of_returns([*USUAL, 40, 10, -500]))
    assert table.index.tolist() == [12, 10]
    assert table.index.name == "episode"
    assert [*table] == ["length", "return", "score", "reason"]
    assert table["return"].tolist() == [-500, 40]
    assert table["length"].tolist() == [2, 2]
    np.testing.assert_allclose(table["score"], [-510 / 1.4826, 30 / 1.4826])
    assert table["reason"][10] == "return 40 is above the median 10 (score 20.2)"
    assert table["reason"][12] == "return -500 is below the median 10 (score -344.0)"


def test_scores_are_those_of_scipy():
    values = np.random.default_rng(0).normal(size=101)
    scores, center = robust_scores(values)
    np.testing.assert_allclose(
        scores, (values - np.median(values)) / stats.median_abs_deviation(values, scale=1 / 1.4826)
    )
    assert center == np.median(values)


def test_where_more_than_half_are_equal():
    """The mean distance is 1, so that 10 is 10 / 1.2533 away."""
    scores, center = robust_scores(np.array([0.0] * 9 + [10.0]))
    assert center == 0
    np.testing.assert_allclose(scores, [0] * 9 + [10 / 1.2533])


def test_rounding_is_no_spread():
    values = np.full(20, 0.1 + 0.2)
    values[:3] = 0.3
    assert not robust_scores(values)[0].any()
    assert len(tl.outliers(of_returns(values.tolist()))) == 0


def test_length_and_return_together_are_one_row():
    episodes = [{"reward": np.ones(n)} for n in (9, 10, 11, 10, 9, 10, 11, 50)]
    (reason,) = tl.outliers(tl.from_episodes(episodes))["reason"]
    assert reason == ("length 50 is above the median 10 (score 27.0); return 50 is above the median 10 (score 27.0)")


def test_episodes_that_are_not_complete_are_left_out():
    reasons = ["terminated"] * 10 + ["cut", "truncated"]
    table = tl.outliers(of_returns([*USUAL, 900, 800], reasons))
    assert table.index.tolist() == [11]
    assert table.attrs["left_out"] == 1


def test_few_episodes_have_no_outlier():
    table = tl.outliers(of_returns([1, 1.5, 2, 1, 1.5, 2, 1000]))
    assert len(table) == 0
    assert table.attrs["left_out"] == 7
    assert len(tl.outliers(of_returns([1, 1.5, 2, 1, 1.5, 2, 1, 1000]))) == 1


def test_episodes_are_compared_with_their_group():
    values = [*USUAL, *(1000 + np.array(USUAL)), 10.0]
    ds = of_returns(values, phase=["early"] * 10 + ["late"] * 11)
    assert 20 not in tl.outliers(ds).index
    table = tl.outliers(ds, by="phase")
    assert table.index.tolist() == [20]
    assert table["reason"][20].startswith("return 10 is below the median 1,010")
    only = tl.outliers(ds, by="phase", groups=["early"])
    assert (len(only), only.attrs["left_out"]) == (0, 11)


def test_threshold():
    ds = of_returns([*USUAL, 15])
    assert tl.outliers(ds).empty
    assert tl.outliers(ds, threshold=3).index.tolist() == [10]
    for bad in (0, -1, "3", np.nan):
        with pytest.raises(ValueError, match="expected a number above 0, such as 3.5"):
            tl.outliers(ds, threshold=bad)


def test_nan_and_infinite_returns():
    ds = of_returns([*USUAL, 90, np.inf, np.nan])
    with pytest.warns(UserWarning, match="1 of 13 episodes have NaN in 'reward'"):
        table = tl.outliers(ds)
    assert table.index.tolist() == [12, 11, 10]
    assert table["reason"][12] == "return is NaN"
    assert table["score"][11] == np.inf
    assert np.isnan(table["score"][12])


def test_components():
    rewards = np.column_stack([USUAL, USUAL])
    rewards[3, 1] = 99
    ds = tl.from_episodes([{"reward": row[None]} for row in rewards])
    table = tl.outliers(ds)
    assert [*table] == ["length", "return[0]", "return[1]", "score", "reason"]
    assert table["reason"].tolist() == ["return[1] 99 is above the median 10 (score 60.0)"]


@pytest.mark.parametrize("form", ragged.FORMS)
def test_every_form_of_a_dataset(form, tmp_path):
    ds = ragged.make_dataset([2] * 9 + [3] * 9 + [40])
    got, want = tl.outliers(ragged.in_form(ds, form, tmp_path)), tl.outliers(ds)
    assert 18 in want.index
    pd.testing.assert_frame_equal(got.sort_index(), want.sort_index())


def test_of_no_episode_and_of_sliced_steps(blank):
    assert tl.outliers(blank).empty
    with pytest.raises(ValueError, match="outliers: whole episodes are needed"):
        tl.outliers(ragged.make_dataset([3, 1]).isel(time=slice(1, None)))
    with pytest.raises(ValueError, match="group by 'start_iteration'"):
        tl.outliers(ragged.make_dataset([3, 1]), by="iteration")
