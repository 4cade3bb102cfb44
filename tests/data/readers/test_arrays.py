import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import random_array, save_npz
from torch_geometric.data import Batch, Data

from cognn.config.options import DataConfig
from cognn.data.assemble import assemble
from cognn.data.check.files import check_files
from cognn.data.dataset import Split
from cognn.data.readers.files import load_files, load_with_schema
from cognn.data.readers.pyg_data import from_pyg, pyg_with_schema
from cognn.errors import DataError
from tests.data.own import arrays, refused, save


def test_npz(tmp_path: Path) -> None:
    config = save(tmp_path, edge_attr=np.arange(12) % 4)
    data = load_files(config)
    assert (data.task.kind, data.edge_categories, data.num_edges) == ("multiclass", (4,), 12)
    assert torch.equal(data.x, torch.from_numpy(arrays()["x"]))
    config.directed = False
    assert load_files(config).num_edges == 24
    masks = {f"{part}_masks": np.eye(12, dtype=bool)[[i, i + 3]] for i, part in enumerate(("train", "val", "test"))}
    edges = arrays()["edge_index"].T
    known = {"node_features": arrays()["x"], "node_labels": arrays()["y"], "edges": edges}
    data = load_files(save(tmp_path, x=None, y=None, edge_index=None, **known, **masks))
    assert [split.val.tolist() for split in data.splits] == [[1], [4]]
    data = load_files(save(tmp_path, y=np.array([0, 1, -1] * 4), **{name[:-1]: mask.T for name, mask in masks.items()}))
    assert data.task.kind == "binary"
    assert data.y[2].isnan()
    assert data.splits[0].test.tolist() == []


def test_negative_amounts_are_no_missing_classes(tmp_path: Path) -> None:
    y = np.arange(12) - 6
    config = save(tmp_path, y=y)
    config.task = "regression"
    assert load_files(config).y.flatten().tolist() == y.tolist()
    tensors = {name: torch.from_numpy(value) for name, value in arrays(y=y).items()}
    assert from_pyg(Data(**tensors), task="regression").y.flatten().tolist() == y.tolist()
    assert int((from_pyg(Data(**tensors)).y == -1).sum()) == 6


def test_npz_graphs(tmp_path: Path) -> None:
    batch = np.repeat([0, 2, 1], 4)
    edges = np.array([[0, 1], [5, 4], [10, 11]]).T
    data = load_files(save(tmp_path, batch=batch, edge_index=edges, y=np.array([0.5, 1.5, 2.5])))
    assert (data.task.level, data.task.kind) == ("graph", "regression")
    assert [graph.edge_index.tolist() for graph in data.graphs] == [[[0], [1]], [[2], [3]], [[1], [0]]]
    assert torch.equal(data.x[4:8], torch.from_numpy(arrays()["x"][8:]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edge_index": None}, ["'edge_index'", "'edges'", "neither"]),
        ({"edges": np.zeros((3, 2), int)}, ["both"]),
        ({"edge_index": np.full((2, 3), 12)}, ["edge_index", "12", "0 to 11"]),
        ({"edge_index": np.full((2, 3), -1)}, ["-1"]),
        ({"edge_index": np.zeros((3, 2), int)}, ["(3, 2)"]),
        ({"edge_index": np.zeros((2, 3))}, ["integers"]),
        ({"x": np.full((12, 2), np.nan)}, ["'x'[0, 0]", "nan"]),
        ({"x": np.array(["a"] * 12)}, ["'x'", "numbers"]),
        ({"x": np.array([None] * 12)}, ["no pickles"]),
        ({"y": np.zeros(5, int)}, ["'y'", "(5,)", "12 nodes"]),
        ({"y": None}, ["no 'y'"]),
        ({"edge_attr": np.zeros(3)}, ["'edge_attr'", "12 edges"]),
        ({"edge_attr": np.full(12, 5000)}, ["'edge_attr'", "5000", "amounts are floats"]),
        ({"batch": np.full(12, 1)}, ["'batch'", "no node of graph 0"]),
        ({"batch": np.repeat([0, 1], 6), "y": np.array([0, 1])}, ["edge 5", "two different graphs"]),
        ({"train_mask": np.ones(12, bool)}, ["val_mask"]),
        ({f"{part}_mask": np.ones(12, bool) for part in ("train", "val", "test")}, ["train and val share 12"]),
    ],
)
def test_malformed_npz(tmp_path: Path, changes: dict, words: list[str]) -> None:
    refused(save(tmp_path, **changes), "g.npz", *words)


