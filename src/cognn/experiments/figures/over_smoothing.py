"""Figure: accuracy against depth, Co-GNN(mean, mean) and its base network MeanGNN, on cora and roman-empire.

Both have the same recipe except for the actions, and every depth trains for the same number of epochs.  At each depth
a paired t-test over the splits compares the two.  ``lost`` is the accuracy of a model at its best depth minus that at
the greatest depth.  The paper states that Co-GNN retains its accuracy in deep models while the base network
deteriorates after a few layers; its figure gives no numbers to compare with.

There are no residual connections, because they protect the base network from over-smoothing as well.  On cora this is
in the paper's grid, on roman-empire it is not.  On roman-empire the layer norm of the paper's grid is kept; without it
neither model learned anything at 8 layers.

Without a network only roman-empire-glove is available, which has the edges and labels of roman-empire but other
features; ``--datasets cora,roman-empire`` uses the original.  The full budget, ten splits of cora and three of the
other, takes about an hour on 2 cores.
"""

from statistics import mean
from typing import Any

from matplotlib.ticker import MaxNLocator

from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.record import summarise_cells
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.report.figures import curves
from cognn.statistics.formatting import format_score
from cognn.statistics.paired_gains import Runs, gain, paired_scores

DATASETS = ("cora", "roman-empire-glove", "roman-empire")
MODELS = ("Co-GNN(mean, mean)", "MeanGNN")
DEPTHS: dict[str, tuple[int, ...]] = {"smoke": (1, 3), "quick": (1, 2, 4, 8, 16), "full": (1, 2, 4, 6, 8, 10, 12, 16)}

LIMITS = {
    "smoke": Limits(("cora",), epochs=2, splits=2),
    "quick": Limits(("cora",), epochs=150, splits=2),
    "full": Limits(("cora", "roman-empire-glove")),
}


def run(runner: ExperimentRunner) -> None:
    """Train both models at every depth, and plot a figure for every dataset."""
    for dataset in runner.selected(DATASETS, "datasets"):
        for layers in DEPTHS[runner.budget]:
            for model in runner.selected(MODELS, "models"):
                config = load_recipe(runner.name, dataset, model)
                config.model.num_layers = layers
                runner.train(TableCell(dataset, at_depth(model, layers), config))
        found = by_depth(runner.runs, dataset)
        if added := gains(*(found.get(model, {}) for model in MODELS)):
            runner.facts[f"What the actions add at each depth, {dataset}"] = added
        runner.facts[f"What depth costs, {dataset}"] = [{"model": name} | losses(runs) for name, runs in found.items()]
        _draw(runner, dataset)
        runner.write_record()


def at_depth(model: str, layers: int) -> str:
    """The name of a model at a depth: ``"MeanGNN, 4 layers"``."""
    return f"{model}, {layers} layer{'s' if layers > 1 else ''}"


ByDepth = dict[int, Runs]


def by_depth(runs: Runs, dataset: str) -> dict[str, ByDepth]:
    """The runs of every model on a dataset by depth, in ascending order."""
    found: dict[str, ByDepth] = {}
    for run in sorted(runs, key=lambda run: int(run["config"]["model"]["num_layers"])):
        if run["dataset"] == dataset:
            layers, model = run["config"]["model"]["num_layers"], run["model"].rsplit(", ", 1)[0]
            found.setdefault(model, {}).setdefault(layers, []).append(run)
    return {model: found[model] for model in MODELS if model in found}


def gains(ours: ByDepth, base: ByDepth) -> list[dict[str, Any]]:
    """The gain of the actions at every depth where both models have a split in common."""
    both = {layers: (runs, base[layers]) for layers, runs in ours.items() if layers in base}
    return [
        {"layers": layers, **gain(*pair, "Co-GNN", "base")} for layers, pair in both.items() if paired_scores(*pair)[0]
    ]


def losses(runs: ByDepth) -> dict[str, Any]:
    """Test accuracy at the best depth on validation and at the greatest depth, and their difference."""
    means, valid = (
        {layers: mean(run[part] for run in found) for layers, found in runs.items()} for part in ("test", "val")
    )
    best, deepest = max(valid, key=lambda layers: valid[layers]), max(means)
    at_best, there, lost = (
        format_score(value, "accuracy") for value in (means[best], means[deepest], means[best] - means[deepest])
    )
    return {"best depth": best, "accuracy": at_best, "deepest": deepest, "accuracy there": there, "lost": lost}


def _draw(runner: ExperimentRunner, dataset: str) -> None:
    summary = {row["model"]: row for row in summarise_cells(runner.runs) if row["dataset"] == dataset}
    lines = {}
    for model in MODELS:
        depths = [layers for layers in DEPTHS[runner.budget] if at_depth(model, layers) in summary]
        found = [summary[at_depth(model, layers)] for layers in depths]
        if found:
            lines[model] = (depths, [100 * row["mean"] for row in found], [100 * (row["std"] or 0) for row in found])
    figure = curves(lines, "layers", "test accuracy (%)", dataset)
    figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    runner.save_figure(figure, dataset)
