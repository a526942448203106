"""Recorder terms: what the integrations of simulators with managers share."""

from trajlab.integrations.managers.shared import SharedRecorder

__all__ = ["SharedRecorder"]
