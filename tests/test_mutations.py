"""The list of deliberate faults follows the source: each text that one replaces is there, once."""

from pathlib import Path

import pytest
from mutations import MUTATIONS

import trajlab

PACKAGE = Path(trajlab.__file__).parent


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_text_to_replace_is_there_once(mutation):
    for file, old, new in mutation.edits:
        assert (PACKAGE / file).read_text(encoding="utf-8").count(old) == 1
        assert new != old
