"""Record RL rollouts in JAX, episode by episode, and look at them as labelled xarray data."""

from trajlab.capture.convention import Convention
from trajlab.dataset.from_episodes import from_episodes
from trajlab.recorder import Recorder, from_rollout

__all__ = ["Convention", "Recorder", "from_episodes", "from_rollout"]
