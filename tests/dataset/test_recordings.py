"""Any recording gives a valid Dataset, lazy and loaded alike, whatever was recorded and however."""

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, recordings
from test_against_reference import dataset, play

from trajlab.analysis.tables import episode_table, to_dataframe
from trajlab.dataset.concat import concat
from trajlab.dataset.fields import field_names
from trajlab.dataset.schema import validate
from trajlab.dataset.stack import stack_fields
from trajlab.dataset.views import episode, transitions


@examples(25)
@given(recordings())
def test_it_is_valid(recording):
    ds = dataset(play(*recording))
    validate(ds, deep=True)
    validate(ds.load(), deep=True)


@examples(15)
@given(recordings(), st.data())
def test_views_of_any_part(recording, data):
    lazy = dataset(play(*recording))
    count, steps = lazy.sizes["episode"], lazy.sizes["time"]
    order = data.draw(st.permutations(range(count)))
    start = data.draw(st.sampled_from([0, 1, steps // 2, steps]))
    part = {"episode": order[data.draw(st.integers(0, count // 2)) :], "time": slice(start, None)}
    lazy = lazy.isel(part)
    loaded = lazy.copy().load()
    validate(lazy, deep=True)
    xr.testing.assert_identical(transitions(lazy), transitions(loaded))
    xr.testing.assert_identical(stack_fields(lazy).load(), stack_fields(loaded).load())
    pd.testing.assert_frame_equal(to_dataframe(lazy), to_dataframe(loaded))
    for number in lazy["episode"].values:
        one = episode(lazy, number)
        own = transitions(loaded.sel(episode=[number]))
        for name in field_names(lazy):
            np.testing.assert_array_equal(one[name], own[name])
    both = concat([lazy, loaded])
    validate(both, deep=True)
    halves = [transitions(both.isel(episode=both["run"].values == run)) for run in (0, 1)]
    for name in field_names(both):
        np.testing.assert_array_equal(*(half[name] for half in halves))


@examples(15)
@given(recordings())
def test_whole_episodes(recording):
    lazy = dataset(play(*recording))
    pd.testing.assert_frame_equal(episode_table(lazy), episode_table(lazy.copy().load()))
    assert len(transitions(lazy)["time"]) == lazy["length"].values.sum()
    for number in lazy["episode"].values[lazy["final_known"].values]:
        one = episode(lazy, number, final=True)
        assert one.sizes["time"] == one["length"].item() + 1
