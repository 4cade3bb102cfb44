"""Heads in compiled, checkpointed and half-precision models: the same numbers, once for all layers."""

import copy

import pytest
import torch

from cognn import CoGNN, Graph
from cognn.nn import compiling
from cognn.nn.action_network import ActionNetwork

CHANNELS = {
    "action_heads": "channel",
    "gates": "continuous",
    "action_sharing": "per_layer",
    "action_space": "factored",
}
HEADS = [
    pytest.param(CHANNELS | {"mean_over": "all"}, id="channels, mean over all"),
    pytest.param(CHANNELS, id="channels, mean over kept"),
    pytest.param({"action_heads": 4, "action_space": "factored"}, id="4 heads, drawn"),
    pytest.param({"action_heads": 4, "action_space": "joint"}, id="4 heads, drawn jointly"),
]
NEEDS_COMPILER = pytest.mark.skipif(not compiling.can_compile(), reason="there is no C++ compiler here")


def _board(nodes: int) -> tuple[torch.Tensor, Graph]:
    torch.manual_seed(0)
    return torch.randn(nodes, 5), Graph(torch.randint(nodes, (2, 4 * nodes)), nodes)


def _twins(options: dict[str, object], num_layers: int = 3) -> tuple[CoGNN, CoGNN]:
    torch.manual_seed(0)
    usual = {"action": "mean", "action_channels": 6, "dropout": 0.3, "standard_bias": 1.0}
    plain = CoGNN(5, 16, out_channels=3, num_layers=num_layers, **usual | options).train()
    for part in plain.modules():
        if isinstance(part, ActionNetwork):
            part.randomise()  # at the start all nodes would have the same gates
    return plain, copy.deepcopy(plain)


def _results(net: CoGNN, x: torch.Tensor, graph: Graph) -> list[torch.Tensor]:
    torch.manual_seed(1)
    out = net(x, graph)
    return [out, *torch.autograd.grad(out.pow(2).mean(), list(net.parameters()))]


@NEEDS_COMPILER
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler asks for it, and hides that it did
@pytest.mark.parametrize("options", [HEADS[0], HEADS[2]])
def test_compiled_once_for_all_layers_and_sizes_with_the_same_results(options: dict[str, object]) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain, fast = _twins(options, num_layers=compiling.TOGETHER + 1)  # too deep to be compiled as one function
    fast.compiled = True
    for nodes in (40, 30, 90):
        case = _board(nodes)
        for one, other in zip(_results(plain, *case), _results(fast, *case), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # enter, and one for all layers
    assert not torch._dynamo.utils.counters["graph_break"]
    torch._dynamo.reset()


@pytest.mark.parametrize("options", [HEADS[1], HEADS[3]])
def test_a_whole_model_has_no_graph_break_and_the_same_values_and_gradients(options: dict[str, object]) -> None:
    torch._dynamo.reset()
    net, _ = _twins(options, num_layers=2)
    whole = torch.compile(net, backend="aot_eager", fullgraph=True)
    case = _board(30)
    for one, other in zip(_results(net, *case), _results(whole, *case), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()


@pytest.mark.parametrize("options", HEADS)
def test_checkpointing_changes_no_bit(options: dict[str, object]) -> None:
    plain, frugal = _twins(options)
    frugal.checkpoint = True
    case = _board(30)
    for one, other in zip(_results(plain, *case), _results(frugal, *case), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("options", HEADS)
def test_half_precision_runs_and_stays_near(options: dict[str, object]) -> None:
    net, _ = _twins(options)
    net.eval()
    x, graph = _board(30)
    exact = net(x, graph, actions="expected")
    with torch.autocast("cpu", torch.bfloat16):
        near = net(x, graph, actions="expected")
    torch.testing.assert_close(near.float(), exact, rtol=0.1, atol=0.1)
    net.train()
    with torch.autocast("cpu", torch.bfloat16):
        loss = net(x, graph).float().pow(2).mean()
    loss.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in net.parameters())
