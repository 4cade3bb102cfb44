"""What a model gains over another one on the same splits."""

from cognn.experiments.paired import added, gain, paired


def runs(model: str, scores: dict[int, float], metric: str = "accuracy") -> list[dict]:
    return [
        {"dataset": "cora", "model": model, "seed": 0, "split": split, "test": test, "metric": metric}
        for split, test in scores.items()
    ]


def test_splits_are_matched_not_places() -> None:
    ours, theirs = runs("a", {0: 0.9, 1: 0.8, 2: 0.7}), runs("b", {2: 0.5, 1: 0.7, 5: 0.1})
    assert paired(ours, theirs) == ([0.8, 0.7], [0.7, 0.5])


def test_the_sign_and_the_verdict_follow_the_metric() -> None:
    better = gain(runs("a", {0: 0.9, 1: 0.8, 2: 0.85}), runs("b", {0: 0.8, 1: 0.71, 2: 0.74}))
    assert (better["gain"], better["ours is"], better["splits"]) == ("+10.00 points", "better", 3)
    error = gain(runs("a", {0: 0.9, 1: 0.8, 2: 0.85}, "mae"), runs("b", {0: 0.8, 1: 0.71, 2: 0.74}, "mae"))
    assert (error["gain"], error["ours is"]) == ("+0.100", "worse")


def test_every_cooperative_model_stands_beside_the_base_of_its_environment() -> None:
    some = {0: 0.9, 1: 0.8}
    record = [
        *runs("Co-GNN(sum, mean)", some),
        *runs("MeanGNN", some),
        *runs("Co-GNN(gcn, gcn)", some),
        *runs("GCN", {7: 0.1}),  # not one split in common
        *runs("GAT", some),
    ]
    (row,) = added(record)
    assert (row["ours (model)"], row["theirs (base)"], row["gain"]) == ("Co-GNN(sum, mean)", "MeanGNN", "0.00 points")
