"""What the page holds of a run with several relations: no edge of a wrong relation or direction is kept."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from cognn.report.data import selection
from cognn.report.data.relations import all_routes
from cognn.report.data.run_view import RunView, collect
from cognn.report.page.explorer_data import explorer_data
from cognn.report.page.relation_maps import relation_maps
from cognn.report.page.render import render_page
from cognn.report.write import write_figures
from tests.report.conftest import RELATIONAL, fitted, messages, relational
from tests.report.page.test_page import unpacked
from tests.toy_runs import make_dataset, with_relations


def page_data(view: RunView) -> dict:
    return json.loads(re.search(r'id="page-data">(.*?)</script>', render_page(view, []), re.DOTALL)[1])


def kept_on_page(arrays: dict[str, np.ndarray], nodes: int, layers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Routes as (sender, receiver) and their relation, and the heads that hear along them by choice and layer."""
    receiver = np.repeat(np.arange(nodes), np.diff(arrays["inPtr"]))
    routes = np.stack([arrays["sender"], receiver], 1)
    return routes, arrays["relation"], arrays["kept"].reshape(-1, layers, len(routes))


def test_the_page_keeps_exactly_the_edges_that_carried_a_message(relations_run: RunView) -> None:
    view = relations_run
    arrays = unpacked(*explorer_data(view, []))
    routes, relation, kept = kept_on_page(arrays, 60, 3)
    assert len(kept) == (1 + view.heads if view.heads > 1 else 1)
    for layer in range(3):
        for kind in range(view.relations):
            here = relation == kind
            for head in range(view.heads):
                wanted = messages(view, layer, kind, head)
                if view.heads > 1:
                    found = routes[here & (kept[1 + head, layer] == 1)]
                    assert sorted(map(tuple, found.tolist())) == wanted
            heard = [message for head in range(view.heads) for message in messages(view, layer, kind, head)]
            found = np.repeat(routes[here], kept[0, layer, here], axis=0)
            assert sorted(map(tuple, found.tolist())) == sorted(heard)
    assert 0 < kept[0].mean() < 0.9 * view.heads


def test_the_page_has_the_actions_of_every_choice(relations_run: RunView) -> None:
    view, trace = relations_run, relations_run.trace
    described, block = explorer_data(view, [])
    arrays, parts = unpacked(described, block), described["parts"]
    action = arrays["action"].reshape(len(parts), 3, 60)
    probs = arrays["probs"].reshape(len(parts), 3, 60, 4) / 65535
    every = [trace.part(relation, head) for relation in range(view.relations) for head in range(view.heads)]
    np.testing.assert_allclose(probs[0], np.mean([p.numpy() for _, p in every], 0), atol=2e-5)
    counts = np.bincount([int(codes[1, 40]) for codes, _ in every], minlength=4)
    assert counts[action[0, 1, 40]] == counts.max()
    for place, (relation, head) in enumerate(parts):
        if relation >= 0 and (head > 0 or view.heads == 1):
            codes, known = trace.part(relation, max(head - 1, 0))
            assert np.array_equal(action[place], codes)
            np.testing.assert_allclose(probs[place], known, atol=2e-5)


