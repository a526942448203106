"""What `by` and `groups` mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged import make_dataset
from strategies import examples

import trajlab as tl
from trajlab.analysis.grouping.cut import cut_values
from trajlab.analysis.grouping.groups import make_groups

DAYS = np.arange("2026-01-01", "2026-01-10", dtype="datetime64[D]")


def cut(values, groups=None, weights=None):
    """Return {label: values in it}."""
    values = np.asarray(values)
    weights = np.ones(len(values), int) if weights is None else np.asarray(weights)
    labels, codes, _ = cut_values(values, weights, groups, "x", "episodes")
    return {label: values[codes == code].tolist() for code, label in enumerate(labels.tolist())}


def with_coord(values):
    ds = make_dataset([1] * len(values))
    return ds.assign_coords(x=("episode", np.asarray(values)))


def test_up_to_eight_numbers_are_groups_of_their_own():
    assert cut(range(8)) == {i: [i] for i in range(8)}
    assert cut([0.5, 1.5]) == {0.5: [0.5], 1.5: [1.5]}
    assert cut([False, True]) == {False: [False], True: [True]}


def test_more_are_cut_into_four_ranges():
    found = cut(range(500))
    assert list(found) == ["0–124", "125–249", "250–374", "375–499"]
    assert [len(values) for values in found.values()] == [125] * 4


def test_ranges_have_equal_weight_not_equal_width():
    weights = [30] + [10] * 9
    assert cut(range(10), weights=weights) == {"0": [0], "1–3": [1, 2, 3], "4–6": [4, 5, 6], "7–9": [7, 8, 9]}


@given(st.lists(st.integers(1, 50), min_size=9, max_size=40), st.integers(1, 8))
@examples(50)
def test_ranges_are_whole_ascending_and_fair(weights, number):
    values = np.arange(len(weights)) * 3
    found = cut(values, number, weights)
    assert [v for group in found.values() for v in group] == values.tolist()
    assert 1 <= len(found) <= number
    heaviest = max(sum(weights[v // 3] for v in group) for group in found.values())
    assert heaviest <= sum(weights) / number + 2 * max(weights)


def test_a_number_of_groups():
    assert list(cut(range(100), 2)) == ["0–49", "50–99"]
    assert cut([1, 2, 3], 5) == {1: [1], 2: [2], 3: [3]}


def test_edges():
    assert cut(range(6), [0, 2, 5]) == {"0–1": [0, 1], "2–5": [2, 3, 4, 5]}
    assert cut([0.0, 0.5, 1.0, 7.0], [0, 0.5, 1]) == {"0–0.5": [0.0], "0.5–1": [0.5, 1.0]}
    assert cut(range(4), np.array([1, 3])) == {"1–3": [1, 2, 3]}


def test_a_mapping_takes_what_sel_takes():
    assert cut(range(6), {"early": slice(None, 1), "late": slice(4, 5), "odd one": 3}) == {
        "early": [0, 1],
        "late": [4, 5],
        "odd one": [3],
    }
    assert cut(["a", "b", "c"], {"both": ["a", "c"]}) == {"both": ["a", "c"]}


def test_texts_in_a_given_order():
    assert cut(["a", "b", "c"], ["c", "a"]) == {"c": ["c"], "a": ["a"]}


def test_labels_of_fractions_have_digits_enough():
    assert list(cut(np.arange(12) / 1000 + 5)) == ["5–5.002", "5.003–5.005", "5.006–5.008", "5.009–5.011"]


def test_labels_of_negative_numbers():
    assert list(cut(range(-8, 4))) == ["-8 to -6", "-5 to -3", "-2 to 0", "1 to 3"]


@pytest.mark.parametrize(
    ("values", "groups", "error", "match"),
    [
        ([str(i) for i in range(9)], None, ValueError, r"9 different texts, more than 8; say which with\s+groups="),
        (["a", "b"], 2, TypeError, "is text, which has no ranges"),
        (["a", "b"], ["c"], KeyError, "no value of x 'c'"),
        (range(9), 0, ValueError, "groups=0; expected at least 1"),
        (range(9), [3], ValueError, "at least two ascending numbers"),
        (range(9), [3, 1], ValueError, "at least two ascending numbers"),
        (range(9), "early", TypeError, "expected a number of groups, edges"),
        (range(9), {}, ValueError, "names no group; expected at least one"),
        (["a", "b"], [], ValueError, "names no group; expected at least one"),
        (
            range(9),
            {"early": slice("a", "b")},
            TypeError,
            r"groups\['early'\]=slice\('a', 'b'.*of dtype int64 \(0, 1, 2",
        ),
        (range(9), {"early": ["a"]}, TypeError, r"groups\['early'\].*does not compare"),
        (["a", "b"], {"early": slice(1, 2)}, TypeError, r"groups\['early'\].*does not compare"),
        (DAYS, None, TypeError, r"9 different values of dtype datetime64\[D\].*slice\(None, '2026-01-01'\)"),
        (DAYS, 2, TypeError, "9 different values of dtype datetime64"),
        (DAYS, [0, 1], TypeError, "9 different values of dtype datetime64"),
        (range(9), {"a": slice(0, 3), "b": [3, 4]}, ValueError, r"groups\['b'\].*shares values with another"),
    ],
)
def test_groups_that_do_not_fit(values, groups, error, match):
    with pytest.raises(error, match=match):
        cut(values, groups)


def test_times_are_chosen_by_slices():
    found = cut(DAYS, {"early": slice(None, DAYS[1]), "late": slice("2026-01-08", None)})
    assert {label: len(days) for label, days in found.items()} == {"early": 2, "late": 2}


@pytest.mark.parametrize("groups", [["terminated", "done"], {"terminated": "terminated", "done": ["done"]}])
def test_an_end_reason_that_no_episode_has_is_an_empty_group(groups):
    ds = make_dataset([1, 1])
    ds["end_reason"] = ("episode", ["terminated", "truncated"])
    found = make_groups(ds, "end_reason", groups)
    assert found.labels.tolist() == ["terminated", "done"]
    assert found.of_episode.tolist() == [0, -1]
    assert found.attrs["left_out"] == 1
    with pytest.raises(KeyError, match="Did you mean 'terminated'"):
        make_groups(ds, "end_reason", {"some": ["terminted", "truncated"]})


def test_ranges_hold_equal_numbers_of_episodes():
    groups = make_groups(with_coord(np.arange(20) // 2), "x")
    assert np.bincount(groups.of_episode).tolist() == [4, 6, 4, 6]
    assert groups.attrs["groups"] == "x cut into 4 ranges with about as many episodes each"


def test_groups_of_iteration_hold_equal_numbers_of_transitions():
    ds = make_dataset([1] * 40 + [40])
    ds["iteration"] = ds["iteration"].copy(data=np.tile(np.arange(40), (41, 1)))
    groups = make_groups(ds, "iteration")
    assert groups.of_episode is None
    assert groups.labels.tolist() == ["0", "1–13", "14–26", "27–39"]
    assert groups.attrs["groups"] == "iteration cut into 4 ranges with about as many transitions each"


def test_episodes_without_a_group_are_counted():
    groups = make_groups(with_coord([0, 1, 2, 3]), "x", {"few": [1, 2]})
    assert groups.of_episode.tolist() == [-1, 0, 0, -1]
    assert groups.attrs["left_out"] == 2


def test_nan_is_in_no_group_and_reported():
    with pytest.warns(UserWarning, match="by='x': 1 of 3 episodes have no value there"):
        groups = make_groups(with_coord([0.5, np.nan, 1.5]), "x")
    assert groups.of_episode.tolist() == [0, -1, 1]


@pytest.mark.parametrize("missing", [None, np.nan])
def test_none_among_objects_is_in_no_group(missing):
    with pytest.warns(UserWarning, match="by='x': 1 of 3 episodes have no value"):
        groups = make_groups(with_coord(np.array(["b", missing, "a"], object)), "x")
    assert groups.labels.tolist() == ["a", "b"]
    assert groups.of_episode.tolist() == [1, -1, 0]
    assert groups.attrs["left_out"] == 1


def test_no_time_is_in_no_group():
    with pytest.warns(UserWarning, match="1 of 2 episodes"):
        groups = make_groups(with_coord(np.array(["2026-01-01", "NaT"], "datetime64[ns]")), "x")
    assert groups.of_episode.tolist() == [0, -1]


def test_text_from_a_file_is_text(tmp_path):
    groups = make_groups(with_coord(np.array(["b", "a"], object)), "x")
    assert groups.labels.tolist() == ["a", "b"]


def test_a_misspelt_by():
    with pytest.raises(KeyError, match="Did you mean 'start_iteration'"):
        make_groups(make_dataset([1]), "start_iteraton")


def test_a_component_is_no_variable_to_group_by():
    with pytest.raises(
        KeyError, match=r"by='obs\[0\]' is a component of a field.*Make one of it first, as in ds\.assign"
    ):
        make_groups(make_dataset([1]), "obs[0]")


def test_by_with_other_dims_is_refused():
    with pytest.raises(ValueError, match="by='obs' has dims"):
        make_groups(make_dataset([1]), "obs")


def test_continuous_by_over_transitions_is_refused():
    with pytest.raises(ValueError, match="by='reward' is continuous"):
        make_groups(make_dataset([1]), "reward")


def test_a_name_that_results_use_is_refused():
    ds = make_dataset([1]).assign_coords(n=("episode", [1]))
    with pytest.raises(ValueError, match="by='n' is a name that the result uses"):
        make_groups(ds, "n")


def test_groups_without_by_are_refused():
    with pytest.raises(ValueError, match="groups=3 needs by="):
        make_groups(make_dataset([1]), None, 3)


@pytest.mark.parametrize("by", [["env"], 5, True])
def test_by_is_a_name(by):
    ds = tl.from_episodes([{"action": np.array([0, 1])}])
    with pytest.raises(TypeError, match=r"by=.*; expected the name of a coordinate or variable, a text"):
        tl.action_runs(ds, by=by)
    with pytest.raises(TypeError, match=r"by=.*; expected the name of a coordinate over episode, a text"):
        tl.milestones(ds, lambda ds: ds["action"] > 0, by=by)


@pytest.mark.parametrize("field", [["action"], 5, None])
def test_a_field_is_a_name(field):
    with pytest.raises(TypeError, match=r"field=.*; expected the name of a field, a text"):
        tl.action_runs(tl.from_episodes([{"action": np.array([0, 1])}]), field)


@pytest.mark.parametrize("by", ["env", "time", "phase"])
def test_true_is_no_number_of_groups(by):
    with pytest.raises(TypeError, match="groups=True; "):
        tl.action_runs(tl.from_episodes([{"action": np.array([0, 1])}]), by=by, groups=True)
