"""What the actions add, over all records."""

import json
from pathlib import Path
from typing import Any

from cognn.config.options import Config, ModelConfig
from cognn.experiments.harness.record import recorded_options
from cognn.experiments.pages.action_gain import action_gain_table, recipe_differences
from cognn.experiments.pages.readme import fill_tables


def runs(dataset: str, model: str, scores: list[float], config: ModelConfig | None = None) -> list[dict[str, Any]]:
    options = recorded_options(Config(model=config or ModelConfig()))
    shared = {"metric": "accuracy", "seed": 0, "val": 0.5, "seconds": 1.0, "paper": None, "config": options}
    return [shared | {"dataset": dataset, "model": model, "split": i, "test": x} for i, x in enumerate(scores)]


def record(folder: Path, name: str, some: list[dict[str, Any]]) -> None:
    head = {"experiment": name, "budget": "full", "command": "", "summary": [], "facts": {}, "figures": []}
    (folder / f"{name}.json").write_text(json.dumps(head | {"runs": some}))


def rows(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]


def test_gains_controls_and_what_else_differs(tmp_path: Path) -> None:
    base = ModelConfig(model="meangnn", pool="sum")
    record(
        tmp_path,
        "homophilic",
        [
            *runs("cora", "Co-GNN(sum, mean)", [0.90, 0.81, 0.85]),
            *runs("pubmed", "Co-GNN(mean, mean)", [0.5, 0.6, 0.4]),
            *runs("cora", "MeanGNN", [0.80, 0.70, 0.76], base),
            *runs("pubmed", "MeanGNN", [0.5, 0.4, 0.6], ModelConfig(model="meangnn")),
        ],
    )
    record(
        tmp_path,
        "ablations",
        [
            *runs("cora", "Co-GNN(sum, mean)", [0.90, 0.81, 0.85]),
            *runs("cora", "Co-GNN(sum, mean): actions frozen", [0.89, 0.79, 0.84]),
            *runs("cora", "Co-GNN(sum, mean): tuned base", [0.1, 0.2, 0.3]),  # which the table has by itself
        ],
    )
    cora, pubmed = rows(action_gain_table(tmp_path))
    assert cora[:3] == ["cora", "Co-GNN(sum, mean) over MeanGNN", "+10.00"]
    p, holm = float(cora[3]), float(cora[4])
    assert p < 0.05
    assert abs(holm - 2 * p) < 0.1 * p  # of two tests, to two digits
    assert cora[5:9] == ["3", "pool", "-", "-"]
    assert cora[9].startswith("+1.33, p 0.0")
    assert pubmed[2:3] + pubmed[5:] == ["0.00", "3", "nothing", "0.00, p 1", "-", "-"]
    said = "Of 2 comparisons on benchmarks 1 have p below 0.05, 1 in favour of the actions and 0 against; in 0 of"
    assert action_gain_table(tmp_path).startswith(said)


def test_a_task_that_is_made_for_actions_is_not_counted(tmp_path: Path) -> None:
    some = [*runs("root-neighbors", "Co-GNN(sum, sum)", [0.9, 0.8]), *runs("root-neighbors", "SumGNN", [0.1, 0.2])]
    record(tmp_path, "root-neighbors", some)
    ((name, *_, holm, _, beside, _, _, _),) = rows(action_gain_table(tmp_path))
    assert (name, holm, beside) == ("root-neighbors", "-", "nothing")
    assert action_gain_table(tmp_path).startswith("Of 0 comparisons on benchmarks 0 have p")


def test_only_what_makes_another_network_or_training_is_a_difference() -> None:
    ours = recorded_options(Config(model=ModelConfig(env="sum", action="gcn", standard_bias=3.0)))
    base = recorded_options(Config(model=ModelConfig(model="sumgnn")))
    assert recipe_differences(ours, base) == "nothing"
    base["train"] |= {"seed": 7, "lr": 0.5}
    base["model"] |= {"num_layers": 9}
    assert recipe_differences(ours, base) == "lr, num_layers"
    base["model"]["model"] = "gcn"
    assert recipe_differences(ours, base) == "the network"


def test_a_page_takes_it_by_name(tmp_path: Path) -> None:
    some = [*runs("cora", "Co-GNN(sum, sum)", [0.9, 0.8]), *runs("cora", "SumGNN", [0.1, 0.2])]
    record(tmp_path, "homophilic", some)
    page = fill_tables("<!-- results: actions -->\n<!-- end -->\n", tmp_path)
    assert "| cora | Co-GNN(sum, sum) over SumGNN | +70.00 |" in page
    assert fill_tables(page, tmp_path) == page
