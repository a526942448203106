"""Histograms of actions: visible counts, a plain loop, and what does not change them."""

import json

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from ragged import FORMS, actions, flat, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl


def counts(ds, field="action", **options):
    """Return {value: count} of a histogram over one component."""
    result = tl.action_histogram(ds, field, **options)
    return dict(zip(result["value"].values.tolist(), result["count"].values.tolist(), strict=True))


def test_values_run_from_the_smallest_to_the_largest():
    result = tl.action_histogram(actions([2, 5, 2], [3], end_reason=["terminated", "cut"]))
    assert result["value"].values.tolist() == [2, 3, 4, 5]
    assert result["count"].values.tolist() == [2, 1, 0, 1]
    assert result["count"].dtype == np.int64
    assert result["count"].dims == ("value",)
    assert result["share"].values.tolist() == [0.5, 0.25, 0, 0.25]
    assert result.attrs["num_transitions"] == 4
    assert result.attrs["num_cut"] == 1


def test_labels_name_all_actions_from_zero():
    result = tl.action_histogram(actions([2, 0]), labels=["left", "stay", "right"])
    assert result["value"].values.tolist() == [0, 1, 2]
    assert result["label"].values.tolist() == ["left", "stay", "right"]
    assert result["count"].values.tolist() == [1, 0, 1]


def test_a_mapping_names_values():
    result = tl.action_histogram(actions([1, 0, 1]), labels={1: "right", 0: "left"})
    assert result["label"].values.tolist() == ["left", "right"]
    assert result["count"].values.tolist() == [1, 2]
    result = tl.action_histogram(actions([-1, 5]), labels={5: "up", -1: "down", 7: "stay"})
    assert result["value"].values.tolist() == [-1, 5, 7]
    assert result["label"].values.tolist() == ["down", "up", "stay"]
    assert result["count"].values.tolist() == [1, 1, 0]


def test_a_mapping_names_bools_and_text():
    result = tl.action_histogram(actions([True], dtype=bool), labels={True: "on", False: "off"})
    assert result["label"].values[result["count"].values == 1].tolist() == ["on"]
    result = tl.action_histogram(actions(["b", "b"], dtype="<U1"), labels={"b": "brake", "a": "accelerate"})
    assert result["label"].values.tolist() == ["accelerate", "brake"]
    assert result["count"].values.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        ({0: "a"}, ValueError, "names 1 actions, 0 to 0, but 'action' also has the value 1"),
        ({5: "a"}, ValueError, "names 1 actions, 5, but 'action' also has the value 1"),
        ({0.5: "a"}, ValueError, "has the key 0.5"),
        ({0: "a", "1": "b"}, ValueError, "all numbers or all text"),
        ({"1": "b"}, ValueError, "holds numbers"),
        ("ab", TypeError, "expected a list of names"),
        ({"a", "b"}, TypeError, "expected a list of names"),
    ],
)
def test_labels_that_do_not_fit(labels, error, match):
    with pytest.raises(error, match=match):
        tl.action_histogram(actions([0, 1]), labels=labels)


@pytest.mark.parametrize("values", [[3], [-1]])
def test_an_action_without_a_label_is_refused(values):
    with pytest.raises(
        ValueError, match=f"labels= names 3 actions, 0 to 2, but 'action' also has the value {values[0]}"
    ):
        tl.action_histogram(actions(values), labels=["a", "b", "c"])


def test_a_wide_range_lists_what_was_seen():
    assert counts(actions([7, 2000, 7])) == {7: 2, 2000: 1}
    assert len(counts(actions([0, 1023]))) == 1024
    assert len(counts(actions([0, 1024]))) == 2


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.uint8, [0, 255, 255]),
        (np.int8, [-128, 127, 127]),
        (np.int64, [-(2**62), 2**62, 2**62]),
        (np.uint64, [0, 2**64 - 1, 2**64 - 1]),
        (np.uint64, [2**64 - 2, 2**64 - 1, 2**64 - 1]),
    ],
)
def test_extremes_of_integers(dtype, values):
    assert {v: c for v, c in counts(actions(values, dtype=dtype)).items() if c} == {values[0]: 1, values[1]: 2}


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i8", "?"])
def test_integers_of_any_width_with_and_without_groups(dtype):
    ds = actions([0, 1, 1], [1], dtype=dtype)
    assert counts(ds) == {0: 1, 1: 3}
    assert tl.action_histogram(ds, by="env")["count"].values.sum(axis=0).tolist() == [1, 3]


