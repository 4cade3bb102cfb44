"""The columns of the actions in a table of predictions."""

import polars as pl
import torch

from cognn.nn.actions import action_space
from cognn.nn.edge_actions import EdgeSpace
from cognn.run.fit import Prediction
from cognn.run.prediction_table import edge_table, escape_formulas, most_common, prediction_table

S, L, B, ISOLATE = range(4)


def table(actions: torch.Tensor):
    value = torch.full((actions.size(1), 1), 0.25)
    return prediction_table("regression", None, None, Prediction(value, None, actions)).drop("id", "prediction")


def test_one_head_has_its_action_only() -> None:
    found = table(torch.tensor([[S, L], [B, ISOLATE]]))
    assert found.to_dict(as_series=False) == {"action_0": ["STANDARD", "LISTEN"], "action_1": ["BROADCAST", "ISOLATE"]}


def test_several_heads_have_shares_and_the_most_common_action() -> None:
    found = table(torch.tensor([[[S, L, L, B], [ISOLATE, ISOLATE, B, S]]]))
    assert found.to_dict(as_series=False) == {
        "listen_0": [0.75, 0.25],
        "broadcast_0": [0.5, 0.5],
        "action_0": ["LISTEN", "ISOLATE"],
        "action_0_head_0": ["STANDARD", "ISOLATE"],
        "action_0_head_1": ["LISTEN", "ISOLATE"],
        "action_0_head_2": ["LISTEN", "BROADCAST"],
        "action_0_head_3": ["BROADCAST", "STANDARD"],
    }


def test_many_heads_have_no_columns_of_their_own() -> None:
    assert len(table(torch.zeros(2, 3, 8, dtype=torch.long)).columns) == 2 * (3 + 8)
    many = table(torch.zeros(2, 3, 9, dtype=torch.long))
    assert many.columns == ["listen_0", "broadcast_0", "action_0", "listen_1", "broadcast_1", "action_1"]


def test_the_lowest_of_equally_common_actions() -> None:
    assert most_common(torch.tensor([[L, S], [B, ISOLATE], [ISOLATE, ISOLATE]]), 4).tolist() == [S, B, ISOLATE]


def test_relations_have_columns_of_their_own_and_directed_codes_their_names() -> None:
    value, codes = torch.full((2, 1), 0.25), torch.tensor([[[S, L], [B, S]]])
    typed = prediction_table("regression", None, None, Prediction(value, None, codes, action_space("joint", 1, 2)))
    assert typed["action_0_relation_0"].to_list() == ["STANDARD", "BROADCAST"]
    assert typed["action_0_relation_1"].to_list() == ["LISTEN", "STANDARD"]
    directed = action_space("joint", 2, 2, True)
    codes = torch.tensor([[[5, 4], [15, 1]]])
    found = prediction_table("regression", None, None, Prediction(value, None, codes, directed))
    assert found["action_0_head_0"].to_list() == ["LISTEN", "ISOLATE"]
    assert found["listen_0"].to_list() == [1.0, 0.5]
    assert found["broadcast_0"].to_list() == [0.5, 0.5]


def test_nodes_have_the_shares_of_their_edges_that_are_kept_and_edges_their_actions() -> None:
    ends, value = torch.tensor([[0, 1, 2, 0], [1, 2, 1, 2]]), torch.full((3, 1), 0.25)
    codes = torch.tensor([[0, 1, 1, 0]])
    one = Prediction(value, None, codes, EdgeSpace(1))
    nodes = prediction_table("regression", None, list("abc"), one, ends)
    assert nodes["listen_0"].to_list() == [None, 0.5, 0.5]
    assert nodes["broadcast_0"].to_list() == [1.0, 0.0, 0.0]
    assert edge_table(list("abc"), ends, one).to_dict(as_series=False) == {
        "source": ["a", "b", "c", "a"],
        "target": ["b", "c", "b", "c"],
        "action_0": ["KEEP", "DROP", "DROP", "KEEP"],
    }
    two = Prediction(value, None, torch.stack([codes, torch.ones_like(codes)], -1), EdgeSpace(2))
    assert prediction_table("regression", None, None, two, ends)["listen_0"].to_list() == [None, 0.25, 0.25]
    edges = edge_table(None, ends, two)
    assert edges["keep_0"].to_list() == [0.5, 0.0, 0.0, 0.5]
    assert edges["action_0_head_1"].to_list() == ["DROP"] * 4


def test_formulas_are_escaped_and_numbers_are_not() -> None:
    cells = ["=1+1", "+cmd|' /C calc'!A0", "@sum", "\t=1", "-x", "-5", "+3.5", "1=1", "", None]
    table = escape_formulas(pl.DataFrame({"id": cells, "p_=x": [0.5] * len(cells), "=name": ["a"] * len(cells)}))
    assert table["id"].to_list() == [
        *("'=1+1", "'+cmd|' /C calc'!A0", "'@sum", "'\t=1", "'-x"),
        *("-5", "+3.5", "1=1", "", None),
    ]
    assert table.columns == ["id", "p_=x", "'=name"]
    assert table["p_=x"].to_list() == [0.5] * len(cells)
