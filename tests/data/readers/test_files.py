from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from cognn.config.options import DataConfig
from cognn.data.readers.files import is_path, load_files
from tests.data.own import EDGES, GRAPH_EDGES, GRAPH_NODES, NODES, arrays, column, refused, tables


def test_tables(tmp_path: Path) -> None:
    data = load_files(tables(tmp_path))
    assert (data.task.level, data.task.kind, data.task.num_outputs, data.task.metric) == (
        "node",
        "binary",
        1,
        "roc_auc",
    )
    age = torch.arange(20) * 1.5
    torch.testing.assert_close(data.x[:, 0], (age - age.mean()) / age.std(correction=0))
    assert data.x[:4, 1:].tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1]]
    assert data.y.isnan().nonzero().tolist() == [[5]]
    assert data.class_names == ["a", "b"]
    assert data.item_ids is not None
    assert data.item_ids[:2] == ["n0", "n1"]
    assert data.num_edges == 40
    assert torch.equal(data.graphs[0].edge_index[:, 20:], data.graphs[0].edge_index[:, :20].flip(0))
    assert data.edge_categories == (3,)
    assert data.edge_attr is not None
    assert data.edge_attr.dtype == torch.long
    assert torch.equal(data.edge_attr[:20], data.edge_attr[20:])
    assert [len(part) for part in vars(data.splits[0]).values()] == [11, 4, 4]
    assert 5 not in data.splits[0].train
    one_way = load_files(tables(tmp_path, directed=True))
    assert one_way.num_edges == 20


@pytest.mark.parametrize("suffix", [".parquet", ".tsv", ".csv"])
def test_formats_agree(tmp_path: Path, suffix: str) -> None:
    expected = load_files(tables(tmp_path))
    paths = {name: tmp_path / "other" / (name + suffix) for name in ("nodes", "edges")}
    (tmp_path / "other").mkdir()
    for name, path in paths.items():
        frame = pl.read_csv(tmp_path / f"{name}.csv")
        if suffix == ".parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path, separator="\t" if suffix == ".tsv" else ";")
    data = load_files(DataConfig(dataset=str(paths["nodes"]), edges=str(paths["edges"]), directed=False))
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.graphs[0].edge_index, expected.graphs[0].edge_index)
    assert data.schema.nodes == expected.schema.nodes


@pytest.mark.parametrize("ids", [[10, 20, 30], [0, 1, 2], [7, 8, 9], ["x", "y", "z"], [2**63, 5, 6], ["007", "7", "x"]])
@pytest.mark.parametrize("text_nodes", [False, True])
@pytest.mark.parametrize("text_edges", [False, True])
def test_ids_of_any_kind_meet(tmp_path: Path, ids: list, text_nodes: bool, text_edges: bool) -> None:
    kind = pl.UInt64 if isinstance(ids[0], int) else pl.String
    nodes = pl.DataFrame({"node": pl.Series(ids, dtype=kind), "y": [0, 1, 0]})
    edges = pl.DataFrame({"u": pl.Series([ids[2], ids[0]], dtype=kind), "v": pl.Series([ids[1], ids[2]], dtype=kind)})
    paths = []
    for frame, text, name in ((nodes, text_nodes, "n"), (edges, text_edges, "e")):
        paths.append(str(tmp_path / (name + (".csv" if text else ".parquet"))))
        frame.write_csv(paths[-1]) if text else frame.write_parquet(paths[-1])
    data = load_files(DataConfig(dataset=paths[0], edges=paths[1], directed=True))
    assert data.graphs[0].edge_index.tolist() == [[2, 0], [1, 2]]
    assert data.item_ids == (None if ids == [0, 1, 2] else [str(i) for i in ids])


