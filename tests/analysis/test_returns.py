"""Returns: visible sums, a plain loop, and what does not change them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis.returns import running_median


def rewards(*episodes, dtype=np.float32, **options):
    return tl.from_episodes([{"reward": np.array(e, dtype)} for e in episodes], **options)


def naive(ds, discount):
    values = ds["reward"].values.astype(np.float64)
    return [sum(values[e, t] * discount**t for t in range(n)) for e, n in enumerate(ds["length"].values)]


def test_sums_of_whole_and_cut_episodes():
    ds = rewards([1, 2, 4], [8], end_reason=["terminated", "cut"])
    result = tl.returns(ds)
    assert result.dtype == np.float64
    assert result.dims == ("episode",)
    assert result.name == "return"
    assert result.values.tolist() == [7, 8]
    assert result["complete"].values.tolist() == [True, False]
    assert result.attrs["num_incomplete"] == result.attrs["num_cut"] == 1


def test_discount_counts_from_the_first_transition():
    assert tl.returns(rewards([1, 2, 4], [8]), discount=0.5).values.tolist() == [3, 8]


def test_discount_zero_is_the_first_reward():
    assert tl.returns(rewards([1, 2, 4], [8]), discount=0).values.tolist() == [1, 8]


@given(lengths, st.sampled_from([1.0, 0.9, 0.0]), st.integers(0, 3))
@examples(30)
def test_as_a_plain_loop(drawn, discount, seed):
    ds = make_dataset(drawn, seed)
    np.testing.assert_allclose(tl.returns(ds, discount=discount), naive(ds.load(), discount), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_in_every_form(form, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5])
    result = tl.returns(in_form(ds, form, tmp_path), discount=0.9).sortby("episode")
    np.testing.assert_allclose(result, tl.returns(ds, discount=0.9), rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "value", "count"), [(np.uint8, 250, 3), (np.float16, 3000, 30), (np.int64, 2**40, 5), (bool, True, 300)]
)
def test_narrow_dtypes_are_summed_wide(dtype, value, count):
    assert tl.returns(rewards([value] * count, dtype=dtype)).item() == value * count


def test_components_are_kept():
    ds = tl.from_episodes(
        [{"reward": np.array([[1.0, 10.0], [2.0, 20.0]])}],
        dims={"reward": ["goal"]},
        coords={"goal": ["speed", "energy"]},
        units={"reward": ["m", "J"]},
    )
    result = tl.returns(ds)
    assert result.dims == ("episode", "goal")
    assert result.sel(goal="energy").item() == 30
    assert result["goal_units"].values.tolist() == ["m", "J"]


def test_units_and_a_file_keep_what_was_made(tmp_path):
    ds = rewards([1.0], units={"reward": "EUR"})
    tl.returns(ds).to_netcdf(tmp_path / "r.nc", engine="h5netcdf")
    assert tl.returns(ds).attrs["units"] == "EUR"
    assert tl.returns(ds).attrs["field"] == "reward"


def test_nan_stays_and_is_reported():
    ds = rewards([1, np.nan], [2, 3])
    with pytest.warns(UserWarning, match="1 of 2 episodes have NaN in 'reward'") as seen:
        result = tl.returns(ds)
    np.testing.assert_equal(result.values, [np.nan, 5])
    assert seen[0].filename == __file__


def test_inf_stays_in_its_episode():
    assert tl.returns(rewards([1, np.inf], [2])).values.tolist() == [np.inf, 2]


def test_no_episode():
    result = tl.returns(make_dataset([]))
    assert result.shape == (0,)
    assert result.dtype == np.float64


def test_a_field_that_fills_the_role():
    ds = rewards([1.0, 2.0]).rename(reward="r")
    ds["r"].attrs |= {"role": "reward", "long_name": "r"}
    assert tl.returns(ds).item() == 3


def test_what_was_computed_from_the_reward_is_not_taken_for_it():
    ds = rewards([1.0, 2.0])
    ds["reward"].attrs["role"] = "reward"
    derived = ds.assign(scaled=ds["reward"] * 2).drop_vars("reward")
    with pytest.raises(KeyError, match="'scaled'"):
        tl.returns(derived)
    assert tl.returns(derived, reward="scaled").item() == 6


def test_a_slice_of_time_is_refused():
    with pytest.raises(ValueError, match="returns: whole episodes are needed"):
        tl.returns(make_dataset([3, 2]).isel(time=slice(1, None)))


def test_steps_that_no_episode_has_may_be_missing():
    ds = make_dataset([3, 2]).isel(episode=[1]).isel(time=slice(0, 2))
    assert tl.returns(ds).shape == (1,)


def test_text_is_refused():
    ds = tl.from_episodes([{"reward": np.array(["a", "b"])}])
    with pytest.raises(TypeError, match="'reward' has dtype <U1; expected bools, integers or real numbers"):
        tl.returns(ds)


def test_a_discount_beyond_one_is_refused():
    with pytest.raises(ValueError, match=r"discount=1.5; expected a number from 0 to 1"):
        tl.returns(make_dataset([1]), discount=1.5)


@pytest.mark.parametrize("discount", [np.nan, np.inf, -0.1])
def test_a_discount_that_is_no_share_is_refused(discount):
    with pytest.raises(ValueError, match=r"discount=.*; expected a number from 0 to 1"):
        tl.returns(make_dataset([1]), discount=discount)


@pytest.mark.parametrize("discount", ["0.9", None, [0.9], 1j])
def test_a_discount_that_is_no_number_is_refused(discount):
    with pytest.raises(TypeError, match=r"discount=.*; expected a number from 0 to 1"):
        tl.returns(make_dataset([1]), discount=discount)


@pytest.mark.parametrize("later", [np.inf, -np.inf, np.nan])
def test_with_discount_zero_later_rewards_do_not_count(later):
    assert tl.returns(rewards([1, later, 4], [8]), discount=0).values.tolist() == [1, 8]
    assert tl.returns(rewards([np.inf, later]), discount=0).values.tolist() == [np.inf]
    with pytest.warns(UserWarning, match="1 of 1 episodes have NaN in 'reward'"):
        assert np.isnan(tl.returns(rewards([np.nan, later]), discount=0).item())


def test_an_infinite_reward_counts_however_late():
    late = np.zeros(3000)
    late[0], late[-1] = 1, np.inf
    assert tl.returns(rewards(late, -late), discount=0.5).values.tolist() == [np.inf, -np.inf]


def test_infinities_that_cancel_are_not_called_nan_rewards():
    with pytest.warns(UserWarning, match="1 of 2 episodes have both inf and -inf in 'reward'") as seen:
        result = tl.returns(rewards([np.inf, -np.inf], [2]))
    np.testing.assert_equal(result.values, [np.nan, 2])
    assert len(seen) == 1


def test_a_dim_called_as_the_result_is_refused():
    ds = tl.from_episodes([{"reward": np.ones((2, 3))}], dims={"reward": ["return"]})
    with pytest.raises(
        ValueError, match=r"dim 'return', a name that the result uses itself; rename it first: ds.rename"
    ):
        tl.returns(ds)


def test_a_misspelt_field():
    with pytest.raises(KeyError, match="Did you mean 'reward'"):
        tl.returns(make_dataset([1]), reward="rewrad")


def test_medians_keep_equal_places_together():
    places, medians, each = running_median(np.repeat([0, 1, 2], [3, 9, 3]), np.arange(15))
    assert places.tolist() == [0, 1, 2]
    assert medians.tolist() == [1, 7, 13]
    assert each == 5


def test_too_few_have_no_median():
    assert [len(x) for x in running_median(np.arange(9), np.arange(9))[:2]] == [0, 0]


def test_what_only_looks_like_numbers_is_refused():
    ds = rewards([1, 2], [3])
    for values in (ds["reward"].astype(object), ds["reward"].astype(str), ds["reward"].astype(complex)):
        with pytest.raises(TypeError, match="'reward' has dtype .*; expected bools, integers or real numbers"):
            tl.returns(ds.assign(reward=values))
