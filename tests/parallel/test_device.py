"""``--device``: which there are, and that a model computes on its own, without a tensor on another.

There is no GPU here.  The same code runs on the ``meta`` device, whose tensors have no values, and every operation is
watched: one that reads or makes a tensor on the CPU fails the test.
"""

import json
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import cognn
from cognn import CoGNN, Graph
from cognn.cli.main import main
from cognn.config.options import TrainConfig
from cognn.core.relations.structure import Relation
from cognn.data.store.store import open_store
from cognn.errors import ConfigError
from cognn.inference.blocks import BlockCutter
from cognn.nn import checks
from cognn.nn.layers import LAYERS
from cognn.parallel.devices import find_device, make_fabric
from cognn.train.batcher import Batcher
from cognn.train.build import build_model
from tests.toy_runs import make_dataset, small

OPTIONS: list[dict] = [
    {"action_heads": 4, "gates": "continuous"},
    {"edge_dim": 2, "pool": "mean", "action_space": "factored"},
    {"action_space": "edge", "norm": "batch", "input_dropout": 0.1},
    {"num_relations": 3, "directions": "both"},
]


class OnlyMeta(TorchDispatchMode):
    """Refuses operations on tensors of another device, and those that make one."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves((args, kwargs, out)):
            assert not isinstance(tensor, torch.Tensor) or tensor.is_meta, f"{func} on {tensor.device}"
        return out


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("env", LAYERS)
def test_a_pass_on_a_device_stays_there(env: str, options: dict, monkeypatch) -> None:
    monkeypatch.setattr(checks, "finite", lambda *_: None)  # tensors on meta have no values
    monkeypatch.setattr(checks, "_once", lambda *_: None)
    count = options.get("num_relations", 1)
    graph = Graph(torch.randint(8, (2, 30)), 9, torch.randint(count, (30,)), count).to("meta")
    relations = (Relation(graph),) * 2 * count  # their sizes depend on values
    monkeypatch.setattr("cognn.nn.layers.relational.relations", lambda *_: relations)
    with torch.device("meta"):
        model = CoGNN(5, 8, out_channels=3, num_layers=2, env=env, **options)
        x, attr = torch.randn(9, 5), torch.randn(30, 2) if "edge_dim" in options else None
        batch = torch.zeros(9, dtype=torch.long)
    graph.sorted = not model.relations.stacked  # a stack depends on values, too
    with OnlyMeta():
        for training in (True, False):
            out = model.train(training)(x, graph, attr, batch, num_graphs=1)
            out.sum().backward()
        with pytest.raises(AssertionError, match=r"aten.ones.default on cpu"):
            x + torch.ones(9, 5)
    assert all(p.grad.is_meta for p in model.parameters() if p.grad is not None)


def test_batches_and_blocks_of_a_store_are_made_on_the_device(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for level in ("node", "graph"):
        items = Batcher(make_dataset(level, "binary", edges=True), 8, torch.device("meta"))
        for batch in items.all_batches():
            tensors = [batch.x, batch.edge_attr, *(getattr(batch.graph, name) for name in Graph._tensors)]
            assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert main(["data", "build", "minesweeper-board", "--out", "store"]) == 0
    block = BlockCutter(open_store("store"), 1 << 20, 8, 0, torch.device("meta")).with_edges(0)
    assert block.adjacency.device.type == "meta"
    assert block.nodes.device.type == "cpu"


def test_a_device_that_is_not_there_is_one_line(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    if not torch.cuda.is_available():
        for words in (["train", "minesweeper-board", "--epochs", "1"], ["predict", "run"], ["evaluate", "run"]):
            cognn.fit("minesweeper-board", "run", epochs=1, num_layers=1, splits="0") if not Path("run").exists() else 0
            assert main([*words, "--device", "cuda"]) == 2
            assert "device: cuda is not there, this PyTorch finds" in capsys.readouterr().err.splitlines()[-1]
    assert main(["report", "run", "--device", "tpu"]) == 2
    assert capsys.readouterr().err == "cognn: device: expected cpu, cuda, mps or auto, got 'tpu'\n"


def test_auto_is_the_best_there_is(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("auto").type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert find_device("auto") == torch.device("cuda", 0)
    assert find_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ConfigError, match="there is no cuda:2, but 2 of them"):
        find_device("cuda:2")
    for wrong in ("cpu:1", "gpu", "cuda:x", ""):
        with pytest.raises(ConfigError, match="device: expected cpu, cuda, mps or auto"):
            find_device(wrong)


def test_the_name_of_version_0_1_still_means_it(tmp_path: Path) -> None:
    dataset = make_dataset("node", "binary")
    cognn.fit(dataset, tmp_path / "run", accelerator="cpu", epochs=1, num_layers=1)
    config = tmp_path / "run" / "config.toml"
    assert 'device = "cpu"' in config.read_text()
    config.write_text(config.read_text().replace('device = "cpu"', 'accelerator = "cpu"'))
    assert cognn.open_run(tmp_path / "run", dataset).config.train.device == "cpu"
    assert make_fabric(TrainConfig(device="cpu")).device.type == "cpu"
    assert main(["train", "cycles", "--accelerator", "tpu", "--out", str(tmp_path / "new")]) == 2


def test_predictions_are_of_the_device_of_the_run_and_on_the_cpu(tmp_path: Path) -> None:
    dataset = make_dataset("node", "binary")
    fitted = cognn.fit(dataset, tmp_path / "run", epochs=1, num_layers=1)
    again = cognn.open_run(tmp_path / "run", dataset, device="auto")
    assert next(again.model().parameters()).device == find_device("auto")
    torch.testing.assert_close(again.predict(samples=2).spread, fitted.predict(samples=2).spread)
    assert json.loads((tmp_path / "run" / "result.json").read_text())
    assert build_model(small().model, dataset)
