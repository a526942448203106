"""A module imports only from floors below its own, and each group knows only the heavy packages it needs."""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

import trajlab

PACKAGE = Path(trajlab.__file__).parent


class Floor(NamedTuple):
    """Where a module or folder of the package stands, and what it never imports."""

    number: int
    never: frozenset[str] = frozenset()


def floor(number: int, never: str = "") -> Floor:
    return Floor(number, frozenset(never.split()))


HEAVY = "jax xarray pandas scipy matplotlib IPython ipywidgets"

# A new module or folder fails until it has a line here. A module that stands lower than its folder has its own.
FLOORS = {
    "names": floor(0, HEAVY),
    "padding": floor(0, HEAVY),
    "errors": floor(0, HEAVY),
    "version": floor(0, HEAVY),
    "edges": floor(1, HEAVY),
    "capture": floor(1, "xarray pandas matplotlib"),
    "block.layout": floor(0, HEAVY),
    "block": floor(1, "xarray pandas matplotlib"),
    "segment": floor(1, "jax xarray pandas matplotlib"),
    "cell_states": floor(2, "xarray pandas matplotlib"),
    "check": floor(2, "jax xarray pandas matplotlib"),
    "dataset": floor(2, "matplotlib"),
    "testing": floor(3, "matplotlib"),
    "buffer": floor(3, "matplotlib trajlab.analysis"),
    "recorder": floor(3, "matplotlib trajlab.analysis"),
    "consumers.consumer": floor(2, "matplotlib"),
    "consumers": floor(3, "matplotlib trajlab.analysis"),
    "analysis.kernels": floor(2, "jax xarray pandas matplotlib"),
    "analysis": floor(3, "jax matplotlib"),
    "io": floor(3, "matplotlib trajlab.analysis"),
    "plot": floor(4, "jax trajlab.recorder"),
    "integrations": floor(4, "trajlab.plot"),
    "notebook": floor(5),
    "__init__": floor(6),
}

# Packages that only one group knows, at the top of its modules, since it is imported only by who uses them.
OWNED = dict.fromkeys(("gymnasium", "isaaclab", "mjlab", "torch"), "integrations")

# Imported inside the function that uses them, so that an import costs little and needs no extra.
LAZY = frozenset("matplotlib dask h5netcdf h5py zarr IPython ipywidgets isaaclab mjlab orjson torch".split())


def place(name: str) -> str:
    """Return the line of FLOORS for a module or a name in one: `trajlab.dataset.views` -> `dataset`."""
    parts = name.split(".")[1:]
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in FLOORS:
            return ".".join(parts[:n])
    return parts[0] if parts else "__init__"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """Every import of a module: the full name, the line, and whether it runs when the module is imported."""
    here = module_name(path)
    package = here if path.name == "__init__.py" else here.rpartition(".")[0]
    found = []

    def visit(node: ast.AST, at_import: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno, at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, base] if base else parent)
            found.extend((f"{base}.{alias.name}", node.lineno, at_import) for alias in node.names)
        inside = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside and not is_type_checking(node))

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return found


def problems(path: Path) -> list[str]:
    here = place(module_name(path))
    if here not in FLOORS:
        return [f"{here} has no floor yet; give it a line in FLOORS of {Path(__file__).name}"]
    found = []
    for name, line, at_import in imports(path):
        where = f"{path.relative_to(PACKAGE.parent)}:{line}: imports {name}"
        ancestors = {".".join(name.split(".")[:n]) for n in range(1, name.count(".") + 2)}
        if banned := ancestors & FLOORS[here].never:
            found.append(f"{where}, but {here} never imports {min(banned)}")
        if (owned := ancestors & OWNED.keys()) and here != OWNED[min(owned)]:
            found.append(f"{where}; only {OWNED[min(owned)]} imports {min(owned)}")
        if at_import and (lazy := ancestors & LAZY):
            found.append(f"{where} at the top; import {min(lazy)} in the function that uses it")
        if "trajlab" in ancestors and (there := place(name)) != here:
            # A name that is no module, as in `from trajlab import Recorder`, is one of the package itself.
            number = FLOORS.get(there, FLOORS["__init__"]).number
            if number >= FLOORS[here].number:
                found.append(f"{where} of floor {number}, which is not below floor {FLOORS[here].number}")
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=module_name)
def test_imports_only_from_floors_below(path):
    assert problems(path) == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("segment.py", "from trajlab.dataset import views", "of floor 2, which is not below floor 1"),
        ("dataset/views.py", "from ..recorder import Recorder", "of floor 3, which is not below floor 2"),
        ("dataset/views.py", "from .. import recorder", "of floor 3, which is not below floor 2"),
        ("dataset/views.py", "def f():\n    import matplotlib.pyplot", "dataset never imports matplotlib"),
        ("plot/a.py", "import matplotlib.pyplot as plt", "import matplotlib in the function that uses it"),
        ("plot/a.py", "from trajlab.recorder import Recorder", "plot never imports trajlab.recorder"),
        ("analysis/a.py", "import jax.numpy as jnp", "analysis never imports jax"),
        ("block/layout.py", "from trajlab.block.append import Chunk", "of floor 1, which is not below floor 0"),
        ("recorder.py", "import gymnasium", "only integrations imports gymnasium"),
        ("recorder.py", "def f():\n    import torch", "only integrations imports torch"),
        ("integrations/a.py", "import mjlab", "import mjlab in the function that uses it"),
        ("integrations/a.py", "from trajlab.plot import state_trace", "integrations never imports trajlab.plot"),
        ("recorder.py", "import trajlab", "of floor 6, which is not below floor 3"),
        ("attic/a.py", "", "has no floor yet"),
    ],
)
def test_a_breach_is_seen(tmp_path, monkeypatch, module, source, expected):
    path = tmp_path / "trajlab" / module
    path.parent.mkdir(parents=True)
    path.write_text(source)
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path / "trajlab")
    assert any(expected in problem for problem in problems(path)), problems(path)


def test_what_is_allowed_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path / "trajlab")
    path = tmp_path / "trajlab" / "plot" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "from . import b\n"
        "from ..analysis import returns\n"
        "if TYPE_CHECKING:\n    from matplotlib.axes import Axes\n"
        "def draw():\n    import matplotlib.pyplot as plt\n"
    )
    assert problems(path) == []
    path = tmp_path / "trajlab" / "integrations" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text("import gymnasium\nfrom trajlab.recorder import Recorder\n")
    assert problems(path) == []
