import base64
import hashlib
import json
import re
import shutil
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from cognn import Graph, report
from cognn.cli.main import main
from cognn.data.dataset import Split
from cognn.errors import RunError
from cognn.report.data import selection
from cognn.report.data.explain import why
from cognn.report.data.run_view import RunView, collect
from cognn.report.page import charts, explorer_data
from cognn.report.page.render import render_page, write_page
from tests.report.conftest import EVIL, fitted
from tests.toy_runs import KINDS, make_dataset

KIND = {"u1": "u1", "u2": "<u2", "i2": "<i2", "u4": "<u4", "f4": "<f4"}


def unpacked(described: dict, block: str) -> dict[str, np.ndarray]:
    raw = zlib.decompress(base64.b64decode(block))
    return {
        name: np.frombuffer(raw, KIND[kind], count, start) for name, (kind, start, count) in described["arrays"].items()
    }


def test_the_payload_is_the_trace(board_run: RunView) -> None:
    described, block = explorer_data.explorer_data(board_run)
    arrays, trace = unpacked(described, block), board_run.trace
    nodes, layers = board_run.graph.num_nodes, trace.num_layers
    assert np.array_equal(arrays["action"].reshape(layers, nodes), trace.actions)
    assert np.allclose(arrays["probs"].reshape(layers, nodes, 4) / 65535, trace.probs, atol=1e-5)
    assert np.array_equal(arrays["sender"], board_run.graph.in_sender)
    assert np.array_equal(arrays["inPtr"], board_run.graph.in_ptr)
    assert np.array_equal(arrays["position"].reshape(-1, 2), board_run.board.positions)
    best = arrays["output"].reshape(nodes, 2)[:, 0]
    assert np.array_equal(best, (board_run.prediction.value[:, 1] > 0.5).long())
    assert np.allclose(arrays["spread"].reshape(nodes, 2), board_run.prediction.spread)
    assert described["names"] is None
    json.dumps(described)


def test_graphs_keep_their_own_edges(graph_run: RunView) -> None:
    described, block = explorer_data.explorer_data(graph_run)
    arrays = unpacked(described, block)
    starts = arrays["graphPtr"]
    assert len(described["names"]) == len(starts) - 1 == 40
    for place, name in enumerate(described["names"]):
        graph = graph_run.dataset.graphs[int(name)]
        low, high = starts[place], starts[place + 1]
        sender = arrays["sender"][arrays["inPtr"][low] : arrays["inPtr"][high]]
        assert np.array_equal(sender - low, graph.in_sender)
        own = (graph_run.graph.batch == int(name)).nonzero().flatten()
        assert np.array_equal(arrays["action"].reshape(3, -1)[:, low:high], graph_run.trace.actions[:, own])


def test_a_graph_too_large_is_held_in_part(board_run: RunView, monkeypatch) -> None:
    monkeypatch.setattr(selection, "MOST_VALUES", 8_000)
    held = selection.nodes_on_page(board_run, [40, 41])
    assert 8 <= len(held) < 108
    place = board_run.board.positions
    assert np.abs(place[held] - place[40]).max() <= 4
    described, block = explorer_data.explorer_data(board_run, [40])
    arrays = unpacked(described, block)
    assert (described["numNodes"], described["allNodes"]) == (len(described["names"]), 108)
    ids = np.array(described["names"], dtype=int)
    receiver = np.repeat(np.arange(len(ids)), np.diff(arrays["inPtr"].astype(int)))
    edges = set(zip(ids[arrays["sender"]], ids[receiver], strict=True))
    inside = set(ids.tolist())
    whole = board_run.graph.edge_index.t().tolist()
    assert edges == {(u, v) for u, v in whole if u in inside and v in inside}


def test_the_gallery_takes_wrong_and_right_ones_in_turn(graph_run: RunView, monkeypatch) -> None:
    monkeypatch.setattr(selection, "GALLERY", 6)
    chosen = selection.gallery_graphs(graph_run, [7])
    right = graph_run.correctness.codes
    assert (chosen[0], len(set(chosen.tolist()))) == (7, 6)
    assert {0, 1} == set(right[chosen[1:]].tolist())


def test_interesting_items_are_of_all_sorts(board_run: RunView) -> None:
    chosen = selection.items_to_explain(board_run)
    assert len(set(chosen)) == len(chosen) == selection.EXPLAINED
    right = board_run.correctness.codes[chosen]
    assert right[:4].tolist() == [0] * 4
    assert right[-4:].tolist() == [1] * 4


