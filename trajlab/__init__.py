"""Record RL rollouts in JAX, episode by episode, and look at them as labelled xarray data."""

from trajlab.capture.convention import Convention
from trajlab.recorder import Recorder, from_rollout

__all__ = ["Convention", "Recorder", "from_rollout"]
