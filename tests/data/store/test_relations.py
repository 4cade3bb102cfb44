"""Stores of graphs with several relations."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cognn import Graph
from cognn.config.options import DataConfig
from cognn.data.check.files import check_files
from cognn.data.dataset import Dataset
from cognn.data.readers.files import load_files
from cognn.data.store.build import from_dataset, from_files
from cognn.data.store.store import checksum, open_store
from cognn.errors import DataError
from cognn.inference.blocks import BlockCutter
from tests.data.own import EDGES, tables
from tests.data.store.test_store import same
from tests.toy_runs import make_dataset


def dataset_with_relations() -> Dataset:
    dataset = make_dataset("node", "multiclass", edges=True)
    edge_index = dataset.graphs[0].edge_index
    graph = Graph(edge_index, 60, (edge_index[0] + 2 * edge_index[1]) % 3, 4)
    return replace(dataset, graphs=[graph], relation_names=["a", "b", "c", "none"])


def named(folder: Path) -> DataConfig:
    """The edges of ``tables`` with one table for every relation."""
    config = tables(folder, directed=True)
    head, *rows = EDGES.splitlines()
    files = {}
    for name in "zyx":
        own = [row for row in rows if row.endswith(name)]
        (folder / f"{name}.csv").write_text("\n".join([head, *own]) + "\n")
        files[name] = folder / f"{name}.csv"
    edges = ",".join(f"{name}={file}" for name, file in files.items())
    return replace(config, dataset=str(folder / "nodes.csv"), edges=edges)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("form", ["column", "tables"])
def test_relations_in_pieces_are_those_at_once(tmp_path: Path, monkeypatch, form: str, directed: bool) -> None:
    monkeypatch.setattr("cognn.data.store.build.MIN_ROWS", 3)
    config = named(tmp_path) if form == "tables" else tables(tmp_path, edge_type="kind")
    config = replace(config, directed=directed)
    built = from_files(config, tmp_path / "built", memory=1)
    same(built, from_dataset(load_files(config), tmp_path / "whole"))
    assert built.arrays["edge_type"].dtype == np.int32
    assert (built.relation_names, built.num_relations) == (["x", "y", "z"], 3)
    again = from_files(DataConfig(config.dataset, config.edges), tmp_path / "like", like=built.schema)
    np.testing.assert_array_equal(again.arrays["edge_type"], built.arrays["edge_type"])
    assert check_files(tmp_path / "built").facts["relations"].startswith("3: x ")


def test_a_store_gives_its_relations_back(tmp_path: Path) -> None:
    dataset, store = dataset_with_relations(), from_dataset(dataset_with_relations(), tmp_path / "store")
    back, order = store.dataset(), dataset.graphs[0].in_edge.long()
    assert torch.equal(back.graphs[0].edge_type, dataset.graphs[0].edge_type[order])
    assert (back.num_relations, back.relation_names) == (4, ["a", "b", "c", "none"])
    assert store.blank().num_relations == 4


def test_every_block_has_the_relations_of_its_edges(tmp_path: Path) -> None:
    store, first = from_dataset(dataset_with_relations(), tmp_path / "store"), 0
    cutter = BlockCutter(store, 9000, 16, 4, torch.device("cpu"))
    blocks = 0
    while first < 60:
        block = cutter.with_edges(first)
        for part in (block.adjacency, block.adjacency.loopless):
            ends = block.nodes[part.in_sender.long()], block.nodes[part.in_receiver.long()]
            assert part.num_relations == 4
            assert torch.equal(part.edge_type[part.in_edge.long()], (ends[0] + 2 * ends[1]) % 3)
        first, blocks = block.last, blocks + 1
    assert blocks > 1


def test_relations_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    path = from_dataset(dataset_with_relations(), tmp_path / "store").path
    header = json.loads((path / "store.json").read_text())
    del header["digest"]
    np.save(path / "edge_type.npy", np.full(240, 4, np.int32))
    header["arrays"]["edge_type"] |= {
        "crc32": checksum(path / "edge_type.npy"),
        "bytes": (path / "edge_type.npy").stat().st_size,
    }
    (path / "store.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match=r"store: edge_type has relations that do not exist; copy it again"):
        open_store(path).dataset()
    np.save(path / "edge_type.npy", np.zeros(240, np.int16))
    header["arrays"]["edge_type"] |= {"bytes": (path / "edge_type.npy").stat().st_size, "dtype": "int16"}
    (path / "store.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match="edge_type does not fit 60 nodes and 240 edges"):
        open_store(path)


def test_a_store_of_an_older_version_has_one_relation(tmp_path: Path) -> None:
    path = from_dataset(make_dataset("node", "multiclass"), tmp_path / "store").path
    header = json.loads((path / "store.json").read_text())
    del header["relation_names"], header["num_relations"], header["digest"]
    (path / "store.json").write_text(json.dumps(header))
    assert open_store(path).dataset().num_relations == 1