def test_graphml(tmp_path: Path) -> None:
    graph = nx.relabel_nodes(nx.cycle_graph(12), str)
    for i, node in enumerate(graph):
        graph.nodes[node].update(weight=i / 2, kind="pq"[i % 2], good=bool(i % 3), label=f"c{i % 3}")
    for i, (_, _, edge) in enumerate(graph.edges(data=True)):
        edge["strength"] = i / 3
    path = str(tmp_path / "g.graphml")
    nx.write_graphml(graph, path)
    data = load_files(DataConfig(dataset=path))
    assert (data.task.kind, data.x.shape, data.num_edges, data.edge_dim) == ("multiclass", (12, 4), 24, 1)
    nx.write_graphml(graph.to_directed(), path)
    assert load_files(DataConfig(dataset=path)).num_edges == 24
    with pytest.raises(DataError, match=r"its edges are directed, but the model was trained on undirected ones"):
        load_with_schema(data.schema, path)
    Path(path).write_text('<!DOCTYPE x [<!ENTITY a "aaaa">]><graphml>&a;</graphml>')
    refused(DataConfig(dataset=path), "g.graphml", "document type")
    Path(path).write_bytes('<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x><graphml/>'.encode("utf-16"))
    refused(DataConfig(dataset=path), "document type")
    Path(path).write_text("<a>" * 100 + "</a>" * 100)
    refused(DataConfig(dataset=path), "nested")
    Path(path).write_text("<graphml>")
    refused(DataConfig(dataset=path), "GraphML")


