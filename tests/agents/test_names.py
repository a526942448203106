"""What agents' fields, dims, labels and units are called, and what is said where they do not fit."""

import numpy as np
import pytest
from agents.worlds import FORMS, chunk_of, convention_of, make_world, record

import trajlab as tl

WORLD = make_world(40, rows=6, envs=4)


def rollout(form="dict", more=(), less=(), convention=None, **options):
    """Return the Dataset of a recording with some entries more, or less."""
    chunk = {name: x for name, x in (chunk_of(WORLD, form) | dict(more)).items() if name not in less}
    return tl.from_rollout(chunk, convention=convention or convention_of(WORLD, form), **options)


# Names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_dims_labels_and_attributes(form):
    ds = rollout(form)
    assert ds["obs"].dims == ("episode", "time", "agent", "obs_dim_0")
    assert ds["action"].dims == ds["alive"].dims == ("episode", "time", "agent")
    assert ds["agent"].values.tolist() == ["scout", "carrier", "medic"]
    assert ds["alive"].attrs["padding"] == "false"
    whole = "done.__all__" if form == "dict" else "global_done.__all__"
    assert ds[whole].dims == ("episode", "time")
    assert f"done={whole} ({'found' if form == 'dict' else 'given'})" in ds.attrs["convention"]
    assert "agents=scout, carrier, medic; agent_done=done (row)" in ds.attrs["convention"]


def test_the_order_of_the_names_is_the_order_of_agents():
    turned = tl.Convention(agents=["medic", "scout", "carrier"])
    ds = rollout(convention=turned)
    assert ds["agent"].values.tolist() == ["medic", "scout", "carrier"]
    np.testing.assert_array_equal(ds.sel(agent="scout")["obs"], rollout().sel(agent="scout")["obs"])
    np.testing.assert_array_equal(ds.sel(agent="scout")["alive"], rollout().sel(agent="scout")["alive"])


def test_an_agent_may_stand_anywhere_on_a_path():
    chunk = chunk_of(WORLD)
    turned = {agent: {name: chunk[name][agent] for name in ("obs", "action", "reward")} for agent in WORLD.agents}
    ds = tl.from_rollout(turned | {"done": chunk["done"], "wind": chunk["wind"]}, convention=convention_of(WORLD))
    np.testing.assert_array_equal(ds["obs"], rollout()["obs"])
    assert "agent" not in ds["wind"].dims


def test_fields_under_new_names_and_from_functions():
    ds = rollout(fields={"seen": "obs", "first": lambda chunk: {a: x[..., 0] for a, x in chunk["obs"].items()}})
    np.testing.assert_array_equal(ds["first"], ds["seen"].isel(seen_dim_0=0))
    assert ds["first"].dims == ("episode", "time", "agent")
    assert {"done", "done.__all__"} <= set(ds.data_vars)  # always kept


def test_slots_given_as_functions():
    convention = convention_of(WORLD, done=lambda chunk: chunk["done"]["__all__"], agent_done="done")
    np.testing.assert_array_equal(rollout(convention=convention)["alive"], rollout()["alive"])


@pytest.mark.parametrize("form", FORMS)
def test_dims_coords_and_units_need_not_name_agents(form):
    options = {"coords": {"xy": ["x", "y"]}, "units": {"obs": ["m", "s"], "reward": "points"}}
    ds = rollout(form, dims={"obs": ["xy"]}, **options)
    assert ds["obs"].dims == ("episode", "time", "agent", "xy")
    assert rollout(form, dims={"obs": ["agent", "xy"]}, **options).equals(ds)
    stacked = tl.stack_fields(ds, ["obs", "reward"])
    units = dict(zip(stacked["field"].values.tolist(), stacked["field_units"].values.tolist(), strict=True))
    assert units["obs[medic,x]"] == "m"
    assert units["obs[medic,y]"] == "s"
    assert units["reward[scout]"] == "points"


