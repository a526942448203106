"""Findings on the convention: what stands after an end, whose flags a row carries, what the final observation is.

Each takes ends at which observations have been compared. *Home* is the first observation of the environment's first
episode, which begins with the recording and is right under any convention. Where every episode starts there, it
tells where the others really start. Where starts are random, each home is one draw of many.
"""

import numpy as np

from trajlab.check.evidence import MIN_CASES, SHARE, Ends, nearly_all, prints_of
from trajlab.check.finding import Finding, FindingName

MANY = 0.75
"""Of episodes that do not follow a long one, more than so many of one step mean that they are just frequent."""
CHANCE = 0.01
"""Homes that are more probable by chance tell nothing: one environment's alone never does."""


def double_flags(ends: Ends) -> Finding | None:
    """Find end flags on two rows in a row: every other episode is then a single transition."""
    table, (before, after) = ends.recording.episodes, ends.recording.followed
    where = table.length[before] > 1
    is_single = (table.length[after] == 1) & table.ended[after]
    twice = where & is_single
    if ends.recording.rules.autoreset != "same_step" or not nearly_all(twice, where):
        return None
    behind_single = is_single[~where]
    if np.count_nonzero(behind_single) > MANY * len(behind_single):
        return None  # so many episodes are of one step, whatever they follow
    seen = "end flags stand on two rows in a row"
    mend = 'Convention(autoreset="next_step") takes the second as one on a reset row'
    return _finding("double_flags", seen, twice, where, mend)


def no_reset_row(ends: Ends) -> Finding | None:
    """Find transitions that are read as reset rows."""
    if ends.recording.rules.autoreset != "next_step" or not ends.observations:
        return None
    moves = ends.length_after > 1
    mend = 'Convention(autoreset="same_step") takes that row as a transition'
    what = 'autoreset="next_step" says that the row after an end shows the final observation, but '
    is_next = ends.same("reset row", "start")
    may_be = _starts_vary(ends) and _varies(~ends.same("start", "second"), moves)
    if ends.following:  # which show the same: then episodes begin where the one before has ended
        may_be &= not nearly_all(_goes_on(ends) & _leads_to(ends, "reset row"), ends.length > 1)
    if may_be and nearly_all(is_next, moves):
        return _finding("no_reset_row", f"{what}it is the next episode's first", is_next, moves, mend)
    # those of one step are passed over, so that what is read as the next starts at home, too
    elsewhere, is_home = _elsewhere(ends, ends.has_home, share=0.5), ends.same("reset row", "home")
    if nearly_all(is_home, elsewhere):
        if not ends.recording.rules.previous_row:
            mend += ', or Convention(flags="previous_row") if a row carries the flags of the one before'
        return _finding("no_reset_row", f"{what}it is the one that episodes start with", is_home, elsewhere, mend)
    if ends.following:
        has_more = ends.length > 1
        goes_on, is_other = _goes_on(ends), ~_leads_to(ends, "reset row")
        if nearly_all(goes_on & is_other, has_more):
            seen = f"{what}it is not the next observation recorded there"
            return _finding("no_reset_row", seen, goes_on & is_other, has_more, mend)
    return None


def reset_row(ends: Ends) -> Finding | None:
    """Find reset rows that are read as transitions, or flags that stand one row before the one they belong to."""
    rules = ends.recording.rules
    is_same_step = rules.autoreset == "same_step"
    mends = ['Convention(autoreset="next_step") takes that row as a reset row'] * is_same_step
    mends += ['Convention(flags="row") takes the flags of a row as its own'] * rules.previous_row
    if not mends:
        return None
    name: FindingName = "reset_row" if is_same_step else "early_flags"
    mend = ", or ".join(mends)
    what = "the row after an end looks like a reset row, not a transition: " if is_same_step else ""
    where = ends.has_home & (ends.length_after > 1)
    if ends.observations:
        elsewhere, is_home = _elsewhere(ends, where), ends.same("second", "home")
        if nearly_all(is_home, elsewhere):
            seen = f"{what}the observation that episodes start with stands one row later"
            return _finding(name, seen, is_home, elsewhere, mend)
    unpaid = ends.is_unpaid
    if is_same_step and unpaid and not (unpaid["home"] & where).any() and not _by_chance(ends, ~unpaid["start"], where):
        is_only = unpaid["start"] & ~unpaid["second"]
        if nearly_all(is_only, where):
            return _finding(name, f"{what}its reward is 0, and that of others is not", is_only, where, mend)
    return None


