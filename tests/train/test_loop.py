import json
import math
from dataclasses import replace

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from cognn.core.graph import Graph
from cognn.data.sampling.batches import GraphCollator
from cognn.errors import ConfigError, Diverged, RunError
from cognn.files.tensors import load_tensors
from cognn.run import train as run
from cognn.run.evaluate import evaluate
from cognn.run.fit import fit, open_run
from cognn.run.log_tail import LogTail
from cognn.train import loop, metrics
from cognn.train.loop import learning_rate
from tests.toy_runs import KINDS, batches, make_dataset, same, small, weights


@pytest.mark.parametrize("loops", [True, False])
def test_batches_equal_graphs_joined_anew(loops: bool) -> None:
    dataset = make_dataset("graph", "binary", edges=True, loops=loops)
    batches, starts, edge_starts = GraphCollator(dataset), [0], [0]
    for graph in dataset.graphs:
        starts.append(starts[-1] + graph.num_nodes)
        edge_starts.append(edge_starts[-1] + graph.num_edges)
    for items in (torch.tensor([3]), torch.tensor([5, 0, 39, 7]), torch.arange(40), torch.tensor([2, 2])):
        got = batches.collate(items)
        fresh = Graph.cat([dataset.graphs[i] for i in items])
        for one, other in ((got.graph, fresh), (got.graph.loopless, fresh.loopless)):
            for name in (
                "in_ptr",
                "in_sender",
                "in_receiver",
                "in_edge",
                "out_ptr",
                "out_receiver",
                "out_slot",
                "ones",
            ):
                assert torch.equal(getattr(one, name), getattr(other, name)), name
        assert torch.equal(got.graph.edge_index, fresh.edge_index)
        assert torch.equal(got.graph.batch, fresh.batch)
        assert got.graph.num_graphs == len(items)
        assert torch.equal(got.x, torch.cat([dataset.x[starts[i] : starts[i + 1]] for i in items]))
        attr = torch.cat([dataset.edge_attr[edge_starts[i] : edge_starts[i + 1]] for i in items])
        assert torch.equal(got.edge_attr, attr)


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_trains_and_sums_up(level: str, kind: str, tmp_path) -> None:
    dataset = make_dataset(level, kind, edges=True)
    dataset.y[0] = -1 if kind == "multiclass" else float("nan")  # an item without a target
    config = small(**batches(level))
    run.create_run(config, tmp_path, dataset)
    summary = run.train_run(tmp_path, dataset=dataset)
    assert summary["metric"] == KINDS[kind][0]
    assert [result["split"] for result in summary["splits"]] == [0, 1]
    for index in (0, 1):
        lines = [json.loads(line) for line in (tmp_path / f"split-{index}" / "metrics.jsonl").read_text().splitlines()]
        assert [line["epoch"] for line in lines] == list(range(1, 7))
        assert all(math.isfinite(line["loss"]) for line in lines)
        best = (min if kind == "regression" else max)(lines, key=lambda line: line["val"])
        assert summary["splits"][index]["best_epoch"] == best["epoch"]
        assert summary["splits"][index]["test"] == best["test"]
    tests = torch.tensor([result["test"] for result in summary["splits"]], dtype=torch.float64)
    assert summary["test"]["mean"] == pytest.approx(tests.mean().item())
    assert summary["test"]["std"] == pytest.approx(tests.std().item())


