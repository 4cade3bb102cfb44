import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognn.experiments.figures import pairs
from cognn.experiments.figures.pairs import NETWORKS, PAIRS, marginals, pair, sentence, table, variance
from cognn.experiments.harness.recipes import load_recipe
from tests.experiments.conftest import Reproduce


def test_smoke(reproduce: Reproduce) -> None:
    record = reproduce("pairs")
    assert len(record["runs"]) == 4
    for run in record["runs"]:
        model = run["config"]["model"]
        assert run["model"] == f"Co-GNN({model['action']}, {model['env']})"
        assert np.isfinite(run["test"])
    assert record["figures"] == ["pairs-smoke-root-neighbors", "pairs-smoke-minesweeper-board"]
    assert "variance between the pairs" in record["facts"]["Which choice matters, root-neighbors"]


def test_pairs_differ_in_their_networks_only() -> None:
    assert len(PAIRS) == 25
    for dataset in ("root-neighbors", "minesweeper"):
        common = load_recipe("pairs", dataset, "Co-GNN")
        for action, env in PAIRS.values():
            found = pair(common, action, env)
            assert (found.model.action, found.model.env, found.train) == (action, env, common.train)
            assert pair(found, common.model.action, common.model.env) == common


def test_a_row_is_an_environment_and_a_column_an_action() -> None:
    scores = table([{"model": "Co-GNN(sum, mean)", "mean": 0.5}])
    assert scores[NETWORKS.index("mean"), NETWORKS.index("sum")] == 0.5
    assert np.isfinite(scores).sum() == 1


def test_marginals_know_which_end_is_worse() -> None:
    scores = np.full((5, 5), np.nan)
    scores[0, :2] = 1, 3
    first, second, *others = marginals(scores)
    assert (first["as action, mean"], first["as environment, mean"], first["as environment, worst"]) == (1, 2, 1)
    assert (second["as action, mean"], second["as environment, mean"]) == (3, None)
    assert all(row["as action, mean"] is None for row in others)
    assert marginals(scores, higher_is_better=False)[0]["as environment, worst"] == 3


def test_variance_goes_where_it_comes_from() -> None:
    columns = np.tile(np.arange(5.0), (5, 1))
    assert variance(columns) == pytest.approx((1, 0))
    assert variance(columns.T) == pytest.approx((0, 1))
    assert variance(np.eye(5)) == pytest.approx((0, 0))
    assert sentence((0.5, 0.25)).endswith("25.0 % with the combination.")


def test_variance_of_some_networks_needs_all_their_pairs() -> None:
    scores = np.full((5, 5), np.nan)
    assert variance(scores) is None
    scores[:2, :2] = [[1, 2], [1, 2]]
    assert variance(scores) == pytest.approx((1, 0))
    scores[4, 4] = 1
    assert variance(scores) is None
    assert variance(np.ones((5, 5))) is None
    assert sentence(None).startswith("Not computed: some pairs")


@given(st.lists(st.floats(0, 1, width=32), min_size=25, max_size=25).filter(lambda values: np.std(values) > 1e-3))
def test_the_parts_of_the_variance_are_shares(values: list[float]) -> None:
    found = variance(np.array(values).reshape(5, 5))
    assert found is not None
    assert min(found) >= 0
    assert sum(found) <= 1 + 1e-9


def test_the_real_budgets_have_all_pairs() -> None:
    assert pairs.LIMITS["quick"].models is pairs.LIMITS["full"].models is None
