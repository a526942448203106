"""What the self-check says."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

from trajlab.errors import warn_user

FindingName = Literal[
    "no_reset_row",
    "reset_row",
    "late_flags",
    "early_flags",
    "double_flags",
    "replaced_final",
    "first_step_lost",
    "mid_episode",
    "one_length",
    "endless",
    "strange_actions",
]
HINTS: frozenset[FindingName] = frozenset({"one_length"})
"""Findings too often about nothing for a warning."""
Unit = Literal["ends", "episodes", "environments"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A sign that a recording is not what its convention says.

    Attributes
    ----------
    name : {"no_reset_row", "reset_row", "late_flags", ...}
        What kind of finding it is; the page on recording lists all.
    seen : str
        What was seen.
    count, of : int
        In how many cases it was seen, of how many looked at.
    unit : {"ends", "episodes", "environments"}
        What a case is.
    mend : str
        What would mend it: an argument, or where an environment fills the recorder, what to do there.
    """

    name: FindingName
    seen: str
    count: int
    of: int
    unit: Unit
    mend: str

    def __str__(self) -> str:
        """Return all of it in one line."""
        return f"{self.seen} (in {self.count:,} of {self.of:,} {self.unit}); {self.mend}"

    def __repr__(self) -> str:
        """Return the same, with its name."""
        return f"<{self.name}: {self}>"


def warn_about(findings: Sequence[Finding]) -> None:
    """Give one warning that names all findings but hints; none where there are none."""
    findings = [finding for finding in findings if finding.name not in HINTS]
    if len(findings) == 1:
        warn_user(f"the recording may not be what its convention says: {findings[0]}")
    elif findings:
        listed = "".join(f"\n  - {finding}" for finding in findings)
        warn_user(f"the recording may not be what its convention says:{listed}")
