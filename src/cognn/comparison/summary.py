"""The result of a comparison as JSON: the table, the verdict and what to run."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults
from cognn.comparison.rows import NEIGHBOUR_TREES, SPACE, TREE_SPACE
from cognn.comparison.trees import DEFAULTS
from cognn.comparison.verdict import Verdict, judge
from cognn.comparison.work import run_folder
from cognn.config.command_line import fit_call, train_command
from cognn.config.run_folder import run_config
from cognn.data.load import MEMORY
from cognn.errors import RunError
from cognn.statistics.formatting import format_gain, without_unit


def summarise(folder: Path, plan: Plan, rows: Sequence[RowResults]) -> dict[str, Any]:
    """The content of ``result.json``."""
    if not any(row.scores("val") for row in rows):
        why = next((row.failed for row in rows if row.failed), "nothing was trained")
        raise RunError(f"{folder}: no model has a score; the first one because: {why}")
    verdict = judge(plan, rows)
    tests = {(gain.question, gain.model): gain for gain in verdict.gains}
    table = []
    for row in rows:
        one: dict[str, Any] = {"model": row.row.label, "key": row.row.key, "level": row.row.level}
        one |= {"val": _number(row.mean("val")), "test": _number(row.mean("test")), "std": _number(row.std("test"))}
        for question in ("edges", "cooperation"):
            gain = tests.get((question, row.row.key))
            one[question] = (
                None if gain is None else {"over": gain.over, "gain": gain.gain, "p": gain.holm, "uncorrected": gain.p}
            )
        one |= {"trainings": len(row.trainings), "weights": row.weights, "options": _options(folder, row)}
        one |= {"search_seconds": round(row.search_seconds, 2), "seconds": round(row.seconds, 2)}
        table.append(one | {"stopped": row.stopped, "failed": row.failed})
    chosen = {row.row.key: row for row in rows if row.row.key in (verdict.winner, verdict.network)}
    winner, network = chosen[verdict.winner], chosen.get(verdict.network or "")
    return {
        "dataset": plan.dataset,
        "metric": plan.metric,
        "higher_is_better": plan.higher_is_better,
        "splits": plan.splits,
        "seeds": plan.seeds,
        "budget": plan.budget,
        "edges": verdict.edges,
        "cooperation": verdict.cooperation,
        "verdict": f"{verdict.sentence}: use {_use(folder, winner)}.",
        "winner": _commands(folder, winner),
        "network": None if network is None else _commands(folder, network),
        "notes": _notes(plan, rows) + _power(plan, verdict),
        "rows": table,
    }


def _options(folder: Path, row: RowResults) -> dict[str, Any]:
    """The searched options of a model, as the search left them."""
    if not row.trainings:
        return {}
    if row.row.is_trees:
        chosen = next(iter(row.trainings.values()))["options"]
        return {name: chosen.get(name, DEFAULTS[name]) for name in TREE_SPACE}
    sections = asdict(run_config(folder / row.row.key))
    return {name: section[name] for name in SPACE for section in sections.values() if name in section}


def _use(folder: Path, winner: RowResults) -> str:
    if winner.row.is_trees:
        means = " and their means over the neighbours" if winner.row.key == NEIGHBOUR_TREES else ""
        return f"LightGBM on the features{means}"
    model = run_config(folder / winner.row.key).model
    heads = f" --action-heads {model.action_heads}" if model.action_heads != "1" else ""
    ways = " --directions both" if model.directions == "both" else ""
    return f"`--model {model.model}{heads}{ways}`"


def _commands(folder: Path, chosen: RowResults) -> dict[str, Any]:
    """A model, its folder and, for a network, the commands to train it again and to predict."""
    run = run_folder(folder, chosen.row.key, 0)
    found: dict[str, Any] = {"model": chosen.row.label, "key": chosen.row.key, "run": str(run)}
    if chosen.row.is_trees:
        return found | {"train": None, "predict": None}
    config = run_config(run)
    if config.data.dataset == MEMORY:
        return found | {"train": fit_call(config), "predict": f"cognn.open_run({str(run)!r}, data).predict()"}
    return found | {"train": train_command(config), "predict": f"cognn predict {run}"}


def _notes(plan: Plan, rows: Sequence[RowResults]) -> list[str]:
    """What limits the result, one line each."""
    notes = [f"{row.row.label} is left out: {row.failed}" for row in rows if row.failed]
    stopped = [f"{row.row.label} {row.stopped} of {len(row.trainings)}" for row in rows if row.stopped]
    if stopped:
        notes.append(
            f"trainings that the budget stopped: {', '.join(stopped)}; a longer --budget may change the result"
        )
    if len(plan.splits) == 1:
        notes.append(f"one split, {plan.seeds} seeds: the tests know the noise of training, not that of the split")
    undefined = sorted(
        {split for row in rows for (_, split), one in row.trainings.items() if not math.isfinite(one["test"])}
    )
    if undefined:
        notes.append(f"left out of test means: split {', '.join(map(str, undefined))}, whose score is not defined")
    return notes


def _power(plan: Plan, verdict: Verdict) -> list[str]:
    """For a question that the tests did not affirm: how small a gain they could have found."""
    notes = []
    for question, answer in (("edges", verdict.edges), ("cooperation", verdict.cooperation)):
        least = [gain.least for gain in verdict.gains if gain.question == question and gain.least is not None]
        if answer == "no" and least:
            low, high = (format_gain(size, plan.metric).removeprefix("+") for size in (min(least), max(least)))
            notes.append(f"{question}: the smallest gain to be found here is {without_unit(low)} to {high}, by model")
    return [*notes[:-1], f"{notes[-1]}; more splits find smaller ones"] if notes else []


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
