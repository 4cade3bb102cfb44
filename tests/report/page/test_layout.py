import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from cognn.report.page.layout import layout
from tests.conftest import Case, cases


def both_ways(graph: nx.Graph) -> np.ndarray:
    edges = np.array(graph.edges).T
    return np.concatenate([edges, edges[::-1]], 1)


@given(cases())
def test_any_graph_gets_finite_places_of_its_own(case: Case) -> None:
    place = layout(case.edge_index.numpy(), case.num_nodes)
    assert place.shape == (case.num_nodes, 2)
    assert np.isfinite(place).all()
    assert len(np.unique(place.round(3), axis=0)) == case.num_nodes
    assert np.array_equal(place, layout(case.edge_index.numpy(), case.num_nodes))


@pytest.mark.parametrize(
    "graph", [nx.path_graph(40), nx.cycle_graph(30), nx.balanced_tree(2, 5), nx.grid_graph((20, 20))]
)
def test_neighbours_are_drawn_close_together(graph: nx.Graph) -> None:
    graph = nx.convert_node_labels_to_integers(graph)
    edges = both_ways(graph)
    place = layout(edges, len(graph))
    length = np.linalg.norm(place[edges[0]] - place[edges[1]], axis=1)
    apart = np.linalg.norm(place[:, None] - place, axis=2).mean()
    assert length.mean() < 0.4 * apart


def test_components_do_not_overlap() -> None:
    graph = nx.disjoint_union_all([nx.cycle_graph(n) for n in (12, 9, 9, 5)] + [nx.empty_graph(3)])
    place = layout(both_ways(graph), len(graph))
    boxes = [(place[list(c)].min(0), place[list(c)].max(0)) for c in nx.connected_components(graph)]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert ((high < other_low) | (other_high < low)).any()
