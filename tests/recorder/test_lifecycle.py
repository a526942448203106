"""Which environments and how much is recorded, when a recorder is open, and what it says of itself."""

import copy
import html.parser
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chunks import assert_holds, make_chunk, make_step
from hypothesis import given
from hypothesis import strategies as st
from reference import Mark, Record, Step
from strategies import examples, recordings

import trajlab as tl


def fill(recorder, start, stop, home="numpy", num_envs=3, rows=5):
    for first in range(start, stop, rows):
        recorder.record(make_chunk(range(first, first + rows), num_envs, home))
    return recorder


# Environments ------------------------------------------------------------------------------------------------


ENVS = [
    ([0, 3], [0, 3]),
    ([3, 0], [0, 3]),
    (2, [2]),
    (slice(1, None), [1, 2, 3]),
    (slice(None, None, 2), [0, 2]),
    (np.array([True, False, True, False]), [0, 2]),
    ([False, True, False, True], [1, 3]),
    (np.array([1], np.uint8), [1]),
    (jnp.array([1, 2]), [1, 2]),
]


@pytest.mark.parametrize(
    ("home", "envs", "want"),
    [("numpy", *choice) for choice in ENVS] + [(home, *choice) for home in ("jax", "mixed") for choice in ENVS[::4]],
    ids=str,
)
def test_some_environments_keep_their_numbers(home, envs, want):
    recorder = fill(tl.Recorder(envs=envs), 0, 20, home, num_envs=4)
    recorder.mark_gap(sorted({want[0], 0}))
    for serial in (20, 21):
        recorder.record_step(make_step(serial, 4, home))
    all_of_them = [0, 1, 2, 3]
    step = make_step(22, 4, home)
    recorder.record_step(step, envs=all_of_them)
    recorder.record_step(make_step(23, 4, home), envs=np.ones(4, bool))
    ds = recorder.to_dataset()
    assert np.unique(ds["env"]).tolist() == want
    position = np.searchsorted(want, ds["env"])
    renumbered = ds.assign_coords(env=("episode", position))
    assert renumbered.sizes["episode"] > len(want)
    for env in want:
        own = ds.isel(episode=np.flatnonzero(ds["env"] == env))
        mask = own["mask"].values
        assert own["serial"].values[mask].tolist() == list(range(24))
    assert set(ds.isel(episode=~ds["start_seen"].values)["env"].values) == {want[0], 0} & set(want)


@pytest.mark.parametrize("home", ["numpy", "jax"])
def test_steps_of_environments_of_which_only_some_are_recorded(home):
    recorder = tl.Recorder(envs=[1, 3], num_envs=4)
    for serial, envs in enumerate([[3, 0], [0, 2], [1, 3], [2, 1]]):
        step = jax.tree.map(lambda x, envs=envs: x[np.array(envs)], make_step(serial, 4, home))
        recorder.record_step(step, envs=envs)
    ds = recorder.to_dataset()
    recorded = {env: [] for env in (1, 3)}
    for env, length, row in zip(ds["env"].values, ds["length"].values, ds["serial"].values, strict=True):
        recorded[int(env)] += row[:length].tolist()
    assert recorded == {1: [2, 3], 3: [0, 2]}
    assert recorder.num_recorded_steps == 2


@pytest.mark.parametrize(
    ("envs", "error", "match"),
    [
        ([4], ValueError, r"envs holds \[4\]; there are 4 environments, 0 to 3"),
        ([-1, 0], ValueError, r"envs holds \[-1\]; there are 4 environments"),
        ([1, 1, 2], ValueError, r"envs repeats \[1\]; give each environment once"),
        (np.ones(3, bool), ValueError, r"envs is a mask of shape \(3,\); expected \(4,\)"),
        ([0.5], TypeError, r"envs=\[0.5\]; expected environment numbers, a slice or a bool mask"),
        ("all", TypeError, "envs='all'; expected environment numbers"),
        ([], ValueError, "envs selects none of the 4 environments"),
        (slice(4, None), ValueError, "envs selects none of the 4 environments"),
        (np.zeros(4, bool), ValueError, "envs selects none of the 4 environments"),
    ],
    ids=str,
)
def test_environments_that_there_are_not_are_refused_by_the_first_call(envs, error, match):
    recorder = tl.Recorder(envs=envs)
    with pytest.raises(error, match=match):
        recorder.record(make_chunk(range(5), 4))
    assert recorder.num_recorded_steps == 0


