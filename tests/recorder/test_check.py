"""The self-check: streams that make it speak, streams that must not, and what it costs."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from chunks import make_chunk
from hypothesis import given
from strategies import examples
from walk import doubled, late, replaced, strided, walk, without

import trajlab as tl
import trajlab.block.fingerprint
import trajlab.block.log
import trajlab.block.read
import trajlab.check.evidence
import trajlab.recorder.session
from trajlab.check.finding import FindingName


def recorded(chunk, *, pieces=1, to=np.asarray, starts_fresh=True, fields=None, **convention):
    """Return a recorder that has taken a chunk."""
    rec = tl.Recorder(fields, convention=tl.Convention(**convention), starts_fresh=starts_fresh)
    for piece in range(pieces):
        rec.record(jax.tree.map(lambda x: to(np.array_split(x, pieces)[piece]), chunk))
    return rec


def names(rec):
    return [finding.name for finding in rec.check()]


NEXT = {"autoreset": "next_step"}
SAME = {"autoreset": "same_step"}
RESULT = {"alignment": "result"}

# Each stream: the chunk, the arguments it is recorded with, and what mends it; none: the check must be silent.
STREAMS = {
    "no_reset_row": {
        "starts tell": (lambda: without(walk(), "next_obs"), NEXT, SAME),
        "own starts": (lambda: without(walk(start="own"), "next_obs"), NEXT, SAME),
        "next observation tells": (lambda: walk(start="random"), NEXT, SAME),
        "lengths tell": (lambda: without(walk(start="random", terminates=False, limit=9), "next_obs"), NEXT, SAME),
        "the start is shown twice": (lambda: twice(without(walk("next_step", start="random"), "reward")), NEXT, SAME),
        "result alignment": (lambda: strided(walk()), NEXT | RESULT, SAME),
        "it is one, in result alignment": (lambda: strided(walk("next_step")), NEXT | RESULT, None),
        "it is one, and next observations are scaled": (lambda: scaled(walk("next_step", start="random")), NEXT, None),
        "it is one": (lambda: walk("next_step"), NEXT, None),
        "it is one, and episodes end where they begin": (lambda: without(ring("next_step"), "next_obs"), NEXT, None),
        "it is one, and episodes begin where the last has ended": (lambda: ring("next_step", start="last"), NEXT, None),
        "it is one, anywhere": (lambda: without(walk("next_step", start="random"), "next_obs"), NEXT, None),
        "observations never change": (lambda: constant(walk()), NEXT, None),
        "too few ends": (lambda: without(walk(rows=9), "next_obs"), NEXT, None),
    },
    "reset_row": {
        "starts tell": (lambda: without(walk("next_step"), "reward", "next_obs"), SAME, NEXT),
        "own starts": (lambda: without(walk("next_step", start="own"), "reward", "next_obs"), SAME, NEXT),
        "rewards tell": (lambda: without(walk("next_step", start="random"), "next_obs"), SAME, NEXT),
        "rewards tell where there is no observation": (
            lambda: without(walk("next_step"), "obs", "next_obs"),
            SAME,
            NEXT,
        ),
        "lengths tell": (
            lambda: without(walk("next_step", start="random", terminates=False, limit=9), "reward", "next_obs"),
            SAME,
            NEXT,
        ),
        "result alignment": (lambda: without(strided(walk("next_step")), "reward"), SAME | RESULT, NEXT),
        "there is none": (walk, SAME, None),
        "there is none, in result alignment": (lambda: strided(walk()), SAME | RESULT, None),
        "there is none, anywhere": (lambda: walk(start="random"), SAME, None),
        "the first reward is always 0": (lambda: unpaid_first(walk(start="random")), SAME, None),
        "all rewards but the first are 0": (lambda: paid_once(walk(start="random")), SAME, None),
        "all rewards are 0": (lambda: walk(start="random") | {"reward": np.zeros((120, 4))}, SAME, None),
        "begun in mid-episode": (lambda: walk(start="random", warm_up=3), SAME, None),
        "a world of two states": (lambda: to_and_fro(walk(envs=8, seed=1), seed=1), SAME, None),
    },
    "early_flags": {
        "starts tell": (
            lambda: without(walk("next_step"), "next_obs"),
            NEXT | {"flags": "previous_row"},
            {"flags": "row"},
        ),
        "lengths tell": (
            lambda: without(walk("next_step", start="random", terminates=False, limit=9), "next_obs"),
            NEXT | {"flags": "previous_row"},
            {"flags": "row"},
        ),
        "next observations tell": (
            lambda: walk(start="random"),
            SAME | {"flags": "previous_row"},
            {"flags": "row"},
        ),
        "they stand where they belong": (lambda: late(walk("next_step")), NEXT | {"flags": "previous_row"}, None),
        "next observations are those of auto-reset": (
            lambda: late(replaced(walk(start="random"))),
            SAME | {"flags": "previous_row", "next_observation": None},
            None,
        ),
        "anywhere": (lambda: late(walk("next_step", start="random")), NEXT | {"flags": "previous_row"}, None),
        "same step": (lambda: late(walk()), SAME | {"flags": "previous_row"}, None),
    },
    "double_flags": {
        "same step": (lambda: doubled(walk("next_step", ends=0.1)), SAME, NEXT),
        "nothing else recorded": (
            lambda: without(doubled(walk("next_step", ends=0.1)), "obs", "next_obs", "reward"),
            SAME,
            NEXT,
        ),
        "on reset rows": (lambda: doubled(walk("next_step", ends=0.1)), NEXT, None),
        "recording stops one row later": (
            lambda: walk(rows=10, envs=16, terminates=False, limit=9, start="random"),
            SAME,
            None,
        ),
        "episodes of one step": (lambda: walk(ends=1.0), SAME, None),
        "many episodes of one step": (lambda: walk(ends=0.7), SAME, None),
        "nearly all episodes of one step": (lambda: walk(ends=0.95, rows=400), SAME, None),
    },
    "late_flags": {
        "starts tell": (lambda: without(late(walk()), "next_obs"), SAME, {"flags": "previous_row"}),
        "two environments": (lambda: without(late(walk(envs=2)), "next_obs"), SAME, {"flags": "previous_row"}),
        "next observation tells": (lambda: late(walk(start="random")), SAME, {"flags": "previous_row"}),
        "lengths tell": (
            lambda: without(late(walk(start="random", terminates=False, limit=9)), "next_obs"),
            SAME,
            {"flags": "previous_row"},
        ),
        "they are declared": (lambda: late(walk()), {"flags": "previous_row"}, None),
        "two rows late": (lambda: without(late(late(walk())), "next_obs"), {"flags": "previous_row"}, None),
        "they are not": (walk, SAME, None),
        "they are not, and next observations are scaled": (lambda: scaled(walk(start="random")), SAME, None),
        "ends at home": (lambda: home_again(walk()), SAME, None),
        "ends behind a door where one environment began": (lambda: corridor(envs=1, rows=900), SAME, None),
        "ends behind a door where two began": (lambda: corridor(envs=2), SAME, None),
        "the first episode of one environment is a step longer": (lambda: of_lengths(9, *[8] * 12), SAME, None),
        "the first episodes are a step longer, as nothing truncates": (
            lambda: of_lengths(9, *[8] * 12, envs=8, flag="terminated"),
            SAME,
            None,
        ),
        "observations never change": (lambda: constant(late(walk())), SAME, None),
    },
    "replaced_final": {
        "next observation": (lambda: replaced(walk()), SAME, {"next_observation": None}),
        "anywhere": (lambda: replaced(walk(start="random")), SAME, {"next_observation": None}),
        "final observation": (
            lambda: renamed(replaced(walk(start="random")), next_obs="final_obs"),
            SAME,
            {"final_observation": None},
        ),
        "it is right": (walk, SAME, None),
        "it is right, as a final one": (lambda: renamed(walk(), next_obs="final_obs"), SAME, None),
        "next step": (lambda: walk("next_step"), NEXT, None),
        "next step, and episodes end where they begin": (lambda: ring("next_step"), NEXT, None),
        "observations never change": (lambda: constant(walk()), SAME, None),
        "few ends": (lambda: replaced(walk(rows=5)), SAME, None),
    },
    "one_length": {
        "terminated": (
            lambda: renamed(without(walk(terminates=False, limit=9), "terminated"), truncated="terminated"),
            {},
            {"terminated": None, "truncated": "terminated"},
        ),
        "truncated": (lambda: walk(terminates=False, limit=9), {}, None),
        "done": (lambda: renamed(without(walk(terminates=False, limit=9), "terminated"), truncated="done"), {}, None),
        "a flag says that nothing is truncated": (lambda: as_terminated(9), {}, None),
        "the user has named the flag": (
            lambda: without(as_terminated(9), "truncated"),
            {"terminated": "terminated"},
            None,
        ),
        "a named convention has decided": (lambda: without(as_terminated(9), "truncated"), {"base": "pgx"}, None),
        "some sooner": (lambda: merged(walk(ends=0.05, limit=9)), {}, None),
        "of one step": (lambda: walk(ends=1.0), {}, None),
        "one goes on": (lambda: endless(merged(walk(terminates=False, limit=9))), {}, None),
        "few episodes": (
            lambda: renamed(without(walk(terminates=False, limit=60), "terminated"), truncated="terminated"),
            {},
            None,
        ),
    },
    "first_step_lost": {
        "it has a reward": (lambda: scanned(walk()), RESULT, {"starts_fresh": False}),
        "late reset": (lambda: scanned(walk("next_step")), RESULT | NEXT, {"starts_fresh": False}),
        "declared": (lambda: scanned(walk()), RESULT | {"starts_fresh": False}, None),
        "it is that of a reset": (lambda: with_reset(scanned(walk())), RESULT, None),
        "a reset has no reward": (lambda: with_reset(scanned(walk()), reward=np.nan), RESULT, None),
        "no reward is recorded": (lambda: without(scanned(walk(start="random")), "reward"), RESULT, None),
        "nothing is left out": (walk, SAME, None),
    },
    "mid_episode": {
        "starts tell": (lambda: walk(warm_up=2, ends=0.1), {}, {"starts_fresh": False}),
        "own starts": (lambda: walk(start="own", warm_up=2, ends=0.1), {}, {"starts_fresh": False}),
        "lengths tell": (
            lambda: walk(start="random", terminates=False, limit=9, warm_up=4),
            {},
            {"starts_fresh": False},
        ),
        "declared": (lambda: walk(warm_up=2, ends=0.1), {"starts_fresh": False}, None),
        "declared, one step late": (
            lambda: walk(start="random", terminates=False, limit=9, warm_up=1),
            {"starts_fresh": False},
            None,
        ),
        "begun afresh": (walk, {}, None),
        "the first episode of one environment ends sooner": (lambda: of_lengths(5, *[8] * 12), {}, None),
        "a limit that has grown": (lambda: of_lengths(7, *[8] * 12, flag="truncated"), {}, None),
        "first episodes end sooner, as nothing truncates": (
            lambda: of_lengths(5, *[8] * 12, envs=8, flag="terminated"),
            {},
            None,
        ),
        "one of many starts is another": (lambda: at_times_elsewhere(walk(envs=1, rows=300)), {}, None),
        "begun afresh, anywhere": (lambda: walk(start="random", ends=0.1, limit=9), {}, None),
        "ends by a formula": (lambda: make_chunk(range(60)), {}, None),
        "nothing to tell it by": (lambda: walk(start="random", warm_up=4), {}, None),
    },
    "endless": {
        "one of four": (lambda: endless(walk(rows=1_000)), {}, None, "speaks"),
        "all": (lambda: without(walk(rows=10_000, envs=1, terminates=False), "next_obs"), {}, None, "speaks"),
        "all, not for long": (lambda: walk(rows=2_000, envs=1, terminates=False), {}, None),
        "one, not for long": (lambda: endless(walk(rows=60)), {}, None),
        "one, not for many times as long": (lambda: endless(walk(rows=200)), {}, None),
        "long episodes": (lambda: walk(rows=400, ends=0.005), {}, None),
    },
    "strange_actions": {
        "reset rows": (lambda: only(walk("next_step", rows=400, envs=16, start="random"), "action"), SAME, NEXT),
        "another action space": (lambda: shifted(walk(rows=400, envs=64)), {}, None, "speaks"),
        "reset rows declared": (lambda: only(walk("next_step", rows=400, envs=16), "action"), NEXT, None),
        "negative from the first": (lambda: centred(walk(rows=400, envs=16)), {}, None),
        "a rare action among negative ones": (lambda: rare(centred(walk(rows=400, envs=16)), -3, 12), {}, None),
        "a rare action": (lambda: rare(walk(rows=400, envs=16)), {}, None),
        "continuous actions": (lambda: continuous(walk(rows=400, envs=16)), {}, None),
        "few transitions": (lambda: only(walk("next_step", rows=20, envs=2), "action"), SAME, None),
    },
}


def twice(chunk):
    """A reset row shows the next episode's first observation."""
    following = np.concatenate([chunk["obs"][1:], chunk["obs"][-1:]])
    is_reset_row = (chunk["action"] < 0)[..., None]
    return without(chunk | {"obs": np.where(is_reset_row, following, chunk["obs"])}, "next_obs", "action")


