"""The colours of all figures and charts: the palette of Okabe and Ito, which is safe for colour-blind readers."""

ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#999999"

ACTIONS = [GREEN, SKY, ORANGE, GREY]
"""Colours of the actions, by code."""
MINE, FREE = VERMILLION, SKY
RIGHT, WRONG = BLUE, VERMILLION
SERIES = [BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, GREY, YELLOW]
"""Colours of lines and classes, in this order and then repeated."""
DASHES = ["solid", "dash", "dot", "dashdot"]
"""Dash styles, which distinguish lines in print without colours."""


def dash(index: int) -> str:
    """The dash style of the ``index``-th line; lines of the same colour have different ones."""
    return DASHES[(index + index // len(SERIES)) % len(DASHES)]


def series(index: int) -> str:
    """The colour of the ``index``-th line or class."""
    return SERIES[index % len(SERIES)]
