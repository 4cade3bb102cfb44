import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cognn.config.options import DataConfig
from cognn.data.check.files import check_files
from cognn.errors import DataError
from tests.data.own import EDGES, GRAPH_EDGES, GRAPH_NODES, NODES, arrays, tables


def test_a_sound_folder(tmp_path: Path) -> None:
    report = check_files(tables(tmp_path))
    assert report.ok
    assert report.warnings == [
        "split 0: class 'b' has only 2 val, 2 test items (1 more with under 5); scores of so few vary by chance"
    ]
    facts = report.facts
    assert facts["nodes"] == "20"
    assert facts["edges"] == "20 listed, 20 pairs of different nodes"
    assert facts["degree"] == "mean 2, median 2, from 2 to 2"
    assert facts["labelled"] == "19 of 20 nodes"
    assert facts["balance"] == "a 52.6%, b 47.4%"
    assert facts["homophily"].startswith("0.000")
    assert facts["splits"] == "11 train, 4 val, 4 test"
    assert str(report).endswith("ready for training, 1 to look at")


def test_what_is_odd_is_told(tmp_path: Path) -> None:
    nodes = NODES + "n20,1,red,true,a,train\nn21,1,red,true,a,test\nn22,1,red,true,a,\n"
    edges = EDGES + "n0,n1,x\nn1,n0,y\nn4,n4,z\n"
    report = check_files(tables(tmp_path, nodes, edges))
    assert report.ok
    assert report.facts["self-loops"] == "1"
    assert report.facts["duplicates"].startswith("1 ")
    assert report.facts["isolated"].startswith("3 ")
    assert report.facts["equal features"].startswith("1 of 5 test items")
    for word in ("1 edges repeat", "1 pairs are listed both ways", "copies"):
        assert any(word in line for line in report.warnings), report.warnings


def test_every_problem_is_listed(tmp_path: Path) -> None:
    nodes = NODES.replace("n3,4.5", "n3,").replace("n2,3.0,red", "n2,3.0,")
    report = check_files(tables(tmp_path, nodes.replace("test", "later", 1), EDGES + "n1,n50,x\nn60,n51,\n"))
    assert not report.ok
    expected = [
        ("'age', row 4",),
        ("'color', row 3",),
        ("'kind', row 22",),
        ("'source', row 22", "'n60'"),
        ("'target', row 21", "'n50'", "2 such rows: 21, 22"),
        ("'split', row 5", "'later'"),
    ]
    for words in expected:
        assert any(all(word in line for word in words) for line in report.problems), (words, report.problems)
    assert report.facts["edges"].startswith("20 listed")
    assert str(report).endswith(f"{len(report.problems)} to fix before training")


def test_it_needs_no_config(tmp_path: Path) -> None:
    tables(tmp_path)
    report = check_files(tmp_path)
    assert report.ok
    assert "--directed" in report.warnings[0]
    np.savez(tmp_path / "g.npz", **arrays())
    report = check_files(tmp_path / "g.npz")
    assert report.ok
    assert report.facts["nodes"] == "12"
    assert report.facts["task"].startswith("node multiclass")
    tables(tmp_path, "id,a\n1,2\n2,3\n", "source,target\n1,2\n2,1\n")
    report = check_files(tmp_path)
    assert any("--target" in line for line in report.warnings)
    assert any("both ways" in line for line in report.warnings)


