"""trajlab/dataset/schema.py and fields.py: what passes, what is refused and how, and which variable is what."""

import numpy as np
import pytest
import xarray as xr

import trajlab as tl
from trajlab.dataset.fields import (
    as_text,
    choose_fields,
    component_labels,
    component_units,
    field_names,
    final_fields,
    final_names,
    resolve_field,
)
from trajlab.dataset.from_episodes import from_episodes
from trajlab.dataset.schema import find_problems, require_whole, validate
from trajlab.padding import shown_as

FIELDS = ["obs", "action", "reward", "terminated", "truncated", "img", "wide", "word"]


# What passes ----------------------------------------------------------------------------------------------------


def test_a_dataset_passes(ds):
    validate(ds)
    validate(ds, deep=True)


def test_shallow_reads_nothing_deep_reads_all_once(lazy, counts):
    validate(lazy)
    assert counts.total == 0
    validate(lazy, deep=True)
    assert set(counts.values) == {*FIELDS, "iteration", "mask", "final_obs"}
    assert counts.values["obs"] == lazy["obs"].size


KEPT = {
    "time sliced": lambda ds: ds.isel(time=slice(1, 4)),
    "time strided": lambda ds: ds.isel(time=slice(None, None, 2)),
    "no time": lambda ds: ds.isel(time=slice(0, 0)),
    "filtered": lambda ds: ds.isel(episode=[0, 2]),
    "filtered by a coordinate": lambda ds: ds.isel(episode=ds.complete.values),
    "reordered": lambda ds: ds.sortby("length"),
    "no episode": lambda ds: ds.isel(episode=[]),
    "some fields": lambda ds: ds[["action"]],
    "no field": lambda ds: ds.drop_vars(list(ds.data_vars)),
    "variable added": lambda ds: ds.assign(speed=abs(ds.obs.isel(axis=0)), score=("episode", [1.0, 2, 3, 4])),
    "coordinate added": lambda ds: ds.assign_coords(seed=("episode", [1, 1, 2, 2]), when=("time", np.arange(5.0))),
    "comparison keeps attributes": lambda ds: ds.assign(good=ds.action > 1),
    "where, whole": lambda ds: ds.where(ds.length > 1, drop=True),
    "where, by cell": lambda ds: ds.drop_vars("final_obs").where(ds.mask),
    "renamed field": lambda ds: ds.rename(obs="observation", final_obs="final_observation"),
    "copied": lambda ds: ds.copy(deep=True),
}


@pytest.mark.parametrize("change", KEPT.values(), ids=KEPT)
def test_what_users_do_still_passes(ds, change):
    validate(change(ds), deep=True)


def test_from_episodes_passes():
    episodes = [
        {"obs": np.zeros((3, 2)), "action": np.arange(2), "terminated": np.array([False, True])},
        {"obs": np.zeros((2, 2)), "action": np.arange(1), "terminated": np.array([False])},
    ]
    validate(from_episodes(episodes), deep=True)


@pytest.mark.parametrize("storage", ["netcdf", "zarr"])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr (V|format )3 spec")
def test_files_pass(loaded, tmp_path, storage):
    path = tmp_path / "file"
    if storage == "netcdf":
        loaded.to_netcdf(path, engine="h5netcdf")
        with xr.open_dataset(path, engine="h5netcdf") as back:
            validate(back, deep=True)
    else:
        loaded.to_zarr(path)
        validate(xr.open_zarr(path, chunks=None), deep=True)


def test_variable_width_strings_pass(loaded):
    loaded["end_reason"] = loaded["end_reason"].astype(np.dtypes.StringDType())
    loaded["word"] = loaded["word"].astype(object)
    validate(loaded, deep=True)


# What is refused ------------------------------------------------------------------------------------------------


