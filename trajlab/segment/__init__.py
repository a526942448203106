"""Flags to a table of episodes: integers only, no fields.

Cells are counted in two ways. A *row* is a step of the recording. A *rank* counts, within one environment's
column, only the cells that were recorded (unmasked). Episodes are runs of consecutive ranks; without masks
rank and row are the same number.
"""

from trajlab.segment.ranks import RankMap, Span
from trajlab.segment.segmenter import Segmenter
from trajlab.segment.settling import Settled, Settling
from trajlab.segment.table import (
    REASON_CUT,
    REASON_DONE,
    REASON_TERMINATED,
    REASON_TRUNCATED,
    Episodes,
    Rules,
    without_first,
)

__all__ = [
    "REASON_CUT",
    "REASON_DONE",
    "REASON_TERMINATED",
    "REASON_TRUNCATED",
    "Episodes",
    "RankMap",
    "Rules",
    "Segmenter",
    "Settled",
    "Settling",
    "Span",
    "without_first",
]
