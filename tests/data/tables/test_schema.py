import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cognn.data.dataset import Dataset
from cognn.data.readers.files import load_files, load_with_schema
from cognn.data.tables.schema import Schema
from cognn.errors import DataError
from tests.data.own import EDGES, GRAPH_EDGES, GRAPH_NODES, NODES, arrays, save, tables


def again(data: Dataset) -> Schema:
    schema = Schema.from_json(data.schema.to_json())
    assert schema == data.schema
    return schema


def refused(schema: Schema, path: Path, *words: str) -> None:
    with pytest.raises(DataError) as error:
        load_with_schema(schema, str(path))
    for word in words:
        assert word in str(error.value), error.value


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    return again(load_files(tables(tmp_path)))


def test_the_same_graph_reads_the_same(tmp_path: Path) -> None:
    data = load_files(tables(tmp_path))
    new = load_with_schema(again(data), str(tmp_path))
    for name in ("x", "edge_attr"):
        assert torch.equal(getattr(new, name), getattr(data, name))
    assert torch.equal(new.graphs[0].edge_index, data.graphs[0].edge_index)
    assert (new.task, new.class_names, new.item_ids) == (data.task, data.class_names, data.item_ids)
    assert (new.edge_categories, new.splits) == ((3,), [])
    assert new.y.isnan().all()


def test_a_new_graph_is_measured_by_the_old_one(tmp_path: Path, schema: Schema) -> None:
    # Other columns and another order, no targets, words that would be numbers in a table of their own.
    tables(tmp_path, "more,member,id,color,age\n1,true,7,red,3\n1,false,8,blue,0\n", "target,source,kind\n7,8,z\n")
    data = load_with_schema(schema, str(tmp_path))
    age = torch.arange(20) * 1.5
    expected = (torch.tensor([3.0, 0.0]) - age.mean()) / age.std(correction=0)
    torch.testing.assert_close(data.x[:, 0], expected)
    assert data.x[:, 1:].tolist() == [[0, 1, 1], [1, 0, 0]]
    assert data.graphs[0].edge_index.tolist() == [[1, 0], [0, 1]]
    assert data.edge_attr is not None
    assert data.edge_attr.tolist() == [[2], [2]]
    assert data.item_ids == ["7", "8"]


def test_what_a_new_graph_must_not_lack(tmp_path: Path, schema: Schema) -> None:
    tables(tmp_path, NODES.replace("color", "colour").replace("age", "years"))
    refused(schema, tmp_path, "nodes.csv", "'age', 'color'", "trained on")
    tables(tmp_path, NODES.replace("red", "green", 2))
    refused(schema, tmp_path, "nodes.csv", "'color', row 2", "'green'", "'blue', 'red'")
    tables(tmp_path, NODES, EDGES.replace("kind", "sort"))
    refused(schema, tmp_path, "edges.csv", "'kind'")
    tables(tmp_path, NODES, EDGES.replace("z", "q"))
    refused(schema, tmp_path, "edges.csv", "'kind', row 3", "'q'")
    tables(tmp_path, NODES.replace("n3,4.5", "n3,"))
    refused(schema, tmp_path, "'age', row 4")
    tables(tmp_path, NODES.replace("n3,4.5", "n3,old"))
    refused(schema, tmp_path, "'age', row 4", "'old'")
    tables(tmp_path, NODES, EDGES + "n1,n77,x\n")
    refused(schema, tmp_path, "'n77'")
    np.savez(tmp_path / "g.npz", **arrays())
    refused(schema, tmp_path / "g.npz", "tables")


def test_filling_is_remembered(tmp_path: Path) -> None:
    schema = again(load_files(tables(tmp_path, fill="mean")))
    tables(tmp_path, "id,age,color,member\n1,,,\n", "source,target,kind\n1,1,\n")
    data = load_with_schema(schema, str(tmp_path))
    assert data.x.tolist() == [[0, 0, 0, 0.5]]
    assert data.edge_attr is not None
    assert data.edge_attr.tolist() == [[3]]
    assert data.edge_categories == (4,)


def test_graph_tasks(tmp_path: Path) -> None:
    graphs = "graph,y,split\n" + "".join(f"g{i},{i / 7},{('train', 'val', 'test')[i % 3]}\n" for i in range(6))
    schema = again(load_files(tables(tmp_path, GRAPH_NODES, GRAPH_EDGES, graphs)))
    (tmp_path / "graphs.csv").unlink()
    data = load_with_schema(schema, str(tmp_path))
    assert data.item_ids == ["g1", "g2", "g3", "g4", "g5", "g0"]
    assert data.y.shape == (6, 1)
    assert [graph.num_edges for graph in data.graphs] == [6] * 6


def test_npz(tmp_path: Path) -> None:
    config = save(tmp_path, edge_attr=np.arange(12) % 4)
    data = load_files(config)
    schema = again(data)
    save(tmp_path, y=None, edge_attr=np.arange(12) % 2)
    new = load_with_schema(schema, config.dataset)
    assert torch.equal(new.x, data.x)
    assert new.edge_categories == (4,)
    assert new.y.tolist() == [-1] * 12
    for changes, words in [
        ({"x": np.zeros((12, 4))}, ["4 features", "3"]),
        ({"edge_attr": np.arange(12) % 5}, ["category 4", "0 to 3"]),
        ({"edge_attr": np.zeros(12)}, ["'edge_attr'"]),
        ({"edge_attr": None}, ["no columns"]),
        ({"batch": np.zeros(12, int)}, ["'batch'"]),
    ]:
        save(tmp_path, **{"edge_attr": np.arange(12) % 4} | changes)
        refused(schema, Path(config.dataset), "g.npz", *words)


@pytest.mark.parametrize(
    "change",
    [
        {"task": {"level": "edge", "kind": "binary", "num_outputs": 1, "metric": "mae"}},
        {"directed": 1},
        {"source": "web"},
        {"nodes": [{"name": "a", "kind": "numeric", "std": 0.0}]},
        {"nodes": [{"name": "a", "kind": "numeric", "mean": float("nan")}]},
        {"nodes": [{"name": "a", "kind": "category", "values": [1]}]},
        {"nodes": 3},
        {"edge_categories": ["a"]},
        {"class_names": "ab"},
        {"unknown": 1},
    ],
)
def test_foreign_schemas_are_refused(schema: Schema, change: dict) -> None:
    values = json.loads(schema.to_json()) | change
    with pytest.raises(DataError, match="schema: not one that cognn wrote"):
        Schema.from_json(json.dumps(values))
    for text in ("", "[]", "{}", "nonsense", "[" * 100_000):
        with pytest.raises(DataError):
            Schema.from_json(text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    text = load_files(tables(tmp_path)).schema.to_json().encode()
    with pytest.raises(DataError, match="schema: not one that cognn wrote"):
        Schema.from_json(text[:40] + b"\xeb" + text[41:])
    assert Schema.from_json(text) == Schema.from_json(text.decode())
