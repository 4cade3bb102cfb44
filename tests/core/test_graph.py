import copy
import gc
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from cognn import CoGNN, Graph
from cognn.core import ops
from cognn.core.graph import _prepared, as_graph
from tests.conftest import Case, cases, dense, random_case


def to_dense(graph: Graph) -> tuple[torch.Tensor, torch.Tensor]:
    """The dense matrix of the order by receiver, and that of the order by sender."""
    n = graph.num_nodes
    by_receiver, by_sender = torch.zeros(n, n), torch.zeros(n, n)
    for v in range(n):
        for j in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            assert graph.in_receiver[j] == v
            by_receiver[v, graph.in_sender[j]] += 1
        for j in range(graph.out_ptr[v], graph.out_ptr[v + 1]):
            slot = graph.out_slot[j]
            assert graph.in_sender[slot] == v
            assert graph.in_receiver[slot] == graph.out_receiver[j]
            by_sender[graph.out_receiver[j], v] += 1
    return by_receiver, by_sender


@given(cases())
def test_both_directions_are_the_graph(case: Case) -> None:
    graph = Graph(case.edge_index, case.num_nodes)
    expected = dense(case.edge_index, case.num_nodes, torch.float32)
    for matrix in to_dense(graph):
        assert torch.equal(matrix, expected)
    assert torch.equal(graph.edge_index[0][graph.in_edge], graph.in_sender.long())
    assert torch.equal(graph.edge_index[1][graph.in_edge], graph.in_receiver.long())
    assert sorted(graph.out_slot.tolist()) == list(range(graph.num_edges))


@given(cases())
def test_loopless_drops_self_loops_and_keeps_edge_numbers(case: Case) -> None:
    graph = Graph(case.edge_index, case.num_nodes).loopless
    for matrix in to_dense(graph):
        assert torch.equal(matrix, dense(case.edge_index, case.num_nodes, torch.float32, loops=False))
    assert torch.equal(case.edge_index[0][graph.in_edge], graph.in_sender.long())
    assert torch.equal(case.edge_index[1][graph.in_edge], graph.in_receiver.long())


@given(cases(), cases(), cases())
def test_cat_is_the_graph_of_shifted_edges(a: Case, b: Case, c: Case) -> None:
    three = (a, b, c)
    parts = [Graph(case.edge_index, case.num_nodes) for case in three]
    joined = Graph.cat(parts)
    shift, edges = 0, []
    for case in three:
        edges.append(case.edge_index + shift)
        shift += case.num_nodes
    fresh = Graph(torch.cat(edges, 1), shift)
    for name in ("edge_index", "in_ptr", "in_sender", "in_receiver", "in_edge", "out_ptr", "out_receiver", "out_slot"):
        assert torch.equal(getattr(joined, name), getattr(fresh, name)), name
        assert torch.equal(getattr(joined.loopless, name), getattr(fresh.loopless, name)), name
    assert joined.batch.tolist() == [i for i, case in enumerate(three) for _ in range(case.num_nodes)]
    assert joined.num_graphs == 3


def test_cat_of_batches_numbers_all_graphs() -> None:
    one, two = Graph(torch.tensor([[0], [1]])), Graph(torch.tensor([[0, 1], [1, 2]]))
    nested = Graph.cat([Graph.cat([one, two]), one, Graph.cat([two, two])])
    assert nested.batch.tolist() == [0] * 2 + [1] * 3 + [2] * 2 + [3] * 3 + [4] * 3
    assert nested.num_graphs == 5
    with pytest.raises(ValueError, match="graphs: expected at least one"):
        Graph.cat([])