def test_usual_and_chosen_names(tmp_path: Path) -> None:
    config = tables(tmp_path, "Node_ID,a\nx,0\ny,1\nz,1\n", "w,von,nach\n2,x,y\n")
    refused(config, "edges.csv", "--edge-source", "'von'")
    config.edge_source, config.edge_target = "von", "nach"
    refused(config, "nodes.csv", "--target", "'a'")
    config.target = "a"
    assert load_files(config).edge_dim == 1
    config.id_column = "nope"
    refused(config, "no column 'nope'")
    config.id_column, config.target = "a", "a"
    refused(config, "two roles")
    refused(tables(tmp_path, "a,y\n1,2\n"), "--id-column", "'a'")


def test_two_columns_that_could_be_the_target_are_asked_for(tmp_path: Path) -> None:
    config = tables(tmp_path, "id,x,y,label\n" + "".join(f"{i},{i},{i / 2},{i % 2}\n" for i in range(9)), EDGES[:0])
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    refused(config, "nodes.csv", "'label'", "'y'", "--target")
    config.ignore = "y"
    assert load_files(config).task.kind == "binary"
    config.ignore, config.target = "", "label"
    assert load_files(config).x.shape == (9, 2)


def test_directedness_is_asked_for(tmp_path: Path) -> None:
    refused(tables(tmp_path, directed=None), "edges.csv", "--undirected")
    np.savez(tmp_path / "g.npz", **arrays())
    refused(DataConfig(dataset=str(tmp_path / "g.npz")), "g.npz", "--undirected")


def test_files_that_list_both_ways_are_not_doubled(tmp_path: Path) -> None:
    nodes = "id,y\n" + "".join(f"{i},{i % 2}\n" for i in range(5))
    both = "source,target\n0,1\n1,2\n1,0\n2,1\n3,3\n"
    assert load_files(tables(tmp_path, nodes, both)).num_edges == 5
    some = "source,target\n0,1\n1,2\n1,0\n3,3\n"
    assert load_files(tables(tmp_path, nodes, some)).num_edges == 7


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        (["no", "yes", "", "no"], "binary", ["no", "yes"]),
        (["c", "a", "b", "NA"], "multiclass", ["a", "b", "c"]),
        ([0, 1, 1, ""], "binary", ["0", "1"]),
        ([1.0, 2.0, "nan", 1.0], "binary", ["1", "2"]),
        ([2, 1, 0, 10], None, []),
        ([2, 1, 0, 1], "multiclass", ["0", "1", "2"]),
        ([3, 1, 2, 3], None, []),
        ([0.5, 1, 2, ""], "regression", ["y"]),
        (["true", "False", "", "true"], "binary", ["False", "true"]),
        ([1, 1, 1, 1], None, []),
        (["", "", "", ""], None, []),
        (["", "inf", "1.5", "2"], None, []),
        (["", "1e60", "1.5", "2"], None, []),
    ],
)
def test_task_is_seen_where_values_can_mean_one_thing(tmp_path: Path, values, kind, names) -> None:
    config = tables(tmp_path, *column("y", values))
    if kind is None:
        refused(config, "nodes.csv", "'y'")
        return
    data = load_files(config)
    assert (data.task.kind, data.class_names) == (kind, names)
    missing = [value in ("", "NA", "nan") for value in values]
    known = data.y >= 0 if data.y.dtype == torch.long else ~data.y.isnan()
    assert known.flatten().tolist() == [not lost for lost in missing]


@pytest.mark.parametrize("values", [[f"c{i}" for i in range(30)], list(range(30))])
def test_a_target_that_is_an_id_is_no_class(tmp_path: Path, values: list) -> None:
    nodes, edges = column("y", values)
    refused(tables(tmp_path, nodes, edges), "nodes.csv", "'y' has another value in every row, like an id")
    assert load_files(tables(tmp_path, nodes, edges, task="multiclass")).task.num_outputs == 30


def test_an_empty_target_is_called_empty(tmp_path: Path) -> None:
    refused(tables(tmp_path, *column("y", [""] * 4)), "nodes.csv", "'y' is empty; at least some rows need a target")