def test_pyg_nodes() -> None:
    kept = arrays()
    tensors = {name: torch.from_numpy(value) for name, value in kept.items()}
    data = from_pyg(Data(**tensors), name="mine")
    assert (data.name, data.task.kind, data.num_edges) == ("mine", "multiclass", 12)
    masks = {f"{part}_mask": torch.arange(12) % 3 == i for i, part in enumerate(("train", "val", "test"))}
    data = from_pyg(Data(**tensors, **masks))
    assert data.splits[0].val.tolist() == [1, 4, 7, 10]
    mine = Split(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    assert from_pyg(Data(**tensors), splits=[mine]).splits == [mine]
    bare = Data(edge_index=tensors["edge_index"], y=tensors["y"], num_nodes=12)
    assert from_pyg(bare).x.tolist() == [[1]] * 12
    with pytest.raises(DataError, match="edge_index"):
        from_pyg(Data(x=tensors["x"], y=tensors["y"]))


def test_pyg_graphs() -> None:
    graphs = [
        Data(x=torch.rand(n, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([[0.0, 1.0 * (n % 2)]]))
        for n in range(2, 8)
    ]
    data = from_pyg(graphs)
    assert (data.task.level, data.task.kind, data.y.shape) == ("graph", "multilabel", (6, 2))
    assert [graph.num_nodes for graph in data.graphs] == list(range(2, 8))
    assert torch.equal(from_pyg(Batch.from_data_list(graphs)).x, data.x)
    assert from_pyg(graphs, task="regression").task.metric == "mae"
    graphs[2].edge_index = torch.tensor([[0], [4]])
    with pytest.raises(DataError, match=r"data\[2\]: an edge names node 4, it has 4 nodes"):
        from_pyg(graphs)
    with pytest.raises(DataError, match="list of them"):
        from_pyg([1, 2])


@pytest.mark.parametrize("directed", [True, False])
def test_edge_features_follow_their_edges_into_the_graphs(directed: bool) -> None:
    ends = torch.tensor([[3, 0, 4, 1], [4, 1, 5, 2]])  # of the second graph first, as its nodes are
    attr = (10.0 * ends[0] + ends[1]).unsqueeze(1)
    graphs, found, order = assemble(ends.clone(), 6, directed, attr, torch.tensor([1, 1, 1, 0, 0, 0]), 2)
    told = []
    for number, graph in enumerate(graphs):
        for pair in order[graph.edge_index + 3 * number].t().tolist():
            told.append(10.0 * min(pair) + max(pair))
    assert found.flatten().tolist() == told


TYPES = np.arange(12) % 3


def test_edge_types_of_an_npz(tmp_path: Path) -> None:
    config = save(tmp_path, edge_type=TYPES)
    data = load_files(config)
    assert (data.num_relations, data.relation_names, data.edge_attr) == (3, None, None)
    assert data.graphs[0].edge_type.tolist() == TYPES.tolist()
    assert check_files(config).facts["relations"] == "3: 0 4, 1 4, 2 4"
    config.directed = False
    graph = load_files(config).graphs[0]
    sender, receiver = graph.edge_index.numpy()
    low, high = np.minimum(sender, receiver), np.maximum(sender, receiver)
    assert (graph.edge_type.numpy() == np.where(high - low == 11, 11, low) % 3).all()
    batch, edges = np.repeat([2, 0, 1], 4), np.array([[0, 1], [5, 6], [2, 3]]).T
    many = load_files(save(tmp_path, batch=batch, edge_index=edges, edge_type=np.array([4, 0, 1]), y=np.arange(3)))
    assert [graph.edge_type.tolist() for graph in many.graphs] == [[0], [], [4, 1]]
    assert [graph.num_relations for graph in many.graphs] == [5, 5, 5]


@pytest.mark.parametrize(
    ("types", "words"),
    [
        (TYPES[:5], "'edge_type' has shape (5,), there are 12 edges"),
        (TYPES[:, None], "'edge_type' has shape (12, 1), there are 12 edges"),
        (TYPES - 1, "'edge_type' holds -1; relations are counted from 0"),
        (TYPES + 10_000, "'edge_type' holds 10002; relations are counted from 0 to 9999"),
        (TYPES / 2, "'edge_type' holds float64; expected integers"),
    ],
)
def test_bad_edge_types_are_refused(tmp_path: Path, types: np.ndarray, words: str) -> None:
    refused(save(tmp_path, edge_type=types), "g.npz: ", words)
    with pytest.raises(DataError, match=re.escape(words)):
        from_pyg(Data(**{name: torch.from_numpy(value) for name, value in arrays(edge_type=types).items()}))


def test_edge_types_of_new_arrays_are_those_of_the_model(tmp_path: Path) -> None:
    schema = load_files(save(tmp_path, edge_type=TYPES)).schema
    path = str(tmp_path / "g.npz")
    save(tmp_path, edge_type=TYPES // 2)
    new = load_with_schema(schema, path)
    assert (new.num_relations, new.graphs[0].edge_type.tolist()) == (3, (TYPES // 2).tolist())
    for types, words in (
        (None, "has no 'edge_type', but the model was trained with relations; add it"),
        (TYPES + 1, "'edge_type' holds relation 3, the model knows 0 to 2"),
    ):
        save(tmp_path, edge_type=types)
        with pytest.raises(DataError, match=words):
            load_with_schema(schema, path)
    schema = load_files(save(tmp_path)).schema
    save(tmp_path, edge_type=TYPES)
    with pytest.raises(DataError, match="has an 'edge_type', but the model was trained without relations; delete it"):
        load_with_schema(schema, path)


def test_edge_types_of_pyg_graphs() -> None:
    tensors = {name: torch.from_numpy(value) for name, value in arrays(edge_type=TYPES).items()}
    data = Data(**tensors)
    both = from_pyg([data, data])
    assert both.num_relations == 3
    assert both.graphs[0].edge_type.tolist() == [*TYPES, *TYPES]
    new = pyg_with_schema(both.schema, Data(**tensors | {"edge_type": tensors["edge_type"] // 2}))
    assert (new.num_relations, new.graphs[0].edge_type.tolist()) == (3, (TYPES // 2).tolist())
    assert from_pyg([data, data]).y.tolist() == [*tensors["y"], *tensors["y"]]


def test_an_adjacency_of_scipy_by_itself_is_answered_with_the_names_of_edges(tmp_path: Path) -> None:
    adjacency = random_array((9, 9), density=0.3, rng=np.random.default_rng(0), format="csr")
    save_npz(tmp_path / "g.npz", adjacency)
    with pytest.raises(DataError, match="if this matrix is the edges, save its arrays as adj_data"):
        load_files(DataConfig(dataset=str(tmp_path / "g.npz"), directed=True))
    parts = {"data": adjacency.data, "indices": adjacency.indices, "indptr": adjacency.indptr, "shape": (9, 9)}
    np.savez(tmp_path / "g.npz", y=np.arange(9) % 3, **{f"adj_{name}": part for name, part in parts.items()})
    graph = load_files(DataConfig(dataset=str(tmp_path / "g.npz"), directed=True)).graphs[0]
    dense = np.zeros((9, 9))
    dense[tuple(graph.edge_index.numpy())] = graph.edge_weight
    np.testing.assert_allclose(dense, adjacency.toarray(), rtol=1e-6)
