"""The distribution of a field over time and training: visible counts, a plain loop, which ranges there are."""

import numpy as np
import pytest
from ragged import FORMS, in_form, make_dataset

import trajlab as tl


def recording(*episodes, **options):
    return tl.from_episodes([{"x": np.array(e)} for e in episodes], **options)


def test_shares_at_each_step():
    result = tl.state_histogram(recording([0, 2, 2], [0], [1, 0], end_reason=["done", "done", "cut"]), "x")
    assert result["count"].dims == ("time", "value")
    assert result["count"].values.tolist() == [[2, 1, 0], [1, 0, 1], [0, 0, 1]]
    np.testing.assert_allclose(result["share"].values, [[2 / 3, 1 / 3, 0], [0.5, 0, 0.5], [0, 0, 1]])
    assert result["first"].values.tolist() == result["last"].values.tolist() == [0, 1, 2]
    assert result.attrs["made_by"] == "trajlab.state_histogram"


def test_bins_of_numbers():
    result = tl.state_histogram(recording([0.0, 1.0], [0.9]), "x", bins=[0, 0.5, 1])
    assert result["count"].dims == ("time", "bin")
    assert result["count"].values.tolist() == [[1, 1], [0, 1]]
    assert tl.state_histogram(recording([0.0, 1.0]), "x").sizes["bin"] == 50


def test_many_steps_come_in_ranges_of_about_as_many_transitions():
    ds = recording(np.zeros(41), *[np.zeros(30)] * 3)
    result = tl.state_histogram(ds, "x", bins=1)
    assert result.sizes["time"] == 40
    assert result["count"].values.sum() == 131
    last = {key: result[key].values[-2:].tolist() for key in ("first", "last")}
    assert last == {"first": [38, 39], "last": [38, 40]}
    chosen = tl.state_histogram(ds, "x", bins=1, groups=[0, 10, 40])
    assert chosen["count"].values.ravel().tolist() == [40, 91]
    assert chosen["time"].values.tolist() == ["0–9", "10–40"]
    assert (chosen["first"].values.tolist(), chosen["last"].values.tolist()) == ([0, 10], [9, 40])


def test_over_training():
    ds = recording(*[[i, i] for i in range(100)], iteration=[i // 2 for i in range(100)])
    for over in ("iteration", "start_iteration"):
        result = tl.state_histogram(ds, "x", over=over, bins=10)
        assert result.sizes == {over: 40, "bin": 10}
        assert (result["last"] >= result["first"]).all()
        assert result["first"].values[0] == 0
        assert result["last"].values[-1] == 49
    by_reason = tl.state_histogram(ds, "x", over="end_reason", bins=2)
    assert by_reason["count"].values.tolist() == [[100, 100]]
    assert "first" not in by_reason.coords
    assert tl.state_histogram(ds, "x", over="phase", bins=2).sizes["phase"] == 3


def test_integers_that_span_much_come_in_bins():
    assert tl.state_histogram(recording([0, 1023]), "x").sizes["value"] == 1024
    wide = tl.state_histogram(recording([0, 1024]), "x")
    assert wide["count"].values.sum(axis=1).tolist() == [1, 1]


def test_bins_of_integers_span_equally_many():
    each = tl.state_histogram(recording(np.arange(1, 1 + 2 * 1050)), "x", over="env")  # 42 in each of 50
    assert each["count"].values.tolist() == [[42] * 50]
    uneven = tl.state_histogram(recording(np.arange(-5, 1100)), "x", over="env")
    assert uneven["count"].values.tolist() == [[23] * 48 + [1]]
    far = tl.state_histogram(recording(np.array([0, 2**64 - 1], np.uint64)), "x")
    assert far["count"].values[:, [0, -1]].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("over", ["time", "iteration", "flag"])
def test_every_form_equals_a_loop(form, over, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    edges = [-3, 0, 1, 101]
    result = tl.state_histogram(in_form(ds, form, tmp_path), "obs", over=over, bins=edges)
    assert result["count"].dims == (over, "obs_dim_0", "bin")
    labels = ds[over].broadcast_like(ds["mask"]).values
    for label in result[over].values:
        rows = ds["obs"].values[(labels == label) & ds["mask"].values]
        want = [np.histogram(rows[:, k], edges)[0].tolist() for k in range(3)]
        assert result["count"].sel({over: label}).values.tolist() == want


def test_nan_is_reported():
    with pytest.warns(UserWarning, match="^state_histogram: 1 values of 'x' are NaN") as seen:
        result = tl.state_histogram(recording([np.nan, 1.0], [2.0]), "x", bins=2)
    assert seen[0].filename == __file__
    assert result.attrs["num_nan"] == 1
    assert result["count"].values.sum() == 2


@pytest.mark.parametrize("over", ["time", "iteration", "seed"])
def test_of_no_episode(blank, over):
    assert tl.state_histogram(blank, "x", over=over)["count"].shape == (0, 50)


def test_what_is_refused():
    with pytest.raises(ValueError, match="state_histogram: 'x' has the dim 'last'"):
        tl.state_histogram(recording([[1.0]], dims={"x": ["last"]}), "x")
    with pytest.raises(KeyError, match="no coordinate to group by 'tim'. Did you mean 'time'"):
        tl.state_histogram(recording([1.0]), "x", over="tim")
    with pytest.raises(TypeError, match="state_histogram: 'x' has dtype <U1"):
        tl.state_histogram(recording(["a"]), "x", bins=2)
