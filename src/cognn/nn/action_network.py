"""The action network: from node states to logits over the actions."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from torch import Tensor, nn

from cognn.core.graph import Graph, as_graph
from cognn.nn import checks
from cognn.nn.actions import SPACES, ActionSpace, SpaceName
from cognn.nn.actions import action_space as action_space_of
from cognn.nn.edge_features import EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers import ONE_RELATION, CooperativeLayer, LayerSpec, RelationSpec, make_layer
from cognn.nn.layers.gin import GINMLP
from cognn.nn.options.resolve import Activation, act_and_drop, activation


class ActionNetwork(nn.Module):
    r"""The action network :math:`\pi` of Eq. 1: from node states to logits over the four actions.

    It sees the original graph.  With several heads its layers end in ``hidden_channels``, and a linear readout gives
    the logits of all heads.  The readout starts at zero, so that every gate starts as open as ``standard_bias`` says.

    Args:
        in_channels: Width of the node states.
        hidden_channels: Width between its layers.
        num_layers: Its depth, the number of hops it looks ahead.
        layer: Name of its layer, or a callable ``(in, out) -> MessagePassing``.
        action_space: ``"joint"`` is one network with 4 logits, ``"factored"`` two networks of 2 logits.
        dropout: Dropout between its layers.
        act: Activation between its layers.
        edge_dim: Number of continuous edge features.
        edge_categories: Number of values of each categorical edge feature.
        standard_bias: Constant added to the logit of STANDARD, or to those of listening and of broadcasting.
        heads: Number of actions that a node takes.
        constant: The logits are the bias, whatever the states: gates are open at random.
        relations: The relations of the graph; its layers have weights for each.
        per_relation: Whether a node takes its actions once per relation.
        dropout_first: Whether dropout precedes the activation.
        gin_mlp: The MLP of ``layer="gin"``; see :class:`~cognn.nn.layers.GINLayer`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 16,
        num_layers: int = 2,
        layer: LayerSpec = "sum",
        action_space: SpaceName = "joint",
        dropout: float = 0.0,
        act: Activation = "gelu",
        edge_dim: int | None = None,
        edge_categories: int | Sequence[int] | None = None,
        standard_bias: float = 0.0,
        heads: int = 1,
        constant: bool = False,
        relations: RelationSpec = ONE_RELATION,
        per_relation: bool = True,
        dropout_first: bool = False,
        gin_mlp: GINMLP = "narrow",
    ) -> None:
        super().__init__()
        checks.one_of("action_space", action_space, [*SPACES, "edge"])
        for name in ("in_channels", "hidden_channels", "num_layers", "heads"):
            checks.at_least(name, locals()[name], 1)
        checks.share("dropout", dropout)
        self.edge_spec = EdgeSpec.of(edge_dim, edge_categories)
        self.space = self.make_space(action_space, heads, *relations.gated(per_relation))
        self.dropout, self.standard_bias, self.relations = dropout, standard_bias, relations
        self.dropout_first = dropout_first
        self.act = activation(act)
        on_edges = self.space.site == "edge"
        read = not on_edges and (self.space.heads > 1 or relations.count > 1 or constant)
        widths = [
            in_channels,
            *[hidden_channels] * (num_layers - 1),
            hidden_channels if read or on_edges else self.space.width,
        ]
        options = {"mlp": gin_mlp} if layer == "gin" else {}
        self.networks = nn.ModuleList(
            nn.ModuleList(
                make_layer("action", layer, i, o, self.edge_spec, relations, **options) for i, o in pairwise(widths)
            )
            for _ in range(self.space.num_networks)
        )
        self.readouts: nn.ModuleList | None = None
        if read:
            outputs = self.space.heads * self.space.width
            self.readouts = nn.ModuleList(nn.Linear(hidden_channels, outputs) for _ in self.networks)
            self._reset_readouts()
        if constant:
            self.requires_grad_(False)

    @staticmethod
    def make_space(name: str, heads: int = 1, relations: int = 1, directed: bool = False) -> ActionSpace:
        """The action space that its logits are for; see :func:`cognn.nn.actions.action_space`."""
        return action_space_of(name, heads, relations, directed)

    def forward(self, h: Tensor, graph: Tensor | Graph, edge_attr: Tensor | None = None) -> Tensor:
        """Logits ``(N, 4)``, or ``(N, 2, 2)`` in the factored space; ``graph`` may be a plain ``edge_index``.

        With several heads they are ``(N, heads, 4)``, or ``(N, 2, heads)`` in the factored space.
        """
        graph = graph if isinstance(graph, Graph) else as_graph(graph, h.size(0))
        edge_attr = checks.edge_features(edge_attr, graph.num_edges, self.edge_spec, h.dtype)
        weight = None if graph.edge_weight is None else graph.edge_weight.to(h.dtype)
        return self.logits(h, self.relations.hearing(graph, edge_attr, weight))

    def logits(self, h: Tensor, hearing: Hearing) -> Tensor:
        """Logits of the states ``h``; every node hears all its neighbours."""
        outputs = [self.read(number, self.states(h, hearing, number)) for number in range(len(self.networks))]
        return self.space.logits(outputs, self.standard_bias)

    def states(self, h: Tensor, hearing: Hearing, number: int = 0) -> Tensor:
        """The states after the last layer of a network."""
        z = h
        for depth, layer in enumerate(cast(nn.ModuleList, self.networks[number])):
            if depth:
                z = act_and_drop(z, self.act, self.dropout, self.training, self.dropout_first)
            z = layer(z, hearing)
        return z

    def read(self, number: int, z: Tensor) -> Tensor:
        """The outputs of network ``number`` from those of its last layer."""
        return z if self.readouts is None else self.readouts[number](self.act(z))

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        for layer in self.modules():
            if isinstance(layer, CooperativeLayer):
                layer.reset_parameters()
        self._reset_readouts()

    def _reset_readouts(self) -> None:
        for readout in self.readouts or ():
            for parameter in readout.parameters():
                nn.init.zeros_(parameter)

    def randomise(self) -> None:
        """Initialise the readouts at random: a network that is not trained would give all nodes the same gates."""
        for readout in self.readouts or ():
            cast(nn.Linear, readout).reset_parameters()
