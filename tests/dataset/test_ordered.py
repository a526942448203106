"""Transitions in order: every form gives the same rows, whatever order they lie in."""

import numpy as np
import pytest
from ragged import FORMS, flat, in_form, make_dataset

from trajlab.dataset import ordered
from trajlab.dataset.ordered import iter_ordered

LENGTHS = [4, 1, 6, 2, 6, 3]


@pytest.mark.parametrize("held", [1, 7, 100])
@pytest.mark.parametrize("form", FORMS)
def test_episode_after_episode(form, held, tmp_path, monkeypatch):
    monkeypatch.setattr(ordered, "MAX_HELD", held)
    monkeypatch.setattr(ordered, "MAX_CELLS", 4)
    ds = in_form(make_dataset(LENGTHS), form, tmp_path)
    batches = list(iter_ordered(ds, ["action", "obs", "action"]))
    np.testing.assert_array_equal(np.concatenate([b.values["action"] for b in batches]), flat(ds, "action"))
    np.testing.assert_array_equal(np.concatenate([b.values["obs"] for b in batches]), flat(ds, "obs"))
    lengths = ds["length"].values
    assert np.concatenate([b.episode for b in batches]).tolist() == np.repeat(np.arange(6), lengths).tolist()
    assert np.concatenate([b.time for b in batches]).tolist() == [t for n in lengths for t in range(n)]
    sizes = [len(b.values["action"]) for b in batches]
    assert [b.start for b in batches] == [0, *np.cumsum(sizes)[:-1].tolist()]


def test_episodes_without_a_step_and_none_at_all():
    ds = make_dataset(LENGTHS).isel(time=slice(2, None))
    (batch,) = iter_ordered(ds, ["action"])
    assert batch.values["action"].tolist() == flat(ds, "action").tolist()
    assert batch.time.tolist() == [2, 3, 2, 3, 4, 5, 2, 3, 4, 5, 2]
    assert list(iter_ordered(ds.isel(episode=slice(0, 0)), ["action"])) == []
