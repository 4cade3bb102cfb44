"""The layers of environment and action networks, one per file, and the registry ``LAYERS``.

May import ``core``, and from ``nn`` only ``hearing`` and ``edge_features``.  Start with ``base.py`` and ``sum.py``: a
layer is a :class:`CooperativeLayer` with ``update(x, hearing)``.  ``wrap.py`` turns any PyG layer into one.
"""

from collections.abc import Callable
from typing import Any

from torch import nn
from torch_geometric.nn import MessagePassing

from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.layers.base import CooperativeLayer
from cognn.nn.layers.gat import GATLayer
from cognn.nn.layers.gcn import GCNLayer
from cognn.nn.layers.gin import GINLayer
from cognn.nn.layers.mean import MeanLayer
from cognn.nn.layers.published_weights import published_weights
from cognn.nn.layers.relational import KINDS, RelationalLayer, RelationSpec
from cognn.nn.layers.shared_edges import share_edges
from cognn.nn.layers.sum import SumLayer
from cognn.nn.layers.wrap import WrappedLayer

__all__ = [
    "LAYERS",
    "ONE_RELATION",
    "CooperativeLayer",
    "GATLayer",
    "GCNLayer",
    "GINLayer",
    "MeanLayer",
    "RelationSpec",
    "RelationalLayer",
    "SumLayer",
    "WrappedLayer",
    "limits_of_weights",
    "make_layer",
    "published_weights",
    "share_edges",
]

LAYERS: dict[str, type[CooperativeLayer]] = {
    "sum": SumLayer,
    "mean": MeanLayer,
    "gcn": GCNLayer,
    "gin": GINLayer,
    "gat": GATLayer,
}

ONE_RELATION = RelationSpec()
LayerSpec = str | Callable[[int, int], MessagePassing]


def make_layer(
    argument: str,
    spec: LayerSpec,
    in_channels: int,
    out_channels: int,
    edges: EdgeSpec = NO_EDGES,
    relations: RelationSpec = ONE_RELATION,
    **options: Any,
) -> CooperativeLayer:
    """Build a layer from its name or from a callable; errors mention the user's ``argument``."""
    if relations.count > 1:
        if spec not in KINDS:
            raise ValueError(
                f"{argument}: with several relations or directions expected one of {', '.join(KINDS)}, got {spec!r};"
                " PyG's layers see one relation"
            )
        return RelationalLayer(str(spec), in_channels, out_channels, relations, edges=edges, **options)
    if isinstance(spec, str):
        if spec not in LAYERS:
            raise ValueError(
                f"{argument}: unknown layer {spec!r}; known are {', '.join(LAYERS)}, or a callable (in, out)"
            )
        return LAYERS[spec](in_channels, out_channels, edges=edges, **options)  # type: ignore[call-arg]
    if isinstance(spec, nn.Module):
        raise TypeError(f"{argument}: expected a class or a callable (in, out), got an instance; pass the class")
    if not callable(spec):
        raise TypeError(f"{argument}: expected a name ({', '.join(LAYERS)}) or a callable (in, out), got {spec!r}")
    layer = spec(in_channels, out_channels)
    if isinstance(layer, CooperativeLayer):
        if edges != NO_EDGES and layer.edges is None:
            raise ValueError(f"{argument}: {layer} takes no edge features; pass it edges=EdgeSpec(...)")
        return layer
    if not isinstance(layer, MessagePassing):
        raise TypeError(f"{argument}: the callable must return a PyG MessagePassing layer, got {type(layer).__name__}")
    return WrappedLayer(layer, in_channels, out_channels, edges)


def limits_of_weights(model: nn.Module) -> tuple[bool, str]:
    """Whether a layer of a model divides by sums of edge weights, and the name of a layer that takes none, if any."""
    layers = [part for part in model.modules() if isinstance(part, CooperativeLayer)]
    wrapped = [layer for layer in layers if isinstance(layer, WrappedLayer) and not layer.takes_weights]
    return any(layer.divides for layer in layers), type(wrapped[0].conv).__name__ if wrapped else ""
