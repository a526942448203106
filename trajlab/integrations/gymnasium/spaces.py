"""What Gymnasium's spaces say about fields: their names, dtypes and bounds."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space, spaces

from trajlab.errors import raise_all, unknown_name
from trajlab.integrations.paths import Path, dotted, is_excluded
from trajlab.names import HIGH_ATTR, LOW_ATTR, SPACE_SIZE_ATTR, SPACE_START_ATTR

MAX_LISTED = 64
"""Bounds that differ between more components than this are not listed."""


class Leaf(NamedTuple):
    """A space within a space, whose values are arrays of one shape and dtype.

    Attributes
    ----------
    path : tuple
        The keys under which it stands in the chunk; the first says whether it is an observation or an action.
    space : Space
    """

    path: Path
    space: Space

    @property
    def cell(self) -> tuple[int, ...]:
        """The shape of one value."""
        return () if isinstance(self.space, spaces.Text) else tuple(self.space.shape or ())

    @property
    def dtype(self) -> np.dtype:
        """The dtype of a value."""
        if isinstance(self.space, spaces.Text):
            return np.dtype(f"U{self.space.max_length}")
        return np.dtype(self.space.dtype)


def leaves_of(space: Space, root: str, exclude: Sequence[str]) -> list[Leaf]:
    """Return the leaves of a space, those of `Dict` and `Tuple` under their keys, the excluded ones left out.

    Raises
    ------
    ValueError
        When a leaf's values have no fixed shape, as those of `Graph` and `Sequence`.
    KeyError
        When an entry of `exclude` names a part of `root` that is not there.
    """
    everything = list(_walk(space, (root,)))
    names = [dotted(leaf.path) for leaf in everything]
    for entry in exclude:
        is_plain = not any(letter in entry for letter in "*?[")
        if is_plain and entry.startswith(f"{root}.") and not any(is_excluded(name, [entry]) for name in names):
            raise unknown_name("leaf for exclude=", entry, names)
    chosen = [leaf for leaf, name in zip(everything, names, strict=True) if not is_excluded(name, exclude)]
    problems = [
        f"{dotted(leaf.path)!r} is in a {type(leaf.space).__name__} space, whose values have no fixed shape. "
        f"Leave it out: exclude=[{dotted(leaf.path)!r}]"
        for leaf in chosen
        if not _is_array(leaf.space)
    ]
    raise_all(problems, "the environment cannot be recorded")
    return chosen


def array_leaves(space: Space, root: str) -> list[Leaf]:
    """Return the leaves of a space whose values are arrays of a fixed shape."""
    return [leaf for leaf in _walk(space, (root,)) if _is_array(leaf.space)]


def _walk(space: Space, path: Path) -> Iterator[Leaf]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        pairs = space.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, inner in pairs:
            yield from _walk(inner, (*path, key))
    else:
        yield Leaf(path, space)


def _is_array(space: Space) -> bool:
    if isinstance(space, spaces.Text):
        return True
    is_ragged = isinstance(space, spaces.Graph | spaces.Sequence | spaces.OneOf)
    return not is_ragged and space.shape is not None and space.dtype is not None


def attrs_of(space: Space) -> dict[str, Any]:
    """Return the attributes of a field with values in a space: plain numbers, texts and lists, as files take them.

    `n` and `start` of `Discrete` and `MultiDiscrete`; `low` and `high` of `Box`, one number where all
    components have the same, else a list of up to 64, in C order, and text where some, but not all, are infinite.
    """
    match space:
        case spaces.Discrete():
            return {SPACE_SIZE_ATTR: int(space.n), SPACE_START_ATTR: int(space.start)}
        case spaces.MultiDiscrete() if space.nvec.ndim == 1:
            return {SPACE_SIZE_ATTR: space.nvec.tolist(), SPACE_START_ATTR: space.start.tolist()}
        case spaces.Text():
            return {"max_length": int(space.max_length)}
        case spaces.Box():
            bounds = {LOW_ATTR: _bound(space.low), HIGH_ATTR: _bound(space.high)}
            return {name: value for name, value in bounds.items() if value is not None}
        case _:
            return {}


def _bound(values: np.ndarray) -> Any:
    """Return bounds as a number, a list, or a text; None where there is none or they are too many to list."""
    if not values.size or np.isinf(values).all():
        return None
    if (values == values.flat[0]).all():
        return values.flat[0].item()
    values = values.ravel()
    if values.size > MAX_LISTED:
        return None
    return values.tolist() if np.isfinite(values).all() else f"[{', '.join(map(str, values))}]"
