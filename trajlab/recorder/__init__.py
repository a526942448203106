"""The recorder: the one stateful object."""

from trajlab.recorder.recorder import Recorder
from trajlab.recorder.rollout import from_rollout

__all__ = ["Recorder", "from_rollout"]
