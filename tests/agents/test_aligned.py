"""Alignment of traces leaves out agents that are done."""

import numpy as np
import pytest
from agents.worlds import live, make_world, poisoned, record

import trajlab as tl

PARTS = 3


def end(one):
    """Return the label and the weight of each step (label, step): here one step each."""
    size = len(one.rows)
    return {t - size + 1: np.eye(size)[t] for t in range(size)}


def fraction(one):
    """Return how much of each part each step covers."""
    size = len(one.rows)
    fine = np.repeat(np.arange(size), PARTS).reshape(PARTS, size)
    return {(p + 0.5) / PARTS: np.bincount(fine[p], minlength=size) / size for p in range(PARTS)}


@pytest.mark.parametrize("dirty", [False, True])
@pytest.mark.parametrize("weights", [end, fraction])
def test_only_the_living_count(weights, dirty):
    world = make_world(20)
    ds = record(poisoned(world) if dirty else world, cuts=(11,))
    episodes = [one for one, ended in zip(live(world), ds["end_reason"].values != "cut", strict=True) if ended]
    align = weights.__name__
    trace = tl.state_trace(ds, "obs", align=align, **({"parts": PARTS} if align == "fraction" else {}))
    assert trace["n"].dims == (trace["mean"].dims[0], "agent")
    for k, agent in enumerate(world.agents):
        found = {}
        for one in episodes:
            rows = world.obs[one.rows, one.env, k].astype(float)
            for label, weight in weights(one).items():
                weight = weight * one.alive[:, k]
                if weight.sum():
                    lived = weight > 0
                    found.setdefault(label, []).append(weight[lived] @ rows[lived] / weight.sum())
        mine = trace.sel(agent=agent)
        for place, label in enumerate(mine[mine["n"].dims[0]].values.tolist()):
            step, rows = mine.isel({mine["n"].dims[0]: place}), np.array(found.get(label, []))
            assert step["n"].item() == len(rows)
            if len(rows):
                np.testing.assert_allclose(step["mean"], rows.mean(axis=0), rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(step["quantiles"].sel(quantile=0.5), np.median(rows, axis=0), atol=1e-6)
