import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn import Graph
from cognn.data.assemble import assemble, build_graphs, is_symmetric
from tests.conftest import Case, cases


def same(one: Graph, other: Graph) -> bool:
    return one.num_nodes == other.num_nodes and all(
        torch.equal(getattr(one, name), getattr(other, name)) for name in Graph._tensors
    )


def types(case: Case) -> torch.Tensor:
    """A relation from 0 to 2 for every edge."""
    return (case.edge_index[0] + 2 * case.edge_index[1]) % 3


def triples(edge_index: torch.Tensor, edge_type: torch.Tensor) -> list[list[int]]:
    return sorted(torch.cat([edge_index, edge_type.unsqueeze(0)]).T.tolist())


@given(st.lists(cases(), min_size=1, max_size=5))
def test_built_graphs_are_what_each_graph_would_be(parts: list[Case]):
    graphs = build_graphs(
        torch.cat([case.edge_index for case in parts], dim=1),
        torch.tensor([case.num_nodes for case in parts]),
        torch.tensor([case.edge_index.size(1) for case in parts]),
        edge_type=torch.cat([types(case) for case in parts]),
        num_relations=4,
    )
    for graph, case in zip(graphs, parts, strict=True):
        want = Graph(case.edge_index, case.num_nodes)
        assert same(graph, want)
        for part in (graph, graph.loopless):
            assert torch.equal(part.edge_type, types(case))
            assert part.num_relations == 4
        assert (graph.loopless is graph) == (want.loopless is want)
        assert same(graph.loopless, want.loopless)


def test_edges_out_of_their_graph_are_refused():
    edges = torch.tensor([[0, 1, 0], [1, 2, 0]])
    with pytest.raises(ValueError, match=r"column 1 is \[1, 2\], but its graph has 2 nodes"):
        build_graphs(edges, torch.tensor([2, 9]), torch.tensor([2, 1]))
    with pytest.raises(ValueError, match="num_edges: adds up to 2, but there are 3 edges"):
        build_graphs(edges, torch.tensor([3, 9]), torch.tensor([1, 1]))
    wrong = torch.tensor([0, 1, 5])
    with pytest.raises(ValueError, match="edge_type: edge 2 has type 5, expected 0 to 3"):
        build_graphs(edges, torch.tensor([3]), torch.tensor([3]), edge_type=wrong, num_relations=4)


def test_an_undirected_edge_has_the_same_relation_both_ways():
    edge_index, edge_type, attr = torch.tensor([[0, 1, 2], [1, 2, 2]]), torch.tensor([2, 0, 1]), torch.arange(3.0)
    (graph,), both, _ = assemble(edge_index.clone(), 3, False, attr, edge_type=edge_type.clone(), num_relations=5)
    assert graph.num_relations == 5
    assert triples(graph.edge_index, graph.edge_type) == [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0], [2, 2, 1]]
    assert both.tolist() == [0, 1, 2, 0, 1]
    (graph,), _, _ = assemble(edge_index, 3, True, attr, edge_type=edge_type, num_relations=5)
    assert graph.edge_type.tolist() == [2, 0, 1]


def test_edges_both_ways_with_other_relations_are_not_the_same_edge():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    assert is_symmetric(edge_index, 2)
    assert is_symmetric(edge_index, 2, torch.tensor([1, 1]))
    assert not is_symmetric(edge_index, 2, torch.tensor([0, 1]))
    (graph,), _, _ = assemble(edge_index, 2, False, edge_type=torch.tensor([0, 1]))
    assert triples(graph.edge_index, graph.edge_type) == [[0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]]


def test_relations_move_with_the_edges_of_interleaved_graphs():
    node_graph = torch.tensor([1, 0, 1, 0])
    edge_index, edge_type = torch.tensor([[0, 1, 2, 3], [2, 3, 0, 3]]), torch.tensor([3, 1, 2, 0])
    graphs, _, order = assemble(edge_index, 4, True, None, node_graph, 2, edge_type)
    assert order.tolist() == [1, 3, 0, 2]
    found = [triples(order[graph.edge_index + 2 * i], graph.edge_type) for i, graph in enumerate(graphs)]
    assert found == [[[1, 3, 1], [3, 3, 0]], [[0, 2, 3], [2, 0, 2]]]
    assert [graph.num_relations for graph in graphs] == [4, 4]