BROKEN = {
    "schema missing": (lambda ds: ds.drop_attrs(deep=False), r"attrs\['trajlab_schema'\] is missing"),
    "schema newer": (lambda ds: ds.assign_attrs(trajlab_schema=2), "is 2; this version of trajlab reads schema 1"),
    "one episode": (lambda ds: ds.isel(episode=1), r"single episode.*ds\.sel\(episode=\[1\]\).*\.episode\(ds, 1\)"),
    "one step": (lambda ds: ds.isel(time=1), r"single step was selected.*ds\.sel\(time=\[1\]\)"),
    "no dims": (lambda ds: xr.Dataset(attrs=ds.attrs), "the dim 'episode' is missing"),
    "no labels": (lambda ds: ds.drop_vars("time"), "the dim 'time' has no labels"),
    "labels of another dtype": (
        lambda ds: ds.assign_coords(episode=ds.episode.astype(float)),
        "'episode' has dtype float64; expected int64",
    ),
    "labels twice": (
        lambda ds: ds.assign_coords(episode=[0, 1, 1, 2]),
        r"labels of 'episode' occur more than once \(1\); trajlab\.concat renumbers",
    ),
    "negative time": (lambda ds: ds.assign_coords(time=ds.time - 1), "'time' has the label -1"),
    "coordinate missing": (lambda ds: ds.drop_vars("length"), r"'length' over \(episode\) is missing"),
    "mask missing": (lambda ds: ds.drop_vars("mask"), r"'mask' over \(episode, time\) is missing"),
    "no coordinate": (lambda ds: ds.reset_coords("env"), r"ds\.set_coords\('env'\)"),
    "wrong dims": (lambda ds: ds.assign_coords(env=ds.mask * 1), r"'env' has dims \(episode, time\); expected"),
    "wrong dtype": (lambda ds: ds.assign_coords(env=ds.env.astype("int32")), "'env' has dtype int32; expected"),
    "mask of floats": (lambda ds: ds.assign_coords(mask=ds.mask * 1.0), "expected bool: a plain xarray.concat"),
    "spread over time": (lambda ds: ds.where(ds.mask), r"'final_obs' has dims.*ds\.drop_vars\('final_obs'\)"),
    "transposed": (lambda ds: ds.transpose("time", "episode", ...), r"ds\.transpose\('episode', 'time', \.\.\.\)"),
    "negative length": (lambda ds: ds.assign_coords(length=-ds.length), "'length' is negative in episodes 0, 1, 2, 3"),
    "end reason": (
        lambda ds: ds.assign_coords(end_reason=("episode", ["terminated", "timeout", "cut", "cut"])),
        "'end_reason' is 'timeout' in episode 1; expected 'terminated', 'truncated', 'done', 'cut'",
    ),
    "complete": (lambda ds: ds.assign_coords(complete=~ds.complete), "'complete' does not say whether"),
    "padding": (lambda ds: with_attrs(ds, padding="0"), "'action' has attrs.*expected '-2147483648' for int32"),
    "recorded dtype": (lambda ds: with_attrs(ds, recorded_dtype="integer"), "'integer', which is no dtype"),
    "padding of another type": (lambda ds: with_attrs(ds, padding=0), r"attrs\['padding'\]=0; expected text"),
}  # fmt: skip


def with_attrs(ds, **attrs):
    ds = ds.copy()
    ds["action"] = ds["action"].assign_attrs(attrs)
    return ds


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_said(ds, change, message):
    with pytest.raises(ValueError, match=f"(?s)not a Dataset of trajlab: ?.*{message}"):
        validate(change(ds))


def test_all_problems_at_once(loaded):
    broken = loaded.drop_vars(["env", "length"]).reset_coords("mask")
    broken.attrs.clear()
    assert len(find_problems(broken)) == 4
    with pytest.raises(ValueError, match=r"(?s)trajlab_schema.*'length'.*'env'.*'mask'"):
        validate(broken)


def test_a_plain_concat_is_recognised(make):
    short, long = make((2, 1)), make((4, 3))
    for joined in [
        xr.concat([short, long], "episode", data_vars="all", coords="different", compat="equals", join="outer"),
        xr.concat([short, short], "episode", data_vars="all", coords="different", compat="equals", join="outer"),
    ]:
        with pytest.raises(ValueError, match=r"trajlab\.concat"):
            validate(joined)


def test_no_dataset_at_all(loaded):
    with pytest.raises(TypeError, match=r"as Recorder\.to_dataset\(\) makes it; got DataArray"):
        validate(loaded["obs"])