def scanned(chunk):
    """Return a chunk in result alignment as a scan over steps stacks it, without what the reset showed."""
    return {name: values[1:] for name, values in strided(chunk).items()}


def of_lengths(*lengths, envs=1, flag="terminated"):
    """Episodes of given lengths, as many in each environment, whose observation is the step."""
    ends = np.repeat(np.concatenate([np.arange(1, n + 1) == n for n in lengths])[:, None], envs, axis=1)
    steps = np.repeat(np.concatenate([np.arange(n) for n in lengths])[:, None], envs, axis=1)
    flags = {name: ends & (name == flag) for name in ("terminated", "truncated")}
    return {"obs": steps, "reward": np.ones(ends.shape), **flags}


def as_terminated(limit):
    """Every episode terminates at one length, and none is truncated."""
    chunk = walk(terminates=False, limit=limit)
    return chunk | {"terminated": chunk["truncated"], "truncated": np.zeros_like(chunk["truncated"])}


def ring(reset, start="fixed"):
    """An episode ends with the observation that the next one starts with: with that of all, or one of its own."""
    chunk = walk(reset, start="random" if start == "last" else start)
    ended = chunk["terminated"] | chunk["truncated"]
    home = np.concatenate([chunk["obs"][2:], chunk["obs"][-2:]])  # behind the reset row
    chunk["next_obs"] = np.where(ended[..., None], home, chunk["next_obs"])
    chunk["obs"][1:] = np.where(ended[:-1, :, None], chunk["next_obs"][:-1], chunk["obs"][1:])
    return chunk


