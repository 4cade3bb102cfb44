"""Do decisions remove noise?  Citation graphs with random edges added, by kind of decision.

All rows of a dataset share one recipe that was not searched, on the same splits with the same seeds, so that the
comparisons are paired t-tests.  Random dropping knows the share of noise: it drops as many edges as were added.
"""

from typing import Any

from cognn.config.changes import changed
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.experiments.tables.heads import GAT, PLAIN
from cognn.statistics.paired_gains import NOISE_TITLE

MODEL, DROPPED = "Co-GNN, heads", "as many edges dropped at random"
ROWS: dict[str, dict[str, Any]] = {
    MODEL: {},
    "no actions": PLAIN,
    "one decision per node": {"action_heads": "1", "gates": "sampled", "action_space": "joint"},
    "one decision per edge": {"action_heads": "1", "action_space": "edge"},
    DROPPED: PLAIN,
    "GAT": GAT,
}
"""Changes to the recipe of each dataset."""
SHARES = (0, 1, 2, 5)
"""Random edges per edge of the graph."""
DATASETS = {f"{name}-noise-{share}": (name, share) for name in ("cora", "pubmed") for share in SHARES}
LIMITS = {
    "smoke": Limits(("cora-noise-1",), (MODEL, DROPPED), epochs=2, splits=1),
    "quick": Limits(("cora-noise-5",), epochs=100, splits=3),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train every row with every share of noise; ``--models`` selects rows."""
    wanted = runner.selected(ROWS, "models")
    for title in runner.selected(DATASETS, "datasets"):
        dataset, share = DATASETS[title]
        recipe = changed(load_recipe(runner.name, dataset, MODEL), {"noise_edges": float(share)})
        cells = {}
        for name, changes in ROWS.items():
            dropped = {"drop_edge": round(share / (1 + share), 3)} if name == DROPPED else {}
            cells[name] = TableCell(title, name, changed(recipe, changes | dropped), source=dataset)
        if not share:
            del cells[DROPPED]  # nothing was added
        for name, cell in cells.items():
            if name in wanted:
                runner.train(cell)
        runs = {name: runner.recorded_runs(cell) for name, cell in cells.items()}
        for name, cell in cells.items():
            runner.keep_only(cell, runs[name])
        if ours := runs.pop(MODEL):
            runner.compare(NOISE_TITLE, title, {MODEL: ours}, runs, list(DATASETS))