def test_views_in_place_of_the_dataset(loaded):
    with pytest.raises(ValueError, match=r"got transitions.*that they were made from$"):
        validate(tl.transitions(loaded))
    with pytest.raises(ValueError, match=r"ds\.sel\(episode=\[1\]\)$"):
        validate(tl.episode(loaded, 1))
    with pytest.raises(ValueError, match=r"or take trajlab\.episode\(ds, 1\), which has no padding$"):
        validate(loaded.sel(episode=1))


MADE_FROM = "pass the Dataset of episodes that it was made from"


def test_a_result_in_place_of_what_it_was_made_from(loaded):
    with pytest.raises(ValueError, match=rf"trajlab: got a result of trajlab\.action_histogram; {MADE_FROM}"):
        tl.plot_action_histogram(tl.action_histogram(loaded))
    with pytest.raises(TypeError, match=rf"got DataArray, a result of trajlab\.returns; {MADE_FROM}"):
        validate(tl.returns(loaded))
    with pytest.raises(ValueError, match=rf"dataset 1: got a result of trajlab\.state_trace; {MADE_FROM}"):
        tl.concat([loaded, tl.state_trace(loaded, "obs")])


def test_where_a_result_left_its_attributes_a_dataset_is_still_one(loaded):
    validate(loaded.assign_attrs(tl.action_histogram(loaded).attrs))
    merged = tl.event_times(loaded, "terminated").merge(loaded)
    with pytest.raises(ValueError, match=r"put it back: ds.attrs\['trajlab_schema'\] = 1"):
        validate(merged)
    validate(merged.assign_attrs(trajlab_schema=1))


DEEP = {
    "mask": ("mask", (0, 4), True, "'mask' is not `time < length`, first at episode 0, time 4"),
    "padding of ints": ("action", (1, 2), 0, "'action' holds other values than '-2147483648' in 1 cells of padding"),
    "padding of floats": ("obs", (3, 4, 1), 0.0, "'obs' holds other values than 'nan'.*episode 3, time 4"),
    "padding of bools": ("truncated", (1, 3), True, "'truncated' holds other values than 'false'"),
    "padding of strings": ("word", (0, 3), "a", "'word' holds other values than ''"),
    "final observation": ("final_obs", (3, 0), 1.0, "'final_obs' holds.*unknown final values, first at episode 3"),
    "flag before the end": ("terminated", (2, 1), True, r"flag 'terminated' .* episode 2 \(terminated\), time 1"),
    "flag missing": ("terminated", (0, 2), False, r"flag 'terminated'.* episode 0 \(terminated\), time 2"),
    "flag of a cut episode": ("terminated", (3, 1), True, r"flag 'terminated' .* episode 3 \(cut\), time 1"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "cell", "value", "message"), DEEP.values(), ids=DEEP)
def test_what_only_the_values_show(loaded, name, cell, value, message):
    values = loaded[name].values.copy()
    values[cell] = value
    loaded[name] = loaded[name].copy(data=values)
    validate(loaded)
    with pytest.raises(ValueError, match=message):
        validate(loaded, deep=True)


def test_deep_looks_slab_by_slab(loaded, monkeypatch):
    monkeypatch.setattr("trajlab.dataset.schema_values.READ_CELLS", 6)
    validate(loaded, deep=True)
    loaded["obs"] = loaded["obs"].fillna(0)
    with pytest.raises(ValueError, match=r"'obs' holds .* in 9 cells of padding, first at episode 0, time 3"):
        validate(loaded, deep=True)


def test_flags_of_the_previous_row_are_not_compared(loaded):
    loaded["terminated"] = loaded["terminated"].shift(time=1, fill_value=False) & loaded["mask"]
    loaded.attrs["convention"] = "terminated=terminated (found); flags=previous_row (given)"
    validate(loaded, deep=True)


def test_sliced_time_is_deeply_valid_too(loaded):
    validate(loaded.isel(time=slice(2, None)), deep=True)


EVERY_FUNCTION = {
    "episode": lambda ds: tl.episode(ds, 0),
    "transitions": tl.transitions,
    "stack_fields": tl.stack_fields,
    "episode_table": tl.episode_table,
    "to_dataframe": tl.to_dataframe,
    "returns": tl.returns,
    "action_histogram": tl.action_histogram,
    "state_trace": lambda ds: tl.state_trace(ds, "obs"),
    "plot_action_histogram": tl.plot_action_histogram,
    "plot_returns": tl.plot_returns,
    "plot_state_trace": lambda ds: tl.plot_state_trace(ds, "obs"),
    "concat": lambda ds: tl.concat([ds]),
}