def test_bools_are_counted_as_bools():
    assert counts(actions([True, False, True], dtype=bool)) == {False: 1, True: 2}
    assert counts(actions([True], dtype=bool)) == {True: 1}
    result = tl.action_histogram(actions([True], dtype=bool), labels=["off", "on"])
    assert result["count"].values.tolist() == [0, 1]


def test_text_is_counted_as_text():
    assert counts(actions(["b", "a"], ["b"], dtype="<U1")) == {"a": 1, "b": 2}


def test_integers_that_where_made_floats_are_counted_one_by_one():
    ds = actions([1, 2], [2])
    ds["action"] = ds["action"].where(ds.mask)
    assert ds["action"].dtype.kind == "f"
    assert counts(ds) == {1: 1, 2: 2}


def test_bools_that_where_made_objects_are_counted_one_by_one():
    ds = actions([True, False], [True], dtype=bool)
    ds["action"] = ds["action"].where(ds.mask)
    assert counts(ds) == {False: 1, True: 2}


def test_missing_integers_are_reported():
    ds = actions([1, 2], [2])
    ds["action"] = ds["action"].where(ds["action"] != 1)
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN") as seen:
        result = tl.action_histogram(ds)
    assert seen[0].filename == __file__
    assert result["value"].values.tolist() == [2]
    assert result["count"].values.tolist() == [2]
    assert result.attrs["num_nan"] == 1


def test_integers_that_became_fractions_are_binned():
    ds = actions([1, 2])
    result = tl.action_histogram(ds.assign(k=ds["action"] * 0.5), "k")
    assert result.sizes["bin"] == 50
    assert result["count"].values[[0, -1]].tolist() == [1, 1]
    assert tl.action_histogram(ds.assign(k=ds["action"] * 0.5), "k", bins=2)["count"].values.tolist() == [1, 1]


# Arithmetic keeps the attributes of what it was computed from ------------------------------------------------


@pytest.fixture
def positions():
    return tl.from_episodes(
        [
            {"x": np.array([0.25, 0.75, 1.5]), "flag": np.array([True, False, True])},
            {"x": np.array([2.25]), "flag": np.array([True])},
        ]
    )


def test_a_comparison_is_counted_as_bools(positions):
    ds = positions.assign(near=positions["x"] < 1)
    assert ds["near"].attrs["recorded_dtype"] == "float64"
    assert counts(ds, "near") == {False: 2, True: 2}
    assert counts(ds.assign(near=ds["near"].where(ds["mask"], False)), "near") == {False: 2, True: 2}
    assert counts(ds.assign(near=ds["near"].astype(object).where(ds["mask"])), "near") == {False: 2, True: 2}


def test_rounded_numbers_are_counted_one_by_one(positions):
    ds = positions.assign(k=positions["x"].fillna(0).round().astype(int))
    assert counts(ds, "k") == {0: 1, 1: 1, 2: 2}


def test_a_multiple_of_bools_is_no_bool(positions):
    assert counts(positions.assign(k=positions["flag"] * 2.0), "k") == {0: 1, 1: 0, 2: 3}


@pytest.mark.parametrize("value", [1e300, np.inf, -np.inf])
def test_integers_that_became_no_integers_are_binned(value):
    ds = actions([1, 2])
    ds = ds.assign(k=ds["action"].where(ds["action"] != 2, value))
    assert "bin" in tl.action_histogram(ds, "k").dims


def test_integers_beyond_int64_that_where_made_floats():
    ds = actions([2**63, 2**63 + 2**62], [1], dtype=np.uint64)
    found = counts(ds.assign(action=ds["action"].where(ds["mask"])))
    assert found == {1: 1, 2**63: 1, 2**63 + 2**62: 1}


def test_text_that_is_missing_is_reported():
    ds = actions(["b", "a"], ["b"], dtype="<U1")
    ds["action"] = ds["action"].where(ds["action"] != "b")
    with pytest.warns(UserWarning, match="2 values of 'action' are NaN"):
        assert counts(ds) == {"a": 1}


