"""Runs on the user's own tables with relations, through the command line: trained, resumed, predicted, refused."""

from pathlib import Path

import networkx
import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from torch_geometric.data import Data

import cognn
from cognn.cli.main import main
from cognn.data.store.build import from_dataset
from cognn.inference.layerwise import checked_network
from cognn.run.train import run_config, run_schema
from tests.data.own import NODES
from tests.toy_runs import make_dataset

SIZES = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet", "--target", "label"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Path("nodes.csv").write_text(NODES)
    Path("follows.csv").write_text("source,target\n" + "".join(f"n{i},n{(i + 1) % 20}\n" for i in range(20)))
    Path("pays.csv").write_text("source,target\n" + "".join(f"n{i},n{(i * 7) % 20}\n" for i in range(20)))


def edge_column() -> None:
    """The same edges in one table with a column for the relation."""
    parts = [pl.read_csv(f"{name}.csv").with_columns(kind=pl.lit(name)) for name in ("pays", "follows")]
    pl.concat(parts).write_csv("edges.csv")


def train(*words: str) -> None:
    assert main(["train", "nodes.csv", *words, "--directed", *SIZES, "--out", "run"]) == 0


def predicted(*words: str) -> pl.DataFrame:
    assert main(["predict", "run", *words, "--samples", "0", "--out", "out.csv"]) == 0
    return pl.read_csv("out.csv")


def test_an_edge_table_for_every_relation() -> None:
    train("--edges", "follows=follows.csv", "--edges", "pays=pays.csv")
    assert run_config(Path("run")).data.edges == "follows=follows.csv,pays=pays.csv"
    assert run_schema(Path("run")).relations == ["follows", "pays"]
    own = predicted()
    assert predicted("nodes.csv", "--edges", "pays=pays.csv", "--edges", "follows=follows.csv").equals(own)
    swapped = predicted("nodes.csv", "--edges=pays=follows.csv", "--edges=follows=pays.csv")
    assert not np.allclose(swapped["p_b"], own["p_b"])
    assert main(["evaluate", "run"]) == 0
    assert main(["train", "--resume", "run", "--quiet"]) == 0
    fitted = cognn.open_run("run")
    files = {"pays": Path("pays.csv"), "follows": "follows.csv"}
    again = fitted.predict("nodes.csv", edges=files).value
    np.testing.assert_allclose(again[:, 1], own["p_b"], rtol=1e-5)
    options = {"target": "label", "directed": True, "hidden_channels": 8, "num_layers": 2, "epochs": 3}
    same = cognn.fit("nodes.csv", edges=files, **options)
    assert same.result["test"] == fitted.result["test"]


