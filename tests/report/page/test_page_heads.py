"""What the page holds of a run with several heads."""

import json
import re

import numpy as np
import pytest
import torch

from cognn.report.data import selection
from cognn.report.data.run_view import RunView, collect
from cognn.report.page import charts, explorer_data
from cognn.report.page.decision_arrays import bits
from cognn.report.page.head_maps import head_agreement, head_maps, kept_by_head
from cognn.report.page.render import render_page
from tests.report.conftest import fitted
from tests.report.page.test_page import unpacked
from tests.toy_runs import make_dataset


def test_the_payload_has_a_part_per_head(heads_run: RunView, monkeypatch) -> None:
    monkeypatch.setattr(selection, "MOST_HEADS", 3)
    described, block = explorer_data.explorer_data(heads_run, [])
    arrays, trace, nodes = unpacked(described, block), heads_run.trace, heads_run.graph.num_nodes
    shown = selection.heads_on_page(heads_run)
    assert (described["heads"], described["shownHeads"], len(shown)) == (4, shown, 3)
    action = arrays["action"].reshape(4, 3, nodes)
    probs = arrays["probs"].reshape(4, 3, nodes, 4) / 65535
    for part, head in enumerate(shown, 1):
        assert np.array_equal(action[part], trace.actions[:, :, head])
        assert np.allclose(probs[part], trace.probs[:, :, head], atol=1e-5)
    assert np.allclose(probs[0], trace.probs.mean(2), atol=1e-5)
    for layer, node in ((0, 3), (2, 77)):
        counts = np.bincount(trace.actions[layer, node], minlength=4)
        assert counts[action[0, layer, node]] == counts.max()


def test_bits_tell_of_every_head() -> None:
    gates = torch.rand(2, 5, 40, generator=torch.Generator().manual_seed(0)) < 0.5
    words = bits(gates)
    assert words.shape == (2, 5, 2)
    for head in (0, 31, 32, 39):
        assert np.array_equal(words[..., head // 32] >> (head % 32) & 1, gates[..., head])


def test_charts_of_a_head_and_of_their_mean(heads_run: RunView) -> None:
    ratio = heads_run.trace.kept_ratio(by_head=True)
    mean, one = charts.decision_charts(heads_run)["all"][1], charts.head_charts(heads_run, 2)["all"][1]
    assert (mean.title, one.title) == ("Kept edges, mean over 4 heads", "Kept edges, head 2")
    assert one.figure["data"][0]["y"] == pytest.approx(ratio[:, 2].tolist(), abs=1e-4)
    assert mean.figure["data"][0]["y"] == pytest.approx(ratio.mean(1).tolist(), abs=1e-4)


def test_maps_have_the_numbers_of_the_trace(heads_run: RunView, soft_run: RunView) -> None:
    kept = kept_by_head(heads_run)
    assert np.allclose(kept.figure["data"][0]["z"], heads_run.trace.kept_ratio(by_head=True), atol=1e-4)
    assert kept.rows[5][:2] == [2, 1]
    assert kept.rows[5][2] == pytest.approx(float(heads_run.trace.kept_ratio(by_head=True)[1, 1]), abs=1e-4)
    assert kept_by_head(soft_run).columns[-1] == "expected share of kept edges"
    alike = head_agreement(heads_run)
    (data,) = alike.figure["data"]
    order = [int(name) for name in data["x"]]
    agreement = torch.stack([heads_run.trace.agreement(layer) for layer in range(3)])
    for row, one in enumerate(order):
        assert data["z"][row][row] is None
        for column, other in enumerate(order):
            if row != column:
                assert data["z"][row][column] == pytest.approx(float(agreement[:, one, other].mean()), abs=1e-4)
    assert len(alike.rows) == 6
    by_layer = agreement[:, 3, 2].tolist()
    assert alike.rows[-1] == pytest.approx([3, 2, sum(by_layer) / 3, *by_layer], abs=1e-4)
    figure = pytest.importorskip("plotly.graph_objects").Figure
    for chart in (kept, alike):
        figure(chart.figure)  # plotly knows every word of it


def test_the_page_says_which_heads_it_shows(heads_run: RunView, soft_run: RunView, board_run, monkeypatch) -> None:
    def data(view: RunView) -> dict:
        return json.loads(re.search(r'id="page-data">(.*?)</script>', render_page(view, []), re.DOTALL)[1])

    whole = data(heads_run)
    assert "4 at every layer" in whole["headNote"]
    assert "has room for" not in whole["headNote"]
    assert list(whole["headDecisions"]) == ["0", "1", "2", "3"]
    monkeypatch.setattr(selection, "MOST_HEADS", 3)
    cut, shown = data(soft_run), selection.heads_on_page(soft_run)
    assert (
        f"has room for 3 of the heads one by one, those that differ most from each other: {shown[0]}, {shown[1]},"
        in (cut["headNote"])
    )
    assert "kept edges in charts and maps are expected shares" in cut["headNote"]
    assert [int(head) for head in cut["headDecisions"]] == shown
    plain = data(board_run)
    assert (plain["headNote"], plain["headDecisions"], plain["headMaps"]) == ("", {}, [])
    assert head_maps(board_run) == []


def test_more_heads_leave_room_for_fewer_nodes(heads_run: RunView, board_run: RunView, monkeypatch) -> None:
    monkeypatch.setattr(selection, "MOST_VALUES", 20_000)
    assert len(selection.nodes_on_page(heads_run, [40])) < len(selection.nodes_on_page(board_run, [40]))


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("gates", ["sampled", "continuous", "random", "added"])
def test_every_kind_of_gates_has_a_page(level: str, gates: str, tmp_path) -> None:
    run = fitted(make_dataset(level, "multiclass"), tmp_path / "run", epochs=2, action_heads="2", gates=gates)
    assert render_page(collect(run, samples=2)).startswith("<!doctype html>")
