"""How a legend fits into a place: in how many columns, with which labels broken or shortened, and how high it is."""

import functools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trajlab.plot._figure import STRIP_RATIOS
from trajlab.plot._text import safe, told_apart

if TYPE_CHECKING:
    import matplotlib.axes

MAX_SHARE, MOST_SHARE = 0.6, 0.85
"""Part of the Axes' height that a legend inside of them may take, and at most does where it has too many labels."""
ROW, MARGIN = 1.6, 1.5
"""Heights of a row of a legend inside of Axes, and of the room around all, in heights of its letters."""
BESIDE, BESIDE_WIDE = 3.2, 4.8
"""What a column takes beside its letters, in heights of these: inside of or above Axes, and below a figure's panels."""
NARROWEST = 7.0
"""A column of a legend inside of Axes is not narrower than so many letters are high, if there is another."""
GAPS = 1.25
"""How many times as wide and high as Axes a layout has the place that they and their labels are in."""
FEW_LETTERS = 7
"""No label is broken or shortened to fewer letters."""


class Room(NamedTuple):
    """About how many points wide and high Axes are, and how wide with their labels: 0 where no layout can make room."""

    width: float
    height: float
    whole: float


class Arranged(NamedTuple):
    """Labels as they stand in a legend, in how many columns, and in how many rows of text."""

    texts: list[str]
    columns: int
    rows: int


def room_of(ax: "matplotlib.axes.Axes") -> Room:
    """Return the room there is in Axes, which by a layout have yet to become smaller by their titles and labels."""
    root: Any = ax.get_figure(root=True)
    scale = 72 / root.dpi
    box, place = ax.get_window_extent(), ax.get_subplotspec()
    if root.get_layout_engine() is None or place is None:
        return Room(0.85 * box.width * scale, 0.9 * box.height * scale, 0.0)
    from matplotlib.transforms import Bbox

    mine = in_same_place(ax)
    inner = Bbox.union([other.get_window_extent() for other in mine])
    tight = [other.get_tightbbox(for_layout_only=True) for other in mine]
    outer = Bbox.union([box for box in tight if box is not None])
    width, height = GAPS * inner.width, GAPS * inner.height
    beside, above = outer.width - inner.width, outer.height - inner.height
    left, high = max(width - beside, 1.0), max(height - above, 1.0) * box.height / inner.height
    return Room(0.95 * scale * left, 0.95 * scale * high, 0.95 * scale * (left + inner.x0 - outer.x0))


def in_same_place(ax: "matplotlib.axes.Axes") -> list["matplotlib.axes.Axes"]:
    """Return all Axes that share the place of these in a figure: their strip, too."""
    root: Any = ax.get_figure(root=True)
    mine: Any = ax.get_subplotspec()
    grid = mine.get_gridspec()
    is_split = grid.ncols == 1 and grid.get_height_ratios() == STRIP_RATIOS
    places = [(other, other.get_subplotspec()) for other in root.axes]
    return [
        other
        for other, place in places
        if place is not None and (place == mine or (is_split and place.get_gridspec() is grid))
    ]


def arranged(labels: Sequence[str], room: float, beside: float = BESIDE) -> Arranged:
    """Return labels, broken where they are too long.

    `room` is the width there is, and `beside` what each column takes beside its letters, as multiples of the
    letters' size.
    """
    broken = [textwrap.wrap(label, _letters_within(label, room - beside)) or [label] for label in labels]
    longest = max(width_of(line) for lines in broken for line in lines)
    columns = int(np.clip(room // (longest + beside), 1, len(labels)))
    rows = -(-len(labels) // columns) * max(map(len, broken))
    return Arranged([safe("\n".join(lines)) for lines in broken], columns, rows)


def arranged_short(labels: Sequence[str], width: float, height: float, has_title: bool) -> Arranged:
    """Return labels, shortened, in as few rows as fit into Axes, whose size is given in heights of letters."""
    rows = max(int((MAX_SHARE * height - MARGIN) / ROW) - has_title, 1)
    columns = min(-(-len(labels) // rows), max(int(width / NARROWEST), 1))
    return Arranged(cut_short(labels, width / columns - BESIDE), columns, -(-len(labels) // columns))


def arranged_apart(labels: Sequence[str], width: float, wide: float) -> Arranged:
    """Return labels, shortened, in as many columns as leave them apart, each about `wide` or as wide as the longest."""
    longest = max(map(width_of, labels)) + BESIDE
    for columns in range(int(np.clip(width // min(longest, wide), 1, len(labels))), 0, -1):
        room = width / columns - BESIDE
        texts = cut_short(labels, room)
        if max(map(width_of, texts)) <= room:
            break
    return Arranged(texts, columns, -(-len(labels) // columns))


def share_of(rows: int, height: float) -> float:
    """Return the part of Axes so many letters high that a legend of so many rows inside of them takes."""
    return (ROW * rows + MARGIN) / height


def cut_short(labels: Sequence[str], room: float) -> list[str]:
    """Return labels without their middle where there is less room; `room` as a multiple of the letters' size."""
    too_long = [_letters_within(label, room) for label in labels if width_of(label) > room]
    letters = min(too_long, default=max(map(len, labels)))
    texts = told_apart(labels, letters)
    while letters > FEW_LETTERS and max(map(width_of, texts)) > room:
        letters -= 1
        texts = told_apart(labels, letters)
    return [safe(text) for text in texts]


def _letters_within(label: str, room: float) -> int:
    """Return how many letters like those of a label there is room for."""
    width = width_of(label)
    return max(int(room / width * len(label)), FEW_LETTERS) if width else FEW_LETTERS


@functools.cache
def width_of(text: str) -> float:
    """Return the width of a text, as a multiple of the size of its letters."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=10), ismath=False)[0]) / 10