def test_charts_have_the_numbers_of_the_trace(board_run: RunView) -> None:
    by_class = charts.decision_charts(board_run)["class"]
    assert [chart.key for chart in by_class] == ["shares", "kept", "entropy", "changed"]
    kept = next(chart for chart in charts.decision_charts(board_run)["all"] if chart.key == "kept")
    ratio = board_run.trace.kept_ratio().tolist()
    assert kept.figure["data"][0]["y"] == pytest.approx(ratio, abs=1e-4)
    assert [row[-1] for row in kept.rows] == pytest.approx(ratio, abs=1e-4)
    shares = by_class[0]
    assert shares.columns[3:] == ["STANDARD", "LISTEN", "BROADCAST", "ISOLATE"]
    for row in shares.rows:
        assert sum(row[3:]) == pytest.approx(1, abs=1e-3)
    scores = charts.training_charts(board_run)[0]
    assert {row[0] for row in scores.rows} == {0, 1}  # both splits
    pytest.importorskip("plotly.graph_objects").Figure(shares.figure)  # plotly knows every word of it


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("level", ["node", "graph"])
def test_every_kind_of_task_has_a_page(level: str, kind: str, tmp_path) -> None:
    run = fitted(make_dataset(level, kind), tmp_path / "run", num_layers=2, epochs=2)
    path = report.write_page(report.collect(run, samples=2), tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("options", [{"action": "none"}, {"model": "gcn"}])
def test_networks_without_actions_have_a_page_too(options: dict, tmp_path) -> None:
    run = collect(fitted(make_dataset("node", "binary"), tmp_path / "run", **options))
    text = render_page(run)
    assert run.trace is None
    assert "This network has no actions." in text


def test_only_scripts_of_the_page_may_run(awkward_folder, tmp_path) -> None:
    text = render_page(collect(awkward_folder, samples=2))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    data = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text, re.DOTALL)[1]
    assert "<" not in data
    assert json.loads(data)["explorer"]["names"][1] == f"{EVIL[1]}1"
    outside = text.replace(data, "").replace(scripts[0], "").replace(scripts[1], "")
    for markup in ("<img", "<script>window", "<b>nodes", "<u>run"):
        assert markup not in outside
    assert "&lt;b&gt;nodes" in outside  # the heading, as text
    assert not re.search(r"""(src|href)=["']?https?:""", outside)


def test_a_base_network_is_found_next_to_a_run(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run = fitted(dataset, tmp_path / "co", env="mean")
    other, base = (
        fitted(dataset, tmp_path / "a", env="sum", action="none"),
        fitted(dataset, tmp_path / "b", action="none"),
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c/result.json").write_text("{}")
    assert collect(run, samples=0).base.name == "b"
    text = render_page(collect(run, samples=0))
    assert f"{base.result['test']['mean']:.4f}" in text
    assert "mean without actions (base network)" in text
    assert collect(run, samples=0, base=other.folder).base == other.folder
    shutil.rmtree(base.folder)
    assert collect(run, samples=0).base is None


def test_a_base_of_other_data_or_another_metric_is_refused(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run = fitted(dataset, tmp_path / "co")
    several = fitted(dataset, tmp_path / "several", action="none", splits="0-1")
    assert collect(run, samples=0, base=several.folder).base == several.folder  # the table tells how many splits
    config = several.folder / "config.toml"
    config.write_text(config.read_text().replace("random_splits = 1", "random_splits = 2"))
    with pytest.raises(RunError, match=r"base: .*several was trained with random_splits 2, not with 1; give a run of"):
        collect(run, samples=0, base=several.folder)
    dataset.task = replace(dataset.task, metric="accuracy")
    other = fitted(dataset, tmp_path / "other", action="none")
    with pytest.raises(RunError, match=r"base: .*other is scored by accuracy, not by roc_auc; give a run of"):
        collect(run, samples=0, base=other.folder)


def test_a_run_without_test_items_has_a_page(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    dataset.splits = [Split(split.train, split.val, split.test[:0]) for split in dataset.splits]
    run = collect(fitted(dataset, tmp_path / "run", splits="0-1"), samples=0)
    text = render_page(run)
    assert "nan" not in re.search(r'<ul class="numbers">.*?</table>', text, re.DOTALL)[0]
    assert "<li><b>-</b><span>test roc auc</span></li>" in text
    scores = charts.training_charts(run)[0]
    shown = [line["name"].split()[0] for line in scores.figure["data"]]
    assert shown == ["val", "train", "val"]  # that of the other split, and those of this one
    assert scores.alt.startswith("roc auc on train, val items by epoch")
    assert {row[scores.columns.index("test")] for row in scores.rows} == {None}
    path = report.write_figures(run, tmp_path / "figures", kinds=("svg",))[0]
    assert ">test<" not in path.read_text(encoding="utf-8")


def test_the_same_report_twice_is_the_same_file(awkward_folder, tmp_path) -> None:
    for name in ("a", "b"):
        torch.manual_seed(len(name))
        write_page(collect(awkward_folder, samples=2), tmp_path / name)
        torch.rand(3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_from_the_command_line(awkward_folder, tmp_path, capsys) -> None:
    words = ["report", str(awkward_folder), "--samples", "2"]
    assert main([*words, "--why", f"{EVIL[0]}0", "--figures", str(tmp_path / "figures")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == str(awkward_folder / "report.html")
    assert str(tmp_path / "figures" / "kept-ratio.pdf") in shown
    explained = re.search(r'"why":\[\{"item":(\d+)', (awkward_folder / "report.html").read_text(encoding="utf-8"))
    assert explained[1] == "0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: not a run"),
        (["RUN", "--why", "nobody"], "why: no node of"),
        (["RUN", "--split", "4"], "split: this run trained 0, got 4"),
        (["RUN", "--samples", "-1"], "samples: expected 0, or 2 and more for a spread, got -1"),
        (["RUN", "--base", "nowhere"], "nowhere: not a run"),
    ],
)
def test_what_a_user_can_cause_is_one_line(words: list[str], message: str, awkward_folder, capsys) -> None:
    assert main(["report", *(str(awkward_folder) if word == "RUN" else word for word in words)]) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert "\n" not in shown


def test_ids_are_found_by_name_or_number(board_run: RunView) -> None:
    from cognn.report.write import find_item

    assert find_item(board_run, "107") == 107
    for wrong in ("108", "-1", "x"):
        with pytest.raises(RunError, match="ids look like 0 to 107"):
            find_item(board_run, wrong)


def test_a_base_is_of_the_same_data_and_the_same_network(tmp_path) -> None:
    """Options do not tell: data from memory have none, and files change."""
    dataset, other = make_dataset("node", "binary"), make_dataset("node", "binary")
    other.x += 1
    run = fitted(dataset, tmp_path / "co", env="gcn", action="gcn")
    wrong = fitted(other, tmp_path / "a-wrong", env="gcn", action="none")
    fitted(dataset, tmp_path / "b-block", model="gcn")  # of Platonov et al., another network
    assert collect(run, samples=0).base is None
    right = fitted(dataset, tmp_path / "c-right", env="gcn", action="none")
    assert collect(run, samples=0).base == right.folder.resolve()
    with pytest.raises(RunError, match=r"base: .*a-wrong was trained on other data, though its options are the same"):
        collect(run, samples=0, base=wrong.folder)
    with pytest.raises(RunError, match=r"base: .*co has an action network; give a run with --action none"):
        collect(run, samples=0, base=run.folder)


@pytest.mark.parametrize("options", [{"actions": "sample"}, {"precision": "bf16-mixed"}], ids=str)
def test_the_decisions_shown_are_those_behind_the_predictions(options: dict[str, str], tmp_path) -> None:
    report = collect(fitted(make_dataset("node", "multiclass"), tmp_path / "run", **options), samples=2)
    for item in (0, 7, 31):
        assert why(report, item).value == pytest.approx(report.prediction.value[item].tolist(), abs=1e-6)
    assert "are means over" not in render_page(report)


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"samples": 3}, "Predictions are means over 3 samples"),
        ({"actions": "expected"}, "Predictions weight every message"),
    ],
)
def test_where_they_are_not_the_page_says_so(options: dict[str, object], note: str, tmp_path) -> None:
    assert note in render_page(collect(fitted(make_dataset("node", "binary"), tmp_path / "run", **options), samples=2))


