"""mjlab: a recorder term that records every step of a manager-based environment.

mjlab shows a step at its end, when environments that ended have been reset already: their actions are zero and their
observations those of the next episode. What the step led to there is read before the reset; what the actions were
chosen from is kept from the end of the step before.
"""

import functools
from typing import Any

from trajlab.integrations.managers.arrays import Fields, merged
from trajlab.integrations.managers.shared import SharedRecorder
from trajlab.integrations.managers.term import StepTerm
from trajlab.recorder.owned import owned

__all__ = ["RecordEpisodes", "SharedRecorder"]  # noqa: F822


class MjlabTerm(StepTerm):
    """The hooks of `RecordEpisodes`, as mjlab's recorder manager calls them."""

    GROUP = "actor"

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)  # type: ignore[call-arg]  # mjlab's RecorderTerm
        self._begin(cfg.params, env)
        self._shown: Fields | None = None
        self._ended: Fields | None = None
        self._ended_ids: Any = None
        self._count = env.common_step_counter

    def record_pre_reset(self, env_ids: Any) -> None:
        """Read what the step led to, before environments that ended are reset within it."""
        if self.shared.is_recording:
            self._ended, self._ended_ids = self._own_after(), env_ids

    def record_post_reset(self, env_ids: Any) -> None:
        """Read what environments show after a reset by hand; one within a step is followed by the step's end."""
        if self.shared.is_recording and self._ended is None:
            self._has_missed(steps=0)
            self.shared.mark_reset(env_ids)
            self._shown = self._own_before()

    def record_post_step(self) -> None:
        """Record the step: what its actions were chosen from, and what it led to."""
        if not self.shared.is_recording:
            return
        after, before = self._own_after(), self._own_before()
        if self._ended is not None:
            after = merged(owned(self._env.reset_buf, "reset_buf"), self._ended, after)
        if not self._has_missed(steps=1) and self._shown is not None:
            if self._is_first:
                self.shared.begin()
                if "obs" in before and not self._env.cfg.auto_reset:
                    after["final_obs"] = before["obs"]
            self.shared.fill(self._shown, is_last=False)
            self.shared.fill(after, is_last=True)
            if self._ended is not None and self._success is True:
                self.shared.mark_reset(self._ended_ids)
        self._shown, self._ended = before, None

    def _has_missed(self, *, steps: int) -> bool:
        """Say whether there were other than `steps` steps since it was asked last: one broke off, and is a gap."""
        count, self._count = self._count, self._env.common_step_counter
        has_missed = bool(self._count != count + steps)
        if has_missed:
            self.shared.mark_gap()
        return has_missed

    def close(self) -> None:
        """Close the recorder; what was recorded stays readable."""
        self.shared.close()


@functools.cache
def _term() -> type:
    from mjlab.managers.recorder_manager import RecorderTerm

    return type("RecordEpisodes", (MjlabTerm, RecorderTerm), {"__module__": __name__, "__doc__": StepTerm.__doc__})


def __getattr__(name: str) -> Any:
    """Return `RecordEpisodes`, which needs mjlab."""
    if name == "RecordEpisodes":
        return _term()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