def test_a_field_may_have_a_dim_called_agent_by_itself():
    ds = rollout(more={"slot": np.zeros((6, 4, 2, 3))}, dims={"slot": ["side", "agent"]})
    assert ds["slot"].dims == ("episode", "time", "side", "agent")
    assert tl.state_trace(ds, "slot")["n"].sum() == ds["alive"].sum()


def test_fields_called_like_what_agents_have():
    more = {"alive": np.ones((6, 4)), "agent": np.ones((6, 4))}
    with (
        pytest.warns(UserWarning, match="the field 'alive' has a reserved name and is recorded as 'alive_'"),
        pytest.warns(UserWarning, match="the field 'agent' has a reserved name and is recorded as 'agent_'"),
    ):
        ds = rollout(more=more)
    assert ds["alive_"].dims == ds["agent_"].dims == ("episode", "time")
    single = {"alive": np.ones((6, 4)), "agent": np.ones((6, 4)), "done": WORLD.end}
    plain = tl.from_rollout(single)  # without agents these are names like any other
    assert {"alive", "agent"} <= set(plain.data_vars)
    assert tl.state_trace(plain, "alive")["n"].sum() == 24
    assert tl.action_histogram(plain.set_coords("alive"), "agent")["count"].sum() == 24


def test_long_names():
    agents = [f"an agent with a very long name, number {k}" for k in range(3)]
    chunk = chunk_of(WORLD, "TNA")
    ds = tl.from_rollout(chunk, convention=tl.Convention("jaxmarl", agents=agents, axes="TNA"))
    assert ds["agent"].values.tolist() == agents


@pytest.mark.parametrize("form", ["dict", "T(AN)"])
def test_named_conventions(form):
    own = {} if form == "dict" else {"axes": form}
    ds = rollout(form, convention=tl.Convention("jaxmarl", agents=WORLD.agents, **own))
    np.testing.assert_array_equal(ds["alive"], rollout()["alive"])
    np.testing.assert_array_equal(ds["length"], rollout()["length"])
    late = chunk_of(WORLD, form, late=np.concatenate([np.ones_like(WORLD.done[:1]), WORLD.done[:-1]]))
    recurrent = tl.Convention("jaxmarl_rnn", agents=WORLD.agents, **own)
    np.testing.assert_array_equal(tl.from_rollout(late, convention=recurrent)["alive"], rollout()["alive"])


# What does not fit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"agents": "scout"}, TypeError, r"agents='scout'; expected a list of names"),
        ({"agents": [0, 1]}, TypeError, r"agents=\[0, 1\]; expected a list of names"),
        ({"agents": []}, ValueError, r"agents=\[\]; expected names without dots, each once"),
        ({"agents": ["a", "a"]}, ValueError, r"agents=\['a', 'a'\]; expected names without dots, each once"),
        ({"agents": ["a.b"]}, ValueError, r"agents=\['a.b'\]; expected names without dots"),
        ({"agents": ["__all__"]}, ValueError, r"'__all__' not among them"),
        ({"agents": ["a"], "agent_done": 3}, TypeError, "agent_done=3.; expected a dotted path, None or 'auto'"),
        ({"agent_done": "done"}, ValueError, r"Convention\(agent_done='done'\) needs agents="),
        ({"agent_flags": "row"}, ValueError, r"Convention\(agent_flags='row'\) needs agents="),
        ({"agent_flags": "late"}, ValueError, r"agent_flags='late'; expected one of 'auto', 'row', 'previous_row'"),
    ],
    ids=str,
)
def test_settings_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        tl.Convention(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agents": ["x", "y"]}, r"no array of the agents 'x', 'y'; the chunk has 'action.carrier', .*axes='T\(AN\)'"),
        ({"agents": [*WORLD.agents, "cook"]}, r"the flag 'done' \(done\) is missing for 'cook'; expected one alike"),
        ({"agent_done": "don"}, r"no field for Convention\(agent_done=...\) 'don'. Did you mean 'done'\?"),
        ({"agent_done": "wind"}, r"Convention\(agent_done='wind'\): expected an array for each of the agents"),
        ({"axes": "TAN"}, r"no array has the leading axes 'TAN' with the agents .*'obs.scout' \(6, 4, 2\)"),
        ({"axes": "T(AN)"}, r"no array has the leading axes 'T\(AN\)' .* there are 'action.carrier' \(6, 4\)"),
    ],
    ids=str,
)
def test_agents_that_the_chunk_has_not(settings, message):
    with pytest.raises((ValueError, KeyError), match=message):
        rollout(convention=convention_of(WORLD, **settings))


