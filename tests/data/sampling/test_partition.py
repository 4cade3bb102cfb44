import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cognn.core.graph import Graph
from cognn.data.sampling import partition as module
from cognn.data.sampling.partition import BISECTION, METIS, partition


def ring_of_cliques(cliques: int = 6, size: int = 8) -> Graph:
    """Cliques in a ring, one edge each way between neighbours, with self-loops and every edge twice."""
    pairs = [(c * size + i, c * size + j) for c in range(cliques) for i in range(size) for j in range(size)]
    bridges = [(c * size, (c + 1) % cliques * size + 1) for c in range(cliques)]
    edges = torch.tensor([*pairs, *bridges, *((v, u) for u, v in bridges)]).t()
    return Graph(torch.cat([edges, edges], dim=1), cliques * size)


@pytest.fixture(params=[METIS, BISECTION])
def method(request, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == METIS:
        pytest.importorskip("pymetis")
    else:
        monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    return request.param


def test_parts_are_balanced_and_repeatable_and_cut_few_edges(method: str) -> None:
    graph = ring_of_cliques()
    found = partition(graph, 6)
    assert found.method == method
    assert found.part.unique().tolist() == list(range(6))
    assert found.part.bincount().max() <= 10
    by_chance = torch.randperm(48, generator=torch.Generator().manual_seed(0)) % 6
    assert found.cut_ratio(graph) < 0.5 * found._replace(part=by_chance).cut_ratio(graph)
    assert torch.equal(found.part, partition(graph, 6).part)
    one_way = Graph(graph.edge_index[:, graph.edge_index[0] <= graph.edge_index[1]], 48)
    assert torch.equal(found.part, partition(one_way, 6).part)  # who touches whom, whichever way


def test_metis_cuts_no_clique() -> None:
    pytest.importorskip("pymetis")
    graph = ring_of_cliques()
    assert partition(graph, 6).cut_ratio(graph) == pytest.approx(12 / (6 * 64 + 12))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 40), st.booleans())
def test_every_node_has_a_part_and_every_part_a_node(data, nodes: int, with_metis: bool) -> None:
    ends = data.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=80))
    parts = data.draw(st.integers(1, nodes))
    graph = Graph(torch.tensor(ends, dtype=torch.long).view(-1, 2).t(), nodes)
    before = graph.in_sender.clone()
    with pytest.MonkeyPatch.context() as patch:
        if not with_metis:
            patch.setattr(module, "load_pymetis", lambda: None)
        found = partition(graph, parts)
    sizes = found.part.bincount()
    assert len(found.part) == nodes
    assert int(sizes.min()) >= 1
    assert len(sizes) <= parts
    if found.method == BISECTION:
        assert len(sizes) == parts
        assert int(sizes.max() - sizes.min()) <= 2
    assert torch.equal(graph.in_sender, before)


def test_a_graph_without_nodes_or_with_one_part() -> None:
    assert partition(Graph(torch.empty(2, 0, dtype=torch.long), 0), 1).part.numel() == 0
    assert partition(ring_of_cliques(), 1).part.tolist() == [0] * 48
    assert partition(ring_of_cliques(), 1).cut_ratio(ring_of_cliques()) == 0.0
