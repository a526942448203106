"""Gymnasium environments, recorded step by step: one environment, or many that step together."""

from trajlab.integrations.gymnasium.trajectories import RecordTrajectory
from trajlab.integrations.gymnasium.vector_trajectories import RecordVectorTrajectory
from trajlab.integrations.gymnasium.wrappers import RecordEpisodes, RecordVectorEpisodes

__all__ = ["RecordEpisodes", "RecordTrajectory", "RecordVectorEpisodes", "RecordVectorTrajectory"]
