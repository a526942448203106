"""Findings on the lengths of episodes: a time limit that is no truncation, a first episode too short, no end at all."""

import numpy as np

from trajlab.check.evidence import MIN_CASES, SHARE, Recording
from trajlab.check.finding import Finding, FindingName
from trajlab.segment import REASON_TRUNCATED, Rules

MIN_FIRST = 4
"""First episodes that say something by their lengths: fewer may differ from later ones because a policy has learned."""
MIN_ENDLESS = 100
"""Steps without an end that say something where others do end."""
TIMES_LONGEST = 20
"""And so many times the longest episode that ended."""
MIN_ALL_ENDLESS = 10_000
"""Steps without an end where none ends."""


def one_length(recording: Recording) -> Finding | None:
    """Find that every episode has terminated at exactly one length, as a time limit makes it; but so do some games.

    Only where one flag was found by its name and nothing else: a convention that was given, or a flag for truncation
    beside it, tells the two apart.
    """
    table, roles = recording.episodes, recording.roles
    whole = table.ended & table.start_seen
    lengths = table.length[whole]
    if roles.slots["truncated"] or roles.slots["done"] or not roles.is_found("terminated"):
        return None
    if len(lengths) < MIN_CASES or lengths[0] < 2 or (lengths != lengths[0]).any() or table.length.max() > lengths[0]:
        return None
    seen = f"every episode terminated after exactly {lengths[0]:,} steps, which looks like a time limit"
    mend = "Convention(truncated=...) names the flag that a time limit sets, "
    mend += f"Convention(terminated=None, truncated={roles.paths['terminated']!r}) if it is this one"
    return Finding("one_length", seen, len(lengths), len(lengths), "episodes", mend)


def _limits(recording: Recording) -> tuple[np.ndarray, int]:
    """Return the lengths at which first episodes were truncated, and the one at which all later ones were.

    The latter is 0 where they were not all truncated at one, or few of the first episodes were truncated: less than
    half, or of so few environments that one of them may have had its reasons.
    """
    table = recording.episodes
    truncated = (table.reason == REASON_TRUNCATED) & table.start_seen
    first, later = table.length[truncated & recording.is_first], table.length[truncated & ~recording.is_first]
    is_limit = len(later) >= MIN_CASES and (later == later[0]).all() and len(first) >= MIN_FIRST
    is_limit &= 2 * len(first) >= np.count_nonzero(table.ended & recording.is_first)
    return first, int(later[0]) if is_limit else 0


def off_by_one(recording: Recording) -> Finding | None:
    """Find rows read as what they are not, by first episodes one step longer or shorter than all later ones."""
    first, later = _limits(recording)
    if not later or (np.abs(first - later) != 1).any() or (first != first[0]).any():
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
    if not later or short < SHARE * len(first):
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
