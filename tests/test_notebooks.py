"""The notebooks run from start to end, are committed without outputs, and stay short."""

import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def code_cells(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert PATHS


@each_notebook
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    folder = shutil.copytree(NOTEBOOKS, tmp_path / "notebooks")
    notebook = nbformat.read(folder / path.name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()


@each_notebook
def test_notebook_is_valid_and_has_no_outputs(path):
    nbformat.validate(nbformat.read(path, as_version=4))
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code_cells(path))


def test_quickstart_is_short():
    cells = [cell.source for cell in code_cells(NOTEBOOKS / "01_quickstart.ipynb")]
    assert len(cells) <= 12
    assert max(len(source.splitlines()) for source in cells) <= 12
