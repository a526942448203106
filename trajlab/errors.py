"""Helpers that phrase errors: what was wrong, the value got, what is allowed, what to do."""

import difflib
import operator
import sys
import warnings
from collections.abc import Iterable
from typing import Any, get_args

PASSED_OVER = frozenset({"trajlab", "xarray", "numpy", "jaxtyping", "beartype"})
"""Packages whose lines no warning is for."""


def require_text(argument: str, value: Any, what: str) -> None:
    """Raise TypeError where an argument that takes a name, of `what`, is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{argument}={value!r}; expected the name of {what}, a text")


def is_bool(value: Any) -> bool:
    """Say whether something is a bool, or an array of them: Python takes them for numbers."""
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def has_bool(values: Any) -> bool:
    """Say whether something is a bool, or a list or array that holds one."""
    return is_bool(values) or (isinstance(values, list | tuple) and any(map(has_bool, values)))


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return the argument called `name` as an int; raise where it is no whole number, or not within least and most."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or is_bool(value):
        raise TypeError(f"{name}={value!r}; expected a whole number, at least {least}")
    if number < least:
        raise ValueError(f"{name}={value!r}; expected at least {least}")
    if most is not None and number > most:
        raise ValueError(f"{name}={value!r}; expected at most {most:,}")
    return number


def shown(value: Any) -> str:
    """Return the repr of an object of the user's, or what stands for one that raises."""
    try:
        return repr(value)
    except Exception:  # a message about one failure must not fail by another
        return f"<{type(value).__name__}, whose repr raises>"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'action'?"` for a `name` that resembles a known one, else `""`."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


def unknown_name(what: str, name: str, known: Iterable[str]) -> KeyError:
    """Return the KeyError for a `name` that is none of the `known` ones.

    `what` says what was looked for: ``"field"`` gives *no field 'acton'. Did you mean 'action'? There are: ...*
    """
    known = list(known)
    there = ", ".join(map(repr, known)) if known else "none"
    return FriendlyKeyError(f"no {what} {name!r}.{did_you_mean(name, known)} There are: {there}.")


class FriendlyKeyError(KeyError):
    """A KeyError whose message prints as text (a plain one prints the repr of its text)."""

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0])


def check_option(name: str, value: Any, literal: Any) -> None:
    """Raise ValueError when `value` is none of the values of the `Literal` type `literal`."""
    allowed = get_args(literal)
    if value not in allowed:
        hint = did_you_mean(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise ValueError(f"{name}={value!r}; expected one of {', '.join(map(repr, allowed))}.{hint}")


def raise_all(problems: list[str], what: str) -> None:
    """Raise one ValueError that lists every problem, or nothing when there is none."""
    if len(problems) == 1:
        raise ValueError(f"{what}: {problems[0]}")
    if problems:
        raise ValueError(f"{what}:\n" + "\n".join(f"  - {problem}" for problem in problems))


def warn_user(message: str) -> None:
    """Warn at the user's line: the nearest one outside of this package and of what may stand between."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
