"""The leading axes of a chunk's arrays: their letters, and axes that were flattened into one."""

import math
from collections.abc import Collection, Mapping
from typing import Any

AGENTS = "A"
"""The letter of the agents' axis, where a convention names agents."""


def split_axes(axes: str) -> tuple[str, ...]:
    """Return the letters that each array axis holds, several where they were flattened into one.

    >>> split_axes("T(AN)")
    ('T', 'AN')

    Raises
    ------
    ValueError
        When parentheses do not match, or hold fewer than two letters.
    """
    groups: list[str] = []
    rest = axes
    while rest:
        if rest[0] != "(":
            group, rest = rest[0], rest[1:]
        else:
            group, closed, rest = rest[1:].partition(")")
            if not closed or len(group) < 2:
                raise ValueError(f"axes={axes!r}; expected at least two letters between parentheses, as in '(UN)T'")
        groups.append(group)
    return tuple(groups)


def check_axes(axes: Any) -> None:
    """Raise ValueError unless `axes` names distinct capital letters with T and N among them."""
    letters = "".join(split_axes(axes)) if isinstance(axes, str) else ""
    is_legal = letters.isalpha() and letters.isupper() and letters.isascii() and len(set(letters)) == len(letters)
    if not (is_legal and "T" in letters and "N" in letters):
        raise ValueError(
            f"axes={axes!r}; expected distinct capital letters with T and N among them, such as 'TN', and "
            "parentheses around those that were flattened into one axis"
        )


def plain_axes(axes: str, *, has_agents: bool) -> str:
    """Return the letters of the leading axes once flattened ones are apart and the agents' has moved behind them."""
    letters = "".join(split_axes(axes))
    return letters.replace(AGENTS, "") if has_agents else letters


def axes_of_call(axes: str, *, is_step: bool, is_partial: bool) -> tuple[str, ...]:
    """Return the letters of each leading axis that the arrays of a call have: of a chunk, a step, or a part of one."""
    groups = split_axes(axes)
    if is_step:
        dropped = "".join(groups) if is_partial else "UT"
        kept = {*"".join(groups)} - {*dropped} | ({"N", AGENTS} if is_partial else set())
        groups = tuple("".join(letter for letter in group if letter in kept) for group in groups)
    return tuple(group for group in groups if group)


def check_sizes(axes: str, groups: tuple[str, ...], known: Collection[str]) -> None:
    """Raise ValueError where the sizes of axes that were flattened into one cannot be told: all but one must be known.

    `known` are the letters whose size is: that of the agents, and N where the number of environments is given.
    """
    for group in groups:
        unknown = [letter for letter in group if letter not in known]
        if len(unknown) > 1:
            mend = "give Recorder(num_envs=)" if set(unknown) - {"N"} <= {"U", "T"} else "unflatten it"
            raise ValueError(
                f"axes={axes!r}: the size of {' and of '.join(unknown)} cannot be told from their product; {mend}"
            )


def unfolded_shape(shape: tuple[int, ...], groups: tuple[str, ...], sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the leading sizes, one per letter, or None where a shape cannot be read so.

    Of each group at most one letter may have no size in `sizes`; what a letter by itself has is checked elsewhere.

    >>> unfolded_shape((8, 6, 2), ("T", "AN"), {"A": 3})
    (8, 3, 2)
    """
    if len(shape) < len(groups):
        return None
    out: list[int] = []
    for group, size in zip(groups, shape, strict=False):
        if len(group) == 1 and group != AGENTS:
            out.append(size)
            continue
        known = math.prod(sizes[letter] for letter in group if letter in sizes)
        unknown = [letter for letter in group if letter not in sizes]
        if len(unknown) > 1 or size % known or (not unknown and size != known):
            return None
        out += [sizes.get(letter, size // known) for letter in group]
    return tuple(out)