def corridor(envs, size=5, rows=400):
    """Walkers in a corridor who start anywhere and end behind its door: the last place they are seen at is the same.

    The first of each environment starts there.
    """
    rng, now = np.random.default_rng(0), np.full(envs, size - 1)
    places, ends = [], []
    for _ in range(rows):
        forward = rng.random(envs) < 0.5
        places.append(now)
        ends.append(forward & (now == size - 1) & (len(places) > 1))
        moved = np.clip(now + np.where(forward, 1, -1), 0, size - 1)
        now = np.where(ends[-1], rng.integers(0, size, envs), moved)
    return {"obs": np.array(places), "terminated": np.array(ends)}


def to_and_fro(chunk, seed=0):
    """Every step leads from one of two states to the other, and episodes start in either."""
    ended = chunk["terminated"] | chunk["truncated"]
    starts = np.random.default_rng(seed).integers(0, 2, ended.shape)
    start = np.take_along_axis(starts, np.cumsum(ended, axis=0) - ended, axis=0)
    return only(chunk, "reward") | {"obs": (start + chunk["obs"][..., 1].astype(int)) % 2}


def at_times_elsewhere(chunk):
    """The first episode and the eleventh start somewhere else."""
    ended = np.flatnonzero(chunk["terminated"][:, 0])
    obs = chunk["obs"].copy()
    obs[[0, ended[9] + 1]] += 7
    return without(chunk, "next_obs") | {"obs": obs}


