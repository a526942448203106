"""Names, labels and units of the fields' own dims, and axes that are merged into the environments."""

import jax.numpy as jnp
import numpy as np
import pytest

import trajlab as tl

T, N = 4, 2


def array(*inner):
    shape = (T, N, *inner)
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def rollout():
    return {
        "obs": {"joints": array(2), "image": array(3, 5)},
        "next_obs": {"joints": array(2), "image": array(3, 5)},
        "reward": array(),
        "square": array(2, 2),
        "gain_units": array(),
        "done": array() % 3 == 2,
    }


def dataset(**options):
    return tl.from_rollout(rollout(), **options)


# Dims, coords, units -----------------------------------------------------------------------------------------


def test_dims_by_default():
    ds = dataset()
    assert ds["obs.joints"].dims == ("episode", "time", "obs.joints_dim_0")
    assert ds["obs.image"].dims == ("episode", "time", "obs.image_dim_0", "obs.image_dim_1")
    assert ds["next_obs.image"].dims == ds["obs.image"].dims
    assert ds["final_obs.image"].dims == ("episode", "obs.image_dim_0", "obs.image_dim_1")
    assert ds["reward"].dims == ("episode", "time")


@pytest.mark.parametrize("joint", ["joint", ["joint"], ("joint",)])
def test_dims_coords_and_units(joint):
    ds = dataset(
        dims={"obs.joints": joint, "obs.image": ["row", "column"]},
        coords={"joint": ["hip", "knee"], "row": [10, 20, 30]},
        units={"obs.joints": ["rad", "m"], "reward": "points", "obs.image": "lux"},
    )
    for name in ("obs.joints", "next_obs.joints"):
        assert ds[name].dims == ("episode", "time", "joint")
    assert ds["final_obs.joints"].dims == ("episode", "joint")
    assert ds["joint"].values.tolist() == ["hip", "knee"]
    assert ds["joint_units"].values.tolist() == ["rad", "m"]
    assert ds["row"].values.tolist() == [10, 20, 30]
    assert "column" not in ds.coords
    assert (ds["reward"].attrs["units"], ds["obs.image"].attrs["units"]) == ("points", "lux")
    assert ds["final_obs.image"].attrs["units"] == "lux"
    np.testing.assert_array_equal(ds["obs.joints"].sel(joint="knee", episode=0)[:1], array(2)[:1, 0, 1])


def test_units_by_label():
    ds = dataset(dims={"obs.joints": "joint"}, coords={"joint": ["hip", "knee"]}, units={"obs.joints": {"knee": "m"}})
    assert ds["joint_units"].values.tolist() == ["", "m"]
    assert dataset(units={"obs.joints": {0: "rad"}})["obs.joints_dim_0_units"].values.tolist() == ["rad", ""]


def test_fields_may_share_a_dim():
    ds = tl.from_rollout({"a": array(2), "b": array(2), "done": array() > 99}, dims={"a": "x", "b": "x"})
    assert (ds["a"].dims, ds["b"].dims) == (("episode", "time", "x"),) * 2


def test_labels_hold_for_a_recorder_too_and_for_the_renamed_field():
    recorder = tl.Recorder(
        {"pose": "obs.joints"}, dims={"pose": ["joint"]}, coords={"joint": ["a", "b"]}, units={"pose": "rad"}
    )
    recorder.record(rollout())
    ds = recorder.to_dataset()
    assert ds["pose"].dims == ("episode", "time", "joint")
    assert ds["pose"].attrs["units"] == "rad"


