"""Co-GNN over directions and relations: actions, traces, batches, checks."""

from typing import Any

import pytest
import torch
from torch import Tensor

from cognn import CoGNN, Graph
from cognn.nn.actions import DirectedSpace, action_space, broadcasts, listens
from tests.conftest import Case, random_case
from tests.nn.test_heads_execution import NEEDS_COMPILER

KINDS: dict[str, dict[str, Any]] = {
    "directed, joint": {"directions": "both"},
    "directed, factored": {"directions": "both", "action_space": "factored", "direction_share": "learned"},
    "relations, joint": {"num_relations": 5},
    "both, joint": {"directions": "both", "num_relations": 3},
    "shared": {"directions": "both", "num_relations": 2, "relation_actions": "shared"},
    "heads": {"directions": "both", "action_heads": 4},
    "heads of relations": {"num_relations": 5, "action_heads": "channel", "action_space": "factored", "num_bases": 2},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def build(kind: str, **options: Any) -> CoGNN:
    torch.manual_seed(0)
    chosen = {"num_layers": 2, "dropout": 0.0, "standard_bias": 0.5} | KINDS[kind] | options
    model = CoGNN(5, 8, out_channels=3, **chosen).double()
    with torch.no_grad():  # readouts start at zero, so that all nodes would act alike
        for name, parameter in model.named_parameters():
            if "readouts" in name:
                parameter.normal_()
    return model.eval()


def graph_of(model: CoGNN, case: Case) -> Graph:
    rng = torch.Generator().manual_seed(1)
    types = torch.randint(model.num_relations, (case.edge_index.size(1),), generator=rng)
    return Graph(case.edge_index, case.num_nodes, types if model.num_relations > 1 else None, model.num_relations)


def test_the_sixteen_directed_actions() -> None:
    space = action_space("joint", 1, 2, True)
    assert isinstance(space, DirectedSpace)
    assert len(set(space.names)) == 16
    gates = space.force(torch.arange(16), torch.double).gates
    assert gates.listen.shape == (16, 2, 1)
    for code, name in enumerate(space.names):
        along, against = divmod(code, 4)
        assert gates.listen[code].flatten().tolist() == [listens(along), listens(against)]
        assert gates.broadcast[code].flatten().tolist() == [broadcasts(along), broadcasts(against)]
        words = {"STANDARD": "LISTEN+BROADCAST", "ISOLATE": ""}.get(name, name).split("+")
        assert (("LISTEN" in words) or ("LISTEN-INC" in words)) == listens(along)
        assert (("LISTEN" in words) or ("LISTEN-OUT" in words)) == listens(against)
        assert (("BROADCAST" in words) or ("BROADCAST-OUT" in words)) == broadcasts(along)
        assert (("BROADCAST" in words) or ("BROADCAST-INC" in words)) == broadcasts(against)
        muted = int(space.muted(torch.tensor(code)))
        assert not space.broadcasts(torch.tensor(muted))
        assert (listens(muted // 4), listens(muted % 4)) == (listens(along), listens(against))


@pytest.mark.parametrize("heads", [1, 3])
def test_expected_gates_are_the_mean_of_the_forced_ones(heads: int) -> None:
    space = action_space("joint", heads, 2, True)
    probs = torch.rand(4, *space.shape, 16, dtype=torch.double).softmax(-1)
    found = space.expected_gates(probs)
    forced = [space.force(torch.full((4, *space.shape), code), torch.double).gates for code in range(16)]
    for name in ("listen", "broadcast"):
        weight = probs if heads > 1 else probs.unsqueeze(1)  # (4, heads, 16)
        gates = torch.stack([getattr(gates, name) for gates in forced], -1)  # (4, 2, heads, 16)
        mean = (gates * weight.unsqueeze(1)).sum(-1)
        torch.testing.assert_close(getattr(found, name).view(4, 2, heads), mean)


def test_heads_are_named_by_relation() -> None:
    assert action_space("joint", 1, 3).head_names == ["relation_0", "relation_1", "relation_2"]
    assert action_space("factored", 2, 2).head_names[1:3] == ["relation_0_head_1", "relation_1_head_0"]
    assert action_space("joint", 2, 2, True).head_names == ["head_0", "head_1"]
    assert action_space("joint", 1, 4, True).head_names == ["relation_0", "relation_1"]


@every_kind
def test_forced_actions_equal_those_that_were_taken(kind: str) -> None:
    model, case = build(kind), random_case(1)
    graph = graph_of(model, case)
    out, trace = model(case.x, graph, actions="sample", return_trace=True)
    assert len(trace.actions.unique()) > 2
    again, other = model(case.x, graph, actions=trace.actions, return_trace=True)
    torch.testing.assert_close(out, again)
    assert torch.equal(other.actions, trace.actions)


@every_kind
def test_what_is_not_kept_has_no_effect_and_what_is_kept_has(kind: str) -> None:
    """Messages of layer 0, found by the gradient of the last states by the first."""
    model = build(kind, num_layers=1, norm=None, act="tanh", env="sum")
    case = random_case(2, num_edges=12)
    graph = graph_of(model, case)
    trace = model(case.x, graph, actions="sample", return_trace=True)[1]

    def outputs(x: Tensor) -> Tensor:
        return model(x, graph, actions=trace.actions)

    influence = torch.autograd.functional.jacobian(outputs, case.x).abs().sum((1, 3))  # (receivers, senders)
    sent = torch.eye(case.num_nodes, dtype=torch.bool)
    sent[trace.edge_index(0)[1], trace.edge_index(0)[0]] = True
    assert torch.equal(influence > 0, sent)
    either = torch.eye(case.num_nodes, dtype=torch.bool)
    sender, receiver = case.edge_index[:, trace.kept(0)]
    either[receiver, sender] = True
    if model.relations.directions == "both":
        assert torch.equal(either | either.t(), sent | sent.t())
    else:
        assert torch.equal(either, sent)
    assert torch.equal(trace.reaches(0)[0], sent[0])


@every_kind
def test_kept_ratios_count_the_edges_of_every_relation_and_slice(kind: str) -> None:
    model, case = build(kind), random_case(3)
    graph = graph_of(model, case)
    trace = model(case.x, graph, actions="sample", return_trace=True)[1]
    types = torch.zeros(graph.num_edges).long() if graph.edge_type is None else graph.edge_type
    space, kept, total = model.space, 0, 0
    gates = space.force(trace.actions[0], torch.bool).gates
    listen, broadcast = (gate.view(case.num_nodes, space.relations, -1) for gate in gates)
    for edge, (u, v) in enumerate(case.edge_index.t().tolist()):
        for against in range(1 + (model.relations.directions == "both")):
            sender, receiver = (v, u) if against else (u, v)
            relation = int(types[edge]) + against * model.num_relations if space.relations > 1 else 0
            kept += int((broadcast[sender, relation] & listen[receiver, relation]).sum())
            total += listen.size(2)
    assert trace.kept_ratio()[0] == pytest.approx(kept / total)
    by_head = trace.kept_ratio(by_head=True)
    assert by_head.shape == (2, trace.heads)
    one = trace.kept_ratio(torch.arange(case.num_nodes))
    torch.testing.assert_close(one, trace.kept_ratio())
    certain = torch.nn.functional.one_hot(trace.actions, len(space.names)).double()
    expected = type(trace)(graph, trace.actions, certain, space, trace.directions).expected_kept()
    torch.testing.assert_close(expected.float(), trace.kept_ratio())
    relations = torch.stack([trace.kept(0, relation=r) for r in range(trace.num_relations)])
    assert torch.equal(relations.any(0), trace.kept(0))
    heads = torch.stack([trace.kept(0, head) for head in range(trace.heads)])
    assert torch.equal(heads.any(0), trace.kept(0))


@every_kind
def test_a_batch_equals_its_graphs(kind: str) -> None:
    model = build(kind, norm="layer")
    first, second = random_case(4), random_case(5, num_nodes=6, num_edges=14)
    graphs = [graph_of(model, case) for case in (first, second)]
    joined = model(torch.cat([first.x, second.x]), Graph.cat(graphs))
    torch.testing.assert_close(joined, torch.cat([model(c.x, g) for c, g in zip((first, second), graphs, strict=True)]))


@every_kind
def test_checkpointing_changes_nothing(kind: str) -> None:
    case, grads = random_case(6), []
    for checkpoint in (False, True):
        model = build(kind, checkpoint=checkpoint).train()
        torch.manual_seed(3)
        model(case.x, graph_of(model, case)).square().sum().backward()
        grads.append([torch.zeros(()) if p.grad is None else p.grad for p in model.parameters()])
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other)


@every_kind
def test_a_saved_model_is_the_same(kind: str, tmp_path) -> None:
    model, case = build(kind), random_case(7)
    model.save_pretrained(tmp_path / "model")
    again = CoGNN.from_pretrained(tmp_path / "model")
    graph = graph_of(model, case)
    assert torch.equal(model(case.x, graph), again(case.x, graph))


def test_a_plain_edge_index_takes_edge_type() -> None:
    model, case = build("relations, joint"), random_case(8)
    graph = graph_of(model, case)
    plain = model(case.x, case.edge_index, edge_type=graph.edge_type)
    assert torch.equal(plain, model(case.x, graph))
    moved = (graph.edge_type + 1) % 5
    assert not torch.equal(plain, model(case.x, case.edge_index, edge_type=moved))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directions": "out"}, "directions: expected one of 'in', 'both', got 'out'"),
        ({"num_relations": 0}, "num_relations: expected 1 or more, got 0"),
        ({"direction_share": 0.3}, "direction_share: is for directions='both', got 0.3; leave it out"),
        ({"directions": "both", "direction_share": 1.5}, "direction_share: expected 'learned' or a number from 0 to 1"),
        ({"num_bases": 2}, "num_bases: shares weights between relations, but there is one; leave it out"),
        ({"num_relations": 3, "num_blocks": 3}, "num_blocks: expected a divisor of hidden_channels=8, got 3"),
        (
            {"num_relations": 3, "env": "SAGEConv"},
            "env: with several relations or directions expected one of sum, mean",
        ),
        (
            {"num_relations": 3, "relation_actions": "each"},
            "relation_actions: expected one of 'per_relation', 'shared'",
        ),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("'", ".")):
        CoGNN(5, 8, out_channels=3, num_layers=2, **options)


def test_wrong_graphs_are_named() -> None:
    case, model = random_case(9), build("relations, joint")
    with pytest.raises(ValueError, match="edge_type: missing, but there are num_relations=5"):
        model(case.x, case.edge_index)
    with pytest.raises(ValueError, match="edge_type: edge 0 has type 7, expected 0 to 4"):
        model(case.x, case.edge_index, edge_type=torch.full((case.edge_index.size(1),), 7))
    with pytest.raises(ValueError, match="edge_type: a Graph has its own"):
        model(case.x, graph_of(model, case), edge_type=torch.zeros(30).long())
    with pytest.raises(ValueError, match="num_relations=1, but the model num_relations=5"):
        model(case.x, Graph(case.edge_index, case.num_nodes))
    plain = CoGNN(5, 8, out_channels=3, num_layers=2).double()
    with pytest.raises(ValueError, match="edge_type: this model has one relation"):
        plain(case.x, case.edge_index, edge_type=torch.zeros(30).long())


@NEEDS_COMPILER
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler asks for it, and hides that it did
@pytest.mark.parametrize("kind", ["directed, joint"])
def test_compiled_layers_equal_eager_ones(kind: str) -> None:
    torch._dynamo.reset()
    model = build(kind, num_layers=5).float().train()
    for size in (10, 12):  # a second graph of another size
        case = random_case(size, num_nodes=size, num_edges=4 * size, dtype=torch.float32)
        graph, found = graph_of(model, case), []
        for compiled in (False, True):
            model.compiled = compiled
            model.zero_grad()
            torch.manual_seed(1)
            out = model(case.x, graph, actions="argmax")
            out.square().sum().backward()
            found.append([out, *(torch.zeros(()) if p.grad is None else p.grad.clone() for p in model.parameters())])
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert not torch._dynamo.utils.counters["graph_break"]
