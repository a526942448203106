"""The examples in docstrings, the README and the docs pages run and print what they say."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import trajlab

ROOT = Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["trajlab", *(module.name for module in pkgutil.walk_packages(trajlab.__path__, "trajlab."))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(test):
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        run(test)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages(path):
    examples = [block for block in FENCE.findall(path.read_text(encoding="utf-8")) if ">>>" in block]
    test = doctest.DocTestParser().get_doctest("\n".join(examples), {}, path.name, str(path), 0)
    run(test)


def test_readme_begins_run_it_and_test_it_with_one_command():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for heading, command in [("Run it", "bash notebooks/run.sh"), ("Test it", "bash tests/run.sh")]:
        section = text.split(f"## {heading}\n", 1)[1].lstrip()
        assert section.startswith(f"```bash\n{command}\n```"), section[:200]
