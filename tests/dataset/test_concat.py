"""trajlab/dataset/concat.py: recordings put together."""

import pickle

import numpy as np
import pytest
import xarray as xr

from trajlab.dataset.concat import concat
from trajlab.dataset.fields import field_names
from trajlab.dataset.from_episodes import from_episodes
from trajlab.dataset.joined import JoinedArray
from trajlab.dataset.lazy import lazy_base
from trajlab.dataset.schema import validate
from trajlab.dataset.views import transitions

INT_MIN = np.iinfo(np.int32).min


@pytest.fixture(params=["loaded", "lazy", "mixed"])
def parts(request, make, make_lazy):
    """Two Datasets, the longer one second."""
    first, second = {"loaded": (make, make), "lazy": (make_lazy, make_lazy), "mixed": (make_lazy, make)}[request.param]
    return [first((3, 1)), second((2, 5, 1), seed=1)]


def expected_values(parts, name):
    """Return a variable of the whole by hand: padded to the longest, then put together."""
    arrays = [part[name].load() for part in parts]
    if "time" not in arrays[0].dims:
        return np.concatenate([array.values for array in arrays])
    longest = max(part.sizes["time"] for part in parts)
    padding = {"f": np.nan, "b": False, "U": "", "u": 255}
    padded = []
    for array in arrays:
        kind = array.dtype.kind
        fill = np.iinfo(array.dtype).min if kind == "i" else padding[kind]
        out = np.full((array.shape[0], longest, *array.shape[2:]), fill, array.dtype)
        out[:, : array.shape[1]] = array.values
        padded.append(out)
    return np.concatenate(padded)


def test_all_is_there_in_its_dtype(parts):
    whole = concat(parts)
    validate(whole, deep=True)
    for name in [*field_names(parts[0]), "iteration", "final_obs", "mask", "length", "env", "end_reason", "complete"]:
        np.testing.assert_array_equal(whole[name], expected_values(parts, name))
        assert whole[name].dtype == parts[0][name].dtype
        assert whole[name].dims == parts[0][name].dims
        assert whole[name].attrs == parts[0][name].attrs
    assert whole["episode"].values.tolist() == [0, 1, 2, 3, 4]
    assert whole["time"].values.tolist() == [0, 1, 2, 3, 4]
    assert whole["run"].values.tolist() == [0, 0, 1, 1, 1]
    assert whole["axis"].values.tolist() == ["x", "y", "z"]
    assert list(whole.data_vars) == list(parts[0].data_vars)


def test_building_reads_nothing(make_lazy, counts):
    whole = concat([make_lazy((3, 1)), make_lazy((2, 5))])
    repr(whole), whole._repr_html_()
    whole.isel(episode=[3, 0]).rename(obs="o").copy(deep=True)
    assert counts.total == 0


@pytest.mark.parametrize(
    ("select", "read"),
    [
        (lambda a: a.isel(episode=0), 9),
        (lambda a: a.isel(episode=2), 15),
        (lambda a: a.isel(episode=[3, 0], time=slice(0, 2)), 12),
        (lambda a: a.isel(episode=xr.Variable("p", [1, 3]), time=xr.Variable("p", [0, 4])), 6),
        (lambda a: a.isel(episode=xr.Variable("p", [1, 3]), time=xr.Variable("p", [4, 4]), axis=1), 1),
        (lambda a: a.isel(time=[4, 4], axis=[2, 0]), 8),
        (lambda a: a.isel(episode=[]), 0),
        (lambda a: a.isel(episode=0, time=4), 0),
        (lambda a: a.transpose("axis", "time", "episode").isel(axis=0, time=1), 4),
    ],
    ids=["first", "second", "both", "points", "points in padding", "orthogonal", "none", "padding", "transposed"],
)
def test_the_parts_are_asked_for_what_is_wanted(make_lazy, counts, select, read):
    parts = [make_lazy((3, 1)), make_lazy((2, 5), seed=1)]
    part = select(concat(parts)["obs"])
    assert counts.total == 0
    values = part.values
    assert counts.total <= read
    whole = xr.DataArray(expected_values(parts, "obs"), dims=("episode", "time", "axis"))
    np.testing.assert_array_equal(values, select(whole))


def test_of_many_parts_only_those_needed_are_read(make_lazy, counts):
    whole = concat([make_lazy((2,), seed=i) for i in range(20)])
    assert whole["obs"].isel(episode=7).values.shape == (2, 3)
    assert counts.total == 6


