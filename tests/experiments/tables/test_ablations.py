"""What each choice contributes: the variants, and how they are set beside the whole model."""

import shutil
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, TableCell
from cognn.experiments.tables import ablations
from cognn.experiments.tables.ablations import CHOICES, CONTROLS, HELP, SUBJECTS, help_sentence, varied
from tests.experiments.conftest import Reproduce

KNOWN = {"dataset": "cora", "model": "", "seed": 0, "split": 0, "val": 0.5, "test": 0.5, "metric": "accuracy"}
KNOWN |= {"paper": None, "seconds": 1.0, "config": {"train": {"drop_edge": 0.5}}}


def test_smoke(reproduce) -> None:
    record = reproduce("ablations")
    models = {run["model"].partition(": ")[2] for run in record["runs"]}
    assert {
        "",
        "without actions",
        "tuned base",
        "edges dropped at random",
        "actions frozen",
        "factored actions",
    } <= models
    said = next(fact for title, fact in record["facts"].items() if title.endswith("do the actions help?"))
    assert "against tuned base" in said
    assert "of the edges" in said
    table = next(fact for title, fact in record["facts"].items() if "paired" in title)
    assert {row["variant"] for row in table} == models - {""}
    assert any(title.endswith("how the actions are scored") for title in record["facts"])
    some = reproduce("ablations", "--models", "actions frozen")
    assert some["facts"] == record["facts"]  # what was trained before stays beside the variants of this call


@pytest.mark.parametrize("dataset", SUBJECTS)
def test_every_variant_is_a_recipe_that_can_be_run(dataset: str) -> None:
    subject = SUBJECTS[dataset]
    whole = load_recipe(subject.experiment, dataset, subject.model)
    assert whole.model.acts
    base = load_recipe(subject.experiment, dataset, subject.base)
    assert not base.model.acts
    for changes in (HELP | CHOICES).values():
        varied(whole, changes).check()


@pytest.mark.parametrize(("models", "run"), [((), set(CONTROLS)), (("tuned base",), {"tuned base"})])
def test_a_subject_of_one_question_has_its_controls(
    models: tuple[str, ...], run: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []
    monkeypatch.setattr(ablations, "SUBJECTS", {"cora": SUBJECTS["cora"]._replace(every_choice=False)})
    monkeypatch.setattr(ExperimentRunner, "train", lambda self, cell: trained.append(cell.model.partition(": ")[2]))
    monkeypatch.setattr(ExperimentRunner, "plot_scores", lambda *_: None)
    monkeypatch.setattr(ExperimentRunner, "recorded_runs", lambda *_, **__: [KNOWN])
    monkeypatch.setattr(ablations, "kept_share", lambda *_: 0.5)
    monkeypatch.setattr(ablations, "_scoring", lambda *_: [])
    runner = ExperimentRunner(
        "ablations", "full", ablations.LIMITS["full"], tmp_path, tmp_path, datasets=("cora",), models=models
    )
    ablations.run(runner)
    assert set(trained) == {""} | run


@pytest.mark.parametrize("lost", [False, True], ids=["by the record", "by the run"])
def test_seeds_that_come_later_drop_as_many_edges_as_the_first(
    lost: bool, reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shares = iter([0.4, 0.9, 0.7, 0.2])  # of the edges kept, drawn and likeliest, in the two calls
    monkeypatch.setattr(ablations, "kept_share", lambda trained, mode: next(shares))
    rates = []
    for seed in "01":
        record = reproduce("ablations", "--models", ablations.RANDOM, "--seeds", seed)
        runs = [run for run in record["runs"] if run["model"].endswith(ablations.RANDOM)]
        assert runs[-1]["seed"] == int(seed)
        rates.append(runs[-1]["config"]["train"]["drop_edge"])
        if lost:  # as after another --out, or a kill before the first run was entered
            (tmp_path / "results" / "ablations-smoke.json").unlink()
    assert rates == [0.6, 0.6]


def test_a_changed_recipe_takes_its_variants_along(
    reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Variants by the recipe of before leave the record, also the one that is the recipe itself now."""

    def variants() -> set[str]:
        record = reproduce("ablations", "--models", "factored actions; temperature fixed at 1")
        return {run["model"].partition(": ")[2] for run in record["runs"]}

    assert variants() == {"", "factored actions", "temperature fixed at 1"}
    changed = load_recipe("root-neighbors", "root-neighbors", "Co-GNN(sum, mean)")
    changed.model.temperature = "1"
    monkeypatch.setattr(ablations, "load_recipe", lambda *_: changed)
    shutil.rmtree(tmp_path / "runs")
    assert variants() == {"", "factored actions"}


@pytest.mark.parametrize(("own", "rate"), [(0.0, 0.6), (0.5, 0.8)])
def test_random_dropping_comes_on_top_of_what_the_recipe_drops(own: float, rate: float, tmp_path: Path) -> None:
    runner = ExperimentRunner("ablations", "full", ablations.LIMITS["full"], tmp_path, tmp_path)
    config = load_recipe("homophilic", "cora", "Co-GNN(gcn, gcn)")
    config.train.drop_edge = own
    assert ablations._rate(runner, TableCell("cora", "random", config), kept=0.4) == rate


def test_only_what_was_run_on_the_same_splits_is_compared() -> None:
    def runs(scores: dict[int, float]) -> list[dict]:
        return [{"seed": 0, "split": split, "test": test, "metric": "accuracy"} for split, test in scores.items()]

    found = {"Co-GNN": runs({0: 0.9, 1: 0.8, 2: 0.7}), "without actions": runs({2: 0.5, 1: 0.7, 5: 0.1})}
    assert "against without actions (+15.00 points, p = 0.2)" in help_sentence("cora", found, "Co-GNN")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["propositions", "--datasets", "cora"], "datasets: propositions has none to choose from; leave"),
        (["kept-edges", "--models", "GCN"], "models: kept-edges has none to choose from; leave"),
        (["runtime", "--splits", "0"], "splits: runtime has none to choose from; leave"),
        (["ablations", "--models", "frozen"], "models: ablations has no 'frozen'; it has without actions; tuned base"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(options, message, tmp_path, capsys) -> None:
    places = ["--out", str(tmp_path / "results"), "--work", str(tmp_path / "runs")]
    assert main(["reproduce", *options, "--budget", "smoke", *places]) != 0
    assert message in capsys.readouterr().err
