"""What a model gains over another one on the same splits."""

import json
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.statistics.paired_gains import gain, gains_over_base, paired_scores, pairs_with_base, pairwise_gains


def runs(model: str, scores: dict[int, float], metric: str = "accuracy", dataset: str = "cora") -> list[dict]:
    return [
        {"dataset": dataset, "model": model, "seed": 0, "split": split, "test": test, "metric": metric}
        for split, test in scores.items()
    ]


def test_splits_are_matched_not_places() -> None:
    ours, theirs = runs("a", {0: 0.9, 1: 0.8, 2: 0.7}), runs("b", {2: 0.5, 1: 0.7, 5: 0.1})
    assert paired_scores(ours, theirs) == ([0.8, 0.7], [0.7, 0.5])


def test_the_sign_and_the_verdict_follow_the_metric() -> None:
    better = gain(runs("a", {0: 0.9, 1: 0.8, 2: 0.85}), runs("b", {0: 0.8, 1: 0.71, 2: 0.74}))
    assert (better["gain"], better["first is"], better["splits"]) == ("+10.00 points", "better", 3)
    error = gain(runs("a", {0: 0.9, 1: 0.8, 2: 0.85}, "mae"), runs("b", {0: 0.8, 1: 0.71, 2: 0.74}, "mae"))
    assert (error["gain"], error["first is"]) == ("+0.100", "worse")


def test_every_cooperative_model_stands_beside_the_base_of_its_environment() -> None:
    some = {0: 0.9, 1: 0.8}
    record = [
        *runs("Co-GNN(sum, mean)", some),
        *runs("MeanGNN", some),
        *runs("Co-GNN(gcn, gcn)", some),
        *runs("GCN", {7: 0.1}),  # not one split in common
        *runs("GAT", some),
    ]
    (row,) = gains_over_base(record)
    assert (row["model"], row["compared with"], row["gain"]) == ("Co-GNN(sum, mean)", "MeanGNN", "0.00 points")


def test_any_models_can_be_compared_and_no_pair_twice() -> None:
    some = {0: 0.9, 1: 0.8, 2: 0.7}
    record = [*runs("a", some), *runs("b", {0: 0.7, 1: 0.7, 2: 0.5}), *runs("c", {0: 0.9, 1: 0.7, 2: 0.65})]
    rows = pairwise_gains(record + runs("b", some, dataset="pubmed"), ["a", "b"], ["a", "b", "c"])
    pairs = [(row["dataset"], row["first model"], row["second model"]) for row in rows]
    assert pairs == [("cora", "a", "b"), ("cora", "a", "c"), ("cora", "b", "c")]
    p, corrected = ([float(row[key]) for row in rows] for key in ("p", "Holm"))
    assert min(corrected) == pytest.approx(3 * min(p), rel=0.1)  # the least of three, to two digits
    assert max(corrected) >= max(p)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record of two datasets in its folder."""
    shared = {"val": 0.5, "seconds": 1.0, "paper": None, "config": {"train": {"epochs": 7}}}
    some = [
        *runs("Co-GNN(sum, sum)", {0: 0.9, 1: 0.8, 2: 0.85}),
        *runs("GAT-sep", {0: 0.8, 1: 0.71, 2: 0.74}),
        *runs("Co-GNN(sum, sum)", {0: 0.5, 1: 0.6}, dataset="pubmed"),
        *runs("GAT-sep", {0: 0.6, 1: 0.9}, dataset="pubmed"),
    ]
    known = {"experiment": "homophilic", "budget": "full", "command": "-", "summary": [], "facts": {}, "figures": []}
    (tmp_path / "homophilic.json").write_text(json.dumps(known | {"runs": [run | shared for run in some]}))
    return tmp_path


def test_the_command_compares_what_the_record_has_and_writes_nothing(record: Path, capsys) -> None:
    before = (record / "homophilic.json").read_bytes()
    call = ["reproduce", "homophilic", "--out", str(record), "--against"]
    assert main([*call, "GAT-sep", "--datasets", "cora", "--splits", "0-1"]) == 0
    table = capsys.readouterr().out
    assert "| cora | Co-GNN(sum, sum) | GAT-sep | 85.00 | 75.50 | +9.50 points |" in table
    assert "pubmed" not in table
    assert "| 2 |" in table
    assert main([*call, "all"]) == 0
    assert "corrected for the number of tests, 2" in capsys.readouterr().out
    assert [path.name for path in record.iterdir()] == ["homophilic.json"]
    assert (record / "homophilic.json").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--against", "GATT"], "against: the record has no 'GATT'; it has Co-GNN(sum, sum); GAT-sep"),
        (["--against", "all", "--datasets", "chess"], "datasets: the record has no 'chess'; it has cora; pubmed"),
        (["--against", "all", "--models", "GAT"], "models: the record has no 'GAT'"),
        (["--against", "GAT-sep", "--models", "GAT-sep"], "against: no two of these models have a split in common"),
        (["--against", "GAT-sep", "--splits", "5"], "splits: there are 0 to 2, got '5'"),
        (
            ["--against", "GAT-sep", "--budget", "quick"],
            "homophilic-quick.json: not found; run cognn reproduce homophilic --budget quick first",
        ),
    ],
)
def test_what_the_record_has_not_is_refused(options: list[str], line: str, record: Path, capsys) -> None:
    assert main(["reproduce", "homophilic", "--out", str(record), *options]) == 2
    assert line in capsys.readouterr().err


def test_a_comparison_needs_an_experiment(capsys) -> None:
    assert main(["reproduce", "--against", "GCN"]) == 2
    assert "against: of which experiment?" in capsys.readouterr().err


def test_the_pairs_of_a_base_are_ours_first() -> None:
    record = [*runs("Co-GNN(sum, mean)", {0: 0.9, 1: 0.8}), *runs("MeanGNN", {0: 0.5, 1: 0.4})]
    ((dataset, model, base, ours, theirs),) = pairs_with_base(record)
    assert (dataset, model, base) == ("cora", "Co-GNN(sum, mean)", "MeanGNN")
    assert [run["test"] for run in ours + theirs] == [0.9, 0.8, 0.5, 0.4]


def test_a_model_is_not_compared_where_it_has_no_split_in_common() -> None:
    record = [*runs("a", {0: 0.9, 1: 0.8}), *runs("b", {2: 0.7, 3: 0.7})]
    assert pairwise_gains(record, ["a", "b"], ["a", "b"]) == []
