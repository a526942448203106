"""How episodes end, over training."""

import numpy as np
import pytest
import ragged
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import trajlab as tl

REASONS = ["terminated", "truncated", "done", "cut"]


def ended(reasons, iteration=None, **coords):
    """Return a Dataset of episodes that ended so."""
    ds = tl.from_episodes([{"reward": np.zeros(2)} for _ in reasons], end_reason=list(reasons), iteration=iteration)
    return ds.assign_coords({name: ("episode", values) for name, values in coords.items()})


def test_counts_and_shares():
    ds = ended(["cut", "terminated", "terminated", "truncated", "terminated"], [7, 0, 0, 0, 7])
    result = tl.outcomes(ds)
    assert result["count"].dims == ("start_iteration", "end_reason")
    assert result["end_reason"].values.tolist() == REASONS
    assert result["count"].values.tolist() == [[2, 1, 0, 0], [1, 0, 0, 1]]
    np.testing.assert_allclose(result["share"].values, [[2 / 3, 1 / 3, 0, 0], [0.5, 0, 0, 0.5]])
    assert (result["count"].dtype, result["share"].dtype) == (np.int64, np.float64)
    assert result["first"].values.tolist() == result["last"].values.tolist() == [0, 7]
    assert (result.attrs["num_episodes"], result.attrs["num_cut"]) == (5, 1)


@given(st.lists(st.tuples(st.sampled_from(REASONS), st.integers(0, 100)), min_size=1, max_size=80))
@examples(50)
def test_equals_a_loop(data):
    reasons, iteration = zip(*data, strict=True)
    result = tl.outcomes(ended(reasons, list(iteration)))
    assert result.sizes["start_iteration"] == (len(set(iteration)) if len(set(iteration)) <= 40 else 20)
    for group, (low, high) in enumerate(zip(result["first"].values, result["last"].values, strict=True)):
        inside = [reason for reason, at in data if low <= at <= high]
        assert result["count"].values[group].tolist() == [inside.count(reason) for reason in REASONS]
    assert int(result["count"].sum()) == len(data)


def test_many_iterations_become_ranges_of_equal_count():
    ds = ended(["done"] * 200, list(range(200)))
    result = tl.outcomes(ds)
    assert result["count"].sum("end_reason").values.tolist() == [10] * 20
    assert result["start_iteration"].values[0] == "0–9"
    assert result["last"].values[-1] == 199
    assert tl.outcomes(ds, groups=3).sizes["start_iteration"] == 3


def test_edges_leave_out_and_may_be_empty():
    result = tl.outcomes(ended(["cut", "done", "done"], [0, 1, 9]), groups=[0, 2, 5])
    assert result["count"].values.tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]
    assert np.isnan(result["share"].values[1]).all()
    np.testing.assert_array_equal(result["first"].values, [0, np.nan])
    assert result["start_iteration"].attrs["left_out"] == 1


def test_one_group_of_all_and_groups_of_texts():
    ds = ended(["cut", "done", "done"], policy=["b", "a", "b"])
    assert tl.outcomes(ds, by=None)["count"].dims == ("end_reason",)
    assert tl.outcomes(ds, by=None)["count"].values.tolist() == [0, 0, 2, 1]
    by_policy = tl.outcomes(ds, by="policy")
    assert by_policy["count"].values.tolist() == [[0, 0, 1, 0], [0, 0, 1, 1]]
    assert "first" not in by_policy.coords


@pytest.mark.parametrize("form", ragged.FORMS)
def test_every_form_of_a_dataset(form, tmp_path):
    ds = ragged.make_dataset([3, 1, 4, 1, 5, 2])
    xr.testing.assert_identical(tl.outcomes(ragged.in_form(ds, form, tmp_path)), tl.outcomes(ds))


def test_of_no_episode(blank):
    result = tl.outcomes(blank)
    assert result["count"].shape == (0, 4)
    assert tl.outcomes(blank, by=None)["count"].values.tolist() == [0, 0, 0, 0]


def test_result_survives_a_file(tmp_path):
    result = tl.outcomes(ended(["cut", "done"], [0, 1]))
    result.to_netcdf(tmp_path / "outcomes.nc", engine="h5netcdf")
    xr.testing.assert_equal(xr.load_dataset(tmp_path / "outcomes.nc", engine="h5netcdf"), result)


def test_what_cannot_be_grouped_by():
    ds = ended(["cut"])
    with pytest.raises(ValueError, match="by='end_reason' is what is counted; expected another coordinate"):
        tl.outcomes(ds, by="end_reason")
    with pytest.raises(ValueError, match="group by 'start_iteration'"):
        tl.outcomes(ds, by="iteration")
    with pytest.raises(KeyError, match="Did you mean 'start_iteration'"):
        tl.outcomes(ds, by="start_iter")
    with pytest.raises(ValueError, match="'first' is a name that the result uses itself"):
        tl.outcomes(ds.assign_coords(first=("episode", [0])), by="first")