def late_flags(ends: Ends) -> Finding | None:
    """Find flags that stand one row after the one they belong to."""
    rules = ends.recording.rules
    if rules.autoreset != "same_step" or rules.previous_row or not ends.observations:
        return None
    mend = 'Convention(flags="previous_row") takes each flag as that of the row before'
    what = "end flags look one row late: "
    where = (ends.length > 1) & (ends.length_after > 1)  # of one step: there, a flagged row is an end of its own
    elsewhere, is_home = _elsewhere(ends, where & ends.has_home), ends.same("last", "home")
    if nearly_all(is_home, elsewhere):
        seen = f"{what}the flagged row shows the observation that episodes start with"
        return _finding("late_flags", seen, is_home, elsewhere, mend)
    if ends.following:
        jumps, goes_on = ~_goes_on(ends), _leads_to(ends, "start")
        if nearly_all(jumps & goes_on, where):
            seen = f"{what}the next observation recorded before the flagged row is another than that row's"
            return _finding("late_flags", seen, jumps & goes_on, where, mend)
    return None


def early_flags(ends: Ends) -> Finding | None:
    """Find flags that stand one row before the one they belong to, by next observations that go on behind them."""
    rules = ends.recording.rules
    if rules.autoreset != "same_step" or not (ends.following and ends.observations):
        return None
    has_more = (ends.length > 1) & (ends.length_after > 1)
    goes_on = (ends.following["last"] == ends.observations["start"]).all(axis=1)
    jumps = (ends.following["start"] != ends.observations["second"]).any(axis=1)
    if not nearly_all(goes_on & jumps, has_more):
        return None
    seen = "end flags look one row early: the next observation recorded a row later is another than that row's"
    mend = 'Convention(flags="row") takes the flags of a row as its own'
    if not rules.previous_row:
        mend = "Convention(done=...), or terminated= and truncated=, names the flags that stand on the last row"
    return _finding("early_flags", seen, goes_on & jumps, has_more, mend)


def replaced_final(ends: Ends) -> Finding | None:
    """Find final observations that auto-reset has replaced by the next episode's first."""
    slot = "final_observation" if ends.finals else "next_observation"
    finals = ends.finals or ends.following
    if not (finals and ends.observations):
        return None
    autoreset, everywhere = ends.recording.rules.autoreset, np.ones(len(ends.before), bool)
    is_next = (finals["last"] == ends.observations["start"]).all(axis=1)
    if autoreset == "next_step":
        is_next &= ~ends.same("reset row", "start")  # a reset row that shows the same shows the final one
    if not nearly_all(is_next, everywhere) or not _varies(~ends.same("last", "start"), everywhere):
        return None
    mend = f"Convention({slot}=None) leaves it out"
    if autoreset == "same_step" and not nearly_all(ends.same("start", "home"), ends.has_home):
        mend += ', or Convention(autoreset="next_step") if the row after an end is a reset row'
    seen = "the final observation is the next episode's first, so auto-reset seems to have replaced it"
    if not _starts_vary(ends):
        seen += ", unless episodes end where they begin"
    return _finding("replaced_final", seen, is_next, everywhere, mend)


