"""No statistic counts an agent that is done, whatever stands in its rows: against plain loops over the cells."""

import dataclasses
import warnings

import numpy as np
import pytest
import xarray as xr
from agents.worlds import FORMS, cells, chunk_of, convention_of, live, make_world, poisoned, record, worlds
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl

EDGES = [-1.0, -0.25, 0.5, 2.0]


@pytest.fixture(params=["plain", "poisoned"])
def recording(request):
    """A recording with its episodes; once with garbage where an agent takes no part."""
    world = make_world(20)
    ds = record(world if request.param == "plain" else poisoned(world), cuts=(11,))
    return ds, world, live(world)


def assert_histogram(ds, world, episodes):
    """Check counts of actions, and of bins of both components of the observation."""
    counts = tl.action_histogram(ds)["count"]
    assert counts.dims == ("agent", "value")
    binned = tl.action_histogram(ds, "obs", bins=EDGES)
    assert binned["count"].dims == ("agent", "obs_dim_0", "bin")
    for k, agent in enumerate(world.agents):
        taken = cells(world, episodes, "action", k)
        got = counts.sel(agent=agent).to_pandas()
        assert got[got > 0].to_dict() == dict(zip(*np.unique(taken, return_counts=True), strict=True))
        seen = cells(world, episodes, "obs", k).reshape(-1, 2)
        for j in range(2):
            want = np.histogram(seen[:, j], EDGES)[0]
            assert binned["count"].sel(agent=agent).isel(obs_dim_0=j).values.tolist() == want.tolist()
    outside = sum(
        ((seen < EDGES[0]) | (seen > EDGES[-1])).sum()
        for k in range(len(world.agents))
        for seen in [cells(world, episodes, "obs", k)]
    )
    assert binned.attrs["num_below"] + binned.attrs["num_above"] == outside
    assert binned.attrs["num_nan"] == 0


def assert_pairs_and_rates(ds, world, episodes):
    """Check pairs of actions, and counts of actions at each step, for each agent."""
    pairs, rates, entropy = tl.action_transitions(ds)["count"], tl.action_rates(ds), tl.action_entropy(ds)
    assert pairs.dims == ("agent", "value", "next_value")
    assert rates["n"].dims == entropy["n"].dims == ("time", "agent")
    for k, agent in enumerate(world.agents):
        want = {}
        for one in episodes:
            taken = world.action[one.rows, one.env, k]
            for t in range(len(taken) - 1):
                if one.alive[t, k] and one.alive[t + 1, k]:
                    pair = (int(taken[t]), int(taken[t + 1]))
                    want[pair] = want.get(pair, 0) + 1
        got = pairs.sel(agent=agent)
        assert {(a, b): int(got.sel(value=a, next_value=b)) for a, b in want} == want
        assert got.sum() == sum(want.values())
        for t in range(rates.sizes["time"]):
            values, counts = np.unique(cells(world, episodes, "action", k, t), return_counts=True)
            at = rates.isel(time=t).sel(agent=agent)
            assert at["n"] == at["count"].sum() == counts.sum()
            assert at["count"].sel(value=values).values.tolist() == counts.tolist()
            share = counts / counts.sum() if len(counts) else np.array([np.nan])
            bits = entropy["entropy"].isel(time=t).sel(agent=agent)
            np.testing.assert_allclose(bits, (share * np.log2(1 / share)).sum(), atol=1e-12)


def assert_autocorrelation(ds, world, episodes):
    """Check numbers of pairs, and correlations of both components of the observation, for each agent."""
    result = tl.autocorrelation(ds, "obs", max_lag=3)
    assert result["n"].dims == ("lag", "agent")
    assert result["autocorrelation"].dims == ("lag", "agent", "obs_dim_0")
    for k, agent in enumerate(world.agents):
        for lag in range(4):
            pairs = []
            for one in episodes:
                seen, there = world.obs[one.rows, one.env, k], one.alive[:, k]
                pairs += [(seen[t], seen[t + lag]) for t in range(len(there) - lag) if there[t] and there[t + lag]]
            at = result.sel(agent=agent, lag=lag)
            assert at["n"] == len(pairs)
            if len(pairs) > 2:
                first, second = np.array(pairs, np.float64).reshape(-1, 2, 2).swapaxes(0, 1)
                want = [np.corrcoef(first[:, j], second[:, j])[0, 1] for j in range(2)]
                np.testing.assert_allclose(at["autocorrelation"], want, atol=1e-9)