def test_task_can_be_said(tmp_path: Path) -> None:
    nodes, edges = column("y", [1, 5, 1, 3, 5, 7])
    data = load_files(tables(tmp_path, nodes, edges, task="multiclass"))
    assert data.y.tolist() == [0, 2, 0, 1, 2, 3]
    data = load_files(tables(tmp_path, nodes, edges, task="regression"))
    assert data.y.tolist() == [[1], [5], [1], [3], [5], [7]]
    assert data.task.metric == "mae"
    refused(tables(tmp_path, nodes, edges, task="binary"), "4 different values")
    refused(tables(tmp_path, nodes, edges, task="guess"), "task", "multilabel")
    refused(tables(tmp_path, nodes, edges, task="regression", metric="accuracy"), "metric", "mae")
    refused(tables(tmp_path, *column("y", ["a", "b", "c"]), task="regression"), "row 1", "expected a number", "'a'")


def test_several_targets(tmp_path: Path) -> None:
    nodes = "id,p,q,r\n" + "".join(f"{i},{i % 2},{('', 0, 1)[i % 3]},{i / 7}\n" for i in range(8))
    edges = "source,target\n0,1\n"
    data = load_files(tables(tmp_path, nodes, edges, target="p,q"))
    assert (data.task.kind, data.task.num_outputs, data.class_names) == ("multilabel", 2, ["p", "q"])
    assert data.y.shape == (8, 2)
    assert data.y[0, 1].isnan()
    assert data.x.shape == (8, 1)
    data = load_files(tables(tmp_path, nodes, edges, target="r, p", ignore="q"))
    assert (data.task.kind, data.task.num_outputs) == ("regression", 2)
    refused(tables(tmp_path, nodes, edges, target="r,q", task="multilabel"), "'r', row 2", "0 or 1")
    refused(tables(tmp_path, nodes, edges, target="p,q", task="multiclass"), "one target column")


def test_splits(tmp_path: Path) -> None:
    nodes, edges = column("y", [0, 1] * 10)
    data = load_files(tables(tmp_path, nodes, edges, random_splits=3))
    assert [len(part) for part in vars(data.splits[0]).values()] == [12, 4, 4]
    for split in data.splits:
        assert sorted(torch.cat(list(vars(split).values())).tolist()) == list(range(20))
    again = load_files(tables(tmp_path, nodes, edges, random_splits=1))
    assert torch.equal(again.splits[0].test, data.splits[0].test)
    other = load_files(tables(tmp_path, nodes, edges, data_seed=1))
    assert not torch.equal(other.splits[0].test, data.splits[0].test)
    nodes = "id,y,a,b\n" + "".join(f"{i},{i % 2},{['train', 'Valid', 'test', ''][i % 4]},train\n" for i in range(8))
    data = load_files(tables(tmp_path, nodes, edges, split_column="a"))
    assert [part.tolist() for part in vars(data.splits[0]).values()] == [[0, 4], [1, 5], [2, 6]]
    refused(tables(tmp_path, nodes, edges, split_column="a,b"), "'b'", "val")
    refused(tables(tmp_path, nodes.replace("Valid", "dev", 1), edges, split_column="a"), "'a', row 2", "'dev'")
    refused(tables(tmp_path, *column("y", [0, 1])), "need at least one each")


def test_features(tmp_path: Path) -> None:
    nodes = "id,zip,size,y\n" + "".join(f"{i},{i % 3},{'' if i == 4 else i * i},{i % 2}\n" for i in range(8))
    edges = "source,target,kind,weight\n0,1,a,0.5\n1,2,b,2.5\n"
    refused(tables(tmp_path, nodes, edges), "nodes.csv", "'size', row 5", "--fill")
    data = load_files(tables(tmp_path, nodes, edges, fill="mean", categorical="zip"))
    assert data.x.shape == (8, 4)
    assert data.x[4, 3] == 0
    assert data.x[:3, :3].tolist() == torch.eye(3).tolist()
    assert data.edge_categories is None
    assert data.edge_attr is not None
    assert data.edge_attr[:2].tolist() == [[1, 0, -1], [0, 1, 1]]
    zero = load_files(tables(tmp_path, nodes, edges, fill="zero"))
    size = torch.tensor([0.0, 1, 4, 9, 25, 36, 49])
    torch.testing.assert_close(zero.x[4, 1], -size.mean() / size.std(correction=0))
    data = load_files(tables(tmp_path, nodes, edges, ignore="size,zip,weight,kind"))
    assert data.x.tolist() == [[1]] * 8
    assert data.edge_attr is None
    refused(tables(tmp_path, nodes, edges, ignore="sice"), "'sice'")


