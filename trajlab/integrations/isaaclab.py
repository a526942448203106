"""Isaac Lab: a recorder term that records every step of a manager-based RL environment.

Isaac Lab shows a step twice: before it, with the observation its action was chosen from, and after it, before any
environment is reset, with the observation it led to.
"""

import functools
from typing import Any

from trajlab.integrations.managers.shared import SharedRecorder
from trajlab.integrations.managers.step_row import SUCCESS
from trajlab.integrations.managers.term import StepTerm

__all__ = ["RecordEpisodes", "RecordEpisodesCfg", "SharedRecorder"]  # noqa: F822

Nothing = tuple[None, None]
"""What a hook returns that leaves nothing for Isaac Lab's own store of episodes."""


class IsaacLabTerm(StepTerm):
    """The hooks of `RecordEpisodes`, as Isaac Lab's recorder manager calls them."""

    GROUP = "policy"

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)  # type: ignore[call-arg]  # Isaac Lab's RecorderTerm
        self._begin(cfg.params, env)

    def record_pre_step(self) -> Nothing:
        """Begin a row with what the action was chosen from."""
        if self.shared.is_recording:
            if self._is_first:
                self.shared.begin()
            self.shared.fill(self._own_before(), is_last=False)
        return None, None

    def record_post_step(self) -> Nothing:
        """Record what the step led to, the observation after it included."""
        if self.shared.is_recording:
            self.shared.fill(self._own_after(), is_last=True)
        return None, None

    def record_pre_reset(self, env_ids: Any) -> Nothing:
        """Note that the environments begin new episodes."""
        if self.shared.is_recording:
            self.shared.mark_reset(env_ids)
        return None, None

    def after_step(self) -> dict[str, Any]:
        """Return what a step led to; with the observation in `before_step` also the one after it."""
        fields = super().after_step()
        return (
            {**fields, "final_obs": self.observation()} if self._is_first and self._observation is not None else fields
        )

    def close(self, file_path: str | None = None) -> None:
        """Close the recorder; what was recorded stays readable. The path is Isaac Lab's and not used."""
        self.shared.close()

    def _default_success(self) -> Any:
        return _named_success if self._is_first else None


def _named_success(env: Any) -> Any:
    """Return the termination term that Isaac Lab takes for success, None where there is none."""
    terms = env.termination_manager
    return terms.get_term(SUCCESS) if SUCCESS in terms.active_terms else None


@functools.cache
def _classes() -> dict[str, type]:
    from isaaclab.managers.manager_term_cfg import RecorderTermCfg
    from isaaclab.managers.recorder_manager import RecorderTerm
    from isaaclab.utils import configclass

    term = type("RecordEpisodes", (IsaacLabTerm, RecorderTerm), {"__module__": __name__, "__doc__": StepTerm.__doc__})
    own: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": "The configuration of the term `RecordEpisodes`.",
        "__annotations__": {"class_type": type, "params": dict},
        "class_type": term,
        "params": {},
    }
    cfg = configclass(type("RecordEpisodesCfg", (RecorderTermCfg,), own))
    return {"RecordEpisodes": term, "RecordEpisodesCfg": cfg}


def __getattr__(name: str) -> Any:
    """Return `RecordEpisodes` or its configuration, which need Isaac Lab."""
    if name in ("RecordEpisodes", "RecordEpisodesCfg"):
        return _classes()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
