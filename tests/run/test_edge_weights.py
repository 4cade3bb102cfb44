"""Edge weights in the user's own data, through the command line and in Python: trained, predicted, stored, refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch_geometric.data import Data

import cognn
from cognn.cli.main import main
from cognn.data.readers.pyg_data import from_pyg
from cognn.data.sampling.batches import GraphCollator
from cognn.data.sampling.neighbors import NeighborhoodSampler, TorchNeighborSampler
from cognn.data.sampling.partition import PartitionSampler
from cognn.errors import DataError
from cognn.run.train import run_schema
from cognn.train.batcher import Batcher
from tests.data.own import NODES
from tests.toy_runs import make_dataset

SIZES = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet", "--target", "label"]
PARTS = np.random.default_rng(0)
ENDS = PARTS.integers(20, size=(2, 40))
ENDS = ENDS[:, ENDS[0] != ENDS[1]]
WEIGHTS = PARTS.integers(4, size=ENDS.shape[1])


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Path("nodes.csv").write_text(NODES)
    table(WEIGHTS).write_csv("edges.csv")


def table(weight) -> pl.DataFrame:
    source, target = ([f"n{end}" for end in row] for row in ENDS.tolist())
    return pl.DataFrame({"source": source, "target": target, "trust": weight, "since": np.arange(ENDS.shape[1]) % 7})


def train(*words: str, edges: str = "edges.csv", way: str = "--undirected") -> int:
    given = ["--edge-weight", "trust", way, *SIZES, *words]
    return main(["train", "nodes.csv", "--edges", edges, *given, "--out", "run"])


def predicted(*words: str) -> np.ndarray:
    assert main(["predict", "run", *words, "--samples", "0", "--out", "out.csv"]) == 0
    return pl.read_csv("out.csv")["p_b"].to_numpy()


@pytest.mark.parametrize("env", ["mean", "gcn"])
def test_a_column_of_weights_is_trained_on_and_predicted_with(env: str) -> None:
    assert train("--env", env) == 0
    schema = run_schema(Path("run"))
    assert (schema.edge_weight, [column.name for column in schema.edges]) == ("trust", ["since"])
    own = predicted()
    assert main(["evaluate", "run"]) == 0
    assert main(["evaluate", "run", "nodes.csv", "--edges", "edges.csv"]) == 0
    assert main(["report", "run"]) == 0
    table(WEIGHTS).reverse().write_csv("reversed.csv")
    np.testing.assert_allclose(predicted("nodes.csv", "--edges", "reversed.csv"), own, atol=1e-6)
    # An edge of weight 3 is three edges, and one of weight 0 is none.
    table(np.ones(len(WEIGHTS))).select(pl.all().repeat_by(pl.lit(pl.Series(WEIGHTS))).explode()).write_csv("ones.csv")
    np.testing.assert_allclose(predicted("nodes.csv", "--edges", "ones.csv"), own, atol=1e-6)
    table(WEIGHTS + 1).write_csv("other.csv")
    assert not np.allclose(predicted("nodes.csv", "--edges", "other.csv"), own, atol=1e-4)
    assert main(["data", "build", "nodes.csv", "edges.csv", "--like", "run", "--out", "store", "--quiet"]) == 0
    np.testing.assert_allclose(predicted("store"), own, atol=1e-6)
    options = {"target": "label", "directed": False, "edge_weight": "trust", "hidden_channels": 8, "num_layers": 2}
    same = cognn.fit("nodes.csv", edges="edges.csv", epochs=3, env=env, **options)
    assert same.result["test"] == cognn.open_run("run").result["test"]


def test_a_store_with_weights_is_trained_on_like_the_tables() -> None:
    words = ["--edge-weight", "trust", "--directed", "--target", "label"]
    assert main(["data", "build", "nodes.csv", "edges.csv", *words, "--out", "store", "--quiet"]) == 0
    assert main(["train", "store", *SIZES[:-2], "--out", "run"]) == 0
    from_store = predicted()
    Path("run").rename("first")
    assert train(way="--directed") == 0
    np.testing.assert_allclose(predicted(), from_store, atol=1e-5)


def test_training_on_mini_batches_uses_weights() -> None:
    for words in (["--partitions", "3"], ["--neighbors", "3,3"], ["--drop-edge", "0.2", "--draws", "2"]):
        assert train(*words) == 0
        Path("run").rename(words[0][2:])


def test_checks_show_the_range_of_weights(capsys) -> None:
    words = ["--edges", "edges.csv", "--edge-weight", "trust", "--undirected"]
    assert main(["data", "check", "nodes.csv", *words, "--target", "label"]) == 0
    assert "0 to 3" in " ".join(line for line in capsys.readouterr().out.splitlines() if "edge weights" in line)


def cell(value: object) -> pl.DataFrame:
    return table([str(value), *map(str, WEIGHTS[1:])])


BAD = {
    "word": (lambda: cell("much"), [], "edges.csv: column 'trust', row 1: expected a number, got 'much'"),
    "missing": (lambda: cell(""), [], "edges.csv: column 'trust', row 1: no weight; every edge needs one, 0 for none"),
    "infinite": (lambda: cell("inf"), [], "edges.csv: column 'trust', row 1: expected a finite number, got inf"),
    "large": (lambda: cell("1e99"), [], "edges.csv: column 'trust', row 1: 1e+99 is too large a weight"),
    "negative": (lambda: cell(-2), [], "edge_weight: edge 0 is -2, but mean, gcn and gat divide by sums of weights"),
    "no column": (lambda: table(WEIGHTS).drop("trust"), [], "edges.csv: no column 'trust'; it has"),
    "two roles": (lambda: table(WEIGHTS), ["--edge-type", "trust"], "edges.csv: column 'trust' cannot have two roles"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_weights_are_refused_in_one_line(kind: str, capsys) -> None:
    make, words, says = BAD[kind]
    make().write_csv("edges.csv")
    assert train(*words) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert shown.count("\n") == 1
    assert not Path("run").exists()
    if kind == "negative":
        assert train("--env", "sum", "--action", "gin") == 0


def test_a_run_with_weights_wants_them_again(capsys) -> None:
    assert train() == 0
    table(WEIGHTS).drop("trust").write_csv("plain.csv")
    assert main(["predict", "run", "nodes.csv", "--edges", "plain.csv"]) == 2
    assert "plain.csv: no column 'trust'" in capsys.readouterr().err


def pyg() -> Data:
    rng = torch.Generator().manual_seed(0)
    ends = torch.randint(30, (2, 90), generator=rng)
    return Data(
        x=torch.randn(30, 4, generator=rng), edge_index=ends, edge_weight=weight_of(ends), y=torch.arange(30) % 3
    )


def weight_of(ends: torch.Tensor) -> torch.Tensor:
    """Weights that tell which nodes an edge joins."""
    return (ends[0] * 100 + ends[1]).float()


def test_a_data_of_pyg_has_weights_and_so_has_an_npz() -> None:
    data, options = pyg(), {"hidden_channels": 8, "num_layers": 2, "epochs": 3}
    fitted = cognn.fit(data, **options)
    own = fitted.predict().value
    torch.testing.assert_close(fitted.predict(data).value, own)
    np.savez("graph.npz", **{key: value.numpy() for key, value in data.to_dict().items()})
    again = cognn.fit("graph.npz", directed=True, **options)
    assert again.result["test"] == fitted.result["test"]
    other = data.clone()
    other.edge_weight = data.edge_weight + 1000 * torch.rand(90)
    assert not torch.allclose(fitted.predict(other).value, own, atol=1e-4)
    del other.edge_weight
    with pytest.raises(DataError, match="has no 'edge_weight', but the model was trained with weights; add it"):
        fitted.predict(other)
    other.edge_weight = torch.ones(4)
    with pytest.raises(DataError, match=r"'edge_weight' holds float32 of shape \(4,\); expected a number for each of"):
        cognn.fit(other, **options)


def test_a_dataset_with_weights_predicts_pyg_graphs_with_them() -> None:
    dataset = make_dataset("node", "multiclass")
    edge_index, weight = dataset.graphs[0].edge_index, torch.rand(240)
    dataset.graphs = [cognn.Graph(edge_index, 60, edge_weight=weight)]
    fitted = cognn.fit(dataset, hidden_channels=4, num_layers=1, epochs=1, splits=0)
    new = Data(x=dataset.x, edge_index=edge_index, edge_weight=weight)
    torch.testing.assert_close(fitted.predict(new).value, fitted.predict().value)


def test_every_mini_batch_has_the_weights_of_its_edges() -> None:
    dataset = from_pyg(pyg())
    part = torch.arange(30) % 4
    samplers = {
        "partitions": PartitionSampler(dataset, part).induced(torch.tensor([1, 3]))[0],
        "halo": PartitionSampler(dataset, part, halo=True).induced(torch.tensor([2]))[0],
        "neighbors": NeighborhoodSampler(dataset, [3, 2], TorchNeighborSampler(dataset.graphs[0], [3, 2])).sample(
            torch.arange(5)
        ),
    }
    for name, batch in samplers.items():
        assert batch.graph.num_edges > 5, name
        assert torch.equal(batch.graph.edge_weight, weight_of(batch.items[batch.graph.edge_index])), name
        order = batch.graph.loopless.in_edge.long()
        assert torch.equal(batch.graph.loopless.edge_weight[order], batch.graph.edge_weight[order])


def test_graph_tasks_have_the_weights_of_their_edges() -> None:
    graphs = [pyg() for _ in range(4)]
    for number, graph in enumerate(graphs):
        graph.y, graph.edge_weight = torch.tensor([number % 2]), weight_of(graph.edge_index) + number
    dataset = from_pyg(graphs)
    for number, graph in enumerate(dataset.graphs):
        assert torch.equal(graph.edge_weight, weight_of(graph.edge_index) + number)
    batch = GraphCollator(dataset).collate(torch.tensor([3, 1]))
    assert torch.equal(batch.graph.edge_weight, torch.cat([graphs[3].edge_weight, graphs[1].edge_weight]))
    assert torch.equal(batch.graph.loopless.edge_weight, batch.graph.edge_weight)
    batcher = Batcher(dataset, 2, torch.device("cpu"))
    assert all(part.graph.edge_weight is not None for part in batcher.all_batches())


def test_a_component_to_train_on_has_its_weights() -> None:
    first = torch.randint(5, (2, 20))
    ends = torch.cat([first, first + 5], 1)
    data = Data(x=torch.randn(10, 3), edge_index=ends, edge_weight=weight_of(ends), y=torch.arange(10) % 2)
    dataset = from_pyg(data)
    (batch,) = Batcher(dataset, 4, torch.device("cpu")).train_batches(torch.arange(5, 10))
    assert batch.batch.graph.num_nodes < 10
    local = batch.batch.items[batch.batch.graph.edge_index]
    assert torch.equal(batch.batch.graph.edge_weight, weight_of(local))
