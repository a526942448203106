"""The reference itself, on recordings small enough to see the answer.

Each observation says what it is: 0, 1, 2, ... count the first episode's steps, 10, 11, ... the second's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import Call, Episode, Mark, Record, Step, reference_episodes
from strategies import Stream, cuts, examples, make_calls, recorder_options, streams


def one_env(text: str, obs: list[int], flag: str = "done", **more: list[int]) -> dict[str, np.ndarray]:
    """Return a chunk of one environment: `x` in the text stands where the flag is set, `.` where not."""
    arrays = {"obs": obs, flag: [sign == "x" for sign in text]} | more
    return {name: np.array(values)[:, None] for name, values in arrays.items()}


def episodes_of(*calls: Call, **options: Any) -> list[Episode]:
    convention = {name: options.pop(name) for name in list(options) if name in RULES}
    return reference_episodes(calls, convention=convention, **options)


RULES = ("autoreset", "alignment", "flags", "axes", "done")


def obs(episodes: list[Episode], name: str = "obs") -> list[list[int]]:
    return [[int(value) for value in episode.fields[name]] for episode in episodes]


def final(episodes: list[Episode]) -> list[int | None]:
    return [int(episode.final["obs"]) if episode.final_known else None for episode in episodes]


def reasons(episodes: list[Episode]) -> list[str]:
    return [episode.end_reason for episode in episodes]


def seen(episodes: list[Episode]) -> list[bool]:
    return [episode.start_seen for episode in episodes]


# Resets -----------------------------------------------------------------------------------------------------


def test_same_step_starts_the_next_episode_on_the_next_row() -> None:
    episodes = episodes_of(Record(one_env("..x.", [0, 1, 2, 10])))
    assert obs(episodes) == [[0, 1, 2], [10]]
    assert reasons(episodes) == ["done", "cut"]
    assert final(episodes) == [None, None]
    assert [episode.complete for episode in episodes] == [True, False]


def test_next_step_skips_a_reset_row_that_holds_the_final_observation() -> None:
    episodes = episodes_of(Record(one_env(".x...", [0, 1, 2, 10, 11])), autoreset="next_step")
    assert obs(episodes) == [[0, 1], [10, 11]]
    assert final(episodes) == [2, None]


def test_flags_on_a_reset_row_mean_nothing() -> None:
    episodes = episodes_of(Record(one_env(".xx..", [0, 1, 2, 10, 11])), autoreset="next_step")
    assert obs(episodes) == [[0, 1], [10, 11]]


def test_a_reset_row_that_never_came_leaves_the_final_observation_unknown() -> None:
    assert final(episodes_of(Record(one_env(".x", [0, 1])), autoreset="next_step")) == [None]


def test_a_mark_takes_the_place_of_the_reset_row() -> None:
    calls = [Record(one_env(".x", [0, 1])), Mark("gap"), Record(one_env("..", [10, 11]))]
    episodes = episodes_of(*calls, autoreset="next_step")
    assert obs(episodes) == [[0, 1], [10, 11]]
    assert final(episodes) == [None, None]
    assert seen(episodes) == [True, False]


def test_disabled_waits_for_a_mark() -> None:
    dead = Record(one_env(".x.x", [0, 1, 98, 99]))
    calls = [dead, Mark("reset"), Record(one_env(".x", [10, 11])), Mark("gap"), Record(one_env(".", [20]))]
    episodes = episodes_of(*calls, autoreset="disabled")
    assert obs(episodes) == [[0, 1], [10, 11], [20]]
    assert seen(episodes) == [True, True, False]


# Marks, masks, iterations -----------------------------------------------------------------------------------


def test_marks_cut_open_episodes() -> None:
    rows = Record(one_env("..", [0, 1]))
    episodes = episodes_of(rows, Mark("reset"), rows, Mark("gap"), rows)
    assert reasons(episodes) == ["cut", "cut", "cut"]
    assert seen(episodes) == [True, True, False]


def test_the_last_of_several_marks_counts() -> None:
    rows = Record(one_env(".", [0]))
    assert seen(episodes_of(rows, Mark("gap"), Mark("reset"), rows)) == [True, True]
    assert seen(episodes_of(rows, Mark("reset"), Mark("gap"), rows)) == [True, False]


def test_a_mark_waits_for_the_next_unmasked_cell() -> None:
    masked = Record(one_env("..", [97, 1]), mask=np.array([[False], [True]]))
    episodes = episodes_of(Record(one_env(".", [0])), Mark("reset"), masked)
    assert obs(episodes) == [[0], [1]]
    assert [episode.start_row for episode in episodes] == [0, 2]


def test_masked_cells_are_skipped_and_their_flags_ignored() -> None:
    mask = np.array([[True], [False], [True]])
    assert obs(episodes_of(Record(one_env(".x.", [0, 99, 1]), mask=mask))) == [[0, 1]]


def test_an_iteration_jump_is_a_gap_but_not_after_a_reset_by_hand() -> None:
    def rows(iteration: int) -> Record:
        return Record(one_env("..", [0, 1]), iteration=iteration)

    assert seen(episodes_of(rows(0), rows(1), rows(1))) == [True]
    assert seen(episodes_of(rows(0), rows(2))) == [True, False]
    assert seen(episodes_of(rows(3), rows(2))) == [True, False]
    assert seen(episodes_of(rows(0), Mark("reset"), rows(9))) == [True, True]


def test_recording_that_begins_in_mid_episode() -> None:
    rows = Record(one_env(".x.", [5, 6, 10]))
    assert seen(episodes_of(rows, starts_fresh=False)) == [False, True]
    assert seen(episodes_of(Mark("reset"), rows, starts_fresh=False)) == [True, True]


def test_steps_reach_only_their_environments() -> None:
    both = {"obs": np.array([0, 50]), "done": np.array([False, False])}
    last = {"obs": np.array([51]), "done": np.array([True])}
    episodes = episodes_of(Step(both), Step(last, envs=[1]), Step(last, envs=slice(0, 1)))
    assert obs(episodes) == [[0, 51], [50, 51]]
    assert [episode.env for episode in episodes] == [0, 1]
    masked = {"obs": np.array([99, 51]), "done": np.array([False, True])}
    assert obs(episodes_of(Step(both), Step(masked, envs=np.array([False, True])))) == [[0], [50, 51]]


# Alignment and flags of the row before ----------------------------------------------------------------------


def test_result_reads_the_observation_one_row_earlier() -> None:
    chunk = one_env("...x", [0, 1, 2, 3], action=[99, 0, 1, 2])
    episodes = episodes_of(Record(chunk), alignment="result", autoreset="next_step")
    assert obs(episodes) == [[0, 1, 2]]
    assert obs(episodes, "action") == [[0, 1, 2]]
    assert [episode.start_row for episode in episodes] == [1]
    assert final(episodes) == [3]
    assert seen(episodes) == [True]


def test_result_with_same_step_has_lost_the_final_observation_of_ended_episodes() -> None:
    episodes = episodes_of(Record(one_env("..x.", [0, 1, 10, 11])), alignment="result")
    assert obs(episodes) == [[0, 1], [10]]
    assert final(episodes) == [None, 11]


def test_result_reads_the_previous_recorded_cell_and_drops_the_first_after_a_mark() -> None:
    mask = np.array([[True], [False], [True]])
    calls = [Record(one_env("...", [0, 99, 1]), mask=mask), Mark("gap"), Record(one_env("..", [5, 6]))]
    episodes = episodes_of(*calls, alignment="result")
    assert obs(episodes) == [[0], [5]]
    assert [episode.start_row for episode in episodes] == [2, 4]
    assert seen(episodes) == [True, False]
    assert final(episodes) == [1, 6]


def test_an_end_on_a_dropped_row_still_ends() -> None:
    chunk = one_env("x...", [0, 1, 2, 3])
    assert obs(episodes_of(Record(chunk), alignment="result")) == [[0, 1, 2]]
    assert obs(episodes_of(Record(chunk), alignment="result", autoreset="next_step")) == [[1, 2]]
    assert obs(episodes_of(Record(chunk), alignment="result", autoreset="disabled")) == []


def test_moved_states_leave_the_observation_and_lose_the_first_transition() -> None:
    chunk = one_env("..x.", [0, 1, 2, 10], action=[0, 1, 2, 10])
    state = {"x": np.array([1, 2, 10, 11])[:, None]}
    moved = {"state.*": "result", "action": "result"}
    episodes = episodes_of(Record(chunk, extra={"state": state}), alignment=moved)
    assert obs(episodes) == obs(episodes, "action") == [[1, 2], [10]]
    assert obs(episodes, "state.x") == [[1, 2], [10]]
    assert seen(episodes) == [False, True]


def test_flags_of_the_row_before() -> None:
    chunk = one_env("x..x.", [0, 1, 2, 10, 11], flag="last_done")
    episodes = episodes_of(Record(chunk), done="last_done", flags="previous_row")
    assert obs(episodes) == [[0, 1, 2], [10, 11]]
    assert reasons(episodes) == ["done", "cut"]


def test_a_mark_parts_a_row_from_the_flags_on_the_next() -> None:
    calls = [Record(one_env("..", [0, 1])), Mark("reset"), Record(one_env("x.", [10, 11]))]
    assert reasons(episodes_of(*calls, flags="previous_row")) == ["cut", "cut"]


def test_flags_of_the_row_before_with_reset_rows() -> None:
    chunk = one_env("..xx.", [0, 1, 2, 10, 11])
    episodes = episodes_of(Record(chunk), flags="previous_row", autoreset="next_step")
    assert obs(episodes) == [[0, 1], [10, 11]]
    assert final(episodes) == [2, None]


# Final observations and reasons -----------------------------------------------------------------------------


def test_final_observation_counts_only_where_an_episode_ended() -> None:
    episodes = episodes_of(Record(one_env(".x.", [0, 1, 10], final_obs=[97, 2, 98])))
    assert final(episodes) == [2, None]
    assert "final_obs" not in episodes[0].fields


def test_next_observation_is_known_for_cut_episodes_too() -> None:
    episodes = episodes_of(Record(one_env(".x.", [0, 1, 10], next_obs=[1, 2, 11])))
    assert final(episodes) == [2, 11]
    assert obs(episodes, "next_obs") == [[1, 2], [11]]


def test_each_reason() -> None:
    flags = {"terminated": [1, 1, 0, 0], "truncated": [0, 1, 1, 0], "done": [0, 0, 0, 1]}

    def reasons_with(*names: str) -> list[str]:
        chunk = {name: np.array(flags[name])[:, None] for name in names}
        return reasons(episodes_of(Record(chunk | {"obs": np.zeros((4, 1))})))

    assert reasons_with(*flags) == ["terminated", "terminated", "truncated", "done"]
    assert reasons_with("terminated", "done") == ["terminated", "terminated", "truncated"]
    assert reasons_with("truncated", "done") == ["truncated", "truncated", "terminated"]
    assert reasons_with("done") == ["done"]


# Choices ----------------------------------------------------------------------------------------------------


def two_envs() -> Record:
    done = np.array([[True, False], [True, False], [True, True]])
    return Record({"obs": np.array([[0, 50], [10, 51], [20, 52]]), "done": done})


def test_the_first_to_start_are_kept() -> None:
    assert obs(episodes_of(two_envs(), max_episodes=2)) == [[0], [50, 51, 52]]


def test_environments_keep_their_numbers() -> None:
    assert [episode.env for episode in episodes_of(two_envs(), envs=slice(1, None))] == [1]
    assert [episode.env for episode in episodes_of(two_envs(), envs=np.array([False, True]))] == [1]


def test_axes() -> None:
    done = np.zeros((2, 3, 2), bool)
    obs_at = np.arange(12).reshape(2, 3, 2)
    updates = episodes_of(Record({"obs": obs_at, "done": done}, iteration=4), axes="UTN")
    assert obs(updates) == [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]
    assert updates[0].iteration == [4, 4, 4, 5, 5, 5]
    seeds = episodes_of(Record({"obs": obs_at, "done": done}), axes="STN")
    assert obs(seeds) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]
    assert [episode.axes for episode in seeds] == [{"S": 0}, {"S": 0}, {"S": 1}, {"S": 1}]
    swapped = episodes_of(Record({"obs": obs_at[0], "done": done[0]}), axes="NT")
    assert obs(swapped) == [[0, 1], [2, 3], [4, 5]]


# The reference over random recordings -----------------------------------------------------------------------


@examples(100)
@given(st.data(), streams(explicit=True))
def test_the_reference_does_not_depend_on_the_cuts(data: st.DataObject, stream: Stream) -> None:
    first, second = (make_calls(stream, data.draw(cuts(stream))) for _ in range(2))
    shares = any(isinstance(call, Step) and call.envs is not None for call in [*first, *second])
    limit = {"max_episodes": None} if shares else {}
    one, other = (reference_episodes(calls, **recorder_options(stream, calls) | limit) for calls in (first, second))
    if shares:  # in which rows the steps stand depends on the cuts; the order and all else of an environment's does not
        one, other = (sorted(map(without_rows, episodes), key=lambda episode: episode.env) for episodes in (one, other))
    assert list(map(repr, one)) == list(map(repr, other))


def without_rows(episode: Episode) -> Episode:
    return replace(episode, start_row=0, rows=[], row_before=0, number=0)


@examples(100)
@given(st.data(), streams())
def test_no_cell_is_in_two_episodes(data: st.DataObject, stream: Stream) -> None:
    calls = make_calls(stream, data.draw(cuts(stream)))
    episodes = reference_episodes(calls, **recorder_options(stream, calls))
    rewards = [float(reward) for episode in episodes for reward in episode.fields["reward"]]
    assert len(set(rewards)) == len(rewards) <= stream.mask.sum()
    assert all(episode.length for episode in episodes)
