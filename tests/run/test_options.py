"""Options of training that change what is learned: frozen actions, a price on edges, dropped edges."""

import pytest
import torch

from cognn import Graph, fit
from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.data.sampling.batches import Batch
from cognn.errors import ConfigError
from cognn.files.tensors import load_tensors
from cognn.train.batcher import Batcher, drop_edges
from cognn.train.build import build_model
from tests.toy_runs import make_dataset

TINY = {"hidden_channels": 8, "num_layers": 2, "splits": "0"}


def test_frozen_actions_stay_as_they_were_drawn_and_the_rest_learns(tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    trained, frozen = (fit(dataset, out=tmp_path / str(i), epochs=3, freeze_actions=i == 1, **TINY) for i in (0, 1))
    torch.manual_seed(0)
    start = build_model(frozen.config.model, dataset).state_dict()
    moved = {key: not torch.equal(start[key], value) for key, value in frozen.model(0).state_dict().items()}
    acts = {key for key in moved if key.startswith(("action_network", "temperature"))}
    assert acts
    assert not any(moved[key] for key in acts)
    assert moved["encoder.weight"]
    assert any(not torch.equal(start[key], trained.model(0).state_dict()[key]) for key in acts)


def test_a_price_on_edges_makes_nodes_keep_fewer(tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    kept = []
    for price in (0.0, 10.0):
        fitted = fit(dataset, out=tmp_path / str(price), epochs=60, edge_price=price, lr=3e-2, **TINY)
        model = fitted.model(0).train()
        _, trace = model(dataset.x, dataset.graphs[0], return_trace=True)
        kept.append(float(trace.expected_kept().mean().detach()))
    assert kept[1] < kept[0] - 0.2


@pytest.mark.parametrize("space", ["joint", "edge"])
@pytest.mark.parametrize("budget", [0.2, 0.7])
def test_a_budget_holds_the_expected_share_of_edges(space: str, budget: float, tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    options = TINY | {"epochs": 200, "action_space": space, "lr": 1e-2}
    fitted = fit(dataset, out=tmp_path / "run", edge_budget=budget, **options)
    model = build_model(fitted.config.model, dataset).train()
    state = load_tensors(tmp_path / "run" / "split-0" / "last" / "state.safetensors")[0]
    model.load_state_dict({k.removeprefix("model/"): v for k, v in state.items() if k.startswith("model/")})
    _, trace = model(dataset.x, dataset.graphs[0], return_trace=True)
    assert float(trace.expected_kept().mean().detach()) == pytest.approx(budget, abs=0.06)


def test_a_budget_and_its_bounds() -> None:
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ConfigError, match="edge_budget: expected a share from 0 to 1"):
            Config(train=TrainConfig(edge_budget=wrong)).check()
    with pytest.raises(ConfigError, match="edge_budget, edge_price: both set a price on edges"):
        Config(train=TrainConfig(edge_budget=0.5, edge_price=0.1)).check()


@pytest.mark.parametrize("model", ["cognn", "gat"])
def test_dropped_edges_change_what_is_learned_but_not_how_it_is_scored(model: str, tmp_path) -> None:
    dataset = make_dataset("graph", "multiclass", edges=True)
    options = {**TINY, "epochs": 2, "model": model, "batch_size": 8}
    runs = [fit(dataset, out=tmp_path / str(p), drop_edge=p, **options) for p in (0.0, 0.5)]
    weights = [run.model(0).state_dict() for run in runs]
    assert any(not torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_options_for_actions_are_refused_without_actions() -> None:
    for name, value in {
        "edge_price": 1.0,
        "edge_budget": 0.5,
        "freeze_actions": True,
        "actions": "sample",
        "samples": 4,
    }.items():
        for model in (ModelConfig(action="none"), ModelConfig(model="gcn")):
            with pytest.raises(ConfigError, match=f"^{name}: requires a model whose nodes choose actions"):
                Config(model=model, train=TrainConfig(**{name: value})).check()
        Config(train=TrainConfig(**{name: value})).check()
    with pytest.raises(ConfigError, match=r"drop_edge: expected 0 or more and below 1, got 1\.0"):
        Config(train=TrainConfig(drop_edge=1.0)).check()


@pytest.mark.parametrize("level", ["node", "graph"])
def test_every_draw_of_a_step_sees_all_training_items(level: str) -> None:
    dataset = make_dataset(level, "multiclass", edges=True)
    train = dataset.splits[0].train
    batcher = Batcher(dataset, len(train), torch.device("cpu"))
    (once,) = batcher.train_batches(train)
    (thrice,) = Batcher(dataset, len(train), batcher.device).train_batches(train, draws=3)
    assert torch.equal(thrice.batch.items[thrice.rows].bincount(), 3 * once.batch.items[once.rows].bincount())
    model = build_model(ModelConfig(action="none", hidden_channels=8, dropout=0.0), dataset)
    outs = []
    for batch, rows, _ in (once, thrice):
        outs.append(model(batch.x, batch.graph, batch.edge_attr)[rows][batch.items[rows].argsort()])
    torch.testing.assert_close(outs[1], outs[0].repeat_interleave(3, 0))


def test_several_draws_change_what_is_learned_only_where_something_is_drawn(tmp_path) -> None:
    dataset = make_dataset("graph", "multiclass")
    for action, same in (("none", True), ("mean", False)):
        options = TINY | {"epochs": 2, "action": action, "dropout": 0.0, "batch_size": 64}
        runs = [fit(dataset, out=tmp_path / f"{action}{k}", draws=k, **options).model(0).state_dict() for k in (1, 4)]
        assert all(torch.allclose(runs[0][key], runs[1][key], atol=1e-5) for key in runs[0]) is same


def test_the_share_of_dropped_edges_and_whose_features_stay() -> None:
    torch.manual_seed(0)
    edge_index = torch.randint(50, (2, 4000))
    batch = Batch(torch.ones(50, 1), Graph(edge_index, 50), torch.arange(4000.0).unsqueeze(1), torch.arange(50))
    left = drop_edges(batch, 0.1)
    assert left.graph.num_edges / 4000 == pytest.approx(0.9, abs=0.03)
    assert torch.equal(left.graph.edge_index, edge_index[:, left.edge_attr.squeeze(1).long()])
