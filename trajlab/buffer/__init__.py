"""The buffer that a jitted run carries: the Recorder's log as a pytree of fixed size."""

from trajlab.buffer.appending import append
from trajlab.buffer.carry import Buffer, init_buffer
from trajlab.buffer.reading import to_dataset

__all__ = ["Buffer", "append", "init_buffer", "to_dataset"]
