"""Ablations: what each choice contributes, and whether the actions help once the base network is tuned as hard.

Every variant changes one thing in the recipe of a table.  All are trained on the same splits with the same seeds, so
the comparisons are paired: a t-test over the differences from split to split.
"""

from collections.abc import Iterator
from dataclasses import replace
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch

from cognn.config.options import Config
from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.pages.markdown import number
from cognn.experiments.statistics.paired import gain, paired
from cognn.nn.actions import ActionMode
from cognn.run.fit import Fitted
from cognn.run.train import run_config
from cognn.train import metrics
from cognn.train.batcher import Batcher, forward_all


class Subject(NamedTuple):
    """Which table's recipe is varied, and the tuned base network beside it.

    ``seeds`` is how many where one split is all.  ``whole`` varies every choice; else the controls are run, unless
    ``--models`` names others: these are the models for which the tables tell a difference that could be the actions'.
    """

    experiment: str
    model: str
    base: str
    seeds: int = 1
    whole: bool = False


SUBJECTS = {
    "root-neighbors": Subject("root-neighbors", "Co-GNN(sum, mean)", "MeanGNN", 5, whole=True),
    "cora": Subject("homophilic", "Co-GNN(gcn, gcn)", "GCN", whole=True),
    "minesweeper": Subject("heterophilic", "Co-GNN(mean, mean)", "MeanGNN", whole=True),
    "enzymes": Subject("graph-classification", "Co-GNN(mean, mean)", "MeanGNN", whole=True),
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
"""Do the actions help?  What they are compared with."""
CONTROLS = ("without actions", RANDOM, "actions frozen")
"""Those that have the recipe of Co-GNN itself, and no trained actions."""
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
PLANS = {
    "smoke": Plan(("root-neighbors",), epochs=2, seeds=2),
    "quick": Plan(("root-neighbors", "cora"), tuple(HELP), epochs=300, splits=4, seeds=3),
    "full": Plan(tuple(name for name in SUBJECTS if name != "peptides-func")),  # which takes hours
}


def run(lab: Lab) -> None:
    """Train every variant of every subject, then compare; ``--models`` names the variants."""
    variants = lab.chosen(HELP | CHOICES, "models")
    for dataset in lab.chosen(SUBJECTS, "datasets"):
        subject = SUBJECTS[dataset]
        wanted = variants if subject.whole or lab.models else [name for name in variants if name in CONTROLS]
        whole = Cell(dataset, subject.model, recipe(subject.experiment, dataset, subject.model), None, subject.seeds)
        lab.train(whole)
        modes: tuple[ActionMode, ...] = ("sample", "argmax")
        trained = lab.fitted(whole)
        kept = {mode: _kept(trained, mode) for mode in modes}
        ours = lab.known(whole)
        runs = {subject.model: ours}
        for variant, changes in (HELP | CHOICES).items():
            config = varied(whole.config, changes)
            if variant == TUNED:
                config = recipe(subject.experiment, dataset, subject.base)
            cell = Cell(dataset, f"{subject.model}: {variant}", config, None, subject.seeds)
            if config == whole.config:
                lab.keep(cell, [])
                continue
            if variant == RANDOM:
                config.train.drop_edge = _rate(lab, cell, kept["sample"])
            if variant in wanted:
                lab.train(cell)
            theirs = lab.known(cell)  # of earlier calls too
            lab.keep(cell, theirs)
            if paired(ours, theirs)[0]:
                runs[variant] = theirs
        lab.facts[f"{dataset}: what {subject.model} gains over each variant, paired over the same splits"] = [
            {"variant": name, **gain(ours, theirs, "recipe", "changed")}
            for name, theirs in runs.items()
            if name != subject.model
        ]
        rows = {name: [_spread(theirs)] for name, theirs in runs.items()}
        lab.scores(rows, ("test",), ours[0]["metric"], dataset)
        lab.facts[f"{dataset}: how the actions are scored"] = _scoring(trained)
        share = f"They keep {kept['argmax']:.1%} of the edges, over all layers, and {kept['sample']:.1%} when drawn."
        if whole.config.train.drop_edge:
            share += f" In training the recipe itself drops {whole.config.train.drop_edge:.1%} at random."
        if RANDOM in runs:
            share += f" Random dropping leaves {1 - runs[RANDOM][0]['config']['train']['drop_edge']:.1%}."
        lab.facts[f"{dataset}: do the actions help?"] = f"{answer(dataset, runs, subject.model)} {share}"
        lab.write()


def varied(config: Config, changes: dict[str, Any]) -> Config:
    """The recipe with one thing changed."""
    if "mean_over" in changes and config.model.env != "mean":
        return config
    model = {key: value for key, value in changes.items() if hasattr(config.model, key)}
    options = {key: value for key, value in changes.items() if hasattr(config.train, key)}
    return Config(config.data, replace(config.model, **model), replace(config.train, **options))


def answer(dataset: str, runs: dict[str, list[dict[str, Any]]], model: str) -> str:
    """One plain sentence for a reader who wants to know."""
    words = []
    for name in ("without actions", TUNED, RANDOM, "actions frozen"):
        if name in runs:
            row = gain(runs[model], runs[name])
            p = "" if row["p"] is None else f", p = {row['p']}"
            words.append(f"{row['first is']} against {name} ({row['gain']}{p})")
    return f"On {dataset} the trained actions of {model} are " + "; ".join(words) + "."


def _rate(lab: Lab, cell: Cell, kept: float) -> float:
    """Random dropping takes away as many edges as the actions do when drawn.

    Splits and seeds that come later take the rate of the first, in the record or only begun, for theirs would be
    another one; the record says both.
    """
    if earlier := lab.known(cell, but="drop_edge"):
        return float(earlier[0]["config"]["train"]["drop_edge"])
    folders = (lab.folder(cell, seed) for seed in range(cell.seeds))
    begun = next((folder for folder in folders if (folder / "config.toml").exists()), None)
    if begun:
        return run_config(begun).train.drop_edge
    left = (1 - cell.config.train.drop_edge) * kept  # of a recipe that drops some by itself
    return min(round(1 - left, 3), 0.99)


def _spread(runs: list[dict[str, Any]]) -> tuple[float, float | None]:
    scores = [run["test"] for run in runs]
    return mean(scores), stdev(scores) if len(scores) > 1 else None


def _trained(runs: list[Fitted]) -> Iterator[tuple[Fitted, Batcher, dict[str, Any]]]:
    """Every split of the runs, what it was trained on, and its result; the random numbers as they were for it."""
    for fitted in runs:
        items = Batcher(fitted.dataset, fitted.config.train.batch_size, torch.device("cpu"))
        for result in fitted.result["splits"]:
            torch.manual_seed(result["seed"])
            yield fitted, items, result


def _kept(runs: list[Fitted], mode: ActionMode) -> float:
    """Share of edges that the trained models keep by actions of a mode, over all layers, splits and seeds."""
    shares = []
    for fitted, items, result in _trained(runs):
        options = replace(fitted.config.train, samples=0, actions=mode)
        share = forward_all(fitted.model(result["split"]), items, options, trace=True)[1]
        shares.append(1.0 if share is None else share)
    return mean(shares)


def _scoring(runs: list[Fitted]) -> list[dict[str, Any]]:
    """The same trained models, their nodes acting in different ways when they are scored."""
    rows = []
    for name, changes in SCORING.items():
        scores, metric = [], ""
        for fitted, items, result in _trained(runs):
            out, _ = forward_all(fitted.model(result["split"]), items, replace(fitted.config.train, **changes))
            part = fitted.dataset.labelled(fitted.dataset.splits[result["split"]].test)
            scores.append(metrics.score(fitted.dataset.task, out[part], items.y[part]))
            metric = result["metric"]
        rows.append({"scored by": name, f"test {metric}": number(mean(scores), metric), "runs": len(scores)})
    return rows
