"""Files that say nothing of their fields, as older wrappers write them."""

import json

import numpy as np
import pytest

import trajlab as tl


def step(t, action, obs, reward, *flags, **info):
    terminated, truncated = flags or (False, False)
    record = {"event": "step", "t": t, "action": action, "obs": obs, "reward": reward}
    return record | {"terminated": terminated, "truncated": truncated, "info": info}


def write(path, *steps, number=0, obs=(0.0, 0.5)):
    head = {"event": "reset", "episode": number, "obs": obs, "info": {}}
    (path / f"episode_{number:05d}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *steps]))


def test_their_episodes_are_read(tmp_path):
    write(tmp_path, step(1, 0, [1.0, 0.5], 1, x=1), step(2, 1, [2.0, 0.5], 0.5, True, False, won=True))
    write(tmp_path, step(1, 1, [3.0, 0.5], 2.5, x=0.5, name="a"), number=1)
    ds = tl.read_jsonl(tmp_path).load()
    tl.validate(ds, deep=True)
    dtypes = {"obs": "float64", "action": "int64", "reward": "float64", "terminated": "bool", "info.x": "float64"}
    assert {name: ds[name].dtype for name in dtypes} == dtypes
    assert ds["obs"].values[0].tolist() == [[0.0, 0.5], [1.0, 0.5]]
    assert ds["final_obs"].values.tolist() == [[2.0, 0.5], [3.0, 0.5]]
    assert ds["action"].values[0].tolist() == [0, 1]
    assert tl.returns(ds, discount=1.0).values.tolist() == [1.5, 2.5]
    assert ds["end_reason"].values.tolist() == ["terminated", "cut"]
    assert ds["start_row"].values.tolist() == [1, 4]
    np.testing.assert_array_equal(ds["info.x"], [[1.0, np.nan], [0.5, np.nan]])
    tl.write_jsonl(ds, tmp_path / "again")
    assert tl.read_jsonl(tmp_path / "again").load().identical(ds)


def test_trees_become_a_field_for_each_array(tmp_path):
    write(tmp_path, step(1, {"turn": [0.5]}, {"at": [1, 2], "on": True}, [1.0, 2.0]), obs={"at": [0, 0], "on": False})
    ds = tl.read_jsonl(tmp_path)
    assert ds["obs.at"].values.tolist() == [[[0, 0]]]
    assert ds["final_obs.on"].values.tolist() == [True]
    assert ds["action.turn"].values.tolist() == [[[0.5]]]
    assert ds["reward"].values.tolist() == [[[1.0, 2.0]]]


WRONG = {
    "shape": (step(2, 0, [1.0], 0.0), r"line 3: 'obs' has shape \(1,\); expected \(2,\)"),
    "ragged": (step(2, 0, [1.0, [2.0]], 0.0), "line 3: .*inhomogeneous"),
    "kind": (step(2, "left", [1.0, 2.0], 0.0), "line 3: 'action' has dtype <U4; expected int64"),
    "object": (step(2, 0, {"x": 1.0}, 0.0), "line 3: dtype object cannot be recorded"),
    "missing": ({"event": "step", "t": 2, "action": 0, "obs": [1.0, 2.0]}, "line 3: 'reward' is missing"),
    "no flag": ({"event": "step", "t": 2, "action": 0, "obs": [1.0, 2.0], "reward": 0.0}, "'terminated' is missing"),
    "t": (step(5, 0, [1.0, 2.0], 0.0), "line 3: 't' is 5; expected 2"),
    "not JSON": (step(2, 0, [np.nan, 2.0], 0.0), "line 3: unexpected character"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_them_is_named_with_file_and_line(case, tmp_path):
    line, match = WRONG[case]
    write(tmp_path, step(1, 0, [1.0, 2.0], 0.0), line, step(3, 0, [1.0, 2.0], 0.0))
    with pytest.raises(ValueError, match=f"episode_00000.jsonl, {match}" if match.startswith("line") else match):
        tl.read_jsonl(tmp_path)


def test_a_tree_too_deep_is_an_error(tmp_path):
    deep = 1.0
    for _ in range(900):
        deep = {"x": deep}
    write(tmp_path, step(1, 0, deep, 0.0), obs=deep)
    with pytest.raises(ValueError, match=r"episode_00000.jsonl, line 1: .*recursion"):
        tl.read_jsonl(tmp_path)


def test_a_file_without_its_number_is_not_passed_over(tmp_path):
    write(tmp_path, step(1, 0, [1.0, 2.0], 0.0))
    file = tmp_path / "episode_00001.jsonl"
    file.write_text((tmp_path / "episode_00000.jsonl").read_text().replace('"episode": 0, ', ""))
    with pytest.raises(ValueError, match=r"episode_00001.jsonl, line 1: 'episode' is missing"):
        tl.read_jsonl(tmp_path)
