"""Who takes part: `alive` in every form, however it was recorded, against plain loops over the cells."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from agents.worlds import (
    FORMS,
    assert_alive,
    assert_holds,
    chunk_of,
    convention_of,
    live,
    make_world,
    poisoned,
    record,
    step_of,
    worlds,
)
from chunks import after
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl


@pytest.mark.parametrize("home", ["numpy", "jax"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, home):
    world = make_world()
    ds = record(world, form, home)
    assert_holds(ds, world, live(world))
    tl.validate(ds, deep=True)


@given(worlds(), st.sampled_from(FORMS), st.data())
@examples(60)
def test_wherever_chunks_are_cut(world, form, data):
    cuts = data.draw(st.sets(st.integers(1, max(world.shape[0] - 1, 1)), max_size=4)) if world.shape[0] > 1 else ()
    ds = record(world, form, cuts=cuts)
    assert_holds(ds, world, live(world))


@given(worlds())
@examples(40)
def test_flags_of_agents_that_are_done_mean_nothing(world):
    assert_alive(record(poisoned(world)), live(world))


@pytest.mark.parametrize("form", FORMS)
def test_chunks_of_jax_cut_anywhere(form):
    world = make_world(1)
    assert_holds(record(world, form, "jax", cuts=(13, 14)), world, live(world))


def assert_holds_by_env(ds, world, episodes):
    """Check the episodes of one environment after the other: steps of some environments share rows."""
    order = np.lexsort([ds["start_row"].values, ds["env"].values])
    assert_holds(ds.isel(episode=order), world, sorted(episodes, key=lambda one: (one.env, one.rows[0])))


@given(worlds(), st.sampled_from(FORMS), st.data())
@examples(40)
def test_single_steps_of_some_environments(world, form, data):
    rows, envs = world.shape
    recorded = np.array(data.draw(st.lists(st.booleans(), min_size=rows * envs, max_size=rows * envs)))
    recorded = recorded.reshape(rows, envs) | (np.arange(envs) == data.draw(st.integers(0, envs - 1)))
    recorder = tl.Recorder(convention=convention_of(world, form), num_envs=envs)
    for t in range(rows):
        match data.draw(st.sampled_from(["indices", "mask"])) if not recorded[t].all() else "all":
            case "indices":
                which = np.flatnonzero(recorded[t])
                recorder.record_step(step_of(world, t, form, envs=which), envs=which)
            case "mask":
                recorder.record_step(step_of(world, t, form), envs=recorded[t])
            case "all":
                recorder.record_step(step_of(world, t, form))
    assert_holds_by_env(recorder.to_dataset(), world, live(world, recorded))


@pytest.mark.parametrize("form", ["dict", "T(AN)"])
def test_single_steps_of_jax(form):
    world = make_world(2, rows=12)
    recorded = np.random.default_rng(0).random(world.shape) < 0.7
    recorder = tl.Recorder(convention=convention_of(world, form), num_envs=3)
    for t in range(12):
        recorder.record_step(step_of(world, t, form, "jax"), envs=recorded[t])
    assert_holds_by_env(recorder.to_dataset(), world, live(world, recorded))


@given(worlds(), st.sampled_from(FORMS), st.integers(0, 2**32 - 1))
@examples(40)
def test_masked_cells_say_nothing_of_agents(world, form, seed):
    recorded = np.random.default_rng(seed).random(world.shape) < 0.7
    recorded[0] = True
    recorder = tl.Recorder(convention=convention_of(world, form))
    recorder.record(chunk_of(world, form), mask=recorded)
    assert_holds(recorder.to_dataset(), world, live(world, recorded))


@pytest.mark.parametrize("form", FORMS)
def test_some_environments_keep_their_numbers(form):
    world = make_world(3, envs=4)
    ds = record(world, form, cuts=(7,), envs=[3, 1])
    assert_holds(ds, world, [one for one in live(world) if one.env in (1, 3)])


# Flags of the row before ---------------------------------------------------------------------------------------------


def late_flags(world, recorded=None):
    """Return each agent's flag at the environment's previous recorded cell; True before the first."""
    out = np.ones_like(world.done)
    for n in range(world.shape[1]):
        newest = np.ones(len(world.agents), bool)
        for t in range(world.shape[0]):
            out[t, n] = newest
            if recorded is None or recorded[t, n]:
                newest = world.done[t, n]
    return out


@given(worlds(), st.sampled_from(FORMS), st.booleans(), st.integers(0, 2**32 - 1))
@examples(60)
def test_flags_of_agents_from_the_row_before(world, form, masks, seed):
    recorded = np.random.default_rng(seed).random(world.shape) < 0.7 if masks else np.ones(world.shape, bool)
    recorded[0] = True
    recorder = tl.Recorder(convention=convention_of(world, form, agent_flags="previous_row"))
    recorder.record(chunk_of(world, form, late=late_flags(world, recorded)), mask=recorded)
    assert_alive(recorder.to_dataset(), live(world, recorded))


@pytest.mark.parametrize("form", FORMS)
def test_all_flags_from_the_row_before(form):
    world = make_world(4)
    late_end = np.concatenate([np.ones((1, 3), bool), world.end[:-1]])
    chunk = chunk_of(dataclasses.replace(world, end=late_end), form, late=late_flags(world))
    ds = tl.from_rollout(chunk, convention=convention_of(world, form, flags="previous_row"))
    assert "agent_done=done (previous_row)" in ds.attrs["convention"]
    assert_alive(ds, live(world))
    assert (ds["end_reason"].values == "cut").sum() == 3  # whether the newest row ended is not known yet


def test_where_the_start_was_not_seen_the_row_before_tells_who_is_done_already():
    flags = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [0, 0], [0, 1]], bool)  # (T, agent), each of the row before
    end = np.array([0, 1, 1, 0, 0, 0], bool)
    chunk = {
        "done": {"a": flags[:, None, 0], "b": flags[:, None, 1], "__all__": end[:, None]},
        "reward": {"a": np.ones((6, 1)), "b": np.ones((6, 1))},
    }
    convention = tl.Convention(agents=["a", "b"], agent_flags="previous_row")
    seen = tl.from_rollout(chunk, convention=convention)
    unseen = tl.from_rollout(chunk, convention=convention, starts_fresh=False)
    assert seen["length"].values.tolist() == unseen["length"].values.tolist() == [2, 1, 3]
    assert seen["alive"].values[0, :2].tolist() == [[True, True], [False, True]]
    assert unseen["alive"].values[0, :2].tolist() == [[False, True], [False, True]]
    for ds in (seen, unseen):  # all of them done: that was the episode before
        assert ds["alive"].values[1:, 0].all()
        assert ds["alive"].values[2].tolist() == [[True, True], [True, True], [True, False]]
    all_done = tl.from_rollout(
        {**chunk, "done": {**chunk["done"], "b": np.ones((6, 1), bool)}}, convention=convention, starts_fresh=False
    )
    assert all_done["alive"].values[:, 0].all()


# Conventions of ends -------------------------------------------------------------------------------------------------


def test_terminated_and_truncated_of_each_agent_end_an_episode_once_all_are_done():
    terminated, truncated = (np.zeros((7, 1, 2), bool) for _ in "ab")
    terminated[2:5, 0, 0] = truncated[4, 0, 1] = True
    truncated[6] = True
    chunk = {
        "reward": {"a": np.ones((7, 1)), "b": np.ones((7, 1))},
        "terminated": {"a": terminated[:, :, 0], "b": terminated[:, :, 1]},
        "truncated": {"a": truncated[:, :, 0], "b": truncated[:, :, 1]},
    }
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    assert ds["length"].values.tolist() == [5, 2]
    assert ds["end_reason"].values.tolist() == ["truncated", "truncated"]
    assert ds["alive"].values[0].T.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert tl.returns(ds).values.tolist() == [[3, 5], [2, 2]]


def test_without_the_flag_for_all_an_episode_ends_with_its_last_agent():
    world = make_world(5, ends=0)  # where all are done, so is the episode
    chunk = chunk_of(world)
    del chunk["done"]["__all__"]
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=world.agents))
    assert_holds(ds, world, live(world))
    assert (ds["end_reason"].values == "done").any()
    flat = chunk_of(world, "T(AN)")
    del flat["global_done"]
    from_axis = tl.from_rollout(flat, convention=tl.Convention(agents=world.agents, axes="T(AN)"))
    assert_holds(from_axis, world, live(world))


def test_what_holds_for_all_ends_an_episode_and_not_what_holds_for_each():
    flags, end = np.zeros((6, 1, 2), bool), np.zeros((6, 1), bool)
    flags[1:4] = True  # all are done, and the episode goes on
    end[3] = end[5] = True  # none is, and it ends
    flags[5, 0, 0] = True
    chunk = {"done": {"a": flags[:, :, 0], "b": flags[:, :, 1], "__all__": end}}
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]))
    assert ds["length"].values.tolist() == [4, 2]
    assert ds["alive"].values[0].tolist() == [[True, True]] * 2 + [[False, False]] * 2
    assert ds["alive"].values[1, :2].all()


def test_one_agent():
    world = make_world(6, agents=1, ends=0.1)
    for form in FORMS:
        ds = record(world, form)
        assert_holds(ds, world, live(world))
        assert ds.sizes["agent"] == 1


@pytest.mark.parametrize("form", FORMS)
def test_without_flags_of_agents_all_are_alive(form):
    world = make_world(7)
    ds = record(world, form, convention=convention_of(world, form, agent_done=None))
    assert "agent_done=none: all are alive" in ds.attrs["convention"]
    np.testing.assert_array_equal(ds["alive"], ds["mask"].expand_dims(agent=3, axis=2))


@given(worlds())
@examples(40)
def test_rows_that_only_reset_are_not_lived(world):
    ds = record(world, convention=convention_of(world, autoreset="next_step"))
    assert_holds(ds, world, live(world, next_step=True))


@pytest.mark.parametrize("form", FORMS)
def test_observations_on_the_row_of_their_result(form):
    world = make_world(8)
    world.done[0] = world.end[0] = False
    world.reward[0] = 0  # what a reset returns
    ds = record(world, form, convention=convention_of(world, form, alignment="result"))
    episodes = live(world.part(slice(1, None)))
    assert_alive(ds, episodes)
    for got, one in zip(ds["obs"].values, episodes, strict=True):  # rows of the part are those before in the whole
        np.testing.assert_array_equal(got[: len(one.rows)], world.obs[one.rows, one.env])
    for got, one in zip(ds["action"].values, episodes, strict=True):
        np.testing.assert_array_equal(got[: len(one.rows)], world.action[one.rows + 1, one.env])


def test_marks_begin_a_new_life():
    world = make_world(9, rows=10, envs=1, ends=0, dies=0)
    world.done[2:, 0, 0] = True
    for mark, second in (("mark_reset", [True] + [False] * 5), ("mark_gap", [False] * 6)):
        recorder = tl.Recorder(convention=convention_of(world))
        recorder.record(chunk_of(world.part(slice(0, 6))))
        getattr(recorder, mark)()
        recorder.record(chunk_of(world.part(slice(6, 10))))
        alive = recorder.to_dataset()["alive"].values[..., 0]
        assert alive.tolist() == [[True] * 3 + [False] * 3, second]


def test_seeds_beside_agents():
    seeds = [make_world(seed) for seed in (10, 11)]
    chunk = {name: np.stack([chunk_of(w, "TAN")[name] for w in seeds]) for name in chunk_of(seeds[0], "TAN")}
    convention = tl.Convention(agents=seeds[0].agents, axes="STAN", done="global_done", agent_done="done")
    ds = tl.from_rollout(chunk, convention=convention, dims={"S": "seed"})
    for number, world in enumerate(seeds):
        one = ds.isel(episode=np.flatnonzero(ds["seed"].values == number))
        assert_holds(one.assign_coords(env=one["env"] - 3 * number), world, live(world))


@pytest.mark.parametrize("axes", ["(UN)T", "UNT"])
def test_agents_in_a_dict_beside_updates(axes):
    world = make_world(12, rows=40)
    turned = jax.tree.map(lambda x: np.moveaxis(x.reshape(4, 10, *x.shape[1:]), 2, 1), chunk_of(world))
    if axes == "(UN)T":
        turned = jax.tree.map(lambda x: x.reshape(12, *x.shape[2:]), turned)
    ds = tl.from_rollout(turned, convention=convention_of(world, axes=axes), num_envs=3)
    assert_holds(ds, world, live(world))
    assert ds["iteration"].max() == 3


# Inside jit ----------------------------------------------------------------------------------------------------------


def collect_in_scan(world, form, keep, capacity, **options):
    chunk = chunk_of(world, form, "jax")

    @jax.jit
    def run(chunk):
        parts = jax.tree.map(lambda x: x.reshape(4, -1, *x.shape[1:]), chunk)
        example = jax.tree.map(lambda x: x[0], parts)
        buffer = tl.init_buffer(example, capacity, keep=keep, **options)
        return jax.lax.scan(lambda buffer, part: (tl.append(buffer, part), None), buffer, parts)[0]

    return tl.to_dataset(run(chunk))


@pytest.mark.parametrize("form", FORMS)
def test_in_a_scan(form):
    world = make_world(13)
    ds = collect_in_scan(world, form, "first", 40, convention=convention_of(world, form))
    assert_holds(ds, world, live(world))


@pytest.mark.parametrize("form", ["dict", "T(AN)"])
def test_as_a_ring(form):
    world = make_world(14)
    ds = collect_in_scan(world, form, "last", 20, convention=convention_of(world, form))
    kept = world.part(slice(20, 40))
    episodes = live(kept)
    begun = {one.env for one in live(world) if one.rows[0] < 20 <= one.rows[-1]}
    for one in [one for one in episodes if one.rows[0] == 0 and one.env in begun]:
        done = kept.done[0, one.env]  # perhaps before the first row that is left
        one.alive[0] &= ~done | done.all()
    assert begun
    assert_holds(ds, kept, episodes)


def test_in_a_ring_the_row_before_tells_who_was_done_before_it_begins():
    world = make_world(15, rows=8, envs=1, ends=0, dies=0)
    world.done[1:, 0, 0] = True
    late = late_flags(world)
    late[0] = False
    chunk = jax.tree.map(jnp.asarray, chunk_of(world, late=late))
    convention = convention_of(world, agent_flags="previous_row")
    buffer = tl.init_buffer(jax.tree.map(lambda x: x[:4], chunk), 4, keep="last", convention=convention)
    for start in (0, 4):
        buffer = tl.append(buffer, jax.tree.map(lambda x: x[start : start + 4], chunk))
    alive = tl.to_dataset(buffer)["alive"].values
    assert alive[0].T.tolist() == [[False] * 4, [True] * 4, [True] * 4]


# Ownership -----------------------------------------------------------------------------------------------------------


def test_a_dataset_keeps_who_was_alive():
    world = make_world(16)
    recorder = tl.Recorder(convention=convention_of(world))
    recorder.record(chunk_of(world.part(slice(0, 20)), home="jax"))
    ds = recorder.to_dataset()
    recorder.record(chunk_of(world.part(slice(20, 40)), home="jax"))
    recorder.reset()
    assert_holds(ds, world, live(world.part(slice(0, 20))))


def aligned(array):
    """Return a copy whose memory begins at a multiple of 64 bytes, where JAX may alias it."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    offset = -memory.ctypes.data % 64
    out = memory[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def test_numpy_arrays_beside_those_of_jax_may_be_filled_anew(slow):
    begin, _ = slow
    world = make_world(17, rows=400)
    recorder = tl.Recorder(convention=convention_of(world))
    for part in (world.part(slice(0, 200)), world.part(slice(200, 400))):  # the first one compiles
        chunk = chunk_of(part)
        chunk["obs"] = {agent: aligned(x) for agent, x in chunk["obs"].items()}
        chunk["obs"]["scout"] = after(begin(), jnp.asarray(chunk["obs"]["scout"]))
        recorder.record(chunk)
        for agent in ("carrier", "medic"):
            chunk["obs"][agent][...] = -1
    assert_holds(recorder.to_dataset(), world, live(world))


def test_concat_and_renaming_keep_alive():
    world = make_world(18)
    ds = record(world)
    both = tl.concat([ds, ds])
    assert_alive(both.isel(episode=slice(0, len(live(world)))), live(world))
    np.testing.assert_array_equal(both["alive"][len(live(world)) :], ds["alive"])
    xr.testing.assert_identical(ds.rename(obs="seen")["alive"].drop_attrs(), ds["alive"].drop_attrs())


def three_rows(**options):
    """Two agents, of which b is done before the first of three rows, by flags on their own row."""
    done = {"a": np.zeros((3, 1), bool), "b": np.ones((3, 1), bool), "__all__": np.zeros((3, 1), bool)}
    chunk = {"reward": {"a": np.ones((3, 1)), "b": np.full((3, 1), 1e9)}, "done": done}
    return tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]), **options)


def test_who_is_done_in_a_first_row_whose_episode_began_before_takes_no_part():
    ds = three_rows(starts_fresh=False)
    assert ds["alive"].values[0].tolist() == [[True, False]] * 3
    assert tl.returns(ds).values.tolist() == [[3, 0]]


def test_who_is_done_in_an_episodes_true_first_row_takes_part_in_it():
    assert three_rows()["alive"].values[0].tolist() == [[True, True], [True, False], [True, False]]


def test_a_first_row_that_ends_the_episode_for_all_has_all_agents():
    ended = np.ones((1, 1), bool)
    chunk = {"reward": {"a": ended * 1.0, "b": ended * 1.0}, "done": {"a": ended, "b": ended, "__all__": ended}}
    ds = tl.from_rollout(chunk, convention=tl.Convention(agents=["a", "b"]), starts_fresh=False)
    assert ds["alive"].values.all()
