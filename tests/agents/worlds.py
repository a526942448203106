"""Random recordings of several agents, each in every form a chunk can have, and plain loops over their cells."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from hypothesis import strategies as st

import trajlab as tl

FORMS = ("dict", "TAN", "TNA", "T(AN)")
NAMES = ("scout", "carrier", "medic")


@dataclasses.dataclass(frozen=True)
class World:
    """Arrays (T, N, agent, ...) and (T, N): `end` for all agents, `wind` for none of them."""

    agents: tuple[str, ...]
    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    done: np.ndarray
    end: np.ndarray
    wind: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.end.shape

    def part(self, rows: Any = slice(None), envs: Any = slice(None)) -> World:
        """Return some rows of some environments."""
        arrays = {f.name: getattr(self, f.name)[rows][:, envs] for f in dataclasses.fields(self) if f.name != "agents"}
        return World(self.agents, **arrays)


class Lived(NamedTuple):
    """One episode: its environment, the rows of its transitions, and which agents take part (L, agent)."""

    env: int
    rows: np.ndarray
    alive: np.ndarray


def make_world(seed=0, rows=40, envs=3, agents=3, ends=0.08, dies=0.12):
    """Return a recording in which agents die at random, stay done until the end, and all end together."""
    rng = np.random.default_rng(seed)
    end = rng.random((rows, envs)) < ends
    done = np.zeros((rows, envs, agents), bool)
    for n in range(envs):
        dead = np.zeros(agents, bool)
        for t in range(rows):
            dead |= rng.random(agents) < dies
            end[t, n] |= dead.all()
            done[t, n] = dead | end[t, n]
            dead &= not end[t, n]
    shape = (rows, envs, agents)
    return World(
        NAMES[:agents],
        rng.normal(size=(*shape, 2)).astype(np.float32),
        rng.integers(0, 4, shape).astype(np.int32),
        (rng.integers(-3, 4, shape) / 2).astype(np.float32),
        done,
        end,
        rng.normal(size=(rows, envs)).astype(np.float32),
    )


@st.composite
def worlds(draw):
    return make_world(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, 20)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([0.0, 0.1, 0.5])),
        draw(st.sampled_from([0.0, 0.1, 0.4])),
    )


def live(world, recorded=None, *, next_step=False):
    """Return the episodes of a recording, found cell by cell; cells that are not `recorded` (T, N) are not there."""
    found = []
    for n in range(world.shape[1]):
        rows, alive, living, is_reset = [], [], [True] * len(world.agents), False
        for t in range(world.shape[0]):
            if recorded is not None and not recorded[t, n]:
                continue
            if is_reset:
                is_reset = False
                continue
            rows.append(t)
            alive.append(list(living))
            living = [lives and not world.done[t, n, k] for k, lives in enumerate(living)]
            if world.end[t, n]:
                found.append(Lived(n, np.array(rows), np.array(alive)))
                rows, alive, living, is_reset = [], [], [True] * len(world.agents), next_step
        if rows:
            found.append(Lived(n, np.array(rows), np.array(alive)))
    return sorted(found, key=lambda one: (one.rows[0], one.env))


def poisoned(world, recorded=None):
    """Return the same recording with garbage wherever an agent takes no part, in its flags too."""
    dead = np.zeros(world.done.shape, bool)
    for one in live(world, recorded):
        dead[one.rows, one.env] = ~one.alive
    garbage = np.resize(np.array([np.nan, np.inf, -np.inf, 1e9], np.float32), world.reward.shape)
    return dataclasses.replace(
        world,
        obs=np.where(dead[..., None], garbage[..., None], world.obs),
        action=np.where(dead, np.resize(np.array([10**9, -7, 3], np.int32), dead.shape), world.action),
        reward=np.where(dead, garbage, world.reward),
        done=np.where(dead, np.resize([True, False, True], dead.shape), world.done),
    )


# Chunks --------------------------------------------------------------------------------------------------------------


def chunk_of(world, form="dict", home="numpy", late=None):
    """Return a chunk in one of `FORMS`; `late` are flags (T, N, agent) to store in the place of `done`."""
    done = world.done if late is None else late
    arrays = {"obs": world.obs, "action": world.action, "reward": world.reward, "done": done}
    if form == "dict":
        chunk = {name: {agent: x[:, :, k] for k, agent in enumerate(world.agents)} for name, x in arrays.items()}
        chunk["done"]["__all__"] = world.end
        chunk["wind"] = world.wind
    else:
        arrays["global_done"] = np.repeat(world.end[..., None], len(world.agents), axis=2)
        turned = {name: x if form == "TNA" else np.moveaxis(x, 2, 1) for name, x in arrays.items()}
        rows, envs = world.shape
        flat = (rows, len(world.agents) * envs)
        chunk = {name: x.reshape(*flat, *x.shape[3:]) if form == "T(AN)" else x for name, x in turned.items()}
    return jax.tree.map(jax.numpy.asarray, chunk) if home == "jax" else chunk


def step_of(world, t, form="dict", home="numpy", envs=slice(None)):
    """Return one step of some environments."""
    return jax.tree.map(lambda x: x[0], chunk_of(world.part([t], envs), form, home))


def convention_of(world, form="dict", **settings):
    """Return the convention of `chunk_of`'s chunks."""
    own = {} if form == "dict" else {"axes": form, "done": "global_done", "agent_done": "done"}
    return tl.Convention(**{"agents": world.agents} | own | settings)


def record(world, form="dict", home="numpy", cuts=(), convention=None, **options):
    """Return the Dataset of a recording whose chunks end at `cuts`."""
    recorder = tl.Recorder(convention=convention or convention_of(world, form), **options)
    edges = [0, *sorted(cuts), world.shape[0]]
    for start, stop in zip(edges, edges[1:], strict=False):
        recorder.record(chunk_of(world.part(slice(start, stop)), form, home))
    return recorder.to_dataset()


# Checks --------------------------------------------------------------------------------------------------------------


def assert_alive(ds, episodes):
    """Check that a Dataset holds these episodes, and who takes part in them."""
    assert ds["env"].values.tolist() == [one.env for one in episodes]
    assert ds["length"].values.tolist() == [len(one.rows) for one in episodes]
    assert ds["alive"].dims == ("episode", "time", "agent")
    assert ds["alive"].dtype == bool
    alive = ds["alive"].values
    for got, one in zip(alive, episodes, strict=True):
        np.testing.assert_array_equal(got[: len(one.rows)], one.alive)
        assert not got[len(one.rows) :].any()


def assert_holds(ds, world, episodes):
    """Check fields, too."""
    assert_alive(ds, episodes)
    assert ds["agent"].values.tolist() == list(world.agents)
    for name in ("obs", "action", "reward", "done"):
        assert ds[name].dims[2] == "agent"
        values, want = ds[name].values, getattr(world, name)
        assert values.dtype == want.dtype
        for got, one in zip(values, episodes, strict=True):
            np.testing.assert_array_equal(got[: len(one.rows)], want[one.rows, one.env], err_msg=name)


def cells(world, episodes, name, agent, t=None):
    """Return the values of a field that count for an agent, by its number; at step `t` of episodes, or at all."""
    out = []
    for one in episodes:
        for step, row in enumerate(one.rows):
            if one.alive[step, agent] and t in (None, step):
                out.append(getattr(world, name)[row, one.env, agent])
    return np.array(out)