def test_out_of_range(parts):
    with pytest.raises(IndexError):
        concat(parts)["obs"].isel(episode=5).values  # noqa: B018


@pytest.mark.parametrize(
    "select",
    [
        lambda ds: ds,
        lambda ds: ds.isel(episode=[4, 0, 2]),
        lambda ds: ds.isel(episode=slice(None, None, -1), time=slice(1, 4)),
        lambda ds: ds.isel(time=[4, 0, 2], axis=[2, 0], row=1),
        lambda ds: ds.isel(episode=slice(3, None)),
        lambda ds: ds.assign(speed=ds.obs.isel(axis=0) * 2),
        lambda ds: ds.drop_vars("obs").assign(obs=ds.obs.isel(time=[0, 1, 2, 3, 4][::-1])),
    ],
    ids=["all", "episodes", "steps", "components", "one part", "not joined", "selected apart"],
)
def test_transitions_are_read_part_by_part(parts, select):
    whole = concat(parts)
    xr.testing.assert_identical(transitions(select(whole)), transitions(select(whole.copy().load())))


def test_each_transition_of_the_parts_is_read_once(make_lazy, counts):
    transitions(concat([make_lazy((3, 1)), make_lazy((2, 5))])[["obs"]])
    assert counts.values == {"obs": 33}


@pytest.mark.parametrize("storage", ["netcdf", "zarr", "dask"])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr (V|format )3 spec")
def test_parts_in_files(make, tmp_path, storage):
    parts = [make((3, 1)), make((2, 5), seed=1)]
    if storage == "netcdf":
        for number, part in enumerate(parts):
            part.to_netcdf(tmp_path / str(number), engine="h5netcdf")
        opened = [xr.open_dataset(tmp_path / str(n), engine="h5netcdf") for n in range(2)]
    elif storage == "zarr":
        for number, part in enumerate(parts):
            part.to_zarr(tmp_path / str(number))
        opened = [xr.open_zarr(tmp_path / str(n), chunks=None) for n in range(2)]
    else:
        opened = [part.chunk(episode=1) for part in parts]
    whole = concat(opened)
    assert not whole["obs"].variable._in_memory
    assert not opened[0]["obs"].variable._in_memory
    xr.testing.assert_equal(whole.load(), concat(parts).load())
    validate(whole, deep=True)
    points = {"episode": xr.Variable("p", [1, 3]), "time": xr.Variable("p", [0, 4])}
    np.testing.assert_array_equal(concat(opened)["img"].isel(points), concat(parts)["img"].isel(points))
    for part in opened:
        part.close()


def test_files_and_recordings_together(make, tmp_path):
    path = tmp_path / "0.nc"
    make().to_netcdf(path, engine="h5netcdf")
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        whole = concat([opened, make()])
        assert whole["word"].values[:4].tolist() == whole["word"].values[4:].tolist()
        assert whole["end_reason"].values.tolist()[:4] == ["terminated"] * 3 + ["cut"]
        validate(whole, deep=True)


def test_strings_of_different_widths():
    whole = concat([from_episodes([{"word": np.array([word])}]) for word in ("a", "long")])
    assert whole["word"].values.tolist() == [["a"], ["long"]]
    assert whole["word"].dtype == "<U4"
    validate(whole, deep=True)


# Runs -----------------------------------------------------------------------------------------------------------


def test_labels_are_given(make):
    a, b = make((1, 1)), make((1,))
    assert concat([a, b], run=["ppo", "sac"])["run"].values.tolist() == ["ppo", "ppo", "sac"]
    assert concat({"ppo": a, "sac": b})["run"].values.tolist() == ["ppo", "ppo", "sac"]
    assert concat([a, b], run=[7, 7])["run"].values.tolist() == [7, 7, 7]
    assert concat((part for part in (a, b)), run=[0.5, 1])["run"].values.tolist() == [0.5, 0.5, 1.0]


def test_one_dataset(make):
    whole = concat([make((2, 1))])
    assert whole["run"].values.tolist() == [0, 0]
    validate(whole, deep=True)


