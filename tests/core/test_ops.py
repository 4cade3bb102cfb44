import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from cognn import Graph
from cognn.core import kernels, ops
from tests.conftest import Case, cases, dense, random_case

WIDTHS = [None, 1, 4, kernels.NARROW, kernels.NARROW + 1, 33]


def signal(case: Case, width: int | None, dtype=torch.float64) -> torch.Tensor:
    shape = (case.num_nodes,) if width is None else (case.num_nodes, width)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@given(case=cases(), width=st.sampled_from(WIDTHS))
def test_products_equal_dense_ones(dtype: torch.dtype, case: Case, width: int | None) -> None:
    graph = Graph(case.edge_index, case.num_nodes)
    x = signal(case, width, dtype)
    weight = signal(case._replace(x=torch.empty(graph.num_edges, 1)), None, dtype)
    weighted = torch.zeros(case.num_nodes, case.num_nodes, dtype=torch.float64)
    ends = (graph.in_receiver.long(), graph.in_sender.long())
    weighted.index_put_(ends, weight.double(), accumulate=True)
    tolerance = {"rtol": 0.03, "atol": 0.1} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    matrix = dense(case.edge_index, case.num_nodes)
    plain = matrix @ x.double()
    torch.testing.assert_close(ops.heard(graph, x).double(), plain, **tolerance)
    torch.testing.assert_close(ops.heard(graph, x, weight=weight).double(), weighted @ x.double(), **tolerance)
    assert ops.heard(graph, x).dtype == dtype
    x.requires_grad_()
    for got, expected in (
        (torch.autograd.grad((ops.heard(graph, x) * x.detach()).sum(), x)[0], matrix.t()),
        (torch.autograd.grad((ops.heard(graph, x, weight=weight) * x.detach()).sum(), x)[0], weighted.t()),
    ):
        torch.testing.assert_close(got.double(), expected @ x.detach().double(), **tolerance)


@given(cases())
def test_heard_is_gated_on_both_ends(case: Case) -> None:
    graph = Graph(case.edge_index, case.num_nodes)
    listen, broadcast = torch.rand(2, case.num_nodes, dtype=torch.float64)
    matrix = listen[:, None] * dense(case.edge_index, case.num_nodes) * broadcast
    torch.testing.assert_close(ops.heard(graph, case.x, listen, broadcast), matrix @ case.x)
    torch.testing.assert_close(ops.heard(graph, case.x[:, 0], listen, broadcast), matrix @ case.x[:, 0])


@pytest.mark.parametrize("width", [None, 1, 3])
def test_gradients(width: int | None) -> None:
    case = random_case(3)
    graph = Graph(case.edge_index, case.num_nodes)
    x = signal(case, width).requires_grad_()
    weight = torch.randn(graph.num_edges, dtype=torch.float64, requires_grad=True)
    listen, broadcast = torch.rand(2, case.num_nodes, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda x: ops.heard(graph, x), x)
    assert gradcheck(lambda x, w: ops.heard(graph, x, weight=w), (x, weight))
    assert gradcheck(lambda x, *gates: ops.heard(graph, x, *gates), (x, listen, broadcast))
    again = torch.autograd.gradgradcheck  # forces and gradient penalties differentiate a gradient
    assert again(lambda x: ops.heard(graph, x), x)
    if width != 3:
        assert again(lambda x, w: ops.heard(graph, x, weight=w), (x, weight))
        assert again(lambda x, *gates: ops.heard(graph, x, *gates), (x, listen, broadcast))


def test_gradients_of_edge_sums() -> None:
    case = random_case(4)
    for graph in (Graph(case.edge_index, 9), Graph(case.edge_index, 9).loopless):
        attr = torch.randn(30, 3, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(graph.in_edge.numel(), dtype=torch.float64, requires_grad=True)
        category = torch.randint(4, (30, 2))
        assert gradcheck(lambda a, w, graph=graph: ops.edge_sum(graph, a, w), (attr, weight))
        assert gradcheck(lambda a, graph=graph: ops.edge_sum(graph, a), attr)
        assert gradcheck(lambda w, c=category, graph=graph: ops.edge_count(graph, c, 4, w), weight)


@given(cases())
def test_edge_sums_count_what_enters_a_node(case: Case) -> None:
    graph = Graph(case.edge_index, case.num_nodes)
    attr = torch.randn(graph.num_edges, 3, dtype=torch.float64)
    category = torch.randint(4, (graph.num_edges, 1))
    summed, count = torch.zeros(case.num_nodes, 3, dtype=torch.float64), torch.zeros(case.num_nodes, 4)
    for edge, v in enumerate(case.edge_index[1].tolist()):
        summed[v] += attr[edge]
        count[v, category[edge]] += 1
    torch.testing.assert_close(ops.edge_sum(graph, attr), summed)
    torch.testing.assert_close(ops.edge_count(graph, category, 4), count)


@given(cases())
def test_heard_max_looks_at_what_is_heard_only(case: Case) -> None:
    graph = Graph(case.edge_index, case.num_nodes)
    score = torch.randn(graph.num_edges, 2, dtype=torch.float64)
    listen, broadcast = (torch.rand(2, case.num_nodes) < 0.5).double()
    for gates in ((), (listen, broadcast)):
        expected = torch.full((case.num_nodes, 2), -torch.inf, dtype=torch.float64)
        for j in range(graph.num_edges):
            v = graph.in_receiver[j]
            if not gates or (broadcast[graph.in_sender[j]] and listen[v]):
                expected[v] = torch.maximum(expected[v], score[j])
        assert torch.equal(ops.heard_max(graph, score, *gates), expected)


def test_operators_for_compiled_code_are_sound() -> None:
    case = random_case(5)
    g = Graph(case.edge_index, 9)
    weight, op = torch.rand(30, dtype=torch.float64), torch.ops.cognn
    torch.library.opcheck(op.product.default, (case.x, g.in_ptr, g.in_sender, weight, True))
    torch.library.opcheck(op.product.default, (case.x[:, 0].float(), g.in_ptr, g.in_sender, g.ones, False))
    torch.library.opcheck(op.edge_dot.default, (case.x, case.x, g.in_ptr, g.in_sender))
    torch.library.opcheck(op.segment_max.default, (weight.view(-1, 1), g.in_ptr))


@pytest.mark.parametrize("width", [None, 1, 2, kernels.NARROW, 2 * kernels.NARROW, 33])
def test_products_of_a_graph_that_is_not_tiny(width: int | None) -> None:
    """Narrow products of many edges use another kernel; all directions and widths must agree."""
    rng = torch.Generator().manual_seed(0)
    edge_index = torch.randint(300, (2, kernels.FEW_EDGES + 500), generator=rng)
    graph, matrix = Graph(edge_index, 300), dense(edge_index, 300)
    x, weight = torch.randn(2, *((300,) if width is None else (300, width)), generator=rng)
    out = ops.heard(graph, x.requires_grad_())
    torch.testing.assert_close(out.double(), matrix @ x.double(), rtol=1e-4, atol=1e-4)
    (grad,) = torch.autograd.grad((out * weight).sum(), x)
    torch.testing.assert_close(grad.double(), matrix.t() @ weight.double(), rtol=1e-4, atol=1e-4)
