"""Do the actions help once the base network is tuned as carefully?  One table over all records.

It has a row for every Co-GNN whose base network is in the same record, with a paired test over the same splits.  Where
``ablations`` has trained the controls of a model, the row also gives the gain over each control.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cognn.config.options import ModelConfig
from cognn.experiments.harness.record import read_record
from cognn.experiments.pages.markdown import markdown_table
from cognn.experiments.tables.ablations import CONTROLS
from cognn.statistics.formatting import format_p, gain_with_p, without_unit
from cognn.statistics.paired_gains import gain, p_value, pairs_with_base, runs_by_cell
from cognn.statistics.significance import LEVEL, holm_correction

TABLES = ("root-neighbors", "heterophilic", "homophilic", "graph-classification", "peptides-func")
MADE_FOR_ACTIONS = ("root-neighbors",)
"""Not counted as benchmarks: the task itself is to cut edges."""
_IRRELEVANT = {"model", "action", "seed", "actions", "samples", "compile", "checkpoint", "eval_every"}
_IRRELEVANT |= set(ModelConfig.only_cognn)
"""Options that change neither the base network nor its training."""


def action_gain_table(results: Path) -> str:
    """A sentence that counts the significant gains, and the table."""
    rows = [row for name in TABLES for row in _rows(results / f"{name}.json")]
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    rows.sort(key=lambda row: datasets.index(row["dataset"]))
    controls = _controls(results / "ablations.json")
    counted = [row for row in rows if row["dataset"] not in MADE_FOR_ACTIONS]
    for row, level in zip(counted, holm_correction([row["p"] for row in counted]), strict=True):
        row["holm"] = level
    cells = []
    for row in rows:
        p, corrected = format_p(row["p"]), format_p(row.get("holm"))
        shown = [row["dataset"], f"{row['model']} over {row['base']}", row["gain"], p or "-", corrected or "-"]
        found = controls.get((row["dataset"], row["model"]), {})
        if row["differences"] == "nothing":  # then the base network is this control
            found = {CONTROLS[0]: gain_with_p(row["gain"], p), **found}
        cells.append([*shown, str(row["splits"]), row["differences"], *(found.get(name, "-") for name in CONTROLS)])
    keys = ["dataset", "model", "gain", "p", "Holm", "splits", "their recipes also differ in"]
    return f"{_count(counted)}\n\n{markdown_table([*keys, *CONTROLS], cells)}"


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    if not path.exists():
        return
    for dataset, model, base, ours, theirs in pairs_with_base(read_record(path)["runs"]):
        row = gain(ours, theirs)
        yield {
            "dataset": dataset,
            "model": model,
            "base": base,
            "gain": without_unit(row["gain"]),
            "better": row["first is"] == "better",
            "p": p_value(ours, theirs),
            "splits": row["splits"],
            "differences": recipe_differences(ours[0]["config"], theirs[0]["config"]),
        }


def recipe_differences(ours: dict[str, Any], base: dict[str, Any]) -> str:
    """The options, apart from those of the actions, in which two recipes differ."""
    if base["model"]["model"] not in ("cognn", "meangnn", "sumgnn"):
        return "the network"
    names = [
        name
        for part in ("model", "train")
        for name in ours[part].keys() & base[part].keys()
        if name not in _IRRELEVANT and ours[part][name] != base[part][name]
    ]
    return ", ".join(sorted(names)) or "nothing"


def _controls(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The gain of every model of the ablations over its controls."""
    cells = runs_by_cell(read_record(path)["runs"] if path.exists() else [])
    found: dict[tuple[str, str], dict[str, str]] = {}
    for (dataset, name), theirs in cells.items():
        model, _, variant = name.partition(": ")
        if variant in CONTROLS:
            row = gain(cells[dataset, model], theirs)
            found.setdefault((dataset, model), {})[variant] = gain_with_p(row["gain"], row["p"])
    return found


def _count(rows: list[dict[str, Any]]) -> str:
    tested = [row for row in rows if row["p"] is not None]
    sure = [row for row in tested if row["p"] < LEVEL]
    gains = [row for row in sure if row["better"]]
    same_recipe = [row for row in sure if row["differences"] == "nothing"]
    return (
        f"Of {len(tested)} comparisons on benchmarks {len(sure)} have p below {LEVEL}, "
        f"{len(gains)} in favour of the actions and {len(sure) - len(gains)} against; "
        f"in {len(same_recipe)} of these {len(sure)} the recipes differ in nothing but the actions."
    )
