"""Where do the actions help?  The table of the README: a row per dataset, made from all records.

Every row has the cooperative network with the best *validation* score among all records of its dataset, so that no test
score chooses it, and the network without actions that it is paired with: the tuned base network in the paper's tables,
the same recipe without actions where decisions are per channel, direction or relation.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from cognn.config.metrics import higher_is_better
from cognn.data.catalogue import find_entry
from cognn.experiments.harness.record import read_record
from cognn.experiments.pages.action_gain import MADE_FOR_ACTIONS, TABLES
from cognn.experiments.pages.markdown import markdown_table
from cognn.experiments.tables import heads, outlook
from cognn.statistics.formatting import gain_with_p
from cognn.statistics.paired_gains import Runs, gain, p_value, paired_scores, pairs_with_base, runs_by_cell
from cognn.statistics.significance import LEVEL, holm_correction

SYNTHETIC = (*MADE_FOR_ACTIONS, "directed-root-neighbors", "relational-root-neighbors")
"""Made so that edges must be cut, and not counted among the benchmarks."""
ANSWERS = "**yes**", "perhaps", "no difference", "perhaps harm", "**harm**"


def where_it_helps(results: Path) -> str:
    """A sentence that counts the answers, and the table, in the order of the answers."""
    best: dict[str, tuple[str, Runs, Runs]] = {}
    for dataset, name, ours, theirs in _pairs(results):
        if dataset not in best or _validation(ours) > _validation(best[dataset][1]):
            best[dataset] = name, ours, theirs
    rows = [_row(dataset, name, ours, theirs) for dataset, (name, ours, theirs) in best.items()]
    benchmarks = [row for row in rows if row["dataset"] not in SYNTHETIC]
    for row in rows:
        row["corrected"] = row["p"]
    for row, corrected in zip(benchmarks, holm_correction([row["p"] for row in benchmarks]), strict=True):
        row["corrected"] = corrected
    rows.sort(key=lambda row: (row["dataset"] not in SYNTHETIC, ANSWERS.index(_answer(row))))
    keys = ["graph", "what it is", "score", "network", "without actions", "with", "gain", "do the actions help?"]
    cells = [[*(row[key] for key in keys[:-1]), _answer(row)] for row in rows]
    found = [_answer(row).strip("*") for row in benchmarks]
    counts = [f"{word.strip('*')} on {found.count(word.strip('*'))}" for word in ANSWERS if word.strip("*") in found]
    return f"On {len(benchmarks)} benchmark graphs: {', '.join(counts)}.\n\n{markdown_table(keys, cells)}"


def _pairs(results: Path) -> Iterator[tuple[str, str, Runs, Runs]]:
    """Dataset, name, and the runs with and without actions, of every record at hand."""
    for name in TABLES:
        for dataset, model, _, ours, theirs in pairs_with_base(_runs(results, name)):
            yield dataset, model, ours, theirs
    for name, model in (("heads", heads.MODEL), ("outlook", outlook.MODEL)):
        cells = runs_by_cell(_runs(results, name))
        for (dataset, one), ours in cells.items():
            theirs = cells.get((dataset, "no actions"), [])
            if one == model and paired_scores(ours, theirs)[0]:
                options = ours[0]["config"]["model"]
                kind = "directions" if options.get("directions") == "both" else "relations"
                yield dataset, model if name == "heads" else f"{model}, {kind}", ours, theirs


def _runs(results: Path, name: str) -> Runs:
    path = results / f"{name}.json"
    return read_record(path)["runs"] if path.exists() else []


def _validation(runs: Runs) -> float:
    score = mean(run["val"] for run in runs)
    return score if higher_is_better(runs[0]["metric"]) else -score


def _row(dataset: str, name: str, ours: Runs, theirs: Runs) -> dict[str, Any]:
    found, p = gain(ours, theirs, "with", "without actions"), p_value(ours, theirs)
    row: dict[str, Any] = {"dataset": dataset, "graph": dataset, "network": name}
    row |= {"what it is": re.split("[;:(]", find_entry(dataset).description)[0].strip()}
    row |= {"score": ours[0]["metric"].replace("_", " "), "better": found["with is"] == "better"}
    return row | found | {"gain": gain_with_p(found["gain"], found["p"]), "p": p}


def _answer(row: dict[str, Any]) -> str:
    """Yes or harm if the difference remains significant after correction, perhaps if only before it."""
    if row["p"] is None or row["p"] >= LEVEL:
        return "no difference"
    sure = row["corrected"] < LEVEL
    return ("**yes**" if sure else "perhaps") if row["better"] else ("**harm**" if sure else "perhaps harm")
