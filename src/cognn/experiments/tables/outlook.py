"""The paper's outlook: actions that know directions, relations and edges, against the same networks without actions.

The first model of a dataset has a recipe; every other row changes it in the named way and is trained on the same splits
with the same seeds, so that the comparisons are paired t-tests.
"""

from dataclasses import replace
from typing import Any

from cognn.config.changes import changed
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.experiments.tables.heads import GAT, PLAIN
from cognn.statistics.paired_gains import OUTLOOK_TITLE

MODEL = "Co-GNN"
ALONG: dict[str, Any] = {"directions": "in", "direction_share": "0.5"}
ONE_HEAD: dict[str, Any] = {"action_heads": "1", "gates": "sampled"}
DIRECTED = {
    "no actions": PLAIN,
    "added instead of multiplied": {"gates": "added"},
    "drawn": {"gates": "sampled"},
    "one head, drawn": ONE_HEAD,
    "along the edges only": ALONG,
    "along the edges only, no actions": ALONG | PLAIN,
}
NODE_WISE: dict[str, Any] = {"action_space": "joint", "standard_bias": None}
EDGE_WISE: dict[str, dict[str, Any]] = {
    "no actions": PLAIN | NODE_WISE,
    "one decision per node": NODE_WISE,
    "one decision per node and channel": NODE_WISE
    | {"action_space": "factored", "action_heads": "channel", "gates": "continuous"},
    "continuous": {"gates": "continuous", "lr": 0.01, "weight_decay": 0.0},
    "GAT": GAT,
}
UNDIRECTED = {"roman-empire-glove-directed": "roman-empire-glove"}
"""The same graph with every edge in both directions."""
DATASETS: dict[str, dict[str, dict[str, Any]]] = {
    "roman-empire-glove-directed": DIRECTED | {"undirected": ALONG, "undirected, no actions": ALONG | PLAIN},
    "citeseer-directed": DIRECTED,
    "directed-root-neighbors": {"no actions": PLAIN, "along the edges only": ALONG},
    "aifb": {"no actions": PLAIN, "added instead of multiplied": {"gates": "added"}},
    "relational-root-neighbors": {"no actions": PLAIN, "alike in all relations": {"relation_actions": "shared"}},
    "matching-neighbors": EDGE_WISE,
}
"""Changes to the recipe of each dataset."""
SEEDS = {"directed-root-neighbors": 5, "aifb": 10, "relational-root-neighbors": 5, "matching-neighbors": 5}
LIMITS = {
    "smoke": Limits(("relational-root-neighbors",), epochs=2, seeds=1),
    "quick": Limits(("citeseer-directed",), epochs=100, splits=3),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train every row of every dataset; ``--models`` selects rows."""
    names = list(dict.fromkeys([MODEL, *(name for rows in DATASETS.values() for name in rows)]))
    wanted = runner.selected(names, "models")
    for dataset in runner.selected(DATASETS, "datasets"):
        recipe = load_recipe(runner.name, dataset, MODEL)
        cells = {MODEL: TableCell(dataset, MODEL, recipe, None, SEEDS.get(dataset, 1))}
        for name, changes in DATASETS[dataset].items():
            source = UNDIRECTED[dataset] if name.startswith("undirected") else ""
            cells[name] = replace(cells[MODEL], model=name, config=changed(recipe, changes), source=source)
        for name, cell in cells.items():
            if name in wanted:
                runner.train(cell)
        runs = {name: runner.recorded_runs(cell) for name, cell in cells.items()}
        for name, cell in cells.items():
            runner.keep_only(cell, runs[name])
        if ours := runs.pop(MODEL):
            runner.compare(OUTLOOK_TITLE, dataset, {MODEL: ours}, runs, list(DATASETS))
