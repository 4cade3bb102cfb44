"""Initial weights as the authors' script draws them."""

from itertools import pairwise

import torch
from torch import nn

from cognn.nn.edge_features import EdgeMessages
from cognn.nn.layers.gcn import GCNLayer
from cognn.nn.layers.sum import SumLayer


@torch.no_grad()
def published_weights(model: nn.Module) -> None:
    r"""Change the new weights of a model to those of ``init="published"``.

    The two maps of a sum or mean layer are one map of both inputs in the script, so they are drawn within
    :math:`(2d)^{-1/2}` instead of :math:`d^{-1/2}`; the bias of GCN is drawn within :math:`d^{-1/2}` instead of being
    0; and every embedding table of categories of edges is drawn as ``xavier_uniform_`` does.  All other weights are
    alike.
    """
    for part in model.modules():
        if isinstance(part, SumLayer):
            for weight in (part.lin_self.weight, part.lin_self.bias, part.lin_neighbor.weight):
                weight.mul_(0.5**0.5)
        elif isinstance(part, GCNLayer):
            bound = part.in_channels**-0.5
            nn.init.uniform_(part.bias, -bound, bound)
        elif isinstance(part, EdgeMessages) and part.spec.categories is not None:
            rows = [*part.start.tolist(), part.weight.size(0)]
            for first, last in pairwise(rows):
                nn.init.xavier_uniform_(part.weight[first:last])
