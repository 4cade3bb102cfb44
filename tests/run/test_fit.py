"""``cognn.fit`` does all that ``cognn train`` does, with data from memory too."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.nn import GATv2Conv

import cognn
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError, DataError, Interrupted, RunError
from cognn.run.evaluate import evaluate
from cognn.run.python_options import make_config, python_words
from tests.toy_runs import make_dataset, make_links

SMALL = {"hidden_channels": 4, "num_layers": 2, "epochs": 2}


@pytest.fixture(autouse=True)
def _runs_without_a_name_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def ring(size: int, classes: int = 3, **more) -> Data:
    """A ring whose nodes have a class each."""
    nodes = torch.arange(size)
    x = torch.randn(size, 3, generator=torch.Generator().manual_seed(size))
    return Data(x=x, edge_index=torch.stack([nodes, (nodes + 1) % size]), y=nodes % classes, **more)


class OneGraph(InMemoryDataset):
    """What PyG's Planetoid is: a dataset of a single graph."""

    def __init__(self) -> None:
        super().__init__()
        self.data, self.slices = self.collate([ring(12)])


def test_options_of_the_data_reach_pyg_objects() -> None:
    fitted = cognn.fit(ring(40, 2), task="multiclass", metric="average_precision", random_splits=3, splits=2, **SMALL)
    task = fitted.dataset.task
    assert (task.kind, task.num_outputs, task.metric) == ("multiclass", 2, "average_precision")
    assert len(fitted.dataset.splits) == 3
    assert [split["split"] for split in fitted.result["splits"]] == [2]
    other = cognn.fit(ring(20, 2), data_seed=1, **SMALL).dataset.splits[0]
    assert not torch.equal(other.train, cognn.fit(ring(20, 2), **SMALL).dataset.splits[0].train)
    masks = {f"{part}_mask": torch.arange(20) % 3 == i for i, part in enumerate(("train", "val", "test"))}
    assert torch.equal(cognn.fit(ring(20, **masks), **SMALL).dataset.splits[0].val, torch.arange(1, 20, 3))


@pytest.mark.parametrize("make", [lambda: [ring(5), ring(7)], lambda: Batch.from_data_list([ring(5), ring(7)])])
def test_labels_of_nodes_in_several_graphs_are_one_task_on_nodes(make) -> None:
    dataset = cognn.fit(make(), **SMALL).dataset
    assert (dataset.task.level, dataset.num_items, len(dataset.graphs)) == ("node", 12, 1)
    assert torch.equal(dataset.graphs[0].edge_index[:, 5:], ring(7).edge_index + 5)
    masks = {f"{part}_mask": torch.arange(6) % 3 == i for i, part in enumerate(("train", "val", "test"))}
    split = cognn.fit([ring(6, **masks), ring(6, **masks)], **SMALL).dataset.splits[0]
    assert split.val.tolist() == [1, 4, 7, 10]


