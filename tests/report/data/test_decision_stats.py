import numpy as np
import pytest

from cognn.nn.actions import JOINT
from cognn.report.data.decision_stats import action_entropy, decisions_by_group
from cognn.report.data.groupings import Grouping, group_by_degree

S, L, B, ISOLATE = range(4)
# 0 <-> 1, 1 -> 2, 2 -> 0 and a loop at 2.
EDGES = np.array([[0, 1, 1, 2, 2], [1, 0, 2, 0, 2]])
ACTIONS = np.array([[S, L, B], [S, S, ISOLATE]])
CERTAIN = np.eye(4)[ACTIONS]
ALL = Grouping("all", np.zeros(3, dtype=int), ["all nodes"])


def test_decisions_of_all_nodes_by_hand() -> None:
    (group,) = decisions_by_group(
        JOINT, ACTIONS, CERTAIN, EDGES, Grouping("all", np.zeros(3, dtype=int), ["all nodes"])
    )
    assert (group.name, group.count) == ("all nodes", 3)
    assert group.shares.tolist() == [[1 / 3, 1 / 3, 1 / 3, 0], [2 / 3, 0, 0, 1 / 3]]
    # Layer 0 keeps 0 -> 1 and 2 -> 0, layer 1 keeps 0 -> 1 and 1 -> 0.
    assert group.kept.tolist() == [2 / 5, 2 / 5]
    assert group.changed.tolist() == [2 / 3]  # nodes 1 and 2
    assert group.entropy.tolist() == [0, 0]


def test_decisions_by_group_count_edges_by_their_receiver() -> None:
    some = Grouping("class", np.array([0, 0, 2]), ["a", "nobody", "b"])
    a, b = decisions_by_group(JOINT, ACTIONS, CERTAIN, EDGES, some)
    assert (a.name, a.count, b.name, b.count) == ("a", 2, "b", 1)
    assert a.kept.tolist() == [2 / 3, 2 / 3]  # of 0 -> 1, 1 -> 0, 2 -> 0
    assert b.kept.tolist() == [0, 0]  # of 1 -> 2 and 2 -> 2
    assert b.shares.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
    assert (a.changed.tolist(), b.changed.tolist()) == ([0.5], [1])


def test_nodes_in_no_group_and_groups_without_edges() -> None:
    codes = np.array([-1, 0, -1])
    edges = np.array([[1], [0]])
    (group,) = decisions_by_group(JOINT, ACTIONS, CERTAIN, edges, Grouping("class", codes, ["only"]))
    assert group.count == 1
    assert np.isnan(group.kept).all()
    assert group.shares[:, L].tolist() == [1, 0]


def test_entropy_in_bits() -> None:
    probs = np.array([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.25, 0.25, 0]])
    assert action_entropy(probs).tolist() == pytest.approx([2, 0, 1, 1.5])
    both = Grouping("all", np.zeros(2, dtype=int), ["all nodes"])
    (group,) = decisions_by_group(
        JOINT, np.zeros((1, 2), dtype=int), probs[None, :2], np.empty((2, 0), dtype=int), both
    )
    assert group.entropy.tolist() == [1]
    assert group.changed.shape == (0,)


def test_few_degrees_stand_for_themselves() -> None:
    few = group_by_degree(np.array([8, 3, 5, 8]))
    assert few.codes.tolist() == [2, 0, 1, 2]
    assert few.names == ["degree 3", "degree 5", "degree 8"]


def test_many_degrees_are_binned_by_powers_of_two() -> None:
    degree = np.array([0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 100])
    many = group_by_degree(degree)
    for value, code in zip(degree, many.codes, strict=True):
        low, _, high = many.names[code].removeprefix("degree ").partition("-")
        assert int(low) <= value <= int(high or low)