def with_reset(chunk, reward=0.0):
    """The first row is what the reset showed, which no action led to."""
    first = {name: np.zeros_like(x[:1]) for name, x in chunk.items()} | {"reward": np.full((1, 4), reward, np.float32)}
    first["obs"][..., 0] = 0.5
    return {name: np.concatenate([first[name], x]) for name, x in chunk.items()}


def constant(chunk):
    return chunk | {"obs": np.ones_like(chunk["obs"]), "next_obs": np.ones_like(chunk["obs"])}


def unpaid_first(chunk):
    ended = chunk["terminated"] | chunk["truncated"]
    first = np.concatenate([np.ones_like(ended[:1]), ended[:-1]])
    return chunk | {"reward": np.where(first, 0, chunk["reward"])}


def paid_once(chunk):
    return chunk | {"reward": np.where(np.arange(len(chunk["reward"]))[:, None] == 0, chunk["reward"], 0)}


def scaled(chunk):
    return chunk | {"next_obs": chunk["next_obs"] / 3}


def home_again(chunk):
    """Every episode's last observation is the one it started with."""
    return without(
        chunk | {"obs": np.where(chunk["terminated"][..., None], chunk["obs"][0, 0], chunk["obs"])}, "next_obs"
    )


def renamed(chunk, **changes):
    return {changes.get(name, name): value for name, value in chunk.items()}