def assert_trace(trace, world, episodes, levels=(0.1, 0.5, 0.9)):
    """Check n, mean, deviation and quantiles at each step, for each agent."""
    assert trace["n"].dims == ("time", "agent")
    for t in range(trace.sizes["time"]):
        for k, agent in enumerate(world.agents):
            values = cells(world, episodes, "obs", k, t).astype(np.float64)
            got = trace.isel(time=t).sel(agent=agent)
            assert int(got["n"]) == len(values)
            if not len(values):
                assert np.isnan(got["mean"]).all()
                assert np.isnan(got["quantiles"]).all()
                continue
            np.testing.assert_allclose(got["mean"], values.mean(0), atol=1e-12)
            np.testing.assert_allclose(got["std"], values.std(0), atol=1e-9)
            np.testing.assert_allclose(got["quantiles"], np.quantile(values, levels, axis=0), atol=1e-12)


def assert_returns(got, world, episodes, discount=1.0):
    """Check the discounted sums of each episode and agent."""
    assert got.dims == ("episode", "agent")
    for number, one in enumerate(episodes):
        for k, agent in enumerate(world.agents):
            rewards = world.reward[one.rows, one.env, k].astype(np.float64)
            want = sum(discount**t * r for t, r in enumerate(rewards) if one.alive[t, k])
            np.testing.assert_allclose(got.isel(episode=number).sel(agent=agent), want, atol=1e-12)


def assert_returns_to_go(got, world, episodes, discount=1.0):
    """Check the discounted sums from each step on, of each agent; NaN where it is done."""
    for number, one in enumerate(episodes):
        want = np.full((len(one.alive), len(world.agents)), np.nan)
        for k in range(len(world.agents)):
            total = 0.0
            for t in reversed(np.flatnonzero(one.alive[:, k])):
                total = want[t, k] = float(world.reward[one.rows, one.env, k][t]) + discount * total
        np.testing.assert_array_equal(got.values[number, : len(want)], want)


# Random recordings ---------------------------------------------------------------------------------------------------


@given(worlds(), st.sampled_from(FORMS))
@examples(40)
def test_histograms(world, form):
    assert_histogram(record(poisoned(world), form), world, live(world))


@given(worlds(), st.sampled_from(FORMS))
@examples(40)
def test_pairs_and_rates(world, form):
    assert_pairs_and_rates(record(poisoned(world), form), world, live(world))


@given(worlds(), st.sampled_from(FORMS))
@examples(40)
def test_traces(world, form):
    ds = record(poisoned(world), form)
    assert_trace(tl.state_trace(ds, "obs"), world, live(world))


def test_autocorrelation(recording):
    assert_autocorrelation(*recording)


@given(worlds(), st.sampled_from([1.0, 0.9, 0.0]))
@examples(40)
def test_returns(world, discount):
    ds = record(poisoned(world))
    assert_returns(tl.returns(ds, discount=discount), world, live(world), discount)
    assert_returns_to_go(tl.return_to_go(ds, discount=discount), world, live(world), discount)


# One recording, looked at in many ways -------------------------------------------------------------------------------


def test_bins_over_the_range_of_what_counts(recording):
    ds, world, episodes = recording
    hist = tl.action_histogram(ds, "obs", bins=7)
    seen = np.concatenate([cells(world, episodes, "obs", k) for k in range(3)])
    assert hist["bin_left"].values[0] == seen.min()
    assert hist["bin_right"].values[-1] == seen.max()
    assert hist["count"].sum() == seen.size


def test_a_nan_of_an_agent_that_takes_part_is_reported(recording):
    ds, world, episodes = recording
    reward = world.reward.copy()
    row, env, agent = next(
        (one.rows[t], one.env, k) for one in episodes for t, k in np.argwhere(one.alive) if not one.alive[t].all()
    )
    reward[row, env, agent] = np.nan
    ds = record(poisoned(dataclasses.replace(world, reward=reward)))
    with pytest.warns(UserWarning, match="1 values of 'reward' are NaN"):
        assert tl.action_histogram(ds, "reward").attrs["num_nan"] == 1
    with pytest.warns(UserWarning, match="1 of .* episodes have NaN in 'reward'"):
        assert np.isnan(tl.returns(ds)).sum() == 1
    with pytest.warns(UserWarning, match="'reward' has NaN, and so has its trace, at 1 of"):
        trace = tl.state_trace(ds, "reward")
    assert (np.isnan(trace["mean"]) & (trace["n"] > 0)).sum() == 1


