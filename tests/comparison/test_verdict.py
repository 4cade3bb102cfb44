"""What follows from scores: the answers, the winner, and that noise is not called a gain."""

import numpy as np
import pytest

from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults
from cognn.comparison.rows import make_rows
from cognn.comparison.verdict import judge
from cognn.config.options import Config

KEYS = [row.key for row in make_rows("mean", False, True)]


def plan(metric: str = "accuracy", splits: int = 10) -> Plan:
    rows = make_rows("mean", False, True)
    better = metric != "mae"
    sizes = {"splits": list(range(splits)), "test_ratio": 1 / 3 if splits > 1 else 0.0, "seeds": 1, "trials": 4}
    rest = {
        "search_seed": 0,
        "baselines": [],
        "budget": "",
        "limit": None,
        "fixed": [],
        "config": Config(),
        "rows": rows,
    }
    return Plan("toy", metric, better, False, "", **sizes, **rest)


def results(means: dict[str, float], noise: float = 0.005, seed: int = 0, splits: int = 10) -> list[RowResults]:
    """Scores of every model on all splits, with noise of its own and noise of the split that all share."""
    rng = np.random.default_rng(seed)
    shared, out = rng.normal(0, 0.03, splits), []
    for row in make_rows("mean", False, True):
        scores = means.get(row.key, 0.6) + shared + rng.normal(0, noise, splits)
        values = {(0, i): {"val": s, "test": s, "seconds": 1.0} for i, s in enumerate(scores.tolist())}
        out.append(RowResults(row, 4, values, None))
    return out


GRAPH = dict.fromkeys(KEYS, 0.8) | {"mlp": 0.6, "trees": 0.6}


def test_when_nothing_differs_the_features_are_enough() -> None:
    found = judge(plan(), results({}))
    assert (found.edges, found.cooperation) == ("no", "no")
    assert found.winner in ("mlp", "trees")
    assert "edges add nothing that can be told from noise" in found.sentence


def test_when_the_edges_help_and_the_actions_do_not_the_winner_has_no_actions() -> None:
    found = judge(plan(), results(GRAPH))
    assert (found.edges, found.cooperation) == ("yes", "no")
    assert found.winner in ("trees-neighbours", "base", "base-wide")
    assert "edges help (" in found.sentence
    assert "cooperation adds nothing that can be told from noise" in found.sentence


def test_when_the_actions_help_the_winner_acts() -> None:
    found = judge(plan(), results(GRAPH | {"cognn-heads": 0.9}))
    assert (found.edges, found.cooperation, found.winner) == ("yes", "yes", "cognn-heads")
    assert "cooperation helps (Co-GNN, heads +" in found.sentence


def test_actions_that_only_repair_useless_edges_are_no_reason_to_cooperate() -> None:
    """The base loses ten points to the edges, and actions that isolate every node win them back."""
    found = judge(plan(), results({"base": 0.5, "base-wide": 0.5, "trees-neighbours": 0.5}))
    assert (found.edges, found.cooperation) == ("no", "no")
    assert found.winner in ("mlp", "trees")


def test_edges_that_only_the_actions_can_use_help() -> None:
    found = judge(plan(), results({"cognn": 0.8}))
    assert (found.edges, found.cooperation, found.winner) == ("yes", "yes", "cognn")


def test_trees_may_win_and_the_best_network_is_named_besides() -> None:
    found = judge(plan(), results(GRAPH | {"trees-neighbours": 0.9, "cognn": 0.99}))
    assert found.winner == "cognn"
    found = judge(plan(), results(GRAPH | {"trees-neighbours": 0.9}))
    assert found.winner == "trees-neighbours"
    assert found.network in ("base", "base-wide")


def test_an_error_is_better_when_it_is_lower() -> None:
    found = judge(plan("mae"), results(dict.fromkeys(KEYS, 0.1) | {"mlp": 0.6, "trees": 0.6, "cognn": 0.05}))
    assert (found.edges, found.cooperation, found.winner) == ("yes", "yes", "cognn")
    assert all(gain.gain > 0 for gain in found.gains if gain.is_real)


@pytest.mark.parametrize("splits", [1, 2])
def test_too_few_splits_are_not_tested(splits: int) -> None:
    found = judge(plan(splits=splits), results(GRAPH, splits=splits))
    assert (found.edges, found.cooperation) == ("untested", "untested")
    assert "too few for a test" in found.sentence


def test_a_model_that_failed_is_not_judged() -> None:
    rows = results(GRAPH | {"cognn": 0.99})
    rows[KEYS.index("cognn")].failed = "the loss is nan"
    found = judge(plan(), rows)
    assert found.cooperation == "no"
    assert "cognn" not in {gain.model for gain in found.gains}


def test_among_equal_models_on_overlapping_splits_a_gain_is_rarely_claimed() -> None:
    """Seven equally good models, scored on ten random fifths of the same 200 items, validated on another fifth."""
    rng, false = np.random.default_rng(0), 0
    for _ in range(200):
        right = rng.random((len(KEYS), 200)) < 0.7  # predictions of every model
        order = [rng.permutation(200) for _ in range(10)]
        rows = []
        for row, hits in zip(make_rows("mean", False, True), right, strict=True):
            scores = [(float(hits[one[:40]].mean()), float(hits[one[40:80]].mean())) for one in order]
            values = {(0, i): {"val": v, "test": t, "seconds": 1.0} for i, (t, v) in enumerate(scores)}
            rows.append(RowResults(row, 4, values, None))
        found = judge(plan(), rows)
        false += "yes" in (found.edges, found.cooperation)
    assert false <= 0.05 * 200


def test_the_least_gain_is_what_the_strictest_test_of_all_finds() -> None:
    found = judge(plan(), results({}))
    assert all(gain.least is not None and abs(gain.gain) < gain.least for gain in found.gains)
    assert all(gain.gain > gain.least for gain in judge(plan(), results(GRAPH)).gains if gain.question == "edges")
    assert {gain.least for gain in judge(plan(splits=2), results({}, splits=2)).gains} == {None}