# How much ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["numpy", "jax", "mixed"])
@pytest.mark.parametrize("count", [1, 4, 9])
def test_max_episodes_are_the_first_to_start(home, count):
    plain = fill(tl.Recorder(), 0, 60, home).to_dataset()
    recorder = tl.Recorder(max_episodes=count)
    full_at = None
    for start in range(0, 60, 5):
        fill(recorder, start, start + 5, home)
        if recorder.is_full and full_at is None:
            full_at = start + 5
    ds = recorder.to_dataset()
    want = plain.isel(episode=slice(count))
    want = want.isel(time=slice(int(want["length"].max())))
    assert ds.drop_attrs().load().identical(want.drop_attrs().load())
    ended = int((plain["start_row"] + plain["length"])[:count].max())
    assert full_at is not None
    assert full_at >= ended
    assert recorder.num_recorded_steps <= full_at
    assert (ds.attrs["rows_seen"], ds.attrs["rows_kept"], ds.attrs["rows_dropped"]) == (60, ended, 60 - ended)


def test_a_full_recorder_stores_nothing_more():
    recorder = fill(tl.Recorder(max_episodes=1), 0, 60)
    assert recorder.is_full
    rows, ds = recorder.num_recorded_steps, recorder.to_dataset()
    fill(recorder, 60, 100)
    assert recorder.num_recorded_steps == rows
    assert f"{rows} recorded, {100 - rows} dropped" in repr(recorder)
    assert recorder.to_dataset()["serial"].equals(ds["serial"])
    recorder.reset()
    assert not recorder.is_full
    assert recorder.num_recorded_steps == 0
    fill(recorder, 0, 5)
    assert recorder.num_recorded_steps == 5


@examples(40)
@given(recordings(wide=False), st.integers(1, 6))
def test_is_full_says_at_once_what_all_rows_together_say(recording, count):
    calls, options = recording
    options = options | {"max_episodes": count, "convention": tl.Convention(**options["convention"])}
    recorder = tl.Recorder(**options)
    for number, call in enumerate(calls, start=1):
        play_call(recorder, call)
        if recorder.num_recorded_steps:
            again = tl.Recorder(**options)
            for earlier in calls[:number]:
                play_call(again, earlier)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="no episode|the recording may not be")
                again.to_dataset()
            shares = any(isinstance(one, Step) and one.envs is not None for one in calls[:number])
            assert recorder.is_full == again.is_full or (shares and not recorder.is_full)  # late, never early


def play_call(recorder, call):
    """Make a call of a recording, as NumPy arrays, whose flags have arrived at once."""
    if isinstance(call, Mark):
        (recorder.mark_reset if call.kind == "reset" else recorder.mark_gap)(call.envs)
    elif isinstance(call, Record):
        recorder.record(call.chunk, mask=call.mask, iteration=call.iteration, **call.extra)
    else:
        recorder.record_step(call.step, envs=call.envs, iteration=call.iteration, **call.extra)


def test_without_a_limit_a_recorder_is_never_full():
    assert not tl.Recorder().is_full
    assert not fill(tl.Recorder(), 0, 60).is_full


@pytest.mark.parametrize("name", ["max_episodes", "num_envs"])
@pytest.mark.parametrize("bad", [0, -1, 2.0, "3", True])
def test_numbers_that_make_no_sense_are_refused_at_once(name, bad):
    with pytest.raises(ValueError, match=f"{name}={bad!r}; expected a positive whole number or None"):
        tl.Recorder(**{name: bad})