def merged(chunk):
    return without(chunk, "truncated") | {"terminated": chunk["terminated"] | chunk["truncated"]}


def only(chunk, *fields):
    return {name: chunk[name] for name in (*fields, "terminated", "truncated")}


def endless(chunk):
    terminated = chunk["terminated"].copy()
    terminated[:, 2] = False
    return without(chunk, "obs", "next_obs") | {"terminated": terminated}


def shifted(chunk):
    action = chunk["action"].copy()
    action[200:] += 2
    return chunk | {"action": action}


def centred(chunk):
    return chunk | {"action": chunk["action"] - 2}


def rare(chunk, value=9, times=3):
    action = chunk["action"].copy()
    action[300 : 300 + times, 0] = value
    return chunk | {"action": action}


def continuous(chunk):
    return chunk | {"action": np.cumsum(chunk["reward"], axis=0)}


SPEAKING = [(kind, case) for kind, cases in STREAMS.items() for case, (_, _, *rest) in cases.items() if any(rest)]
SILENT = [(kind, case) for kind, cases in STREAMS.items() for case, (_, _, *rest) in cases.items() if not any(rest)]


@pytest.mark.parametrize(("kind", "case"), SPEAKING)
def test_this_stream_is_spoken_of_and_mended(kind, case):
    make, arguments, mend, *_ = STREAMS[kind][case]
    findings = recorded(make(), **arguments).check()
    assert [finding.name for finding in findings] == [kind]
    (finding,) = findings
    assert 0 < finding.count <= finding.of
    if mend is not None:
        assert all(f"{name}=" in finding.mend for name in mend)
        assert names(recorded(make(), **(arguments | mend))) == []


@pytest.mark.parametrize(("kind", "case"), SILENT)
def test_of_this_stream_nothing_is_said(kind, case):
    make, arguments, *_ = STREAMS[kind][case]
    rec = recorded(make(), **arguments)
    assert names(rec) == []
    rec.to_dataset()


def test_every_finding_has_streams_and_a_line_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "recording.md").read_text(encoding="utf-8")
    assert set(STREAMS) == set(get_args(FindingName))
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert [name for name in STREAMS if not any(f"`{name}`" in line for line in lines)] == []


@pytest.mark.parametrize("kind", STREAMS)
def test_each_finding_has_a_stream_and_three_of_which_nothing_is_said(kind):
    assert sum(kind == other for other, _ in SPEAKING) >= 1
    assert sum(kind == other for other, _ in SILENT) >= 3


