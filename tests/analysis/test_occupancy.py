"""How often two components have which values together: visible counts, a plain loop, what does not change them."""

import numpy as np
import pytest
import xarray as xr
from agents.worlds import live, make_world, poisoned, record
from ragged import FORMS, flat, in_form, make_dataset

import trajlab as tl
from trajlab.analysis.kernels.bins import BinFinder


def recording(*episodes, **options):
    return tl.from_episodes([{"at": np.array(e)} for e in episodes], **options)


def test_cells_of_a_grid_world():
    ds = recording([[0, 0], [0, 1], [2, 1]], [[0, 1]], end_reason=["terminated", "cut"])
    result = tl.occupancy(ds, "at[0]", "at[1]")
    assert result["count"].dims == ("x_bin", "y_bin")
    assert result["count"].values.tolist() == [[1, 2], [0, 0], [0, 1]]
    assert result["share"].values.tolist() == [[0.25, 0.5], [0, 0], [0, 0.25]]
    assert result["x_bin"].values.tolist() == [0, 1, 2]
    assert result["x_bin"].dtype == result["count"].dtype == np.int64
    assert result["x_bin_left"].values.tolist() == [-0.5, 0.5, 1.5]
    assert result["y_bin_right"].values.tolist() == [0.5, 1.5]
    assert result["y_bin"].attrs["long_name"] == "at[1]"
    assert (result.attrs["num_nan"], result.attrs["num_outside"]) == (0, 0)


def test_what_lies_outside_is_said_and_in_no_bin():
    ds = recording([[-1.0, 0], [0, 0], [0.5, 2], [1, 1], [1.5, 0], [np.inf, 0]])
    result = tl.occupancy(ds, "at[0]", "at[1]", bins=([0, 0.5, 1], [0, 1]))
    assert result["count"].values.tolist() == [[1], [1]]
    assert result.attrs["num_outside"] == 4
    assert result["share"].sum() == 1
    assert result["x_bin"].values.tolist() == [0.25, 0.75]


def test_nan_is_in_no_bin_and_reported():
    ds = recording([[np.nan, 0], [0, 0], [1, np.nan], [np.nan, 9]])
    with pytest.warns(UserWarning, match=r"occupancy: 3 transitions have NaN in 'at\[0\]' or 'at\[1\]'") as seen:
        result = tl.occupancy(ds, "at[0]", "at[1]", bins=(2, [0, 1]))
    assert seen[0].filename == __file__
    assert result["count"].values.tolist() == [[1], [0]]
    assert (result.attrs["num_nan"], result.attrs["num_outside"]) == (3, 0)


def test_integers_that_where_made_floats():
    ds = recording([[0, 1], [0, 2], [3, 1]])
    ds = ds.assign(at=ds["at"].where(ds["at"] != 2))
    with pytest.warns(UserWarning, match="1 transitions"):
        result = tl.occupancy(ds, "at[0]", "at[1]")
    assert result["x_bin"].values.tolist() == [0, 1, 2, 3]
    assert result["count"].values.ravel().tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (bool, [False, True]),
        (np.uint8, [250, 255]),
        (np.int64, [2**62, 2**62 + 3]),
        (np.uint64, [2**64 - 4, 2**64 - 1]),
        (np.int8, [-128, 127]),
    ],
)
def test_a_bin_for_each_value(dtype, values):
    ds = tl.from_episodes([{"a": np.array(values, dtype), "b": np.array(values[::-1], dtype)}])
    result = tl.occupancy(ds, "a", "b")
    first, last = map(int, values)
    assert [int(value) for value in result["x_bin"].values] == list(range(first, last + 1))
    assert (result["count"].values[0, -1], result["count"].values[-1, 0], result["count"].sum()) == (1, 1, 2)


def test_many_whole_numbers_have_as_many_in_each_bin():
    values = np.arange(-300, 1000)
    result = tl.occupancy(tl.from_episodes([{"a": values, "b": values * 0}]), "a", "b")
    assert set(result["count"].values[:-1, 0]) == {26}
    assert result["count"].sum() == 1300
    assert (result["x_bin_left"].values % 1 == 0.5).all()


def test_numbers_of_bins():
    ds = recording([[0, 1], [7, 9], [7, 2]])
    assert tl.occupancy(ds, "at[0]", "at[1]", bins=4)["count"].shape == (4, 4)
    assert tl.occupancy(ds, "at[0]", "at[1]", bins=(None, 3))["count"].shape == (8, 3)
    assert tl.occupancy(recording([[0.0, 1]]), "at[0]", "at[1]")["count"].shape == (50, 50)


def test_two_parts_of_an_action_of_two_fields():
    ds = make_dataset([4, 1, 6])
    result = tl.occupancy(ds, "action", "flag")
    action, flag = flat(ds, "action"), flat(ds, "flag")
    for value in result["x_bin"].values:
        want = [((action == value) & (flag == other)).sum() for other in (0, 1)]
        assert result["count"].sel(x_bin=value).values.tolist() == want


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("x", "y", "bins", "by"),
    [
        ("obs[0]", "obs[1]", None, None),
        ("pair[1]", "byte", (None, [0, 99, 200]), "env"),
        ("reward", "pair[0]", None, "flag"),
    ],
)
def test_every_form_equals_a_loop(form, x, y, bins, by, tmp_path):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    result = tl.occupancy(in_form(ds, form, tmp_path), x, y, bins=bins, by=by)
    columns = [tl.stack_fields(ds, [c.partition("[")[0]]).sel(field=c).values for c in (x, y)]
    labels = [None] if by is None else result[by].values
    edges = [np.append(result[f"{c}_bin_left"], result[f"{c}_bin_right"][-1:]) for c in "xy"]
    for label in labels:
        member = ds["mask"].values & (True if label is None else (ds[by] == label).broadcast_like(ds["mask"]).values)
        want = np.histogram2d(columns[0][member].astype(float), columns[1][member].astype(float), edges)[0]
        got = result["count"] if label is None else result["count"].sel({by: label})
        assert got.values.tolist() == want.tolist()
        share = result["share"] if label is None else result["share"].sel({by: label})
        np.testing.assert_allclose(share, want / want.sum())


