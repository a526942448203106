"""What the self-check says."""

import dataclasses
from collections.abc import Sequence

from trajlab.errors import warn_user


@dataclasses.dataclass(frozen=True)
class Finding:
    """A sign that a recording is not what its convention says.

    Attributes
    ----------
    name : str
        What kind of finding it is.
    seen : str
        What was seen.
    count, of : int
        In how many cases it was seen, of how many looked at.
    unit : str
        What a case is: ``"ends"``, ``"episodes"``, ``"environments"``.
    mend : str
        The argument that would mend it.
    """

    name: str
    seen: str
    count: int
    of: int
    unit: str
    mend: str

    def __str__(self) -> str:
        """Return all of it in one line."""
        return f"{self.seen} (in {self.count:,} of {self.of:,} {self.unit}); {self.mend}"

    def __repr__(self) -> str:
        """Return the same, with its name."""
        return f"<{self.name}: {self}>"


def warn_about(findings: Sequence[Finding]) -> None:
    """Give one warning that names all findings; none where there are none."""
    if len(findings) == 1:
        warn_user(f"the recording may not be what its convention says: {findings[0]}")
    elif findings:
        listed = "".join(f"\n  - {finding}" for finding in findings)
        warn_user(f"the recording may not be what its convention says:{listed}")
