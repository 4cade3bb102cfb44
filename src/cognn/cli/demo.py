"""``cognn demo``: three models on the paper's RootNeighbors task, and what the nodes decided."""

from dataclasses import dataclass
from pathlib import Path

from cognn.cli.arguments import parse
from cognn.errors import ConfigError


@dataclass
class Demo:
    """Train a mean, a sum and a Co-GNN on RootNeighbors, about two minutes, and draw what the nodes decided."""

    epochs: int = 1000
    """Epochs for each of the three models."""
    trees: int = 1000
    """Trees in each of the three splits."""
    seed: int = 0
    """Random seed of the data and the weights."""
    svg: Path | None = None
    """Also save the output as an SVG picture."""


def demo(arguments: list[str]) -> int:
    """Run ``cognn demo``."""
    options = parse(Demo, arguments, "cognn demo")
    for name in ("epochs", "trees"):
        if getattr(options, name) < 1:
            raise ConfigError(f"{name}: expected 1 or more, got {getattr(options, name)}")
    from cognn.demo import run  # imports torch, and `cognn --help` must not

    run(options.epochs, options.trees, options.seed, options.svg)
    return 0
