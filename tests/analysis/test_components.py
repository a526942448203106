"""A label names one number of each transition, as in `stack_fields`."""

import numpy as np
import pytest

import trajlab as tl
from trajlab.analysis.components import components_of, needed_by
from trajlab.dataset.flat import iter_flat


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    episodes = [
        {"obs": rng.normal(size=(n, 2)), "reward": rng.normal(size=n), "img": rng.integers(0, 9, (n, 9, 9)), "pair": rng.integers(0, 9, (n, 2, 2)), "one": rng.normal(size=(n, 1)), "name": np.array(["a"] * n)}
        for n in (3, 1, 4)
    ]  # fmt: skip
    return tl.from_episodes(
        episodes, dims={"obs": ["axis"]}, coords={"axis": ["x", "y"]}, units={"obs": ["m", "m/s"], "reward": "points"}
    )


@pytest.mark.parametrize("label", ["obs[x]", "obs[y]", "reward", "pair[1,0]", "img[7,8]", "one[0]"])
@pytest.mark.parametrize("load", [False, True])
def test_values_are_those_of_stacked_fields(ds, label, load):
    stacked = tl.stack_fields(ds, [label.partition("[")[0]]).sel(field=label).values[ds["mask"].values]
    ds, (component,) = components_of(ds.load() if load else ds, [label], "occupancy")
    found = {}
    for batch in iter_flat(ds, component.needed):
        found |= dict(zip(zip(batch.episode, batch.time, strict=True), component.values(batch), strict=True))
    np.testing.assert_array_equal(np.array([found[key] for key in sorted(found)], stacked.dtype), stacked)


def test_titles_and_units(ds):
    labels = ["obs[y]", "reward", "pair[0,1]"]
    ds["pair"].attrs["long_name"] = "two by two"
    found = components_of(ds, labels, "occupancy")[1]
    assert [component.title for component in found] == ["obs[y]", "reward", "two by two[0,1]"]
    assert [component.units for component in found] == ["m/s", "points", ""]
    assert needed_by([*found, *found]) == ["obs", "reward", "pair"]


def test_of_a_large_field_one_component_is_read(ds):
    ds, (component,) = components_of(ds, ["img[0,1]"], "occupancy")
    assert ds[component.name].dims == ("episode", "time")


def test_fields_in_a_role_and_single_components():
    ds = tl.from_rollout(
        {"o": np.ones((3, 2, 2)), "a": np.ones((3, 2)), "done": np.zeros((3, 2), bool)},
        convention=tl.Convention(observation="o", action="a"),
    )
    found = components_of(ds, ["obs[1]", "action", "iteration"], "occupancy")[1]
    assert [(component.field, component.index) for component in found] == [("o", (1,)), ("a", ()), ("iteration", ())]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("rewad", "no component 'rewad'. Did you mean 'reward'?"),
        ("obs[z]", r"no component 'obs\[z\]'\. There are: 'obs\[x\]', 'obs\[y\]'\."),
        ("obs", r"no component 'obs'.*There are: 'obs\[x\]', 'obs\[y\]'\."),
        ("img[9,0]", r"'img\[9,0\]'\. There are 81, such as 'img\[0,0\]', 'img\[0,1\]', 'img\[0,2\]'\."),
        ("img[0]", r"no component 'img\[0\]'\. There are 81"),
        ("ob[y]", r"no component 'ob\[y\]'\. Did you mean 'obs\[y\]'\? There are 10, such as 'name', 'obs\[x\]'"),
        ("length", "no component 'length'"),
    ],
)
def test_labels_of_no_component(ds, label, message):
    with pytest.raises(KeyError, match=message):
        components_of(ds, [label], "occupancy")


def test_what_is_no_number(ds):
    with pytest.raises(TypeError, match="occupancy: 'name' has dtype <U1"):
        components_of(ds, ["name"], "occupancy")
    with pytest.raises(TypeError, match="3 is no component; expected a label such as 'reward'"):
        tl.occupancy(ds, 3, "reward")


@pytest.mark.parametrize("label", ["obs[y]", "one[0]", "pair[1,0]"])
def test_a_component_where_a_whole_field_is_taken(ds, label):
    field = label.partition("[")[0]
    for call in (tl.state_trace, tl.state_histogram, tl.action_runs, lambda ds, name: tl.plot_overview(ds, state=name)):
        with pytest.raises(KeyError, match="a whole field is taken here. Select its component first: ds") as told:
            call(ds, label)
    advice, named = str(told.value).partition("first: ")[2].split(", and name ")
    (column,) = tl.stack_fields(eval(advice, {"ds": ds}), [eval(named)]).transpose("field", ...).values
    np.testing.assert_array_equal(column, tl.stack_fields(ds, [field]).sel(field=label).values)


def test_no_component_where_a_whole_field_is_taken(ds):
    with pytest.raises(KeyError, match=r"Select components first, as in: ds.sel\({'axis': \['x'\]}\), and name 'obs'"):
        tl.state_trace(ds, "obs[0]")
    with pytest.raises(KeyError, match=r"no field 'reward\[0\]'. Did you mean 'reward'"):
        tl.state_trace(ds, "reward[0]")