def test_words_that_are_no_categories(tmp_path: Path) -> None:
    rows = range(30)
    names = "id,name,y\n" + "".join(f"{i},n{i},{i % 2}\n" for i in rows)
    refused(tables(tmp_path, names, "source,target\n"), "'name'", "another word in every row", "--ignore name")
    commas = "id;size;y\n" + "".join(f"{i};{i % 4},5;{i % 2}\n" for i in rows)
    refused(tables(tmp_path, commas, "source,target\n"), "'size'", "comma", "'0,5'", "--categorical size")
    assert load_files(tables(tmp_path, commas, "source,target\n", categorical="size")).x.size(1) == 4


def test_columns_that_cannot_be_features(tmp_path: Path) -> None:
    many = "id,name,y\n" + "".join(f"{i},n{i},{i % 2}\n" for i in range(1200))
    refused(tables(tmp_path, many, "source,target\n"), "'name'", "1,200 different words", "--ignore name")
    frame = pl.DataFrame({"id": [1, 2, 3], "when": pl.Series(["2020-01-01"] * 3).str.to_date(), "y": [0, 1, 0]})
    frame.write_parquet(tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text("source,target\n")
    config = DataConfig(dataset=str(tmp_path / "n.parquet"), edges=str(tmp_path / "e.csv"), directed=True)
    refused(config, "'when'", "Date", "--ignore when")
    refused(tables(tmp_path, "id,a,y\n0,1,0\n1,inf,1\n2,3,1\n", "source,target\n"), "'a', row 2", "finite")
    refused(tables(tmp_path, "id,a,y\n0,1e308,0\n1,-1e308,1\n2,3,1\n", "source,target\n"), "'a'", "too large")


@pytest.mark.parametrize("header", ['id;"size, cm";y', "id;size, cm;y", "id;size cm;y", "id\tsize; cm\ty"])
def test_what_separates_the_columns_is_what_the_header_has_most_of(header: str, tmp_path: Path) -> None:
    mark = "\t" if "\t" in header else ";"
    nodes = header + "\n" + "".join(mark.join((str(i), str(i * i), str(i % 2))) + "\n" for i in range(5))
    data = load_files(tables(tmp_path, nodes, "source,target\n0,1\n"))
    assert data.x.shape == (5, 1)


def test_the_nameless_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    nodes = pl.DataFrame({"a": [0.5, 2.0, 3.0], "y": [0, 1, 1], "__index_level_0__": [7, 3, 5]})
    edges = pl.DataFrame({"source": [7], "target": [3], "w": [1.5], "__index_level_0__": [40]})
    nodes.with_columns(id=pl.col("__index_level_0__")).write_parquet(tmp_path / "nodes.parquet")
    edges.write_parquet(tmp_path / "edges.parquet")
    data = load_files(DataConfig(dataset=str(tmp_path), directed=True))
    assert data.x.shape == (3, 1)
    assert data.edge_attr is not None
    assert data.edge_attr.shape == (1, 1)
    nodes.write_parquet(tmp_path / "nodes.parquet")  # it may still be what the nodes are known by
    named = load_files(DataConfig(dataset=str(tmp_path), directed=True, id_column="__index_level_0__"))
    assert named.graphs[0].edge_index.tolist() == [[0], [1]]


def test_options_name_columns_that_are_there(tmp_path: Path) -> None:
    for option in ("ignore", "categorical"):
        refused(tables(tmp_path, **{option: "age,colour"}), f"{option}: no column 'colour'")


def test_unknown_and_repeated_ids(tmp_path: Path) -> None:
    refused(tables(tmp_path, edges=EDGES + "n3,zed,x\nn4,n99,y\n"), "edges.csv", "'target', row 21", "'zed'", "21, 22")
    refused(tables(tmp_path, edges=EDGES + ",n1,x\n"), "'source', row 21", "no id")
    refused(tables(tmp_path, NODES + "n3,1,red,true,a,train\n"), "'id', row 21", "'n3'", "row 4")
    refused(tables(tmp_path, NODES + ",1,red,true,a,train\n"), "'id', row 21", "no id")


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("", ["is empty"]),
        ("id,y\n", ["no rows"]),
        ("id,y,y\n1,2,3\n", ["'y' is there twice"]),
        ("id,,y\n1,2,3\n", ["column 2 has no name"]),
        ("id,y\n1,0\n2,1,1\n", ["row 2", "more fields"]),
        ('id,y\n1,0\n"2,1\n', ["cannot be read"]),
        ("id,y\0\n1,0\n", ["not a header"]),
    ],
)
def test_malformed_csv(tmp_path: Path, nodes: str, words: list[str]) -> None:
    refused(tables(tmp_path, nodes), "nodes.csv", *words)