def test_unchanged_tensor_is_prepared_once_and_forgotten_with_it() -> None:
    case = random_case(0)
    first = as_graph(case.edge_index, 9)
    assert as_graph(case.edge_index, 9) is first
    assert as_graph(case.edge_index, 10) is not first
    edge_index = case.edge_index.clone()
    stale = as_graph(edge_index, 9)
    edge_index[0, 0] = (edge_index[0, 0] + 1) % 8
    fresh = as_graph(edge_index, 9)
    assert fresh is not stale
    assert fresh.edge_index[0, 0] == edge_index[0, 0]
    before = len(_prepared)
    del edge_index
    gc.collect()
    assert len(_prepared) == before - 1
    with torch.inference_mode():
        assert as_graph(torch.tensor([[0], [1]]), 2).num_edges == 1


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_any_integer_type(dtype: torch.dtype) -> None:
    assert Graph(torch.tensor([[0, 2], [1, 0]], dtype=dtype)).num_nodes == 3


def test_empty_graphs_and_repr() -> None:
    empty = Graph(torch.empty(2, 0, dtype=torch.long))
    assert (empty.num_nodes, empty.num_edges) == (0, 0)
    assert repr(Graph(torch.empty(2, 0, dtype=torch.long), 3)) == "Graph(num_nodes=3, num_edges=0)"
    assert repr(Graph.cat([empty, empty])) == "Graph(num_nodes=0, num_edges=0, num_graphs=2)"


def test_moves_between_devices() -> None:
    graph = Graph.cat([Graph(torch.tensor([[0, 1, 1], [1, 0, 1]]))] * 2)
    assert graph.to("cpu") is graph
    moved = graph.to("meta")
    assert moved.device.type == moved.batch.device.type == moved.loopless.in_ptr.device.type == "meta"
    assert (moved.num_nodes, moved.num_graphs) == (4, 2)


def test_a_graph_first_seen_while_scoring_serves_training_and_copies() -> None:
    from cognn import CoGNN

    case, net = random_case(1, dtype=torch.float32), CoGNN(5, 4, out_channels=2, num_layers=2)
    with torch.inference_mode():
        net(case.x, case.edge_index)
    net(case.x, case.edge_index).sum().backward()
    graph = Graph(case.edge_index, 9)
    with torch.no_grad():
        net(case.x, graph)
    assert repr(copy.deepcopy(graph)) == repr(pickle.loads(pickle.dumps(graph))) == repr(graph)
    case.edge_index.copy_(case.edge_index.flip(0))  # the graph keeps its own copy
    assert torch.equal(graph.edge_index[1][graph.in_edge], graph.in_receiver.long())
    case.edge_index.data = case.edge_index.flip(0).clone()
    assert torch.equal(as_graph(case.edge_index, 9).edge_index, case.edge_index)


@given(cases(), cases())
def test_the_reversed_graph_is_the_graph_of_flipped_edges(a: Case, b: Case) -> None:
    one = Graph(a.edge_index, a.num_nodes)
    for graph in (one, Graph.cat([one, Graph(b.edge_index, b.num_nodes)])):
        found, expected = graph.reversed, Graph(graph.edge_index.flip(0), graph.num_nodes)
        for left, right in ((found, expected), (found.loopless, expected.loopless)):
            for name in Graph._tensors:
                assert getattr(left, name).dtype == getattr(right, name).dtype, name
                assert torch.equal(getattr(left, name), getattr(right, name)), name
            assert (left.num_senders, left.num_receivers) == (graph.num_nodes, graph.num_nodes)
            # Edges keep their columns: edge features need no reordering.
            assert torch.equal(graph.edge_index[0][left.in_edge], left.in_receiver.long())
            assert torch.equal(graph.edge_index[1][left.in_edge], left.in_sender.long())
        assert found.reversed is graph
        assert found is graph.reversed
        assert found.batch is graph.batch
        assert found.num_graphs == graph.num_graphs
        assert repr(found) == repr(graph)


