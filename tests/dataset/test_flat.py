"""Transitions in batches: each exactly once, whatever form the Dataset has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragged import FIELDS, FORMS, in_form, lengths, make_dataset
from strategies import examples

import trajlab as tl
from trajlab.dataset import flat
from trajlab.dataset.flat import iter_flat


def gather(ds, fields):
    """Return all transitions as {(episode number, time): tuple of values}, failing where one comes twice."""
    found = {}
    numbers = ds["episode"].values
    for batch in iter_flat(ds, fields):
        assert batch.episode.dtype == np.intp
        assert batch.time.dtype == np.int64
        for i in range(len(batch.episode)):
            key = (int(numbers[batch.episode[i]]), int(batch.time[i]))
            assert key not in found
            found[key] = tuple(np.asarray(batch.values[name][i]).tolist() for name in fields)
    return found


def expected(ds, fields):
    values = {name: np.asarray(ds[name].values) for name in fields}
    return {
        (int(number), int(time)): tuple(values[name][e, t].tolist() for name in fields)
        for e, number in enumerate(ds["episode"].values)
        for t, time in enumerate(ds["time"].values)
        if time < ds["length"].values[e]
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_transition_once_in_every_form(form, tmp_path):
    ds = make_dataset([3, 1, 6, 2, 2, 5, 1, 4])
    fields = [*FIELDS, "iteration"]
    assert gather(in_form(ds, form, tmp_path), fields) == expected(ds.load(), fields)


@given(lengths, st.integers(1, 200), st.sampled_from(["lazy", "loaded", "dask"]), st.data())
@examples(40)
def test_every_transition_once_after_any_selection(drawn, max_bytes, form, data):
    ds = make_dataset(drawn)
    count = ds.sizes["episode"]
    chosen = data.draw(st.permutations(range(count)))[: data.draw(st.integers(0, count))]
    first = data.draw(st.integers(0, 6))
    step = data.draw(st.sampled_from([1, 2, -1]))
    part = ds.isel(episode=list(chosen)).isel(time=slice(first, None)).isel(time=slice(None, None, step))
    want = expected(part.load(), ["obs", "action"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat, "MAX_BYTES", max_bytes)
        assert gather(in_form(part, form), ["obs", "action"]) == want


def test_dtypes_are_those_shown():
    ds = make_dataset([2, 3])
    (batch,) = iter_flat(ds, FIELDS)
    assert {name: batch.values[name].dtype for name in FIELDS} == {name: ds[name].dtype for name in FIELDS}


def test_a_part_of_a_field_keeps_its_dims():
    ds = make_dataset([2, 3]).isel(obs_dim_0=[2, 0])
    (batch,) = iter_flat(ds, ["obs"])
    assert batch.values["obs"].shape == (5, 2)
    single = ds.isel(obs_dim_0=1)
    (batch,) = iter_flat(single, ["obs"])
    assert sorted(batch.values["obs"]) == sorted(single["obs"].values[ds.mask.values])


def test_batches_are_bounded(monkeypatch):
    monkeypatch.setattr(flat, "block_batches", lambda variables, cells: None)
    monkeypatch.setattr(flat, "MAX_BYTES", 12 * 7)
    ds = make_dataset([30] * 4).load()
    sizes = [len(batch.values["obs"]) for batch in iter_flat(ds, ["obs"])]
    assert max(sizes) == 7
    assert sum(sizes) == 120


def test_an_image_bigger_than_the_bound_still_comes(monkeypatch):
    monkeypatch.setattr(flat, "MAX_BYTES", 1)
    ds = make_dataset([2, 2]).load()
    assert len(gather(ds, ["obs"])) == 4


def test_ranges_read_no_further_than_their_longest_episode(monkeypatch):
    monkeypatch.setattr(flat, "MAX_BYTES", 2 * 2 * 12)
    ds = make_dataset([2] * 6 + [40] * 2).load()
    array = ds.chunk(episode=2, time=2)["obs"].data
    read = []
    spied = array.map_blocks(lambda block: (read.append(block.shape[:2]), block)[1], meta=array._meta)
    ds = ds.assign(obs=(ds["obs"].dims, spied))
    sizes = [len(batch.values["obs"]) for batch in iter_flat(ds, ["obs"])]
    assert sizes == [4, 4, 4, 80]
    assert read == [(2, 2)] * (3 + 20)


def test_an_added_variable_counts_as_a_field():
    ds = make_dataset([3, 1])
    ds = ds.assign(twice=ds["reward"] * 2)
    assert gather(ds, ["twice", "reward"]) == expected(ds.load(), ["twice", "reward"])


@pytest.mark.parametrize("form", ["lazy", "loaded", "dask", "joined"])
def test_each_place_is_computed_only_when_asked(form, monkeypatch):
    ds = tl.concat([make_dataset([3, 1])]) if form == "joined" else in_form(make_dataset([3, 1]), form)
    (batch,) = iter_flat(ds, ["action"])
    monkeypatch.setattr("trajlab.dataset.cells.CellSpan.time", property(lambda span: pytest.fail("time computed")))
    assert sorted(batch.episode) == [0, 0, 0, 1]
    assert "time" not in vars(batch)
    monkeypatch.undo()
    assert sorted(batch.time) == [0, 0, 1, 2]
    (batch,) = iter_flat(ds, ["action"])
    assert sorted(batch.time) == [0, 0, 1, 2]
    assert "episode" not in vars(batch)


def test_fields_of_no_component():
    rows = {"obs": np.zeros((6, 2, 0)), "a": np.arange(12).reshape(6, 2), "done": np.zeros((6, 2), bool)}
    lazy = tl.from_rollout(rows)
    for ds in (lazy, lazy.load(), lazy.isel(time=slice(1, 4)), tl.concat([lazy, lazy])):
        count = int(ds["mask"].sum())
        assert tl.transitions(ds)["obs"].shape == (count, 0)
        assert tl.to_dataframe(ds).columns.tolist()[-2:] == ["a", "done"]
        assert tl.stack_fields(ds)["field"].values.tolist() == ["a", "done"]
        tl.validate(ds, deep=True)


@pytest.mark.parametrize("form", ["lazy", "loaded", "dask"])
def test_no_episode_gives_no_batch(form):
    assert list(iter_flat(in_form(make_dataset([]), form), ["obs"])) == []


def test_no_fields_still_tell_places():
    ds = make_dataset([2, 1])
    assert set(gather(ds, [])) == {(0, 0), (0, 1), (1, 0)}


def test_steps_beyond_all_episodes_give_no_batch():
    ds = make_dataset([2, 3])
    assert list(iter_flat(ds.isel(time=slice(3, None)), ["obs"])) == []


def test_a_variable_per_episode_is_refused():
    with pytest.raises(ValueError, match=r"'length' has dims \('episode',\), not 'time'"):
        iter_flat(make_dataset([2]), ["length"])
