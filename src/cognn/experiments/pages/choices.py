"""What each option is worth: the tables of the page on choosing options, made from the records."""

from pathlib import Path
from typing import Any, NamedTuple

from cognn.experiments.harness.record import read_record
from cognn.experiments.pages.markdown import markdown_table
from cognn.experiments.tables import heads, outlook
from cognn.statistics.formatting import VERDICT_WORDS, gain_with_p
from cognn.statistics.paired_gains import gain, runs_by_cell

_SIGNIFICANT = (VERDICT_WORDS["above"], VERDICT_WORDS["below"])


class Choice(NamedTuple):
    """An option, and the row of a record that has the other choice."""

    chosen: str
    instead: str
    record: str
    other: str


CHOICES = (
    Choice("`--action-heads channel`", "one decision per layer", "heads", "one head, continuous"),
    Choice("`--gates continuous`, with heads", "`sampled`", "heads", "heads, drawn"),
    Choice("gates that multiply", "`--gates added`", "heads", "added instead of multiplied"),
    Choice("`--directions both`", "along the edges only", "outlook", "along the edges only"),
    Choice("`--directions both`", "the graph made undirected", "outlook", "undirected"),
    Choice("`--relation-actions per_relation`", "`shared`", "outlook", "alike in all relations"),
    Choice("`--action-space joint`", "`factored`", "ablations", "factored actions"),
    Choice("`--temperature learned`", "fixed at 1", "ablations", "temperature fixed at 1"),
    Choice("`--mean-over kept`", "`all`", "ablations", "mean over all neighbours"),
    Choice("`--edge-price 0`", "0.1", "ablations", "price 0.1 on edges"),
)


def choices_tables(results: Path) -> str:
    """What each choice gains, what the networks are worth, and the gain of actions at each depth."""
    rows = [[choice.chosen, choice.instead, "; ".join(_gains(results, choice)) or "not measured"] for choice in CHOICES]
    parts = [markdown_table(["choice", "instead of", "gain, paired over the same splits"], rows)]
    parts += [f"{text} ({name})\n" for name, text in _facts(results, "pairs", "Which choice matters, ").items()]
    for dataset, fact in _facts(results, "over-smoothing", "What the actions add at each depth, ").items():
        depths = [str(row["layers"]) for row in fact]
        lines = [["without actions", *(row["base"] for row in fact)], ["with", *(row["Co-GNN"] for row in fact)]]
        lines += [["gain", *(_cell(row, "Co-GNN is") for row in fact)]]
        parts.append(markdown_table([f"{dataset}, layers", *depths], lines))
    return "\n".join(parts)


def _gains(results: Path, choice: Choice) -> list[str]:
    """``dataset +1.23, p 0.01`` for every dataset that has both rows."""
    cells = runs_by_cell(_record(results, choice.record)["runs"])
    models = {"heads": heads.MODEL, "outlook": outlook.MODEL}
    found = []
    for (dataset, name), theirs in cells.items():
        model, _, variant = name.rpartition(": ") if choice.record == "ablations" else (models[choice.record], "", name)
        if variant == choice.other and (dataset, model) in cells:
            found.append(f"{dataset} {_cell(gain(cells[dataset, model], theirs), 'first is')}")
    return found


def _cell(row: dict[str, Any], verdict: str) -> str:
    text = gain_with_p(row["gain"], row["p"])
    return f"**{text}**" if row[verdict] in _SIGNIFICANT else text


def _facts(results: Path, name: str, title: str) -> dict[str, Any]:
    facts = _record(results, name)["facts"]
    return {key.removeprefix(title): fact for key, fact in facts.items() if key.startswith(title)}


def _record(results: Path, name: str) -> dict[str, Any]:
    path = results / f"{name}.json"
    return read_record(path) if path.exists() else {"runs": [], "facts": {}}
