"""Draw how the cost grows: `python docs/scaling.py` measures anew and writes docs/_static/scaling.png."""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.benchmarks.scaling import FLAT, VARIED, Growth, Size, measure

MEASURED, LINE = "#0072B2", "#777777"  # of Okabe and Ito's colours, and grey


def _draw(ax: Axes, name: str, growth: Growth) -> None:
    """Draw medians with their quartiles, and a line of slope 1 (0 where nothing should grow) through the last one."""
    values, medians = np.array(growth.values), growth.medians
    low, high = np.percentile(growth.seconds, [25, 75], axis=1)
    slope = 0 if name in FLAT else 1
    ax.plot(values, medians[-1] * (values / values[-1]) ** slope, "--", color=LINE, lw=1.2)
    ax.errorbar(values, medians, [medians - low, high - medians], fmt="o-", color=MEASURED, ms=4, lw=1.2, capsize=2)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(values[::2], [str(value) for value in values[::2]])
    ax.minorticks_off()
    ax.set_xlabel(VARIED[name][0])
    ax.set_title("dashed: constant" if name in FLAT else "dashed: linear", fontsize=9, color=LINE)
    ax.grid(alpha=0.3)


def main() -> None:
    """Measure along each size and draw the panels."""
    figure, axes = plt.subplots(1, len(VARIED), figsize=(13, 3.1), sharey=True, layout="constrained")
    for ax, name in zip(axes, VARIED, strict=True):
        _draw(ax, name, measure(name, quick=False))
    axes[0].set_ylim(1e-3, 1)
    axes[0].set_yticks([1e-3, 1e-2, 1e-1, 1], ["1 ms", "10 ms", "100 ms", "1 s"])
    axes[0].set_ylabel("median time")
    size = Size()
    figure.suptitle(
        "Record all, make the Dataset, count actions, mean state over time; otherwise "
        f"T={size.steps}, N={size.envs}, {size.fields} fields of 4, episodes of {size.length}, {size.chunks} chunks",
        fontsize=10,
    )
    figure.savefig(Path(__file__).parent / "_static" / "scaling.png", dpi=110)


if __name__ == "__main__":
    main()
