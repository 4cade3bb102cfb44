import pytest
import torch
from hypothesis import given

from cognn import Graph
from cognn.core import sorting
from cognn.core.sorting import comparison_sort, counting_sort, sort_edges
from tests.conftest import Case, cases, random_case

WAYS = [comparison_sort, counting_sort]


@given(cases())
def test_edges_are_in_both_orders_and_equal_ones_as_they_were_listed(case: Case) -> None:
    edges = [(r, s, e) for e, (s, r) in enumerate(case.edge_index.t().tolist())]
    heard = sorted(edges)
    sent = sorted((s, r, slot) for slot, (r, s, _) in enumerate(heard))
    for way in WAYS:
        found = way(case.edge_index, case.num_nodes)
        by_receiver = torch.stack([found.in_receiver, found.in_sender, found.in_edge], 1)
        assert [tuple(row) for row in by_receiver.tolist()] == heard
        assert list(zip(found.out_receiver.tolist(), found.out_slot.tolist(), strict=True)) == [row[1:] for row in sent]
        for ptr, order in ((found.in_ptr, heard), (found.out_ptr, sent)):
            nodes = [row[0] for row in order]
            assert ptr.tolist() == [sum(node < v for node in nodes) for v in range(case.num_nodes + 1)]


@given(cases())
def test_both_sorts_return_the_same_tensors(case: Case) -> None:
    for edge_index in (case.edge_index, case.edge_index.t().contiguous().t(), case.edge_index.repeat(1, 2)):
        one, other = (way(edge_index, case.num_nodes) for way in WAYS)
        for name, a, b in zip(one._fields, one, other, strict=True):
            assert a.dtype == b.dtype == torch.int32, name
            assert torch.equal(a, b), name


@pytest.mark.parametrize("way", WAYS)
def test_wide_indices_where_the_graph_is_too_large_for_narrow_ones(way, monkeypatch) -> None:
    assert sorting.index_type(10, 2**31 - 2) == torch.int32
    assert sorting.index_type(10, 2**31 - 1) == sorting.index_type(2**31, 10) == torch.int64
    case = random_case(0)
    narrow = way(case.edge_index, 9)
    monkeypatch.setattr(sorting, "index_type", lambda *_: torch.int64)
    for a, b in zip(narrow, way(case.edge_index, 9), strict=True):
        assert b.dtype == torch.int64
        assert torch.equal(a.long(), b)


def test_many_edges_use_the_counting_sort_and_few_the_comparison_sort(monkeypatch) -> None:
    ways = []
    for way in WAYS:
        monkeypatch.setattr(sorting, way.__name__, lambda *args, way=way: ways.append(way) or way(*args))
    case = random_case(0)
    edges = case.edge_index.size(1)
    for few in (edges, edges - 1):
        monkeypatch.setattr(sorting, "COUNTING_SORT_ABOVE", few)
        sort_edges(case.edge_index, 9)
    assert ways == WAYS


def test_a_graph_that_owns_its_edges_is_the_same_without_a_copy() -> None:
    case = random_case(0)
    graph, own = Graph(case.edge_index, 9), Graph.owning(case.edge_index, 9)
    assert graph.edge_index.data_ptr() != case.edge_index.data_ptr() == own.edge_index.data_ptr()
    for name in ("in_edge", "in_sender", "out_slot"):
        assert torch.equal(getattr(graph, name), getattr(own, name))
    with pytest.raises(ValueError, match="out of range for 3 nodes"):
        Graph.owning(case.edge_index, 3)
