"""Cooperative graph neural networks: every node decides at every layer whether it listens and whether it broadcasts."""

from cognn.actions import Action, Gates, broadcasts, listens
from cognn.graph import Graph
from cognn.model import ActionNetwork, CoGNN, Samples
from cognn.trace import Trace

__all__ = ["Action", "ActionNetwork", "CoGNN", "Gates", "Graph", "Samples", "Trace", "broadcasts", "listens"]
__version__ = "0.1.0"
