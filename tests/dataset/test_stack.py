"""trajlab/dataset/stack.py: all components in one array."""

import numpy as np
import pytest
import xarray as xr

import trajlab as tl
from trajlab.dataset.from_episodes import from_episodes
from trajlab.dataset.stack import stack_fields

LABELS = [
    "obs[x]", "obs[y]", "obs[z]", "action", "reward", "terminated", "truncated",
    "img[0,0]", "img[0,1]", "img[1,0]", "img[1,1]",
]  # fmt: skip
SMALL = ["obs", "reward", "terminated", "img"]
"""Fields that float32 holds."""


def expected_values(ds, fields):
    """Return the components by hand."""
    columns = [ds[name].values.astype(float).reshape(*ds["mask"].shape, -1) for name in fields]
    return np.where(ds["mask"].values[..., None], np.concatenate(columns, axis=-1), np.nan)


def points(*positions):
    return xr.Variable("p", list(positions))


def test_all_components(ds, loaded):
    stacked = stack_fields(ds)
    assert stacked.dims == ("episode", "time", "field")
    assert stacked["field"].values.tolist() == LABELS
    assert stacked.dtype == np.float64
    fields = ["obs", "action", "reward", "terminated", "truncated", "img"]
    np.testing.assert_array_equal(stacked, expected_values(loaded, fields))


def test_by_episode_time_and_field(ds, loaded):
    stacked = stack_fields(ds)
    assert stacked.sel(episode=2, time=4, field="obs[x]").item() == loaded["obs"].values[2, 4, 0]
    assert stacked.sel(episode=2, time=4, field="img[1,0]").item() == loaded["img"].values[2, 4, 1, 0]
    assert np.isnan(stacked.sel(episode=1, time=1, field="terminated").item())


def test_one_value_is_read_for_one_value(lazy, counts):
    stacked = stack_fields(lazy)
    repr(stacked), stacked._repr_html_()
    one = stacked.sel(episode=2, time=4, field="img[1,0]")
    assert counts.total == 0
    assert one.values.shape == ()
    assert counts.values == {"img": 1}


@pytest.mark.parametrize(
    ("select", "read"),
    [
        (lambda s: s.sel(field=["obs[z]", "obs[x]"]), {"obs": 40}),
        (lambda s: s.sel(field="reward"), {"reward": 20}),
        (lambda s: s.sel(field=["img[0,1]", "img[1,1]"]), {"img": 40}),
        (lambda s: s.sel(field=["img[0,0]", "img[1,1]"]), {"img": 80}),
        (lambda s: s.isel(episode=2, field=slice(2, 5)), {"obs": 5, "action": 5, "reward": 5}),
        (lambda s: s.isel(episode=points(0, 2), time=points(2, 4), field=[4, 0]), {"reward": 2, "obs": 2}),
    ],
    ids=["array", "one", "img column", "img hull", "slice", "points"],
)  # fmt: skip
def test_only_the_components_asked_for_are_read(lazy, loaded, counts, select, read):
    part = select(stack_fields(lazy))
    np.testing.assert_array_equal(part, select(stack_fields(loaded)))
    assert counts.values == read


@pytest.mark.parametrize(
    "key",
    [
        {"field": [3, 1, 1, 10]},
        {"field": slice(None, None, -3)},
        {"episode": [2, 0], "time": slice(3, 0, -1), "field": [9, 0]},
        {"episode": -1, "time": -1, "field": -1},
        {"episode": slice(0, 0)},
        {"field": []},
        {"episode": points(0, 2, 1), "time": points(2, 4, 3)},
        {"episode": points(0, 2), "field": points(8, 3)},
    ],
    ids=str,
)
def test_selections(ds, loaded, key):
    fields = ["obs", "action", "reward", "terminated", "truncated", "img"]
    whole = xr.DataArray(expected_values(loaded, fields), dims=("episode", "time", "field"))
    part = stack_fields(ds).isel(key)
    assert part.dims == whole.isel(key).dims
    np.testing.assert_array_equal(part, whole.isel(key))


def test_slabs_do_not_show(ds, loaded, monkeypatch):
    monkeypatch.setattr("trajlab.dataset.stack.READ_CELLS", 6)
    np.testing.assert_array_equal(stack_fields(ds, "obs"), expected_values(loaded, ["obs"]))


# dtypes ---------------------------------------------------------------------------------------------------------


def test_float32_where_it_holds_every_value(ds, loaded):
    stacked = stack_fields(ds, SMALL)
    assert stacked.dtype == np.float32
    np.testing.assert_array_equal(stacked, expected_values(loaded, SMALL).astype(np.float32))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        *[("bool", 4), ("float16", 4), ("float32", 4), ("int16", 4), ("uint16", 4)],
        *[("int32", 8), ("uint32", 8), ("int64", 8), ("float64", 8)],
    ],
)
def test_dtype(dtype, expected):
    ds = from_episodes([{"a": np.zeros(2, dtype), "b": np.ones(2, bool)}])
    stacked = stack_fields(ds)
    assert stacked.dtype == f"f{expected}"
    assert stacked.values[0].tolist() == [[0, 1], [0, 1]]


