"""The finding on actions, which alone reads a field."""

import math

import numpy as np

from trajlab.block.layout import Field
from trajlab.check.evidence import MIN_CASES, Recording
from trajlab.check.finding import Finding

STRANGE_ACTIONS = "strange_actions"
MAX_READ = 2**20
"""Numbers read; of more, whole episodes are left out."""
MIN_BEFORE = 50
"""Transitions that show which actions there are."""
EXPECTED = 20
"""So often an action would be expected among them, did it occur as often there as later."""


def strange_actions(recording: Recording) -> Finding | None:
    """Find integer actions outside the range of those in the first episodes, where no reset row can have come before.

    A negative one counts where there was none; any other only where chance can hardly have left it out.
    """
    firsts = np.flatnonzero(recording.is_first)
    others = np.flatnonzero(~recording.is_first)
    for field in recording.fields_of("action"):
        if field.dtype.kind not in "iu" or field.is_key:
            continue
        room = MAX_READ // max(2 * math.prod(field.shape), 1)
        before, _ = _values(recording, field, firsts, room)
        after, episode = _values(recording, field, others, room)
        if len(before) < MIN_BEFORE or not len(after) or not before.shape[1]:
            continue
        low, high = before.min(axis=0), before.max(axis=0)
        outside = (after < low) | (after > high)
        enough = np.count_nonzero(outside, axis=0) * len(before) >= EXPECTED * len(after)
        negative = (after < 0) & (low >= 0)
        enough |= np.count_nonzero(negative, axis=0) >= MIN_CASES
        found = (outside & enough).any(axis=1)
        if found.any():
            strange = after[outside & enough]
            seen = (
                f"actions in {field.name!r} from {strange.min()} to {strange.max()} are outside of those in the first "
                f"episodes, {low.min()} to {high.max()}, at {np.count_nonzero(found):,} of {len(after):,} transitions"
            )
            mend = "record(mask=...) leaves out cells that are no transitions, Convention(autoreset=...) reset rows"
            count, of = (len(np.unique(x)) for x in (episode[found], episode))
            return Finding(STRANGE_ACTIONS, seen, count, of, "episodes", mend)
    return None


def _values(recording: Recording, field: Field, episodes: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (M, K) in episodes spread over those given, and the episode of each."""
    table = recording.episodes
    total = int(table.length[episodes].sum())
    episodes = episodes[:: max(1, math.ceil(total / max(room, 1)))]
    length = table.length[episodes]
    episode = np.repeat(episodes, length)
    time = np.arange(len(episode)) - np.repeat(np.cumsum(length) - length, length)
    column = table.column[episode]
    rows = recording.ranks.rows(column, table.start[episode] + time)
    values = recording.view.read(field.name, rows, column)
    return values.reshape(len(values), math.prod(field.shape)), episode
