"""Slots with several sources, amended conventions, what the repr says of them, and what a wrong chunk gets."""

import re

import numpy as np
import pytest
from conventions.render import BraxTransition

import trajlab as tl
from trajlab.capture.named import NAMED

ROWS = np.arange(4, dtype=np.float32)[:, None]
END = np.array([0, 1, 0, 0], bool)[:, None]
NEVER = np.zeros((4, 1), bool)


def record(chunk, convention, **extra):
    recorder = tl.Recorder(convention=convention)
    recorder.record(chunk, **extra)
    return recorder


def brax_chunk(**changes):
    extras = {"policy_extras": {}, "state_extras": {"truncation": END.astype(np.float32)}}
    chunk = BraxTransition(ROWS, ROWS, ROWS, 1 - END.astype(np.float32), ROWS, extras)
    return chunk._replace(**changes)


def test_the_first_path_that_is_found_counts():
    convention = tl.Convention(observation=("camera", "position", "joints"), done="done")
    recorder = record({"position": ROWS, "joints": ROWS, "done": END}, convention)
    assert "observation=position (given)" in repr(recorder)


def test_none_as_the_last_source_makes_a_slot_optional():
    convention = tl.Convention(action=("motor", None), done="done")
    assert "action=none (given)" in repr(record({"action": ROWS, "done": END}, convention))


def test_a_function_is_called_where_no_path_before_it_is_found():
    convention = tl.Convention(done=("done", lambda chunk: chunk["life"] == 0))
    ds = record({"obs": ROWS, "life": 1 - END.astype(int)}, convention).to_dataset()
    assert ds["length"].values.tolist() == [2, 2]
    ds = record({"obs": ROWS, "done": NEVER, "life": 1 - END.astype(int)}, convention).to_dataset()
    assert ds["length"].values.tolist() == [4]


def test_a_function_that_returns_none_is_passed_over():
    convention = tl.Convention(done=(lambda chunk: None, "over"))
    assert "done=over (given)" in repr(record({"obs": ROWS, "over": END}, convention))
    convention = tl.Convention(truncated=lambda chunk: None)
    assert "truncated=none (given)" in repr(record({"obs": ROWS, "done": END}, convention))


def test_auto_among_the_sources_is_the_standard_names():
    convention = tl.Convention(reward=("points", "auto"))
    assert "reward=reward (given)" in repr(record({"obs": ROWS, "reward": ROWS, "done": END}, convention))


@pytest.mark.parametrize("sources", [(), ("action", 3)], ids=str)
def test_sources_that_are_none_are_refused(sources):
    with pytest.raises(TypeError, match=re.escape(f"action={sources!r}") + ".*or a tuple of these"):
        tl.Convention(action=sources)


def test_given_paths_that_all_name_nothing_are_refused():
    with pytest.raises(KeyError, match=r"no field for Convention\(action=...\) 'acton'. Did you mean 'action'"):
        record({"action": ROWS, "done": END}, tl.Convention(action=("acton", "motor")))


def test_the_repr_says_which_convention_a_slot_comes_from():
    text = repr(record(brax_chunk(), "brax"))
    for part in (
        "observation=observation (found)",
        "truncated=extras.state_extras.truncation (brax)",
        "done=function (brax)",
        "next_observation=none (brax)",
        "autoreset=same_step (brax)",
        "flags=row (assumed)",
    ):
        assert part in text


def test_amending_one_slot_keeps_the_others():
    chunk = brax_chunk(extras={"t": END.astype(np.float32)})
    recorder = record(chunk, tl.Convention("brax", truncated="extras.t"))
    assert "truncated=extras.t (given)" in repr(recorder)
    assert "done=function (brax)" in repr(recorder)
    assert recorder.to_dataset()["end_reason"].values.tolist() == ["truncated", "cut"]


def test_an_amended_option_wins():
    chunk = brax_chunk()
    ds = record(chunk, tl.Convention("brax", autoreset="next_step", next_observation="next_observation")).to_dataset()
    assert ds["length"].values.tolist() == [2, 1]
    assert ds["final_known"].all()


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"convention='purejaxlr'; .*'craftax'.*Did you mean 'purejaxrl'"):
        tl.Recorder(convention="purejaxlr")


NEEDED = {
    "brax": "discount",
    "mujoco_playground": "discount",
    "gymnax": "terminated",
    "gymnax_0": "done",
    "purejaxrl": "done",
    "purejaxrl_rnn": "done",
    "stoix": "done",
    "stoix_rnn": "last_done",
    "jumanji": "step_type",
    "navix": "step_type",
    "craftax": "done",
    "rejax": "done",
    "cleanrl": "dones",
}


@pytest.mark.parametrize("name", NEEDED)
def test_a_chunk_of_something_else_is_refused_by_what_it_holds(name):
    wanted = (
        rf"no field '{NEEDED[name]}'.*There are: 'obs', 'position'\. The convention '{name}' reads .* from it; amend"
    )
    with pytest.raises(KeyError, match=wanted):
        record({"obs": ROWS, "position": ROWS}, name)


@pytest.mark.parametrize("name", ["pgx", "envpool"])
def test_a_chunk_without_flags_is_refused(name):
    assert {name, *NEEDED} <= set(NAMED)
    with pytest.raises(ValueError, match="no flag marks the ends of episodes: .* there are 'obs', 'position'"):
        record({"obs": ROWS, "position": ROWS}, name)


def test_an_amended_path_that_names_nothing_is_refused():
    with pytest.raises(KeyError, match=r"truncated=...\) 'extras.truncation'. Did you mean '.*truncation'.*'discount'"):
        record(brax_chunk(), tl.Convention("brax", truncated="extras.truncation"))


def test_a_flag_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"the flag 'done' has shape \(4, 1, 2\)"):
        record(brax_chunk(discount=np.ones((4, 1, 2), np.float32)), "brax")


def test_axes_that_are_missing_are_refused():
    with pytest.raises(ValueError, match=r"the flag 'done' has shape \(4, 1\); expected 5 dims, \(D, U, B, T, N\)"):
        record({"obs": ROWS, "done": END, "truncated": END}, "stoix")
    ds = record({"obs": ROWS, "done": END, "truncated": END}, tl.Convention("stoix", axes="TN")).to_dataset()
    assert ds["length"].values.tolist() == [2, 2]


def test_the_function_of_a_user_keeps_its_own_error():
    with pytest.raises(KeyError, match="^'life'"):
        record({"obs": ROWS}, tl.Convention("brax", done=lambda chunk: chunk["life"]))