def test_iterations_are_counted_or_given():
    recorder = fill(tl.Recorder(), 0, 10)
    recorder.record_step(make_step(10))
    recorder.record(make_chunk(range(11, 13)), iteration=np.int64(2))
    ds = recorder.to_dataset()
    assert_holds(ds, range(13))
    iteration = {
        int(s): int(i)
        for s, i in zip(ds["serial"].values[ds["mask"].values], ds["iteration"].values[ds["mask"].values], strict=True)
    }
    assert [iteration[s] for s in range(13)] == [0] * 5 + [1] * 6 + [2] * 2
    assert ds["start_iteration"].values.tolist() == ds["iteration"].values[:, 0].tolist()


@pytest.mark.parametrize("bad", [1.5, "2", True, [1], np.array([1])])
def test_iterations_that_are_no_numbers_are_refused(bad):
    recorder = tl.Recorder()
    with pytest.raises(TypeError, match="iteration=.*; expected a whole number"):
        recorder.record(make_chunk(range(5)), iteration=bad)


@pytest.mark.parametrize("bad", [2**62, -(2**70), np.uint64(2**63)])
def test_iterations_that_no_dataset_could_hold_are_refused(bad):
    with pytest.raises(ValueError, match=r"iteration=.*; expected a number between -2\*\*62 and 2\*\*62"):
        tl.Recorder().record(make_chunk(range(5)), iteration=bad)


# Open, closed, disabled --------------------------------------------------------------------------------------


def test_with_closes_and_closing_twice_does_nothing():
    with tl.Recorder() as recorder:
        fill(recorder, 0, 10)
    recorder.close()
    for call in (
        lambda: recorder.record(make_chunk(range(5))),
        lambda: recorder.record_step(make_step(0)),
        recorder.mark_reset,
        recorder.mark_gap,
    ):
        with pytest.raises(ValueError, match="this Recorder is closed; make a new one to record more"):
            call()
    assert recorder.num_recorded_steps == 10
    assert_holds(recorder.to_dataset(), range(10))
    assert "closed" in repr(recorder)


def test_with_closes_also_after_an_error_and_lets_it_pass():
    with pytest.raises(ZeroDivisionError, match="division"), tl.Recorder() as recorder:  # noqa: PT012
        fill(recorder, 0, 5)
        1 / 0  # noqa: B018
    assert_holds(recorder.to_dataset(), range(5))


def test_a_disabled_recorder_does_nothing():
    with tl.Recorder(enabled=False) as recorder:
        recorder.record("anything", mask=3, iteration="x", state=object())
        recorder.record_step(None, envs=[99])
        recorder.mark_reset([99])
        recorder.mark_gap()
        recorder.reset()
    assert (recorder.is_full, recorder.num_recorded_steps) == (False, 0)
    ds = recorder.to_dataset()
    assert dict(ds.sizes) == {"episode": 0, "time": 0}
    assert {"length", "mask", "env", "end_reason", "complete", "start_row"} <= set(ds.coords)
    assert "disabled: every call is a no-op" in repr(recorder)
    recorder.record("also when closed")


def test_without_any_row_there_is_no_dataset():
    recorder = tl.Recorder()
    with pytest.raises(ValueError, match=r"nothing has been recorded; call record\(chunk\), .* first"):
        recorder.to_dataset()
    fill(recorder, 0, 5).reset()
    with pytest.raises(ValueError, match="nothing has been recorded"):
        recorder.to_dataset()


def test_a_recording_without_episodes_is_an_empty_dataset_with_a_warning():
    recorder = tl.Recorder()
    recorder.record(make_chunk(range(5)), mask=np.zeros((5, 3), bool))
    with pytest.warns(UserWarning, match="no episode"):
        ds = recorder.to_dataset()
    assert (ds.sizes["episode"], ds.sizes["time"]) == (0, 0)
    assert ds["obs.position"].dtype == np.float32
    assert ds.load()["obs.position"].shape == (0, 0, 3)


def test_incomplete_episodes_may_be_dropped():
    recorder = fill(tl.Recorder(), 0, 20)
    ds, complete = recorder.to_dataset(), recorder.to_dataset(incomplete="drop")
    assert complete["episode"].values.tolist() == np.flatnonzero(ds["complete"]).tolist()
    assert complete["complete"].all()
    with pytest.raises(ValueError, match="incomplete='dorp'; expected one of 'keep', 'drop'. Did you mean 'drop'"):
        recorder.to_dataset(incomplete="dorp")


