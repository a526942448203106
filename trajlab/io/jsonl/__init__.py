"""JSON Lines: one file per episode, a line per step."""

from trajlab.io.jsonl.read import read_jsonl
from trajlab.io.jsonl.write import write_jsonl
from trajlab.io.jsonl.writer import JsonlWriter

__all__ = ["JsonlWriter", "read_jsonl", "write_jsonl"]
