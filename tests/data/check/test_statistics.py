import pytest
import torch

from cognn.core.graph import Graph
from cognn.data.check.statistics import compare, measure
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.synthetic.cycles import cycles


def toy(edges: list[tuple[int, int]], y: torch.Tensor, task: Task, **more) -> Dataset:
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    part = torch.arange(2)
    splits = more.pop("splits", [Split(part, part + 2, part[:0])])
    return Dataset("toy", task, torch.zeros(len(y), 3), y, [Graph(index, len(y))], splits, **more)


MULTICLASS = Task("node", "multiclass", 3, "accuracy")


def test_every_count_on_a_graph_with_every_fault() -> None:
    # 0-1 in both directions, once more from 0; 1-2 one way; a loop at 2 and one at 3; nodes 3 and 4 alone.
    edges = [(0, 1), (1, 0), (0, 1), (1, 2), (2, 2), (3, 3)]
    stats = measure(toy(edges, torch.tensor([0, 0, 1, 2, -1]), MULTICLASS))
    assert (stats.nodes, stats.edges, stats.directed_edges, stats.features, stats.classes) == (5, 2, 6, 3, 3)
    assert (stats.self_loops, stats.duplicates, stats.isolated, stats.undirected) == (2, 1, 2, False)
    assert stats.edge_homophily == 0.5
    assert (stats.items, stats.unlabelled) == (5, 1)
    assert stats.balance == pytest.approx({"0": 0.5, "1": 0.25, "2": 0.25})
    assert (stats.mean_degree, stats.max_degree) == (6 / 5, 2)
    assert stats.splits == [(2, 2, 0)]
    assert stats.leaks == 0


def test_homophily_leaves_out_the_unlabelled() -> None:
    edges = [(0, 1), (1, 2), (2, 3)]
    binary = Task("node", "binary", 1, "roc_auc")
    stats = measure(toy(edges, torch.tensor([1.0, 1.0, torch.nan, 0.0]), binary, class_names=["no", "yes"]))
    assert stats.edge_homophily == 1
    assert stats.balance == pytest.approx({"no": 1 / 3, "yes": 2 / 3})
    assert measure(toy([], torch.tensor([0, 1, 2]), MULTICLASS)).edge_homophily is None


def test_kinds_without_classes() -> None:
    many = toy([], torch.tensor([[1.0, 0.0], [1.0, torch.nan]]), Task("node", "multilabel", 2, "average_precision"))
    stats = measure(many)
    assert (stats.classes, stats.edge_homophily, stats.balance) == (2, None, {"0": 1.0, "1": 0.0})
    stats = measure(toy([], torch.full((4, 2), torch.nan), Task("node", "regression", 2, "mae")))
    assert (stats.classes, stats.edge_homophily, stats.balance, stats.unlabelled) == (None, None, {}, 4)
    assert (stats.mean_degree, stats.max_degree, stats.isolated) == (0, 0, 4)


def test_leaks() -> None:
    part = torch.arange(3)
    splits = [Split(part, part + 2, part + 5), Split(part, part + 3, torch.tensor([6, 6]))]
    assert measure(toy([], torch.zeros(8).long(), MULTICLASS, splits=splits)).leaks == 2


def test_many_graphs() -> None:
    stats = measure(cycles())
    assert (stats.graphs, stats.nodes, stats.edges, stats.directed_edges) == (14, 126, 126, 252)
    assert (stats.edge_homophily, stats.mean_degree, stats.max_degree) == (None, 2, 2)
    assert stats.balance == {"two cycles": 0.5, "one cycle": 0.5}
    assert stats.facts()["nodes per graph"] == 9


def test_compare() -> None:
    stats = measure(cycles())
    rows = compare(stats, {"graphs": 14, "nodes per graph": 9.004, "edges": 127, "edge homophily": 0.5})
    assert [(row.name, row.agrees) for row in rows] == [
        ("graphs", True),
        ("nodes per graph", True),
        ("edges", False),
        ("edge homophily", False),
    ]
    assert rows[2][:3] == ("edges", 126, 127)


def test_relations() -> None:
    dataset = toy([(0, 1), (1, 0), (0, 1), (0, 1)], torch.tensor([0, 1, 2]), MULTICLASS)
    stats = measure(dataset)
    assert (stats.relations, stats.relation_edges, stats.duplicates) == (1, {}, 2)
    edge_index = dataset.graphs[0].edge_index
    dataset.graphs = [Graph(edge_index, 3, torch.tensor([0, 0, 2, 2]), 4)]
    stats = measure(dataset)
    assert (stats.relations, stats.duplicates, stats.edges) == (4, 1, 1)
    assert stats.relation_edges == {"0": 2, "1": 0, "2": 2, "3": 0}
    dataset.relation_names = ["a", "b", "c", "d"]
    assert list(measure(dataset).relation_edges) == ["a", "b", "c", "d"]
    assert measure(dataset).facts()["relations"] == 4


def test_edges_both_ways_of_other_relations_are_directed() -> None:
    dataset = toy([(0, 1), (1, 0)], torch.tensor([0, 1, 2]), MULTICLASS)
    assert measure(dataset).undirected
    for types, undirected in (([1, 1], True), ([0, 1], False)):
        dataset.graphs = [Graph(dataset.graphs[0].edge_index, 3, torch.tensor(types))]
        assert measure(dataset).undirected == undirected
