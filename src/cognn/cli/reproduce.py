"""``cognn reproduce``: run an experiment of the paper, or list the experiments."""

from cognn.cli.arguments import parse
from cognn.experiments.reproduce import Reproduce
from cognn.experiments.reproduce import reproduce as run


def reproduce(arguments: list[str]) -> int:
    """Run ``cognn reproduce``."""
    return run(parse(Reproduce, arguments, "cognn reproduce"))