def test_files_that_are_not_there_or_something_else(tmp_path: Path) -> None:
    refused(DataConfig(dataset=str(tmp_path)), "nodes.csv")
    refused(DataConfig(dataset="lost.csv"), "lost.csv", "no such file")
    refused(DataConfig(dataset=str(tables(tmp_path).dataset + "/nodes.csv")), "--edges")
    (tmp_path / "edges.csv").unlink()
    refused(DataConfig(dataset="lost.csv", edges="e.csv"), "lost.csv", "no such file")
    refused(DataConfig(dataset="table.xlsx", edges="e.csv"), "table.xlsx", ".parquet")
    refused(DataConfig(dataset="\0.csv", edges="e.csv"), ".csv")
    config = tables(tmp_path)
    (tmp_path / "nodes.csv").write_bytes(b"\x1f\x8b\x08\x00")
    refused(config, "compressed")
    (tmp_path / "nodes.csv").write_text("x^2,id,y\n1,n1,0\n")  # polars would unpack it
    refused(config, "compressed", "or its first column is named x^")
    (tmp_path / "nodes.csv").write_bytes(b"id,y\n\xff\xfe,1\n")
    refused(config, "nodes.csv", "UTF-8")
    (tmp_path / "nodes.csv").unlink()
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1 and nothing more PAR1")
    refused(config, "nodes.parquet", "cannot be read")
    assert is_path("x.csv")
    assert is_path("./minesweeper")
    assert not is_path("minesweeper")
    assert is_path(str(tmp_path))