@pytest.mark.parametrize("quantiles", [False, [0.5], [0.9, 0.1]])
def test_other_quantiles(recording, quantiles):
    ds, world, episodes = recording
    trace = tl.state_trace(ds, "obs", quantiles=quantiles)
    if quantiles:
        assert_trace(trace, world, episodes, levels=quantiles)
    else:
        assert "quantiles" not in trace
        xr.testing.assert_identical(trace["mean"], tl.state_trace(ds, "obs")["mean"])


@pytest.mark.parametrize("by", ["env", "end_reason"])
def test_by_what_describes_episodes(recording, by):
    ds, world, episodes = recording
    trace = tl.state_trace(ds, "obs", by=by)
    hist = tl.action_histogram(ds, by=by)
    assert trace["n"].dims == (by, "time", "agent")
    for group in trace[by].values:
        chosen = [one for one, value in zip(episodes, ds[by].values, strict=True) if value == group]
        assert_trace(trace.sel({by: group}), world, chosen)
        for k, agent in enumerate(world.agents):
            counts = hist["count"].sel({by: group, "agent": agent})
            assert counts.sum() == len(cells(world, chosen, "action", k))


def by_wind(world, episodes, calm):
    """Return episodes with only the transitions in which the wind is, or is not, below 0."""
    return [one._replace(alive=one.alive & ((world.wind[one.rows, one.env] < 0) == calm)[:, None]) for one in episodes]


def test_by_what_differs_from_step_to_step(recording):
    ds, world, episodes = recording
    ds = ds.assign(calm=(ds["wind"] < 0).where(ds["mask"], False))
    trace, hist = tl.state_trace(ds, "obs", by="calm"), tl.action_histogram(ds, by="calm")
    for calm in (False, True):
        chosen = by_wind(world, episodes, calm)
        assert_trace(trace.sel(calm=calm), world, chosen)
        for k, agent in enumerate(world.agents):
            assert hist["count"].sel(calm=calm, agent=agent).sum() == len(cells(world, chosen, "action", k))


def test_by_the_actions_of_one_agent(recording):
    ds, world, episodes = recording
    one = ds.sel(agent="carrier")
    hist = tl.action_histogram(one, "reward", by="action", bins=[-2, 2])
    taken = cells(world, episodes, "action", 1)
    assert dict(zip(hist["action"].values, hist["count"].values[:, 0], strict=True)) == dict(
        zip(*np.unique(taken, return_counts=True), strict=True)
    )
    trace = tl.state_trace(one, "obs", by="action")
    assert trace["action"].values.tolist() == np.unique(taken).tolist()
    assert trace["n"].sum() == len(taken)
    # Wind is no agent's: what counts is who was alive to choose the action that groups it.
    assert tl.state_trace(one, "wind", by="action")["n"].sum() == len(taken)


def test_a_field_of_no_agent_counts_every_transition(recording):
    ds, world, episodes = recording
    assert tl.state_trace(ds, "wind")["n"].sum() == sum(len(one.rows) for one in episodes) == world.end.size
    assert tl.action_histogram(ds, "wind")["count"].sum() == world.end.size
    assert tl.state_trace(ds.sel(agent="scout"), "wind")["n"].sum() == world.end.size


def test_the_axis_of_agents_may_stand_behind_others(recording):
    ds, *_ = recording
    turned = ds.transpose("episode", "time", "obs_dim_0", "agent")
    xr.testing.assert_identical(
        tl.state_trace(turned, "obs").transpose("quantile", "time", "agent", "obs_dim_0"),
        tl.state_trace(ds, "obs").transpose("quantile", "time", "agent", "obs_dim_0"),
    )
    np.testing.assert_array_equal(
        tl.action_histogram(turned, "obs", bins=EDGES)["count"].transpose("agent", "obs_dim_0", "bin"),
        tl.action_histogram(ds, "obs", bins=EDGES)["count"],
    )
    for label in ("0,scout", "1,medic"):
        first, second = label.split(",")
        np.testing.assert_array_equal(
            tl.stack_fields(turned).sel(field=f"obs[{label}]"), tl.stack_fields(ds).sel(field=f"obs[{second},{first}]")
        )


