"""The kernels by gather and scatter give what the sparse ones give, with the same gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn import CoGNN, Graph
from cognn.core import kernels, ops
from cognn.core.edge_list import EdgeList
from cognn.nn.layers import LAYERS
from tests.conftest import Case, cases


@given(case=cases(), width=st.sampled_from([None, 1, 4]), seed=st.integers(0, 9))
def test_products_maxima_and_their_gradients(case: Case, width: int | None, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    graph = Graph(case.edge_index, case.num_nodes)
    shape = (case.num_nodes,) if width is None else (case.num_nodes, width)
    x, other = (torch.randn(shape, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(2))
    weight = torch.rand(graph.num_edges, generator=rng, dtype=torch.float64).requires_grad_()
    attr = torch.randn(graph.num_edges, 2, generator=rng, dtype=torch.float64).requires_grad_()
    gates = torch.rand(2, case.num_nodes, generator=rng, dtype=torch.float64).requires_grad_()
    results = []
    for devices in (kernels.SPARSE_DEVICES, ()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "SPARSE_DEVICES", devices)
            heard = ops.heard(graph, x, *gates, weight)
            dots, sums = ops.edge_dot(graph, x, other), ops.edge_sum(graph, attr, weight)
            total = heard.square().sum() + dots.square().sum() + sums.square().sum()
            grads = torch.autograd.grad(total, [x, other, weight, attr, gates])
            results.append([heard, dots, sums, ops.heard_max(graph, attr, *gates), *grads])
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two)


def random_weights(model: CoGNN) -> CoGNN:
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.5)
    return model.eval()


OPTIONS: list[dict] = [
    {},
    {"gates": "continuous", "action_heads": 4},
    {"edge_dim": 2, "action_heads": 2, "action_space": "factored"},
    {"edge_categories": [3, 2], "jk": "cat"},
    {"num_relations": 3, "directions": "both"},
    {"num_relations": 5, "relation_actions": "shared", "action_heads": 2},
    {"action_space": "edge"},
    {"action": None},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("env", LAYERS)
@torch.no_grad()
def test_a_model_on_edges_that_are_not_sorted(env: str, options: dict, weighted: bool) -> None:
    model = random_weights(CoGNN(5, 8, out_channels=3, num_layers=2, **{"env": env, "action": "gcn"} | options))
    count = options.get("num_relations", 1)
    for nodes, edges in ((11, 40), (3, 3), (1, 1), (4, 0)):
        edge_index = torch.randint(max(nodes - 1, 1), (2, edges))
        edge_index[:, : edges // 5] = edge_index[:1, : edges // 5]  # self-loops, some of them repeated
        types = torch.randint(count, (edges,)) if count > 1 else None
        weight = torch.rand(edges).mul(2).sub(0.5).clamp(min=0) if weighted else None
        attr = torch.randn(edges, 2) if "edge_dim" in options else None
        if "edge_categories" in options:
            attr = torch.stack([torch.randint(3, (edges,)), torch.randint(2, (edges,))], 1)
        x = torch.randn(nodes, 5)
        expected = model(x, Graph(edge_index, nodes, types, count, weight), attr)
        given = model(x, EdgeList(edge_index, nodes, types, count, weight), attr)
        torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5)
