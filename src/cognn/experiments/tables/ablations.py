"""Ablations: the effect of each choice, and whether the actions help once the base network is tuned as carefully.

Every variant changes one option in the recipe of a table.  All are trained on the same splits with the same seeds, so
the comparisons are paired t-tests.
"""

from collections.abc import Iterator
from dataclasses import replace
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch

from cognn.config.options import Config
from cognn.config.run_folder import run_config
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.nn.actions import ActionMode
from cognn.run.fit import Fitted
from cognn.statistics.formatting import format_score
from cognn.statistics.paired_gains import Runs, gain, paired_scores
from cognn.train import metrics
from cognn.train.batcher import Batcher, forward_all


class Subject(NamedTuple):
    """The table and model whose recipe is varied, and its tuned base network.

    ``seeds`` applies to datasets with one split.  With ``every_choice`` all variants are trained; otherwise only the
    controls, unless ``--models`` names others.
    """

    experiment: str
    model: str
    base: str
    seeds: int = 1
    every_choice: bool = False


SUBJECTS = {
    "root-neighbors": Subject("root-neighbors", "Co-GNN(sum, mean)", "MeanGNN", 5, every_choice=True),
    "cora": Subject("homophilic", "Co-GNN(gcn, gcn)", "GCN", every_choice=True),
    "minesweeper": Subject("heterophilic", "Co-GNN(mean, mean)", "MeanGNN", every_choice=True),
    "enzymes": Subject("graph-classification", "Co-GNN(mean, mean)", "MeanGNN", every_choice=True),
    "imdb-multi": Subject("graph-classification", "Co-GNN(sum, sum)", "SumGNN"),
    "pubmed": Subject("homophilic", "Co-GNN(gcn, gcn)", "GCN"),
    "tolokers": Subject("heterophilic", "Co-GNN(sum, sum)", "SumGNN"),
    "roman-empire-glove": Subject("heterophilic", "Co-GNN(sum, sum)", "SumGNN"),
    "nci1": Subject("graph-classification", "Co-GNN(mean, mean)", "MeanGNN"),
    "peptides-func": Subject("peptides-func", "Co-GNN(gcn, gcn)", "GCN", 4),
}
TUNED, RANDOM = "tuned base", "edges dropped at random"
PLAIN = {"action": "none", "standard_bias": 0.0}
HELP: dict[str, dict[str, Any]] = {
    "without actions": PLAIN,
    TUNED: {},
    RANDOM: PLAIN,
    "actions frozen": {"freeze_actions": True},
    "bias 3 toward STANDARD": {"standard_bias": 3.0},
    "no bias toward STANDARD": {"standard_bias": 0.0},
    "price 0.1 on edges": {"edge_price": 0.1},
}
"""Variants that answer whether the actions help."""
CONTROLS = ("without actions", RANDOM, "actions frozen")
"""Variants with the recipe of Co-GNN itself and no trained actions."""
CHOICES: dict[str, dict[str, Any]] = {
    "mean over all neighbours": {"mean_over": "all"},
    "factored actions": {"action_space": "factored"},
    "temperature fixed at 1": {"temperature": "1"},
    "layer norm first": {"norm": "layer", "norm_first": True},
    "layer norm after": {"norm": "layer", "norm_first": False},
    "batch norm first": {"norm": "batch", "norm_first": True},
    "batch norm after": {"norm": "batch", "norm_first": False},
}
SCORING: dict[str, dict[str, Any]] = {
    "argmax": {"actions": "argmax", "samples": 0},
    "one sample": {"actions": "sample", "samples": 0},
    "expected": {"actions": "expected", "samples": 0},
    "mean of 16 samples": {"samples": 16},
}
LIMITS = {
    "smoke": Limits(("root-neighbors",), epochs=2, seeds=2),
    "quick": Limits(("root-neighbors", "cora"), tuple(HELP), epochs=300, splits=4, seeds=3),
    "full": Limits(tuple(name for name in SUBJECTS if name != "peptides-func")),  # takes hours
}


