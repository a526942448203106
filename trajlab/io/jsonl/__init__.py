"""JSON Lines: one file per episode, a line per step."""

from trajlab.io.jsonl.read import read_jsonl
from trajlab.io.jsonl.write import write_jsonl

__all__ = ["read_jsonl", "write_jsonl"]
