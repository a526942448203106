"""What the tests of agents share."""

from recorder.conftest import slow

__all__ = ["slow"]