def run(runner: ExperimentRunner) -> None:
    """Train and compare the variants of every subject; ``--models`` selects variants."""
    variants = runner.selected(HELP | CHOICES, "models")
    for dataset in runner.selected(SUBJECTS, "datasets"):
        subject = SUBJECTS[dataset]
        wanted = variants if subject.every_choice or runner.models else [name for name in variants if name in CONTROLS]
        complete = TableCell(
            dataset, subject.model, load_recipe(subject.experiment, dataset, subject.model), None, subject.seeds
        )
        runner.train(complete)
        modes: tuple[ActionMode, ...] = ("sample", "argmax")
        trained = runner.fitted(complete)
        kept = {mode: kept_share(trained, mode) for mode in modes}
        ours = runner.recorded_runs(complete)
        runs = {subject.model: ours}
        for variant, changes in (HELP | CHOICES).items():
            config = varied(complete.config, changes)
            if variant == TUNED:
                config = load_recipe(subject.experiment, dataset, subject.base)
            cell = TableCell(dataset, f"{subject.model}: {variant}", config, None, subject.seeds)
            if config == complete.config:
                runner.keep_only(cell, [])
                continue
            if variant == RANDOM:
                config.train.drop_edge = _rate(runner, cell, kept["sample"])
            if variant in wanted:
                runner.train(cell)
            theirs = runner.recorded_runs(cell)  # includes earlier calls
            runner.keep_only(cell, theirs)
            if paired_scores(ours, theirs)[0]:
                runs[variant] = theirs
        runner.facts[f"{dataset}: what {subject.model} gains over each variant, paired over the same splits"] = [
            {"variant": name, **gain(ours, theirs, "recipe", "changed")}
            for name, theirs in runs.items()
            if name != subject.model
        ]
        rows = {name: [_mean_std(theirs)] for name, theirs in runs.items()}
        runner.plot_scores(rows, ("test",), ours[0]["metric"], dataset)
        runner.facts[f"{dataset}: how the actions are scored"] = _scoring(trained)
        share = f"They keep {kept['argmax']:.1%} of the edges, over all layers, and {kept['sample']:.1%} when drawn."
        if complete.config.train.drop_edge:
            share += f" In training the recipe itself drops {complete.config.train.drop_edge:.1%} at random."
        if RANDOM in runs:
            share += f" Random dropping leaves {1 - runs[RANDOM][0]['config']['train']['drop_edge']:.1%}."
        runner.facts[f"{dataset}: do the actions help?"] = f"{help_sentence(dataset, runs, subject.model)} {share}"
        runner.write_record()


def varied(config: Config, changes: dict[str, Any]) -> Config:
    """The recipe with these options changed."""
    if "mean_over" in changes and config.model.env != "mean":
        return config
    model = {key: value for key, value in changes.items() if hasattr(config.model, key)}
    options = {key: value for key, value in changes.items() if hasattr(config.train, key)}
    return Config(config.data, replace(config.model, **model), replace(config.train, **options))


def help_sentence(dataset: str, runs: dict[str, Runs], model: str) -> str:
    """Whether the actions of a model help, as one sentence."""
    words = []
    for name in ("without actions", TUNED, RANDOM, "actions frozen"):
        if name in runs:
            row = gain(runs[model], runs[name])
            p = "" if row["p"] is None else f", p = {row['p']}"
            words.append(f"{row['first is']} against {name} ({row['gain']}{p})")
    return f"On {dataset} the trained actions of {model} are " + "; ".join(words) + "."


def _rate(runner: ExperimentRunner, cell: TableCell, kept: float) -> float:
    """The rate at which random dropping removes as many edges as sampled actions do.

    Later splits and seeds reuse the rate of the first run, recorded or only started, because they would measure a
    slightly different one.
    """
    if earlier := runner.recorded_runs(cell, ignore="drop_edge"):
        return float(earlier[0]["config"]["train"]["drop_edge"])
    folders = (runner.run_folder(cell, seed) for seed in range(cell.seeds))
    started = next((folder for folder in folders if (folder / "config.toml").exists()), None)
    if started:
        return run_config(started).train.drop_edge
    left = (1 - cell.config.train.drop_edge) * kept  # the recipe itself may drop edges
    return min(round(1 - left, 3), 0.99)


def _mean_std(runs: Runs) -> tuple[float, float | None]:
    scores = [run["test"] for run in runs]
    return mean(scores), stdev(scores) if len(scores) > 1 else None


def _trained(runs: list[Fitted]) -> Iterator[tuple[Fitted, Batcher, dict[str, Any]]]:
    """Every split of the runs with its items and result, after seeding with the seed of the split."""
    for fitted in runs:
        items = Batcher(fitted.dataset, fitted.config.train.batch_size, torch.device("cpu"))
        for result in fitted.result["splits"]:
            torch.manual_seed(result["seed"])
            yield fitted, items, result


def kept_share(runs: list[Fitted], mode: ActionMode) -> float:
    """Mean share of edges that the trained models keep over all layers, splits and seeds.

    With continuous gates it is the expected share, whatever the mode.
    """
    shares = []
    for fitted, items, result in _trained(runs):
        options = replace(fitted.config.train, samples=0, actions=mode)
        share = forward_all(fitted.model(result["split"]), items, options, trace=True)[1]
        shares.append(1.0 if share is None else share)
    return mean(shares)


def _scoring(runs: list[Fitted]) -> list[dict[str, Any]]:
    """Test scores of the same trained models under different action modes."""
    rows = []
    for name, changes in SCORING.items():
        scores, metric = [], ""
        for fitted, items, result in _trained(runs):
            out, _ = forward_all(fitted.model(result["split"]), items, replace(fitted.config.train, **changes))
            part = fitted.dataset.labelled(fitted.dataset.splits[result["split"]].test)
            scores.append(metrics.score(fitted.dataset.task, out[part], items.y[part]))
            metric = result["metric"]
        rows.append({"scored by": name, f"test {metric}": format_score(mean(scores), metric), "runs": len(scores)})
    return rows
