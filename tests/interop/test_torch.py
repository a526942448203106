"""What recorder terms make of torch tensors: arrays of their own, whatever is written into the tensors afterwards."""

import jax
import numpy as np
import pytest

import trajlab as tl
from trajlab.integrations.managers.arrays import on_host, owned_fields
from trajlab.recorder.owned import owned

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.interop


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64", "float16"])
def test_tensors_become_numpy_arrays_of_their_dtype(dtype):
    tensor = torch.arange(6).reshape(3, 2).to(getattr(torch, dtype))
    array = owned(tensor, "x")
    expected = tensor.numpy().copy()
    tensor.zero_()
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


def test_tensors_that_numpy_does_not_know_go_to_jax():
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(3, 2)
    array = owned(tensor, "x")
    tensor.zero_()
    assert isinstance(array, jax.Array)
    assert array.dtype == jax.numpy.bfloat16
    np.testing.assert_array_equal(array.astype(np.float32), np.arange(6).reshape(3, 2))


def test_views_and_tensors_with_gradients():
    tensor = torch.arange(12.0, requires_grad=True).reshape(3, 4)
    fields = owned_fields({"a/b": tensor[:, ::2], "c": {"d": tensor.T.T}}, 3)
    np.testing.assert_array_equal(fields["a"]["b"], [[0, 2], [4, 6], [8, 10]])
    np.testing.assert_array_equal(fields["c"]["d"], np.arange(12).reshape(3, 4))


def test_tensors_are_added_to_a_recorder_as_they_are_now():
    recorder = tl.Recorder()
    obs, done = torch.zeros(3, requires_grad=True), torch.zeros(3, dtype=torch.bool)
    for t in range(4):
        with torch.no_grad():
            obs.fill_(t)
        recorder.add("obs", obs)
        recorder.add("half", obs.to(torch.bfloat16))
        recorder.add("done", done)
        with torch.no_grad():
            obs.fill_(-1)
    ds = recorder.to_dataset()
    for name in ("obs", "half"):
        assert ds[name].values.tolist() == [[0, 1, 2, 3]] * 3


def test_numbers_of_environments():
    assert on_host(torch.tensor([2, 0])).tolist() == [2, 0]
    assert on_host([2, 0]) == [2, 0]
    assert on_host(None) is None
