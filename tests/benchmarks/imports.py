"""What `import trajlab` costs beyond its two big dependencies."""

import json
import sys
import time

from .process import fresh
from .table import Row
from .timing import Spread

PROCESSES = 7
LIMIT = 0.15


def measure() -> dict[str, float | bool]:
    """Import jax and xarray, and then trajlab; return the seconds of both. For a fresh process only."""
    start = time.perf_counter()
    import jax  # noqa: F401
    import xarray  # noqa: F401

    between = time.perf_counter()
    import trajlab  # noqa: F401

    end = time.perf_counter()
    return {"peers": between - start, "trajlab": end - between, "pyplot": "matplotlib.pyplot" in sys.modules}


def imports(quick: bool) -> list[Row]:
    """Measure in several fresh processes; the first, which compiles what has changed, does not count."""
    found = [fresh("imports") for _ in range(2 if quick else PROCESSES + 1)][1:]
    own, share = Spread.of([f["trajlab"] for f in found]), Spread.of([f["trajlab"] / f["peers"] for f in found])
    pyplot = any(f["pyplot"] for f in found)
    text = f"{own.median:.3f} s, {share.median:.2f} of theirs; pyplot {'loaded' if pyplot else 'not loaded'}"
    return [
        Row(
            "`import trajlab` beyond jax and xarray",
            f"≤ {LIMIT} s, no pyplot",
            text,
            own.text(3, " s"),
            own.median <= LIMIT and not pyplot,
        )
    ]


if __name__ == "__main__":
    print(json.dumps(measure()))
