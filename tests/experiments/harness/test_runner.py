"""The frame of the experiments, on a small generated dataset."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from cognn.cli.main import main
from cognn.errors import ConfigError, Interrupted, RunError
from cognn.experiments import EXPERIMENTS, Budget, load_experiment
from cognn.experiments.harness import benchmark_table
from cognn.experiments.harness.record import lock_record, summarise_cells
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.experiments.pages.markdown import record_page, write_record_page
from cognn.experiments.pages.readme import fill_tables
from cognn.run.python_options import make_config
from cognn.statistics.paired_gains import GAINS_TITLE
from cognn.statistics.significance import PublishedScore

OPTIONS = {"dataset": "cycles", "hidden_channels": 4, "num_layers": 1, "action_channels": 4, "epochs": 6, "samples": 2}


def runner(tmp_path: Path, limits: Limits | None = None, budget: Budget = "full", **options) -> ExperimentRunner:
    return ExperimentRunner("cycles", budget, limits or Limits(), tmp_path / "results", tmp_path / "runs", **options)


def cell(**options) -> TableCell:
    return TableCell("cycles", "Co-GNN(sum, mean)", make_config(**{**OPTIONS, **options}), PublishedScore(1.0), 2)


def test_a_record_holds_what_is_needed_to_judge_and_to_repeat_it(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.train(cell())
    record = json.loads(work.record_path.read_text())
    assert record["experiment"] == "cycles"
    assert len(record["runs"]) == 2
    for run in record["runs"]:
        assert {"dataset", "model", "config", "seed", "split", "metric", "val", "test", "epochs", "seconds"} <= set(run)
        assert {"torch", "python", "cognn", "torch_geometric"} <= set(run["versions"])
        assert run["hardware"]
    assert [run["seed"] for run in record["runs"]] == [0, 1]
    (row,) = record["summary"]
    assert row["mean"] == pytest.approx(sum(run["test"] for run in record["runs"]) / 2)
    assert row["verdict"] in ("above", "equal", "below", "untested")
    assert "| cycles | Co-GNN(sum, mean) | accuracy |" in record_page(record)


def test_the_same_recipe_and_seed_give_the_same_score_again(tmp_path: Path) -> None:
    first, second = (runner(tmp_path / name).train(cell()) for name in ("a", "b"))
    for a, b in zip(first, second, strict=True):
        assert {k: a[k] for k in ("val", "test", "best_epoch")} == {k: b[k] for k in ("val", "test", "best_epoch")}


def test_a_campaign_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cognn.run import train as run

    whole = runner(tmp_path / "whole").train(cell())
    real, calls = run.train_split, []

    def stops(*args, **options):
        calls.append(args[2])
        if len(calls) == 2:
            raise Interrupted
        return real(*args, **options)

    monkeypatch.setattr(run, "train_split", stops)
    work = runner(tmp_path / "cut")
    with pytest.raises(Interrupted):
        work.train(cell())
    assert len(json.loads(work.record_path.read_text())["runs"]) == 1
    again = runner(tmp_path / "cut").train(cell())
    assert len(calls) == 3, "the seed that was done is not trained again"
    assert [run["test"] for run in again] == [run["test"] for run in whole]


def test_a_scheduler_that_stops_a_campaign_between_two_runs_gets_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(work: ExperimentRunner) -> None:
        work.train(cell())
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(load_experiment("cycles"), "run", run)
    before = signal.getsignal(signal.SIGTERM)
    out = tmp_path / "results"
    words = ["reproduce", "cycles", "--out", str(out), "--work", str(tmp_path / "runs"), "--quiet"]
    assert main(words) == 130
    assert "stopped; resume with: " in capsys.readouterr().err
    assert "Co-GNN(sum, mean)" in (out / "cycles.md").read_text()
    assert signal.getsignal(signal.SIGTERM) is before


def test_runs_by_another_recipe_leave_the_record_and_other_cells_stay(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.train(cell())
    other = TableCell("cycles", "MeanGNN", make_config(**{**OPTIONS, "action": "none", "samples": 0}), None, 1)
    work.train(other)
    with pytest.raises(RunError, match="was started with another recipe; move it away"):
        runner(tmp_path).train(cell(lr=0.5))
    (tmp_path / "runs").rename(tmp_path / "old")
    changed = runner(tmp_path)
    changed.train(cell(lr=0.5))
    models = [(run["model"], run["config"]["train"]["lr"]) for run in changed.runs]
    assert models == [("Co-GNN(sum, mean)", 0.5), ("Co-GNN(sum, mean)", 0.5), ("MeanGNN", 0.003)]


def test_a_run_keeps_the_versions_it_was_made_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = runner(tmp_path, Limits(seeds=1)).train(cell())[0]
    later = {"versions": before["versions"] | {"torch": "99.0"}, "hardware": "another machine"}
    for module in ("cognn.train.loop", "cognn.experiments.harness.runner"):
        monkeypatch.setattr(f"{module}.origin", lambda: later)
    first, second = runner(tmp_path).train(cell())
    assert (first["versions"], first["hardware"]) == (before["versions"], before["hardware"])
    assert (second["versions"], second["hardware"]) == (later["versions"], later["hardware"])


def test_a_table_that_is_stopped_compares_all_the_runs_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = {"Co-GNN(sum, mean)": make_config(**OPTIONS)}
    configs["MeanGNN"] = make_config(**{**OPTIONS, "action": "none", "samples": 0})
    monkeypatch.setattr(benchmark_table, "load_recipe", lambda name, dataset, model: configs[model])
    names = [*configs, "SumGNN"]  # which has no recipe here: the table ends there as if it were killed
    for seeds in (1, 2):
        work = runner(tmp_path, Limits(seeds=seeds))
        with pytest.raises(KeyError, match="SumGNN"):
            benchmark_table.run_table(work, ["cycles"], names, {}, seeds=2)
        (row,) = json.loads(work.record_path.read_text())["facts"][GAINS_TITLE]
        assert (row["model"], row["compared with"], row["splits"]) == ("Co-GNN(sum, mean)", "MeanGNN", seeds)


def test_the_rows_of_a_dataset_stand_together_however_late_they_were_run(tmp_path: Path) -> None:
    work = runner(tmp_path)
    run = work.train(cell())[0]
    cells = [("b", "x"), ("a", "x"), ("b", "y"), ("b", "x")]
    rows = summarise_cells([run | {"dataset": dataset, "model": model} for dataset, model in cells])
    assert [(row["dataset"], row["model"], row["runs"]) for row in rows] == [
        ("b", "x", 2),
        ("b", "y", 1),
        ("a", "x", 1),
    ]


def test_an_option_that_came_after_a_run_had_its_default(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.train(cell())
    for run in work.runs:
        del run["config"]["train"]["draws"]
    work.write_record()
    (tmp_path / "runs").rename(tmp_path / "old")
    assert len(runner(tmp_path, Limits(seeds=1)).train(cell())) == 1
    assert len(json.loads(work.record_path.read_text())["runs"]) == 2, "the other seed, by the same recipe, stays"


def test_a_budget_caps_epochs_and_seeds(tmp_path: Path) -> None:
    runs = runner(tmp_path, Limits(epochs=2, seeds=1)).train(cell(warmup_epochs=3, eval_every=5))
    assert [run["epochs"] for run in runs] == [2]
    assert runs[0]["config"]["train"]["warmup_epochs"] == 1


def test_seeds_can_be_run_one_call_at_a_time(tmp_path: Path) -> None:
    whole = runner(tmp_path / "whole").train(cell())
    assert [run["seed"] for run in runner(tmp_path, seeds="1").train(cell())] == [1]
    second = runner(tmp_path, seeds="0")
    assert [run["seed"] for run in second.train(cell())] == [0]
    entered = sorted(second.recorded_runs(cell()), key=lambda run: run["seed"])
    assert [run["test"] for run in entered] == [run["test"] for run in whole]
    assert [fitted.config.train.seed for fitted in second.fitted(cell())] == [0, 1], "those of earlier calls too"
    assert not second.fitted(cell(epochs=7)), "runs by another recipe are of another cell"


def test_seeds_that_there_are_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seeds: there are 0 to 1, got '2'"):
        runner(tmp_path, seeds="2").train(cell())
    with pytest.raises(ConfigError, match="seeds: cycles runs cycles with one seed over its splits; use --splits"):
        runner(tmp_path, seeds="0").train(replace(cell(), seeds=1))
    with pytest.raises(ConfigError, match="seeds: cycles has none to choose from; leave the option out"):
        runner(tmp_path, seeds="0").reject_options("seeds")
    assert not (tmp_path / "runs").exists()


def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"datasets: cycles has no 'cora'; it has cycles"):
        runner(tmp_path, datasets=("cora",)).selected(["cycles"], "datasets")
    with pytest.raises(ConfigError, match="experiment: unknown 'all'; known are root-neighbors, heterophilic"):
        load_experiment("all")


def test_a_record_that_is_none_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "cycles.json").write_text("[]")
    with pytest.raises(RunError, match="not a record of an experiment"):
        runner(tmp_path)


@pytest.mark.parametrize(
    "content",
    ['{"runs": 3}', "{}", "no JSON", '{"experiment": "cycles", "budget": "smoke", "command": "", "runs": [{}]}'],
)
def test_a_damaged_record_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "cycles-smoke.json").write_text(content)
    with pytest.raises(RunError, match=r"cycles-smoke.json: not a record of an experiment \(.*\); move it away"):
        runner(tmp_path, budget="smoke")


@pytest.mark.parametrize(
    ("key", "value"), [("seed", None), ("split", "0"), ("test", float("nan")), ("model", 3), ("metric", None)]
)
def test_a_damaged_run_in_a_record_is_one_line(key: str, value: object, tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.train(cell())
    known = json.loads(work.record_path.read_text())
    known["runs"][0][key] = value
    work.record_path.write_text(json.dumps(known))
    with pytest.raises(
        RunError, match=rf"cycles.json: not a record of an experiment \({key} of a run is .*\); move it"
    ):
        runner(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_named_before_any_work(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("no folder that nobody can write to")
    assert main(["reproduce", "cycles", "--budget", "smoke", "--out", "/proc"]) == 2
    assert "out: /proc is not a writable folder" in capsys.readouterr().err


def test_a_record_of_another_experiment_or_budget_is_refused(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.write_record()
    work.record_path.rename(work.record_path.with_name("cycles-smoke.json"))
    with pytest.raises(RunError, match="is a record of budget 'full', not 'smoke'; move it away"):
        runner(tmp_path, budget="smoke")


def test_two_at_once_would_lose_runs_so_the_second_is_refused(tmp_path: Path) -> None:
    with (
        lock_record(tmp_path, "cycles", "smoke"),
        pytest.raises(RunError, match=r"cycles-smoke.json: another cognn reproduce is writing it"),
        lock_record(tmp_path, "cycles", "smoke"),
    ):
        pytest.fail("both are in")
    with lock_record(tmp_path, "cycles", "smoke"), lock_record(tmp_path, "cycles", "full"):
        pass


def test_a_run_that_lost_its_recipe_is_not_taken_for_another_one(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.train(cell())
    (work.run_folder(cell(), 0) / "config.toml").unlink()
    with pytest.raises(RunError, match=r"has lost its config.toml, so its recipe is not known; move it away"):
        work.train(cell())


def test_pages_are_filled_from_records(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.train(cell())
    page = write_record_page(work.record_path)
    assert page.read_text().startswith("# cycles")
    readme = "Before\n<!-- results: cycles -->\nold\n<!-- end -->\nafter\n"
    filled = fill_tables(readme, tmp_path / "results", tmp_path)
    assert "old" not in filled
    assert "| accuracy | cycles |\n|---|---|\n| Co-GNN(sum, mean) | " in filled
    assert "[epochs and p-values](results/cycles.md)" in filled
    assert filled.startswith("Before\n")
    assert filled.endswith("<!-- end -->\nafter\n")
    assert fill_tables(filled, tmp_path / "results", tmp_path) == filled
    with pytest.raises(RunError, match="not found; run cognn reproduce pairs first"):
        fill_tables("<!-- results: pairs -->\n<!-- end -->", tmp_path / "results")
    with pytest.raises(RunError, match="readme: nothing to fill; it needs <!-- results: NAME -->"):
        fill_tables("<!-- results: cycles -->\nno end", tmp_path / "results")


def test_the_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_limits_for_every_budget(name: str) -> None:
    assert set(load_experiment(name).LIMITS) == set(get_args(Budget))


@pytest.mark.parametrize(
    ("metric", "label", "shown"), [("roc_auc", "test roc auc (%)", 97.0), ("mae", "test mae", 0.97)]
)
def test_figures_have_the_units_of_the_tables(metric: str, label: str, shown: float, tmp_path, monkeypatch) -> None:
    drawn = []
    here = ExperimentRunner("heterophilic", "smoke", Limits(), tmp_path, tmp_path)
    monkeypatch.setattr(ExperimentRunner, "save_figure", lambda self, figure, part: drawn.append(figure.axes[0]))
    here.plot_scores(
        {"MeanGNN": [(0.97, 0.01), None], "SumGNN": [(0.5, None), (0.6, 0.1)]}, ("ours", "paper"), metric, "x"
    )
    (axes,) = drawn
    assert axes.get_xlabel() == label
    assert axes.lines[0].get_xdata()[0] == pytest.approx(shown)
    low, high = sorted(axes.get_ylim())
    assert (low, high) == (-0.5, 1.5), "the first and the last row are not on the frame"
