"""Episodes of a Recorder as files: those of a run come back as the Dataset that the recorder would give."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, recordings
from test_against_reference import dataset, play

import trajlab as tl


@examples(24)
@given(recordings(), st.booleans())
def test_the_files_of_any_recording_are_its_dataset(tmp_path_factory, recording, retain):
    calls, options = recording
    path = tmp_path_factory.mktemp("run")
    writer = tl.JsonlWriter(path)
    recorder = play(calls, options | {"consumers": [writer], "retain": retain})
    recorder.close()
    expected = dataset(play(calls, options)).load()
    if not expected.sizes["episode"]:
        assert list(path.iterdir()) == []
        return
    again = tl.read_jsonl(path).load()
    assert set(again.attrs) == set(expected.attrs)
    xr.testing.assert_identical(again.drop_attrs(deep=False), expected.drop_attrs(deep=False))


def run(path, rows=6, **kwargs):
    with tl.Recorder(consumers=[tl.JsonlWriter(path, **kwargs)]) as rec:
        for row in range(rows):
            rec.record_step({"obs": np.full((2, 1), float(row)), "done": np.array([row % 2 == 1, row == 3])})
    return rec.to_dataset()


def test_files_are_whole_as_they_come(tmp_path):
    rec = tl.Recorder(consumers=[tl.JsonlWriter(tmp_path)])
    for row in range(40):
        rec.record({"x": np.full((10, 1), row), "done": np.arange(10)[:, None] == 9})
    rec.to_dataset()
    assert tl.read_jsonl(tmp_path)["length"].values.tolist() == [10] * len(list(tmp_path.iterdir()))
    rec.close()
    assert tl.read_jsonl(tmp_path).sizes["episode"] == 40


def test_a_directory_of_an_earlier_run_is_refused_continued_or_replaced(tmp_path):
    ds = run(tmp_path)
    count = ds.sizes["episode"]
    with pytest.raises(FileExistsError, match="holds the episodes of an earlier run"):
        tl.JsonlWriter(tmp_path)
    run(tmp_path, mode="append")
    again = tl.read_jsonl(tmp_path)
    assert again["episode"].values.tolist() == list(range(2 * count))
    np.testing.assert_array_equal(again["length"], np.tile(ds["length"], 2))
    run(tmp_path, mode="replace")
    assert tl.read_jsonl(tmp_path).sizes["episode"] == count
    with pytest.raises(ValueError, match="mode='new'; expected one of 'create', 'append', 'replace'"):
        tl.JsonlWriter(tmp_path, mode="new")


def test_a_write_that_fails_is_reported_and_harms_nothing(tmp_path):
    path = tmp_path / "run"
    rec = tl.Recorder(consumers=[tl.JsonlWriter(path)])
    path.rmdir()
    with pytest.warns(UserWarning, match="JsonlWriter"):  # noqa: PT031
        rec.record({"x": np.zeros((2, 1)), "done": np.array([[True], [True]])})
        rec.close()
    assert rec.to_dataset().sizes["episode"] == 2


def test_two_writers_of_one_directory_are_told_apart(tmp_path):
    recorders = [tl.Recorder(consumers=[tl.JsonlWriter(tmp_path)]) for _ in range(2)]
    chunk = {"x": np.zeros((2, 1)), "done": np.array([[True], [True]])}
    with recorders[0] as rec:
        rec.record(chunk)
    written = (tmp_path / "episode_00000.jsonl").read_bytes()
    with pytest.warns(UserWarning, match=r"00000.jsonl is there, but was not when this writer began.*mode='append'"):  # noqa: PT031
        recorders[1].record(chunk)
        recorders[1].close()
    assert (tmp_path / "episode_00000.jsonl").read_bytes() == written