BAD_LABELS = {
    "dims of no field": (
        {"dims": {"obs.joint": "x"}},
        KeyError,
        "no field for dims= 'obs.joint'. Did you mean 'obs.joints'",
    ),
    "units of no field": (
        {"units": {"rewards": "x"}},
        KeyError,
        "no field for units= 'rewards'. Did you mean 'reward'",
    ),
    "coords of no dim": ({"coords": {"joint": [1, 2]}}, KeyError, "no dim for coords= 'joint'"),
    "too few dims": (
        {"dims": {"obs.image": ["row"]}},
        ValueError,
        r"dims\['obs.image'\]=\['row'\]: .* shape \(3, 5\), so expected 2 names",
    ),
    "dims of a scalar": ({"dims": {"reward": ["x"]}}, ValueError, r"dims\['reward'\]=\['x'\]: .* expected 0 names"),
    "reserved dim": ({"dims": {"obs.joints": "time"}}, ValueError, "'time' is a name of the Dataset; choose another"),
    "dim as a field": (
        {"dims": {"obs.joints": "reward"}},
        ValueError,
        "'reward' is a name of the Dataset; choose another",
    ),
    "one dim, two sizes": (
        {"dims": {"obs.joints": "x", "obs.image": ["x", "y"]}},
        ValueError,
        "dim 'x' has size 3 elsewhere and 2 in 'obs.joints'; use two names",
    ),
    "one dim twice": ({"dims": {"square": ["x", "x"]}}, ValueError, r"dims\['square'\]=\['x', 'x'\] has a name twice"),
    "no name": (
        {"dims": {"obs.joints": [1]}},
        TypeError,
        r"dims\['obs.joints'\]=\[1\]; expected a name or a list of names",
    ),
    "units called like a field": (
        {"dims": {"obs.joints": "gain"}, "units": {"obs.joints": ["a", "b"]}},
        ValueError,
        "'gain_units' is a field",
    ),
    "wrong number of labels": (
        {"coords": {"obs.joints_dim_0": ["a"]}},
        ValueError,
        r"coords\['obs.joints_dim_0'\] has shape \(1,\); expected \(2,\)",
    ),
    "labels of two dims": (
        {"coords": {"obs.joints_dim_0": np.zeros((2, 2))}},
        ValueError,
        r"has shape \(2, 2\); expected \(2,\)",
    ),
    "wrong number of units": (
        {"units": {"obs.joints": ["m"]}},
        ValueError,
        r"units\['obs.joints'\] lists 1; expected 2",
    ),
    "units of two dims": (
        {"units": {"obs.image": ["m"] * 3}},
        ValueError,
        r"units\['obs.image'\].*: expected one text",
    ),
    "units of a scalar": ({"units": {"reward": ["m"]}}, ValueError, r"units\['reward'\].*: expected one text"),
    "units of no label": (
        {"units": {"obs.joints": {"hip": "m"}}},
        ValueError,
        r"units\['obs.joints'\]: 'hip' is no label of 'obs.joints_dim_0' \(0, 1\)",
    ),
    "two units of one dim": (
        {
            "dims": {"obs.joints": "x", "next_obs.joints": "x"},
            "units": {"obs.joints": ["m", "m"], "next_obs.joints": ["s", "s"]},
        },
        ValueError,
        "dim 'x' has other units elsewhere; name the field's dim differently",
    ),
}


@pytest.mark.parametrize("what", BAD_LABELS)
def test_labels_that_do_not_fit_are_refused_by_the_first_call(what):
    options, error, match = BAD_LABELS[what]
    recorder = tl.Recorder(**options)
    with pytest.raises(error, match=match):
        recorder.record(rollout())
    assert recorder.num_recorded_steps == 0
    assert "nothing recorded yet" in repr(recorder)


def test_all_problems_are_told_at_once():
    with pytest.raises(
        ValueError, match=r"(?s)dims\['obs.image'\].*coords\['obs.joints_dim_0'\].*units\['obs.joints'\]"
    ):
        dataset(dims={"obs.image": ["row"]}, coords={"obs.joints_dim_0": ["a"]}, units={"obs.joints": ["m"]})


# Axes --------------------------------------------------------------------------------------------------------

SIZES = {"T": 4, "N": 2, "U": 3, "S": 2, "E": 3}


