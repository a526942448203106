"""The recorder: the one stateful object."""

from trajlab.recorder.recorder import Recorder
from trajlab.recorder.recording import attach
from trajlab.recorder.rollout import from_rollout

__all__ = ["Recorder", "attach", "from_rollout"]
