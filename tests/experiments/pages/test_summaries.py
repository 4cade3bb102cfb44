"""The tables made from several records: where the actions help, and what each choice is worth."""

import json
from pathlib import Path
from typing import Any

from cognn.experiments.pages.choices import choices_tables
from cognn.experiments.pages.where_it_helps import where_it_helps


def runs(dataset: str, model: str, scores: list[float], val: float = 0.5, metric: str = "accuracy") -> list[dict]:
    same: dict[str, Any] = {"dataset": dataset, "model": model, "seed": 0, "metric": metric, "val": val, "paper": None}
    same |= {"seconds": 1.0, "config": {"model": {"directions": "both"}, "train": {"epochs": 9}, "data": {}}}
    same |= {"train": 0.5, "best_epoch": 1, "epochs": 9, "parameters": 1, "threads": 1, "versions": {}, "hardware": ""}
    return [same | {"split": split, "test": score} for split, score in enumerate(scores)]


def record(folder: Path, name: str, runs: list[dict], facts: dict[str, Any] | None = None) -> None:
    body = {"experiment": name, "budget": "full", "command": f"cognn reproduce {name}", "summary": [], "figures": []}
    body |= {"facts": facts or {}, "versions": {}, "hardware": "", "runs": runs}
    (folder / f"{name}.json").write_text(json.dumps(body))


LOW, HIGH, NOISE = [0.70, 0.71, 0.69, 0.72], [0.80, 0.82, 0.79, 0.81], [0.71, 0.70, 0.70, 0.72]


def table(text: str) -> dict[str, list[str]]:
    """First cell of every row to the others."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {cells[0]: cells[1:] for cells in rows[2:]}


def test_a_dataset_is_judged_by_the_network_that_validation_prefers(tmp_path: Path) -> None:
    pubmed = runs("pubmed", "Co-GNN(mean, mean)", HIGH, val=0.6) + runs("pubmed", "MeanGNN", LOW)
    pubmed += runs("pubmed", "Co-GNN(sum, sum)", NOISE, val=0.7) + runs("pubmed", "SumGNN", LOW)  # validation: this one
    cora = runs("cora", "Co-GNN(mean, mean)", LOW) + runs("cora", "MeanGNN", HIGH)
    record(tmp_path, "homophilic", cora + pubmed)
    record(tmp_path, "heads", runs("minesweeper", "Co-GNN, heads", HIGH) + runs("minesweeper", "no actions", LOW))
    record(tmp_path, "outlook", runs("citeseer-directed", "Co-GNN", HIGH))  # nothing to compare with
    text = where_it_helps(tmp_path)
    rows = table(text)
    assert list(rows) == ["minesweeper", "pubmed", "cora"]
    assert rows["pubmed"][2:5] == ["Co-GNN(sum, sum)", "70.50", "70.75"]
    assert [cells[-1] for cells in rows.values()] == ["**yes**", "no difference", "**harm**"]
    assert text.startswith("On 3 benchmark graphs: yes on 1, no difference on 1, harm on 1.\n")


def test_many_comparisons_turn_a_yes_into_a_perhaps(tmp_path: Path) -> None:
    close = [0.72, 0.74, 0.70, 0.75]  # p 0.02 against LOW, paired
    one = runs("cora", "Co-GNN(mean, mean)", close) + runs("cora", "MeanGNN", LOW)
    record(tmp_path, "homophilic", one)
    assert table(where_it_helps(tmp_path))["cora"][-1] == "**yes**"
    for name in ("pubmed", "citeseer", "tolokers"):
        one += runs(name, "Co-GNN(mean, mean)", NOISE) + runs(name, "MeanGNN", LOW)
    record(tmp_path, "homophilic", one)
    assert table(where_it_helps(tmp_path))["cora"][-1] == "perhaps"


def test_a_task_made_for_actions_is_not_counted_and_a_lower_error_helps(tmp_path: Path) -> None:
    trees = runs("root-neighbors", "Co-GNN(sum, mean)", [0.01, 0.02, 0.01], metric="mae")
    record(tmp_path, "root-neighbors", trees + runs("root-neighbors", "MeanGNN", [0.3, 0.31, 0.29], metric="mae"))
    record(tmp_path, "homophilic", runs("cora", "Co-GNN(gcn, gcn)", NOISE) + runs("cora", "GCN", LOW))
    text = where_it_helps(tmp_path)
    assert text.startswith("On 1 benchmark graphs: no difference on 1.")
    assert table(text)["root-neighbors"][-1] == "**yes**"


def test_every_choice_has_the_gain_of_its_record_or_says_that_there_is_none(tmp_path: Path) -> None:
    record(tmp_path, "heads", runs("cora", "Co-GNN, heads", HIGH) + runs("cora", "heads, drawn", LOW))
    cells = runs("cora", "Co-GNN(gcn, gcn)", LOW) + runs("cora", "Co-GNN(gcn, gcn): factored actions", NOISE)
    record(tmp_path, "ablations", cells)
    record(tmp_path, "pairs", [], {"Which choice matters, cora": "All of it."})
    depth = {
        "layers": 2,
        "base": "70.50",
        "Co-GNN": "80.50",
        "gain": "+10.00 points",
        "Co-GNN is": "better",
        "p": "0.01",
    }
    record(tmp_path, "over-smoothing", [], {"What the actions add at each depth, cora": [depth]})
    text = choices_tables(tmp_path)
    assert "| `--gates continuous`, with heads | `sampled` | cora **+10.00, p " in text
    assert "| `--action-space joint` | `factored` | cora -0.25, p 0.64 |" in text
    assert "| `--directions both` | along the edges only | not measured |" in text
    assert "All of it. (cora)" in text
    assert "| gain | **+10.00, p 0.01** |" in text
