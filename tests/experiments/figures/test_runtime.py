"""The runtime experiment; nothing here depends on how long anything takes."""

import json
from pathlib import Path

import pytest
import torch

from cognn.cli.main import main
from cognn.errors import RunError
from cognn.experiments.figures import runtime


def test_the_fit_is_least_squares() -> None:
    points = [{"GCN s": t, "Co-GNN s": 2 * t + 1, "ratio": (2 * t + 1) / t, "width": 8} for t in (1.0, 2.0, 4.0)]
    fit = runtime.fit(points)
    assert fit["slope"] == pytest.approx(2)
    assert fit["intercept"] == pytest.approx(1)
    assert fit["R2"] == pytest.approx(1)
    assert fit["mean ratio"] == pytest.approx((3 + 2.5 + 2.25) / 3)


def test_every_width_has_a_line_of_its_own() -> None:
    points = [
        {"GCN s": t, "Co-GNN s": slope * t, "ratio": slope, "width": width}
        for width, slope in ((8, 3.0), (64, 1.5))
        for t in (1.0, 2.0, 4.0)
    ]
    fit = runtime.fit(points)
    assert fit["R2"] < 0.9
    assert fit["R2 at one width, lowest"] == pytest.approx(1)


def test_candidates_run_in_turn() -> None:
    seen: list[str] = []
    best = runtime.fastest_seconds({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 3)
    assert seen == ["a", "b"] * 4
    assert set(best) == {"a", "b"}


def test_smoke_goes_on_where_it_stopped(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "results"
    command = ["reproduce", "runtime", "--budget", "smoke", "--quiet", "--out", str(out), "--work", str(tmp_path)]
    real, calls = runtime.point, []

    def stops(*args):
        calls.append(args[1:3])
        if len(calls) == 2:
            raise RunError("stopped")
        return real(*args)

    monkeypatch.setattr(runtime, "point", stops)
    assert main(command) == 2
    assert main(command) == 0
    depths, widths, _ = runtime.SIZES["smoke"]
    sizes = [(depth, width) for depth in depths for width in widths]
    assert calls == [sizes[0], *sizes[1:2], *sizes[1:]]  # the first is not timed again

    record = json.loads((out / "runtime-smoke.json").read_text())
    points = record["facts"]["Forward pass on cora"]
    assert [(row["layers"], row["width"]) for row in points] == sizes
    assert all(row["GCN s"] > 0 and row["Co-GNN s"] > 0 for row in points)
    (line,) = record["facts"][runtime.FITS]
    assert line["dataset"] == "cora"
    assert 0 <= line["R2"] <= 1
    assert record["figures"] == ["runtime-smoke"]
    assert (out / "figures" / "runtime-smoke.svg").exists()


def test_graph_tasks_are_timed_as_a_batch(mirror: Path) -> None:
    batch = runtime.timing_batch("proteins")
    assert batch.graph.num_graphs == runtime.GRAPHS
    assert batch.x.size(0) == batch.graph.num_nodes
    assert torch.equal(batch.items, torch.arange(runtime.GRAPHS))
