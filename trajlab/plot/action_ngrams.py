"""Bars of the most frequent sequences of actions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from trajlab.analysis.action_ngrams import check_lengths, grouped_ngrams
from trajlab.analysis.common import field_of, title_of
from trajlab.analysis.grouping.cut import GroupsArgument
from trajlab.analysis.grouping.groups import make_groups
from trajlab.analysis.labels import LabelsArgument
from trajlab.names import COUNT, LABEL, NGRAM, NUM_TRANSITIONS_ATTR, SHARE, N
from trajlab.plot import _figure, _labels, _legend, _panels, _style, _text

if TYPE_CHECKING:
    import matplotlib.axes

ARROW = " → "
ROW = 0.22
"""Inches of a bar in a figure of our own."""
WIDTH, PANEL_WIDTH = 6.4, 4.2
"""Inches of a figure with a single panel, and of one of several."""
SMALLEST = 5.0
"""Points of names of bars; where there is no room for that, only some have theirs."""
LABEL_SHARE = 0.45
"""Part of a panel's width that names of bars may take."""
FEWEST = 6
"""No name of an action is cut to fewer letters."""


def plot_action_ngrams(
    ds: xr.Dataset,
    field: str = "action",
    *,
    n: int | Sequence[int] = 2,
    top: int | None = 20,
    by: str | None = None,
    groups: GroupsArgument = None,
    labels: LabelsArgument = None,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `action_ngrams`: a bar for each of the most frequent sequences of actions, as long as its share.

    One panel for each group, component and `n`; those of one `n` have the same scale. The numbers beside the bars are
    counts.

    Parameters
    ----------
    ds, field, n, top, by, groups, labels
        As in `action_ngrams`.
    ax : Axes or sequence of Axes, optional
        One per group, component and `n`, all of a group together and in it all of a component; without, a figure is
        made.
    **kwargs
        For the bars: `Axes.barh`.

    Returns
    -------
    Axes or array of Axes
        An array, group by group, where there is more than one.

    Raises
    ------
    KeyError, TypeError
        As `action_ngrams`.
    ValueError
        As `action_ngrams`, and when there are more than 24 panels, or `ax` does not hold one Axes for each.
    """
    ds, name = field_of(ds, field, like=np.int64, along=by)
    chosen, lengths = make_groups(ds, by, groups), check_lengths(n)
    places = _panels.panel_names(ds, name, chosen) or [name]
    _check_panels(len(places), lengths)
    table, place = grouped_ngrams(ds, name, chosen, lengths, top, labels)
    names = [_panel_name(one, length, len(places), len(lengths)) for one in places for length in lengths]
    parts = [table[(place == number) & (table[N] == length)] for number in range(len(places)) for length in lengths]
    most = max(map(len, parts))
    columns = _columns(len(names), len(lengths))
    size, mend = _size(len(names), columns, most), _figure.select_mend(ds, name)
    panels = _figure.make_panels(len(names), ax, size=size, columns=columns, mend=mend)
    for number, (ax_, part) in enumerate(zip(panels.axes, parts, strict=True)):
        if len(part):
            same = parts[number % len(lengths) :: len(lengths)]
            _draw(ax_, part, max(float(one[SHARE].max()) for one in same if len(one)), kwargs)
            _label(panels, number, ax_)
        else:
            _labels.write_empty(ax_, "no n-grams" if table.attrs[NUM_TRANSITIONS_ATTR] else "no episodes")
    what = f"{lengths[0]}-grams" if len(lengths) == 1 else "n-grams"
    lines = [f"{title_of(ds, name)}: most frequent {what} of {_text.count_text(table.attrs)}"]
    notes = [_total(part) for part in parts]
    if len(parts) == 1:
        lines += notes
    lines += _text.not_shown(table.attrs)
    _panels.write_names(panels, names, lines + _legend.left_out(chosen), notes)
    return panels.result()


def _check_panels(places: int, lengths: Sequence[int]) -> None:
    count = places * len(lengths)
    if count > _figure.MAX_PANELS:
        raise ValueError(
            f"n={list(lengths)!r} makes {len(lengths)} panels for each of {places}: {count}; at most "
            f"{_figure.MAX_PANELS} are drawn. Choose fewer n, groups or components"
        )


def _panel_name(place: str, length: int, places: int, lengths: int) -> str:
    """Return what a panel is called by what differs between panels."""
    return ", ".join(([place] if places > 1 else []) + ([f"n = {length}"] if lengths > 1 else []))


def _columns(count: int, lengths: int) -> int:
    """Return how many panels stand side by side: those of all lengths where these are few."""
    return lengths if 1 < lengths <= 3 else _figure.columns_of(count)


def _size(count: int, columns: int, most: int) -> tuple[float, float]:
    """Return the inches of a figure of so many panels, the fullest of which has `most` bars."""
    height = max(ROW * most, 0.8) + 0.8
    return _figure.figure_size(count, (WIDTH if count == 1 else PANEL_WIDTH, height), (0.0, 0.6), columns)


def _draw(ax: "matplotlib.axes.Axes", part: pd.DataFrame, largest: float, kwargs: dict[str, Any]) -> None:
    """Draw a bar for each row of a table, the first at the top, in a scale for shares up to the largest."""
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    places = np.arange(len(part))
    style = _style.merged(Rectangle, {"height": 0.75, "color": _style.cycle(ax)[0]}, kwargs)
    ax.barh(places, part[SHARE], **style)
    ax.set_xlim(0, 1.3 * largest)
    ax.set_ylim(len(part) - 0.4, -0.6)
    _labels.plain_shares(ax.xaxis)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    width, height = _labels.size_of(ax)
    points = min(_labels.points_of("ytick.labelsize"), 0.8 * height / len(part))
    letters = LABEL_SHARE * width / (0.6 * max(points, SMALLEST))
    texts = [_text.safe(text) for text in _texts(part[LABEL if LABEL in part else NGRAM], int(letters))]
    if points < SMALLEST:
        _labels.label_rows(ax, places, texts)
        ax.tick_params(axis="y", labelsize=SMALLEST)
        return
    ax.set_yticks(places, texts, fontsize=points)
    for place, share, count in zip(places, part[SHARE], part[COUNT], strict=True):
        beside: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center_baseline"}
        ax.annotate(f"{count:,}", (share, place), fontsize=0.85 * points, **beside)


def _label(panels: _figure.Panels, number: int, ax: "matplotlib.axes.Axes") -> None:
    if panels.is_bottom(number):
        _labels.write_xlabel(ax, "share of n-grams")


def _total(part: pd.DataFrame) -> str:
    """Return how many n-grams the shares in a panel are of."""
    total = round(part[COUNT].iloc[0] / part[SHARE].iloc[0]) if len(part) else 0
    return _text.plural(total, "n-gram")


def _texts(ngrams: pd.Series, letters: int) -> list[str]:
    """Return n-grams as texts of about so many letters; names of actions are cut short, but never to the same."""
    found = [[str(value) for value in ngram] for ngram in ngrams]
    names = sorted({name for ngram in found for name in ngram})
    n = len(found[0])
    most = max((letters - len(ARROW) * (n - 1)) // n, FEWEST)
    short = dict(zip(names, _text.told_apart(names, most, ends=False), strict=True))
    return [ARROW.join(short[name] for name in ngram) for ngram in found]