def test_a_column_gives_the_model_that_the_tables_give() -> None:
    edge_column()
    train("--edges", "edges.csv", "--edge-type", "kind")
    assert run_schema(Path("run")).relations == ["follows", "pays"]
    by_column, weights = predicted(), cognn.open_run("run").model().state_dict()
    assert predicted("nodes.csv", "--edges", "edges.csv").equals(by_column)
    Path("run").rename("first")
    train("--edges", "follows=follows.csv", "--edges", "pays=pays.csv")
    np.testing.assert_allclose(predicted()["p_b"], by_column["p_b"], rtol=1e-4)
    assert cognn.open_run("run").model().state_dict().keys() == weights.keys()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--edges", "likes=pays.csv"], "edges: pays.csv: relation 'likes' is not among those that the model was"),
        (["--edges", "pays.csv"], "pays.csv: the model was trained on an edge table for every relation; give each"),
        (["--edges", "pays=no.csv"], "no.csv: no such file"),
        (["--edges", "pays=pays.csv", "--edges", "pays=follows.csv"], "edges: relation 'pays' is given twice"),
    ],
)
def test_other_relations_are_refused_by_name(words: list[str], says: str, capsys) -> None:
    train("--edges", "follows=follows.csv", "--edges", "pays=pays.csv")
    capsys.readouterr()
    assert main(["predict", "run", "nodes.csv", *words]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert shown.count("\n") == 1


def test_an_unknown_relation_in_a_column_is_refused_by_name(capsys) -> None:
    edge_column()
    train("--edges", "edges.csv", "--edge-type", "kind")
    Path("new.csv").write_text("source,target,kind\nn1,n2,pays\nn1,n2,likes\n")
    capsys.readouterr()
    assert main(["predict", "run", "nodes.csv", "--edges", "new.csv"]) == 2
    assert capsys.readouterr().err == (
        "cognn: new.csv: column 'kind', row 2: relation 'likes' is not among those that the model was trained on:"
        " 'follows', 'pays'\n"
    )


def test_a_store_keeps_relations_for_training_and_predictions(capsys) -> None:
    edges = ["--edges", "follows=follows.csv", "--edges", "pays=pays.csv"]
    words = ["nodes.csv", *edges, "--directed", "--target", "label"]
    assert main(["data", "build", *words, "--out", "store", "--quiet"]) == 0
    assert main(["data", "check", "store"]) == 0
    assert "2: follows 20, pays 20" in capsys.readouterr().out
    assert main(["train", "store", *SIZES[:-2], "--out", "run"]) == 0
    assert main(["data", "build", "nodes.csv", *edges, "--like", "run", "--out", "again", "--quiet"]) == 0
    capsys.readouterr()
    for graph, out in ((["again"], "stored.csv"), (["nodes.csv", *edges], "read.csv")):
        assert main(["predict", "run", *graph, "--samples", "0", "--out", out]) == 0
    stored, read = (pl.read_csv(name).sort("id") for name in ("stored.csv", "read.csv"))
    assert_frame_equal(stored, read.select(stored.columns), check_exact=False, abs_tol=1e-5)


def test_relations_of_a_store_are_those_of_the_model(tmp_path: Path) -> None:
    dataset = make_dataset("node", "multiclass")
    dataset.graphs = [cognn.Graph(dataset.graphs[0].edge_index, 60, torch.arange(240) % 2)]
    store = from_dataset(dataset, tmp_path / "typed")
    with pytest.raises(cognn.errors.DataError, match="typed: has 2 relations, the model takes 1"):
        checked_network(cognn.CoGNN(4, 8, out_channels=3, num_layers=2).eval(), store)


def test_a_run_on_a_dataset_with_relations_predicts_pyg_graphs_with_them() -> None:
    dataset = make_dataset("node", "multiclass")
    edge_index, types = dataset.graphs[0].edge_index, torch.arange(240) % 2
    dataset.graphs = [cognn.Graph(edge_index, 60, types, 3)]
    fitted = cognn.fit(dataset, hidden_channels=4, num_layers=1, epochs=1, splits=0)
    new = Data(x=dataset.x, edge_index=edge_index, edge_type=types)
    torch.testing.assert_close(fitted.predict(new).value, fitted.predict().value)
    new.edge_type = types + 2
    with pytest.raises(cognn.errors.DataError, match="'edge_type' holds relation 3, the model knows 0 to 2"):
        fitted.predict(new)
    del new.edge_type
    with pytest.raises(cognn.errors.DataError, match="has no 'edge_type', but the model was trained with relations"):
        fitted.predict(new)


def test_the_relation_of_a_graphml_edge_is_one_of_its_data(capsys) -> None:
    graph = networkx.DiGraph()
    for i in range(20):
        graph.add_node(f"n{i}", size=i / 3, label="ab"[i % 2])
        graph.add_edge(f"n{i}", f"n{(i + 1) % 20}", kind="xyz"[i % 3])
    networkx.write_graphml(graph, "g.graphml")
    assert main(["train", "g.graphml", "--edge-type", "kind", *SIZES, "--out", "run"]) == 0
    assert run_schema(Path("run")).relations == ["x", "y", "z"]
    own = predicted()
    assert predicted("g.graphml").equals(own)
    capsys.readouterr()
    assert main(["data", "check", "g.graphml", "--target", "label", "--edge-type", "kind"]) == 0
    assert "3: x 7, y 7, z 6" in capsys.readouterr().out


def test_types_of_nodes_in_one_table_have_columns_of_their_own() -> None:
    Path("nodes.csv").write_text(
        "id,type,age,price,label\n"
        + "".join(f"n{i},user,{i},,{'abc'[i % 3]}\n" if i < 12 else f"n{i},item,,{i},\n" for i in range(20))
    )
    words = ["--edges", "follows=follows.csv", "--edges", "pays=pays.csv", "--fill", "mean"]
    train(*words)
    x = cognn.open_run("run").dataset.x
    assert x[:12, :2].tolist() == [[0, 1]] * 12
    assert (x[12:, 2] == 0).all()
    assert (x[:12, 3] == 0).all()
    assert len(x[:12, 2].unique()) == 12
