"""The two propositions: the constructions do what the proofs say, and the measured shares respect the bounds."""

import json
from pathlib import Path

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cognn.cli.main import main
from cognn.experiments.figures import propositions
from cognn.experiments.figures.proof_networks import (
    copies,
    hops,
    identified,
    individualising,
    individualising_bound,
    num_nodes,
    transmitting,
    transmitting_bound,
)


def test_smoke_writes_tables_and_figures_and_respects_the_bounds(tmp_path: Path) -> None:
    out = tmp_path / "results"
    options = ["--budget", "smoke", "--quiet", "--out", str(out), "--work", str(tmp_path / "runs")]
    assert main(["reproduce", "propositions", *options]) == 0
    record = json.loads((out / "propositions-smoke.json").read_text())
    differ, arrive = (record["facts"][title] for title in (propositions.DIFFER, propositions.ARRIVE))
    assert len(differ) == len(propositions.PAIRS) * len(propositions.CHANCES) * len(propositions.LAYERS)
    for row in differ + arrive:
        assert row["low"] <= row["measured"] <= row["high"]
        assert row["high"] >= row["bound"], row
    assert all(row["all nodes"] <= row["measured"] for row in differ)
    assert {row["exact if obeyed"] for row in arrive} == {"yes"}
    assert record["figures"] == ["propositions-smoke-individualisation", "propositions-smoke-transmission"]
    for name in record["figures"]:
        assert (out / "figures" / f"{name}.svg").exists()
        assert (out / "figures" / f"{name}.png").exists()
    assert propositions.ARRIVE in (out / "propositions-smoke.md").read_text()


def test_the_constant_action_network_has_the_probabilities_it_was_given() -> None:
    model, graph = individualising(2, 0.9, 0.3), copies(propositions.RING, 1)
    _, trace = model(torch.ones(12, 1, dtype=torch.double), graph, return_trace=True)
    assert torch.allclose(trace.probs, torch.tensor([0.27, 0.63, 0.03, 0.07]).to(trace.probs))


def test_nodes_that_look_alike_differ_only_by_their_actions() -> None:
    for _, edges, u, v in propositions.PAIRS:
        plain = networkx.Graph(edges)
        networkx.set_node_attributes(plain, "same", "feature")
        colours = networkx.weisfeiler_lehman_subgraph_hashes(plain, node_attr="feature", iterations=num_nodes(edges))
        assert colours[u] == colours[v]
        model, graph = individualising(3, 0.5, 0.5), copies(edges, 1)
        x = torch.ones(graph.num_nodes, 1, dtype=torch.double)
        standard = torch.zeros(3, graph.num_nodes, dtype=torch.long)
        same = model(x, graph, actions=standard).flatten()
        assert torch.allclose(same, same[0].expand_as(same), rtol=1e-12)
        deaf = standard.clone()
        deaf[1, v] = 3  # isolated at one layer
        apart = model(x, graph, actions=deaf).flatten()
        assert abs(apart[u] - apart[v]) > 1e-3


def test_hearing_now_or_later_are_told_apart() -> None:
    """With one map for all layers the two would be the same, and nodes once told apart could be confused again."""
    model, graph = individualising(2, 0.5, 0.5), copies([(0, 1), (2, 3)], 1)
    actions = torch.tensor([[1, 2, 3, 2], [3, 2, 1, 2]])  # node 0 hears at the first layer, node 2 at the second
    out = model(torch.ones(4, 1, dtype=torch.double), graph, actions=actions).flatten()
    assert abs(out[0] - out[2]) > 1e-6


def test_bounds() -> None:
    assert individualising_bound(1, 0.5, 0.5) == 0.125  # the paper's example
    assert individualising_bound(2, 0.5, 0.5) == pytest.approx(1 - 0.875**2)
    assert transmitting_bound(propositions.PATH, [3], 0, 0.1) == pytest.approx(0.9 ** (17 * 3))


@settings(max_examples=20)
@given(st.integers(3, 9), st.integers(1, 3), st.integers(0, 2**16))
def test_the_features_arrive_bit_by_bit_on_any_connected_graph(nodes: int, count: int, seed: int) -> None:
    tree = networkx.random_labeled_tree(nodes, seed=seed)
    rng = torch.Generator().manual_seed(seed)
    chord = torch.randperm(nodes, generator=rng)[:2].tolist()
    edges = sorted({tuple(sorted(edge)) for edge in [*tree.edges, chord]})
    target, *rest = torch.randperm(nodes, generator=rng).tolist()
    sources = rest[:count]
    model = transmitting(edges, sources, target, 3, 0.01)
    x = torch.randn(4, nodes, 3, generator=rng)
    out, trace = model(identified(x), copies(edges, 4), actions="argmax", return_trace=True)
    assert torch.equal(out.view(4, nodes, -1)[:, target], x[:, sources].flatten(1))
    for layer, (_, sender, receiver) in enumerate(hops(edges, sources, target)):
        assert trace.edge_index(layer)[:, 0].tolist() == [sender, receiver]
        assert trace.kept(layer).sum() == 4  # one edge in each of the copies


def test_every_node_strays_with_the_probability_asked_for() -> None:
    model = transmitting(propositions.GRID, [0, 4], 24, 2, 0.05)
    x = torch.randn(1, 25, 2)
    graph = copies(propositions.GRID, 1)
    _, trace = model(identified(x), graph, actions="argmax", return_trace=True)
    assert torch.allclose(trace.probs.amax(-1), torch.tensor(0.95), atol=1e-6)