@given(cases(channels=2))
def test_a_product_on_the_reversed_graph_is_that_of_the_transpose(case: Case) -> None:
    graph, n = Graph(case.edge_index, case.num_nodes).reversed, case.num_nodes
    rng = torch.Generator().manual_seed(0)
    listen, broadcast, weight = (
        torch.rand(size, generator=rng, dtype=torch.float64).requires_grad_() for size in (n, n, graph.num_edges)
    )
    x = case.x.clone().requires_grad_()

    def product(x, listen, broadcast, weight):
        return ops.heard(graph, x, listen, broadcast, weight[graph.in_edge])

    sender, receiver = case.edge_index
    matrix = torch.zeros(n, n, dtype=torch.float64).index_put((receiver, sender), weight, accumulate=True)
    torch.testing.assert_close(
        product(x, listen, broadcast, weight), listen[:, None] * (matrix.t() @ (broadcast[:, None] * x))
    )
    assert torch.autograd.gradcheck(product, (x, listen, broadcast, weight))


@given(cases(), st.data())
def test_a_subgraph_is_the_graph_of_the_edges_that_stay(case: Case, data: st.DataObject) -> None:
    n = case.edge_index.size(1)
    keep = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=torch.bool)
    found, expected = (
        Graph(case.edge_index, case.num_nodes).subgraph(keep),
        Graph(case.edge_index[:, keep], case.num_nodes),
    )
    for a, b in ((found, expected), (found.loopless, expected.loopless)):
        for name in (
            "edge_index",
            "in_ptr",
            "in_sender",
            "in_receiver",
            "in_edge",
            "out_ptr",
            "out_receiver",
            "out_slot",
            "ones",
        ):
            assert torch.equal(getattr(a, name), getattr(b, name)), name


def test_a_graph_does_not_depend_on_the_default_dtype() -> None:
    torch.manual_seed(0)
    x, edge_index = torch.randn(500, 4), torch.randint(500, (2, 12_000))
    model = CoGNN(4, 8, out_channels=2, num_layers=2).eval()
    expected = model(x, edge_index.clone(), actions="argmax")
    torch.set_default_dtype(torch.float64)
    try:
        torch.testing.assert_close(model(x, edge_index, actions="argmax"), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_graph_in_pyg_data_moves_with_it() -> None:
    data = Data(x=torch.ones(3, 1), graph=Graph(torch.tensor([[0, 1], [1, 2]]), 3))
    assert data.to("meta", non_blocking=True).graph.device.type == "meta"


def typed(case: Case, relations: int = 3) -> Tensor:
    """A relation for every edge, the same for the same case."""
    return torch.randint(relations, (case.edge_index.size(1),), generator=torch.Generator().manual_seed(len(case.x)))


@pytest.mark.parametrize(
    ("edge_type", "num_relations", "error", "says"),
    [
        ([0.0, 1.0], None, TypeError, "edge_type: expected a LongTensor of shape .E,., got torch.float32"),
        ([0, 1, 0], None, ValueError, r"edge_type: expected shape \(E=2,\), got \(3,\)"),
        ([[0, 1]], None, ValueError, r"edge_type: expected shape \(E=2,\), got \(1, 2\)"),
        ([0, 2], 2, ValueError, "edge_type: edge 1 has type 2, expected 0 to 1"),
        ([-1, 0], None, ValueError, "edge_type: edge 0 has type -1, expected 0 or more"),
        ([0, 1], 0, ValueError, "num_relations: expected 1 or more, got 0"),
        (None, 2, ValueError, "edge_type: missing, but there are num_relations=2"),
    ],
)
def test_bad_relations_are_refused_in_one_line(edge_type, num_relations, error, says: str) -> None:
    edge_index = torch.tensor([[0, 1], [1, 2]])
    types = None if edge_type is None else torch.tensor(edge_type)
    for make in (Graph, as_graph):
        with pytest.raises(error, match=f"^{says}$"):
            make(edge_index, 3, types, num_relations)
    with pytest.raises(error, match=f"^{says}$"):
        Graph.owning(edge_index, 3, types, num_relations)


def test_relations_of_a_graph_without_edges_and_its_repr() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert Graph(none, 3, num_relations=4).num_relations == Graph(none, 3, none[0], 4).num_relations == 4
    assert Graph(none, 3, none[0]).num_relations == Graph(none, 3).num_relations == 1
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), 3, torch.tensor([0, 4], dtype=torch.uint8))
    assert (graph.num_relations, graph.edge_type.dtype) == (5, torch.long)
    assert repr(graph) == "Graph(num_nodes=3, num_edges=2, num_relations=5)"


