"""Own graphs in the files of the TU collection."""

from pathlib import Path

import polars as pl
import pytest
import torch

from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.data.load import load_data
from cognn.errors import DataError

FILES = {
    "T_graph_indicator.txt": "1\n1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n6\n6\n",
    "T_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n2, 3\n3, 3\n"
    + "".join(f"{i}, {i + 1}\n{i + 1}, {i}\n" for i in range(4, 13, 2)),
    "T_graph_labels.txt": "1\n-1\n1\n-1\n1\n-1\n",
    "T_node_labels.txt": "3\n7\n7\n3\n3\n7\n7\n3\n7\n3\n7\n3\n7\n",
    "T_node_attributes.txt": "".join(f"{i}.5, {-i}\n" for i in range(13)),
    "T_edge_labels.txt": "0\n0\n1\n1\n1\n0\n" + "1\n" * 10,
}
SMALL = ["--hidden-channels", "4", "--num-layers", "1", "--epochs", "2", "--quiet"]


def write(folder: Path, **changes: str | None) -> Path:
    folder.mkdir()
    for name, text in FILES.items():
        text = changes.get(name.removeprefix("T_").removesuffix(".txt"), text)
        if text is not None:
            (folder / name).write_text(text)
    return folder


def load(folder: Path, **options):
    return load_data(DataConfig(dataset=str(folder), directed=False, **options))


def test_the_graphs_are_those_of_the_files(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "T"), standardize=False)
    assert [graph.num_nodes for graph in dataset.graphs] == [3, 2, 2, 2, 2, 2]
    assert sorted(dataset.graphs[0].edge_index.t().tolist()) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert (dataset.task.level, dataset.task.kind) == ("graph", "binary")
    assert [dataset.class_names[int(code)] for code in dataset.y] == ["1", "-1"] * 3
    labels, attributes = dataset.x[:, :2], dataset.x[:, 2:]
    assert labels.sum(1).tolist() == [1] * 13
    assert labels[0].tolist() == labels[3].tolist() != labels[1].tolist()
    assert attributes.tolist() == [[i + 0.5, -i] for i in range(13)]
    assert dataset.edge_categories == (2,)
    assert torch.bincount(dataset.edge_attr[:, 0].long()).tolist() == [2, 12]


def test_train_and_predict_other_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("T"), edge_labels=None)
    write(Path("new"), edge_labels=None, graph_labels=None, node_labels="3\n" * 13)
    assert main(["data", "check", "T", "--undirected"]) == 0
    assert main(["train", "T", "--undirected", *SMALL, "--out", "run"]) == 0
    assert main(["predict", "run", "new", "--out", "p.csv"]) == 0
    assert pl.read_csv("p.csv")["id"].to_list() == [1, 2, 3, 4, 5, 6]
    write(Path("other"), edge_labels=None, node_labels="4\n" * 13)
    assert main(["predict", "run", "other", "--out", "p.csv"]) == 2  # an unknown category


def test_targets_of_a_regression(tmp_path: Path) -> None:
    folder = write(tmp_path / "T", graph_labels=None)
    (folder / "T_graph_attributes.txt").write_text("0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n5.5, 6\n")
    dataset = load(folder, target="attribute_0")
    assert dataset.task.kind == "regression"
    assert dataset.y.flatten().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"A": None}, "T_A.txt: no such file"),
        ({"A": "1 2\n"}, "has 1 values on a line; expected 2"),
        ({"A": "1, 99\n"}, "no node has the id '99'"),
        ({"A": "1, 4\n"}, "joins two different graphs"),
        ({"node_labels": "1\n"}, "has 1 lines, but there are 13 nodes"),
        ({"graph_labels": "1\n2\n"}, "'3'"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path: Path, changes: dict, said: str) -> None:
    if "A" in changes:
        changes = changes | {"edge_labels": None}
    with pytest.raises(DataError) as error:
        load(write(tmp_path / "T", **changes))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
