"""Importing trajlab does nothing but define names, and the names are the ones documented."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import metadata, version
from importlib.resources import files
from pathlib import Path

import pytest
from annotations import PUBLIC

import trajlab as tl


def test_public_names_are_these_and_no_others():
    assert sorted(tl.__all__) == list(tl.__all__) == PUBLIC
    assert [name for name in PUBLIC if not hasattr(tl, name)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_a_docstring_and_say_where_they_live(name):
    assert re.match(r"[A-Z]", getattr(tl, name).__doc__)
    assert getattr(tl, name).__name__ == name


def test_version_is_that_of_the_distribution():
    assert tl.__version__ == version("trajlab")


@pytest.mark.parametrize("folder", ["analysis", "dataset", "plot"])
def test_a_folder_tells_what_its_modules_are_for(folder):
    package = importlib.import_module(f"trajlab.{folder}")
    there = {one.name for one in pkgutil.iter_modules(package.__path__)}
    told = set(re.findall(r"`(\w+)`", re.search(r"(?s)\n\n.*", package.__doc__).group()))
    public = {name.removeprefix("plot_") for name in PUBLIC}
    assert {name for name in there - told - public if not name.startswith("flat_")} == set()
    assert {name for name in told - there if name not in public and not name.startswith("plot_")} == set()


def test_types_are_shipped():
    assert files("trajlab").joinpath("py.typed").is_file()


def test_extras_are_the_documented_ones():
    extras = metadata("trajlab").get_all("Provides-Extra")
    assert sorted(extras) == ["all", "bench", "docs", "gymnasium", "interop", "io", "jsonl", "notebook", "test"]


@pytest.fixture(scope="module")
def after_import():
    """What `import trajlab` changes in a fresh interpreter, as {what: value}."""
    code = """
import json, logging, sys, warnings
import jax, matplotlib, numpy as np, xarray as xr

def state():
    return {
        "jax config": {k: repr(v) for k, v in jax.config.values.items()},
        "xarray options": {k: repr(v) for k, v in dict(xr.get_options()).items()},
        "rcParams": {k: repr(v) for k, v in dict.items(matplotlib.rcParams)},
        "NumPy print options": {k: repr(v) for k, v in np.get_printoptions().items()},
        "log handlers": [repr(h) for h in logging.root.handlers] + sorted(
            name for name, log in logging.root.manager.loggerDict.items() if name.startswith("trajlab")),
        "warning filters": [repr(f) for f in warnings.filters],
        "accessors": sorted(vars(xr.Dataset)),
    }

before = state()
import trajlab
after = state()
print(json.dumps({"changed": [k for k in before if before[k] != after[k]], "modules": sorted(sys.modules)}))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_import_changes_no_setting(after_import):
    assert after_import["changed"] == []


@pytest.mark.parametrize(
    "module",
    "matplotlib.pyplot dask h5netcdf h5py zarr IPython ipywidgets gymnax gymnasium flax chex optax orjson".split(),
)
def test_import_loads_no_optional_package(after_import, module):
    assert module not in after_import["modules"]


def test_import_initialises_no_device():
    code = "import trajlab; from jax._src import xla_bridge; assert not xla_bridge._backends"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_modules_say_in_one_line_what_they_are_for():
    for path in sorted(Path(tl.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""'), path
        assert text[3:].split("\n")[0].rstrip('"').endswith((".", ":")), path
