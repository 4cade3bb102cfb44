"""Exact inference on graphs that do not fit in memory: layer by layer, over blocks of nodes."""

from cognn.inference.layerwise import infer
from cognn.inference.scratch import Scratch
from cognn.nn.plan import Pass

__all__ = ["Pass", "Scratch", "infer"]