@pytest.mark.parametrize("function", EVERY_FUNCTION.values(), ids=EVERY_FUNCTION)
def test_every_function_checks(loaded, function):
    with pytest.raises(ValueError, match="schema'] is 9; this version"):
        function(loaded.assign_attrs(trajlab_schema=9))
    with pytest.raises(ValueError, match=r"'complete' over \(episode\) is missing"):
        function(loaded.drop_vars("complete"))


def test_labels_out_of_order_are_compared(loaded):
    validate(loaded.isel(episode=[3, 0], time=[4, 1]))
    with pytest.raises(ValueError, match=r"labels of 'episode' occur more than once \(7\)"):
        validate(loaded.assign_coords(episode=[9, 7, 8, 7]))


# Whole episodes -------------------------------------------------------------------------------------------------


def test_require_whole(ds):
    require_whole(ds, "returns")
    require_whole(ds.isel(episode=[]), "returns")
    require_whole(ds.isel(time=slice(None, None, -1)), "returns")
    require_whole(ds.isel(episode=[0, 1], time=slice(0, 3)), "returns")
    with pytest.raises(ValueError, match=r"returns: .* 2 of the 5 steps .* time 0\)"):
        require_whole(ds.isel(time=slice(2, None)), "returns")
    with pytest.raises(ValueError, match=r"returns: .*time 3\).*ds\.isel\(episode=ds\.length\.values <= 3\)"):
        require_whole(ds.isel(time=slice(0, 3)), "returns")


def test_the_mend_that_require_whole_names(loaded):
    sliced = loaded.isel(time=slice(0, 3))
    require_whole(sliced.isel(episode=sliced.length.values <= 3), "returns")


# Which variable is what -----------------------------------------------------------------------------------------


def test_field_names(ds):
    assert field_names(ds) == FIELDS
    assert field_names(ds.assign(speed=abs(ds.reward))) == [*FIELDS, "speed"]
    assert field_names(ds.isel(episode=[])) == FIELDS


def test_final_names(ds):
    assert final_names(ds) == ["final_obs"]
    assert final_fields(ds) == {"final_obs": "obs"}
    without = ds.drop_vars("obs")
    assert final_names(without) == ["final_obs"]
    assert final_fields(without) == {}
    scored = ds.assign(final_score=("episode", np.arange(4)), final_reward=("episode", np.arange(4.0)))
    assert final_names(scored) == ["final_obs", "final_reward"]


def test_a_final_observation_whose_name_was_taken(loaded):
    loaded = loaded.rename(final_obs="final_obs_").assign(final_obs=loaded["obs"] * 2)
    assert final_fields(loaded) == {"final_obs_": "obs"}
    assert "final_obs" in field_names(loaded)


def test_resolve_field(ds):
    assert resolve_field(ds, "obs") == "obs"
    assert resolve_field(ds, "iteration") == "iteration"
    renamed = ds.rename(action="a", reward="r", obs="o")
    assert [resolve_field(renamed, name) for name in ("action", "reward", "obs", "observation")] == list("aroo")


def test_the_name_goes_before_the_role(loaded):
    loaded = loaded.assign(action=loaded["reward"].assign_attrs(role="reward"), act=loaded["action"])
    assert resolve_field(loaded, "action") == "action"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acton", "no field 'acton'. Did you mean 'action'\\? There are: 'obs', 'action'"),
        ("length", r"no field 'length': it is a variable over \(episode\), not over \(episode, time, \.\.\.\)"),
        ("final_obs", r"over \(episode, axis\)"),
        ("mask", r"over \(episode, time\)"),
    ],
)
def test_no_such_field(ds, name, message):
    with pytest.raises(KeyError, match=message):
        resolve_field(ds, name)


def test_several_fields_of_one_role(loaded):
    loaded = loaded.rename(obs="obs.a").assign({"obs.b": loaded["obs"]})
    with pytest.raises(KeyError, match=r"name one instead of 'obs'\. There are: 'obs.a', 'obs.b'"):
        resolve_field(loaded, "obs")


