"""The table of docs/analyses.md says what is true of each analysis."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import xarray as xr
from agents.worlds import make_world, record

import trajlab as tl
from trajlab.block.view import LogView
from trajlab.dataset.lazy import LazyArray

PAGE = Path(__file__).parents[2] / "docs" / "analyses.md"
LENGTHS = (40, 1, 3, 2, 4, 2)
NUMBERS, CONTINUOUS = ("flag", "action"), "x"

CALLS = {
    "action_histogram": lambda ds, field, **by: tl.action_histogram(ds, field, **by),
    "action_rates": lambda ds, field, **by: tl.action_rates(ds, field, **by),
    "action_entropy": lambda ds, field, **by: tl.action_entropy(ds, field, **by),
    "action_transitions": lambda ds, field, **by: tl.action_transitions(ds, field, **by),
    "action_ngrams": lambda ds, field, **by: tl.action_ngrams(ds, field, **by),
    "action_runs": lambda ds, field, **by: tl.action_runs(ds, field, **by),
    "action_raster": lambda ds, field, **by: tl.action_raster(ds, field, **by),
    "action_saturation": lambda ds, field, **by: tl.action_saturation(ds, field, low=0, high=1, **by),
    "action_by_state": lambda ds, field, state="x", **by: tl.action_by_state(ds, state, field, **by),
    "first_action_time": lambda ds, field, **by: tl.first_action_time(ds, field, **by),
    "state_trace": lambda ds, field, **by: tl.state_trace(ds, field, **by),
    "state_histogram": lambda ds, field, **by: tl.state_histogram(ds, field, **by),
    "occupancy": lambda ds, field, state="x", **by: tl.occupancy(ds, field, state, **by),
    "autocorrelation": lambda ds, field, **by: tl.autocorrelation(ds, field, **by),
    "returns": lambda ds, field, **by: tl.returns(ds, reward=field, **by),
    "return_to_go": lambda ds, field, **by: tl.return_to_go(ds, reward=field, **by),
    "event_times": lambda ds, field, **by: tl.event_times(ds, field, **by),
    "milestones": lambda ds, field, **by: tl.milestones(ds, field, **by),
    "align": lambda ds, field, **by: tl.align(ds, field, window=(1, 1), **by),
    "learning_curve": lambda ds, field, **by: tl.learning_curve(ds, num_resamples=2, **by),
    "outliers": lambda ds, field, **by: tl.outliers(ds, **by),
    "summary": lambda ds, field, **by: tl.summary(ds, **by),
    "episode_table": lambda ds, field, **by: tl.episode_table(ds, **by),
    "survival": lambda ds, field, **by: tl.survival(ds, **by),
    "outcomes": lambda ds, field, **by: tl.outcomes(ds, **by),
}


def table():
    """Return the rows of the table as mappings from the heads of columns to texts."""
    page = PAGE.read_text(encoding="utf-8")
    lines = [line for line in page[page.index("| function |") :].splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


ROWS = table()
each_row = pytest.mark.parametrize("row", ROWS, ids=[row["function"] for row in ROWS])


@pytest.fixture(scope="module")
def ds():
    rng = np.random.default_rng(0)
    return tl.from_episodes(
        [
            {
                "reward": rng.normal(size=n),
                "action": rng.integers(0, 3, n),
                "flag": rng.random(n) < 0.5,
                "text": np.array(["a", "b"])[rng.integers(0, 2, n)],
                "x": rng.normal(size=n),
                "vector": rng.normal(size=(n, 2)),
                "pair": rng.integers(0, 3, (n, 2)),
                "flags": rng.random((n, 2)) < 0.5,
                "image": rng.integers(0, 3, (n, 9, 9)).astype(np.uint8),
                "bitmap": rng.random((n, 9, 9)) < 0.5,
            }
            for n in LENGTHS
        ],
        end_reason=["terminated", "truncated", "terminated", "cut", "terminated", "truncated"],
    )


def works(row, ds, field, **by):
    """Say whether an analysis takes a field; what it does not take it refuses with a message that names it."""
    message = refusal(row, ds, field, **by)
    named = by.keys() or {field.partition("[")[0]}
    assert message is None or any(name in message for name in named), message
    return message is None


def refusal(row, ds, field, **by):
    try:
        CALLS[row["function"]](ds, field, **by)
    except (TypeError, ValueError, KeyError) as error:
        return str(error)
    return None


def test_every_analysis_has_a_row():
    assert [row["function"] for row in ROWS] == list(CALLS)
    reading = {"episode", "transitions", "stack_fields", "to_dataframe", "to_dataset", "concat", "validate", "append"}
    reading |= {"read_jsonl", "write_jsonl"}
    made = {"from_rollout", "from_episodes", "init_buffer"}
    functions = {name for name in tl.__all__ if name[0].islower() and not name.startswith("plot_")}
    assert functions - reading - made == set(CALLS)


@each_row
def test_by(row, ds):
    field = "flag" if row["discrete"] == "bools" else "action"
    found = {by: works(row, ds, field, by=by) for by in ("env", "iteration", "action", "phase", "time")}
    want = {
        "any": set(found),
        "any but time": set(found) - {"time"},
        "episode": {"env"},
        "–": set(),
    }[row["by"]]
    assert {by for by, taken in found.items() if taken} == want


@each_row
def test_kinds_of_fields(row, ds):
    if row["discrete"] == "–":
        assert row["continuous"] == row["vector"] == row["image"] == row["agents"] == "–"
        return
    kinds = {"yes": {"flag", "action", "text"}, "numbers": {"flag", "action"}, "bools": {"flag"}}[row["discrete"]]
    assert {field for field in ("flag", "action", "text") if works(row, ds, field)} == kinds
    assert works(row, ds, "x") == (row["continuous"] == "yes")


@each_row
@pytest.mark.parametrize("column", ["vector", "image"])
def test_fields_with_dims_of_their_own(row, column, ds):
    if row[column] == "–":
        return
    is_vector, is_bools = column == "vector", row["discrete"] == "bools"
    field = ("flags" if is_bools else "pair") if is_vector else ("bitmap" if is_bools else "image")
    dims = [f"{field}_dim_0"] if is_vector else [f"{field}_dim_0", f"{field}_dim_1"]
    if row[column] == "each":
        result = CALLS[row["function"]](ds, field)
        assert set(dims) <= set(getattr(result, "dims", None) or result.columns)
        return
    assert not works(row, ds, field)
    if row[column] == "one":
        assert works(row, ds, f"{field}[0]" if is_vector else f"{field}[0,1]")


@each_row
def test_agents(row):
    """Each result has the dim `agent`, where the function does not take one agent by name."""
    if row["agents"] == "–":
        return
    ds = record(make_world(20)).assign(state=lambda ds: ds["reward"].isel(agent=0, drop=True))
    ds = ds.assign(flag=(ds["action"] == 1).where(ds["mask"], False))
    call = CALLS[row["function"]]
    if row["agents"] == "one":
        call(ds, "reward[scout]", "state")
        with pytest.raises(KeyError, match="no component 'reward'. There are: 'reward\\[scout\\]'"):
            call(ds, "reward", "state")
        return
    if row["agents"] == "no":
        with pytest.raises(ValueError, match="'agent'"):
            call(ds, "flag")
        return
    field = "flag" if row["discrete"] == "bools" else "reward" if "return" in row["function"] else "action"
    result = call(ds, field, "state") if "state" in call.__code__.co_varnames else call(ds, field)
    assert "agent" in (result.columns if hasattr(result, "columns") else result.dims)


@each_row
def test_the_padded_array_is_never_made(row, ds):
    """One episode is much longer than the others, so that a padded read takes more cells than there are transitions."""
    field = "flag" if row["discrete"] == "bools" else "action"
    read: list[int] = []
    whole = LazyArray._read_slabs

    def counted(self, cells, inner):
        if self.lead == 2:
            read.append(int(np.prod(np.broadcast_shapes(*(np.shape(one) for one in cells)))))
        return whole(self, cells, inner)

    with mock.patch.object(LazyArray, "_read_slabs", counted):
        result = CALLS[row["function"]](ds, field)
    assert max(read, default=0) <= sum(LENGTHS)
    assert isinstance(result, xr.Dataset | xr.DataArray | dict) or hasattr(result, "columns")


@each_row
def test_what_is_read(row, ds):
    field = "flag" if row["discrete"] == "bools" else "action"
    with (
        mock.patch.object(LogView, "read", autospec=True, side_effect=LogView.read) as cells,
        mock.patch.object(LogView, "read_rows", autospec=True, side_effect=LogView.read_rows) as rows,
    ):
        CALLS[row["function"]](ds, field)
    assert (cells.called or rows.called) == (row["reads"] == "rows")


@each_row
def test_a_field_of_no_component(row, ds):
    """It has no value, and takes nothing down: the result is empty along it, or it is refused by its name."""
    dtype = bool if row["discrete"] == "bools" else np.int64
    none = (("episode", "time", "none_dim_0"), np.zeros((ds.sizes["episode"], ds.sizes["time"], 0), dtype))
    works(row, ds.assign(none=none), "none")
