"""What a report knows of the relations of a run, compared with who sent to whom by the words of the documentation."""

import numpy as np
import pytest
import torch

from cognn import Action, Graph, Trace
from cognn.nn.actions import action_space
from cognn.report.data.explain import why
from cognn.report.data.relation_tables import relation_tables
from cognn.report.data.relations import all_routes, names_of_relations
from cognn.report.data.run_view import RunView
from cognn.report.data.selection import parts_on_page
from tests.report.conftest import messages
from tests.report.data.test_explain import prediction_under


def shares(view: RunView, layer: int, relation: int, head: int) -> float:
    return len(messages(view, layer, relation, head)) / view.trace.routes(relation).size(1)


def test_a_part_of_a_trace_keeps_what_the_documentation_says(relations_run: RunView) -> None:
    trace, kept = relations_run.trace, 0
    for relation in range(trace.num_relations):
        sender, receiver = trace.routes(relation)
        for head in range(trace.space.slices):
            codes, probs = trace.part(relation, head)
            assert codes.shape == (3, 60)
            torch.testing.assert_close(probs.sum(-1), torch.ones(3, 60))
            for layer in range(3):
                sends = (codes[layer, sender] == Action.STANDARD) | (codes[layer, sender] == Action.BROADCAST)
                hears = (codes[layer, receiver] == Action.STANDARD) | (codes[layer, receiver] == Action.LISTEN)
                found = trace.routes(relation)[:, sends & hears].T.tolist()
                assert sorted(map(tuple, found)) == messages(relations_run, layer, relation, head)
                kept += len(found)
    assert 0 < kept < 0.9 * all_routes(trace)[1].numel() * trace.space.slices * 3


def test_a_part_has_the_probabilities_of_its_own_gates() -> None:
    """LISTEN-INC+BROADCAST-OUT is STANDARD along the edges and ISOLATE against them."""
    space = action_space("joint", 1, 2, directed=True)
    code = space.names.index("LISTEN-INC+BROADCAST-OUT")
    probs = torch.zeros(1, 2, 16)
    probs[0, 0, code], probs[0, 0, 0], probs[0, 1, 15] = 0.75, 0.25, 1
    trace = Trace(Graph(torch.tensor([[0], [1]]), 2), torch.tensor([[code, 15]]), probs, space, "both")
    (along, p), (against, q) = trace.part(0, 0), trace.part(1, 0)
    assert (along.tolist(), against.tolist()) == ([[0, 3]], [[3, 3]])
    assert p[0].tolist() == [[1, 0, 0, 0], [0, 0, 0, 1]]
    assert q[0].tolist() == [[0.25, 0, 0, 0.75], [0, 0, 0, 1]]


def test_decisions_of_relations_and_of_all_together(relations_run: RunView) -> None:
    view, trace = relations_run, relations_run.trace
    if view.expected:
        np.testing.assert_allclose(view.decisions["all"][0].kept, trace.expected_kept(), atol=1e-5)
        return
    for relation in range(view.relations):
        wanted = [np.mean([shares(view, layer, relation, head) for head in range(view.heads)]) for layer in range(3)]
        (group,) = view.relation_decisions["all"][relation]
        np.testing.assert_allclose(group.kept, wanted)
        assert group.edges == int((all_routes(trace)[1] == relation).sum())
    np.testing.assert_allclose(view.decisions["all"][0].kept, trace.kept_ratio(), atol=1e-6)
    counts = [group.count for group in view.decisions["class"]]
    assert sum(counts) == 60
    assert sum(group.edges for group in view.decisions["class"]) == all_routes(trace)[1].numel()


def test_tables_of_relations(relations_run: RunView) -> None:
    view = relations_run
    tables = {table.key: table for table in relation_tables(view)}
    kept = tables["kept-by-relation"]
    assert (kept.rows, kept.columns) == (view.relation_names, ["1", "2", "3"])
    if not view.expected:
        assert kept.values[1, 2] == pytest.approx(np.mean([shares(view, 2, 1, head) for head in range(view.heads)]))
    if view.heads > 1:
        both = tables["kept-by-relation-and-head"]
        assert both.columns[3] == "2, 1"
        assert both.values[1, 3] == pytest.approx(shares(view, 1, 1, 1))
    codes = view.trace.part(1, 0)[0][0]
    if view.heads == 1:
        assert tables["listens-by-relation"].values[1, 0] == pytest.approx(float((codes < 2).float().mean()))
        assert tables["broadcasts-by-relation"].values[1, 0] == pytest.approx(float((codes % 2 == 0).float().mean()))
    assert ("joint-actions" in tables) == (len(view.trace.space.names) == 16)
    if "joint-actions" in tables:
        joint = tables["joint-actions"]
        assert joint.rows == list(view.trace.space.names)
        wanted = [float((view.trace.actions[1] == code).float().mean()) for code in range(16)]
        assert joint.values[:, 1].tolist() == pytest.approx(wanted)


def test_agreement_of_heads_is_the_mean_over_relations(relations_run: RunView) -> None:
    if relations_run.heads == 1:
        pytest.skip("one head")
    trace = relations_run.trace
    codes = trace.actions[2].view(60, -1, 2)  # by relation, or by edge type, and by head
    alike = float((codes[:, :, 0] == codes[:, :, 1]).float().mean())
    assert relations_run.head_agreement[2, 0, 1] == pytest.approx(alike)
    assert relations_run.head_agreement.shape == (3, 2, 2)


def test_an_explanation_silences_those_that_were_heard_in_any_relation(relations_run: RunView) -> None:
    view, item = relations_run, 7
    found = why(view, item)
    heard: dict[int, list[int]] = {}
    for layer in range(3):
        senders = {
            sender
            for relation in range(view.relations)
            for head in range(view.heads)
            for sender, receiver in messages(view, layer, relation, head)
            if receiver == item != sender
        }
        for sender in senders:
            heard.setdefault(sender, []).append(layer)
    assert {one.node: one.layers for one in found.silenced} == heard
    assert heard
    for one in found.silenced[:3]:
        quiet = view.trace.actions.clone()
        quiet[:, one.node] = view.trace.space.muted(quiet[:, one.node])
        after = prediction_under(view, quiet, item)
        torch.testing.assert_close(torch.tensor(one.value), after, atol=1e-5, rtol=1e-4)


def test_names_of_relations() -> None:
    def names(types: int, directions: str, known: list[str] | None = None) -> list[str]:
        graph = Graph(torch.tensor([[0], [1]]), 2, torch.tensor([0]) if types > 1 else None, types)
        return names_of_relations(Trace(graph, torch.zeros(1, 2), torch.zeros(1, 2, 4), directions=directions), known)

    assert names(1, "in") == []
    assert names(1, "both") == ["along the edges", "against the edges"]
    assert names(2, "in") == ["relation 0", "relation 1"]
    assert names(2, "in", ["cites", "pays"]) == ["cites", "pays"]
    assert names(2, "both", ["cites", "pays"]) == ["cites, along", "pays, along", "cites, against", "pays, against"]


def test_pairs_of_a_relation_and_a_head_have_room_or_not(relations_run: RunView, monkeypatch) -> None:
    heads = relations_run.heads if relations_run.heads > 1 else 0
    pairs = parts_on_page(relations_run)
    assert pairs[0] == (-1, 0)
    assert len(set(pairs)) == len(pairs) == (relations_run.relations + 1) * (heads + 1)
    monkeypatch.setattr("cognn.report.data.selection.MOST_PARTS", 1)
    few = parts_on_page(relations_run)
    assert len(few) == 1 + relations_run.relations + heads
    assert all(relation < 0 or head == 0 for relation, head in few)
