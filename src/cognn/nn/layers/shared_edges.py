"""Edge features that all layers of a network map alike."""

from collections.abc import Iterable
from typing import Any

from torch import nn

from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.layers.base import CooperativeLayer
from cognn.nn.layers.gcn import GCNLayer


def share_edges(spec: EdgeSpec, env: nn.ModuleList, action_networks: Iterable[Any]) -> None:
    r"""Give the layers of a model two maps of edge features, as the authors' code does.

    One is for the environment network and for the first layers of the action networks, which read the same states; the
    other is for all further layers of the action networks.  A message is :math:`h_u + W_e e_{vu}`, before the weights
    of the layer.  A network of GCN layers has no map, and its layers do not see edge features.

    Args:
        spec: The edge features.
        env: The layers of the environment network, built without edge features.
        action_networks: Every :class:`~cognn.nn.action_network.ActionNetwork`, likewise.
    """
    if spec == NO_EDGES:
        return
    wide, narrow = _messages(spec, env[0]), None
    for layer in env:
        _share(layer, wide)
    for network in action_networks:
        network.edge_spec = spec
    for first, *further in (layers for network in action_networks for layers in network.networks):
        if wide is not None and isinstance(first, GCNLayer):
            raise ValueError("edge_sharing: with edge features and 'shared', action='gcn' requires env='gcn'")
        _share(first, wide)
        narrow = _messages(spec, further[0]) if further and narrow is None else narrow
        for layer in further:
            _share(layer, narrow)


def _messages(spec: EdgeSpec, layer: nn.Module) -> nn.Module | None:
    return None if isinstance(layer, GCNLayer) else spec.messages(layer.in_channels)  # type: ignore[arg-type]


def _share(layer: nn.Module, messages: nn.Module | None) -> None:
    assert isinstance(layer, CooperativeLayer)
    layer.share_edges(messages)  # type: ignore[arg-type]
