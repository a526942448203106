"""Print the lower bounds of pyproject.toml as pip constraints, to test with the oldest versions allowed.

    python tests/lowest.py > lowest.txt
    pip install ".[test]" --constraint lowest.txt

Only what trajlab names itself is held down; what those packages need is free, as in uv's `lowest-direct`.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
requirements = sum(project["optional-dependencies"].values(), project["dependencies"])
bounds = {
    match["name"]: match["version"]
    for requirement in requirements
    if (match := re.fullmatch(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<version>[\d.]+)", requirement))
}
print("\n".join(f"{name}=={version}" for name, version in sorted(bounds.items())))