@given(
    reset=st.sampled_from(["same_step", "next_step", "disabled"]),
    start=st.sampled_from(["fixed", "own", "random"]),
    ends=st.sampled_from([0.05, 0.2, 0.6]),
    limit=st.sampled_from([4, 15, 10**9]),
    rows=st.integers(1, 120),
    envs=st.integers(1, 6),
    form=st.sampled_from(["plain", "late", "strided", "short", "final"]),
    to=st.sampled_from([np.asarray, jnp.asarray]),
    seed=st.integers(0, 10**6),
)
@examples(60)
def test_of_a_right_stream_nothing_is_said(reset, start, ends, limit, rows, envs, form, to, seed):
    chunk = walk(
        "same_step" if reset == "disabled" else reset,
        rows=rows,
        envs=envs,
        ends=ends,
        limit=limit,
        start=start,
        seed=seed,
    )
    options = {"autoreset": reset}
    if form == "late":
        chunk, options = late(chunk), options | {"flags": "previous_row"}
    elif form == "strided":
        chunk, options = strided(chunk), options | {"alignment": "result"}
    elif form == "short":
        chunk = without(chunk, "next_obs")
    elif form == "final":
        chunk = renamed(chunk, next_obs="final_obs")
    rec = recorded(chunk, pieces=min(rows, 3), to=to, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no episode")
        rec.to_dataset()
    assert rec.check() == []


# What it says ------------------------------------------------------------------------------------------------


def test_the_text_of_a_finding():
    (finding,) = recorded(without(walk(), "next_obs"), autoreset="next_step").check()
    assert finding.seen == (
        'autoreset="next_step" says that the row after an end shows the final observation, but it is the one that '
        "episodes start with"
    )
    assert finding.unit == "ends"
    assert str(finding) == f"{finding.seen} (in {finding.count} of {finding.of} ends); {finding.mend}"
    assert repr(finding) == f"<no_reset_row: {finding}>"


def test_how_many_environments_never_end():
    (finding,) = recorded(endless(walk(rows=1_000))).check()
    assert (finding.count, finding.of, finding.unit) == (1, 4, "environments")
    assert "no episode has ended in 1,000 steps" in finding.seen


def test_how_many_transitions_have_strange_actions():
    chunk = only(walk("next_step", rows=400, envs=16), "action")
    (finding,) = recorded(chunk).check()
    assert "from -1 to -1 are outside of those in the first episodes, 0 to 3" in finding.seen
    assert f"at {(chunk['action'] < 0).sum():,} of" in finding.seen


def test_both_of_two_things_are_said():
    chunk = replaced(walk(rows=1_000, start="random"))
    chunk["terminated"][:, 2] = False
    with pytest.warns(UserWarning, match=r"(?s)says:\n  - the final observation.*\n  - no episode has ended in 1,000"):
        recorded(chunk).to_dataset()


def test_a_hint_is_shown_and_nobody_is_warned_of_it():
    rec = recorded(without(as_terminated(9), "truncated"))
    rec.to_dataset()
    assert "after exactly 9 steps" in repr(rec)
    (finding,) = rec.check()
    assert finding.mend.endswith("Convention(terminated=None, truncated='terminated') if it is this one")


@pytest.mark.parametrize(("start", "is_unsure"), [("fixed", True), ("own", True), ("random", False)])
def test_a_final_observation_may_be_the_next_first_by_nature_where_all_start_alike(start, is_unsure):
    (finding,) = recorded(replaced(walk(start=start))).check()
    assert ("unless episodes end where they begin" in finding.seen) == is_unsure


def test_actions_are_looked_at_only_when_asked_and_then_stay():
    rec = recorded(only(walk("next_step", rows=400, envs=16), "action"))
    rec.to_dataset()
    assert "strange" not in repr(rec)
    assert names(rec) == ["strange_actions"]
    rec.to_dataset()
    assert "actions in 'action' from -1 to -1" in repr(rec)


def test_nothing_recorded_or_switched_off():
    assert tl.Recorder().check() == []
    off = tl.Recorder(enabled=False)
    off.record(walk())
    assert off.check() == []


# When it says it ---------------------------------------------------------------------------------------------


def wrong():
    return recorded(without(walk(), "next_obs"), autoreset="next_step")


def test_a_loop_is_warned_once():
    rec = wrong()
    with pytest.warns(UserWarning, match="next_step") as seen:
        rec.to_dataset()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    for _ in range(3):
        rec.record(without(walk(seed=1), "next_obs"))
        rec.to_dataset()
    rec.reset()
    rec.record(without(walk(), "next_obs"))
    rec.to_dataset(incomplete="drop")
    assert names(rec) == ["no_reset_row"]


def test_a_warning_made_an_error_comes_once_and_harms_nothing():
    rec = wrong()
    with pytest.raises(UserWarning, match="next_step"):
        rec.to_dataset()
    assert not rec._lock._is_owned()
    assert rec.to_dataset().sizes["episode"] > 10


def test_the_summary_shows_what_was_found_last():
    rec = wrong()
    assert "\n  check " not in repr(rec)
    (finding,) = rec.check()
    assert f"\n  check         {finding}" in repr(rec)
    assert "next_step&quot; says that the row" in rec._repr_html_()
    rec.reset()
    assert "\n  check " not in repr(rec)


def test_a_rollout_is_looked_at():
    with pytest.warns(UserWarning, match="next_step"):
        tl.from_rollout(without(walk(), "next_obs"), convention=tl.Convention(autoreset="next_step"))


@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_buffer_is_looked_at(keep):
    chunk = jax.tree.map(jnp.asarray, without(doubled(walk("next_step", ends=0.1)), "next_obs"))
    buffer = tl.append(tl.init_buffer(chunk, 120, keep=keep), chunk)
    with pytest.warns(UserWarning, match="two rows in a row"):
        tl.to_dataset(buffer)
    right = tl.init_buffer(chunk, 120, keep=keep, convention=tl.Convention(autoreset="next_step"))
    tl.to_dataset(tl.append(right, chunk))


def test_a_ring_that_has_lost_the_start_does_not_take_its_first_rows_for_one():
    chunk = jax.tree.map(jnp.asarray, walk(terminates=False, limit=9, start="own"))
    buffer = tl.init_buffer(chunk, 240, keep="last")
    for _ in range(4):
        buffer = tl.append(buffer, chunk)
    tl.to_dataset(buffer)


@pytest.mark.parametrize("rows", [5, 7])
def test_where_a_reset_by_hand_follows_an_end_there_is_no_reset_row(rows):
    rec = tl.Recorder(convention=tl.Convention(autoreset="next_step"))
    for seed in range(15):
        rec.record(walk("next_step", rows=rows, terminates=False, limit=5, seed=seed))
        rec.mark_reset()
    assert rec.check() == []


def test_only_the_episodes_asked_for_are_looked_at():
    rec = tl.Recorder(convention=tl.Convention(autoreset="next_step"), max_episodes=5)
    rec.record(without(walk(), "next_obs"))
    assert rec.check() == []


# What it compares --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [np.asarray, jnp.asarray])
def test_observations_of_several_leaves_blocks_and_homes(to, monkeypatch):
    monkeypatch.setattr(trajlab.block.log, "MIN_BYTES", 1)
    chunk = without(walk(rows=240), "next_obs")
    obs = {
        "place": to(chunk["obs"][..., :1]),
        "time": chunk["obs"][..., 1].astype(np.int64),
        "always": np.ones((240, 4)),
    }
    rec = recorded(chunk | {"obs": obs}, pieces=40, to=lambda x: x, autoreset="next_step")
    assert names(rec) == ["no_reset_row"]
    assert len(rec._session.log.blocks) > 3


def test_text_and_nan_are_compared():
    chunk = without(walk(), "next_obs")
    text = np.where(chunk["obs"][..., 1] == 0, "start", np.char.add("p", chunk["obs"][..., 0].astype(str)))
    assert names(recorded(chunk | {"obs": text}, autoreset="next_step")) == ["no_reset_row"]
    lost = np.where(chunk["obs"][..., 1:] == 0, np.nan, chunk["obs"])
    assert names(recorded(chunk | {"obs": lost}, autoreset="next_step")) == ["no_reset_row"]


def test_what_cannot_be_compared_is_left_alone():
    chunk = without(walk(), "next_obs")
    days = chunk["obs"].astype(np.float64).view("datetime64[s]")
    assert names(recorded(chunk | {"obs": days}, autoreset="next_step")) == []
    parted = chunk | {"obs": {"place": chunk["obs"], "time": chunk["obs"]}}
    assert names(recorded(parted, autoreset="next_step", fields=["*", "-obs.time"])) == []


def test_masked_cells_are_passed_over():
    chunk = without(walk(rows=60), "next_obs")
    rec = tl.Recorder(convention=tl.Convention(autoreset="next_step"))
    spaced = {name: np.repeat(values, 2, axis=0) for name, values in chunk.items()}
    rec.record(spaced, mask=np.tile([[True], [False]], (60, 4)))
    assert names(rec) == ["no_reset_row"]


@pytest.fixture
def gate(monkeypatch):
    """Count what passes to the host, with rows that lie on a device."""
    gate = SimpleNamespace(prints=0, reads=0)

    def take(array, name):
        setattr(gate, name, getattr(gate, name) + array.nbytes)
        return np.asarray(array)

    for module in (trajlab.block.read, trajlab.block.fingerprint):
        monkeypatch.setattr(module, "is_host_readable", lambda array: isinstance(array, np.ndarray))
    monkeypatch.setattr(trajlab.block.read, "to_host", lambda array: take(array, "reads"))
    monkeypatch.setattr(trajlab.block.fingerprint, "to_host", lambda array: take(array, "prints"))
    return gate


def test_on_a_device_only_fingerprints_come_to_the_host(gate):
    chunk = without(walk(rows=2_000), "next_obs") | {"obs": np.repeat(walk(rows=2_000)["obs"], 50, axis=-1)}
    rec = recorded(chunk, to=jnp.asarray, autoreset="next_step")
    with pytest.warns(UserWarning, match="next_step"):
        rec.to_dataset()
    assert gate.reads == 0
    assert 0 < gate.prints <= 8 * 7 * 64 * 2  # two numbers a cell, padded to a power of two
    gate.prints = 0
    rec.check()
    assert gate.reads <= 2_000 * 4 * 4 * 2  # actions


def test_a_longer_recording_costs_no_more(gate):
    rec = recorded(without(walk(rows=500), "next_obs"), to=jnp.asarray)
    rec.to_dataset()
    once, gate.prints = gate.prints, 0
    for seed in range(5):
        rec.record(jax.tree.map(jnp.asarray, without(walk(rows=500, seed=seed), "next_obs")))
    compiled = trajlab.block.fingerprint._on_device._cache_size()
    rec.to_dataset()
    assert gate.prints <= once
    assert trajlab.block.fingerprint._on_device._cache_size() == compiled


def test_big_observations_are_compared_at_fewer_ends():
    chunk = without(walk(rows=100), "next_obs")
    image = np.repeat(chunk["obs"], 20_000, axis=-1)
    (finding,) = recorded(chunk | {"obs": image}, autoreset="next_step").check()
    assert finding.of <= trajlab.check.evidence.MIN_ENDS
    assert re.search(r"in \d+ of \d+ ends", str(finding))


@pytest.mark.parametrize("to", [np.asarray, jnp.asarray])
def test_no_data_are_changed(to, monkeypatch):
    chunk = walk()
    rec = recorded(chunk, to=to, autoreset="next_step")
    assert rec.check() != []
    checked = rec.to_dataset()
    monkeypatch.setattr(trajlab.recorder.session, "find", lambda *args, **options: ())
    xr.testing.assert_identical(checked, recorded(chunk, to=to, autoreset="next_step").to_dataset())
