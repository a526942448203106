"""trajlab/analysis/tables.py: pandas tables."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from trajlab.analysis.tables import episode_table, to_dataframe
from trajlab.dataset.concat import concat
from trajlab.dataset.from_episodes import from_episodes

COORDS = ["length", "env", "start_row", "start_iteration", "end_reason", "complete", "start_seen", "final_known"]
COLUMNS = [
    "env", "iteration", "obs[x]", "obs[y]", "obs[z]", "action", "reward", "terminated", "truncated",
    "img[0,0]", "img[0,1]", "img[1,0]", "img[1,1]", "word",
]  # fmt: skip


# Episodes -------------------------------------------------------------------------------------------------------


def test_one_row_per_episode(ds, loaded):
    table = episode_table(ds)
    assert table.columns.tolist() == [*COORDS, "return"]
    assert table.index.name == "episode"
    assert table.index.tolist() == [0, 1, 2, 3]
    for name in COORDS:
        assert table[name].tolist() == loaded[name].values.tolist()
    assert table["complete"].dtype == bool
    expected = np.nansum(loaded["reward"].values.astype(float), axis=1)
    np.testing.assert_allclose(table["return"], expected, rtol=1e-12)
    assert table["return"].dtype == np.float64


def test_only_the_reward_is_read(lazy, counts):
    episode_table(lazy)
    assert counts.values == {"reward": 11}


def test_of_a_filtered_dataset(ds):
    table = episode_table(ds.isel(episode=[3, 0]))
    assert table.index.tolist() == [3, 0]
    assert table["length"].tolist() == [2, 3]
    np.testing.assert_allclose(table["return"], episode_table(ds)["return"].loc[[3, 0]])


def test_coordinates_and_variables_that_were_added(ds):
    ds = ds.assign_coords(seed=("episode", [1, 1, 2, 2]), where=("episode", list("abcd")))
    ds = ds.assign(score=("episode", [1.0, 2, 3, 4]))
    table = episode_table(ds)
    assert table.columns.tolist() == [*COORDS, "seed", "where", "return", "score"]
    assert table.groupby("seed")["score"].sum().tolist() == [3, 7]


def test_a_scalar_final_observation_is_a_column():
    ds = from_episodes([{"obs": np.arange(3.0), "reward": np.ones(2)}, {"obs": np.arange(2.0), "reward": np.ones(1)}])
    assert episode_table(ds)["final_obs"].tolist() == [2, 1]


def test_nan_stays_and_padding_does_not_count(loaded):
    rewards = loaded["reward"].values.copy()
    rewards[0, 3:] = 1e9
    rewards[2, 1] = np.nan
    loaded["reward"] = loaded["reward"].copy(data=rewards)
    with pytest.warns(UserWarning, match="1 of 4 episodes have NaN in 'reward'") as caught:
        table = episode_table(loaded)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(table["return"][0], rewards[0, :3].sum(), rtol=1e-6)
    assert table["return"].isna().tolist() == [False, False, True, False]


def test_one_return_per_component():
    ds = from_episodes(
        [{"reward": np.array([[1, 2], [3, 4]])}], dims={"reward": ["goal"]}, coords={"goal": ["reach", "grasp"]}
    )
    table = episode_table(ds)
    assert table["return[reach]"].tolist() == [4.0]
    assert table["return[grasp]"].tolist() == [6.0]


def test_sums_are_exact_enough():
    rewards = np.full(2**14, 0.1, np.float16)
    table = episode_table(from_episodes([{"reward": rewards}]))
    np.testing.assert_allclose(table["return"], [rewards.astype(float).sum()], rtol=1e-9)


def test_no_reward_no_return(ds):
    assert "return" not in episode_table(ds.drop_vars("reward"))
    assert episode_table(ds.rename(reward="r"))["return"].tolist() == episode_table(ds)["return"].tolist()
    assert "return" not in episode_table(from_episodes([{"reward": np.array(["a"])}]))


def test_whole_episodes_are_needed(ds):
    with pytest.raises(ValueError, match="episode_table: whole episodes are needed"):
        episode_table(ds.isel(time=slice(1, None)))


@pytest.mark.parametrize("make_it", ["assign", "assign_coords"])
def test_a_variable_called_return_is_kept_beside_the_computed_one(ds, make_it):
    own = getattr(ds, make_it)({"return": ("episode", [1.0, 2, 3, 4])})
    with pytest.warns(UserWarning, match="'return' of the Dataset is the column 'return_'"):
        table = episode_table(own)
    assert table["return_"].tolist() == [1, 2, 3, 4]
    assert table["return"].tolist() == episode_table(ds)["return"].tolist()
    with pytest.warns(UserWarning, match="'return__'"):
        table = episode_table(own.assign(return_=("episode", list("abcd"))))
    assert table["return_"].tolist() == list("abcd")
    assert table["return__"].tolist() == [1, 2, 3, 4]
    assert episode_table(own.drop_vars("reward"))["return"].tolist() == [1, 2, 3, 4]


def test_no_episode_and_no_field():
    with pytest.warns(UserWarning, match="no episode"):
        blank = from_episodes([])
    assert episode_table(blank)["return"].tolist() == []
    assert to_dataframe(blank).shape[0] == 0
    assert to_dataframe(blank, ["obs", "-img*"])["obs"].tolist() == []


def test_no_episode(ds):
    table = episode_table(ds.isel(episode=[]))
    assert table.shape == (0, 9)


def test_runs(make):
    table = episode_table(concat({"a": make((1, 1)), "b": make((1,))}))
    assert table["run"].tolist() == ["a", "a", "b"]


# Transitions ----------------------------------------------------------------------------------------------------


def test_one_row_per_transition(ds, loaded):
    table = to_dataframe(ds)
    assert table.columns.tolist() == COLUMNS
    assert table.index.names == ["episode", "time"]
    assert table.index.tolist()[:5] == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
    mask = loaded["mask"].values
    for name in ("action", "reward", "terminated", "word", "iteration"):
        assert table[name].tolist() == loaded[name].values[mask].tolist()
    for column, axis in enumerate("xyz"):
        assert table[f"obs[{axis}]"].tolist() == loaded["obs"].values[mask][:, column].tolist()
    assert table["img[1,0]"].tolist() == loaded["img"].values[mask][:, 1, 0].tolist()
    assert table["env"].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]


def test_dtypes_are_the_recorded_ones(ds):
    dtypes = to_dataframe(ds).dtypes
    assert dtypes["action"] == np.int32
    assert dtypes["obs[x]"] == np.float32
    assert dtypes["img[0,0]"] == np.uint8
    assert dtypes["terminated"] == np.bool_
    assert dtypes["iteration"] == np.int64


def test_each_transition_is_read_once(lazy, counts):
    to_dataframe(lazy, ["obs", "action"])
    assert counts.values == {"obs": 33, "action": 11, "iteration": 11}


def test_columns_are_chosen(ds):
    assert to_dataframe(ds, ["reward", "obs"]).columns.tolist() == ["env", "iteration", "reward", *COLUMNS[2:5]]
    assert to_dataframe(ds, "t*").columns.tolist() == ["env", "iteration", "terminated", "truncated"]
    assert to_dataframe(ds, ["iteration"]).columns.tolist() == ["env", "iteration"]
    assert to_dataframe(ds, []).columns.tolist() == ["env", "iteration"]
    with pytest.raises(KeyError, match="Did you mean 'reward'"):
        to_dataframe(ds, ["rewrd"])


def test_many_components_only_by_name(ds, loaded):
    table = to_dataframe(ds, ["wide"])
    assert table.shape == (11, 67)
    np.testing.assert_array_equal(table["wide[64]"], loaded["wide"].values[loaded["mask"].values][:, 64])


def test_what_tells_rows_apart_stands_first(make):
    ds = concat({"a": make((1, 1)), "b": make((1,))}).assign_coords(seed=("episode", [5, 6, 7]))
    table = to_dataframe(ds, "reward")
    assert table.columns.tolist() == ["run", "env", "seed", "iteration", "reward"]
    assert table["run"].tolist() == ["a", "a", "b"]
    assert table["seed"].tolist() == [5, 6, 7]


def test_it_joins_the_episode_table(ds):
    joined = to_dataframe(ds).join(episode_table(ds)[["end_reason", "return"]])
    assert joined.loc[(3, 1), "end_reason"] == "cut"
    assert len(joined) == 11


def test_pandas_by_episode(ds):
    table = to_dataframe(ds)
    means = table.groupby("episode")["reward"].mean()
    assert means.loc[2] == pytest.approx(table.loc[2]["reward"].mean())
    assert table.reset_index()["time"].max() == 4


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (lambda ds: ds.isel(episode=[3, 0]), [(3, 0), (3, 1), (0, 0), (0, 1), (0, 2)]),
        (lambda ds: ds.isel(time=slice(1, 3)), [(0, 1), (0, 2), (2, 1), (2, 2), (3, 1)]),
        (lambda ds: ds.isel(episode=[]), []),
        (lambda ds: ds.isel(time=slice(0, 0)), []),
    ],
    ids=["reordered", "sliced", "no episode", "no step"],
)
def test_of_a_part(ds, loaded, change, rows):
    table = to_dataframe(change(ds))
    assert table.index.tolist() == rows
    assert table.columns.tolist() == COLUMNS
    assert table["reward"].tolist() == [loaded["reward"].values[row] for row in rows]


def test_it_is_what_xarray_makes_without_padding(ds, loaded):
    fields = ["action", "reward", "terminated"]
    by_xarray = loaded[fields].drop_vars([*COORDS, "mask"]).to_dataframe()
    kept = by_xarray[loaded["mask"].values.ravel()]
    pd.testing.assert_frame_equal(to_dataframe(ds, fields)[fields], kept, check_index_type=False)


def test_the_frame_owns_its_values(loaded):
    before = loaded.copy(deep=True)
    table = to_dataframe(loaded)
    table["reward"] = 0.0
    table.loc[(0, 0), "action"] = 9
    xr.testing.assert_identical(loaded, before)


def test_not_valid(loaded):
    for function in (episode_table, to_dataframe):
        with pytest.raises(ValueError, match="single episode was selected"):
            function(loaded.isel(episode=0))