def test_leaks(tmp_path: Path) -> None:
    masks = {f"{part}_mask": np.arange(12) // 4 == i for i, part in enumerate(("train", "val", "test"))}
    masks["test_mask"][5] = True
    np.savez(tmp_path / "g.npz", **arrays(**masks))
    report = check_files(DataConfig(dataset=str(tmp_path / "g.npz"), directed=True))
    assert report.ok
    assert "split 0: val and test share 1 items, the first is 5" in report.warnings
    masks["train_mask"][5] = True
    np.savez(tmp_path / "g.npz", **arrays(**masks))
    report = check_files(DataConfig(dataset=str(tmp_path / "g.npz"), directed=True))
    assert any("train and val share 1 items" in line for line in report.problems)


def test_parts_of_one_class_have_no_score(tmp_path: Path) -> None:
    nodes = "id,y,split\n" + "".join(f"{i},{'ab'[i % 2 and i < 8]},{'train' if i < 8 else 'val'}\n" for i in range(12))
    report = check_files(tables(tmp_path, nodes + "12,a,test\n13,b,test\n", "source,target\n0,1\n"))
    assert not report.ok, "what training refuses is not ready to train on"
    told = [line for line in report.problems if "of one class" in line]
    assert told == ["split 0: all val items are of one class, their roc_auc is not defined; training would fail"]


def test_labels_that_are_the_same_everywhere_have_no_score(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i % 2},{i // 2 % 2 if i < 8 else 1},{'train' if i < 8 else 'val'}\n" for i in range(12))
    nodes = "id,a,b,split\n" + rows.replace("8,0", "8,1").replace("10,0", "10,1")
    report = check_files(tables(tmp_path, nodes, "source,target\n0,1\n", target="a,b", task="multilabel"))
    assert any("their average_precision is not defined; training would fail" in line for line in report.problems)


def test_columns_of_the_graphs_that_are_not_used_are_named(tmp_path: Path) -> None:
    graphs = "graph,y,heat\n" + "".join(f"g{i},{'ab'[i % 2]},{i}\n" for i in range(6))
    report = check_files(tables(tmp_path, GRAPH_NODES, GRAPH_EDGES, graphs))
    assert any("graphs.csv: 'heat' is not used" in line for line in report.warnings)


def test_a_class_that_is_never_trained_on(tmp_path: Path) -> None:
    nodes = "id,y,split\n" + "".join(
        f"{i},{'ab'[i > 5]},{'train' if i < 4 else ('val', 'test')[i % 2]}\n" for i in range(9)
    )
    report = check_files(tables(tmp_path, nodes, "source,target\n0,1\n"))
    assert any("no training item of class 'b'" in line for line in report.warnings)


def test_graph_tasks_and_regression(tmp_path: Path) -> None:
    nodes = "id,graph,energy,a\n" + "".join(f"{i},{i // 4},{i // 4 / 8},{i}\n" for i in range(24))
    report = check_files(tables(tmp_path, nodes, "source,target\n0,1\n", target="energy", graph_column="graph"))
    assert report.ok
    assert report.facts["graphs"] == "6 of 4 to 4 nodes, 4.0 on average"
    assert report.facts["target energy"] == "mean 0.3125, median 0.3125, from 0 to 0.625"
    crossing = tables(tmp_path, nodes, "source,target\n0,5\n", target="energy", graph_column="graph")
    assert any("two different graphs" in line for line in check_files(crossing).problems)


def test_words_of_the_files_are_not_markup(tmp_path: Path) -> None:
    report = check_files(tables(tmp_path, NODES.replace("n19,", "[bold]n1,"), EDGES))
    assert not report.ok
    stream = io.StringIO()
    Console(file=stream, width=200).print(report)
    assert "'n19'" in stream.getvalue()
    report.source = "[red]x"
    Console(file=stream, width=200).print(report)
    assert "[red]x" in stream.getvalue()


def test_what_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "lost.npz", tmp_path / "lost.graphml"):
        with pytest.raises(DataError):
            check_files(path)


def test_the_same_ends_in_another_relation_are_another_edge(tmp_path: Path) -> None:
    edges = EDGES + "n0,n1,y\nn0,n1,x\nn4,n4,z\nn4,n4,x\nn4,n4,x\n"
    report = check_files(tables(tmp_path, edges=edges, edge_type="kind"))
    assert report.facts["duplicates"] == "2 repeat an earlier edge"
    assert report.facts["edges"] == "25 listed, 21 pairs of different nodes and their relation"
    both = EDGES + "".join(f"n{(i + 1) % 20},n{i},{'xyz'[i % 3]}\n" for i in range(20))
    report = check_files(tables(tmp_path, edges=both, edge_type="kind"))
    assert report.facts["edges"].endswith("20 pairs of different nodes and their relation, each both ways")
    other = EDGES + "".join(f"n{(i + 1) % 20},n{i},{'yzx'[i % 3]}\n" for i in range(20))
    report = check_files(tables(tmp_path, edges=other, edge_type="kind"))
    assert report.facts["edges"].endswith("40 pairs of different nodes and their relation")
    assert [line for line in report.warnings if "items" not in line] == []