def test_graph_table(tmp_path: Path) -> None:
    graphs = "graph,y,split\n" + "".join(f"g{i},{'ab'[i % 2]},{('train', 'val', 'test')[i % 3]}\n" for i in range(6))
    data = load_files(tables(tmp_path, GRAPH_NODES, GRAPH_EDGES, graphs))
    assert (data.task.level, data.task.kind) == ("graph", "binary")
    assert data.item_ids == [f"g{i}" for i in range(6)]
    assert [graph.num_nodes for graph in data.graphs] == [4] * 6
    assert [graph.num_edges for graph in data.graphs] == [6] * 6
    assert data.graphs[3].edge_index.tolist() == [[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]
    assert (data.x[:, 0].diff() > 0).all()  # nodes moved to their graphs
    refused(tables(tmp_path, GRAPH_NODES, GRAPH_EDGES, graphs, categorical="split"), "categorical: no column 'split'")
    refused(tables(tmp_path, GRAPH_NODES, GRAPH_EDGES, graphs + "g7,a,train\n"), "graphs.csv", "row 7", "no nodes")
    refused(tables(tmp_path, GRAPH_NODES + "9,g8,1\n", GRAPH_EDGES, graphs), "nodes.csv", "row 25", "'g8'")
    refused(tables(tmp_path, GRAPH_NODES, GRAPH_EDGES + "0,3,\n", graphs), "edges.csv", "row 19")


def test_graph_targets_in_the_node_table(tmp_path: Path) -> None:
    rows = [f"{i},{i // 4},{i // 4 / 10 + 0.01},{i}" for i in range(24)]
    nodes = "\n".join(["id,molecule,energy,a", *rows])
    edges = "source,target\n0,1\n4,5\n8,9\n8,10\n"
    data = load_files(tables(tmp_path, nodes, edges, target="energy", graph_column="molecule"))
    assert (data.task.level, data.task.kind) == ("graph", "regression")
    torch.testing.assert_close(data.y[:, 0], torch.arange(6) / 10 + 0.01)
    assert [graph.num_edges for graph in data.graphs] == [2, 2, 4, 0, 0, 0]
    assert data.x.shape == (24, 1)
    refused(
        tables(tmp_path, nodes, edges + "0,5\n", target="energy", graph_column="molecule"),
        "edges.csv", "row 5", "two different graphs",
    )  # fmt: skip
    odd = nodes.replace("6,1,0.11", "6,1,0.12")
    refused(tables(tmp_path, odd, edges, target="energy", graph_column="molecule"), "'energy', row 7", "'1'")


def test_a_column_of_numbers_with_a_sign_for_nothing_is_no_category(tmp_path: Path) -> None:
    ages = [str(20 + i) for i in range(30)]
    for odd in ("None", "?", "4O"):
        refused(
            tables(tmp_path, *_aged([*ages, odd])), "'age'", f"holds numbers except for {odd!r}", "--categorical age"
        )
    data = load_files(tables(tmp_path, *_aged([*ages, "None"]), categorical="age"))
    assert data.x.size(1) == 31
    assert load_files(tables(tmp_path, *_aged(["1", "2", "3+"] * 11))).x.size(1) == 3, "bins are words"


def _aged(ages: list[str]) -> tuple[str, str]:
    rows = "".join(f"{i},{age},{'ab'[i % 2]}\n" for i, age in enumerate(ages))
    return f"id,age,y\n{rows}", "source,target\n0,1\n"


def test_whole_numbers_beyond_floats_stay_apart(tmp_path: Path) -> None:
    names = [2**53, 2**53 + 1, 2**53 + 2] * 4
    pl.DataFrame({"id": range(12), "x": names, "y": names}).write_parquet(tmp_path / "nodes.parquet")
    pl.DataFrame({"source": [0], "target": [1]}).write_parquet(tmp_path / "edges.parquet")
    data = load_files(DataConfig(dataset=str(tmp_path), directed=True, categorical="x", task="multiclass"))
    assert data.x.size(1) == 3
    assert data.class_names == [str(name) for name in names[:3]]


def test_a_node_column_with_the_name_of_the_graphs_target_is_asked_about(tmp_path: Path) -> None:
    nodes = GRAPH_NODES.replace("id,graph,a", "id,graph,label")
    graphs = "graph,label\n" + "".join(f"g{i},{'xy'[i % 2]}\n" for i in range(6))
    refused(
        tables(tmp_path, nodes, GRAPH_EDGES, graphs), "nodes.csv: column 'label' has the name of a target", "--ignore"
    )
    two = nodes.replace("label\n", "label,a\n").replace("\n", ",1\n").replace("label,a,1", "label,a")
    data = load_files(tables(tmp_path, two, GRAPH_EDGES, graphs, ignore="label", target="label"))
    assert (data.x.size(1), data.class_names) == (1, ["x", "y"])