def triples(part: Graph) -> list[list[int]]:
    """Sender, receiver and relation of every edge, in the order of the sparse product."""
    return torch.stack([part.in_sender, part.in_receiver, part.edge_type[part.in_edge.long()]]).T.tolist()


@given(cases(), st.data())
def test_relations_stay_with_their_edges(case: Case, data: st.DataObject) -> None:
    types, size = typed(case), case.edge_index.size(1)
    graph = Graph(case.edge_index, case.num_nodes, types, 3)
    keep = torch.tensor(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=torch.bool)
    listed = torch.cat([case.edge_index, types.unsqueeze(0)])
    for part, expected in (
        (graph, listed),
        (graph.subgraph(keep), listed[:, keep]),
        (graph.subgraph(keep).loopless, listed[:, keep & (listed[0] != listed[1])]),
        (graph.reversed, listed[[1, 0, 2]]),
        (graph.reversed.subgraph(keep), listed[[1, 0, 2]][:, keep]),
        (copy.deepcopy(graph), listed),
    ):
        assert part.num_relations == 3
        assert sorted(triples(part)) == sorted(expected.T.tolist())


@given(cases(), cases())
def test_a_batch_has_the_relations_of_its_graphs(a: Case, b: Case) -> None:
    parts = []
    for case in (a, b):
        edge_index = case.edge_index[:, case.edge_index[0] != case.edge_index[1]]
        parts.append(Graph(edge_index, case.num_nodes, typed(case)[: edge_index.size(1)], 3))
    joined = Graph.cat([parts[0], parts[1], parts[0]])
    assert joined.num_relations == 3
    assert torch.equal(joined.edge_type, torch.cat([g.edge_type for g in (parts[0], parts[1], parts[0])]))


def test_a_graph_without_its_self_loops_has_relations() -> None:
    edge_index, types = torch.tensor([[0, 1, 1, 2], [1, 1, 2, 2]]), torch.tensor([2, 1, 0, 1])
    graph = Graph(edge_index, 3, types)
    assert sorted(triples(graph.loopless)) == [[0, 1, 2], [1, 2, 0]]
    assert sorted(triples(graph.reversed.loopless)) == [[1, 0, 2], [2, 1, 0]]
    assert graph.to("meta").loopless.num_relations == 3
    assert Graph.cat([graph, Graph(edge_index[:, ::2], 3, types[::2])]).loopless.num_relations == 3


def test_a_batch_needs_equal_numbers_of_relations() -> None:
    edge_index = torch.tensor([[0], [1]])
    one, two = (Graph(edge_index, 2, torch.tensor([0]), count) for count in (2, 3))
    with pytest.raises(ValueError, match=r"^graphs: expected the same num_relations in all of them$"):
        Graph.cat([one, two])


def test_a_moved_graph_keeps_its_relations() -> None:
    moved = Graph(torch.tensor([[0, 1, 1], [1, 0, 1]]), 2, torch.tensor([2, 0, 1])).to("meta")
    assert (moved.num_relations, moved.edge_type.device.type, tuple(moved.edge_type.shape)) == (3, "meta", (3,))


def test_a_graph_with_relations_is_prepared_once_until_they_change() -> None:
    case, types = random_case(0), torch.arange(30) % 3
    first = as_graph(case.edge_index, 9, types, 3)
    assert as_graph(case.edge_index, 9, types, 3) is first
    assert as_graph(case.edge_index, 9, types, 4).num_relations == 4
    assert as_graph(case.edge_index, 9).edge_type is None
    again = as_graph(case.edge_index, 9, types, 3)
    assert torch.equal(again.edge_type, types)
    types[0] = 2
    changed = as_graph(case.edge_index, 9, types, 3)
    assert changed is not again
    assert changed.edge_type[0] == 2
    assert again.edge_type[0] == 0  # the graph keeps its own copy
    assert torch.equal(as_graph(case.edge_index, 9, types.clone(), 3).edge_type, types)