def mid_episode(ends: Ends) -> Finding | None:
    """Find a recording that began in mid-episode, by an observation that all later episodes start with."""
    if not ends.observations:
        return None
    is_later = ~ends.recording.is_first[ends.before]
    alike = ends.same("own start", "start")[is_later]
    if len(alike) < MIN_CASES or not alike.all():
        return None
    columns = ends.recording.episodes.column[ends.after]
    known = np.unique(columns[ends.has_home])
    other = np.unique(columns[ends.has_home & ~ends.same("start", "home")])
    if not len(other) or len(other) < len(known) / 2:
        return None
    seen = "the first episode starts with another observation than all later ones"
    mend = "Recorder(starts_fresh=False) if recording began in mid-episode"
    return Finding("mid_episode", seen, len(other), len(known), "environments", mend)


def first_step_lost(ends: Ends) -> Finding | None:
    """Find a first row that was left out as that of a reset and has a reward, which a reset has not.

    Where an observation stands on the row of the action that led to it, one step more is recorded than there are
    transitions. A scan over steps does not have that one.
    """
    recording = ends.recording
    rules, rewards = recording.rules, recording.fields_of("reward")
    if not (rules.drops_first and rules.starts_fresh and rewards) or rules.first_is_transition:
        return None
    firsts = np.flatnonzero(recording.is_first)
    prints = recording.prints(rewards, firsts, np.full_like(firsts, -1)) if len(firsts) else None
    if prints is None:
        return None
    is_float = all(field.dtype.kind == "f" for field in rewards)
    is_none = [prints_of(rewards, value) for value in (0, np.nan)[: 1 + is_float]]
    paid = ~np.any([(prints == of_none).all(axis=1) for of_none in is_none], axis=0)
    if not paid.any():
        return None
    seen = "the first row was left out, as that of a reset, but has a reward, so that the first transition is lost"
    mend = "record what the reset returned before it, with record_step(), or give Recorder(starts_fresh=False)"
    return Finding("first_step_lost", seen, int(paid.sum()), len(paid), "environments", mend)


def _elsewhere(ends: Ends, where: np.ndarray, *, share: float = SHARE) -> np.ndarray:
    """Return the cases in which an episode as it is read does not start at home.

    None where homes tell nothing: less than a `share` of the cases start elsewhere, as in a small world, or all homes
    may be what they are by chance.
    """
    at_home = ends.same("start", "home")
    elsewhere = where & ~at_home
    tells = np.count_nonzero(elsewhere) >= share * np.count_nonzero(where) and not _by_chance(ends, at_home, where)
    return elsewhere if tells else np.zeros_like(where)


def _by_chance(ends: Ends, seen: np.ndarray, where: np.ndarray) -> bool:
    """Say whether all homes may be by chance what is seen at some of the starts, as one draw for each environment."""
    share = (np.count_nonzero(seen & where) + 1) / (np.count_nonzero(where) + 1)
    environments = np.unique(ends.recording.episodes.column[ends.after[where]])
    return bool(share ** len(environments) > CHANCE)


def _goes_on(ends: Ends) -> np.ndarray:
    """Say at each end whether the next observation recorded before the last row is that row's."""
    return (ends.following["last but one"] == ends.observations["last"]).all(axis=1)


def _leads_to(ends: Ends, place: str) -> np.ndarray:
    """Say at each end whether the next observation recorded on the last row is the one at a place."""
    return (ends.following["last"] == ends.observations[place]).all(axis=1)


def _starts_vary(ends: Ends) -> bool:
    """Say whether episodes of one environment start with other observations than the one before."""
    return _varies(~ends.same("own start", "start"), np.ones(len(ends.before), bool))


def _varies(differs: np.ndarray, where: np.ndarray) -> bool:
    """Say whether observations are not all alike, so that two equal ones mean something."""
    return bool(np.count_nonzero(differs & where) * 2 >= np.count_nonzero(where))


def _finding(name: FindingName, seen: str, cases: np.ndarray, where: np.ndarray, mend: str) -> Finding:
    return Finding(name, seen, int((cases & where).sum()), int(where.sum()), "ends", mend)
