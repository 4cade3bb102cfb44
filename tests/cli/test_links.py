"""Link prediction as a user meets it: train, evaluate and predict on files, in the shell and in Python."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sklearn.metrics
import torch
from torch_geometric.data import Data

import cognn
from cognn.cli.main import main
from cognn.data.links.messages import of_split
from cognn.errors import ConfigError, DataError
from cognn.files.json import read_json
from cognn.run.fit import Fitted
from tests.toy_runs import make_links

QUICK = ["--epochs", "60", "--hidden-channels", "16", "--num-layers", "2", "--quiet"]
LINKS = ["train", "nodes.csv", "--edges", "edges.csv", "--undirected", "--task", "link", *QUICK]
NODES = 48


@pytest.fixture(autouse=True)
def _tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of three groups; the sign of an edge says whether its ends are of one group."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    group = np.arange(NODES) % 3
    hints = {f"hint{i}": (group == i) + 0.4 * rng.standard_normal(NODES) for i in range(3)}
    pl.DataFrame({"id": [f"n{i}" for i in range(NODES)], **hints, "label": group}).write_csv("nodes.csv")
    same = group[:, None] == group
    chance = rng.random((NODES, NODES))
    few, ends = (np.argwhere(np.triu(chance < np.where(same, 0.5, across), 1)) for across in (0.02, 0.2))
    names = ("source", "target")
    pl.DataFrame({n: [f"n{i}" for i in part] for n, part in zip(names, few.T, strict=True)}).write_csv("edges.csv")
    columns = {n: [f"n{i}" for i in part] for n, part in zip(names, ends.T, strict=True)}
    sign = np.where(same[ends[:, 0], ends[:, 1]], "pos", "neg")
    amount = same[ends[:, 0], ends[:, 1]] + 0.25
    pl.DataFrame({**columns, "sign": sign, "amount": amount}).write_csv("rated.csv")


def run(*words: str) -> None:
    assert main(list(words)) == 0


def error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def held_out(fitted: Fitted) -> tuple[pl.DataFrame, np.ndarray]:
    """The ids of the test pairs, and whether they are links."""
    dataset = fitted.dataset
    test = dataset.splits[0].test
    ends = dataset.links.ends[:, test].tolist()
    names = dataset.links.node_ids
    return pl.DataFrame({"a": [names[u] for u in ends[0]], "b": [names[v] for v in ends[1]]}), dataset.y[test].numpy()


@pytest.mark.parametrize("decoder", ["dot", "mlp"])
def test_links_are_found_and_predicted_as_they_are_scored(decoder: str) -> None:
    run(*LINKS, "--decoder", decoder, "--out", "run")
    result = read_json(Path("run/result.json"))
    assert result["metric"] == "roc_auc"
    assert result["test"]["mean"] > 0.75
    fitted = cognn.open_run("run")
    pairs, y = held_out(fitted)
    pairs.write_csv("pairs.csv")
    run("predict", "run", "--pairs", "pairs.csv", "--out", "out.csv")
    table = pl.read_csv("out.csv")
    assert table.columns == ["a", "b", "prediction", "p_link", "spread"]
    assert table.select("a", "b").equals(pairs)
    p = table["p_link"].to_numpy()
    assert result["test"]["mean"] == pytest.approx(sklearn.metrics.roc_auc_score(y, p), abs=1e-6)
    assert table["prediction"].to_list() == ["link" if one > fitted.threshold() else "no link" for one in p]
    run("evaluate", "run", "--metric", "hits_at_10")

    assert fitted.score() == pytest.approx(result["test"]["mean"])
    assert fitted.score(metric="average_precision") == pytest.approx(
        sklearn.metrics.average_precision_score(y, p), abs=1e-6
    )
    found = fitted.predict(pairs="pairs.csv").value
    assert np.allclose(found[:, 1], p, atol=1e-6)
    assert torch.allclose(found.sum(1), torch.ones(len(p)))
    ends = fitted.dataset.links.ends[:, fitted.dataset.splits[0].test]
    assert torch.equal(fitted.predict(pairs=ends).value, found)
    assert torch.allclose(fitted.predict(pairs=ends.flip(0)).value, found)  # the edges have no direction


def test_a_graph_that_is_given_again_is_used_with_all_its_edges() -> None:
    run(*LINKS, "--out", "run")
    fitted = cognn.open_run("run")
    held_out(fitted)[0].write_csv("pairs.csv")
    run("predict", "run", "nodes.csv", "--edges", "edges.csv", "--pairs", "pairs.csv", "--out", "new.csv")
    own, new = fitted.predict(pairs="pairs.csv").value[:, 1], pl.read_csv("new.csv")["p_link"].to_numpy()
    assert not np.allclose(own, new, atol=1e-4)
    dataset = fitted.dataset
    pairs = dataset.links.ends[:, dataset.splits[0].test]
    with torch.no_grad():
        expected = fitted.model()(dataset.x, dataset.graphs[0], pairs=pairs).sigmoid().view(-1)
    assert np.allclose(new, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("target", "task", "metric", "beats"),
    [
        ("sign", "link", "roc_auc", lambda score: score > 0.75),
        ("sign", "link-multiclass", "accuracy", lambda score: score > 0.6),
        ("amount", "link-regression", "mae", lambda score: score < 0.5),
    ],
)
def test_a_column_of_the_edge_table(target: str, task: str, metric: str, beats: Callable[[float], bool]) -> None:
    other = "amount" if target == "sign" else "sign"
    words = ["train", "nodes.csv", "--edges", "rated.csv", "--directed", "--task", task, "--target", target]
    run(*words, "--ignore", other, "--decoder", "mlp", *QUICK, "--directions", "both", "--out", "run")
    result = read_json(Path("run/result.json"))
    assert result["metric"] == metric
    assert beats(result["test"]["mean"])
    fitted = cognn.open_run("run")
    assert fitted.dataset.edge_attr is None  # the target is no feature
    assert fitted.dataset.x.size(1) == 3  # nor is the column that a node task would predict
    pl.DataFrame({"u": ["n0", "n1"], "v": ["n3", "n2"]}).write_csv("pairs.csv")
    run("predict", "run", "--pairs", "pairs.csv", "--out", "out.parquet")
    assert pl.read_parquet("out.parquet").columns[:3] == ["u", "v", "prediction"]
    run("predict", "run", "nodes.csv", "--edges", "edges.csv", "--pairs", "pairs.csv", "--out", "new.csv")


def test_missing_targets_stay_in_the_graph_and_are_not_learned() -> None:
    table = pl.read_csv("rated.csv").drop("amount")
    table.with_row_index("i").with_columns(pl.when(pl.col("i") % 4 > 0).then(pl.col("sign"))).drop("i").write_csv(
        "rated.csv"
    )
    run(
        "train",
        "nodes.csv",
        "--edges",
        "rated.csv",
        "--directed",
        "--task",
        "link",
        "--target",
        "sign",
        *QUICK,
        "--out",
        "r",
    )
    dataset = cognn.open_run("r").dataset
    unknown = dataset.y.isnan().nonzero().view(-1)
    split = dataset.splits[0]
    assert len(unknown) == -(-table.height // 4)
    assert not torch.isin(torch.cat([split.train, split.val, split.test]), unknown).any()
    kept = set(map(tuple, of_split(dataset, 0).graphs[0].edge_index.T.tolist()))
    assert set(map(tuple, dataset.links.ends[:, unknown].T.tolist())) <= kept


def test_the_same_seed_gives_the_same_and_a_resumed_run_goes_on_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    from cognn.train import loop

    options = {"epochs": 8, "hidden_channels": 8, "num_layers": 2, "splits": "0", "disjoint_train_ratio": 0.3}
    dataset = make_links()
    whole, again = (cognn.fit(dataset, out=name, **options) for name in ("whole", "again"))
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    class Stop(Exception):
        pass

    def stop(split, line, best, best_epoch) -> None:
        if line.epoch == 4:
            raise Stop

    with pytest.raises(Stop):
        cognn.fit(dataset, out="stopped", report=stop, **options)
    torch.manual_seed(99)
    resumed = cognn.fit(dataset, resume="stopped")
    logs = [(fitted.folder / "split-0" / "metrics.jsonl").read_text() for fitted in (whole, again, resumed)]
    cut = [[json.loads(line) | {"seconds": 0} for line in text.splitlines()] for text in logs]
    assert cut[0] == cut[1] == cut[2]
    pairs = torch.tensor([[0, 1, 2], [3, 4, 5]])
    values = [fitted.predict(pairs=pairs).value for fitted in (whole, again, resumed)]
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


@pytest.mark.parametrize("model", ["meangnn", "mlp", "gat"])
def test_pyg_data_and_baselines(model: str) -> None:
    links = make_links()
    graph = links.graphs[0]
    data = Data(x=links.x, edge_index=graph.edge_index, y=torch.arange(links.num_nodes), num_nodes=links.num_nodes)
    fitted = cognn.fit(data, task="link", model=model, epochs=80, hidden_channels=16, num_layers=2)
    assert not fitted.dataset.links.directed
    pairs = fitted.dataset.links.ends[:, :5]
    assert fitted.predict(pairs=pairs).value.shape == (5, 2)
    assert fitted.predict(data, pairs=pairs).value.shape == (5, 2)
    assert fitted.score() > 0.6
    with pytest.raises(ConfigError, match="task: link is for one graph, a PyG Data; got a list"):
        cognn.fit([data, data], task="link")
    for wrong, message in [
        (torch.tensor([[0], [0]]), "pairs: node 0 is paired with itself"),
        (torch.tensor([[0], [99]]), r"pairs: \[0, 99\] names a node that is not there; the graph has 40"),
        (torch.tensor([0, 1]), r"pairs: expected integers \(2, P\)"),
    ]:
        with pytest.raises(DataError, match=message):
            fitted.predict(pairs=wrong)


def test_errors_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run(*LINKS, "--epochs", "1", "--out", "run")
    for content, message in [
        ("u,v\nn0,n1\nn0,n99\n", "pairs.csv: column 'v', row 2: no node of the graph has the id 'n99'"),
        ("u,v\nn0,n1\nn2,n2\n", "pairs.csv: column 'v', row 2: 'n2' is paired with itself; a link joins two nodes"),
        ("a,b,c\nn0,n1,1\n", "pairs.csv: which columns are the ends of an edge?"),
    ]:
        Path("pairs.csv").write_text(content)
        assert message in error(capsys, "predict", "run", "--pairs", "pairs.csv")
    assert "pairs: this run predicts links; give the pairs" in error(capsys, "predict", "run")
    assert "report shows nodes and graphs, and this run is on links; cognn evaluate" in error(capsys, "report", "run")
    rated = ["train", "nodes.csv", "--edges", "rated.csv", "--directed", *QUICK]
    for words, message in [
        (
            [*LINKS, "--neighbors", "5"],
            "neighbors: has no effect, as a link task trains on its whole graph; leave it out",
        ),
        ([*LINKS, "--partitions", "2"], "partitions: has no effect, as a link task"),
        ([*LINKS, "--batch-size", "5"], "batch_size: has no effect, as a link task"),
        ([*LINKS, "--devices", "2"], "devices: has no effect, as a link task"),
        ([*LINKS, "--pool", "max"], "pool: is for graph tasks, got max; nodes has targets of links"),
        ([*LINKS, "--split-column", "s"], "split_column: has no effect for link tasks"),
        ([*LINKS, "--metric", "hits_at_100"], "hits_at_100 of the"),
        ([*rated, "--task", "link-class", "--target", "sign"], "task: expected link, link-binary, link-multiclass"),
        (
            [*rated, "--task", "link-binary"],
            "task: link-binary predicts a column of the edge table; name it with --target",
        ),
        ([*rated, "--task", "link", "--target", "rating"], "rated.csv: no column 'rating'"),
        ([*rated, "--task", "link", "--target", "source"], "rated.csv: column 'source' cannot have two roles"),
        ([*rated, "--target", "label", "--decoder", "mlp"], "decoder: is for link tasks, got mlp"),
        ([*rated, "--target", "label", "--disjoint-train-ratio", "0.3"], "disjoint_train_ratio: is for link tasks"),
        (
            ["compare", "nodes.csv", "--edges", "edges.csv", "--task", "link"],
            "task: a comparison is of nodes or graphs",
        ),
        (["train", "cycles", "--task", "link"], "task: link is for one graph; cycles has 14"),
        (["data", "check", "nodes.csv", "--edges", "edges.csv", "--task", "link"], "task: link tasks have no check"),
        (
            ["data", "build", "nodes.csv", "--edges", "edges.csv", "--task", "link", "--out", "s"],
            "a store is for node tasks",
        ),
    ]:
        assert message in error(capsys, *words), words
    pl.read_csv("edges.csv").head(2).write_csv("edges.csv")
    assert "nodes: 2 links; training, validation and test need at least one each" in error(capsys, *LINKS)


def test_a_known_dataset() -> None:
    fitted = cognn.fit("minesweeper-board", task="link", epochs=2, hidden_channels=8, num_layers=2, splits="0")
    assert fitted.dataset.num_items == 2 * 39402
    assert fitted.score() > 0
    reopened = cognn.open_run(fitted.folder)
    assert reopened.predict(pairs=torch.tensor([[0], [1]])).value.shape == (1, 2)


def test_degrees_as_features_do_not_count_what_is_to_be_predicted() -> None:
    run(*LINKS, "--encoding", "degree", "--epochs", "2", "--out", "run")
    dataset = cognn.open_run("run").dataset
    whole, seen = dataset.graphs[0], of_split(dataset, 0)
    assert torch.allclose(dataset.x[:, -2].expm1(), whole.in_ptr.diff().float())
    assert torch.allclose(seen.x[:, -2].expm1(), seen.graphs[0].in_ptr.diff().float())
    assert not torch.equal(seen.x, dataset.x)