def test_components_are_counted_by_themselves():
    ds = actions([[0, 2], [1, 2]], [[1, 0]], dims={"action": ["joint"]}, coords={"joint": ["hip", "knee"]})
    result = tl.action_histogram(ds)
    assert result["count"].dims == ("joint", "value")
    assert result["joint"].values.tolist() == ["hip", "knee"]
    assert result["count"].values.tolist() == [[1, 2, 0], [1, 0, 2]]
    assert result["share"].sum("value").values.tolist() == [1, 1]


# Bins -------------------------------------------------------------------------------------------------------


def test_continuous_actions_fall_into_bins():
    result = tl.action_histogram(actions([0.0, 0.4, 1.0], [0.5], dtype=np.float64), bins=2)
    assert result["bin"].values.tolist() == [0.25, 0.75]
    assert result["bin_left"].values.tolist() == [0, 0.5]
    assert result["bin_right"].values.tolist() == [0.5, 1]
    assert result["count"].values.tolist() == [2, 2]
    assert tl.action_histogram(actions([0.5], dtype=np.float32)).sizes["bin"] == 50


def test_bins_may_be_edges_and_the_rest_is_counted():
    result = tl.action_histogram(actions([-1.0, 0.0, 0.5, 2.0, 5.0], dtype=np.float64), bins=[0, 0.5, 2])
    assert result["count"].values.tolist() == [1, 2]
    assert (result.attrs["num_below"], result.attrs["num_above"]) == (1, 1)


def test_nan_is_reported_and_inf_lies_outside():
    with pytest.warns(UserWarning, match="1 values of 'action' are NaN"):
        result = tl.action_histogram(actions([0.0, np.nan, np.inf, 1.0], [-np.inf, np.inf], dtype=np.float32), bins=2)
    assert result["count"].values.tolist() == [1, 1]
    assert [result.attrs[f"num_{key}"] for key in ("nan", "below", "above")] == [1, 1, 2]


def test_a_single_value_has_a_bin():
    result = tl.action_histogram(actions([3.0, 3.0], dtype=np.float16), bins=3)
    assert result["count"].values.tolist() == [0, 2, 0]


WIDE = [
    ([-1e308, 1e308], np.float64),
    ([-np.finfo(np.float64).max, 0.0, np.finfo(np.float64).max], np.float64),
    ([1e17, 1e17], np.float64),
    ([1e20], np.float64),
    ([np.finfo(np.float64).max] * 2, np.float64),
    ([-np.finfo(np.float64).max], np.float64),
    ([3e38], np.float32),
    ([1.0, 1.0 + 2**-52], np.float64),
    ([0.0, 5e-324], np.float64),
    ([2**63 - 1, 2**63, 2**63 + 5000], np.uint64),
    ([2**64 - 1] * 3, np.uint64),
    ([-(2**63), 2**63 - 1], np.int64),
]


@pytest.mark.parametrize("bins", [1, 4, 50, 1001])
@pytest.mark.parametrize(("values", "dtype"), WIDE)
def test_every_finite_value_is_counted_once(values, dtype, bins):
    result = tl.action_histogram(actions(values, dtype=dtype), bins=bins)
    assert result["count"].sum() == len(values)
    assert (result["bin_left"].values < result["bin_right"].values).all()
    assert ((result["bin_left"] <= result["bin"]) & (result["bin"] <= result["bin_right"])).all()
    assert [result.attrs[f"num_{key}"] for key in ("nan", "below", "above")] == [0, 0, 0]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5), st.integers(1, 70))
@examples(100)
def test_any_finite_values_are_counted_once(values, bins):
    result = tl.action_histogram(actions(values, dtype=np.float64), bins=bins)
    assert result["count"].sum() == len(values)
    assert (result["bin_left"].values < result["bin_right"].values).all()


def test_edges_may_span_all_floats():
    result = tl.action_histogram(actions([-1e308, 0.0, 1e308], dtype=np.float64), bins=[-1.5e308, 0, 1.5e308])
    assert result["count"].values.tolist() == [1, 2]


def test_only_nan():
    with pytest.warns(UserWarning, match="2 values"):
        result = tl.action_histogram(actions([np.nan, np.nan], dtype=np.float32), bins=2)
    assert result["count"].values.tolist() == [0, 0]
    assert np.isnan(result["share"]).all()


