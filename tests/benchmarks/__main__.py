"""Measure and print the table: ``python -m tests.benchmarks [names] [--quick]``, from the root of the repository."""

import argparse
import importlib
import json
import sys
import time

from .process import fresh
from .table import Row, environment, markdown

BENCHMARKS = {
    "record": "recording",
    "pending": "recording",
    "record_step": "steps",
    "add": "steps",
    "small_chunks": "small",
    "ring": "ring",
    "loop": "loop",
    "streaming": "loop",
    "rivals": "rivals",
    "gymnasium": "environments",
    "jsonl": "jsonl",
    "job": "job",
    "to_dataset": "reading",
    "statistics": "reading",
    "analyses": "analyses",
    "rival_analyses": "analyses",
    "scaling": "scaling",
    "imports": "imports",
    "gpu": "gpu",
}
"""Each benchmark is a function of that name in that module, and runs in a process of its own."""


def _here(name: str, quick: bool) -> None:
    """Run one benchmark in this process; print its rows as JSON."""
    module = importlib.import_module(f"tests.benchmarks.{BENCHMARKS[name]}")
    print(json.dumps(getattr(module, name)(quick)))


def main() -> int:
    """Run the benchmarks asked for; return 1 where one failed, whatever the others measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it runs, not how fast")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; expected some of {', '.join(BENCHMARKS)}")
    if given.here:
        _here(given.names[0], given.quick)
        return 0
    return _all(given.names or list(BENCHMARKS), given.quick)


def _all(names: list[str], quick: bool) -> int:
    rows: list[Row] = []
    failed = 0
    for name in names:
        start = time.perf_counter()
        try:
            found = fresh("__main__", name, "--here", *(["--quick"] if quick else []))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            failed = 1
            continue
        rows += [Row(*row) for row in found]
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(f"{environment()}\n\n{markdown(rows)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
