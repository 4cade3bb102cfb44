"""Degrees as features, for graphs without any."""

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.core.sparse_features import is_sparse
from cognn.errors import DataError

NAMES = ("log(1 + in-degree)", "log(1 + out-degree)")


def with_degrees(x: Tensor, graphs: list[Graph]) -> Tensor:
    r"""The features of all graphs, and :math:`\log(1 + d)` of the in- and the out-degree of every node."""
    if is_sparse(x):
        raise DataError("encoding: degrees are for dense features, and these are sparse; leave it out")
    pairs = [(graph.in_ptr.diff(), graph.out_ptr.diff()) for graph in graphs]
    degrees = [torch.cat(ends).float().log1p() for ends in zip(*pairs, strict=True)]
    return torch.cat([x, torch.stack(degrees, dim=1)], dim=1)