def test_bins_also_for_integers():
    result = tl.action_histogram(actions([0, 1, 2, 9]), bins=[0, 3, 10])
    assert result["count"].values.tolist() == [3, 1]


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=30), st.integers(1, 60))
@examples(100)
def test_bins_are_those_of_numpy(values, bins):
    values = np.array(values, np.float32)
    result = tl.action_histogram(actions(values, dtype=np.float32), bins=bins)
    edges = np.append(result["bin_left"].values, result["bin_right"].values[-1])
    np.testing.assert_array_equal(result["count"], np.histogram(values.astype(np.float64), edges)[0])


@pytest.mark.parametrize("bins", [0, True, [1.0], [2.0, 1.0], [0.0, np.inf]])
def test_bins_that_are_none(bins):
    with pytest.raises(ValueError, match=r"bins=.*expected"):
        tl.action_histogram(actions([0.5], dtype=np.float32), bins=bins)


def test_labels_for_bins_are_refused():
    with pytest.raises(ValueError, match="'action' is binned, expected a field of integers"):
        tl.action_histogram(actions([0.5], dtype=np.float32), labels=["a"])


# Groups -----------------------------------------------------------------------------------------------------


def test_groups_by_a_coordinate():
    ds = actions([1, 1], [2], [1], end_reason=["terminated", "cut", "terminated"])
    result = tl.action_histogram(ds, by="end_reason")
    assert result["count"].dims == ("end_reason", "value")
    assert result["end_reason"].values.tolist() == ["cut", "terminated"]
    assert result["count"].values.tolist() == [[0, 1], [3, 0]]
    assert tl.action_histogram(ds, by="complete")["complete"].values.tolist() == [False, True]


def test_groups_by_the_iteration_of_each_transition():
    ds = tl.from_rollout(
        {
            "action": np.array([[1], [1], [2], [2]]),
            "terminated": np.zeros((4, 1), bool),
            "truncated": np.zeros((4, 1), bool),
        }
    )
    ds["iteration"] = ds["iteration"].copy(data=np.array([[0, 0, 0, 1]]))
    result = tl.action_histogram(ds, by="iteration")
    assert result["count"].values.tolist() == [[2, 1], [0, 1]]


def test_groups_by_a_comparison(positions):
    ds = positions.assign(near=(positions["x"] < 1).where(positions["mask"], False))
    result = tl.action_histogram(ds, "flag", by="near")
    assert result["near"].values.tolist() == [False, True]
    assert result["count"].values.tolist() == [[0, 2], [1, 1]]


def test_groups_by_integers_that_where_made_floats():
    ds = tl.from_episodes(
        [{"action": np.array([1, 2, 2]), "x": np.arange(3)}, {"action": np.array([2]), "x": np.array([0])}]
    )
    ds["action"] = ds["action"].where(ds["x"] != 1)
    with pytest.warns(UserWarning, match="by='action': 1 of 4 transitions have no value"):
        result = tl.action_histogram(ds, "x", by="action")
    assert result["action"].values.tolist() == [1, 2]
    assert result["action"].attrs["left_out"] == 1
    assert result["count"].values.tolist() == [[1, 0, 0], [1, 0, 1]]


@pytest.mark.parametrize("dim", ["value", "label", "bin", "bin_left", "bin_right", "count", "share"])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_dim_called_as_the_result_is_refused(dim, dtype):
    ds = actions([[0, 2], [1, 2]], dtype=dtype, dims={"action": [dim]})
    with pytest.raises(ValueError, match=f"'action' has the dim '{dim}', a name that the result uses itself"):
        tl.action_histogram(ds)
    mended = tl.action_histogram(ds.rename({dim: "joint"}))
    assert mended["count"].sum() == 4


@pytest.mark.parametrize("dim", ["mean", "n", "group"])
def test_other_names_are_free(dim):
    result = tl.action_histogram(actions([[0, 2], [1, 2]], dims={"action": [dim]}))
    assert result["count"].dims == (dim, "value")


# Any data ---------------------------------------------------------------------------------------------------


