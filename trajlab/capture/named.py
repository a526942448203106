"""The table of named conventions: one row per package whose rollouts have a shape of their own.

A row gives the slots of `trajlab.Convention` that differ from ``"auto"``.
"""

from typing import Any

NAMED: dict[str, dict[str, Any]] = {
    "auto": {},
}