# Parts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["sel", "isel list", "isel slice"])
def test_some_agents(recording, how):
    ds, world, episodes = recording
    chosen = {
        "sel": lambda: ds.sel(agent=["medic", "scout"]),
        "isel list": lambda: ds.isel(agent=[2, 0]),
        "isel slice": lambda: ds.isel(agent=slice(None, None, 2)),
    }[how]()
    part = world_of(world, chosen["agent"].values)
    own = [one._replace(alive=one.alive[:, [world.agents.index(a) for a in part.agents]]) for one in episodes]
    assert_trace(tl.state_trace(chosen, "obs"), part, own)
    assert_histogram(chosen, part, own)
    assert_returns(tl.returns(chosen), part, own)


def world_of(world, agents):
    """Return the recording of some agents, in their order."""
    which = [world.agents.index(agent) for agent in agents]
    arrays = {name: getattr(world, name)[:, :, which] for name in ("obs", "action", "reward", "done")}
    return dataclasses.replace(world, agents=tuple(agents), **arrays)


def test_a_single_agent(recording):
    ds, world, episodes = recording
    one = ds.sel(agent="carrier")
    trace, whole = tl.state_trace(one, "obs"), tl.state_trace(ds, "obs").sel(agent="carrier")
    np.testing.assert_array_equal(trace["n"], whole["n"])
    np.testing.assert_array_equal(trace["mean"], whole["mean"])
    np.testing.assert_array_equal(trace["quantiles"], whole["quantiles"])
    np.testing.assert_array_equal(tl.action_histogram(one)["count"].sum(), len(cells(world, episodes, "action", 1)))
    np.testing.assert_array_equal(tl.returns(one), tl.returns(ds).sel(agent="carrier"))
    to_go = tl.return_to_go(ds)
    assert to_go["alive"].dims == ("episode", "time", "agent")
    np.testing.assert_array_equal(tl.return_to_go(one), to_go.sel(agent="carrier"))
    trace = tl.state_trace(ds.assign(return_to_go=to_go), "return_to_go")
    np.testing.assert_allclose(trace["mean"], to_go.mean("episode"))
    np.testing.assert_array_equal(
        tl.stack_fields(one, "obs"), tl.stack_fields(ds).sel(field=["obs[carrier,0]", "obs[carrier,1]"])
    )


def test_a_slice_of_time(recording):
    ds, world, episodes = recording
    part = ds.isel(time=slice(2, 5))
    xr.testing.assert_equal(tl.state_trace(part, "obs"), tl.state_trace(ds, "obs").isel(time=slice(2, 5)))
    want = sum(len(cells(world, episodes, "action", k, t)) for k in range(3) for t in (2, 3, 4))
    assert tl.action_histogram(part)["count"].sum() == want


def test_some_episodes_in_another_order(recording):
    ds, world, episodes = recording
    which = [4, 1, 2]
    part, own = ds.isel(episode=which), [episodes[i] for i in which]
    assert_trace(tl.state_trace(part, "obs"), world, own)
    assert_histogram(part, world, own)
    assert_returns(tl.returns(part), world, own)


@pytest.mark.parametrize("change", ["where", "load", "where alive", "chunked"])
def test_changed_datasets(recording, change):
    ds, world, episodes = recording
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changed = {
            "where": lambda: ds.where(ds["length"] > 0),
            "load": lambda: ds.load(),
            "where alive": lambda: ds.assign({n: ds[n].where(ds["alive"]) for n in ("obs", "action", "reward")}),
            "chunked": lambda: ds.chunk({"episode": 3}),
        }[change]()
    assert_trace(tl.state_trace(changed, "obs"), world, episodes)
    assert_histogram(changed, world, episodes)
    assert_returns(tl.returns(changed), world, episodes)


def test_alive_as_numbers(recording):
    ds, world, episodes = recording
    ds = ds.assign_coords(alive=ds["alive"].where(ds["mask"]))
    assert ds["alive"].dtype != bool
    assert_trace(tl.state_trace(ds, "obs"), world, episodes)
    assert_histogram(ds, world, episodes)


def test_several_recordings(recording):
    ds, world, episodes = recording
    other = make_world(21)
    both = tl.concat({"one": ds, "two": record(other)})
    trace = tl.state_trace(both, "obs", by="run")
    assert_trace(trace.sel(run="one"), world, episodes)
    assert_trace(trace.sel(run="two"), other, live(other))
    assert_returns(tl.returns(both)[: len(episodes)], world, episodes)
    counts = tl.action_histogram(both, by="run")["count"].sum("value")
    want = [[len(cells(w, live(w), "action", k)) for k in range(3)] for w in (world, other)]
    assert counts.values.tolist() == want


