"""Files of the older wrapper, which say nothing of their fields: what they leave out is found in their values."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trajlab import names
from trajlab.io.jsonl.declared import Declared
from trajlab.io.jsonl.describe import ACTION, INFO, OBS, REWARD, VALUES
from trajlab.io.jsonl.leaves import Tree, TypedLeaf
from trajlab.io.jsonl.specs import FORMAT
from trajlab.io.jsonl.text import dumps, library

_ROLES = {OBS: "observation", ACTION: "action", REWARD: "reward"}


def is_older(head: Mapping[str, Any]) -> bool:
    """Say whether a first line is of the older wrapper: `event`, `episode`, `obs` and `info`, and no more."""
    return head.get("event") == "reset" and not {"schema", "variables"} & set(head)


def with_fields(path: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of such a file as those of this format.

    Numbers become int64, float64 where one of them has a fraction, and bool, whatever they were when they were written.

    Raises
    ------
    ValueError
        When a value is missing, or has another shape than before; it names the file and the line.
    """
    declared = Declared()
    declared.flags()
    trees: dict[str, Tree] = {}
    for number, line in enumerate(lines, 1):
        try:
            if number == 1:
                line[names.EPISODE]
            for key in [OBS] if number == 1 else _ROLES:
                if key not in trees:
                    trees[key] = Tree(list(_leaves(declared, line[key], (key,))), declared.plain)
                trees[key].fitted(line[key])
            if number > 1:
                declared.info(line.get(INFO) or {})
        except KeyError as error:
            raise ValueError(f"{path}, line {number}: {error} is missing") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    head = lines[0] | {
        "schema": FORMAT,
        names.ENV: 0,
        "attrs": {names.SCHEMA_ATTR: names.SCHEMA, names.CONVENTION_ATTR: "gymnasium, autoreset=disabled"},
        "variables": library().loads(dumps(declared.entries())),
        VALUES: {names.START_ITERATION: 0, names.START_SEEN: True},
    }
    return [head, *({**line, names.ITERATION: 0} for line in lines[1:])]


def _leaves(declared: Declared, value: Any, place: tuple[str, ...]) -> Iterator[TypedLeaf]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(declared, one, (*place, key))
    else:
        yield TypedLeaf(declared, place, _ROLES[place[0]], path=place[1:])
