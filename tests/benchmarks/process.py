"""Fresh processes, and the memory of one's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def fresh(module: str, *arguments: str, timeout: float = 600) -> Any:
    """Run a module of this package in a new Python process; return what its last line of output says, as JSON.

    Raises
    ------
    RuntimeError
        When the process fails; the message holds the end of what it wrote.
    """
    command = [sys.executable, "-m", f"tests.benchmarks.{module}", *arguments]
    environment = {**os.environ, "MPLBACKEND": "agg", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, not at every import
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def resident_bytes() -> int:
    """Return the memory this process holds."""
    return _status("VmRSS")


def forget_peak() -> None:
    """Let `peak_bytes` begin anew (Linux)."""
    CLEAR.write_text("5")


def peak_bytes() -> int:
    """Return the most memory this process has held since `forget_peak`."""
    return _status("VmHWM")


def _status(key: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{STATUS} has no {key}")