def test_runs_are_put_together_again(make):
    one, two = make((1,)), make((1,))
    numbered = concat([one, two])
    assert concat([numbered, one])["run"].values.tolist() == [0, 1, 2]
    assert concat([one, numbered])["run"].values.tolist() == [0, 1, 2]
    assert concat([numbered, numbered])["run"].values.tolist() == [0, 1, 2, 3]
    named = concat({"a": one, "b": two})
    assert concat([named, concat({"c": one})])["run"].values.tolist() == ["a", "b", "c"]
    assert concat([named, numbered], run=["x", "y"])["run"].values.tolist() == ["x/a", "x/b", "y/0", "y/1"]
    assert concat([concat({"a": one}), two], run=["x", "y"])["run"].values.tolist() == ["x", "y"]


def test_a_run_may_be_one_label_for_all(make):
    a, b = make((1, 1)).assign_coords(run="a"), make((1,)).assign_coords(run="b")
    assert concat([a, b])["run"].values.tolist() == ["a", "a", "b"]


def test_names_that_do_not_tell_runs_apart(make):
    named = concat({"a": make((1,)), "b": make((1,))})
    for parts in ([named, named], [named, make((1,))]):
        with pytest.raises(ValueError, match=r"coordinate 'run' with names.*give 2 labels with run=\[\.\.\.\]"):
            concat(parts)


def test_wrong_labels(make):
    parts = [make((1,)), make((1,))]
    for run in (["a"], "ab"):
        with pytest.raises(ValueError, match="expected a list of 2 labels, one for each Dataset"):
            concat(parts, run=run)
    with pytest.raises(TypeError, match="run label None is a NoneType; expected text or a number"):
        concat(parts, run=["a", None])
    with pytest.raises(ValueError, match="run= was given with a mapping"):
        concat({"a": parts[0]}, run=["b"])
    with pytest.raises(ValueError, match="no Dataset to put together"):
        concat([])


# What does not fit ----------------------------------------------------------------------------------------------


