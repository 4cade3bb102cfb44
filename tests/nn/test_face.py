"""The model as a PyG user types it."""

from inspect import signature

import pytest
import torch

from cognn import CoGNN


def test_options_are_named_and_the_error_shows_the_call() -> None:
    with pytest.raises(TypeError) as caught:
        CoGNN(7, 32, 2, 3)  # type: ignore[misc,call-arg]
    assert str(caught.value) == (
        "CoGNN: takes in_channels and hidden_channels by position and all else by name, got 4 positional arguments;"
        " write CoGNN(7, 32, out_channels=..., num_layers=...)"
    )
    assert CoGNN(in_channels=7, hidden_channels=32, out_channels=2, num_layers=3).num_layers == 3
    kinds = {p.name: p.kind.name for p in signature(CoGNN).parameters.values()}
    assert {kinds.pop("in_channels"), kinds.pop("hidden_channels")} == {"POSITIONAL_OR_KEYWORD"}
    assert set(kinds.values()) == {"KEYWORD_ONLY"}


@pytest.mark.parametrize(
    ("wrong", "near"), [("droput", "dropout"), ("activation", "action"), ("num_layer", "num_layers"), ("zz", "")]
)
def test_an_unknown_option_gets_the_nearest_names(wrong: str, near: str) -> None:
    with pytest.raises(TypeError, match=f"^CoGNN: unknown option '{wrong}'; did you mean .*{near}.*?$") as caught:
        CoGNN(7, 32, out_channels=2, num_layers=3, **{wrong: 1})
    assert str(caught.value).count(" or ") == 2


def case(nodes: int = 40, edges: int = 160) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(nodes, 7, generator=rng), torch.randint(nodes, (2, edges), generator=rng)


def net(*, seed: int = 0, **options) -> CoGNN:
    torch.manual_seed(seed)
    return CoGNN(options.pop("in_channels", 7), 8, **{"out_channels": 3, "num_layers": 2} | options)


def test_evaluation_is_deterministic_and_training_samples() -> None:
    x, edge_index = case()
    model = net(dropout=0.0)
    assert not torch.equal(model(x, edge_index), model(x, edge_index))
    model.eval()
    assert torch.equal(model(x, edge_index), model(x, edge_index))
    assert torch.equal(model(x, edge_index), model(x, edge_index, actions="argmax"))
    assert not torch.equal(model(x, edge_index, actions="sample"), model(x, edge_index, actions="sample"))
    assert model(x, edge_index, samples=4).std.max() > 0


@pytest.mark.parametrize("mode", ["argmax", "expected", "sample"])
def test_how_nodes_act_in_evaluation_is_an_option(mode: str) -> None:
    x, edge_index = case()
    model = net(eval_actions=mode).eval()
    draws = [torch.Generator().manual_seed(5) for _ in range(2)]
    one, other = (
        model(x, edge_index, actions=given, generator=g) for given, g in zip((None, mode), draws, strict=True)
    )
    assert torch.equal(one, other)
    assert torch.equal(model(x, edge_index), model(x, edge_index)) == (mode != "sample")
    with pytest.raises(ValueError, match="eval_actions: expected one of 'sample', 'argmax', 'expected', got 'mean'"):
        net(eval_actions="mean")


def test_a_model_without_actions_needs_none_in_evaluation() -> None:
    x, edge_index = case()
    assert net(action=None).eval()(x, edge_index).shape == (40, 3)
