"""Findings on the lengths of episodes: a time limit that is no truncation, a first episode too short, no end at all."""

import numpy as np

from trajlab.check.evidence import MIN_CASES, SHARE, Recording
from trajlab.check.finding import Finding, FindingName
from trajlab.segment import REASON_TERMINATED, REASON_TRUNCATED, Rules

MIN_ENDLESS = 100
"""Steps without an end that say something where others do end."""
TIMES_LONGEST = 20
"""And so many times the longest episode that ended."""
MIN_ALL_ENDLESS = 10_000
"""Steps without an end where none ends."""


def one_length(recording: Recording) -> Finding | None:
    """Find that every episode has terminated at exactly one length, as only a time limit makes it."""
    table = recording.episodes
    whole = table.ended & table.start_seen
    lengths = table.length[whole]
    if len(lengths) < MIN_CASES or lengths[0] < 2 or (lengths != lengths[0]).any():
        return None
    if (table.reason[whole] != REASON_TERMINATED).any() or table.length.max() > lengths[0]:
        return None
    flag = next(iter(recording.roles.slots["terminated"]), None)
    mend = "Convention(truncated=...) names the flag that a time limit sets"
    if flag is not None:
        mend += f", Convention(terminated=None, truncated={flag!r}) if it is this one"
    seen = f"every episode terminated after exactly {lengths[0]:,} steps, which looks like a time limit"
    return Finding("one_length", seen, len(lengths), len(lengths), "episodes", mend)


def _limits(recording: Recording) -> tuple[np.ndarray, int]:
    """Return the lengths at which first episodes ran into a limit, and the one that all later ones have, 0 for none.

    Where nothing is truncated, all that ended count. Of the first episodes, at least half have to show it.
    """
    table = recording.episodes
    ran_out = (table.reason == REASON_TRUNCATED) & table.start_seen
    if not ran_out.any():
        ran_out = table.ended & table.start_seen
    first, later = table.length[ran_out & recording.is_first], table.length[ran_out & ~recording.is_first]
    is_limit = len(later) >= MIN_CASES and (later == later[0]).all()
    is_limit &= 2 * len(first) >= np.count_nonzero(table.ended & recording.is_first)
    return first, int(later[0]) if is_limit else 0


def off_by_one(recording: Recording) -> Finding | None:
    """Find rows read as what they are not, by first episodes one step longer or shorter than all later ones."""
    first, later = _limits(recording)
    if not later or not len(first) or (np.abs(first - later) != 1).any() or (first != first[0]).any():
        return None
    seen = f"the first episode has {first[0]:,} steps, and each later one {later:,}"
    name, mends = _mends(recording.rules, is_longer=bool(first[0] > later))
    return Finding(name, seen, len(first), len(first), "environments", ", or ".join(mends)) if mends else None


def _mends(rules: Rules, *, is_longer: bool) -> tuple[FindingName, list[str]]:
    """Return what it means that first episodes are one step longer, or shorter, than later ones, and what mends it."""
    is_next_step = rules.autoreset == "next_step"
    reset_row = f'Convention(autoreset="{"same" if is_next_step else "next"}_step") if the row after an end is '
    reset_row += "a transition" if is_next_step else "a reset row"
    late = 'Convention(flags="previous_row") if a row carries the flags of the one before'
    early = 'Convention(flags="row") if a row carries its own flags'
    if is_longer:
        mends = [reset_row] * is_next_step + [late] * (not rules.previous_row)
        return "no_reset_row" if is_next_step else "late_flags", mends
    mends = [reset_row] * (not is_next_step) + [early] * rules.previous_row
    return "early_flags" if is_next_step else "reset_row", mends


def short_first(recording: Recording) -> Finding | None:
    """Find a recording that began in mid-episode, by a limit that came too early for the first episodes."""
    first, later = _limits(recording)
    short = np.count_nonzero(first < later)
    if not short or short < SHARE * len(first):
        return None
    seen = f"the first episode ended sooner than all later ones, which have {later:,} steps"
    mend = "Recorder(starts_fresh=False) if recording began in mid-episode"
    return Finding("mid_episode", seen, int(short), len(first), "environments", mend)


def endless(recording: Recording) -> Finding | None:
    """Find environments that never end."""
    table, width = recording.episodes, recording.view.layout.width
    if not len(table.length):
        return None
    ends = np.bincount(table.column[table.ended], minlength=width)
    longest_open = np.zeros(width, np.int64)
    np.maximum.at(longest_open, table.column[~table.ended], table.length[~table.ended])
    mend = "Convention(done=...), or terminated= and truncated=, names the flag that marks ends"
    if not ends.any():
        endless = np.count_nonzero(longest_open >= MIN_ALL_ENDLESS)
        seen = f"no episode has ended in {longest_open.max():,} steps"
        return Finding("endless", seen, int(endless), width, "environments", mend) if endless == width else None
    longest = table.length[table.ended].max()
    stuck = (ends == 0) & (longest_open >= max(MIN_ENDLESS, TIMES_LONGEST * longest))
    if ends.sum() < MIN_CASES or not stuck.any():
        return None
    seen = (
        f"no episode has ended in {longest_open[stuck].min():,} steps or more, while no other one has more than "
        f"{longest:,}"
    )
    mend += "; Recorder(envs=...) leaves environments out"
    return Finding("endless", seen, int(stuck.sum()), width, "environments", mend)