def test_datasets_of_pyg_and_of_ours() -> None:
    dataset = cognn.fit(OneGraph(), **SMALL).dataset
    assert (dataset.task.level, dataset.num_items) == ("node", 12)
    own = make_dataset("graph", "binary")
    fitted = cognn.fit(own, splits=[0, 1], **SMALL)
    assert fitted.dataset is own
    assert len(fitted.result["splits"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": "edges.csv"}, "edges: has no effect for PyG data"),
        ({"directed": False}, "directed: has no effect for PyG data"),
        ({"dataset": "cora"}, "dataset: 'cora' besides the data itself"),
        ({"jobs": 2}, "jobs: data from memory cannot be handed to other processes"),
        ({"devices": 2}, "devices: data from memory cannot be handed to other processes"),
        ({"jobs": 0}, "jobs: expected 1 or more, got 0"),
        ({"epochs": "5"}, "fit: train.epochs: expected int, got '5'"),
        ({"norm": "loud"}, "model.norm: expected one of layer"),
        ({"env": torch.nn.Linear}, "env: the callable must return a PyG MessagePassing layer, got Linear"),
        ({"hidden": 5}, "hidden: unknown option; did you mean hidden_channels"),
        ({"resume": "run", "epochs": 5}, "epochs: a resumed run keeps its own options"),
        ({"resume": "run", "out": "other"}, "out: a resumed run keeps its own options"),
        ({"lr": 0.0}, "lr: expected a number above 0"),
    ],
)
def test_contradictions_are_one_line(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        cognn.fit(ring(9), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "dataset: missing"),
        ([], "got an empty list"),
        ([1, 2], "got int"),
        (HeteroData(), "data: has no node types"),
        (torch.zeros(3), "got Tensor"),
        (5, "got int"),
        (
            [ring(5), ring(5).update({"edge_index": torch.tensor([[0], [7]])})],
            r"data\[1\]: an edge names node 7, it has 5",
        ),
        ([ring(5), ring(5).update({"edge_index": torch.zeros(2, 3)})], r"data\[1\]: edge_index holds float32"),
        ([ring(5), Data(x=torch.ones(4, 2), edge_index=torch.zeros(2, 0).long(), y=torch.ones(4))], "x has shape"),
        ([ring(5), Data(edge_index=torch.zeros(2, 0).long(), y=torch.ones(4), num_nodes=4)], r"data\[1\]: has no x"),
        ("atlantis", "dataset 'atlantis' is not known"),
    ],
)
def test_what_is_no_data_is_one_line(data, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        cognn.fit(data, **SMALL)
    assert "\n" not in str(caught.value)


def test_a_dataset_brings_its_task_along() -> None:
    with pytest.raises(ConfigError, match="task: has no effect for a Dataset"):
        cognn.fit(make_dataset("node", "binary"), task="regression")


def test_options_as_python_says_them() -> None:
    config = make_config(
        temperature=0.5, action=None, norm=None, splits=range(3), target=["a", "b"], edges=Path("e.csv")
    )
    assert (config.model.temperature, config.model.action, config.model.norm) == ("0.5", "none", "none")
    assert (config.data.splits, config.data.target, config.data.edges) == ("0,1,2", "a,b", "e.csv")
    assert make_config(directed=None).data.directed is None


def test_recipe(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('[data]\ndataset = "cycles"\n[model]\nhidden_channels = 4\n[train]\nepochs = 9\n')
    fitted = cognn.fit(recipe=path, out=tmp_path / "run", epochs=2)
    assert (fitted.dataset.name, fitted.config.model.hidden_channels, fitted.config.train.epochs) == ("cycles", 4, 2)
    assert cognn.fit(ring(9), recipe=path, epochs=2).dataset.name == "data"


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    def stop(split: int, *_) -> None:
        if split == 1:
            raise Interrupted

    data, folder = ring(20), tmp_path / "run"
    with pytest.raises(Interrupted, match=r"cognn.fit\(resume="):
        cognn.fit(data, out=folder, report=stop, random_splits=2, **SMALL)
    with pytest.raises(RunError, match="not finished"):
        cognn.open_run(folder)
    with pytest.raises(RunError, match="data in memory"):
        cognn.fit(resume=folder)
    fitted = cognn.fit(data, resume=folder)
    whole = cognn.fit(data, random_splits=2, **SMALL)
    for kind in ("train", "val", "test"):
        assert fitted.result[kind] == whole.result[kind]


def test_a_run_is_opened_with_the_data_it_learned_from(tmp_path: Path) -> None:
    data = make_dataset("node", "multiclass")
    fitted = cognn.fit(data, out=tmp_path / "run", splits="0", **SMALL)
    again = cognn.open_run(tmp_path / "run", data)
    assert torch.equal(again.predict().value, fitted.predict().value)
    assert evaluate(again)["test"] == fitted.result["test"]
    data.x[0] += 1
    with pytest.raises(RunError, match="the dataset has changed"):
        cognn.open_run(tmp_path / "run", data)
    with pytest.raises(RunError, match="data in memory"):
        _ = cognn.open_run(tmp_path / "run").dataset
    with pytest.raises(RunError, match="this run trained 0, got 1"):
        fitted.predict(split=1)
    with pytest.raises(ConfigError, match="samples: expected 0, or 2 and more"):
        fitted.predict(samples=-1)


def test_predictions_are_what_the_run_is_scored_by_and_repeat() -> None:
    data: Dataset = make_dataset("node", "multiclass")
    state = torch.get_rng_state()
    fitted = cognn.fit(data, splits="0", actions="sample", samples=4, **SMALL)
    before = torch.get_rng_state()
    one, two = fitted.predict(samples=5, actions=True), fitted.predict(samples=5, actions=True)
    assert torch.equal(torch.get_rng_state(), before)  # nobody else's draws are disturbed
    torch.set_rng_state(state)
    assert torch.equal(one.value, two.value)
    assert one.spread is not None
    assert torch.equal(one.spread, two.spread)
    assert one.actions is not None
    assert one.actions.shape == (2, 60)
    test = data.splits[0].test
    assert float((one.value[test].argmax(-1) == data.y[test]).double().mean()) == pytest.approx(
        evaluate(fitted)["test"]["mean"]
    )
    plain = cognn.fit(data, splits="0", model="gcn", **SMALL).predict(samples=5, actions=True)
    assert (plain.spread, plain.actions) == (None, None)


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_scores_again_are_the_scores_of_training(precision: str, level: str, caplog: pytest.LogCaptureFixture) -> None:
    fitted = cognn.fit(make_dataset(level, "binary"), precision=precision, splits="0", **SMALL)
    again = evaluate(fitted)
    assert "recorded" not in caplog.text
    for part in ("train", "val", "test"):
        assert again[part]["mean"] == pytest.approx(fitted.result[part]["mean"], abs=1e-9)
    assert fitted.predict(samples=2).value.dtype == torch.float32


@pytest.mark.parametrize("make", [lambda: make_dataset("node", "regression"), make_links])
def test_a_score_that_is_not_the_recorded_one_is_said(make, caplog: pytest.LogCaptureFixture) -> None:
    fitted = cognn.fit(make(), splits="0", **SMALL)
    evaluate(fitted)
    assert "recorded" not in caplog.text
    fitted.result["splits"][0]["test"] += 0.01
    evaluate(fitted, metric="rmse" if fitted.result["metric"] == "mae" else "average_precision")
    evaluate(fitted, samples=2)
    assert "recorded" not in caplog.text, "other scores than the recorded ones"
    evaluate(fitted)
    assert "split 0: test" in caplog.text
    assert "the training recorded" in caplog.text


def test_validation_items_that_can_choose_no_epoch_are_refused(tmp_path: Path) -> None:
    place, labels = torch.arange(20), torch.arange(20) % 2
    masks = {"train_mask": place < 10, "val_mask": (place >= 10) & (labels == 0), "test_mask": place >= 18}
    graph = ring(20, 2, **masks)
    with pytest.raises(ConfigError, match="splits: roc_auc of the 5 validation items of split 0 is not defined"):
        cognn.fit(graph, out=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()
    assert cognn.fit(graph, metric="accuracy", **SMALL).result["val"]["mean"] >= 0


def test_whole_numbers_as_features_are_not_guessed() -> None:
    graph = ring(20)
    graph.x = torch.arange(20).view(-1, 1)
    with pytest.raises(DataError, match=r"data: x holds integers, 0 to 19; if they are amounts give x.float\(\)"):
        cognn.fit(graph, **SMALL)
    graph.x = graph.x % 2
    assert cognn.fit(graph, **SMALL).dataset.x.unique().tolist() == [0, 1]


def test_the_spread_is_the_standard_deviation_over_draws() -> None:
    data = make_dataset("node", "multiclass")
    fitted = cognn.fit(data, splits="0", **SMALL)
    found = fitted.predict(samples=5).spread
    torch.manual_seed(fitted.seed(0))
    with torch.no_grad():  # as `predict` does it: the seed, the model, the draws
        model = fitted.model(0)
        draws = torch.stack([model(data.x, data.graphs[0], actions="sample").softmax(-1) for _ in range(5)])
    assert found.max() > 0
    torch.testing.assert_close(found, draws.std(0))


@pytest.mark.parametrize(("metric", "best"), [("accuracy", 1), ("mae", 0)])
def test_the_best_split_is_that_of_the_best_validation_score(metric: str, best: int, tmp_path) -> None:
    splits = [{"split": i, "val": val, "seed": i} for i, val in enumerate((0.2, 0.9, 0.5))]
    assert cognn.Fitted(tmp_path, None, {"metric": metric, "splits": splits}).best_split == best


def test_predictions_for_pyg_data_are_those_of_the_training_data() -> None:
    data = ring(30)
    fitted = cognn.fit(data, **SMALL)
    found = fitted.predict(data)
    assert torch.equal(found.value, fitted.predict().value)
    assert torch.equal(fitted.predict(Batch.from_data_list([data])).value, found.value)
    new = ring(12)
    del new.y
    assert fitted.predict(new, samples=2, actions=True).value.shape == (12, 3)
    both = fitted.predict([data, data]).value
    torch.testing.assert_close(both, torch.cat([found.value, found.value]))
    new.x = torch.ones(12, 5)
    with pytest.raises(DataError, match="data: 'x' has 5 features, the model was trained on 3"):
        fitted.predict(new)


def test_predictions_for_graphs_of_pyg() -> None:
    graphs = [
        Data(x=torch.randn(4, 3), edge_index=torch.randint(4, (2, 6)), y=torch.tensor([i % 2])) for i in range(20)
    ]
    fitted = cognn.fit(graphs, **SMALL)
    assert fitted.predict(graphs[0]).value.shape == (1, 2)
    torch.testing.assert_close(fitted.predict(graphs).value, fitted.predict().value)
    torch.testing.assert_close(fitted.predict(graphs[3:5]).value, fitted.predict().value[3:5])


def test_a_run_on_a_dataset_without_files_predicts_pyg_data_too() -> None:
    own = make_dataset("node", "multiclass")
    fitted = cognn.fit(own, splits=0, **SMALL)
    same = Data(x=own.x, edge_index=own.graphs[0].edge_index, y=own.y)
    torch.testing.assert_close(fitted.predict(same).value, fitted.predict().value)
    known = own.labelled(torch.arange(own.num_items))
    right = (fitted.predict().value.argmax(-1) == own.y)[known].double().mean()
    assert fitted.score(same) == pytest.approx(float(right))


def test_a_run_on_tables_predicts_tables(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,a,y\n" + "".join(f"{i},{i * 0.5},{'pq'[i % 2]}\n" for i in range(20)))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 20}\n" for i in range(20)))
    files = {"edges": tmp_path / "edges.csv"}
    fitted = cognn.fit(tmp_path / "nodes.csv", **files, target="y", directed=True, **SMALL)
    found = fitted.predict(tmp_path / "nodes.csv", **files)
    assert torch.equal(found.value, fitted.predict().value)
    with pytest.raises(DataError, match="data: the model was trained on tables"):
        fitted.predict(ring(5))
    with pytest.raises(DataError, match="no item has a target"):
        fitted.score(fitted.read(tmp_path / "nodes.csv", **files))


def test_scores_of_new_data() -> None:
    data = ring(30)
    fitted = cognn.fit(data, **SMALL)
    assert fitted.score() == pytest.approx(fitted.result["test"]["mean"])
    right = fitted.predict().value.argmax(-1) == data.y
    assert fitted.score(data) == pytest.approx(float(right.double().mean()))
    data.y[:10] = -1  # unlabelled
    assert fitted.score(data) == pytest.approx(float(right[10:].double().mean()))
    for wrong, message in ((7, "'y' holds class 7, unknown to the model"), (-1, "no item has a target")):
        data.y[:] = wrong
        with pytest.raises(DataError, match=message):
            fitted.score(data)
    values = ring(30)
    values.y = torch.randn(30, 2)
    fitted = cognn.fit(values, task="regression", **SMALL)
    error = (fitted.predict(values).value - values.y).abs().mean()
    assert fitted.score(values) == pytest.approx(float(error), abs=1e-6)
    values.y = values.y[:, :1]
    with pytest.raises(DataError, match="'y' has 1 columns, the model predicts 2"):
        fitted.score(values)


def test_class_codes_of_new_data_are_those_that_the_model_learned() -> None:
    data = ring(30)
    data.y = data.y * 2 + 1  # classes 1, 3, 5
    fitted = cognn.fit(data, **SMALL)
    score = float((fitted.predict().value.argmax(-1) * 2 + 1 == data.y).double().mean())
    assert fitted.score(data) == pytest.approx(score)
    some = ring(30)
    some.y = torch.full((30,), 5)  # of the three classes only one is there
    assert fitted.score(some) == pytest.approx(float((fitted.predict().value.argmax(-1) == 2).double().mean()))


def test_two_classes_have_two_columns(tmp_path: Path) -> None:
    fitted = cognn.fit(ring(20, 2), out=tmp_path / "run", **SMALL)
    assert fitted.dataset.task.kind == "binary"
    found = fitted.predict(samples=3)
    assert found.value.shape == found.spread.shape == (20, 2)
    torch.testing.assert_close(found.value.sum(1), torch.ones(20))
    again = cognn.open_run(tmp_path / "run", ring(20, 2))
    assert torch.equal(again.predict().value, found.value)
    model = fitted.model()
    with torch.no_grad():
        torch.testing.assert_close(model(fitted.dataset.x, fitted.dataset.graphs[0]).sigmoid(), found.value[:, 1:])


@pytest.mark.parametrize("env", [GATv2Conv, "GATv2Conv", lambda i, o: GATv2Conv(i, o, heads=2, concat=False)])
def test_layers_of_pyg(env, tmp_path: Path) -> None:
    data, state = ring(20), torch.get_rng_state()
    fitted = cognn.fit(data, out=tmp_path / "run", env=env, act=torch.nn.Mish(), **SMALL)
    torch.set_rng_state(state)
    assert isinstance(fitted.model().layers[0].conv, GATv2Conv)
    assert isinstance(fitted.model().act, torch.nn.Mish)
    assert fitted.predict(data).value.shape == (20, 3)
    code = f"import cognn; print(cognn.open_run({str(tmp_path / 'run')!r}).config.model.env)"
    code += "\nfrom cognn.train.build import build_model\nfrom tests.run.test_fit import ring\n"
    code += f"cognn.open_run({str(tmp_path / 'run')!r}, ring(20)).predict()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if callable(env) and env is not GATv2Conv:
        assert "exists only in the process that trained" in done.stderr.splitlines()[-1]
    else:
        assert (done.returncode, done.stdout) == (0, "GATv2Conv\n")


def test_layers_from_memory_stay_in_their_process() -> None:
    with pytest.raises(ConfigError, match="jobs: layers from memory cannot be handed to other processes; use jobs=1"):
        cognn.fit("cycles", env=lambda i, o: GATv2Conv(i, o), jobs=2, **SMALL)


def test_names_of_pyg_are_those_of_a_recipe() -> None:
    config = make_config(norm="batch_norm", pool="add", act="LeakyReLU").model
    assert (config.norm, config.pool, config.act) == ("batch", "sum", "leaky_relu")
    assert make_config(act=torch.nn.ReLU(), env=GATv2Conv).model.act == "relu"
    assert make_config(act="mish").model.act == "mish"


def test_errors_name_options_as_python_does(tmp_path: Path) -> None:
    data, out = ring(20), tmp_path / "run"
    cognn.fit(data, out=out, **SMALL)
    with pytest.raises(RunError) as caught:
        cognn.fit(data, out=out, **SMALL)
    assert (
        str(caught.value)
        == f"{out}: holds a run already; resume it with resume={str(out)!r}, or choose another out=..."
    )
    (tmp_path / "nodes.csv").write_text("id,y\n1,a\n2,b\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    with pytest.raises(DataError, match="Give directed=True, or directed=False to use every edge in both directions"):
        cognn.fit(tmp_path / "nodes.csv", edges=tmp_path / "edges.csv", target="y")
    with pytest.raises(DataError, match=r"Name it with target=\.\.\.; it has"):
        cognn.fit(tmp_path / "nodes.csv", edges=tmp_path / "edges.csv", directed=True, ignore="y")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("leave it out with --ignore when", "leave it out with ignore='when'"),
        ("say --task multiclass or --task regression", "say task='multiclass' or task='regression'"),
        ("Say --target, and --ignore the other", "Say target=..., and ignore=... the other"),
        ("; go on with --resume", "; go on with resume=..."),
        ("cognn train --resume a/b, or cognn.fit(resume='a/b')", "cognn.fit(resume='a/b'), or cognn.fit(resume='a/b')"),
        ("build it again with --like run", "build it again with --like run"),
        ("Say so with --edge-source and --edge-target; it", "Say so with edge_source=... and edge_target=...; it"),
    ],
)
def test_words_of_the_command_line(said: str, meant: str) -> None:
    with pytest.raises(RunError) as caught, python_words():
        raise RunError(said)
    assert str(caught.value) == meant


@pytest.mark.parametrize(("wrong", "near"), [("num_layer", "num_layers"), ("job", "jobs"), ("learning_rate", "lr")])
def test_an_unknown_option_gets_three_near_names(wrong: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"^{wrong}: unknown option; did you mean ") as caught:
        cognn.fit(ring(9), **{wrong: 1})
    assert str(caught.value).count(" or ") == 2
    assert near in str(caught.value) or wrong == "learning_rate"


def test_new_data_is_read_as_the_training_data_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, ends, y = rng.normal(size=(30, 3)).astype(np.float32), rng.integers(30, size=(2, 60)), rng.integers(2, size=30)
    np.savez(tmp_path / "g.npz", x=x, edge_index=ends, y=y)
    fitted = cognn.fit(tmp_path / "g.npz", directed=False, out=tmp_path / "run", **SMALL)
    one_way = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(ends))
    with pytest.raises(DataError, match=r"not listed in both directions; convert with torch_geometric.utils.to_und"):
        fitted.predict(one_way)
    for name, scale in (("train", 1.0), ("new", 9.0)):
        rows = "\n".join(f"{i},{scale * v:.4f},{'ab'[int(c)]}" for i, (v, c) in enumerate(zip(x[:, 0], y, strict=True)))
        (tmp_path / f"{name}.csv").write_text(f"id,size,y\n{rows}\n")
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{u},{v}" for u, v in ends.T))
    options = {"edges": tmp_path / "edges.csv", "target": "y", "directed": False}
    fitted = cognn.fit(tmp_path / "train.csv", out=tmp_path / "tables", **options, **SMALL)
    other = cognn.fit(tmp_path / "new.csv", out=tmp_path / "other", **options, **SMALL).dataset
    with pytest.raises(DataError, match="was read with its own categories, means and scales"):
        fitted.predict(other)


def test_numbers_of_numpy_are_options(tmp_path: Path) -> None:
    fitted = cognn.fit(ring(20), out=tmp_path, **SMALL | {"epochs": np.int64(1), "lr": np.float64(1e-3)})
    assert (fitted.config.train.epochs, fitted.config.train.lr) == (1, 1e-3)