def test_dicts_per_agent_without_their_names_ask_for_them():
    with pytest.raises(ValueError, match=r"has several arrays: .*if these are agents, name them: .*agents=\["):
        rollout(convention=tl.Convention())
    with pytest.raises(
        ValueError, match=r"convention='jaxmarl' needs the names of the agents: Convention\('jaxmarl', ag"
    ):
        tl.Recorder(convention="jaxmarl")


def test_flags_of_agents_that_differ():
    done = chunk_of(WORLD)["done"] | {"medic": WORLD.done[:, :, 2].astype(np.float32)}
    with pytest.raises(ValueError, match=r"the flag 'done' \(done\) differs in shape or dtype; expected one alike"):
        rollout(more={"done": done})


def test_flattened_agents_that_do_not_divide():
    chunk = {name: x[:, :11] for name, x in chunk_of(WORLD, "T(AN)").items()}
    with pytest.raises(ValueError, match=r"the flag 'global_done' has shape \(6, 11\); expected .* of the 3 agents"):
        tl.from_rollout(chunk, convention=convention_of(WORLD, "T(AN)"))


def test_a_refused_chunk_changes_nothing():
    recorder = tl.Recorder(convention=convention_of(WORLD))
    recorder.record(chunk_of(WORLD))
    chunk = chunk_of(WORLD)
    for bad, message in [
        ({**chunk, "obs": {k: x[..., :1] for k, x in chunk["obs"].items()}}, r"'obs'.*\(3, 1\)"),
        ({**chunk, "reward": {k: x for k, x in chunk["reward"].items() if k != "medic"}}, "missing from this chunk"),
        ({**chunk, "done": {k: x[:, :2] for k, x in chunk["done"].items()}}, "2 environments, the first one had 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            recorder.record(bad)
    assert recorder.num_recorded_steps == 6
    recorder.record(chunk)
    assert recorder.to_dataset()["length"].sum() == 48


def test_arrays_that_are_gone():
    chunk = chunk_of(WORLD, home="jax")
    recorder = tl.Recorder(convention=convention_of(WORLD))
    chunk["obs"]["medic"].delete()
    with pytest.raises(ValueError, match="the array of 'obs.medic' has been deleted or donated"):
        recorder.record(chunk)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dims": {"obs": ["alive"]}}, "dims\\['obs'\\]: 'alive' is a name of the Dataset; choose another"),
        ({"dims": {"obs": ["xy", "agent"]}}, "expected 'agent' first, or left out"),
        (
            {"more": {"slot": np.zeros((6, 4, 2))}, "dims": {"slot": ["agent"]}},
            "dim 'agent' has size 3 elsewhere and 2",
        ),
        (
            {"coords": {"agent": ["a", "b", "c"]}},
            r"coords\['agent'\]: the labels are the names that Convention\(agents",
        ),
    ],
    ids=str,
)
def test_labels_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        rollout(**options)


@pytest.mark.parametrize("name", ["agent", "alive"])
def test_axes_called_like_what_agents_have(name):
    chunk = {key: np.stack([x, x]) for key, x in chunk_of(WORLD, "TNA").items()}
    with pytest.raises(ValueError, match=f"dims\\['S'\\]: '{name}' is a name of the Dataset"):
        tl.from_rollout(chunk, convention=convention_of(WORLD, "STNA"), dims={"S": name})


def test_grouping_by_what_every_agent_has_asks_for_one():
    ds = record(WORLD)
    with pytest.raises(ValueError, match=r"by='action' has dims \('episode', 'time', 'agent'\); expected one value"):
        tl.state_trace(ds, "obs", by="action")
