import pytest
import torch

from cognn import CoGNN, Gates, Graph
from cognn.nn.actions import JOINT
from cognn.nn.hearing import Hearing
from cognn.nn.layers import LAYERS
from tests.conftest import random_case


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("name", LAYERS)
def test_a_compiled_layer_has_no_graph_break_and_the_same_values_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    case, layer = random_case(0, layers=1, dtype=torch.float32), LAYERS[name](5, 12)
    compiled, graph, results = torch.compile(layer, backend="aot_eager", fullgraph=True), Graph(case.edge_index, 9), []
    torch.testing.assert_close(compiled(case.x, Hearing(graph)), layer(case.x, Hearing(graph)), rtol=1e-5, atol=1e-5)
    for run in (layer, compiled):
        gates = Gates(*(gate.requires_grad_() for gate in JOINT.force(case.actions[0], torch.float32).gates))
        out = run(case.x, Hearing(graph, gates))
        results.append([out, *torch.autograd.grad(out.pow(2).sum(), [*gates, *layer.parameters()])])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("space", ["joint", "factored"])
def test_a_compiled_model_draws_the_same_actions_and_dropout(space: str) -> None:
    case = random_case(1, dtype=torch.float32)
    torch.manual_seed(0)
    net = CoGNN(5, 8, out_channels=3, num_layers=2, action_layers=2, action_space=space).train()
    compiled, graph, results = torch.compile(net, backend="aot_eager", fullgraph=True), Graph(case.edge_index, 9), []
    for run in (net, compiled):
        torch.manual_seed(1)
        out = run(case.x, graph)
        results.append([out, *torch.autograd.grad(out.pow(2).sum(), list(net.parameters()))])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_a_compiled_model_takes_a_plain_edge_index_too() -> None:
    case = random_case(2, dtype=torch.float32)
    net = CoGNN(5, 8, out_channels=3, num_layers=2, action_layers=2).eval()
    compiled = torch.compile(net, backend="aot_eager")
    out = compiled(case.x, case.edge_index, actions="argmax")
    torch.testing.assert_close(out, net(case.x, case.edge_index, actions="argmax"))
