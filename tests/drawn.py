"""What plots have drawn beside the data: strips, colour bars and legends."""


def strips_of(ax):
    """Return the strips of all panels of the figure that Axes are in."""
    return [other for other in ax.figure.axes if other.get_label() == "n"]


def strip_of(ax):
    """Return the only strip of the figure."""
    (strip,) = strips_of(ax)
    return strip


def bars_of(ax):
    """Return the colour bars of the figure."""
    return [other for other in ax.figure.axes if other.get_label() == "<colorbar>"]


def bar_of(ax):
    """Return the only colour bar of the figure."""
    (bar,) = bars_of(ax)
    return bar


def entries(ax):
    """Return the texts of the legend in the Axes, or else below all panels."""
    legend = ax.get_legend() or ax.figure.legends[0]
    return [text.get_text() for text in legend.get_texts()]


def steps_of(ax):
    """Return the lines that go in steps."""
    return [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