def test_what_where_made_of_bools_is_taken(loaded):
    part = loaded.where(loaded.length > 1, drop=True)
    assert part["terminated"].dtype != bool
    assert stack_fields(part, "terminated").values[0, :, 0].tolist()[:3] == [0, 0, 1]


def test_padding_is_nan_whatever_it_holds(loaded):
    loaded["reward"] = loaded["reward"].fillna(1e9)
    assert np.isnan(stack_fields(loaded, "reward").values[0, 3:]).all()


# Which fields ---------------------------------------------------------------------------------------------------


def test_fields_are_chosen(ds):
    assert stack_fields(ds, ["reward", "obs"])["field"].values.tolist() == ["reward", *LABELS[:3]]
    assert stack_fields(ds, "t*")["field"].values.tolist() == ["terminated", "truncated"]
    assert stack_fields(ds, ["iteration"]).values[2, 4, 0] == 2


def test_many_components_only_by_name(ds):
    assert not any(label.startswith("wide") for label in stack_fields(ds, ["*"])["field"].values)
    assert stack_fields(ds, ["wide"])["field"].values.tolist() == [f"wide[{i}]" for i in range(65)]


def test_no_strings(ds):
    with pytest.raises(TypeError, match=r"field 'word' has dtype <U2; .*to_dataframe"):
        stack_fields(ds, ["reward", "word"])
    with pytest.raises(ValueError, match=r"no field to stack with fields=\['wo\*'\]"):
        stack_fields(ds, ["wo*"])


def test_no_complex_numbers():
    ds = from_episodes([{"a": np.zeros(2, complex), "b": np.zeros(2)}])
    assert stack_fields(ds)["field"].values.tolist() == ["b"]
    with pytest.raises(TypeError, match="'a' has dtype complex128"):
        stack_fields(ds, "a")


def test_no_such_field(ds):
    with pytest.raises(KeyError, match=r"no field 'rewrd'\. Did you mean 'reward'"):
        stack_fields(ds, ["rewrd"])


# Beside the values ----------------------------------------------------------------------------------------------


def test_coordinates(ds):
    stacked = stack_fields(ds.assign_coords(seed=("episode", [1, 2, 3, 4])))
    assert stacked["seed"].values.tolist() == [1, 2, 3, 4]
    assert stacked["mask"].dims == ("episode", "time")
    assert "axis" not in stacked.coords
    assert stacked.name == "value"


def test_units(ds):
    ds["reward"] = ds["reward"].assign_attrs(units="1")
    units = stack_fields(ds)["field_units"]
    assert units.dims == ("field",)
    assert units.sel(field="obs[z]").item() == "rad"
    assert units.sel(field=["reward", "action"]).values.tolist() == ["1", ""]
    assert "field_units" not in stack_fields(ds, ["action"]).coords


def test_units_along_one_of_two_dims(loaded):
    loaded = loaded.assign_coords(column_units=("column", ["m", "s"]))
    assert stack_fields(loaded, "img")["field_units"].values.tolist() == ["m", "s", "m", "s"]


def test_of_a_part(ds, loaded):
    part = ds.isel(episode=[2, 0], time=slice(1, 4))
    values = stack_fields(part, "obs")
    assert values["episode"].values.tolist() == [2, 0]
    np.testing.assert_array_equal(values, expected_values(loaded, ["obs"])[[2, 0], 1:4])
    assert stack_fields(ds.isel(episode=[])).shape == (0, 5, 11)


def test_not_valid(loaded):
    with pytest.raises(ValueError, match="single episode"):
        stack_fields(loaded.isel(episode=1))


def test_no_episode_and_no_field():
    with pytest.warns(UserWarning, match="no episode"):
        empty = from_episodes([])
    for ds in (empty, tl.Recorder(enabled=False).to_dataset()):
        stacked = stack_fields(ds)
        assert stacked.sizes == {"episode": 0, "time": 0, "field": 0}
        assert stacked.values.shape == (0, 0, 0)
    with pytest.raises(KeyError, match="no field 'obs'"):
        stack_fields(empty, ["obs"])


@pytest.mark.parametrize("function", [stack_fields, tl.to_dataframe])
def test_components_of_one_name_are_refused(function):
    ds = from_episodes([{"obs": np.array([[1.0, 2.0]]), "obs[0]": np.array([3.0]), "obs[9]": np.ones(1)}])
    with pytest.raises(ValueError, match=r"fields 'obs' and 'obs\[0\]' would both have a column 'obs\[0\]'"):
        function(ds)
    with pytest.raises(ValueError, match=r"fields 'obs' and 'obs\[0\]' would both"):
        function(ds, ["obs[0]", "obs"])
    function(ds, ["obs", "obs[9]"])
    function(ds.rename({"obs[0]": "first"}))


def test_labels_with_commas_stay_apart():
    ds = from_episodes(
        [{"obs": np.arange(4.0).reshape(1, 2, 2)}],
        dims={"obs": ["a", "b"]},
        coords={"a": ["x,y", "x"], "b": ["z", "y,z"]},
    )
    labels = ["obs[0,0]", "obs[0,1]", "obs[1,0]", "obs[1,1]"]
    assert stack_fields(ds)["field"].values.tolist() == labels
    assert tl.to_dataframe(ds)[labels].values.tolist() == [[0, 1, 2, 3]]
