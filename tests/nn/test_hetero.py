"""Co-GNN on HeteroData equals Co-GNN with relations on the homogeneous graph."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.nn import to_hetero

from cognn import CoGNN
from cognn.nn.hetero import HeteroCoGNN


def toy() -> HeteroData:
    rng, data = torch.Generator().manual_seed(0), HeteroData()
    data["user"].x = torch.randn(7, 3, generator=rng)
    data["item"].x = torch.randn(5, 2, generator=rng)
    data["tag"].x = torch.empty(4, 0)
    for kind, edges in {("user", "buys", "item"): (7, 5, 20), ("item", "bought by", "user"): (5, 7, 20)}.items():
        rows, columns, count = edges
        ends = torch.randint(rows, (count,), generator=rng), torch.randint(columns, (count,), generator=rng)
        data[kind].edge_index = torch.stack(ends)
    data["tag", "of", "item"].edge_index = torch.tensor([[0, 1, 3], [0, 4, 2]])
    return data


def build(data: HeteroData, **options) -> HeteroCoGNN:
    torch.manual_seed(0)
    return CoGNN.from_hetero(data, 8, out_channels=2, num_layers=2, **options).eval()


@pytest.mark.parametrize("options", [{}, {"action_heads": 4, "directions": "both"}, {"env": "gat", "action": None}])
def test_it_equals_the_homogeneous_model(options: dict) -> None:
    data = toy()
    model = build(data, **options)
    outs = model(data.x_dict, data.edge_index_dict)
    padded: list[Tensor] = []
    for number, (kind, first) in enumerate({"user": 0, "item": 3, "tag": 5}.items()):
        x = data[kind].x
        before, after = torch.zeros(len(x), first), torch.zeros(len(x), 5 - first - x.size(1))
        marks = torch.nn.functional.one_hot(torch.full((len(x),), number), 3)
        padded.append(torch.cat([before, x, after, marks], 1))
        data[kind].x = padded[-1]
    plain = data.to_homogeneous()
    expected = model.model(plain.x, plain.edge_index, edge_type=plain.edge_type)
    torch.testing.assert_close(torch.cat(list(outs.values())), expected)
    assert {kind: tuple(out.shape) for kind, out in outs.items()} == {"user": (7, 2), "item": (5, 2), "tag": (4, 2)}


def test_edge_weights_come_by_edge_type() -> None:
    data = toy()
    model = build(data)
    for number, kind in enumerate(data.edge_types):
        data[kind].edge_weight = torch.rand(data[kind].num_edges) + number
    outs = model(data.x_dict, data.edge_index_dict, data.edge_weight_dict)
    x, _ = model._features(data.x_dict)
    plain = data.to_homogeneous(node_attrs=[])
    expected = model.model(x, plain.edge_index, edge_type=plain.edge_type, edge_weight=plain.edge_weight)
    torch.testing.assert_close(torch.cat(list(outs.values())), expected)
    assert not torch.allclose(outs["item"], model(data.x_dict, data.edge_index_dict)["item"])
    with pytest.raises(ValueError, match=r"edge_weight_dict\[.*\]: expected shape \(E=20,\), got none"):
        model(data.x_dict, data.edge_index_dict, {})


def test_changed_edges_are_noticed() -> None:
    data = toy()
    model = build(data, action=None)
    before = model(data.x_dict, data.edge_index_dict)["item"]
    data["user", "buys", "item"].edge_index[0] = 6 - data["user", "buys", "item"].edge_index[0]
    assert not torch.equal(model(data.x_dict, data.edge_index_dict)["item"], before)


def test_an_edge_type_may_be_absent() -> None:
    data = toy()
    model = build(data, action=None)
    edges = dict(data.edge_index_dict)
    empty = edges | {("tag", "of", "item"): torch.empty(2, 0, dtype=torch.long)}
    del edges["tag", "of", "item"]
    for kind, out in model(data.x_dict, edges).items():
        assert torch.equal(out, model(data.x_dict, empty)[kind])


def test_it_learns_and_saves(tmp_path) -> None:
    data = toy()
    model = build(data).train()
    model(data.x_dict, data.edge_index_dict)["item"].sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    torch.save(model.state_dict(), tmp_path / "model.pt")
    again = CoGNN.from_hetero(data, 8, out_channels=2, num_layers=2)
    again.load_state_dict(torch.load(tmp_path / "model.pt"))
    one, other = (m.eval()(data.x_dict, data.edge_index_dict)["user"] for m in (model, again))
    assert torch.equal(one, other)


def test_wrong_data_is_named() -> None:
    data = toy()
    model = build(data)
    with pytest.raises(ValueError, match=r"x_dict: unknown node type 'shop'; the model knows 'user', 'item', 'tag'"):
        model(data.x_dict | {"shop": torch.zeros(1, 1)}, data.edge_index_dict)
    with pytest.raises(ValueError, match=r"x_dict\['item'\]: expected shape \(N, 2\), got \(5, 3\)"):
        model(data.x_dict | {"item": torch.zeros(5, 3)}, data.edge_index_dict)
    with pytest.raises(ValueError, match="edge_index_dict: unknown edge type"):
        model(data.x_dict, data.edge_index_dict | {("user", "likes", "item"): torch.zeros(2, 1).long()})
    with pytest.raises(ValueError, match=r"row 1 has indices from 9 to 9, but there are 5 nodes of type 'item'"):
        model(data.x_dict, data.edge_index_dict | {("tag", "of", "item"): torch.tensor([[0], [9]])})
    data["tag", "of", "shop"].edge_index = torch.tensor([[0], [0]])
    with pytest.raises(ValueError, match="connects 'shop', but the node types are"):
        HeteroCoGNN(lambda *sizes: torch.nn.Identity(), {"user": 3, "item": 2, "tag": 0}, data.edge_types)


def test_to_hetero_points_to_from_hetero() -> None:
    with pytest.raises(TypeError, match=r"use CoGNN.from_hetero\(data, ...\) instead"):
        to_hetero(CoGNN(5, 8, out_channels=3, num_layers=2), toy().metadata())