SMALL = [name for name in FIELDS if name != "wide"]


@pytest.mark.parametrize(
    ("fields", "chosen", "exact"),
    [
        (None, SMALL, []),
        ("reward", ["reward"], ["reward"]),
        (["reward", "obs"], ["reward", "obs"], ["reward", "obs"]),
        (["t*", "obs"], ["terminated", "truncated", "obs"], ["obs"]),
        (["*"], SMALL, []),
        (["*", "wide"], [*SMALL, "wide"], ["wide"]),
        (["w*"], ["word"], []),
        (["*", "-t*", "-obs"], ["action", "reward", "img", "word"], []),
        (["-img"], [name for name in SMALL if name != "img"], []),
        (["obs", "obs", "iteration"], ["obs", "iteration"], ["obs", "iteration"]),
    ],
    ids=str,
)
def test_choose_fields(ds, fields, chosen, exact):
    assert choose_fields(ds, fields) == (chosen, exact)


def test_choose_a_subtree(loaded):
    loaded = loaded.rename(obs="obs.a", reward="obs.b", action="a")
    assert choose_fields(loaded, ["obs"])[0] == ["obs.a", "obs.b"]
    assert choose_fields(loaded, ["action"]) == (["a"], ["a"])


@pytest.mark.parametrize("fields", ["rewrd", ["rewrd"], ["-rewrd"]])
def test_choose_what_is_not_there(ds, fields):
    with pytest.raises(KeyError, match=r"no field 'rewrd'\. Did you mean 'reward'"):
        choose_fields(ds, fields)


def test_component_labels(ds):
    assert component_labels(ds, "reward") == ["reward"]
    assert component_labels(ds, "obs") == ["obs[x]", "obs[y]", "obs[z]"]
    assert component_labels(ds, "img") == ["img[0,0]", "img[0,1]", "img[1,0]", "img[1,1]"]
    assert component_labels(ds, "final_obs", base="end") == ["end[x]", "end[y]", "end[z]"]
    twice = ds.assign_coords(axis=["x", "x", "z"])
    assert component_labels(twice, "obs") == ["obs[0]", "obs[1]", "obs[2]"]


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("float64", "f8"),
        ("bfloat16", "f4"),
        ("float8_e4m3fn", "f4"),
        ("int4", "i1"),
        ("uint2", "u1"),
        ("key", "u4"),
        ("str160", "U"),
        ("<U5", "<U5"),
        ("datetime64[ns]", "M8[ns]"),
        ("bool", "?"),
    ],
)
def test_shown_as(recorded, shown):
    assert shown_as(recorded) == np.dtype(shown)
    assert shown_as("integer") is None


def test_component_units(loaded):
    assert component_units(loaded, "obs") == ["m", "m", "rad"]
    assert component_units(loaded, "reward") == [""]
    two = loaded.assign_coords(row_units=("row", ["m", "s"]), column_units=("column", ["", "kg"]))
    assert component_units(two, "img") == ["m", "kg", "s", "kg"]
    assert component_units(two.assign(img=two["img"].assign_attrs(units="lm")), "img") == ["lm"] * 4
    loaded["axis_units"] = loaded["axis_units"].astype(object)
    assert component_units(loaded, "obs") == ["m", "m", "rad"]


def test_text_of_any_dtype():
    for dtype in ("U3", "S3", object, np.dtypes.StringDType()):
        values = as_text(np.array([["a", "bcd"]], dtype))
        assert values.dtype.kind == "U"
        assert values.tolist() == [["a", "bcd"]]


# What a user computed from a field ------------------------------------------------------------------------------


@pytest.fixture(params=["lazy", "loaded"])
def recorded(request):
    """A recorded Dataset of two environments: an episode that terminated, and two that were cut."""
    done = np.zeros((6, 2), bool)
    done[2, 0] = True
    rows = np.arange(12.0).reshape(6, 2)
    chunk = {"obs": rows, "action": rows.astype(np.int32), "reward": rows, "terminated": done, "next_obs": rows + 2}
    ds = tl.from_rollout(chunk)
    return ds.load() if request.param == "loaded" else ds


