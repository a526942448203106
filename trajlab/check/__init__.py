"""The self-check: signs that a recording is read by another convention than it was made with."""

from trajlab.check.actions import STRANGE_ACTIONS
from trajlab.check.finding import Finding, FindingName, warn_about
from trajlab.check.search import find

__all__ = ["STRANGE_ACTIONS", "Finding", "FindingName", "find", "warn_about"]
