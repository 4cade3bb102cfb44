"""The colours of every picture: those of Okabe and Ito, which colour-blind readers can tell apart."""

from cognn.nn.actions import Action

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#999999"

ACTIONS = {Action.STANDARD: GREEN, Action.LISTEN: SKY, Action.BROADCAST: ORANGE, Action.ISOLATE: GREY}
MINE, FREE = VERMILLION, SKY
RIGHT, WRONG = BLUE, VERMILLION
SERIES = [BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, GREY, YELLOW]
"""For the lines of a chart and the classes of a graph, in this order; more of them start again."""
DASHES = ["solid", "dash", "dot", "dashdot"]
"""What tells two lines apart in print, where colours may not."""


def dash(index: int) -> str:
    """The dash of the ``index``-th line; where colours start again, it is another one."""
    return DASHES[(index + index // len(SERIES)) % len(DASHES)]


def series(index: int) -> str:
    """The colour of the ``index``-th line or class."""
    return SERIES[index % len(SERIES)]