def test_what_is_in_no_group_is_not_counted():
    ds = recording([[0, 0.5]], [[1, 0.5]], [[np.nan, 0.5]], [[9, 0.5]], env=[0, 1, 2, 2])
    result = tl.occupancy(ds, "at[0]", "at[1]", bins=([0, 1, 2], 1), by="env", groups={"first": 0, "second": 1})
    assert result["count"].values[..., 0].tolist() == [[1, 0], [0, 1]]
    assert (result.attrs["num_nan"], result.attrs["num_outside"]) == (0, 0)


@pytest.mark.parametrize("cells", [1, 3])
def test_where_batches_end_changes_nothing(monkeypatch, cells):
    ds = make_dataset([4, 1, 6, 2, 6, 3])
    want = tl.occupancy(ds, "obs[0]", "pair[0]", by="flag")
    monkeypatch.setattr("trajlab.dataset.flat.MAX_CELLS", cells)
    monkeypatch.setattr("trajlab.dataset.flat_blocks.TILE_CELLS", cells)
    xr.testing.assert_identical(tl.occupancy(ds, "obs[0]", "pair[0]", by="flag"), want)


@pytest.mark.parametrize("times", [slice(2, None), [4, 1, 0]])
def test_slices_of_time(times):
    ds = make_dataset([4, 1, 6, 2]).isel(time=times)
    assert tl.occupancy(ds, "action", "pair[0]")["count"].sum() == len(flat(ds, "action"))


def test_agents_that_are_done_do_not_count():
    world = make_world(20)
    ds = record(poisoned(world))
    edges = np.array([-2.0, -0.5, 0.5, 2])
    scout, wind = "obs[scout,0]", "wind"
    for other, k in ((wind, None), ("obs[medic,1]", 2)):
        want, outside = np.zeros((3, 3)), 0
        for one in live(world):
            for t, row in enumerate(one.rows):
                if one.alive[t, 0] and (k is None or one.alive[t, k]):
                    y = world.wind[row, one.env] if k is None else world.obs[row, one.env, k, 1]
                    cell = np.histogram2d([world.obs[row, one.env, 0, 0]], [y], [edges, edges])[0]
                    want += cell
                    outside += cell.sum() == 0
        result = tl.occupancy(ds, scout, other, bins=(edges, edges))
        assert result["count"].values.tolist() == want.tolist()
        assert result.attrs["num_outside"] == outside > 0
    over_range = tl.occupancy(ds.assign(obs=ds["obs"].where(ds["alive"], -1e6)), scout, wind, bins=9)
    alive = [world.obs[row, one.env, 0, 0] for one in live(world) for t, row in enumerate(one.rows) if one.alive[t, 0]]
    assert over_range["x_bin_left"].values[0] == min(alive)


def test_only_the_fields_asked_for_are_read():
    ds = make_dataset([4, 1, 6])
    ds = ds.assign(byte=ds["byte"].where(False))
    assert tl.occupancy(ds, "action", "reward")["count"].sum() == 11


@pytest.mark.parametrize("by", [None, "seed"])
def test_of_no_episode(blank, by):
    result = tl.occupancy(blank, "obs[0]", "obs[1]", by=by)
    assert result["count"].dims == (*([by] if by else []), "x_bin", "y_bin")
    assert result["count"].sum() == 0
    assert np.isnan(result["share"]).all()


def test_of_integers_of_no_episode():
    ds = make_dataset([])
    assert tl.occupancy(ds, "action", "flag")["count"].sum() == 0


@pytest.mark.parametrize(
    "bins", [0, True, 2.5, "ten", [3], [1, 2, 3], (2, [1.0]), ([2, 1], 3), (2, [0, np.inf]), (1, "a")]
)
def test_bins_that_are_none(bins):
    with pytest.raises(ValueError, match=r"bins=.*expected a number of bins, at least 1, or a pair"):
        tl.occupancy(recording([[0.0, 1]]), "at[0]", "at[1]", bins=bins)


def test_what_is_refused():
    ds = recording([[0.0, 1]])
    with pytest.raises(ValueError, match="20000 x 20000 bins in 1 groups; expected at most 67,108,864 in all"):
        tl.occupancy(ds, "at[0]", "at[1]", bins=20_000)
    with pytest.raises(ValueError, match="by='x_bin' is a name that the result uses itself"):
        tl.occupancy(ds.assign_coords(x_bin=("episode", [0])), "at[0]", "at[1]", by="x_bin")


def test_bins_are_found_exactly_where_edges_are_nearly_even():
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-3, 1.0, 1e12):
        edges = np.linspace(-scale, 3 * scale, 52)
        edges[1:-1] += rng.uniform(-1, 1, 50) * 4e-9 * scale
        near = [np.nextafter(edges, end) for end in (-np.inf, np.inf)]
        values = np.clip(np.concatenate([edges, *near, rng.uniform(edges[0], edges[-1], 99)]), edges[0], edges[-1])
        want = np.minimum(np.searchsorted(edges, values, side="right") - 1, 50)
        np.testing.assert_array_equal(BinFinder(edges).find(values), want)