@pytest.mark.parametrize("kind", ["netcdf", "zarr"])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:.*Zarr (V|format )3 spec")
def test_files(recording, kind, tmp_path):
    ds, world, episodes = recording
    if kind == "netcdf":
        ds.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
        opened = xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf")
    else:
        ds.to_zarr(tmp_path / "run.zarr")
        opened = xr.open_zarr(tmp_path / "run.zarr")
    with opened:
        tl.validate(opened, deep=True)
        assert_trace(tl.state_trace(opened, "obs"), world, episodes)
        assert_histogram(opened, world, episodes)
        assert_returns(tl.returns(opened), world, episodes)
        both = tl.concat([opened, ds])
        assert tl.action_histogram(both)["count"].sum() == 2 * tl.action_histogram(ds)["count"].sum()
        xr.testing.assert_identical(opened.load(), ds.load())


# Views ---------------------------------------------------------------------------------------------------------------


def test_stacked_fields_have_nan_where_an_agent_is_done(recording):
    ds, world, episodes = recording
    stacked = tl.stack_fields(ds, ["obs", "action", "wind"])
    for k, agent in enumerate(world.agents):
        columns = stacked.sel(field=[f"obs[{agent},0]", f"obs[{agent},1]", f"action[{agent}]", "wind"]).values
        for got, one in zip(columns, episodes, strict=True):
            own = world.part(one.rows, [one.env])
            want = np.column_stack([own.obs[:, 0, k], own.action[:, 0, k]])
            np.testing.assert_array_equal(got[: len(one.rows), :3], np.where(one.alive[:, [k]], want, np.nan))
            np.testing.assert_array_equal(got[: len(one.rows), 3], own.wind[:, 0])
            assert np.isnan(got[len(one.rows) :]).all()
    np.testing.assert_array_equal(
        stacked.isel(field=[7, 2]).isel(episode=1, time=slice(0, 3)), stacked.values[1, :3][:, [7, 2]]
    )
    points = {
        dim: xr.DataArray(at, dims="p") for dim, at in {"episode": [0, 2], "time": [1, 0], "field": [5, 3]}.items()
    }
    np.testing.assert_array_equal(stacked.isel(points), stacked.values[[0, 2], [1, 0], [5, 3]])


def test_tables_say_who_takes_part(recording):
    ds, world, episodes = recording
    frame = tl.to_dataframe(ds)
    assert len(frame) == world.end.size
    for k, agent in enumerate(world.agents):
        alive = frame[f"alive[{agent}]"]
        assert alive.tolist() == np.concatenate([one.alive[:, k] for one in episodes]).tolist()
        assert sorted(frame[f"action[{agent}]"][alive]) == sorted(cells(world, episodes, "action", k))
    assert "alive[scout]" not in tl.to_dataframe(ds, ["wind"])
    table = tl.episode_table(ds)
    returns = tl.returns(ds)
    for agent in world.agents:
        np.testing.assert_array_equal(table[f"return[{agent}]"], returns.sel(agent=agent))


def test_transitions_carry_alive(recording):
    ds, _, episodes = recording
    flat = tl.transitions(ds)
    assert flat["alive"].dims == ("transition", "agent")
    assert "alive" in flat.coords
    np.testing.assert_array_equal(flat["alive"], np.concatenate([one.alive for one in episodes]))


def test_one_episode_carries_alive():
    world = make_world(22, ends=0.2)
    chunk = chunk_of(world) | {"next_obs": {agent: world.obs[:, :, k] + 1 for k, agent in enumerate(world.agents)}}
    ds = tl.from_rollout(chunk, convention=convention_of(world))
    assert ds["final_obs"].dims == ("episode", "agent", "obs_dim_0")
    lived = live(world)[1]
    one = tl.episode(ds, 1, final=True)
    assert one.sizes["time"] == len(lived.rows) + 1
    np.testing.assert_array_equal(one["alive"][:-1], lived.alive)
    assert not one["alive"][-1].any()
    np.testing.assert_array_equal(one["obs"][-1], world.obs[lived.rows[-1], lived.env] + 1)