def numbered(axes, *inner):
    """Return an array with these leading axes in which every cell of a plain (U, T, S, E, N) recording has its number."""
    plain = [letter for letter in "UTSEN" if letter in axes]
    count = int(np.prod([SIZES[letter] for letter in plain]))
    values = (
        np.arange(count)
        .reshape([SIZES[letter] for letter in plain])
        .transpose([plain.index(letter) for letter in axes])
    )
    return (values[(..., *(None,) * len(inner))] * np.ones(inner, int)).astype(np.int32)


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("axes", ["TN", "NT", "UTN", "TUN", "UNT", "STN", "TSN", "TNS", "SUTN", "UTSEN", "NTESU"])
def test_axes(axes, convert):
    chunk = {"obs": numbered(axes, 2), "done": np.zeros_like(numbered(axes), bool)}
    recorder = tl.Recorder(convention=tl.Convention(axes=axes))
    for _ in range(2):
        recorder.record({name: convert(x) for name, x in chunk.items()})
    ds = recorder.to_dataset()
    letters = [letter for letter in axes if letter not in "UT"]
    rows = SIZES["T"] * (SIZES["U"] if "U" in axes else 1)
    envs = int(np.prod([SIZES[letter] for letter in letters]))
    assert recorder.num_recorded_steps == 2 * rows
    assert (ds.sizes["episode"], ds.sizes["time"]) == (envs, 2 * rows)
    # Environments are numbered in the arrays' order of the merged axes.
    order = [letter for letter in "SEN" if letter in axes]
    plain = np.arange(rows * envs).reshape(rows, *(SIZES[letter] for letter in order))
    want = plain.transpose(0, *(1 + order.index(letter) for letter in letters)).reshape(rows, envs).T
    np.testing.assert_array_equal(ds["obs"].values[:, :rows, 1], want)
    np.testing.assert_array_equal(ds["obs"].values[:, rows:, 0], want)
    iteration = ds["iteration"].values[0].tolist()
    updates = 2 * (SIZES["U"] if "U" in axes else 1)
    assert iteration == [update for update in range(updates) for _ in range(2 * rows // updates)]
    for letter in letters:
        if letter != "N":
            place = np.unravel_index(np.arange(envs), [SIZES[other] for other in letters])[letters.index(letter)]
            assert ds[letter].dims == ("episode",)
            assert ds[letter].values.tolist() == place.tolist()


def seeded(**options):
    chunk = {"obs": numbered("SUTN", 2), "done": np.zeros_like(numbered("SUTN"), bool)}
    return tl.from_rollout(chunk, convention=tl.Convention(axes="SUTN"), **options)


@pytest.mark.parametrize("name", ["seed", ["seed"]])
def test_extra_axes_have_names_and_labels(name):
    ds = seeded(dims={"S": name, "obs": "xy"}, coords={"seed": [17, 42], "xy": ["x", "y"]})
    assert ds["seed"].values.tolist() == [17, 17, 42, 42]
    assert ds["env"].values.tolist() == [0, 1, 2, 3]
    assert ds["xy"].values.tolist() == ["x", "y"]
    assert "S" not in ds.variables


def test_extra_axes_of_chosen_environments():
    ds = seeded(dims={"S": "seed"}, coords={"seed": ["a", "b"]}, envs=[3, 0])
    assert (ds["env"].values.tolist(), ds["seed"].values.tolist()) == ([0, 3], ["a", "b"])


def test_steps_of_merged_axes():
    recorder = tl.Recorder(convention=tl.Convention(axes="SUTN"), dims={"S": "seed"})
    for row in range(3):
        recorder.record_step({"obs": np.arange(4).reshape(2, 2) + 10 * row, "done": np.zeros((2, 2), bool)})
    ds = recorder.to_dataset()
    assert ds["obs"].values[:, 1].tolist() == [10, 11, 12, 13]
    assert ds["seed"].values.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"coords": {"S": [1]}}, ValueError, r"coords\['S'\] has shape \(1,\); expected \(2,\), as the axis S"),
        ({"dims": {"X": "seed"}}, KeyError, "no field for dims= 'X'"),
        ({"dims": {"S": ["a", "b"]}}, ValueError, r"dims\['S'\]=\['a', 'b'\]; expected one name"),
        ({"dims": {"S": 3}}, TypeError, r"dims\['S'\]=3; expected a name"),
        ({"dims": {"S": "time"}}, ValueError, r"dims\['S'\]: 'time' is a name of the Dataset; choose another"),
        ({"dims": {"S": "obs"}}, ValueError, r"dims\['S'\]: 'obs' is a name of the Dataset; choose another"),
        (
            {"dims": {"S": "seed", "obs": "seed"}},
            ValueError,
            r"dims\['obs'\]: 'seed' is a name of the Dataset; choose another",
        ),
        ({"coords": {"seed": [1, 2]}}, KeyError, "no dim for coords= 'seed'"),
    ],
)
def test_names_of_axes_that_do_not_fit_are_refused_by_the_first_call(options, error, match):
    with pytest.raises(error, match=match):
        seeded(**options)


def test_a_field_called_like_an_axis_is_refused_by_the_first_call():
    chunk = {"S": numbered("STN"), "done": np.zeros_like(numbered("STN"), bool)}
    recorder = tl.Recorder(convention=tl.Convention(axes="STN"))
    with pytest.raises(ValueError, match=r"dims\['S'\]: 'S' is a name of the Dataset; choose another"):
        recorder.record(chunk)
    named = tl.from_rollout(chunk, convention=tl.Convention(axes="STN"), dims={"S": "seed"})
    assert named["S"].dims == ("episode", "time")


@pytest.mark.parametrize("axes", ["T", "N", "TT", "tn", "", "TN1", "TNTN", "T N"])
def test_axes_that_make_no_sense_are_refused_at_once(axes):
    with pytest.raises(ValueError, match=f"axes={axes!r}; expected distinct capital letters with T and N"):
        tl.Convention(axes=axes)
