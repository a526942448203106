"""The search for findings: which are looked for, and which of them say the same."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from trajlab.block.view import LogView
from trajlab.capture.roles import Roles
from trajlab.check.actions import strange_actions
from trajlab.check.evidence import Ends, Recording
from trajlab.check.finding import Finding, FindingName
from trajlab.check.lengths import endless, off_by_one, one_length, short_first
from trajlab.check.misread import (
    double_flags,
    early_flags,
    first_step_lost,
    late_flags,
    mid_episode,
    no_reset_row,
    replaced_final,
    reset_row,
)
from trajlab.segment import Episodes, RankMap, Rules

Search = Callable[[Ends], Finding | None]
ROWS: tuple[Search, ...] = (
    double_flags,
    no_reset_row,
    late_flags,
    early_flags,
    reset_row,
    lambda ends: off_by_one(ends.recording),
)
"""What a row is. One that is read as something else looks wrong in several ways: the first finding is given."""
BEGINNING: tuple[Search, ...] = (first_step_lost, mid_episode, lambda ends: short_first(ends.recording))
"""Whether recording began with the first step of episodes, seen in three ways."""


def find(
    view: LogView,
    ranks: RankMap,
    episodes: Episodes,
    rules: Rules,
    roles: Roles,
    *,
    reads_actions: bool = False,
    mends: Mapping[FindingName, str] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return what looks wrong about a recording; nothing where there is too little to tell.

    No field is fetched, unless `reads_actions`. What `mends` says stands in place of a finding's own mend.
    """
    recording = Recording(view, ranks, episodes, rules, roles)
    ends = Ends(recording)
    found = [_first(ROWS, ends)]
    if not found[0]:
        found = [replaced_final(ends), _first(BEGINNING, ends)]
    found += [one_length(recording), endless(recording)]
    if reads_actions:
        found.append(strange_actions(recording))
    return tuple(dataclasses.replace(one, mend=mends.get(one.name, one.mend)) for one in found if one is not None)


def _first(searches: Sequence[Search], ends: Ends) -> Finding | None:
    return next((finding for search in searches if (finding := search(ends)) is not None), None)
