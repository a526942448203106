"""Where a convention says a value stands: moved fields, final observations, reset rows; and padding, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

import trajlab as tl


@pytest.fixture(params=[np.asarray, jnp.asarray], ids=["numpy", "jax"])
def rollout(request):
    """Return a function that makes the Dataset of one environment, each field given over time."""

    def make(convention=None, **fields):
        chunk = {name: request.param(np.array(values)[:, None]) for name, values in fields.items()}
        return tl.from_rollout(chunk, convention=tl.Convention(**(convention or {})))

    return make


def seen(ds, name):
    """Return a field's values without padding, one list for each episode."""
    return [values[:length].tolist() for values, length in zip(ds[name].values, ds["length"].values, strict=True)]


OBS = np.array([10, 11, 12, 13, 14], np.int32)
ACTION = np.array([0, 1, 2, 3, 4], np.int32)
DONE = np.array([0, 0, 1, 0, 0], bool)


def test_by_default_a_row_is_a_transition(rollout):
    ds = rollout(obs=OBS, action=ACTION, done=DONE)
    assert seen(ds, "obs") == [[10, 11, 12], [13, 14]]
    assert seen(ds, "action") == [[0, 1, 2], [3, 4]]
    assert "final_obs" not in ds
    assert not ds["final_known"].any()


def test_a_result_is_read_one_row_earlier(rollout):
    ds = rollout({"alignment": "result", "autoreset": "next_step"}, obs=OBS, action=ACTION, done=DONE)
    assert seen(ds, "action") == [[1, 2], [4]]
    assert seen(ds, "obs") == [[10, 11], [13]]
    assert ds["final_obs"].values.tolist() == [12, 14]
    assert ds.attrs["cells_unaligned"] == 1


def test_only_the_fields_of_a_mapping_are_read_one_row_earlier(rollout):
    ds = rollout({"alignment": {"state": "result"}}, obs=OBS, state=OBS + 10, action=ACTION, done=DONE)
    assert seen(ds, "obs") == [[11, 12], [13, 14]]
    assert seen(ds, "state") == [[20, 21], [22, 23]]
    assert ds["start_seen"].values.tolist() == [False, True]


def test_a_moved_field_is_read_from_the_block_before():
    recorder = tl.Recorder(convention=tl.Convention(alignment={"state": "result"}))
    for start in range(0, 40, 2):
        rows = np.arange(start, start + 2, dtype=np.int32)[:, None]
        recorder.record({"obs": rows, "state": rows, "done": rows % 7 == 6})
    ds = recorder.to_dataset()
    assert sum(seen(ds, "obs"), []) == list(range(1, 40))
    assert sum(seen(ds, "state"), []) == list(range(39))


def test_the_final_observation_is_the_true_last_one_on_ended_rows(rollout):
    ds = rollout(obs=OBS, final_obs=OBS + 100, action=ACTION, done=DONE)
    assert ds["final_obs"].values.tolist() == [112, np.iinfo(np.int32).min]
    assert ds["final_known"].values.tolist() == [True, False]


def test_the_final_observation_is_the_true_next_one_of_the_last_row(rollout):
    ds = rollout(obs=OBS, next_obs=OBS + 100, action=ACTION, done=DONE)
    assert ds["final_obs"].values.tolist() == [112, 114]
    assert ds["final_known"].all()
    assert seen(ds, "next_obs") == [[110, 111, 112], [113, 114]]


def test_the_final_observation_stands_on_the_reset_row(rollout):
    ds = rollout({"autoreset": "next_step"}, obs=OBS, action=ACTION, done=DONE)
    assert seen(ds, "obs") == [[10, 11, 12], [14]]
    assert ds["final_obs"].values.tolist() == [13, np.iinfo(np.int32).min]
    assert ds["final_known"].values.tolist() == [True, False]


def test_flags_of_the_row_before(rollout):
    ds = rollout({"flags": "previous_row"}, obs=OBS, action=ACTION, done=DONE)
    assert seen(ds, "obs") == [[10, 11], [12, 13, 14]]


@pytest.mark.parametrize(
    ("dtype", "want", "text"),
    [
        ("float32", np.nan, "nan"),
        ("int32", -(2**31), "-2147483648"),
        ("int8", -128, "-128"),
        ("uint8", 255, "255"),
        ("bool", False, "false"),
    ],
)
def test_padding_is_loud(rollout, dtype, want, text):
    ds = rollout(obs=np.ones(5, dtype), next_obs=np.ones(5, dtype), done=DONE)
    np.testing.assert_array_equal(ds["obs"].values[1], np.array([1, 1, want], dtype))
    assert (ds["obs"].attrs["padding"], ds["obs"].dtype) == (text, np.dtype(dtype))
    assert ds["mask"].values.tolist() == [[True, True, True], [True, True, False]]
