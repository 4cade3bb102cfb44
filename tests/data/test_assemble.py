import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn import Graph
from cognn.data.assemble import build_graphs
from tests.conftest import Case, cases


def same(one: Graph, other: Graph) -> bool:
    return one.num_nodes == other.num_nodes and all(
        torch.equal(getattr(one, name), getattr(other, name)) for name in Graph._tensors
    )


@given(st.lists(cases(), min_size=1, max_size=5))
def test_built_graphs_are_what_each_graph_would_be(parts: list[Case]):
    graphs = build_graphs(
        torch.cat([case.edge_index for case in parts], dim=1),
        torch.tensor([case.num_nodes for case in parts]),
        torch.tensor([case.edge_index.size(1) for case in parts]),
    )
    for graph, case in zip(graphs, parts, strict=True):
        want = Graph(case.edge_index, case.num_nodes)
        assert same(graph, want)
        assert (graph.loopless is graph) == (want.loopless is want)
        assert same(graph.loopless, want.loopless)


def test_edges_out_of_their_graph_are_refused():
    edges = torch.tensor([[0, 1, 0], [1, 2, 0]])
    with pytest.raises(ValueError, match=r"column 1 is \[1, 2\], but its graph has 2 nodes"):
        build_graphs(edges, torch.tensor([2, 9]), torch.tensor([2, 1]))
    with pytest.raises(ValueError, match="num_edges: adds up to 2, but there are 3 edges"):
        build_graphs(edges, torch.tensor([3, 9]), torch.tensor([1, 1]))
