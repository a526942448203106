"""Bad input is refused before anything is stored: the message names the field, what came, what was expected, the mend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from chunks import assert_holds, make_chunk, make_step

import trajlab as tl

ROWS = 5


def chunk(start=0, home="numpy"):
    return make_chunk(range(start, start + ROWS), 3, home)


def changed(**fields):
    """Return a function that replaces fields of a chunk; `obs__position` stands for the nested one."""

    def change(rows, start):
        for path, value in fields.items():
            *folders, name = path.split("__")
            branch = rows
            for folder in folders:
                branch = branch[folder]
            branch[name] = value(branch.get(name)) if callable(value) else value
        return rows

    return change


def without(*names):
    return lambda rows, start: {name: value for name, value in rows.items() if name not in names}


def ones(*shape):
    return np.ones(shape, np.float32)


# Refused as the first chunk and in mid-run -------------------------------------------------------------------

# What is wrong: (how the chunk is made bad, the error, its message)
ALWAYS = {
    "no leading dims": (changed(reward=np.array(3, np.float32)), ValueError, r"field 'reward' has shape \(\); expected leading dims \(T, N\) = \(5, 3\)\. Stack it over time, or leave it out: fields=\['\*', '-reward'\]"),
    "only one leading dim": (changed(reward=ones(5)), ValueError, r"field 'reward' has shape \(5,\); expected leading dims \(T, N\) = \(5, 3\).*'-reward'"),
    "fewer rows": (changed(reward=ones(4, 3)), ValueError, r"field 'reward' has shape \(4, 3\); expected leading dims \(T, N\) = \(5, 3\)"),
    "transposed": (changed(obs__position=lambda x: x.swapaxes(0, 1)), ValueError, r"field 'obs.position' has shape \(3, 5, 3\); expected leading dims"),
    "a flag with more dims": (changed(terminated=lambda x: x[..., None]), ValueError, r"the flag 'terminated' has shape \(5, 3, 1\); expected"),
    "a flag of text": (changed(terminated=np.full((5, 3), "no")), ValueError, "the flag 'terminated' has dtype <U2; expected bool or a number"),
    "no rows": (lambda rows, start: jax.tree.map(lambda x: x[:0], rows), ValueError, r"the chunk is empty: its leading dims \(T, N\) are \(0, 3\)"),
    "a number": (changed(reward=1.5), TypeError, r"field 'reward' is of type float \(1.5\); expected a JAX or NumPy array.*np.asarray"),
    "a text": (changed(action="left"), TypeError, r"field 'action' is of type str \(left\); expected a JAX or NumPy array"),
    "objects": (changed(action=np.full((5, 3), None)), (TypeError, ValueError), "field 'action'.* dtype object"),
    "no flags": (without("terminated", "truncated"), ValueError, "no flag marks the ends of episodes: looked for 'terminated', 'truncated', 'done'|missing from this chunk: 'terminated', 'truncated'"),
    "a single array": (lambda rows, start: rows["reward"], ValueError, "the chunk is a single array without a name; expected a dict, NamedTuple or dataclass"),
    "nothing": (lambda rows, start: {}, ValueError, "no flag marks the ends|missing from this chunk"),
}  # fmt: skip

# Only in mid-run: they differ from the first chunk.
LATER = {
    "a missing field": (without("reward"), ValueError, "missing from this chunk: 'reward'; every chunk must hold the fields of the first one"),
    "a misspelt field": (lambda rows, start: {("rewrad" if name == "reward" else name): x for name, x in rows.items()}, ValueError, "missing from this chunk: 'reward'"),
    "a new field": (changed(value=ones(5, 3)), ValueError, r"new in this chunk: 'value'; every chunk must hold the fields of the first one\. Leave them out with fields=\['\*', '-name'\]"),
    "a new nested field": (changed(obs__depth=ones(5, 3)), ValueError, "new in this chunk: 'obs.depth'"),
    "other cells": (changed(obs__position=lambda x: x[..., :2]), ValueError, r"field 'obs.position' has cells of shape \(2,\); the first one's had \(3,\)"),
    "another dtype": (changed(reward=lambda x: x.astype(np.float16)), ValueError, "field 'reward' has dtype float16; the first one's was float32"),
    "more environments": (lambda rows, start: make_chunk(range(start, start + ROWS), 4), ValueError, "this chunk has 4 environments, the first one had 3; their number is fixed"),
    "fewer environments": (lambda rows, start: make_chunk(range(start, start + ROWS), 2), ValueError, "this chunk has 2 environments, the first one had 3"),
    "an integer of another width": (changed(stamp=lambda x: x.astype(np.int32)), ValueError, "field 'stamp' has dtype int32; the first one's was int64"),
    "longer texts": (changed(label=lambda x: x.astype("<U20")), ValueError, "field 'label' has dtype <U20; the first one's was <U8"),
    "several things": (changed(reward=ones(4, 3), obs__position=lambda x: x[..., :2]), ValueError, r"(?s)the chunk was not recorded:\n  - field 'obs.position'.*\n  - field 'reward'"),
}  # fmt: skip


@pytest.mark.parametrize("what", ALWAYS)
def test_a_bad_first_chunk_stores_nothing(what):
    make_bad, error, match = ALWAYS[what]
    recorder = tl.Recorder()
    with pytest.raises(error, match=match):
        recorder.record(make_bad(chunk(), 0))
    assert recorder.num_recorded_steps == 0
    assert "nothing recorded yet" in repr(recorder)
    # It fixed nothing either: another number of environments, and other fields, are still welcome.
    recorder.record(make_chunk(range(7), 4, only=("serial", "reward")))
    assert_holds(recorder.to_dataset(), range(7), 4)


@pytest.mark.parametrize("what", ALWAYS | LATER)
def test_a_bad_chunk_in_mid_run_changes_nothing(what):
    make_bad, error, match = (ALWAYS | LATER)[what]
    recorder, clean = tl.Recorder(), tl.Recorder()
    for each in (recorder, clean):
        each.record(chunk())
        each.mark_reset([1])
    counters, text = recorder._counters, repr(recorder)
    for _ in range(2):
        with pytest.raises(error, match=match):
            recorder.record(make_bad(chunk(ROWS), ROWS))
    assert (recorder._counters, repr(recorder)) == (counters, text)
    for each in (recorder, clean):
        each.record(chunk(ROWS))
    xr.testing.assert_identical(recorder.to_dataset().load(), clean.to_dataset().load())
    assert_holds(recorder.to_dataset(), range(2 * ROWS))


MASKS = {
    "rows missing": (np.ones((4, 3), bool), ValueError, r"mask has shape \(4, 3\); expected \(T, N\) = \(5, 3\)"),
    "per environment": (np.ones(3, bool), ValueError, r"mask has shape \(3,\); expected \(T, N\) = \(5, 3\)"),
    "of JAX": (jnp.ones((5, 4), bool), ValueError, r"mask has shape \(5, 4\)"),
    "a list": ([[True] * 3] * 4, ValueError, r"mask has shape \(4, 3\)"),
    "text": (np.full((5, 3), "x"), ValueError, "mask has dtype <U1; expected bool"),
    "a number": (3, TypeError, r"mask is of type int \(3\); expected a bool array"),
}


@pytest.mark.parametrize("what", MASKS)
def test_a_bad_mask_is_refused(what):
    mask, error, match = MASKS[what]
    recorder = tl.Recorder()
    for start in (0, ROWS):
        with pytest.raises(error, match=match):
            recorder.record(chunk(start), mask=mask)
        recorder.record(chunk(start), mask=[[True] * 3] * ROWS)
    assert_holds(recorder.to_dataset(), range(2 * ROWS))


# JAX chunks --------------------------------------------------------------------------------------------------


def test_jax_arrays_of_another_dtype_shape_or_kind_are_refused():
    keys = jax.random.split(jax.random.key(0), (ROWS, 3))
    recorder = tl.Recorder()
    good = chunk(home="jax") | {"key": keys}
    recorder.record(good)
    rbg = jax.random.split(jax.random.key(0, impl="rbg"), (ROWS, 3))
    for bad, match in (
        (
            {"reward": good["reward"].astype(jnp.bfloat16)},
            "field 'reward' has dtype bfloat16; the first one's was float32",
        ),
        (
            {"reward": np.asarray(good["reward"], np.float64)},
            "field 'reward' has dtype float64; the first one's was float32",
        ),
        ({"key": jax.random.key_data(keys)}, "field 'key' has dtype uint32; the first one held PRNG keys"),
        ({"key": rbg}, r"field 'key' has cells of shape \(4,\); the first one's had \(2,\)"),
        ({"key": keys[..., None]}, r"field 'key' has cells of shape \(1, 2\); the first one's had \(2,\)"),
        ({"key": keys[:4]}, r"field 'key' has shape \(4, 3\); expected leading dims"),
        ({"action": keys}, "field 'action' has dtype key<fry>; the first one's was int32"),
    ):
        with pytest.raises(ValueError, match=match):
            recorder.record(good | bad)
    assert recorder.num_recorded_steps == ROWS
    recorder.record(chunk(ROWS, "jax") | {"key": keys})
    assert_holds(recorder.to_dataset().drop_vars("key"), range(2 * ROWS))


def test_64_bit_numpy_input_is_refused_where_a_device_field_would_lose_bits():
    recorder = tl.Recorder()
    recorder.record({"x": jnp.ones((2, 3), jnp.int32), "done": jnp.zeros((2, 3), bool)})
    with pytest.raises(ValueError, match="field 'x' has dtype int64; the first one's was int32"):
        recorder.record({"x": np.ones((2, 3), np.int64), "done": np.zeros((2, 3), bool)})


def test_arrays_donated_too_early_are_refused():
    recorder = tl.Recorder()
    for start in (0, ROWS):
        rows = chunk(start, "jax")
        rows["reward"].delete()
        with pytest.raises(
            ValueError, match="the array of 'reward' has been deleted or donated; record it before it is donated"
        ):
            recorder.record(rows)
        recorder.record(chunk(start, "jax"))
    assert_holds(recorder.to_dataset(), range(2 * ROWS))


def test_recording_inside_a_traced_function_is_refused():
    recorder = tl.Recorder()
    for start in (0, ROWS):
        match = r"record\(\) was called inside a function that JAX traces \(jit, scan, vmap\); return the chunk from it and record that"
        with pytest.raises(TypeError, match=match):
            jax.jit(lambda rows: recorder.record(rows))(chunk(start, "jax"))
        with pytest.raises(TypeError, match=match):
            jax.vmap(recorder.record)(jax.tree.map(lambda x: x[None], chunk(start, "jax")))
        recorder.record(chunk(start, "jax"))
    assert_holds(recorder.to_dataset(), range(2 * ROWS))


# Steps -------------------------------------------------------------------------------------------------------

STEPS = {
    "out of range": ([0, 3], 2, ValueError, r"envs holds \[3\]; there are 3 environments, 0 to 2"),
    "negative": ([-1, 0], 2, ValueError, r"envs holds \[-1\]; there are 3 environments"),
    "repeated": ([1, 1], 2, ValueError, r"envs repeats \[1\]; give each environment once"),
    "more indices than entries": ([0, 1, 2], 2, ValueError, r"'t\w+' has 2 entries for the 3 environments of envs="),
    "fewer indices than entries": ([0], 2, ValueError, r"'t\w+' has 2 entries for the 1 environments of envs="),
    "a mask of another number": (np.ones(4, bool), 3, ValueError, r"envs is a mask of shape \(4,\); expected \(3,\), one entry per environment"),
    "a mask with few entries": (np.array([True, True, False]), 2, ValueError, "this step has 2 environments, the first one had 3"),
    "a list as a mask with few entries": ([True, True, False], 2, ValueError, "this step has 2 environments, the first one had 3"),
    "fractions": ([0.5, 1.0], 2, TypeError, "expected environment numbers, a slice or a bool mask"),
    "a slice of another length": (slice(0, 2), 3, ValueError, r"'t\w+' has 3 entries for the 2 environments of envs="),
    "none given": (None, 2, ValueError, "this step has 2 environments, the first one had 3"),
}  # fmt: skip


@pytest.mark.parametrize("home", ["numpy", "jax"])
@pytest.mark.parametrize("what", STEPS)
def test_a_bad_step_is_refused(what, home):
    envs, entries, error, match = STEPS[what]
    recorder = tl.Recorder(num_envs=3)
    recorder.record_step(make_step(0, 3, home))
    before = recorder._counters
    with pytest.raises(error, match=match):
        recorder.record_step(make_step(1, entries, home), envs=envs)
    assert recorder._counters == before
    recorder.record_step(make_step(1, 3, home), envs=[True] * 3)
    assert_holds(recorder.to_dataset(), range(2))


@pytest.mark.parametrize("envs", [None, [0, 2]])
def test_steps_of_other_fields_are_called_steps(envs):
    recorder = tl.Recorder(num_envs=3)
    recorder.record_step(make_step(0, 3))
    step = make_step(1, 3 if envs is None else 2)
    for bad, match in (
        ({name: x for name, x in step.items() if name != "reward"}, "missing from this step: 'reward'; every"),
        ({**step, "value": step["reward"]}, "new in this step: 'value'; every"),
    ):
        with pytest.raises(ValueError, match=match):
            recorder.record_step(bad, envs=envs)
    assert recorder.num_recorded_steps == 1


def test_a_partial_step_that_comes_first_needs_the_number_of_environments():
    recorder = tl.Recorder()
    step = make_step(0, 2)
    for envs in ([0, 2], slice(0, 2)):
        with pytest.raises(
            ValueError, match=r"the first call records only some environments.*: Recorder\(num_envs=\.\.\.\)"
        ):
            recorder.record_step(step, envs=envs)
    recorder.record_step(make_step(0), envs=np.ones(3, bool))
    recorder.record_step(jax.tree.map(lambda x: x[:2], make_step(1)), envs=slice(0, 2))
    assert recorder.num_recorded_steps == 2


def test_steps_and_chunks_of_another_number_than_num_envs_are_refused():
    recorder = tl.Recorder(num_envs=4)
    with pytest.raises(ValueError, match="the chunk has 3 environments; expected num_envs=4"):
        recorder.record(chunk())
    with pytest.raises(ValueError, match="the step has 3 environments; expected num_envs=4"):
        recorder.record_step(make_step(0))
    assert recorder.num_recorded_steps == 0


# Marks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["mark_reset", "mark_gap"])
@pytest.mark.parametrize(
    ("envs", "error", "match"),
    [
        ([3], ValueError, r"envs holds \[3\]; there are 3 environments"),
        ([0, 0], ValueError, r"envs repeats \[0\]"),
        (np.ones(2, bool), ValueError, r"envs is a mask of shape \(2,\); expected \(3,\)"),
        ("all", TypeError, "envs='all'"),
    ],
    ids=str,
)
def test_bad_marks_are_refused(mark, envs, error, match):
    recorder = tl.Recorder()
    recorder.record(chunk())
    with pytest.raises(error, match=match):
        getattr(recorder, mark)(envs)
    recorder.record(chunk(ROWS))
    ds = recorder.to_dataset()
    assert_holds(ds, range(2 * ROWS))
    assert ds["start_seen"].all()
    assert not (ds["start_row"] == ROWS).any() or (ds["end_reason"] != "cut").any()


def test_a_bad_mark_before_the_first_chunk_is_told_of_at_that_chunk_and_then_forgotten():
    recorder = tl.Recorder()
    recorder.mark_gap([2])
    recorder.mark_reset([3])
    with pytest.raises(ValueError, match=r"mark_reset\(envs=\) holds \[3\]; there are 3 environments, 0 to 2"):
        recorder.record(chunk())
    assert recorder.num_recorded_steps == 0
    recorder.record(chunk())
    ds = recorder.to_dataset()
    assert_holds(ds, range(ROWS))
    assert ds["start_seen"].values[ds["start_row"].values == 0].tolist() == [True, True, False]


# Conventions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"base": "braks"}, ValueError, "convention='braks'; expected one of 'auto'"),
        ({"autoreset": "samestep"}, ValueError, "autoreset='samestep'; expected one of 'auto', 'same_step', 'next_step', 'disabled'. Did you mean 'same_step'"),
        ({"alignment": "results"}, ValueError, "alignment='results'; expected one of .*Did you mean 'result'"),
        ({"alignment": {"state.*": "result", "obs": "after"}}, ValueError, r"alignment\['obs'\]='after'; expected one of"),
        ({"flags": "previous"}, ValueError, "flags='previous'; expected one of .*Did you mean 'previous_row'"),
        ({"action": 3}, TypeError, r"Convention\(action=3\); expected a dotted path, a function of the chunk, None or 'auto'"),
    ],
    ids=str,
)  # fmt: skip
def test_conventions_that_make_no_sense_are_refused_at_once(arguments, error, match):
    with pytest.raises(error, match=match):
        tl.Convention(**arguments)


@pytest.mark.parametrize("bad", [3, None, {"done": "end"}])
def test_a_recorder_takes_a_convention_or_the_name_of_one(bad):
    with pytest.raises(TypeError, match="expected a Convention or the name of one"):
        tl.Recorder(convention=bad)
    with pytest.raises(ValueError, match="convention='auot'; expected one of 'auto'.*Did you mean 'auto'"):
        tl.Recorder(convention="auot")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"action": "acton"}, KeyError, r"no field for Convention\(action=\.\.\.\) 'acton'. Did you mean 'action'"),
        ({"done": "terminate", "terminated": None}, KeyError, r"no field for Convention\(done=\.\.\.\) 'terminate'. Did you mean 'terminated'"),
        ({"done": "obs"}, ValueError, "the flag 'done' has several arrays: obs.image, obs.position; name one of them"),
        ({"terminated": None, "truncated": None}, ValueError, r"no flag marks the ends of episodes.*convention=Convention\(done='path.to.flag'\)"),
        ({"axes": "NTS"}, ValueError, r"the flag 'terminated' has shape \(5, 3\); expected 3 dims, \(N, T, S\)"),
    ],
    ids=str,
)  # fmt: skip
def test_conventions_that_do_not_fit_the_chunk_are_refused_by_the_first_call(arguments, error, match):
    recorder = tl.Recorder(convention=tl.Convention(**arguments))
    with pytest.raises(error, match=match):
        recorder.record(chunk())
    assert recorder.num_recorded_steps == 0


@pytest.mark.parametrize(
    ("fields", "package"),
    [
        (("discount", "observation", "next_observation"), "brax"),
        (("step_type", "discount", "observation"), "jumanji"),
        (("step_type", "t", "action"), "navix"),
        (("dones", "actions", "obs"), "cleanrl"),
    ],
)
def test_chunks_of_a_known_package_without_a_flag_of_a_standard_name(fields, package):
    chunk = dict.fromkeys(fields, np.ones((3, 2)))
    with pytest.raises(ValueError, match=f"These look like the fields of {package}: convention='{package}'"):
        tl.from_rollout(chunk)
    assert tl.from_rollout(chunk | {"action": np.ones((3, 2))}, convention=package).sizes["episode"]
