"""What is fixed about a buffer."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from trajlab.capture.convention import STANDARD_NAMES, Convention
from trajlab.capture.plan import Plan
from trajlab.capture.select import Fields
from trajlab.segment import Rules

Keep = Literal["first", "last"]
MAX_ROWS = 2**30
"""Of a buffer. What is appended is counted in 32 bits, which is room for 2**31 - 1 rows in a run."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """What is fixed about a buffer. Two made alike are equal, so that nothing compiles anew for the second.

    Attributes
    ----------
    plan : Plan
    convention : Convention
    fields : list, mapping or None
    key : tuple
        All that tells one plan from another.
    keep : {"first", "last"}
    capacity : int
        Rows kept.
    chunk_rows, updates : int
        Rows of a chunk, and how many updates it holds.
    rules : Rules
        What the flags mean.
    """

    plan: Plan = dataclasses.field(compare=False)
    convention: Convention = dataclasses.field(compare=False)
    fields: Fields = dataclasses.field(compare=False)
    key: tuple[Any, ...]
    keep: Keep
    capacity: int
    chunk_rows: int
    updates: int
    rules: Rules

    @property
    def chunks(self) -> int:
        """Chunks kept."""
        return self.capacity // self.chunk_rows

    @property
    def room(self) -> int:
        """Chunks for which there is room; one more than are kept where what comes too late is written behind them."""
        return self.chunks + (self.keep == "first")

    def __repr__(self) -> str:
        """Return what two buffers may differ in, for JAX prints this where their structures do."""
        return f"Spec(keep={self.keep!r}, capacity={self.capacity}, chunk_rows={self.chunk_rows}, {self.names})"

    @property
    def names(self) -> str:
        """Names of the recorded fields, as text."""
        return ", ".join(field.name for field in self.plan.layout.fields if not field.hidden)


def key_of(plan: Plan, convention: Convention, fields: Fields) -> tuple[Any, ...]:
    """Return all that tells one plan from another, to be compared and hashed."""
    functions = tuple(source for slot in STANDARD_NAMES for source in convention.sources(slot) if callable(source))
    asked = tuple(fields.items()) if isinstance(fields, Mapping) else fields if fields is None else tuple(fields)
    return plan.layout, plan.roles.found, functions, asked
