"""A recording in a few numbers."""

import json
import math

import numpy as np
import pytest
import ragged
from agents.worlds import make_world, poisoned, record
from hypothesis import given
from strategies import examples

import trajlab as tl

COUNTS = ["episodes", "complete", "cut", "transitions"]
SHARES = ["share_terminated", "share_truncated", "share_done", "share_cut"]
STATISTICS = ["mean", "median", "std", "min", "max"]


def test_all_by_hand():
    episodes = [{"reward": np.full(n, 1.5)} for n in (1, 3, 2, 9)]
    ds = tl.from_episodes(episodes, end_reason=["terminated", "truncated", "terminated", "cut"])
    assert tl.summary(ds) == {
        "episodes": 4,
        "complete": 3,
        "cut": 1,
        "transitions": 15,
        "share_terminated": 0.5,
        "share_truncated": 0.25,
        "share_done": 0.0,
        "share_cut": 0.25,
        "length_mean": 2.0,
        "length_median": 2.0,
        "length_std": pytest.approx(math.sqrt(2 / 3)),
        "length_min": 1,
        "length_max": 3,
        "return_mean": 3.0,
        "return_median": 3.0,
        "return_std": pytest.approx(1.5 * math.sqrt(2 / 3)),
        "return_min": 1.5,
        "return_max": 4.5,
    }


@given(ragged.lengths)
@examples(30)
def test_plain_numbers_that_agree_with_the_table(lengths):
    ds = ragged.make_dataset(lengths)
    numbers, table = tl.summary(ds), tl.episode_table(ds)
    assert all(type(value) in (int, float) for value in numbers.values())
    assert all(type(numbers[key]) is int for key in COUNTS)
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    whole = table[table["complete"]]
    for column in ("length", "return"):
        for statistic in STATISTICS:
            key = f"{column}_{statistic}"
            assert (key in numbers) == (len(whole) > 0)
            if key in numbers:
                want = whole[column].std(ddof=0) if statistic == "std" else getattr(whole[column], statistic)()
                np.testing.assert_allclose(numbers[key], want, atol=1e-12)
    assert [*numbers][:4] == COUNTS
    assert [*numbers][4:8] == (SHARES if lengths else [])


def test_without_a_complete_episode_there_is_no_mean():
    ds = tl.from_episodes([{"reward": np.ones(2)}], end_reason=["cut"])
    assert [*tl.summary(ds)] == COUNTS + SHARES


def test_without_a_reward_there_is_no_return():
    numbers = tl.summary(tl.from_episodes([{"obs": np.ones(2)}]))
    assert [*numbers] == COUNTS + SHARES + [f"length_{key}" for key in STATISTICS]


def test_components_and_episode_fields():
    chunk = {
        "reward": np.ones((4, 1, 2)),
        "done": np.array([[0], [1], [1], [0]], bool),
        "info": {"success": np.array([[1], [0], [1], [1]], bool), "map": np.full((4, 1), "cave")},
        "return": np.full((4, 1), 7.0),
    }
    when = {"info.success": "last", "info.map": "first", "return": "last"}
    numbers = tl.summary(tl.from_rollout(chunk, coords={"reward_dim_0": ["speed", "cost"]}, episode_fields=when))
    assert numbers["return[speed]_mean"] == numbers["return[cost]_mean"] == 1.5
    assert numbers["info.success_mean"] == 0.5
    assert numbers["return_mean"] == 7
    assert not [key for key in numbers if "map" in key]


def test_a_field_that_is_called_as_what_is_computed():
    chunk = {"reward": np.ones((2, 1)), "done": np.array([[0], [1]], bool), "return": np.full((2, 1), 7.0)}
    numbers = tl.summary(tl.from_rollout(chunk, episode_fields={"return": "last"}))
    assert (numbers["return_mean"], numbers["return__mean"]) == (2, 7)


def test_dead_agents_do_not_count():
    world = make_world()
    numbers = tl.summary(record(poisoned(world)))
    assert numbers == tl.summary(record(world))
    assert f"return[{world.agents[0]}]_mean" in numbers


@pytest.mark.parametrize("form", ragged.FORMS)
def test_every_form_of_a_dataset(form, tmp_path):
    ds = ragged.make_dataset([3, 1, 4, 1, 5, 2])
    assert tl.summary(ragged.in_form(ds, form, tmp_path)) == pytest.approx(tl.summary(ds))


def test_nan_and_infinite_rewards_stay():
    ds = tl.from_episodes([{"reward": np.array([np.nan])}, {"reward": np.array([1.0])}])
    with pytest.warns(UserWarning, match="1 of 2 episodes have NaN in 'reward'"):
        numbers = tl.summary(ds)
    assert math.isnan(numbers["return_mean"])
    assert numbers["length_mean"] == 1
    numbers = tl.summary(tl.from_episodes([{"reward": np.array([np.inf])}, {"reward": np.array([1.0])}]))
    assert (numbers["return_mean"], numbers["return_min"]) == (math.inf, 1)


def test_of_no_episode(blank):
    assert tl.summary(blank) == dict.fromkeys(COUNTS, 0)


def test_of_sliced_steps():
    with pytest.raises(ValueError, match="summary: whole episodes are needed"):
        tl.summary(ragged.make_dataset([3, 1]).isel(time=slice(1, None)))
