"""Mean, median and interquartile mean of episodes over training."""

import numpy as np
import pytest
import ragged
import xarray as xr
from agents.worlds import make_world, poisoned, record
from hypothesis import given
from scipy import stats
from strategies import examples

import trajlab as tl


def of_returns(values, reasons=None, iteration=None, **coords):
    """Return a Dataset of episodes of two steps with these returns."""
    episodes = [{"reward": np.array([0.0, value])} for value in values]
    ds = tl.from_episodes(episodes, end_reason=reasons or ["terminated"] * len(episodes), iteration=iteration)
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


def estimates(result, statistic="mean"):
    return result["estimate"].sel(statistic=statistic).values


def test_statistics_by_hand():
    result = tl.learning_curve(of_returns([0, 1, 2, 9, 5, 5], iteration=[0, 0, 0, 0, 4, 4]))
    assert result["estimate"].dims == ("statistic", "start_iteration")
    assert result["statistic"].values.tolist() == ["mean", "median", "iqm"]
    assert result["estimate"].values.tolist() == [[3, 5], [1.5, 5], [1.5, 5]]
    assert result["lower"].values[:, 1].tolist() == result["upper"].values[:, 1].tolist() == [5, 5, 5]
    assert result["n"].values.tolist() == [4, 2]
    assert result["first"].values.tolist() == [0, 4]
    assert (result["estimate"].dtype, result["n"].dtype) == (np.float64, np.int64)
    assert result["estimate"].attrs["long_name"] == "return"


@given(ragged.lengths)
@examples(30)
def test_equals_a_loop(lengths):
    ds = ragged.make_dataset(lengths)
    result = tl.learning_curve(ds)
    sums = tl.returns(ds).values
    for place, iteration in enumerate(result["start_iteration"].values):
        mine = (ds.start_iteration.values == iteration) & ds.complete.values
        assert result["n"].values[place] == mine.sum()
        if mine.any():
            own = sums[mine]
            want = [own.mean(), np.median(own), stats.trim_mean(own, 0.25)]
            np.testing.assert_allclose(result["estimate"].values[:, place], want)
        else:
            assert np.isnan(result["estimate"].values[:, place]).all()
    assert result.attrs["left_out"] == (~ds.complete.values).sum()
    low, middle, high = (result[key].values for key in ("lower", "estimate", "upper"))
    known = np.isfinite(low)
    assert (known == (result["n"].values >= 2)).all()
    assert (low[known] <= high[known]).all()
    assert np.isfinite(middle[known]).all()


def test_cut_episodes_are_left_out_and_counted():
    ds = of_returns([1, 100, 3, 100], ["terminated", "cut", "truncated", "cut"], [0, 0, 0, 1])
    result = tl.learning_curve(ds)
    np.testing.assert_array_equal(estimates(result), [2, np.nan])
    assert result["n"].values.tolist() == [2, 0]
    assert result["left_out"].values.tolist() == [1, 1]
    assert result.attrs["left_out"] == 2
    kept = tl.learning_curve(ds, incomplete="keep")
    assert estimates(kept).tolist() == [34 + 2 / 3, 100]
    assert kept.attrs["left_out"] == 0


def test_length_and_other_values():
    ds = ragged.make_dataset([3, 1, 4, 1, 5])
    assert estimates(tl.learning_curve(ds, value="length", by=None)) == np.mean([3, 1, 1, 5])
    result = tl.learning_curve(ds.assign_coords(won=("episode", [True, False, True, True, True])), value="won", by=None)
    assert estimates(result) == 0.75
    assert result["estimate"].dims == ("statistic",)
    assert result["n"].item() == 4
    discounted = tl.returns(ds, discount=0.5)
    result = tl.learning_curve(ds.assign_coords(g=discounted), value="g", by=None)
    np.testing.assert_allclose(estimates(result), discounted.values[ds.complete.values].mean())


def test_a_variable_called_return_is_taken():
    ds = of_returns([1.0, 2.0]).assign({"return": ("episode", [10.0, 30.0])})
    assert estimates(tl.learning_curve(ds)).tolist() == [20]


def test_components_count_by_themselves():
    ds = tl.from_episodes([{"reward": np.array([[1.0, 10], [1, 10]])}, {"reward": np.array([[4.0, 0]])}])
    ds = ds.assign_coords(reward_dim_0=["speed", "cost"])
    result = tl.learning_curve(ds)
    assert result["estimate"].dims == ("statistic", "start_iteration", "reward_dim_0")
    assert estimates(result).tolist() == [[3, 10]]
    assert result["estimate"].sel(statistic="mean", reward_dim_0="cost").item() == 10
    assert result["n"].values.tolist() == [2]


def test_unknown_final_observations_do_not_count():
    chunk = {
        "obs": np.zeros((4, 1), np.int32),
        "reward": np.zeros((4, 1)),
        "done": np.array([[0], [1], [1], [0]], bool),
        "final": np.array([[0], [7], [9], [0]], np.int32),
    }
    ds = tl.from_rollout(chunk, convention=tl.Convention(final_observation="final"))
    result = tl.learning_curve(ds, value="final_obs", incomplete="keep")
    assert estimates(result).tolist() == [8]
    assert result["left_out"].values.tolist() == [1]


def test_clusters():
    ds = of_returns([0.0] * 4 + [10.0] * 4, env=[0] * 4 + [1] * 4)
    result = tl.learning_curve(ds, cluster="env")
    assert result["lower"].sel(statistic="mean").values.tolist() == [0]
    assert result["upper"].sel(statistic="mean").values.tolist() == [10]
    assert result.attrs["resampled"] == "env"
    assert tl.learning_curve(ds)["lower"].sel(statistic="mean").values > 0
    named = ds.assign_coords(level=("episode", np.array(["a", "b"] * 4, object)))
    assert np.isfinite(tl.learning_curve(named, cluster="level")["lower"].values).all()