def test_recording_goes_on_after_reset_with_the_same_fields():
    recorder = fill(tl.Recorder(), 0, 10)
    recorder.mark_gap()
    recorder.reset()
    fill(recorder, 50, 60)
    ds = recorder.to_dataset()
    assert_holds(ds, range(50, 60))
    assert ds["start_seen"].all()
    assert (ds["start_iteration"].values[0], ds.attrs["rows_seen"]) == (0, 10)


# What it says of itself --------------------------------------------------------------------------------------


class Texts(html.parser.HTMLParser):
    """Collects the texts of an HTML fragment and checks that its tags match."""

    def __init__(self, fragment):
        super().__init__()
        self.open, self.texts, self.cells, self.tags = [], [], [], set()
        self.feed(fragment)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-1] in ("td", "th"):
            self.cells.append(data)


def example(home="mixed"):
    convention = tl.Convention(final_observation="last", alignment={"state.*": "result"})
    recorder = tl.Recorder(convention=convention, envs=[0, 2], max_episodes=50)
    chunk = make_chunk(range(8), 3, home)
    recorder.record(chunk | {"last": chunk["obs"], "<b>&": chunk["reward"]}, state={"x": chunk["reward"]})
    return recorder


def test_before_the_first_chunk():
    assert "nothing recorded yet" in repr(tl.Recorder())
    assert "nothing recorded yet" in Texts(tl.Recorder()._repr_html_()).texts


@pytest.mark.parametrize("home", ["numpy", "jax", "mixed"])
def test_repr_lists_everything(home):
    recorder = example(home)
    lines = repr(recorder).splitlines()
    assert lines[0] == "<trajlab.Recorder>"
    text = "\n".join(lines)
    held = recorder._session.log.nbytes()
    for part in (
        "8 recorded, 0 dropped",
        "2 of 3",
        "the first 50 to start; not full yet",
        "observation=obs (found)",
        "final_observation=last (given)",
        "alignment={'state.*': 'result'} (given)",
        "autoreset=same_step (assumed)",
        "flags=row (assumed)",
    ):
        assert part in text
    assert (held["device"] > 0, held["host"] > 0) == (home != "numpy", home != "jax")
    assert ("0 B on the device" in text, "0 B on the host" in text) == (home == "numpy", home == "jax")
    fields = {
        line.split()[0]: line.split() for line in lines[lines.index(next(x for x in lines if "dtype" in x)) + 1 :]
    }
    assert {"obs.image", "last.image", "state.x", "terminated", "action"} <= set(fields)
    image = fields["obs.image"]
    assert image[1:5] == ["(2,", "2,", "3)", "uint8"]
    assert image[5:7] == ["192", "B"]
    assert image[-1] == "observation"
    assert "read one row earlier" in next(line for line in lines if "state.x" in line)
    assert "kept as the final observation" in next(line for line in lines if "last.image" in line)


def test_html_says_the_same_as_the_repr():
    recorder = example()
    page = Texts(recorder._repr_html_())
    assert not page.tags & {"script", "style", "link", "b<"}
    for text in (
        "8 recorded, 0 dropped",
        "2 of 3",
        "observation=obs (found)",
        "<b>&",
        "obs.image",
        "uint8",
        "(2, 2, 3)",
        "192 B",
    ):
        assert text in page.texts
    assert page.cells.count("host") + page.cells.count("device") == len(recorder._session.plan.layout.fields)


def test_dropped_rows_and_memory_are_told():
    recorder = fill(tl.Recorder(max_episodes=1), 0, 100)
    assert recorder.is_full
    text = repr(recorder)
    assert "the first 1 to start; full" in text
    assert f"{recorder.num_recorded_steps} recorded, {100 - recorder.num_recorded_steps} dropped" in text
    assert "8.4 MB on the host" in text


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_recorder_is_not_copied(copied):
    with pytest.raises(TypeError, match=r"neither copied nor pickled; keep what it recorded, rec.to_dataset\(\)"):
        copied(tl.Recorder())
