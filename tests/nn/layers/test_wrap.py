import pytest
import torch
from hypothesis import given
from torch import nn
from torch_geometric.nn import (
    EdgeConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    HypergraphConv,
    MessagePassing,
    PNAConv,
    SAGEConv,
    TransformerConv,
)

from cognn import Gates, Graph
from cognn.nn.actions import JOINT
from cognn.nn.edge_features import EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers import WrappedLayer
from tests.conftest import Case, cases, induced, random_case

DEGREES = torch.tensor([1, 2, 3, 2, 1])

CONVS = {
    "graph-add": (lambda i, o: GraphConv(i, o), None, "all"),
    "graph-max": (lambda i, o: GraphConv(i, o, aggr="max"), None, "kept"),
    "sage-std": (lambda i, o: SAGEConv(i, o, aggr="std"), None, "kept"),
    "transformer": (lambda i, o: TransformerConv(i, o // 2, heads=2), None, "kept"),
    "transformer-edges": (lambda i, o: TransformerConv(i, o, edge_dim=2), 2, "kept"),
    "gine": (lambda i, o: GINEConv(nn.Linear(i, o), edge_dim=2), 2, "all"),
    "pna": (lambda i, o: PNAConv(i, o, ["mean", "max", "std"], ["identity", "amplification"], DEGREES), None, "kept"),
    "gatv2": (lambda i, o: GATv2Conv(i, o // 2, heads=2), None, "kept"),
    "gatv2-edges": (lambda i, o: GATv2Conv(i, o, edge_dim=2), 2, "kept"),
    "gcn": (lambda i, o: GCNConv(i, o), None, "kept"),
}


def build(name: str) -> WrappedLayer:
    torch.manual_seed(0)
    make, edge_dim, _ = CONVS[name]
    return WrappedLayer(make(5, 6), 5, 6, EdgeSpec(edge_dim)).double().eval()


def attributes(name: str, num_edges: int) -> torch.Tensor | None:
    return None if CONVS[name][1] is None else torch.randn(num_edges, 2, dtype=torch.float64)


@pytest.mark.parametrize("name", CONVS)
@given(case=cases(layers=1))
def test_forward_is_exactly_the_layer_on_the_induced_edges(name: str, case: Case) -> None:
    layer, attr = build(name), attributes(name, case.edge_index.size(1))
    kept = induced(case.edge_index, case.actions[0])
    gates = JOINT.force(case.actions[0], torch.float64).gates
    got = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), gates, attr))
    extra = {} if attr is None else {"edge_attr": attr[kept]}
    torch.testing.assert_close(got, layer.conv(case.x, case.edge_index[:, kept], **extra))


@pytest.mark.parametrize("name", CONVS)
def test_gradients_reach_the_gates(name: str) -> None:
    layer, case = build(name), random_case(1, layers=1)
    assert layer.estimator == CONVS[name][2]
    gates = Gates(*(gate.requires_grad_() for gate in JOINT.force(case.actions[0], torch.float64).gates))
    layer(case.x, Hearing(Graph(case.edge_index, 9), gates, attributes(name, 30))).pow(2).sum().backward()
    kept = induced(case.edge_index, case.actions[0])
    between = case.edge_index[:, kept & (case.edge_index[0] != case.edge_index[1])]
    assert (gates.listen.grad[between[1]] != 0).all()
    assert (gates.broadcast.grad[between[0]] != 0).all()
    silent = gates.broadcast == 0
    assert (gates.broadcast.grad[silent] != 0).any() == (layer.estimator == "all")


def test_sum_estimator_equals_the_native_layer() -> None:
    from cognn.nn.layers import SumLayer

    native, wrapped, case = SumLayer(5, 6).double(), build("graph-add"), random_case(2, layers=1)
    wrapped.conv.lin_rel.weight, wrapped.conv.lin_rel.bias = native.lin_neighbor.weight, native.lin_self.bias
    wrapped.conv.lin_root.weight = native.lin_self.weight
    grads = []
    for layer in (native, wrapped):
        gates = Gates(*(gate.requires_grad_() for gate in JOINT.force(case.actions[0], torch.float64).gates))
        out = layer(case.x, Hearing(Graph(case.edge_index, 9), gates))
        grads.append(torch.autograd.grad(out.pow(2).sum(), gates))
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


def test_hooks_do_not_stay_and_reset_works() -> None:
    layer, case = build("graph-add"), random_case(3)
    zero = torch.zeros(9, dtype=torch.float64)
    graph = Graph(case.edge_index, 9)
    before = layer(case.x, Hearing(graph))
    layer(case.x, Hearing(graph, Gates(zero, zero)))
    assert torch.equal(layer(case.x, Hearing(graph)), before)
    layer.reset_parameters()
    assert not torch.equal(layer(case.x, Hearing(graph)), before)
    assert repr(layer) == "WrappedLayer(GraphConv(5, 6), estimator='all')"


def test_construction_draws_no_random_numbers_and_keeps_the_mode() -> None:
    conv = GraphConv(5, 6)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert WrappedLayer(conv, 5, 6).conv.training
    assert torch.equal(torch.rand(3), expected)


class Backwards(MessagePassing):
    def __init__(self) -> None:
        super().__init__(flow="target_to_source")


@pytest.mark.parametrize(
    ("make", "edge_dim", "message"),
    [
        (Backwards, None, "Backwards: expected flow='source_to_target', got 'target_to_source'"),
        (lambda: GCNConv(5, 6, cached=True), None, "GCNConv: cached=True keeps one graph"),
        (lambda: GraphConv(5, 6), 2, "GraphConv: takes no edge_attr, but edge_dim=2 was given"),
        (lambda: GraphConv(4, 6), None, "GraphConv: did not run on a small graph with 5 features"),
        (lambda: GraphConv(5, 7), None, r"returned \(8, 7\) for 8 nodes, expected \(8, 6\)"),
        (lambda: TransformerConv(5, 6, heads=2), None, r"returned \(8, 12\) for 8 nodes, expected \(8, 6\)"),
    ],
)
def test_refuses_what_cannot_cooperate(make, edge_dim, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WrappedLayer(make(), 5, 6, EdgeSpec(edge_dim))


class MeanTimesZero(MessagePassing):
    """Its output is zero until it is trained."""

    def __init__(self, channels: int) -> None:
        super().__init__(aggr="mean")
        self.alpha = nn.Parameter(torch.zeros(channels))

    def forward(self, x, edge_index):
        return self.alpha * self.propagate(edge_index, x=x)


def test_the_trial_is_not_fooled_by_a_start_at_zero_or_by_batch_statistics() -> None:
    assert WrappedLayer(MeanTimesZero(5), 5, 5).estimator == "kept"
    mlp = nn.Sequential(nn.Linear(10, 6), nn.BatchNorm1d(6), nn.ReLU())
    layer = WrappedLayer(EdgeConv(mlp, aggr="add"), 5, 6).double().train()
    assert layer.estimator == "kept"
    case = random_case(4, layers=1)
    gates, kept = JOINT.force(case.actions[0], torch.float64).gates, induced(case.edge_index, case.actions[0])
    got = layer(case.x, Hearing(Graph(case.edge_index, 9), gates))
    torch.testing.assert_close(got, layer.conv(case.x, case.edge_index[:, kept]))


def test_lazy_layers_get_weights_of_their_own_and_nothing_else_is_touched() -> None:
    torch.manual_seed(0)
    one, two = (WrappedLayer(SAGEConv(-1, 6), 5, 6) for _ in range(2))
    assert not torch.equal(one.conv.lin_l.weight, two.conv.lin_l.weight)
    frozen = nn.BatchNorm1d(6).eval()
    layer = WrappedLayer(GINConv(nn.Sequential(nn.Linear(5, 6), frozen)), 5, 6)
    assert not frozen.training
    assert layer.conv.nn[1].num_batches_tracked == 0


def test_a_layer_whose_messages_leave_the_edges_is_refused() -> None:
    """It also sends along reversed edges, for which the gates would be read at the wrong ends."""
    with pytest.raises(ValueError, match=r"HypergraphConv: .* it does not send one message per edge"):
        WrappedLayer(HypergraphConv(4, 4), 4, 4)
