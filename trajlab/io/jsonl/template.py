"""Lines of one kind, made fast: the text between the values is made once."""

from collections.abc import Mapping, Sequence
from typing import Any

from trajlab.io.jsonl.specs import Place
from trajlab.io.jsonl.text import dumps


class Template:
    """A JSON object whose values at some places come line by line; elsewhere stands what was given once."""

    def __init__(self, constants: Mapping[str, Any], places: Sequence[Place]) -> None:
        """Keep the text of constants, which `dumps` takes, with one gap for each place, none within another."""
        tree: dict[Any, Any] = {key: _Constant(value) for key, value in constants.items()}
        for number, place in enumerate(places):
            branch = tree
            for key in place[:-1]:
                if not isinstance(branch.get(key), dict):
                    branch[key] = {}
                branch = branch[key]
            branch[place[-1]] = number
        self._order: list[int] = []
        self._text = self._text_of(tree)

    def __call__(self, values: Sequence[bytes]) -> bytes:
        """Return the object with these values, one for each place, as JSON."""
        return self._text % tuple([values[number] for number in self._order])

    def _text_of(self, tree: Any) -> bytes:
        if isinstance(tree, _Constant):
            return dumps(tree.value).replace(b"%", b"%%")
        if isinstance(tree, int):
            self._order.append(tree)
            return b"%b"
        parts = [dumps(key).replace(b"%", b"%%") + b":" + self._text_of(branch) for key, branch in tree.items()]
        return b"{" + b",".join(parts) + b"}"


class _Constant:
    def __init__(self, value: Any) -> None:
        self.value = value
