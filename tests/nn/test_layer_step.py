"""Compiled and checkpointed layers: the same numbers, once for all."""

import copy

import pytest
import torch
from torch import nn
from torch_geometric.nn import GINConv, GraphConv

from cognn import CoGNN, Graph
from cognn.core import kernels
from cognn.nn import compiling as module
from cognn.nn.layers import GATLayer
from tests.conftest import random_case

AFTER = {"norm": "batch", "norm_first": False, "residual": "linear"}
NEEDS_COMPILER = pytest.mark.skipif(not module.can_compile(), reason="there is no C++ compiler here")


def _board(nodes: int, seed: int = 0) -> tuple[torch.Tensor, Graph]:
    torch.manual_seed(seed)
    return torch.randn(nodes, 5), Graph(torch.randint(nodes, (2, 4 * nodes)), nodes)


def _twins(num_layers: int = 3, width: int = 16, **options: object) -> tuple[CoGNN, CoGNN]:
    torch.manual_seed(0)
    usual = {"out_channels": 3, "num_layers": num_layers, "action_layers": 2, "dropout": 0.3}
    plain = CoGNN(5, width, **usual | options).train()
    return plain, copy.deepcopy(plain)


def _results(net: CoGNN, x: torch.Tensor, graph: Graph, generator: torch.Generator | None = None) -> list[torch.Tensor]:
    torch.manual_seed(1)
    if generator is not None:
        generator.manual_seed(2)
    out = net(x, graph, generator=generator)
    return [out, *torch.autograd.grad(out.pow(2).mean(), list(net.parameters()))]


@NEEDS_COMPILER
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler asks for it, and hides that it did
@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 1, "env": lambda i, o: GATLayer(i, o, heads=2), "action_layers": 1},
        AFTER | {"num_layers": 6, "action_layers": 1, "checkpoint": True},
    ],
    ids=["together", "by layers, checkpointed"],
)
def test_compiled_once_for_all_layers_and_sizes_with_the_same_results(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrapper in C++, which takes a minute to compile, is of ``python -m tests.campaign --kinds compiled``."""
    real = module._compile
    monkeypatch.setattr(module, "_compile", lambda function, cpp_wrapper=False: real(function))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain, fast = _twins(**options)
    fast.compiled = True
    for nodes in (40, 30, 90):
        case = _board(nodes)
        for one, other in zip(_results(plain, *case), _results(fast, *case), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # enter, and one for all layers
    assert not torch._dynamo.utils.counters["graph_break"]
    assert list(fast.state_dict()) == list(plain.state_dict())
    torch._dynamo.reset()


@pytest.mark.parametrize("options", [{}, AFTER, {"action": None}, {"action_space": "factored", "env": "gat"}], ids=str)
@pytest.mark.parametrize("seeded", [False, True], ids=["global stream", "own generator"])
def test_checkpointing_changes_nothing_but_memory(options: dict[str, object], seeded: bool) -> None:
    plain, frugal = _twins(**options)
    frugal.checkpoint = True
    generator = torch.Generator() if seeded and options.get("action", "sum") else None
    case = _board(30)
    for one, other in zip(_results(plain, *case, generator), _results(frugal, *case, generator), strict=True):
        assert torch.equal(one, other)
    state = torch.get_rng_state() if generator is None else generator.get_state()
    _results(plain, *case, generator)
    assert torch.equal(state, torch.get_rng_state() if generator is None else generator.get_state())
    _results(frugal, *case, generator)  # both have seen two batches now
    for one, other in zip(plain.buffers(), frugal.buffers(), strict=True):
        assert torch.equal(one, other)


def test_checkpointing_counts_a_batch_once_in_layers_of_pyg_too() -> None:
    def layer(i: int, o: int) -> GINConv:
        return GINConv(nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Linear(o, o)))

    plain, frugal = _twins(env=layer, action=layer)
    frugal.checkpoint = True
    for one, other in zip(_results(plain, *_board(30)), _results(frugal, *_board(30)), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(plain.buffers(), frugal.buffers(), strict=True):
        assert torch.equal(one, other)


def test_checkpointing_does_not_multiply_again_what_the_actions_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    times, calls = kernels.matmul, []
    monkeypatch.setattr(
        kernels, "matmul", lambda *arguments, **options: calls.append(1) or times(*arguments, **options)
    )
    counts = []
    for net in _twins(action_layers=1):  # whose action network has narrow products only
        net.checkpoint = bool(counts)
        calls.clear()
        _results(net, *_board(30))
        counts.append(len(calls))
    assert counts[0] == counts[1] > 0


def test_a_checkpointed_graph_may_be_walked_back_twice() -> None:
    _, net = _twins()
    net.checkpoint = True
    out = net(*_board(30)).pow(2).mean()
    first, second = (torch.autograd.grad(out, list(net.parameters()), retain_graph=True) for _ in range(2))
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))


def test_checkpointing_keeps_less() -> None:
    kept = []
    for net in _twins():
        net.checkpoint = bool(kept)
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, s=sizes: s.append(t.numel()) or t, lambda t: t):
            net(*_board(200))
        kept.append(sum(sizes))
    assert kept[1] < kept[0] / 2


@pytest.mark.parametrize("missing", ["compiler", "headers"])
def test_without_a_compiler_it_is_computed_as_ever(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "compiler":
        monkeypatch.setenv("CXX", "no-such-compiler")
    else:
        monkeypatch.setattr(module.sysconfig, "get_path", lambda _: "no-such-folder")
    module.can_compile.cache_clear()
    monkeypatch.setattr(torch, "compile", lambda *_, **__: pytest.fail("compiled"))
    plain, fast = _twins()
    fast.compiled = True
    case = _board(20)
    assert all(torch.equal(*pair) for pair in zip(_results(plain, *case), _results(fast, *case), strict=True))
    module.can_compile.cache_clear()


def test_layers_of_pyg_and_draws_of_ones_own_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda *_, **__: pytest.fail("compiled"))
    case = random_case(0, dtype=torch.float32)
    wrapped = CoGNN(5, 8, out_channels=3, num_layers=2, env=lambda i, o: GraphConv(i, o), compile=True)
    wrapped(case.x, Graph(case.edge_index, 9))
    CoGNN(5, 8, out_channels=3, num_layers=2, compile=True)(case.x, case.edge_index, generator=torch.Generator())
