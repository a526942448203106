"""Sphinx configuration: a strict build that executes the pages and the notebooks."""

import shutil
from importlib.metadata import version as distribution_version
from pathlib import Path

project = "trajlab"
author = "the trajlab authors"
copyright = "the trajlab authors"
version = release = distribution_version("trajlab")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "README.md"]
nitpicky = True
# Without a network there is no inventory of other projects to link to.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!trajlab\b|tl\b).*"),
]

# The notebooks live in notebooks/; Sphinx reads only below docs/.
here = Path(__file__).parent
(here / "notebooks").mkdir(exist_ok=True)
for stale in (here / "notebooks").iterdir():
    stale.unlink()
for path in sorted((here.parent / "notebooks").glob("*.ipynb")):
    shutil.copy2(path, here / "notebooks")

nb_execution_mode = "force"  # what is cached by the notebook alone would show an older package
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_merge_streams = True
# Timings and progress bars on stderr are not part of a page.
nb_output_stderr = "remove"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
numpydoc_show_class_members = False
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "trajlab"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_sidebars = {"**": []}