COMPUTED = {
    "integers": lambda ds: ds.assign(k=ds.action % 2),
    "filled": lambda ds: ds.assign(k=ds.obs.fillna(0)),
    "halved": lambda ds: ds.assign(k=ds.action / 2),
    "negated": lambda ds: ds.assign(k=~ds.terminated),
    "final": lambda ds: ds.assign(final_k=ds.final_obs.fillna(0), k=ds.obs.fillna(0)),
}


@pytest.mark.parametrize("change", COMPUTED.values(), ids=COMPUTED)
def test_what_was_computed_needs_no_padding(recorded, change):
    ds = change(recorded)
    validate(ds, deep=True)
    validate(tl.concat([ds, ds]), deep=True)


def test_a_computed_flag_hides_no_recorded_one(recorded):
    flag = recorded["terminated"].values.copy()
    flag[0, 1] = True
    broken = recorded.assign(terminated=recorded["terminated"].copy(data=flag), running=~recorded["terminated"])
    with pytest.raises(ValueError, match=r"flag 'terminated' does not agree .* first at episode 0"):
        validate(broken, deep=True)


def test_what_was_computed_fills_no_role(recorded):
    ds = recorded.assign(scaled=recorded.reward * 2)
    assert resolve_field(ds, "reward") == "reward"
    with pytest.raises(KeyError, match=r"as recorded \(there is 'scaled': renamed, or computed from it;.*'reward'"):
        tl.returns(ds.drop_vars("reward"))
    assert tl.returns(ds.drop_vars("reward"), reward="scaled").values[0] == 2 * (0 + 2 + 4)
    with pytest.raises(KeyError, match="'obs' as recorded|'observation' as recorded"):
        resolve_field(recorded.assign(k=recorded.obs + 1).drop_vars("obs"), "obs")


def test_a_role_recorded_under_another_name_beside_what_was_computed():
    rows = {"obs": np.zeros((3, 1)), "r": np.ones((3, 1)), "done": np.array([[0], [0], [1]])}
    ds = tl.from_rollout(rows, convention=tl.Convention(reward="r"))
    assert tl.returns(ds.assign(scaled=ds.r * 2)).item() == 3


def test_a_computed_final_value_is_no_final_observation(recorded):
    ds = recorded.assign(final_score=recorded.final_obs * 2).drop_vars("final_obs")
    assert final_names(ds) == []
    assert "final_score" in tl.transitions(ds)
    assert final_names(recorded.drop_vars("obs")) == ["final_obs"]


# Coordinates that only the values contradict --------------------------------------------------------------------


def test_a_final_observation_that_is_not_known(loaded):
    known = loaded.assign_coords(final_known=("episode", np.ones(4, bool)))
    validate(known)
    with pytest.raises(ValueError, match="'final_known' is True in 1 episodes, first in episode 3, where 'final_obs'"):
        validate(known, deep=True)


def test_a_final_observation_of_integers_that_is_not_known():
    episodes = [{"obs": np.arange(3), "reward": np.ones(2)}, {"obs": np.arange(2), "reward": np.ones(2)}]
    ds = from_episodes(episodes)
    validate(ds, deep=True)
    assert ds["final_known"].values.tolist() == [True, False]
    with pytest.raises(ValueError, match="'final_known' is True in 1 episodes, first in episode 1"):
        validate(ds.assign_coords(final_known=("episode", [True, True])), deep=True)


def test_an_observation_of_nan_may_have_ended_an_episode():
    obs = np.array([1.0, np.nan])
    validate(from_episodes([{"obs": obs, "action": np.arange(1)}], end_reason="terminated"), deep=True)


def test_a_start_iteration_that_is_another(ds):
    validate(ds.isel(time=slice(1, None)), deep=True)
    wrong = ds.assign_coords(start_iteration=("episode", [0, 1, 7, 8]))
    validate(wrong)
    message = "'start_iteration' is not the 'iteration' .* in 2 episodes, first in episode 2: 7, not 2"
    with pytest.raises(ValueError, match=message):
        validate(wrong, deep=True)
    with pytest.raises(ValueError, match=message):
        validate(wrong.isel(time=[3, 0]), deep=True)
    validate(wrong.isel(time=slice(1, None)), deep=True)
    validate(wrong.drop_vars("iteration"), deep=True)