@given(lengths, st.integers(0, 3), st.sampled_from(["action", "byte", "flag"]))
@examples(30)
def test_as_a_plain_count(drawn, seed, field):
    ds = make_dataset(drawn, seed)
    seen = flat(ds.load(), field)
    found = {value: count for value, count in counts(ds, field).items() if count}
    assert found == {value: int((seen == value).sum()) for value in np.unique(seen).tolist()}


@pytest.mark.parametrize(
    "options", [{}, {"by": "env"}, {"by": "iteration"}, {"bins": 3}, {"field": "pair"}, {"field": "obs"}]
)
@pytest.mark.parametrize("form", FORMS)
def test_the_same_in_every_form(form, options, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    xr.testing.assert_equal(
        tl.action_histogram(in_form(ds, form, tmp_path), **options), tl.action_histogram(ds, **options)
    )


@pytest.mark.parametrize("field", ["action", "obs", "pair", "flag"])
def test_no_episode(field):
    result = tl.action_histogram(make_dataset([]), field, by="env")
    assert result["count"].sum() == 0
    assert result.sizes["env"] == 0


def test_no_episode_and_no_field(blank):
    result = tl.action_histogram(blank)
    assert result["count"].dims == result["share"].dims == ("value",)
    assert (result["count"].shape, result["count"].dtype) == ((0,), np.int64)
    assert tl.action_histogram(blank, "obs.camera", by="seed")["count"].dims == ("seed", "value")
    assert tl.action_histogram(blank, bins=[0, 1, 2])["count"].values.tolist() == [0, 0]
    assert tl.action_histogram(blank, labels=["a", "b"], by="end_reason")["count"].shape == (0, 2)
    by_reason = tl.action_histogram(blank, by="end_reason", groups=["terminated", "cut"])
    assert by_reason["count"].shape == (2, 0)
    assert list(blank.data_vars) == ["iteration"]


def test_a_slice_of_time_is_counted_as_it_is():
    ds = actions([1, 2, 3], [4])
    assert counts(ds.isel(time=slice(1, None))) == {2: 1, 3: 1}


def test_what_was_made_survives_a_file(tmp_path):
    result = tl.action_histogram(make_dataset([3, 2]), by="env")
    result.to_netcdf(tmp_path / "h.nc", engine="h5netcdf")
    json.dumps(result.attrs)
    with xr.open_dataset(tmp_path / "h.nc", engine="h5netcdf") as again:
        xr.testing.assert_equal(again, result)
        assert again.attrs["made_by"] == "trajlab.action_histogram"
        assert again.attrs["field"] == "action"


def test_a_misspelt_field():
    with pytest.raises(KeyError, match="Did you mean 'action'"):
        tl.action_histogram(make_dataset([1]), "acton")


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="'action' has dtype complex64"):
        tl.action_histogram(actions([1j], dtype=np.complex64))


def test_units_and_names_are_carried():
    result = tl.action_histogram(actions([0.5], dtype=np.float32, units={"action": "N m"}))
    assert result["bin"].attrs == {"long_name": "action", "units": "N m"}


class TestSpace:
    """A field whose attributes say which values there are."""

    @pytest.fixture
    def ds(self):
        ds = tl.from_episodes([{"action": np.array([-1, 1, 1])}, {"action": np.array([0])}])
        ds["action"].attrs |= {"n": 4, "start": -1}
        return ds

    def test_values_never_seen_are_listed(self, ds):
        result = tl.action_histogram(ds)
        assert result["value"].values.tolist() == [-1, 0, 1, 2]
        assert result["count"].values.tolist() == [1, 1, 2, 0]

    def test_of_no_episode(self, ds):
        result = tl.action_histogram(ds.isel(episode=[]))
        assert result["value"].values.tolist() == [-1, 0, 1, 2]
        assert result["count"].values.tolist() == [0, 0, 0, 0]

    def test_what_was_computed_from_the_field_is_not_bound_by_it(self, ds):
        result = tl.action_histogram(ds.assign(action=ds["action"] + 5))
        assert result["value"].values.tolist() == [4, 5, 6]

    def test_labels_go_before(self, ds):
        result = tl.action_histogram(ds, labels={-1: "left", 0: "none", 1: "right"})
        assert result["value"].values.tolist() == [-1, 0, 1]
