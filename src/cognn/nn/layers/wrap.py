"""Any PyG layer as a cooperative layer."""

import copy
import inspect
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import MessagePassing, SumAggregation

from cognn.core.graph import Graph
from cognn.core.seeding import seeded
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Gates, Hearing
from cognn.nn.layers.base import CooperativeLayer


class WrappedLayer(CooperativeLayer):
    """A PyG ``MessagePassing`` layer on the induced graph.

    The output is exactly that of the layer on the kept edges.  There are two estimators for the gradient of the gates.
    The constructor chooses one by running the layer on a small random graph:

    - ``estimator="all"``: the layer sums independent messages (``GraphConv``, ``GINEConv``).  It runs on all edges, and
      every message is multiplied by its gate.  Gradients reach the gates of kept and of dropped edges.
    - ``estimator="kept"``: a message depends on the other edges (attention, degree norms), or the aggregation is not a
      sum (max, mean, std).  It runs on the kept edges, and every message is multiplied by its gate, which is 1.
      Gradients reach only the gates of kept edges.

    Edges that the layer itself adds, such as self-loops, are never cut.

    Args:
        conv: The layer, with ``flow="source_to_target"``.
        in_channels: Width of its input.
        out_channels: Width of its output.
        edges: The edge features, which must be continuous; the layer receives them as ``edge_attr``.

    Edge weights go to the layer as ``edge_weight``, if it takes them.
    """

    def __init__(self, conv: MessagePassing, in_channels: int, out_channels: int, edges: EdgeSpec = NO_EDGES) -> None:
        super().__init__(in_channels, out_channels)
        name = type(conv).__name__
        if conv.flow != "source_to_target":
            raise ValueError(f"{name}: expected flow='source_to_target', got {conv.flow!r}")
        if getattr(conv, "cached", False):
            raise ValueError(f"{name}: cached=True keeps one graph, but the induced graph changes; use cached=False")
        if edges.categories is not None:
            raise ValueError(f"{name}: takes continuous edge features; give edge_dim, not edge_categories")
        if edges.dim is not None and "edge_attr" not in inspect.signature(conv.forward).parameters:
            raise ValueError(f"{name}: takes no edge_attr, but {edges} was given")
        self.conv, self.spec = conv, edges
        self.takes_weights = "edge_weight" in inspect.signature(conv.forward).parameters
        conv.explain = False  # explainers mask this wrapper, which aligns the mask with the kept edges
        self.estimator = "kept"
        self.estimator = self._probe(name)

    def reset_parameters(self) -> None:
        """Initialise all weights of the wrapped layer."""
        self.conv.reset_parameters()

    # PyG skips its message hooks while torch.compile traces, so this layer runs in eager mode.
    @torch.compiler.disable
    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        assert isinstance(hearing.adjacency, Graph)
        edge_index, mask = hearing.adjacency.edge_index, hearing.mask
        given = {"edge_attr": hearing.edge_attr, "edge_weight": hearing.edge_weight}
        gate = hearing.kept(edge_index)
        if gate is not None and self.estimator == "kept":
            kept = gate.detach() != 0
            edge_index = edge_index[:, kept]
            given = {name: None if part is None else part[kept] for name, part in given.items()}
            mask = None if mask is None else mask[kept]
        if gate is None and mask is None:
            return self._run(x, edge_index, **given)
        used = edge_index

        def see(_: Any, inputs: tuple[Any, ...]) -> None:
            nonlocal used
            used = inputs[0]

        def weigh(conv: MessagePassing, _: Any, message: Tensor) -> Tensor:
            weight = message.new_ones(used.size(1))
            gate = hearing.kept(used)
            if gate is not None:
                weight = torch.where(used[0] == used[1], weight, gate) if self.estimator == "kept" else gate
            if mask is not None:
                weight = weight * _align(mask, edge_index, used)
            edges = conv.node_dim % message.dim()
            return message * weight.view([-1 if i == edges else 1 for i in range(message.dim())]).to(message.dtype)

        hooks = self.conv.register_propagate_forward_pre_hook(see), self.conv.register_message_forward_hook(weigh)
        try:
            return self._run(x, edge_index, **given)
        finally:
            for hook in hooks:
                hook.remove()

    def _run(self, x: Tensor, edge_index: Tensor, **given: Tensor | None) -> Tensor:
        return self.conv(x, edge_index, **{name: part for name, part in given.items() if part is not None})

    @torch.no_grad()
    def _probe(self, name: str) -> str:
        """Run the layer on a small graph: reject layers that fail, and choose the estimator.

        A copy runs with initial and with random weights, in training and in evaluation mode: weights initialised to
        zero, a saturated attention or the fixed statistics of a norm can make a layer look like a sum.
        """
        rng = torch.Generator().manual_seed(0)
        edge_index = torch.randint(8, (2, 40), generator=rng)
        graph = Graph(edge_index[:, edge_index[1].argsort(stable=True)], 8)  # some aggregations require sorted edges
        x = torch.randn(8, self.in_channels, generator=rng)
        edge_attr = None if self.spec.dim is None else torch.randn(40, self.spec.dim, generator=rng)
        original = self.conv
        parameter = next(original.parameters(), x)
        if not isinstance(parameter, UninitializedParameter) and parameter.is_floating_point():
            x = x.to(parameter)
            graph = graph.to(parameter.device)
            edge_attr = None if edge_attr is None else edge_attr.to(parameter)
        try:
            if any(isinstance(p, UninitializedParameter) for p in original.parameters()):
                self._run(x, graph.edge_index, edge_attr=edge_attr)  # initialises a lazy layer
            with seeded(0, x.device):
                self.conv = copy.deepcopy(original)
                exact = isinstance(original.aggr_module, SumAggregation)
                for scale, training in product((0.0, 0.3), (False, True)):
                    self.conv.train(training)
                    for parameter in self.conv.parameters():
                        parameter.add_(torch.randn_like(parameter), alpha=scale)
                    gates = Gates(*(torch.rand(2, 8, generator=rng) < 0.5).to(x))
                    outs = []
                    for self.estimator in ("kept", "all"):
                        with seeded(1, x.device):
                            outs.append(self(x, Hearing(graph, gates, edge_attr)))
                    kept = Hearing(graph, gates).kept(graph.edge_index) != 0
                    attr = None if edge_attr is None else edge_attr[kept]
                    with seeded(1, x.device):
                        plain = self._run(x, graph.edge_index[:, kept], edge_attr=attr)
                    if not _close(outs[0], plain):
                        raise ValueError("it does not send one message per edge, so actions cannot gate its messages")
                    if tuple(outs[0].shape) != (8, self.out_channels):
                        shape = tuple(outs[0].shape)
                        raise ValueError(f"returned {shape} for 8 nodes, expected (8, {self.out_channels})")
                    exact &= _close(*outs)
        except Exception as error:
            message = f"{name}: did not run on a small graph with {self.in_channels} features: {error}"
            raise ValueError(message) from error
        finally:
            self.conv = original
        return "all" if exact else "kept"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv}, estimator={self.estimator!r})"


def _close(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs().max() / one.abs().max().clamp(min=1e-12) < 1e-4)


def _align(mask: Tensor, given: Tensor, used: Tensor) -> Tensor:
    """Align the mask of the given edges with the edges that the layer used, which may replace the self-loops."""
    if used.size(1) != given.size(1):
        mask = mask[given[0] != given[1]]
    return torch.cat([mask, mask.new_ones(used.size(1) - mask.numel())])
