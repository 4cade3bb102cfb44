import numpy as np
import pytest
import torch

from cognn.nn.actions import action_space
from cognn.nn.trace import Trace
from cognn.report.data import selection
from cognn.report.data.decision_stats import decisions_by_group, decisions_by_part, mean_over_heads
from cognn.report.data.groupings import Grouping
from cognn.report.data.heads import agreement, most_different, similar_order
from cognn.report.data.run_view import RunView


def test_decisions_of_a_head_are_those_of_its_own_trace(heads_run: RunView) -> None:
    trace, edges = heads_run.trace, heads_run.graph.edge_index.numpy()
    assert (heads_run.heads, heads_run.expected) == (4, False)
    for grouping in heads_run.groupings:
        found = [relations[0] for relations in decisions_by_part(trace, grouping)]
        for head in range(4):
            codes, probs = trace.actions[:, :, head].numpy(), trace.probs[:, :, head].numpy()
            for group, wanted in zip(
                found[head], decisions_by_group(trace.space, codes, probs, edges, grouping), strict=True
            ):
                assert (group.name, group.count) == (wanted.name, wanted.count)
                for name in ("shares", "kept", "entropy", "changed"):
                    np.testing.assert_array_equal(getattr(group, name), getattr(wanted, name))


def test_decisions_of_all_heads_are_their_mean(heads_run: RunView) -> None:
    trace = heads_run.trace
    (whole,) = heads_run.decisions["all"]
    np.testing.assert_allclose(whole.kept, trace.kept_ratio(), atol=1e-6)
    np.testing.assert_allclose(whole.shares[:, 2], (trace.actions == 2).float().mean((1, 2)), atol=1e-6)
    np.testing.assert_allclose(whole.changed, (trace.actions.diff(dim=0) != 0).float().mean((1, 2)), atol=1e-6)
    assert mean_over_heads(heads_run.head_decisions["class"])[1].name == heads_run.decisions["class"][1].name
    each = np.stack([groups[0].kept for groups in heads_run.head_decisions["all"]], 1)
    np.testing.assert_allclose(each, trace.kept_ratio(by_head=True), atol=1e-6)
    assert np.ptp(each) > 0.01


def test_gates_that_are_probabilities_keep_edges_in_part(soft_run: RunView) -> None:
    trace = soft_run.trace
    assert (soft_run.heads, soft_run.expected) == (8, True)
    (whole,) = soft_run.decisions["all"]
    assert whole.expected
    np.testing.assert_allclose(whole.kept, trace.expected_kept(), atol=1e-5)
    assert not np.allclose(whole.kept, trace.kept_ratio(), atol=1e-3)
    sender, receiver = soft_run.graph.edge_index
    listen, broadcast = trace.space.expected_gates(trace.probs[1, :, 5])
    by_hand = (broadcast[sender] * listen[receiver]).mean()
    assert soft_run.head_decisions["all"][5][0].kept[1] == pytest.approx(float(by_hand), abs=1e-5)


def test_one_head_is_not_averaged_and_counts_as_before(board_run: RunView) -> None:
    assert board_run.decisions["all"] is board_run.head_decisions["all"][0]
    assert selection.heads_on_page(board_run) == []
    assert not board_run.decisions["all"][0].expected


def test_agreement_of_actions_and_of_gates(heads_run: RunView, soft_run: RunView) -> None:
    codes = heads_run.trace.actions
    hard = agreement(heads_run.trace)
    assert hard[2, 0, 3] == pytest.approx(float((codes[2, :, 0] == codes[2, :, 3]).float().mean()))
    gates = torch.stack(soft_run.trace.space.expected_gates(soft_run.trace.probs))  # (2, layers, N, heads)
    away = (gates[:, 1, :, 6] - gates[:, 1, :, 2]).abs().mean()
    assert soft_run.head_agreement[1, 6, 2] == pytest.approx(1 - float(away), abs=1e-5)
    for alike in (hard, soft_run.head_agreement):
        np.testing.assert_allclose(alike, alike.transpose(0, 2, 1), atol=1e-6)
        np.testing.assert_allclose(np.diagonal(alike, axis1=1, axis2=2), 1, atol=1e-6)


# Heads 0, 2 and 4 are nearly the same, so are 1 and 3; 5 agrees with nobody.
ALIKE = np.array(
    [
        [1.0, 0.2, 0.9, 0.2, 0.95, 0.1],
        [0.2, 1.0, 0.2, 0.9, 0.2, 0.1],
        [0.9, 0.2, 1.0, 0.2, 0.9, 0.1],
        [0.2, 0.9, 0.2, 1.0, 0.2, 0.05],
        [0.95, 0.2, 0.9, 0.2, 1.0, 0.1],
        [0.1, 0.1, 0.1, 0.05, 0.1, 1.0],
    ]
)


def test_the_heads_shown_are_those_that_differ_most() -> None:
    assert most_different(ALIKE, 2) == [3, 5]
    assert most_different(ALIKE, 3) == [0, 3, 5]
    assert most_different(ALIKE, 6) == most_different(ALIKE, 9) == [0, 1, 2, 3, 4, 5]


def test_similar_heads_are_neighbours() -> None:
    order = similar_order(ALIKE)
    places = sorted(order.index(head) for head in (0, 2, 4))
    assert sorted(order) == list(range(6))
    assert places[2] - places[0] == 2
    assert abs(order.index(1) - order.index(3)) == 1
    assert similar_order(np.ones((3, 3))) == [0, 1, 2]


def test_a_page_has_room_for_fewer_heads_of_a_larger_graph(heads_run: RunView, monkeypatch) -> None:
    assert selection.heads_on_page(heads_run) == [0, 1, 2, 3]
    monkeypatch.setattr(selection, "MOST_HEADS", 3)
    assert len(selection.heads_on_page(heads_run)) == 3
    monkeypatch.setattr(selection, "FEWEST_HEADS", 2)
    monkeypatch.setattr(selection, "MOST_VALUES", 1000)
    assert len(selection.heads_on_page(heads_run)) == 2


def test_groups_without_nodes_are_left_out_in_every_head(heads_run: RunView) -> None:
    nodes = heads_run.graph.num_nodes
    some = Grouping("class", np.where(np.arange(nodes) < 5, 2, -1), ["a", "b", "c"])
    trace = Trace(heads_run.graph, heads_run.trace.actions, heads_run.trace.probs, action_space("joint", 4))
    assert [[group.name for group in groups] for (groups,) in decisions_by_part(trace, some)] == [["c"]] * 4
