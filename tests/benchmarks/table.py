"""The table that is printed, and the lines above it that say where and with what it was measured."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("trajlab", "jax", "numpy", "xarray", "scipy", "factoriax", "flashbax", "minari", "gymnasium")


class Row(NamedTuple):
    """One measurement; `must` is empty for what stands beside a target for information."""

    what: str
    must: str
    measured: str
    spread: str
    reached: bool | None = None


HEAD = ("what", "must reach", "measured", "quartiles (count)", "reached")


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table with aligned columns."""
    words = {None: "", True: "yes", False: "NO"}
    cells = [HEAD, *((*row[:4], words[row.reached]) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    lines = ["| " + " | ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)) + " |" for line in cells]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    return "\n".join(lines)


def environment() -> str:
    """Return machine, load, date and versions."""
    now = datetime.datetime.now(datetime.UTC)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return "\n".join(
        [
            f"- machine: {_processor()}, {os.cpu_count()} cores{load}; {platform.system()}",
            f"- date: {now:%Y-%m-%d %H:%M} UTC",
            f"- versions: Python {platform.python_version()}, {versions}",
        ]
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """Return the processor's name where the system tells it, else its architecture."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()} ({platform.machine()})"
    return platform.processor() or platform.machine()