# Agents that differ --------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed():
    """A recording in which agents' observations differ in shape; their rewards do not."""
    world = poisoned(make_world(23))
    chunk = chunk_of(world)
    chunk["obs"] = {"scout": world.obs[:, :, 0], "carrier": world.obs[:, :, 1, 0], "medic": world.obs[:, :, 2, :1]}
    return tl.from_rollout(chunk, convention=convention_of(world)), make_world(23)


def test_fields_of_agents_that_differ_stay_single(mixed):
    ds, world = mixed
    episodes = live(world)
    assert ds["reward"].dims == ("episode", "time", "agent")
    for k, (agent, width) in enumerate(zip(world.agents, (2, 1, 1), strict=True)):
        name = f"obs.{agent}"
        assert ds[name].attrs["agent"] == agent
        trace = tl.state_trace(ds, name)
        assert trace["n"].dims == ("time",)
        seen = [cells(world, episodes, "obs", k, t) for t in range(ds.sizes["time"])]
        assert trace["n"].values.tolist() == [len(values) for values in seen]
        np.testing.assert_allclose(trace["mean"][0], seen[0].mean(0)[:width].squeeze(), rtol=1e-5)
        assert tl.action_histogram(ds, name)["count"].sum() == sum(map(len, seen)) * width
        alone = tl.state_trace(ds.sel(agent=agent), name)
        xr.testing.assert_equal(alone, trace)
        stacked = tl.stack_fields(ds, name).values[..., 0]
        for got, one in zip(stacked, episodes, strict=True):
            np.testing.assert_array_equal(
                got[: len(one.rows)], np.where(one.alive[:, k], world.obs[one.rows, one.env, k, 0], np.nan)
            )
    assert tl.state_trace(ds.sel(agent=["medic"]), "obs.medic")["n"].sum() == sum(
        one.alive[:, 2].sum() for one in episodes
    )


def test_a_field_of_an_agent_that_was_left_out_is_refused(mixed):
    ds, _ = mixed
    with pytest.raises(ValueError, match="'obs.scout' belongs to the agent 'scout', which was left out"):
        tl.state_trace(ds.sel(agent=["medic"]), "obs.scout")
    with pytest.raises(ValueError, match="'obs.scout' belongs to the agent 'scout', and 'medic' was selected; take"):
        tl.action_histogram(ds.sel(agent="medic"), "obs.scout")
    with pytest.raises(ValueError, match="'obs.scout' belongs to the agent 'scout', and 'medic' was selected; take"):
        tl.stack_fields(ds.sel(agent="medic"), "obs.scout")


def test_what_is_reduced_over_agents_counts_every_transition(recording):
    ds, world, _ = recording
    team = ds.assign(team=ds["reward"].where(ds["alive"]).sum("agent"))
    got = tl.returns(team, reward="team")
    want = tl.returns(ds).sum("agent")
    np.testing.assert_allclose(got, want, atol=1e-12)
    assert tl.state_trace(team, "team")["n"].sum() == world.end.size


def test_no_episode(recording):
    ds, *_ = recording
    nothing = ds.isel(episode=[])
    assert tl.state_trace(nothing, "obs")["n"].shape == (ds.sizes["time"], 3)
    assert tl.returns(nothing).shape == (0, 3)
    assert tl.action_histogram(nothing)["count"].sizes["agent"] == 3
    assert tl.stack_fields(nothing).shape[0] == 0


def test_what_where_spread_over_all_agents_counts_for_its_own_alone():
    dead = np.zeros((6, 1), bool)
    dead[2:] = True
    height = {"a": np.zeros((6, 1, 1)), "b": np.where(np.arange(6) > 2, 1e9, 1.0)[:, None, None] * np.ones(2)}
    done = {"a": dead & False, "b": dead, "__all__": dead & False}
    ds = tl.from_rollout({"height": height, "done": done}, convention=tl.Convention(agents=["a", "b"]))
    spread = ds.where(ds["alive"])
    assert "agent" in spread["height.b"].dims
    trace = tl.state_trace(spread, "height.b", quantiles=False)
    want = tl.state_trace(ds, "height.b", quantiles=False)
    np.testing.assert_array_equal(trace["mean"].sel(agent="b"), want["mean"])
    assert trace["n"].values.T.tolist() == [[0] * 6, want["n"].values.tolist()]
    assert np.nanmax(tl.stack_fields(spread, "height.b").values) == 1
    assert tl.action_histogram(spread, "height.b", bins=[0, 2])["count"].sum() == 6