def test_the_most_likely_labels_are_the_most_likely(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(explorer_data, "MOST_OUTPUTS", 3)
    dataset = make_dataset("node", "multilabel")
    dataset.y, dataset.task = dataset.y.repeat(1, 3), replace(dataset.task, num_outputs=6)
    report = collect(fitted(dataset, tmp_path / "run"), samples=2)
    arrays = unpacked(*explorer_data.explorer_data(report))
    best = report.prediction.value.sort(dim=-1, descending=True, stable=True)
    assert np.array_equal(arrays["output"].reshape(-1, 3), best.indices[:, :3])
    assert np.allclose(arrays["value"].reshape(-1, 3), best.values[:, :3])
    assert np.array_equal(arrays["target"].reshape(-1, 3), dataset.y.gather(1, best.indices[:, :3]))


def test_names_are_no_markup_in_charts_and_lines_can_be_told_apart(board_run: RunView) -> None:
    (whole,) = board_run.decisions["all"]
    groups = [replace(whole, name=f"<b>{i}</b> $x$ & y") for i in range(12)]
    lines = charts.kept_ratio(groups).figure["data"]
    assert lines[3]["name"] == "&lt;b&gt;3&lt;/b&gt; &#36;x&#36; &amp; y"
    assert charts.action_shares(groups).figure["data"][0]["x"][0][0] == "&lt;b&gt;0&lt;/b&gt; &#36;x&#36; &amp; y"
    assert charts.kept_ratio(groups).rows[0][0] == "<b>0</b> $x$ & y", "a table shows text as it is"
    assert len({(line["line"]["color"], line["line"]["dash"]) for line in lines}) == 12


def test_a_page_is_never_empty(graph_run: RunView, board_run: RunView, monkeypatch) -> None:
    monkeypatch.setattr(selection, "GALLERY_NODES", 1)
    assert len(selection.gallery_graphs(graph_run, [])) == 1
    nodes, alone = board_run.graph.num_nodes, torch.stack([torch.arange(60), torch.arange(60) + 1])
    monkeypatch.setattr(selection, "MOST_VALUES", 8_000)
    held = selection.nodes_on_page(replace(board_run, graph=Graph(alone, nodes)), [0])  # which nobody can reach
    assert 0 in held
    assert 20 < len(held) < nodes
