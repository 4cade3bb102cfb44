"""Figure: accuracy against depth, Co-GNN(mean, mean) beside its base network MeanGNN, on cora and roman-empire.

Both have the same recipe but for the actions, and every depth has the same number of epochs.  A paired t-test over the
splits says at each depth whether the actions make a difference; ``lost`` is how far the deepest network falls behind
the best depth of the same model.  The paper's text says that Co-GNN retains its accuracy in deep models while the base
deteriorates already with a few layers; its figure gives no numbers to compare with.

There are no skip connections, which spare even the base from being smoothed; on cora that is the paper's own grid, on
roman-empire it is not.  There the layer norm of its grid stays, without which neither learned anything at 8 layers.

Without a network only roman-empire-glove is at hand, which has the edges and labels of roman-empire but other features;
``--datasets cora,roman-empire`` runs the real one.  The full budget, ten splits of cora and three of the other, takes
about an hour on 2 cores.
"""

from statistics import mean
from typing import Any

from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.harness.record import summarise
from cognn.experiments.pages.markdown import number
from cognn.experiments.statistics.paired import Runs, gain, paired

DATASETS = ("cora", "roman-empire-glove", "roman-empire")
MODELS = ("Co-GNN(mean, mean)", "MeanGNN")
DEPTHS: dict[str, tuple[int, ...]] = {"smoke": (1, 3), "quick": (1, 2, 4, 8, 16), "full": (1, 2, 4, 6, 8, 10, 12, 16)}

PLANS = {
    "smoke": Plan(("cora",), epochs=2, splits=2),
    "quick": Plan(("cora",), epochs=150, splits=2),
    "full": Plan(("cora", "roman-empire-glove")),
}


def run(lab: Lab) -> None:
    """Train both models at every depth, and draw a figure for every dataset."""
    for dataset in lab.chosen(DATASETS, "datasets"):
        for layers in DEPTHS[lab.budget]:
            for model in lab.chosen(MODELS, "models"):
                config = recipe(lab.name, dataset, model)
                config.model.num_layers = layers
                lab.train(Cell(dataset, at_depth(model, layers), config))
        found = by_depth(lab.runs, dataset)
        if added := gains(*(found.get(model, {}) for model in MODELS)):
            lab.facts[f"What the actions add at each depth, {dataset}"] = added
        lab.facts[f"What depth costs, {dataset}"] = [{"model": name} | losses(runs) for name, runs in found.items()]
        _draw(lab, dataset)
        lab.write()


def at_depth(model: str, layers: int) -> str:
    """``"MeanGNN, 4 layers"``: a model's name at a depth."""
    return f"{model}, {layers} layer{'s' if layers > 1 else ''}"


ByDepth = dict[int, Runs]


def by_depth(runs: Runs, dataset: str) -> dict[str, ByDepth]:
    """The runs of the models on a dataset; depths in order."""
    found: dict[str, ByDepth] = {}
    for run in sorted(runs, key=lambda run: int(run["config"]["model"]["num_layers"])):
        if run["dataset"] == dataset:
            layers, model = run["config"]["model"]["num_layers"], run["model"].rsplit(", ", 1)[0]
            found.setdefault(model, {}).setdefault(layers, []).append(run)
    return {model: found[model] for model in MODELS if model in found}


def gains(ours: ByDepth, base: ByDepth) -> list[dict[str, Any]]:
    """A row per depth at which both have a split in common: what the actions gain, by a paired test."""
    both = {layers: (runs, base[layers]) for layers, runs in ours.items() if layers in base}
    return [{"layers": layers, **gain(*pair, "Co-GNN", "base")} for layers, pair in both.items() if paired(*pair)[0]]


def losses(runs: ByDepth) -> dict[str, Any]:
    """The best depth by validation and the deepest, and what is lost from the one to the other."""
    means, valid = (
        {layers: mean(run[part] for run in found) for layers, found in runs.items()} for part in ("test", "val")
    )
    best, deepest = max(valid, key=lambda layers: valid[layers]), max(means)
    at_best, there, lost = (
        number(value, "accuracy") for value in (means[best], means[deepest], means[best] - means[deepest])
    )
    return {"best depth": best, "accuracy": at_best, "deepest": deepest, "accuracy there": there, "lost": lost}


def _draw(lab: Lab, dataset: str) -> None:
    from matplotlib.ticker import MaxNLocator

    from cognn.report.figures import curves

    summary = {row["model"]: row for row in summarise(lab.runs) if row["dataset"] == dataset}
    lines = {}
    for model in MODELS:
        depths = [layers for layers in DEPTHS[lab.budget] if at_depth(model, layers) in summary]
        found = [summary[at_depth(model, layers)] for layers in depths]
        if found:
            lines[model] = (depths, [100 * row["mean"] for row in found], [100 * (row["std"] or 0) for row in found])
    figure = curves(lines, "layers", "test accuracy (%)", dataset)
    figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    lab.figure(figure, dataset)