def test_environments_of_two_runs_are_two():
    """Taken for one environment, each run's single environment would be one cluster, which has no interval."""
    runs = tl.concat([of_returns([0.0] * 3), of_returns([10.0] * 3)], run=["a", "b"])
    runs = runs.assign_coords(env=("episode", [0] * 6))
    result = tl.learning_curve(runs, cluster="env")
    assert result["upper"].sel(statistic="mean").values.tolist() == [10]
    by_run = tl.learning_curve(runs, by="run", cluster="run")
    assert estimates(by_run).tolist() == [0, 10]
    assert np.isnan(by_run["lower"].values).all()


def test_same_data_same_limits():
    ds = of_returns(np.random.default_rng(0).normal(size=20).tolist())
    xr.testing.assert_identical(tl.learning_curve(ds), tl.learning_curve(ds))
    other = tl.learning_curve(ds, rng=1)
    assert (other["lower"].values != tl.learning_curve(ds)["lower"].values).any()
    rng = np.random.default_rng(1)
    xr.testing.assert_identical(tl.learning_curve(ds, rng=rng), other)
    narrow = tl.learning_curve(ds, confidence=0.5)
    assert (narrow["upper"] < tl.learning_curve(ds)["upper"]).all()


@pytest.mark.parametrize("form", ragged.FORMS)
def test_every_form_of_a_dataset(form, tmp_path):
    ds = ragged.make_dataset([3, 1, 4, 1, 5, 2, 2, 7])
    got = tl.learning_curve(ragged.in_form(ds, form, tmp_path), groups=2)
    xr.testing.assert_identical(got, tl.learning_curve(ds, groups=2))


def test_nan_is_reported():
    ds = of_returns([1.0, 2.0, 3.0], iteration=[0, 0, 1]).assign_coords(x=("episode", [np.nan, 1, 2]))
    with pytest.warns(UserWarning, match="learning_curve: 1 of 3 episodes have NaN as 'x', and so their group"):
        result = tl.learning_curve(ds, value="x")
    np.testing.assert_array_equal(estimates(result), [np.nan, 2])
    assert result["n"].values.tolist() == [2, 1]
    assert result.attrs["num_nan"] == 1


def test_dead_agents_do_not_count():
    world = make_world()
    clean, dirty = record(world), record(poisoned(world))
    result = tl.learning_curve(dirty, incomplete="keep", groups=2)
    np.testing.assert_array_equal(
        result["estimate"].values, tl.learning_curve(clean, incomplete="keep", groups=2)["estimate"].values
    )
    assert result["estimate"].dims == ("statistic", "start_iteration", "agent")


def test_of_no_episode(blank):
    assert tl.learning_curve(blank)["estimate"].shape == (3, 0)
    result = tl.learning_curve(blank, value="success", by=None, cluster="seed")
    assert np.isnan(result["estimate"].values).all()
    assert result["n"].item() == 0


def test_result_survives_a_file(tmp_path):
    result = tl.learning_curve(ragged.make_dataset([3, 1, 4]))
    result.to_netcdf(tmp_path / "curve.nc", engine="h5netcdf")
    xr.testing.assert_equal(xr.load_dataset(tmp_path / "curve.nc", engine="h5netcdf"), result)


def test_values_that_do_not_fit():
    ds = ragged.make_dataset([3, 1, 4])
    with pytest.raises(ValueError, match="value='reward' has a value per transition; expected one per episode"):
        tl.learning_curve(ds, value="reward")
    with pytest.raises(KeyError, match="no value over episode 'lenght'. Did you mean 'length'"):
        tl.learning_curve(ds, value="lenght")
    with pytest.raises(TypeError, match="'end_reason' has dtype"):
        tl.learning_curve(ds, value="end_reason")
    with pytest.raises(ValueError, match="value='time' has dims"):
        tl.learning_curve(ds, value="time")
    wide = ds.assign(x=(("episode", "statistic"), np.zeros((3, 2))))
    with pytest.raises(ValueError, match="has the dim 'statistic', a name that the result uses itself"):
        tl.learning_curve(wide, value="x")
    with pytest.raises(ValueError, match="whole episodes are needed"):
        tl.learning_curve(ds.isel(time=slice(1, None)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confidence": 95}, ValueError, "confidence=95; expected a level between 0 and 1"),
        ({"num_resamples": 0}, ValueError, "num_resamples=0; expected a whole number from 1 to 1,000,000"),
        ({"rng": "0"}, TypeError, "rng='0'; expected a seed, or a generator of NumPy's"),
        ({"incomplete": "dropp"}, ValueError, "Did you mean 'drop'"),
        ({"cluster": "envs"}, KeyError, "Did you mean 'env'"),
        ({"by": "iteration"}, ValueError, "group by 'start_iteration'"),
        ({"by": "seed"}, KeyError, "no coordinate to group by 'seed'"),
    ],
)
def test_options_that_do_not_fit(options, error, message):
    with pytest.raises(error, match=message):
        tl.learning_curve(ragged.make_dataset([3, 1]), **options)


def test_of_no_component():
    ds = tl.from_episodes([{"reward": np.ones((2, 0))}, {"reward": np.ones((1, 0))}])
    result = tl.learning_curve(ds, num_resamples=2)
    assert result["estimate"].shape == (3, 1, 0)
    assert result["n"].values.tolist() == [2]
