"""Files that were torn, damaged or made to harm: a prefix of what was written comes back, or an error with file and line."""

import json
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl
from trajlab.io.jsonl.lines import sealed

FILE = "episode_00000.jsonl"
STEPS = 5


def make():
    """Return one episode whose every value is its own, with texts of several bytes a letter."""
    return tl.from_episodes(
        [
            {
                "obs": np.arange(2.0 * STEPS + 2).reshape(-1, 2),
                "action": np.arange(STEPS),
                "text": np.array([f"é𝄞{i}" for i in range(STEPS)]),
                "terminated": np.arange(STEPS) == STEPS - 1,
            }
        ]
    ).load()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole")
    tl.write_jsonl(make(), path)
    return (path / FILE).read_bytes()


def read(data, path):
    """Return the Dataset of a file of these bytes, and the warnings."""
    (path / FILE).write_bytes(data)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ds = tl.read_jsonl(path)
    return ds.load(), [str(one.message) for one in found]


def assert_prefix(ds, whole):
    """Assert that what was read is the beginning of what was written, and says so."""
    if not ds.sizes["episode"]:
        return
    length = int(ds["length"][0])
    assert 0 < length <= STEPS
    tl.validate(ds, deep=True)
    for name in ("obs", "action", "text", "terminated"):
        np.testing.assert_array_equal(ds[name][0, :length], whole[name][0, :length])
    if length == STEPS:
        assert ds["end_reason"].item() in ("terminated", "cut")
    else:
        assert (ds["end_reason"].item(), ds["complete"].item()) == ("cut", False)
        np.testing.assert_array_equal(ds["final_obs"][0], whole["obs"][0, length])


@examples(80)
@given(st.data())
def test_any_beginning_of_a_file_is_a_beginning_of_the_episode(written, tmp_path_factory, data):
    size = data.draw(st.integers(0, len(written)))
    ds, found = read(written[:size], tmp_path_factory.mktemp("torn"))
    assert_prefix(ds, make())
    whole_lines = written[:size].count(b"\n") + (written[: size + 1].endswith(b"}\n"))
    assert ds["length"].values.tolist() == ([whole_lines - 1] if whole_lines > 1 else [])
    is_torn = size < len(written) and not written[: size + 1].endswith(b"}\n") and not written[:size].endswith(b"\n")
    assert any("as it is torn" in text for text in found) == (is_torn and size > 0)


@examples(150)
@given(st.data())
def test_a_damaged_file_is_an_error_or_a_beginning(written, tmp_path_factory, data):
    damaged = bytearray(written)
    start = data.draw(st.integers(0, len(written) - 1))
    match data.draw(st.sampled_from(["set", "insert", "delete", "copy"])):
        case "set":
            damaged[start : start + 4] = data.draw(st.binary(min_size=1, max_size=4))
        case "insert":
            damaged[start:start] = data.draw(st.binary(min_size=1, max_size=8))
        case "delete":
            del damaged[start : start + data.draw(st.integers(1, 300))]
        case "copy":
            other = data.draw(st.integers(0, len(written) - 1))
            damaged[start:start] = damaged[other : other + 200]
    path = tmp_path_factory.mktemp("damaged")
    try:
        ds, _ = read(bytes(damaged), path)
    except ValueError as error:
        assert str(path / FILE) in str(error)  # noqa: PT017
    else:
        assert_prefix(ds, make())


def test_a_torn_last_line_is_left_out_with_a_warning(written, tmp_path):
    inside = written.rindex("𝄞".encode()) + 2  # of four bytes
    ds, found = read(written[:inside], tmp_path)
    assert (ds["length"].item(), ds["end_reason"].item(), ds["final_known"].item()) == (STEPS - 1, "cut", True)
    assert [FILE in text and f"line {STEPS + 1}: left out, as it is torn" in text for text in found] == [True]


def test_a_broken_middle_line_is_an_error_with_file_and_line(written, tmp_path):
    lines = written.split(b"\n")
    lines[2] = lines[2][:20]
    with pytest.raises(ValueError, match=rf"{FILE}, line 3: unexpected end of data"):
        read(b"\n".join(lines), tmp_path)


def test_a_changed_digit_is_an_error(written, tmp_path):
    with pytest.raises(ValueError, match=rf"{FILE}, line 3: it does not have its checksum"):
        read(written.replace(b'"t":2', b'"t":9'), tmp_path)


def test_a_file_edited_by_hand_is_read_without_its_checksums(written, tmp_path):
    lines = [json.loads(line) for line in written.splitlines()]
    lines[2]["action"] = 77
    for line in lines:
        del line["crc"]
    ds, found = read("\n".join(map(json.dumps, lines)).encode(), tmp_path)
    assert ds["action"].values.tolist() == [[0, 77, 2, 3, 4]]
    assert found == []


@pytest.mark.parametrize("beginning", [b"", b'{"event":"re', b"\x00" * 100])
def test_a_file_without_a_first_line_is_left_out(beginning, written, tmp_path):
    (tmp_path / "episode_00007.jsonl").write_bytes(beginning)
    ds, found = read(written, tmp_path)
    assert ds["episode"].values.tolist() == [0]
    assert any("episode_00007.jsonl is left out: it has no first line" in text for text in found)
    tl.write_jsonl(make(), tmp_path, mode="append")
    assert (tmp_path / "episode_00008.jsonl").exists()


# Files made to harm ---------------------------------------------------------------------------------------------------


