"""The texts of all plots, before they are written anywhere."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from trajlab.analysis.common import title_of
from trajlab.dataset.fields import component_labels, component_units
from trajlab.names import (
    LEFT_OUT_ATTR,
    NUM_ABOVE_ATTR,
    NUM_BELOW_ATTR,
    NUM_CUT_ATTR,
    NUM_EPISODES_ATTR,
    NUM_NAN_ATTR,
    NUM_OUTSIDE_ATTR,
    NUM_START_UNSEEN_ATTR,
)


def safe(text: str) -> str:
    """Return a text that can be drawn: what Matplotlib would take for a formula, and cannot read, is escaped."""
    return "\n".join(line if _is_drawable(line) else line.replace("$", r"\$") for line in text.split("\n"))


def _is_drawable(line: str) -> bool:
    from matplotlib.cbook import is_math_text

    if not is_math_text(line):
        return True
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(line)
    except ValueError:
        return False
    return True


def component_titles(ds: xr.Dataset, field: str) -> list[str]:
    """Return the name of each component: its label where that is a text, as in ``x``, else as in ``obs[0]``."""
    dims = ds[field].dims[2:]
    titles = component_labels(ds, field)
    if dims and all(dim in ds.coords and ds[dim].dtype.kind in "UOT" for dim in dims):
        return [title[len(field) + 1 : -1].replace(",", ", ") for title in titles]
    return titles


def axis_labels(ds: xr.Dataset, field: str) -> list[str]:
    """Return what each component is called on an axis, with units; a single one as the field."""
    titles = component_titles(ds, field)
    titles = titles if len(titles) > 1 else [title_of(ds, field)]
    return [with_units(title, unit) for title, unit in zip(titles, component_units(ds, field), strict=True)]


def with_units(label: str, units: Any) -> str:
    """Return ``"height [m]"``."""
    return f"{label} [{units}]" if units not in (None, "", "1") else label


def label_of(variable: xr.DataArray) -> str:
    """Return a variable's `long_name` (else its name, with spaces) and units."""
    name = str(variable.name).replace("_", " ")
    return with_units(str(variable.attrs.get("long_name", name)), variable.attrs.get("units"))


def time_label(time: xr.DataArray) -> str:
    """Return what stands along the steps of an episode."""
    return safe(label_of(time) if "units" in time.attrs else "time [steps]")


def count_text(attrs: Mapping[str, Any]) -> str:
    """Return ``"500 episodes (12 cut, 3 from mid-way)"``."""
    episodes = attrs[NUM_EPISODES_ATTR]
    text = plural(episodes, "episode")
    counts = ((attrs[NUM_CUT_ATTR], "cut"), (attrs.get(NUM_START_UNSEEN_ATTR, 0), "from mid-way"))
    notes = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    return f"{text} ({notes})" if notes else text


def not_shown(attrs: Mapping[str, Any], nan: str = NUM_NAN_ATTR) -> list[str]:
    """Return a line on what was left out of a result, ``"not shown: 2 outside of the bins, 1 NaN"``, if anything was.

    `nan` is the attribute that has the number of NaN.
    """
    found = {
        "outside of the bins": NUM_OUTSIDE_ATTR,
        "NaN": nan,
        "below the bins": NUM_BELOW_ATTR,
        "above the bins": NUM_ABOVE_ATTR,
    }
    counts = {what: attrs.get(key, 0) for what, key in found.items()}
    texts = [f"{count:,} {what}" for what, count in counts.items() if count]
    return [f"not shown: {', '.join(texts)}"] if texts else []


def unseen_starts(attrs: Mapping[str, Any]) -> list[str]:
    """Return a line on the episodes that a result over time leaves out, where there are such."""
    left_out = attrs.get(LEFT_OUT_ATTR, 0)
    return [f"not shown: {left_out:,} whose start was not seen"] if left_out else []


def plural(count: int, what: str) -> str:
    """Return ``"1 episode"``, ``"1,200 episodes"``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shortened(label: str, most: int) -> str:
    """Return a label of at most so many letters, its middle left out where it has more."""
    if len(label) <= most:
        return label
    tail = most * 2 // 3
    return f"{label[: most - tail - 1]}…{label[-tail:]}"


def told_apart(labels: Sequence[str], most: int, *, ends: bool = True) -> list[str]:
    """Return labels of at most so many letters, or of as many as it takes to tell apart those that differ.

    They lose their middle, or their ends where `ends` is False; and where that leaves the same of two of them, what all
    begin and end with. A count behind a label, as in ``"ppo (12)"``, stays, and does not tell labels apart.

    >>> told_apart(["the seed number 1 of all (5)", "the seed number 2 of all (7)"], 9)
    ['…1… (5)', '…2… (7)']
    """
    if all(len(label) <= most for label in labels):
        return list(labels)
    stems, counts = zip(*(_without_count(label) for label in labels), strict=True)
    first = _in_common(stems)
    last = _in_common([stem[first:][::-1] for stem in stems])

    def core(stem: str, letters: int) -> str:
        text = _headed(stem[first : len(stem) - last], letters - (first > 0) - (last > 0))
        return f"{'…' if first else ''}{text}{'…' if last and not text.endswith('…') else ''}"

    ways = (shortened, _headed, core) if ends else (_headed, shortened, core)
    for letters in itertools.count(most):
        for way in ways:
            texts = [way(stem, max(letters - len(count), 3)) for stem, count in zip(stems, counts, strict=True)]
            if len(set(texts)) == len(set(stems)):
                return [f"{text}{count}" for text, count in zip(texts, counts, strict=True)]
    raise AssertionError("whole labels are told apart")


def _in_common(texts: Sequence[str]) -> int:
    """Return how many letters all texts begin with."""
    same = (len(set(letters)) == 1 for letters in zip(*texts, strict=False))
    return sum(itertools.takewhile(bool, same))


def _without_count(label: str) -> tuple[str, str]:
    """Return a label without the count behind it, and that."""
    found = re.search(r" \([\d,]+\)(: [^:]*)?$", label)
    return (label[: found.start()], found.group()) if found else (label, "")


def _headed(label: str, most: int) -> str:
    """Return a label of at most so many letters, its end left out where it has more."""
    return label if len(label) <= most else f"{label[: max(most - 1, 0)].rstrip()}…"