def test_learning_actually_happens(tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    dataset.x = torch.nn.functional.one_hot(dataset.y, 4).float()
    run.create_run(small(epochs=60, lr=0.01, splits="0"), tmp_path, dataset)
    assert run.train_run(tmp_path, dataset=dataset)["test"]["mean"] > 0.9


def test_schedules_step_by_epoch() -> None:
    rates = lambda **kwargs: [learning_rate(small(lr=1.0, epochs=10, **kwargs).train, e) for e in range(10)]  # noqa: E731
    assert rates() == [1.0] * 10
    assert rates(schedule="step", step_size=4, gamma=0.5) == [1.0] * 4 + [0.5] * 4 + [0.25] * 2
    cosine = rates(schedule="cosine", warmup_epochs=2)
    assert cosine[:3] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert cosine[2:] == sorted(cosine[2:], reverse=True)
    assert cosine[-1] == pytest.approx((1 + math.cos(math.pi * 7 / 8)) / 2)


def test_the_test_labels_decide_nothing(tmp_path) -> None:
    states = []
    for change in (False, True):
        dataset = make_dataset("node", "binary")
        if change:
            test = dataset.splits[0].test
            dataset.y[test] = 1 - dataset.y[test]
        folder = tmp_path / str(change)
        run.create_run(small(splits="0"), folder, dataset)
        result = run.train_run(folder, dataset=dataset)["splits"][0]
        states.append((weights(folder), result["best_epoch"], result["val"]))
    assert same(states[0][0], states[1][0])
    assert states[0][1:] == states[1][1:]


def test_early_stopping_and_evaluation_every_few_epochs(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=200, patience=10, eval_every=5, splits="0", lr=0.05), tmp_path, dataset)
    result = run.train_run(tmp_path, dataset=dataset)["splits"][0]
    assert result["epochs"] - result["best_epoch"] == 10
    assert result["best_epoch"] % 5 == 0
    assert result["epochs"] < 200


@pytest.mark.parametrize(
    ("text", "expected"), [("", [0, 1, 2]), ("1", [1]), ("0-1", [0, 1]), ("2,0", [0, 2]), ("0-1,1-2", [0, 1, 2])]
)
def test_splits(text: str, expected: list[int]) -> None:
    assert run.parse_numbers("splits", text, 3) == expected


@pytest.mark.parametrize("text", ["3", "0-3", "0-", "a", "1-b", "-1", ",", "2-1"])
def test_bad_splits(text: str) -> None:
    with pytest.raises(ValueError, match=r"^splits: "):
        run.parse_numbers("splits", text, 3)


@pytest.mark.filterwarnings("ignore:You passed .*16-mixed")  # and get bf16, which Fabric tells the user
@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed", "16-mixed"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_precisions_train_and_are_scored_alike_later(level: str, kind: str, precision: str, tmp_path) -> None:
    dataset = make_dataset(level, kind, edges=True)
    fitted = fit(dataset, tmp_path / "run", epochs=2, splits="0", precision=precision, **batches(level))
    assert math.isfinite(fitted.result["val"]["mean"])
    assert evaluate(fitted)["val"]["mean"] == pytest.approx(fitted.result["val"]["mean"], rel=1e-6)


