"""The table of heads: its controls differ from the recipe in what they are called, and are paired with it."""

import pytest
import torch

from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.experiments.tables import heads
from cognn.nn.action_network import ActionNetwork
from cognn.statistics.paired_gains import HEADS_TITLE
from cognn.train.build import build_model, freeze_actions, num_parameters
from tests.toy_runs import make_dataset

RECIPE = Config(
    DataConfig(dataset="cycles"),
    ModelConfig(
        action="mean",
        hidden_channels=8,
        num_layers=2,
        action_channels=8,
        action_space="factored",
        action_heads="channel",
        gates="continuous",
        action_sharing="per_layer",
    ),
    TrainConfig(epochs=2, eval_every=1),
)


@pytest.mark.parametrize("name", heads.CONTROLS)
def test_every_control_of_every_recipe_is_valid(name: str) -> None:
    for dataset in heads.SUBJECTS:
        config = heads.changed(load_recipe("heads", dataset, heads.MODEL), heads.CONTROLS[name])
        config.check()
        assert config != load_recipe("heads", dataset, heads.MODEL)
        assert config.model.acts == (not name.startswith("no actions"))


def test_the_wide_base_has_as_many_weights_and_not_many_more() -> None:
    dataset = make_dataset("node", "multiclass")
    wide = heads.widened(heads.changed(RECIPE, heads.PLAIN), RECIPE, dataset)
    narrower = heads.changed(wide, {"hidden_channels": wide.model.hidden_channels - 4})
    sizes = [num_parameters(build_model(config.model, dataset)) for config in (narrower, RECIPE, wide)]
    assert sizes[0] < sizes[1] <= sizes[2]


def test_frozen_gates_differ_between_nodes_and_are_not_trained() -> None:
    dataset = make_dataset("node", "multiclass")
    model = build_model(RECIPE.model, dataset)
    freeze_actions(model)
    _, trace = model(dataset.x, dataset.graphs[0], return_trace=True)
    assert trace.probs.std(1).min() > 0
    networks = [part for part in model.modules() if isinstance(part, ActionNetwork)]
    assert len(networks) == 2
    assert not any(parameter.requires_grad for part in networks for parameter in part.parameters())


def test_the_table_compares_every_control_with_the_heads(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(heads, "SUBJECTS", {"cycles": heads.Subject("heterophilic", "MeanGNN", "Co-GNN(mean, mean)")})
    monkeypatch.setattr(heads, "load_recipe", lambda *_: RECIPE)
    runner = ExperimentRunner("heads", "smoke", Limits(), tmp_path / "out", tmp_path / "work")
    heads.run(runner)
    assert [row["compared with"] for row in runner.facts[HEADS_TITLE]] == list(heads.CONTROLS)
    assert {run["model"] for run in runner.runs} == {heads.MODEL, *heads.CONTROLS}
    bias = {run["config"]["model"]["standard_bias"] for run in runner.runs if run["model"] == heads.RANDOM}
    (bias,) = bias
    kept = heads.kept_share(runner.fitted(heads.TableCell("cycles", heads.MODEL, RECIPE)), "expected")
    assert torch.sigmoid(torch.tensor(bias)).item() ** 2 == pytest.approx(kept, abs=0.01)