def made(tmp_path, change, line=0):
    """Write a file whose lines are whole, one of them changed."""
    tl.write_jsonl(make(), tmp_path, mode="replace")
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().rstrip("\n").split("\n")]
    for one in lines:
        del one["crc"]
    change(lines[line])
    (tmp_path / FILE).write_bytes(b"".join(sealed(json.dumps(one).encode()) for one in lines))


def spec(name, **changes):
    return lambda line: line["variables"][name].update(changes)


HARMFUL = {
    "other event": (0, lambda line: line.update(event="step"), "line 1: 'event' is 'step'; expected 'reset'"),
    "other schema": (0, lambda line: line.update(schema=7), "line 1: 'schema' is 7; this version of trajlab reads 1"),
    "number": (0, lambda line: line.update(episode=-1), "line 1: 'episode' is -1"),
    "endless time": (0, lambda line: line["time"].update(stop=10**15), "line 1: 'time' has 1000000000000000 labels"),
    "odd time": (0, lambda line: line.update(time={"start": 0}), "line 1: 'time' is .*; expected a list or"),
    "time twice": (0, lambda line: line.update(time=[0, 0]), "line 1: 'time' holds a label twice"),
    "no variables": (0, lambda line: line.pop("variables"), "line 1: 'variables' is None; expected an object"),
    "huge shape": (0, spec("obs", shape=[10**9]), r"'obs' \(obs\): it has the shape \(5, 2\); expected \(5, 10{9}\)"),
    "huger shape": (0, spec("obs", shape=[2**60]), "'obs': 'dims' and 'shape' are"),
    "text shape": (0, spec("obs", shape=["2"]), r"'obs': 'shape' is \['2'\]; expected a list of numbers"),
    "ranks": (0, spec("obs", shape=[2, 2]), r"'obs': 'shape' is \[2, 2\]; expected 1 sizes"),
    "object dtype": (0, spec("obs", dtype="O"), "'obs': 'O' is no dtype that is read"),
    "record dtype": (0, spec("obs", dtype="i4,f8"), "'obs': 'i4,f8' is no dtype that is read"),
    "long dtype": (0, spec("obs", dtype=["f8"] * 99), r"'obs': .* is no dtype that is read"),
    "stands": (0, spec("obs", stands="there"), "'obs': 'stands' is 'there'; expected one of step, before"),
    "dims": (0, spec("obs", dims=["episode", "obs_dim_0"]), "'obs': it stands as 'before', which its dims"),
    "place": (0, spec("obs", place=[]), r"'obs': 'place' is \[\] where"),
    "other place": (0, spec("action", place=["nowhere", "x"]), "line 2: 'nowhere.x' is missing"),
    "kind": (0, spec("text", dtype="int32"), r"line 2: 'text' \(fields.text\): it holds .*; expected whole numbers"),
    "range": (0, spec("action", dtype="uint8"), None),
    "padding": (0, lambda line: line["variables"].update(big=spec_of_padding()), "bytes of padding, from files of"),
    "t": (2, lambda line: line.update(t=3), "line 3: 't' is 3; expected 2"),
    "list for t": (2, lambda line: line.update(t=[2, 2]), r"line 3: 't' is \[2, 2\]; expected 2"),
    "wrong action": (
        3,
        lambda line: line.update(action="left"),
        r"line 4: 'action' \(action\): it holds 'left'|line 4",
    ),
    "ragged": (1, lambda line: line.update(obs=[[1.0]]), r"line 2: 'obs' \(obs\): "),
    "null": (1, lambda line: line.update(obs=[None, 1.0]), r"line 2: 'obs' \(obs\): it holds null"),
    "later specs": (2, lambda line: line.update(variables=[1]), r"line 3: 'variables' is \[1\]"),
}


def spec_of_padding():
    about = {"dims": ["episode", "time", "x"], "shape": [10**9], "stands": "step", "place": ["big"], "optional": True}
    return about | {"dtype": "float64", "attrs": {}}


@pytest.mark.parametrize("case", HARMFUL)
def test_a_file_made_to_harm_is_an_error_with_file_and_line(case, tmp_path):
    line, change, match = HARMFUL[case]
    made(tmp_path, change, line)
    if match is None:
        assert tl.read_jsonl(tmp_path)["action"].dtype == np.uint8
        return
    with pytest.raises(ValueError, match=rf"{FILE}, line .*") as raised:
        tl.read_jsonl(tmp_path)
    raised.match(match)


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"a":' * 100_000, b'{"event":"reset","episode":' + b"9" * 10_000 + b"}"]
)
def test_deep_nests_and_long_numbers_are_errors(text, tmp_path):
    with pytest.raises(ValueError, match=f"{FILE}, line 1"):
        read(text + b"\n" + text + b"\n", tmp_path)


def test_a_text_dtype_gets_no_more_memory_than_its_texts(tmp_path):
    made(tmp_path, spec("text", dtype="<U99999999"))
    ds = tl.read_jsonl(tmp_path)
    assert ds["text"].nbytes < 10_000


def test_two_files_of_one_episode_are_an_error(written, tmp_path):
    (tmp_path / "episode_00001.jsonl").write_bytes(written)
    with pytest.raises(ValueError, match="episode_00001.jsonl, line 1: 'episode' is 0, as in .*episode_00000.jsonl"):
        read(written, tmp_path)


def test_the_checksum_is_the_crc_of_all_before_it():
    line = sealed(b'{"event":"step"}')
    assert json.loads(line)["crc"] == f"{zlib.crc32(line.split(b',')[0]):08x}"
