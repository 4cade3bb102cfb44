"""The layers of the baselines are PyG's, with edge features too."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, GINConv, SAGEConv, TransformerConv
from torch_geometric.utils import add_remaining_self_loops, remove_self_loops

from cognn import Graph
from cognn.core.ops import edge_dot
from cognn.nn.hearing import Hearing
from tests.baselines.test_models import ATTENDING, OWN, build
from tests.conftest import Case, cases, random_case

# The layers are PyG's -------------------------------------------------------------------------------------------------


def twin_of(name: str, block: nn.Module, heads: int) -> nn.Module:
    """PyG's own layer with the weights of a block's layer."""
    layer, width = block.layer, 8 // heads
    if name == "gcn":
        twin = GCNConv(8, 8)
        twin.lin.weight, twin.bias = layer.lin.weight, layer.bias
    elif name == "sage":
        twin = SAGEConv(8, 8)
        twin.lin_l.weight, twin.lin_l.bias = layer.lin_neighbor.weight, layer.lin_self.bias
        twin.lin_r.weight = layer.lin_self.weight
    elif name == "gin":
        twin = GINConv(nn.Sequential(layer.lin_in, nn.ReLU(), layer.lin_out), train_eps=True)
        twin.eps = nn.Parameter(layer.eps.detach().view(1))
    elif name in ("gat", "gat-sep"):
        twin = GATConv(8, width, heads=heads, add_self_loops=name == "gat")
        twin.lin.weight, twin.bias = layer.lin.weight, layer.bias
        twin.att_dst = nn.Parameter(layer.att_target.detach().unsqueeze(0))
        twin.att_src = nn.Parameter(layer.att_source.detach().unsqueeze(0))
    elif name in ("gt", "gt-sep"):
        twin = TransformerConv(8, width, heads=heads, root_weight=False, edge_dim=layer.edges and layer.edges.spec.dim)
        twin.lin_query, twin.lin_value, twin.lin_key.weight = layer.lin_query, layer.lin_value, layer.lin_key.weight
        nn.init.zeros_(twin.lin_key.bias)
        if layer.edges is not None:
            twin.lin_edge.weight = nn.Parameter(layer.edges.weight.detach().t().contiguous())
    return twin


def with_own_loops(name: str, edge_index: Tensor, num_nodes: int, attr: Tensor | None = None):
    """The edges of ``gt``: every node has exactly one self-loop, without edge features."""
    if name != "gt":
        return edge_index, attr
    edge_index, attr = remove_self_loops(edge_index, attr)
    return add_remaining_self_loops(edge_index, attr, fill_value=0.0, num_nodes=num_nodes)


@pytest.mark.parametrize("name", [name for name in OWN if name not in ("mlp", "gcnii", "polynormer")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(case=cases(channels=8), heads=st.sampled_from([1, 2, 4]))
def test_layers_equal_pyg_in_value_and_gradient(name: str, dtype: torch.dtype, case: Case, heads: int) -> None:
    heads = heads if name in ATTENDING else 1
    block = build(name, dtype, heads=heads).blocks[0]
    twin = twin_of(name, block, heads).to(dtype)
    edge_index, _ = with_own_loops(name, case.edge_index, case.num_nodes)
    x = case.x.to(dtype).requires_grad_()
    weight = torch.randn(case.num_nodes, 8, dtype=dtype)
    got, want = block.layer(x, Hearing(Graph(case.edge_index, case.num_nodes))), twin(x, edge_index)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(got, want, **close)
    grads = (torch.autograd.grad((out * weight).sum(), x)[0] for out in (got, want))
    torch.testing.assert_close(*grads, **close)


@given(case=cases(channels=8), depth=st.integers(0, 2), alpha=st.floats(0, 1), theta=st.floats(0.1, 2))
def test_gcnii_equals_pyg(case: Case, depth: int, alpha: float, theta: float) -> None:
    block = build("gcnii", num_layers=3, norm="none", act="relu", alpha=alpha, theta=theta).blocks[depth]
    twin = GCN2Conv(8, alpha=alpha, theta=theta, layer=depth + 1).double()
    twin.weight1 = nn.Parameter(block.lin.weight.detach().t())
    first = torch.randn_like(case.x)
    want = twin(case.x, first, case.edge_index).relu()
    torch.testing.assert_close(block(case.x, Hearing(Graph(case.edge_index, case.num_nodes)), first), want)


@given(case=cases())
def test_dot_product_of_an_edge_and_its_gradient(case: Case) -> None:
    graph = Graph(case.edge_index, case.num_nodes)
    left, right = (torch.randn_like(case.x).requires_grad_() for _ in range(2))
    expected = (left[graph.in_receiver.long()] * right[graph.in_sender.long()]).sum(-1)
    torch.testing.assert_close(edge_dot(graph, left, right), expected)
    assert torch.autograd.gradcheck(lambda a, b: edge_dot(graph, a, b), (left, right))


def test_large_scores_stay_finite() -> None:
    case = random_case(4)
    for name in ATTENDING:
        x = (1e4 * torch.randn(9, 8, dtype=torch.float64)).requires_grad_()
        out = build(name).blocks[0].layer(x, Hearing(Graph(case.edge_index, 9)))
        out.sum().backward()
        assert out.isfinite().all()
        assert x.grad.isfinite().all()


# Edge features --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gt", "gt-sep"])
@given(case=cases(channels=8), heads=st.sampled_from([1, 4]))
def test_edge_features_equal_pyg(name: str, case: Case, heads: int) -> None:
    attr = torch.randn(case.edge_index.size(1), 2, dtype=torch.float64)
    block = build(name, edges={"edge_dim": 2}, heads=heads).blocks[0]
    twin = twin_of(name, block, heads).double()
    edge_index, twin_attr = with_own_loops(name, case.edge_index, case.num_nodes, attr)
    got = block.layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), None, attr))
    torch.testing.assert_close(got, twin(case.x, edge_index, twin_attr))


@pytest.mark.parametrize("name", ATTENDING)
@given(case=cases(), heads=st.sampled_from([1, 4]))
def test_categories_are_one_hot_features(name: str, case: Case, heads: int) -> None:
    num_edges = case.edge_index.size(1)
    attr = torch.stack([torch.randint(3, (num_edges,)), torch.randint(4, (num_edges,))], 1)
    one_hot = torch.cat([nn.functional.one_hot(attr[:, 0], 3), nn.functional.one_hot(attr[:, 1], 4)], 1).double()
    by_category = build(name, edges={"edge_categories": (3, 4)}, heads=heads)
    by_feature = build(name, edges={"edge_dim": 7}, heads=heads)
    by_feature.load_state_dict(by_category.state_dict())
    torch.testing.assert_close(by_category(case.x, case.edge_index, attr), by_feature(case.x, case.edge_index, one_hot))


@pytest.mark.parametrize("name", [*ATTENDING, "sumgnn", "meangnn"])
@pytest.mark.parametrize("edges", [{"edge_dim": 2}, {"edge_categories": (5,)}])
def test_edge_features_change_the_outcome_and_learn(name: str, edges: dict) -> None:
    case, net = random_case(5), build(name, edges=edges)
    attr, other = torch.randn(2, 30, 2, dtype=torch.float64) if "edge_dim" in edges else torch.randint(5, (2, 30, 1))
    assert not torch.equal(net(case.x, case.edge_index, attr), net(case.x, case.edge_index, other))
    net(case.x, case.edge_index, attr).pow(2).sum().backward()
    assert all(p.grad.abs().sum() > 0 for n, p in net.named_parameters() if "edges" in n)
    order = torch.randperm(30)
    shuffled = net(case.x, case.edge_index[:, order], attr[order])
    torch.testing.assert_close(shuffled, net(case.x, case.edge_index, attr))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dot_products_of_edges_can_be_differentiated_twice(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    graph = Graph(torch.randint(9, (2, 30)), 9)
    left, right = (torch.randn(9, 16, dtype=dtype, requires_grad=True) for _ in range(2))

    def curvature(dot: Tensor) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(dot.pow(3).sum(), (left, right), create_graph=True)
        return torch.autograd.grad(sum(grad.pow(2).sum() for grad in first), (left, right))

    plain = (left[graph.in_receiver.long()] * right[graph.in_sender.long()]).sum(-1)
    for ours, expected in zip(curvature(edge_dot(graph, left, right)), curvature(plain), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-3)