def test_batch_norm_of_a_single_node_is_refused_in_words(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    options = {"norm": "batch", "norm_first": False, "neighbors": "1", "batch_size": 1}
    with pytest.raises(RunError, match="norm: batch needs mini-batches of two nodes and more; use norm=layer"):
        fit(dataset, tmp_path / "run", epochs=3, splits="0", drop_edge=0.9, **options)


def test_a_dataset_without_splits_is_not_trained_on(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    dataset.splits = []
    with pytest.raises(ConfigError, match="splits: the dataset has none"):
        run.create_run(small(), tmp_path / "run", dataset)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_finite_ends_the_run_at_once_and_keeps_the_last_good_state(tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "regression")
    run.create_run(small(epochs=20, eval_every=10, splits="0"), tmp_path, dataset)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    real, calls = metrics.loss, []

    def loss(*args) -> torch.Tensor:
        calls.append(args)
        return real(*args) * (math.nan if len(calls) == 5 else 1)

    monkeypatch.setattr(metrics, "loss", loss)
    with pytest.raises(Diverged, match="split 0: the loss is nan at epoch 5; lower lr or set clip"):
        run.train_run(tmp_path, dataset=dataset)
    tensors, facts = load_tensors(tmp_path / "split-0" / "last" / "state.safetensors")
    assert facts["progress"]["epoch"] == 4
    assert all(value.isfinite().all() for value in tensors.values())
    assert run.train_run(tmp_path, dataset=dataset)["splits"][0]["epochs"] == 20


@pytest.mark.parametrize(("every", "what"), [(10, "a weight"), (1, "an output")])
def test_what_is_not_finite_is_named_and_not_saved(every: int, what: str, tmp_path, monkeypatch) -> None:
    dataset, steps = make_dataset("node", "regression"), []
    run.create_run(small(epochs=20, eval_every=every, splits="0"), tmp_path, dataset)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    def spoil(optimizer, *_) -> None:
        steps.append(optimizer)
        if len(steps) == 3:
            optimizer.param_groups[0]["params"][0].data.view(-1)[0] = math.inf

    hook = register_optimizer_step_post_hook(spoil)
    try:
        with pytest.raises(Diverged, match=f"split 0: {what} is not finite after epoch 3; lower lr or set clip"):
            run.train_run(tmp_path, dataset=dataset)
    finally:
        hook.remove()
    tensors, facts = load_tensors(tmp_path / "split-0" / "last" / "state.safetensors")
    assert facts["progress"]["epoch"] == 2
    assert all(value.isfinite().all() for value in tensors.values())


def test_steps_are_taken_as_the_options_say(tmp_path) -> None:
    steps = []

    def look(optimizer, *_) -> None:
        (group,) = optimizer.param_groups
        norm = torch.cat([p.grad.flatten() for p in group["params"] if p.grad is not None]).norm()
        steps.append((type(optimizer).__name__, group["lr"], group["weight_decay"], float(norm)))

    options = {"schedule": "step", "step_size": 1, "gamma": 0.5, "optimizer": "adamw", "weight_decay": 0.25}
    hook = register_optimizer_step_pre_hook(look)
    try:
        dataset = make_dataset("node", "binary")
        run.create_run(small(splits="0", epochs=3, lr=0.1, clip=1e-3, **options), tmp_path, dataset)
        run.train_run(tmp_path, dataset=dataset)
    finally:
        hook.remove()
    kinds, rates, decays, norms = zip(*steps, strict=True)
    assert all("AdamW" in kind for kind in kinds)
    assert rates == pytest.approx([0.1, 0.05, 0.025])
    assert set(decays) == {0.25}
    assert max(norms) <= 1.001e-3


def test_the_seed_says_where_it_starts_and_the_log_how_many_edges_are_kept(tmp_path) -> None:
    dataset, starts = make_dataset("node", "binary"), []
    for seed in (0, 1):
        fitted = fit(dataset, tmp_path / str(seed), splits="0", seed=seed, epochs=1, hidden_channels=8, num_layers=2)
        starts.append(fitted.model(0).encoder.weight)
    assert not torch.equal(*starts)
    line = json.loads((tmp_path / "1" / "split-0" / "metrics.jsonl").read_text())
    trace = fitted.model(0)(dataset.x, dataset.graphs[0], actions="argmax", return_trace=True)[1]
    assert 0 < line["kept"] < 1, "else its complement would do as well"
    assert line["kept"] == pytest.approx(float(trace.kept_ratio().mean()))


def test_what_is_not_defined_is_null_in_files_and_nan_in_python(tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    dataset.splits[0] = replace(dataset.splits[0], test=torch.empty(0, dtype=torch.long))
    run.create_run(small(splits="0", epochs=2), tmp_path, dataset)
    assert math.isnan(run.train_run(tmp_path, dataset=dataset)["test"]["mean"])
    assert math.isnan(run.train_run(tmp_path, dataset=dataset)["splits"][0]["test"])  # read, not trained
    assert math.isnan(open_run(tmp_path).result["test"]["mean"])
    assert math.isnan(LogTail(tmp_path / "split-0" / "metrics.jsonl", True).read()[-1][0].test)
    for name in ("result.json", "split-0/result.json", "split-0/metrics.jsonl"):
        text = (tmp_path / name).read_text()
        assert "null" in text
        assert "NaN" not in text
