"""Relations of the user's own tables: a column of the edge table, or an edge table for each."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import torch

from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.data.check.files import check_files
from cognn.data.readers.files import load_files, load_with_schema
from cognn.data.tables.schema import Schema
from cognn.errors import CognnError, DataError
from cognn.files.json import to_json, unsealed
from tests.data.own import EDGES, GRAPH_EDGES, GRAPH_NODES, NODES, refused, tables

FOLLOWS = "source,target,weight\nn0,n1,1.5\nn1,n2,2.5\nn2,n2,0.5\n"
PAYS = "target,source,weight\nn0,n1,7\n"


def triples(dataset) -> list[tuple[int, int, str]]:
    """Sender, receiver and name of the relation of every edge."""
    found = []
    for graph in dataset.graphs:
        names = [dataset.relation_names[code] for code in graph.edge_type.tolist()]
        found += [(*ends, name) for ends, name in zip(graph.edge_index.T.tolist(), names, strict=True)]
    return sorted(found)


def several(folder: Path, **more: str) -> DataConfig:
    """A config with an edge table for every relation."""
    (folder / "nodes.csv").write_text(NODES)
    texts = {"pays": PAYS, "follows": FOLLOWS} | more
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    edges = ",".join(f"{name}={folder / name}.csv" for name in texts)
    return DataConfig(dataset=str(folder / "nodes.csv"), edges=edges, directed=True)


def one_line(call, *words: str) -> None:
    with pytest.raises(CognnError) as error:
        call()
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value), error.value


# A column of the edge table -------------------------------------------------------------------------------------------


def test_a_column_names_the_relation_of_every_edge(tmp_path: Path) -> None:
    config = tables(tmp_path, directed=True, edge_type="kind")
    dataset = load_files(config)
    assert dataset.relation_names == ["x", "y", "z"]
    assert dataset.num_relations == 3
    assert dataset.edge_attr is None  # the relation is not a feature too
    assert triples(dataset) == sorted((i, (i + 1) % 20, "xyz"[i % 3]) for i in range(20))
    both = load_files(replace(config, directed=False))
    ends = [(i, (i + 1) % 20, "xyz"[i % 3]) for i in range(20)]
    assert triples(both) == sorted([*ends, *((v, u, name) for u, v, name in ends)])
    assert load_files(replace(config, edge_type="")).num_relations == 1


def test_numbers_that_count_from_zero_are_the_codes(tmp_path: Path) -> None:
    edges = "source,target,kind\n" + "".join(f"n{i},n{i + 1},{(10, 2, 0, 1, *range(3, 10))[i]}\n" for i in range(11))
    dataset = load_files(tables(tmp_path, edges=edges, directed=True, edge_type="kind"))
    assert dataset.relation_names == [str(code) for code in range(11)]
    assert dataset.graphs[0].edge_type.tolist() == [10, 2, 0, 1, *range(3, 10)]


def test_relations_of_many_graphs(tmp_path: Path) -> None:
    lines = GRAPH_EDGES.splitlines()
    edges = "\n".join([lines[0] + ",kind", *(f"{line},{'ab'[i % 2]}" for i, line in enumerate(lines[1:]))]) + "\n"
    graphs = "graph,y\n" + "".join(f"g{i},{i % 2}\n" for i in range(6))
    config = tables(tmp_path, GRAPH_NODES, edges, graphs, directed=True, target="y", task="binary", edge_type="kind")
    dataset = load_files(config)
    for number, graph in enumerate(dataset.graphs):
        assert graph.num_relations == 2
        assert graph.edge_index.T.tolist() == [[0, 1], [1, 2], [2, 3]]
        assert graph.edge_type.tolist() == [(3 * number + i) % 2 for i in range(3)]


@pytest.mark.parametrize(
    ("edges", "edge_type", "words"),
    [
        (EDGES, "sort", ("edges.csv: no column 'sort'", "'kind'")),
        (EDGES, "source", ("edges.csv: column 'source' cannot have two roles",)),
        (EDGES.replace("n4,n5,y", "n4,n5,"), "kind", ("edges.csv: column 'kind', row 5: no relation",)),
    ],
)
def test_bad_columns_are_refused(tmp_path: Path, edges: str, edge_type: str, words: tuple[str, ...]) -> None:
    refused(tables(tmp_path, edges=edges, directed=True, edge_type=edge_type), *words)


def test_a_column_of_other_values_in_every_row_is_no_relation(tmp_path: Path) -> None:
    edges = "source,target,kind\n" + "".join(f"n0,n1,{i}\n" for i in range(10_001))
    config = tables(tmp_path, edges=edges, directed=True, edge_type="kind")
    refused(config, "column 'kind' has 10,001 different values, too many for relations")


# An edge table for every relation -------------------------------------------------------------------------------------


def test_every_edge_table_is_a_relation(tmp_path: Path) -> None:
    dataset = load_files(several(tmp_path))
    assert dataset.relation_names == ["follows", "pays"]
    assert triples(dataset) == [(0, 1, "follows"), (1, 0, "pays"), (1, 2, "follows"), (2, 2, "follows")]
    weight = torch.tensor([1.5, 2.5, 0.5, 7.0])
    expected = (weight - weight.mean()) / weight.std(correction=0)  # one scale for the column of all tables
    torch.testing.assert_close(dataset.edge_attr, expected.unsqueeze(1))
    assert dataset.schema.edges[0].name == "weight"
    empty = load_files(several(tmp_path, likes="source,target,weight\n"))
    assert empty.relation_names == ["follows", "likes", "pays"]
    assert empty.num_relations == 3


def test_parquet_and_csv_together(tmp_path: Path) -> None:
    config = several(tmp_path)
    pl.read_csv(tmp_path / "pays.csv").write_parquet(tmp_path / "pays.parquet")
    mixed = load_files(replace(config, edges=config.edges.replace("pays.csv", "pays.parquet")))
    expected = load_files(config)
    assert triples(mixed) == triples(expected)
    assert torch.equal(mixed.edge_attr, expected.edge_attr)


def test_edge_tables_need_the_same_columns(tmp_path: Path) -> None:
    config = several(tmp_path, likes="source,target,since\nn0,n1,3\n")
    refused(config, "likes.csv: no column 'weight', which", "follows.csv has", "--ignore weight")
    refused(replace(config, ignore="weight"), "follows.csv: no column 'since', which", "likes.csv has")
    assert load_files(replace(config, ignore="weight,since")).edge_attr is None
    refused(several(tmp_path, likes="from,to\nn0,n1\n"), "likes.csv: no column 'source'")


def test_errors_name_the_table_and_its_row(tmp_path: Path) -> None:
    refused(several(tmp_path, pays=PAYS + "n99,n1,3\n"), "pays.csv: column 'target', row 2", "'n99'")
    refused(several(tmp_path, follows=FOLLOWS.replace("2.5", "")), "follows.csv: column 'weight', row 2: no value")
    config = several(tmp_path)
    refused(replace(config, edges=f"{config.edges},likes={tmp_path}/no.csv"), "no.csv: no such file")
    one_line(lambda: load_files(replace(config, edge_type="weight")), "edge_type: 'weight' and the names of several")


# Saved and read again -------------------------------------------------------------------------------------------------


def test_new_graphs_have_their_relations_by_name(tmp_path: Path) -> None:
    schema = Schema.from_json(load_files(several(tmp_path)).schema.to_json())
    nodes = str(tmp_path / "nodes.csv")
    new = load_with_schema(schema, nodes, f"pays={tmp_path}/pays.csv")
    assert new.graphs[0].edge_type.tolist() == [1]
    assert new.num_relations == 2
    (tmp_path / "likes.csv").write_text("source,target,weight\n")
    edges = f"likes={tmp_path}/likes.csv,pays={tmp_path}/pays.csv"
    one_line(lambda: load_with_schema(schema, nodes, edges), "relation 'likes' is not among", "'follows', 'pays'")
    one_line(
        lambda: load_with_schema(schema, nodes, str(tmp_path / "pays.csv")),
        "pays.csv: the model was trained on an edge table for every relation",
        "--edges NAME=FILE, of 'follows', 'pays'",
    )


def test_new_graphs_have_the_relations_of_the_column(tmp_path: Path) -> None:
    schema = load_files(tables(tmp_path, directed=True, edge_type="kind")).schema
    nodes, new = str(tmp_path / "nodes.csv"), tmp_path / "new.csv"
    new.write_text("kind,source,target\nz,n0,n1\nx,n1,n2\n")
    dataset = load_with_schema(schema, nodes, str(new))
    assert (dataset.graphs[0].edge_type.tolist(), dataset.num_relations) == ([2, 0], 3)
    new.write_text("kind,source,target\nz,n0,n1\nw,n1,n2\n")
    one_line(lambda: load_with_schema(schema, nodes, str(new)), "new.csv: column 'kind', row 2: relation 'w' is not")
    new.write_text("source,target\nn0,n1\n")
    one_line(lambda: load_with_schema(schema, nodes, str(new)), "new.csv: no column 'kind'")
    edges = f"x={tmp_path}/new.csv"
    one_line(lambda: load_with_schema(schema, nodes, edges), "new.csv: the model was trained on a single edge table")


def test_a_schema_with_bad_relations_is_refused(tmp_path: Path) -> None:
    text = load_files(several(tmp_path)).schema.to_json()
    assert '"relations": [' in text
    with pytest.raises(DataError, match="relations: expected a list"):
        Schema.from_json(to_json(unsealed(json.loads(text))).replace('"follows"', "3"))
    schema = Schema.from_json(text)
    assert not schema.same_columns(replace(schema, relations=["follows", "gives"]))


# The command line -----------------------------------------------------------------------------------------------------


def test_check_shows_the_relations_and_their_edges(tmp_path: Path, capsys) -> None:
    config = several(tmp_path)
    facts = check_files(config).facts
    assert facts["relations"] == "2: follows 3, pays 1"
    assert facts["edges"].startswith("4 listed")
    first, second = config.edges.split(",")
    words = ["data", "check", config.dataset, "--edges", first, f"--edges={second}", "--directed"]
    assert main(words) == 0
    assert "2: follows 3, pays 1" in capsys.readouterr().out
    assert main([*words, "--edge-type", "weight"]) == 2
    assert "relations" not in check_files(tables(tmp_path)).facts
    report = check_files(tables(tmp_path, edges=EDGES.replace("n4,n5,y", "n4,n5,"), directed=True, edge_type="kind"))
    assert [line for line in report.problems if "column 'kind', row 5: no relation" in line]


def test_several_tables_without_names_are_refused(capsys) -> None:
    assert main(["train", "nodes.csv", "--edges", "a.csv", "--edges", "b.csv", "--directed"]) == 2
    assert "edges: 'a.csv' is one of 2 edge tables and has no name" in capsys.readouterr().err