def test_a_part_of_a_large_graph_keeps_the_edges_inside_it(relations_run: RunView, monkeypatch) -> None:
    per_node, per_route = selection._page_bytes(relations_run)
    routes = all_routes(relations_run.trace)[1].numel()
    monkeypatch.setattr(selection, "MOST_VALUES", (60 * per_node + routes * per_route) // 2)
    described, block = explorer_data(relations_run, [7])
    arrays, nodes = unpacked(described, block), selection.nodes_on_page(relations_run, [7])
    assert 7 in nodes
    assert 3 < len(nodes) < 60
    routes, relation, kept = kept_on_page(arrays, len(nodes), 3)
    found = nodes[routes[(relation == 1) & (kept[0, 2] > 0)]]
    heard = {message for head in range(relations_run.heads) for message in messages(relations_run, 2, 1, head)}
    assert {tuple(pair) for pair in found.tolist()} == {pair for pair in heard if set(pair) <= set(nodes.tolist())}
    into = np.zeros(60, dtype=int)
    for kind in range(relations_run.relations):
        np.add.at(into, relations_run.trace.routes(kind)[1].numpy(), 1)
    assert np.array_equal(arrays["outside"] + np.diff(arrays["inPtr"]), into[nodes])


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", RELATIONAL)
def test_every_kind_of_relations_has_a_page_and_figures(kind: str, level: str, tmp_path) -> None:
    view = relational(kind, tmp_path / "run", level)
    assert render_page(view).startswith("<!doctype html>")
    figures = {path.stem for path in write_figures(view, tmp_path / "figures", kinds=("svg",))}
    assert {"kept-by-relation", "listens-by-relation", "broadcasts-by-relation", "kept-ratio"} <= figures
    assert ("joint-actions" in figures) == (len(view.trace.space.names) == 16)
    assert ("kept-by-relation-and-head" in figures) == (view.heads > 1)


def test_ninety_relations_are_readable_and_some_are_chosen(tmp_path) -> None:
    names = [f"<b>relation</b> $x_{number}$ of a rather long name, number {number}" for number in range(90)]
    dataset = with_relations(make_dataset("node", "multiclass"), 90, names)
    view = collect(fitted(dataset, tmp_path / "run", num_bases=2, action_heads="2"), samples=0)
    kept = relation_maps(view)[0]
    axis = kept.figure["layout"]["yaxis"]
    assert len(axis["ticktext"]) == len(kept.figure["data"][0]["z"]) == 90
    assert kept.figure["layout"]["height"] > 13 * 90
    assert len(set(axis["ticktext"])) == 90
    assert all(len(name) < 80 and "<b>" not in name and "$" not in name for name in axis["ticktext"])
    data = page_data(view)
    assert len(data["headDecisions"]) == selection.MOST_CHARTS + 2
    assert "The 16 relations with the most edges have charts of their own." in data["headNote"]
    assert "no room for every pair of them" in data["headNote"]
    figure = tmp_path / "figures" / "kept-by-relation.svg"
    write_figures(view, figure.parent, kinds=("svg",))
    assert figure.read_text(encoding="utf-8").count("name, number ") == 90


def test_nodes_without_features_have_a_page(tmp_path) -> None:
    dataset = with_relations(make_dataset("node", "multiclass"), 2)
    dataset = replace(dataset, x=torch.arange(60, dtype=torch.float).view(-1, 1), node_categories=(60,))
    view = collect(fitted(dataset, tmp_path / "run"), samples=0)
    assert {chart["key"] for chart in page_data(view)["headMaps"]} >= {"kept-by-relation", "listens-by-relation"}


def test_colours_of_relations_stand_for_all_shares(relations_run: RunView) -> None:
    for chart in relation_maps(relations_run):
        data = chart.figure["data"][0]
        top = max(map(max, data["z"])) if chart.key == "joint-actions" else 1
        assert (data["zmin"], data["zmax"]) == (0, pytest.approx(top, abs=1e-4))


def test_charts_of_a_relation_have_its_numbers(relations_run: RunView) -> None:
    data = page_data(relations_run)
    name, charts = data["headDecisions"][1]
    assert name == relations_run.relation_names[1]
    assert charts["all"][1]["title"] == f"Kept edges, {name}"
    wanted = relations_run.relation_decisions["all"][1][0].kept.tolist()
    assert charts["all"][1]["figure"]["data"][0]["y"] == pytest.approx(wanted, abs=1e-4)
    figure = pytest.importorskip("plotly.graph_objects").Figure
    for chart in data["headMaps"]:
        figure(chart["figure"])  # plotly knows every word of it


def test_one_relation_has_none_of_it(board_run: RunView, heads_run: RunView) -> None:
    for view in (board_run, heads_run):
        assert relation_maps(view) == []
        described, _ = explorer_data(view, [])
        assert "relations" not in described
        assert "relation" not in described["arrays"]
        assert "routesBetween" not in render_page(view, [])
