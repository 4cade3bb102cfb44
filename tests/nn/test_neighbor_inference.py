"""``model.inference(loader)``: the outputs of the whole graph from one-hop mini-batches."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

from cognn import CoGNN
from cognn.config.presets import authors_options
from cognn.errors import DataError, RunError

NODES, EDGES = 50, 300


class OneHop:
    """What PyG's ``NeighborLoader`` gives for all nodes with ``num_neighbors=[-1]``; that one needs a compiled library.

    ``limit`` is the number of edges that are drawn into a node, as ``num_neighbors`` says.
    """

    def __init__(
        self, data: Data, batch_size: int, limit: int | None = None, order: torch.Tensor | None = None
    ) -> None:
        self.data, self.batch_size, self.limit = data, batch_size, limit
        self.order = torch.arange(data.num_nodes) if order is None else order

    def __iter__(self):
        sender, receiver = self.data.edge_index
        for seeds in self.order.split(self.batch_size):
            edges = torch.cat([(receiver == seed).nonzero().flatten()[: self.limit] for seed in seeds])
            others = sender[edges].unique()
            n_id = torch.cat([seeds, others[~torch.isin(others, seeds)].flip(0)])
            place = torch.full((self.data.num_nodes,), -1)
            place[n_id] = torch.arange(len(n_id))
            attr = None if self.data.edge_attr is None else self.data.edge_attr[edges]
            local = torch.stack([place[sender[edges]], place[receiver[edges]]])
            more = {name: self.data[name][edges] for name in ("edge_weight", "edge_type") if name in self.data}
            yield Data(n_id=n_id, edge_index=local, edge_attr=attr, batch_size=len(seeds), **more)


def graph(edge_attr: torch.Tensor | None = None) -> Data:
    rng = torch.Generator().manual_seed(1)
    edge_index = torch.randint(NODES - 3, (2, EDGES), generator=rng)  # with loops and multi-edges, and lonely nodes
    return Data(x=torch.randn(NODES, 7, generator=rng), edge_index=edge_index, edge_attr=edge_attr)


def model(**options) -> CoGNN:
    torch.manual_seed(0)
    net = CoGNN(7, 8, **{"out_channels": 3, "num_layers": 3} | options)
    with torch.no_grad():  # statistics and biases that are not those of a new model
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
        for norm in net.norms:
            if isinstance(norm, torch.nn.BatchNorm1d):
                norm.running_mean.normal_()
    return net.eval()


@pytest.mark.parametrize("batch_size", [7, NODES])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"action_layers": 3, "norm": "batch_norm", "norm_first": False, "residual": "linear"},
        {"env": "gcn", "action": "gcn", "action_layers": 2},
        {"env": "gin", "action": "gat", "action_space": "factored"},
        {"env": "gat", "action": None},
        {"env": "gin", "action": "gin", "action_layers": 2, **authors_options("gin", "gin")},
        {"env": "gcn", "action": None},
        {"env": "sum", "eval_actions": "expected", "decoder_layers": 2, "jk": "last"},
    ],
)
def test_the_outputs_are_those_of_the_whole_graph(options: dict, batch_size: int) -> None:
    data, net = graph(), model(**options)
    with torch.no_grad():
        expected = net(data.x, data.edge_index)
    out = net.inference(OneHop(data, batch_size))
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    assert not out.requires_grad


@pytest.mark.parametrize("env", ["mean", "gcn", "gat"])
def test_edge_weights(env: str) -> None:
    data, net = graph(), model(env=env, action=env)
    data.edge_weight = torch.rand(EDGES)
    with torch.no_grad():
        expected = net(data.x, data.edge_index, edge_weight=data.edge_weight)
    torch.testing.assert_close(net.inference(OneHop(data, 7)), expected, rtol=1e-5, atol=1e-5)
    data.edge_weight = -data.edge_weight
    with pytest.raises(ValueError, match=r"edge_weight: edge 0 is .* divide by sums of weights"):
        net.inference(OneHop(data, 7))


@pytest.mark.parametrize("options", [{}, {"env": "gcn", "action": "gcn", "action_heads": 2}, {"env": "gin"}])
def test_relations(options: dict) -> None:
    data, net = graph(), model(num_relations=5, **options)
    with pytest.raises(DataError, match=r"^loader: loader.data has no edge_type, but the model has 5 relations$"):
        net.inference(OneHop(data, 7))
    data.edge_type = torch.arange(EDGES) % 4
    with torch.no_grad():
        expected = net(data.x, data.edge_index, edge_type=data.edge_type)
    torch.testing.assert_close(net.inference(OneHop(data, 7)), expected, rtol=1e-5, atol=1e-5)
    data.edge_type = data.edge_type + 2
    with pytest.raises(ValueError, match="edge_type: "):
        net.inference(OneHop(data, 7))


@pytest.mark.parametrize("sharing", ["per_layer", "shared"])
@pytest.mark.parametrize("attr", [torch.randn(EDGES, 2), torch.arange(EDGES) % 4])
def test_edge_features(attr: torch.Tensor, sharing: str) -> None:
    options = {"edge_dim": 2} if attr.is_floating_point() else {"edge_categories": 4}
    data, net = graph(attr), model(**options, env="gin", action_layers=2, edge_sharing=sharing).double()
    data.x = data.x.double()
    data.edge_attr = attr.double() if attr.is_floating_point() else attr
    out = net.inference(OneHop(data, 9), device="cpu")
    assert out.dtype == torch.double
    torch.testing.assert_close(out, net(data.x, data.edge_index, data.edge_attr).detach())


def test_drawn_actions_are_drawn_again_by_seed() -> None:
    data, net = graph(), model(eval_actions="sample")
    torch.manual_seed(3)
    one, other = net.inference(OneHop(data, 9)), net.inference(OneHop(data, 9))
    torch.manual_seed(3)
    assert torch.equal(net.inference(OneHop(data, 9)), one)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "mean"}, "layer-wise inference is for cognn models of node tasks"),
        ({"env": lambda i, o: GraphConv(i, o)}, "a layer of PyG may read more than neighbours"),
        (
            {"directions": "both"},
            r"directions: .* lacks those that leave them; call model\(x, edge_index\), or",
        ),
        ({"jk": "cat"}, "jk: layer-wise inference keeps the states of one layer at a time; use jk=None or 'last'"),
    ],
)
def test_models_that_cannot_be_run_layer_by_layer(options: dict, message: str) -> None:
    with pytest.raises(RunError, match=message):
        model(**options).inference(OneHop(graph(), 9))


def test_what_else_cannot_be() -> None:
    data, net = graph(), model()
    with pytest.raises(RunError, match=r"in training mode; call model.eval\(\) first"):
        model().train().inference(OneHop(data, 9))
    with pytest.raises(RunError, match="in_channels: is -1 until the model has seen data"):
        CoGNN(-1, 8, out_channels=3, num_layers=2).eval().inference(OneHop(data, 9))
    with pytest.raises(DataError, match=r"loader: its batches hold 1\d\d of 300 edges; use num_neighbors=\[-1\]"):
        net.inference(OneHop(data, 9, limit=3))
    for order in (torch.arange(NODES).flip(0), torch.arange(9)):
        with pytest.raises(DataError, match="loader: expected every node once and in order"):
            net.inference(OneHop(data, 9, order=order))
    with pytest.raises(DataError, match="loader: expected a NeighborLoader"):
        net.inference([data])