DIFFERENT = {
    "field missing": (lambda ds: ds.drop_vars("reward"), "dataset 1 lacks 'reward', which dataset 0 has"),
    "field added": (lambda ds: ds.assign(a=ds.reward), "dataset 1 has 'a', which dataset 0 lacks"),
    "coordinate added": (lambda ds: ds.assign_coords(seed=1), "dataset 1 has 'seed', which dataset 0 lacks"),
    "dtype": (
        lambda ds: ds.assign(img=ds.img.astype("int32")),
        "'img' has dtype uint8 in dataset 0 and int32 in dataset 1",
    ),
    "recorded dtype": (
        lambda ds: ds.assign(obs=ds.obs.assign_attrs(recorded_dtype="bfloat16")),
        "'obs' has recorded_dtype 'float32' in dataset 0 and 'bfloat16' in dataset 1",
    ),
    "inner shape": (
        lambda ds: ds.isel(row=[0]),
        r"'img' has shape \(2, 2\) per step in dataset 0 and \(1, 2\) in dataset 1",
    ),
    "inner dims": (
        lambda ds: ds.rename(row="line"),
        r"'img' has dims \(episode, time, row, column\) in dataset 0 and \(episode, time, line, column\) in dataset 1",
    ),
    "labels": (
        lambda ds: ds.assign_coords(axis=["x", "y", "w"]),
        "'axis' has other values in dataset 0 than in dataset 1",
    ),
    "units along a dim": (
        lambda ds: ds.assign_coords(axis_units=("axis", ["m", "m", "deg"])),
        "'axis_units' has other values in dataset 0 than in dataset 1",
    ),
    "role in the Dataset": (
        lambda ds: ds.reset_coords("axis_units"),
        "'axis_units' is a coordinate in only one of dataset 0 and dataset 1",
    ),
    "steps": (
        lambda ds: ds.isel(time=slice(1, None)),
        r"dataset 1 lacks 1 steps of its episodes that another has \(the first is time 0\); slice `time` after",
    ),
    "not valid": (lambda ds: ds.isel(episode=0), "dataset 1: a single episode was selected"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_does_not_fit_is_said(parts, change, message):
    parts[1] = change(parts[1])
    with pytest.raises(ValueError, match=message):
        concat(parts)


def test_all_that_does_not_fit_at_once(make):
    a, b = make(), make()
    b = b.drop_vars("reward").assign(obs=b["obs"].astype("f8"), axis=["a", "b", "c"])
    with pytest.raises(
        ValueError, match=r"(?s)do not fit together:.*lacks 'reward'.*'obs' has dtype.*'axis' has other"
    ):
        concat([a, b])


def test_units_that_differ(make):
    a, b = make(), make()
    a["reward"].attrs["units"], b["reward"].attrs["units"] = "m", "mm"
    with pytest.raises(ValueError, match="'reward' has units 'm' in dataset 0 and 'mm' in dataset 1"):
        concat([a, b])
    del b["reward"].attrs["units"]
    assert concat([a, b])["reward"].attrs["units"] == "m"


# Parts of recordings --------------------------------------------------------------------------------------------


def test_filtered_and_sliced_where_nothing_is_lost(make):
    a, b = make((3, 1)), make((2, 5), seed=1)
    whole = concat([a.isel(episode=[1], time=slice(0, 1)), b.isel(episode=[1])])
    assert whole["length"].values.tolist() == [1, 5]
    np.testing.assert_array_equal(whole["obs"][0, :1], a["obs"][1, :1])
    assert np.isnan(whole["obs"][0, 1:]).all()
    np.testing.assert_array_equal(whole["obs"][1], b["obs"][1])
    validate(whole, deep=True)


def test_equal_slices(make):
    parts = [make((3, 5)).isel(time=slice(1, 4)), make((2, 5), seed=1).isel(time=slice(1, 4))]
    whole = concat(parts)
    assert whole["time"].values.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(whole["reward"][2:], parts[1]["reward"])
    validate(whole, deep=True)


def test_steps_in_another_order(make):
    a, b = make((3, 1)), make((2, 3), seed=1)
    whole = concat([a.isel(time=[2, 0, 1]), b])
    np.testing.assert_array_equal(whole["img"][:2], a["img"])
    np.testing.assert_array_equal(whole["img"][2:], b["img"])


def test_a_dataset_without_episodes(make):
    a, none = make((3, 1)), make((2,)).isel(episode=[])
    for parts in ([a, none], [none, a], [from_empty(), a]):
        whole = concat(parts)
        assert whole["length"].values.tolist() == [3, 1]
        np.testing.assert_array_equal(whole["obs"], a["obs"])
    whole = concat([none, none])
    assert whole.sizes["episode"] == 0
    validate(whole, deep=True)


def from_empty():
    with pytest.warns(UserWarning, match="no episode"):
        return from_episodes([])


def test_units_with_braces_are_told_as_they_are(make):
    a, b = make((2,)), make((2,))
    a["reward"] = a["reward"].assign_attrs(units="{m}")
    b["reward"] = b["reward"].assign_attrs(units="{}")
    with pytest.raises(ValueError, match=r"'reward' has units '\{m\}' in dataset 0 and '\{\}' in dataset 1"):
        concat([a, b])


def test_variables_that_were_added(make):
    def added(lengths, seed):
        ds = make(lengths, seed=seed)
        return ds.assign(
            score=("episode", np.arange(len(lengths)) + 0.5),
            hidden=(("episode", "layer"), np.full((len(lengths), 2), seed)),
            speed=abs(ds["reward"]),
            gain=("axis", [1, 2, 3]),
            schedule=("time", np.arange(max(lengths)) * 2),
        ).assign_coords(seed=("episode", np.full(len(lengths), seed)))

    whole = concat([added((3, 1), 4), added((2, 5), 5)])
    assert whole["score"].values.tolist() == [0.5, 1.5, 0.5, 1.5]
    assert whole["hidden"].values.tolist() == [[4, 4], [4, 4], [5, 5], [5, 5]]
    assert whole["seed"].values.tolist() == [4, 4, 5, 5]
    assert whole["gain"].values.tolist() == [1, 2, 3]
    assert whole["schedule"].values.tolist() == [0, 2, 4, 6, 8]
    np.testing.assert_array_equal(whole["speed"], abs(whole["reward"]))
    a, b = added((3, 1), 4), added((2, 5), 5)
    b["schedule"] = b["schedule"] + 1
    with pytest.raises(ValueError, match="'schedule' has other values in dataset 0 than in dataset 1"):
        concat([a, b])


# Attributes, and what is left alone -----------------------------------------------------------------------------


def test_attributes(make):
    a = make().assign_attrs(rows_kept=3, rows_dropped=1, note="same", who="a")
    b = make().assign_attrs(rows_kept=4, note="same", who="b", convention="another")
    attrs = concat([a, b]).attrs
    assert attrs == {
        "trajlab_schema": 1,
        "trajlab_version": "0.1.0",
        "convention": "by hand | another",
        "rows_seen": 24,
        "rows_kept": 7,
        "rows_dropped": 1,
        "note": "same",
    }
    assert concat([a, a]).attrs["convention"] == "by hand"


def test_the_inputs_stay_as_they_are(make, make_lazy, counts):
    loaded, lazy = make(), make_lazy()
    before = loaded.copy(deep=True)
    whole = concat([loaded, lazy])
    whole["obs"].load()
    xr.testing.assert_identical(loaded, before)
    assert not lazy["obs"].variable._in_memory


def test_it_does_not_follow_its_inputs(make):
    a, b = make(), make()
    whole = concat([a, b])
    expected = whole.load().copy(deep=True)
    whole = concat([a, b])
    a["obs"].data = np.zeros_like(a["obs"].data)
    xr.testing.assert_identical(whole.load(), expected)


def test_pickle_loads(parts):
    whole = concat(parts)
    xr.testing.assert_identical(pickle.loads(pickle.dumps(whole)), whole)


def test_a_read_that_is_mostly_padding_warns(make, monkeypatch):
    whole = concat([make((1,) * 40), make((300,))])
    array = whole["wide"].variable._data.array
    assert array.cells_of([np.arange(41), np.arange(300)]) == 340
    assert array.cells_of([np.array([40, 0]), np.array([5, 0, 7])]) == 4


# Again and again ------------------------------------------------------------------------------------------------


def joined_array(ds, name):
    """Return the array beneath a variable, whose parts must be joined no further."""
    array, _ = lazy_base(ds[name].variable)
    assert isinstance(array, JoinedArray)
    for part in array.parts:
        base = None if part is None else lazy_base(part)
        assert base is None or not isinstance(base[0], JoinedArray)
    return array


def episodes(number):
    obs = np.arange(number % 3 + 2.0) + 10 * number
    return [{"obs": obs, "action": np.arange(len(obs) - 1)}, {"obs": obs[:2] * 2, "action": np.arange(1)}]


def test_a_loop_of_concats_is_as_one():
    parts = [from_episodes(episodes(number)) for number in range(180)]
    whole = parts[0]
    for part in parts[1:]:
        whole = concat([whole, part])
    once = concat(parts)
    for name in ("obs", "action", "final_obs", "iteration"):
        np.testing.assert_array_equal(whole[name], once[name])
    assert len(joined_array(whole, "obs").parts) == 180
    assert joined_array(whole, "obs").frame is joined_array(whole, "action").frame
    validate(whole, deep=True)
    assert transitions(whole).equals(transitions(once).assign_coords(run=transitions(whole)["run"]))


@pytest.mark.parametrize(
    "select",
    [slice(1, 4), [0, 2, 3, 5], slice(None, None, -1), [5, 0, 4, 1, 3], slice(0, 0), [2]],
    ids=str,
)
def test_a_selection_is_joined_again(select):
    inner = concat([from_episodes(episodes(number)) for number in (0, 1, 2)])
    part, other = inner.isel(episode=select), from_episodes(episodes(4))
    whole, expected = concat([part, other]), concat([part.load(), other.load()])
    for name in ("obs", "action", "final_obs", "iteration", "mask"):
        np.testing.assert_array_equal(whole[name], expected[name])
    validate(whole, deep=True)
    xr.testing.assert_equal(transitions(whole), transitions(expected))
    if select != [5, 0, 4, 1, 3] and part.sizes["episode"]:
        joined_array(whole, "obs")


def test_the_last_few_of_a_loop_hold_no_others():
    whole = from_episodes(episodes(0))
    for number in range(1, 30):
        whole = concat([whole, from_episodes(episodes(number))]).isel(episode=slice(-4, None))
    array, _ = lazy_base(whole["obs"].variable)
    assert len(array.parts) <= 3
    np.testing.assert_array_equal(whole["obs"].values[-1, :2], [290 * 2, np.nan])


def test_a_variable_that_was_added_between():
    inner = concat([from_episodes(episodes(number)) for number in (0, 1)])
    inner = inner.assign(twice=inner["obs"] * 2)
    other = from_episodes(episodes(2))
    whole = concat([inner, other.assign(twice=other["obs"] * 2)])
    np.testing.assert_array_equal(whole["twice"], whole["obs"] * 2)
    np.testing.assert_array_equal(transitions(whole)["twice"], transitions(whole)["obs"] * 2)
