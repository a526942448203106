"""Fields with one value per episode: that of its first or last transition, in everything that reads a Dataset."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from recorder.test_fetch import Gate
from reference import first_leaves
from strategies import examples, recordings
from test_against_reference import dataset, play

import trajlab as tl
import trajlab.block.read
import trajlab.recorder.session

WHEN = {
    "info.success": "last",
    "seed": "first",
    "final_score": "last",
    "start": "first",
    "name": "first",
    "key": "last",
}


def make_chunk(rows=60, envs=3, seed=0):
    """Return a chunk with a value of each kind that is told once per episode, and steps from 0 on in `clock`."""
    rng = np.random.default_rng(seed)
    done = rng.random((rows, envs)) < 0.15
    return {
        "obs": rng.normal(size=(rows, envs, 2)).astype(np.float32),
        "action": rng.integers(0, 3, (rows, envs)).astype(np.int32),
        "reward": rng.integers(-3, 4, (rows, envs)).astype(np.float32),
        "done": done,
        "info": {"success": done & (rng.random((rows, envs)) < 0.5)},
        "seed": rng.integers(0, 5, (rows, envs)).astype(np.int16),
        "final_score": rng.normal(size=(rows, envs)),
        "start": rng.normal(size=(rows, envs, 3)).astype(np.float32),
        "name": np.char.add("map ", rng.integers(0, 3, (rows, envs)).astype(str)),
        "key": np.asarray(rng.integers(0, 99, (rows, envs, 2)), np.uint32),
        "clock": np.broadcast_to(np.arange(rows)[:, None], (rows, envs)),
    }


@pytest.fixture
def pair():
    """A Dataset with episode fields, and the same recording without."""
    return tl.from_rollout(make_chunk(), episode_fields=WHEN), tl.from_rollout(make_chunk())


def assert_same(ds, plain, when):
    """Check that fields have the value at the first or last step, and that nothing else differs."""
    count, last = plain.sizes["episode"], plain["length"].values - 1
    for name, at in when.items():
        full = plain[name]
        values = full.values[np.arange(count), last if at == "last" else np.zeros(count, int)]
        assert ds[name].dims == ("episode", *full.dims[2:])
        assert ds[name].dtype == full.dtype
        assert name in ds.data_vars
        assert ds[name].attrs["role"] == "episode_field"
        assert {k: v for k, v in ds[name].attrs.items() if k != "role"} == full.attrs
        np.testing.assert_array_equal(ds[name], values, err_msg=name)
    xr.testing.assert_identical(ds.drop_vars(list(when)).load(), plain.drop_vars(list(when)).load())


# Values --------------------------------------------------------------------------------------------------------------


def test_of_every_kind(pair):
    assert_same(*pair, WHEN)
    tl.validate(pair[0], deep=True)


@given(recordings(wide=False), st.data())
@examples(60)
def test_whatever_the_convention(recording, data):
    calls, options = recording
    if not any(hasattr(call, "chunk") or hasattr(call, "step") for call in calls):
        return
    plain = dataset(play(calls, options))
    free = [
        str(n) for n in plain.data_vars if plain[n].dims[:2] == ("episode", "time") and "role" not in plain[n].attrs
    ]
    free = [name for name in free if name != "iteration" and name in first_leaves(calls)]
    when = data.draw(st.fixed_dictionaries({name: st.sampled_from(["first", "last"]) for name in free}))
    assert_same(dataset(play(calls, options | {"episode_fields": when})), plain, when)


@pytest.mark.parametrize("at", ["first", "last"])
def test_fields_that_stand_on_the_row_of_their_result(at):
    options = {"convention": tl.Convention(alignment={"seed": "result"})}
    when = {"seed": at}
    assert_same(
        tl.from_rollout(make_chunk(), episode_fields=when, **options), tl.from_rollout(make_chunk(), **options), when
    )


def test_rows_that_only_reset_are_not_the_first():
    convention = tl.Convention(autoreset="next_step")
    ds = tl.from_rollout(make_chunk(), convention=convention, episode_fields={"clock": "first"})
    np.testing.assert_array_equal(ds["clock"], ds["start_row"])
    plain = tl.from_rollout(make_chunk(), convention=convention)
    assert_same(ds, plain, {"clock": "first"})


def test_masked_cells_are_neither_first_nor_last():
    chunk = make_chunk()
    mask = np.random.default_rng(1).random((60, 3)) < 0.6
    both = []
    for when in ({}, WHEN):
        recorder = tl.Recorder(episode_fields=when)
        recorder.record(chunk, mask=mask)
        both.append(recorder.to_dataset())
    assert_same(both[1], both[0], WHEN)


def test_recorder_of_jax_in_chunks_and_complete_ones_only():
    recorder = tl.Recorder(episode_fields={"seed": "last", "start": "first"})
    plain = tl.Recorder()
    chunk = {name: x for name, x in make_chunk().items() if name not in ("name", "final_score", "clock", "info")}
    for start in (0, 20, 40):
        part = jax.tree.map(lambda x: jnp.asarray(x[start : start + 20]), chunk)
        recorder.record(part)
        plain.record(part)
    assert_same(recorder.to_dataset(), plain.to_dataset(), {"seed": "last", "start": "first"})
    assert_same(
        recorder.to_dataset(incomplete="drop"), plain.to_dataset(incomplete="drop"), {"seed": "last", "start": "first"}
    )


def test_keys():
    chunk = {"done": np.zeros((4, 2), bool), "key": jax.random.split(jax.random.key(0), (4, 2))}
    ds = tl.from_rollout(chunk, episode_fields={"key": "first"})
    assert ds["key"].attrs["recorded_dtype"] == "key"
    np.testing.assert_array_equal(ds["key"], jax.random.key_data(chunk["key"])[0])


def test_what_has_a_role_may_be_both_under_two_names():
    chunk = make_chunk() | {"next_obs": make_chunk(seed=1)["obs"]}
    names = {"obs": "obs", "next_obs": "next_obs", "reward": "reward", "first_obs": "obs", "last_reward": "reward"}
    ds = tl.from_rollout(chunk, fields=names, episode_fields={"first_obs": "first", "last_reward": "last"})
    count, last = ds.sizes["episode"], ds["length"].values - 1
    np.testing.assert_array_equal(ds["last_reward"], ds["reward"].values[range(count), last])
    np.testing.assert_array_equal(ds["first_obs"], ds["obs"].values[:, 0])
    assert ds["first_obs"].dims == ("episode", "first_obs_dim_0")
    # The others still play their role.
    np.testing.assert_array_equal(ds["final_obs"], ds["next_obs"].values[range(count), last])
    xr.testing.assert_equal(tl.returns(ds), tl.returns(tl.from_rollout(chunk)))


def test_labels_and_units():
    labels = {"dims": {"start": ["axis"]}, "coords": {"axis": ["x", "y", "z"]}, "units": {"start": "m", "seed": "1"}}
    ds = tl.from_rollout(make_chunk(), episode_fields=WHEN, **labels)
    assert ds["start"].sel(axis="y").attrs["units"] == "m"
    assert ds["start"].dims == ("episode", "axis")


def test_buffer():
    chunk = {name: x for name, x in make_chunk().items() if name not in ("name", "final_score", "clock")}
    chunk = jax.tree.map(jnp.asarray, chunk)

    @jax.jit
    def run(chunk):
        buffer = tl.init_buffer(jax.tree.map(lambda x: x[:20], chunk), 40, keep="last")
        for start in (0, 20, 40):
            buffer = tl.append(buffer, jax.tree.map(lambda x: x[start : start + 20], chunk))
        return buffer

    when = {"info.success": "last", "seed": "first", "start": "first", "key": "last"}
    buffer = run(chunk)
    assert_same(tl.to_dataset(buffer, episode_fields=when), tl.to_dataset(buffer), when)


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
def test_a_whole_number_that_is_missing_is_shown_as_such_in_the_table(shape):
    recorder = tl.Recorder(num_envs=3, episode_fields={"seed": "first", "level": "first"})
    recorder.add("obs", np.zeros(3))
    recorder.add("done", np.zeros(3, bool))
    recorder.add("level", np.int8([1, 2, 3]))
    recorder.add("seed", np.full((2, *shape), 2**53 + 1), envs=[0, 2])
    ds = recorder.to_dataset()
    table = tl.episode_table(ds)
    for name in ["seed[0]", "seed[1]"] if shape else ["seed"]:
        assert table[name].dtype == "Int64"
        assert table[name].isna().tolist() == [False, True, False]
        assert table[name].dropna().tolist() == [2**53 + 1] * 2
    assert table["level"].dtype == np.int8
    assert ds["seed"].dtype == np.int64


@pytest.mark.parametrize("form", ["together", "apart"])
def test_the_last_value_of_an_agent_is_that_of_its_own_last_transition(form):
    done = np.zeros((6, 1, 2), bool)
    done[2:4, 0, 1] = True  # the second agent is done at step 2; all end at step 3
    end = np.array([0, 0, 0, 1, 0, 0], bool)[:, None]
    wide = 1 if form == "together" else 2
    score = np.arange(6.0)[:, None, None] + np.zeros(2)
    chunk = {
        "score": {
            "a": score,
            "b": np.where(np.arange(6) == 3, np.nan, np.arange(6.0))[:, None, None] * np.ones(wide + 1),
        },
        "done": {"a": done[..., 0], "b": done[..., 1], "__all__": end},
    }
    names = ["score"] if form == "together" else ["score.a", "score.b"]
    ds = tl.from_rollout(
        chunk, convention=tl.Convention(agents=["a", "b"]), episode_fields=dict.fromkeys(names, "last")
    )
    one = ds["score"].sel(agent="b") if form == "together" else ds["score.b"]
    assert one.values[:, 0].tolist() == [2, 5]
    other = ds["score"].sel(agent="a") if form == "together" else ds["score.a"]
    assert other.values[:, 0].tolist() == [3, 5]
    table = tl.episode_table(ds)
    columns = ["score[a,0]", "score[b,0]"] if form == "together" else ["score.a[0]", "score.b[0]"]
    assert table[columns].values.tolist() == [[3, 2], [5, 5]]


def test_an_agent_that_was_gone_before_has_no_last_value():
    done = {"a": np.zeros((3, 1), bool), "b": np.ones((3, 1), bool), "__all__": np.zeros((3, 1), bool)}
    chunk = {"score": {"a": np.ones((3, 1)), "b": np.ones((3, 1))}, "done": done}
    convention = tl.Convention(agents=["a", "b"])
    ds = tl.from_rollout(chunk, convention=convention, starts_fresh=False, episode_fields={"score": "last"})
    np.testing.assert_array_equal(ds["score"].values, [[1, np.nan]])


def test_fields_of_agents():
    rng = np.random.default_rng(2)
    end = rng.random((30, 2)) < 0.2
    chunk = {"score": {a: rng.normal(size=(30, 2)) for a in "ab"}, "done": {"a": end, "b": end, "__all__": end}}
    convention = tl.Convention(agents=["a", "b"])
    ds = tl.from_rollout(chunk, convention=convention, episode_fields={"score": "last"})
    assert ds["score"].dims == ("episode", "agent")
    assert_same(ds, tl.from_rollout(chunk, convention=convention), {"score": "last"})


# Laziness ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["numpy", "jax"])
def test_building_reads_nothing(monkeypatch, home):
    gate = Gate()
    monkeypatch.setattr(trajlab.block.read, "to_host", gate)
    monkeypatch.setattr(trajlab.recorder.session, "to_host", gate.take_flags)
    chunk = {name: x for name, x in make_chunk().items() if name in ("obs", "done", "seed", "start")}
    recorder = tl.Recorder(episode_fields={"seed": "first", "start": "last"})
    recorder.record(jax.tree.map(jnp.asarray, chunk) if home == "jax" else chunk)
    ds = recorder.to_dataset()
    repr(ds)
    ds._repr_html_()
    tl.validate(ds)
    tl.concat([ds, ds])
    repr(ds.isel(episode=[2, 1])["start"])
    assert gate.fetched() == 0
    ds["start"].isel(episode=3, start_dim_0=1).values  # noqa: B018
    assert gate.fetched() == 4
    ds["seed"].values  # noqa: B018
    assert gate.fetched() == ds.sizes["episode"] * 2


def test_every_way_of_indexing_gives_what_the_loaded_field_gives(pair):
    lazy, loaded = pair[0], pair[0].copy().load()
    points = xr.DataArray([3, 0, 3], dims="p")
    for name in WHEN:
        for keys in ({"episode": 2}, {"episode": [4, 1, 1]}, {"episode": slice(None, None, -2)}, {"episode": points}):
            xr.testing.assert_identical(lazy[name].isel(keys).compute(), loaded[name].isel(keys))
    both = {"episode": points, "start_dim_0": xr.DataArray([0, 2, 1], dims="p")}
    np.testing.assert_array_equal(lazy["start"].isel(both), loaded["start"].isel(both))
    with pytest.raises(IndexError, match="out of range"):
        lazy["seed"].isel(episode=1000).values  # noqa: B018


# What reads a Dataset ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["info.success", "seed", "name"])
def test_groups(pair, by):
    ds, plain = pair
    coordinate = plain.drop_vars(by).assign_coords({by: ("episode", ds[by].values, ds[by].attrs)})
    options = {"action": {}, "obs": {"bins": 4}}
    for field, more in options.items():
        xr.testing.assert_equal(
            tl.action_histogram(ds, field, by=by, **more), tl.action_histogram(coordinate, field, by=by, **more)
        )
    xr.testing.assert_equal(tl.state_trace(ds, "obs", by=by), tl.state_trace(coordinate, "obs", by=by))
    counts = tl.state_trace(ds, "obs", by=by)["n"].isel(time=0)
    assert counts.to_pandas().to_dict() == ds[by].to_series().value_counts().to_dict()


def test_ranges_of_a_number(pair):
    ds, _ = pair
    trace = tl.state_trace(ds, "obs", by="final_score", groups=[-9, 0, 9])
    assert trace["n"].values[:, 0].tolist() == [(ds["final_score"] < 0).sum(), (ds["final_score"] >= 0).sum()]


def test_plots(pair):
    ds, _ = pair
    for draw in (
        lambda: tl.plot_action_histogram(ds, by="info.success"),
        lambda: tl.plot_state_trace(ds, "reward", by="info.success"),
        lambda: tl.plot_returns(ds, by="info.success"),
    ):
        draw()
        (legend,) = plt.gcf().legends
        assert {text.get_text().split(" ")[0] for text in legend.texts} >= {"False", "True"}
        plt.close("all")
    axes = tl.plot_returns(ds, x="final_score")
    assert axes[-1].get_xlabel() == "final_score"


def test_tables(pair):
    ds, plain = pair
    table = tl.episode_table(ds)
    for name in ("info.success", "seed", "final_score", "name"):
        np.testing.assert_array_equal(table[name], ds[name])
    for component in range(ds["start"].shape[1]):
        np.testing.assert_array_equal(table[f"start[{component}]"], ds["start"][:, component])
    assert set(tl.to_dataframe(ds)) == set(tl.to_dataframe(plain.drop_vars(list(WHEN))))
    fields = set(tl.stack_fields(ds)["field"].values.tolist())
    assert fields == {"obs[0]", "obs[1]", "action", "reward", "done", "clock"}


def test_transitions_repeat_them(pair):
    ds, _ = pair
    flat = tl.transitions(ds)
    for name in WHEN:
        assert flat[name].dims[0] == "transition"
        np.testing.assert_array_equal(flat[name], ds[name].values[flat["episode"]])
    assert "padding" not in flat["final_score"].attrs


def test_one_episode_has_one_value(pair):
    ds, _ = pair
    one = tl.episode(ds, 4)
    for name in WHEN:
        assert "time" not in one[name].dims
        np.testing.assert_array_equal(one[name], ds[name][4])


@pytest.mark.parametrize("observation", ["obs", "score"])
def test_a_name_that_begins_with_final_is_no_final_observation(observation):
    chunk = make_chunk()
    chunk["score"] = chunk["final_score"] + 1
    convention = tl.Convention(observation=observation, next_observation=f"next_{observation}")
    chunk[f"next_{observation}"] = chunk[observation] + 7
    when = {"final_score": "last"}
    ds = tl.from_rollout(chunk, convention=convention, episode_fields=when)
    final = "final_obs" if observation == "obs" else "final_score_"
    last = [ds[f"next_{observation}"].values[i, n - 1] for i, n in enumerate(ds["length"].values)]
    np.testing.assert_array_equal(ds[final], last)
    tl.validate(ds, deep=True)
    one = tl.episode(ds, 2, final=True)
    np.testing.assert_array_equal(one[observation][-1], last[2])
    assert one["final_score"] == ds["final_score"][2]
    flat = tl.transitions(ds)
    assert "final_score" in flat
    assert final not in flat


def test_several_recordings(pair):
    ds, _ = pair
    other = tl.from_rollout(make_chunk(seed=3), episode_fields=WHEN)
    both = tl.concat([ds, other])
    for name in WHEN:
        np.testing.assert_array_equal(both[name], np.concatenate([ds[name], other[name]]))
        assert both[name].attrs["role"] == "episode_field"
    lazy = both["start"].isel(episode=[-1, 0])
    np.testing.assert_array_equal(lazy, np.stack([other["start"][-1], ds["start"][0]]))
    with pytest.raises(
        ValueError, match=r"'seed' has dims \(episode\) in dataset 0 and \(episode, time\) in dataset 1"
    ):
        tl.concat([ds, other.assign(seed=pair[1]["action"])])


@pytest.mark.parametrize("form", ["netcdf", "zarr"])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr (V|format )3 spec")
def test_files(pair, form, tmp_path):
    ds, _ = pair
    path = tmp_path / "run"
    if form == "netcdf":
        ds.to_netcdf(path, engine="h5netcdf")
        back = xr.open_dataset(path, engine="h5netcdf")
    else:
        ds.to_zarr(path)
        back = xr.open_zarr(path, chunks=None)
    with back:
        tl.validate(back, deep=True)
        xr.testing.assert_equal(back, ds)
        assert back["final_score"].attrs == ds["final_score"].attrs
        assert "final_score" in tl.transitions(back)
        xr.testing.assert_equal(
            tl.state_trace(back, "obs", by="info.success"), tl.state_trace(ds, "obs", by="info.success")
        )


def test_filters(pair):
    ds, plain = pair
    won = ds.sel(episode=ds["info.success"])
    assert won["info.success"].all()
    assert 0 < won.sizes["episode"] < ds.sizes["episode"]
    np.testing.assert_array_equal(won["obs"], plain["obs"].sel(episode=won["episode"]))


# What does not fit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sed": "first"}, KeyError, r"no field for episode_fields= 'sed'. Did you mean 'seed'\?"),
        ({"info": "last"}, KeyError, r"no field for episode_fields= 'info'"),
        ({"seed": "mean"}, ValueError, r"episode_fields\['seed'\]='mean'; expected one of 'first', 'last'"),
        ({"reward": "last"}, ValueError, r"episode_fields\['reward'\]='last': the field is the convention's reward"),
        ({"done": "last"}, ValueError, "the convention's done, of which every transition has its own; .*fields="),
        ("seed", TypeError, "episode_fields='seed'; expected a mapping from a field to 'first' or 'last'"),
        (["seed"], TypeError, r"episode_fields=\['seed'\]; expected a mapping"),
    ],
    ids=str,
)
def test_errors(given, error, message):
    with pytest.raises(error, match=message):
        tl.from_rollout(make_chunk(), episode_fields=given)


@pytest.mark.parametrize("given", [{"seed": "mean"}, "seed", ["seed"]], ids=str)
def test_what_is_no_choice_is_refused_at_once(given):
    with pytest.raises((ValueError, TypeError), match="episode_fields"):
        tl.Recorder(episode_fields=given)


def test_a_refused_chunk_is_not_recorded():
    recorder = tl.Recorder(episode_fields={"sed": "first"})
    with pytest.raises(KeyError, match="sed"):
        recorder.record(make_chunk())
    assert recorder.num_recorded_steps == 0


def test_flags_of_agents_are_needed_for_each_transition():
    flags = dict.fromkeys("ab", np.zeros((3, 2), bool))
    chunk = {"done": {"__all__": np.zeros((3, 2), bool)}, "dead": flags}
    convention = tl.Convention(agents=["a", "b"], agent_done="dead")
    with pytest.raises(ValueError, match=r"episode_fields\['dead'\]='last': the field is the convention's agent_done"):
        tl.from_rollout(chunk, convention=convention, episode_fields={"dead": "last"})


def test_init_buffer_leaves_them_to_to_dataset():
    with pytest.raises(TypeError, match="episode_fields"):
        tl.init_buffer(make_chunk(), 60, episode_fields={"seed": "first"})


def test_no_episode():
    recorder = tl.Recorder(episode_fields={"seed": "first"})
    recorder.record(make_chunk(rows=3), mask=np.zeros((3, 3), bool))
    with pytest.warns(UserWarning, match="no episode"):
        ds = recorder.to_dataset()
    assert ds["seed"].shape == (0,)
    off = tl.Recorder(episode_fields={"seed": "first"}, enabled=False).to_dataset()
    assert off.sizes["episode"] == 0
