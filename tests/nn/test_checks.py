import re

import numpy as np
import pytest
import torch

from cognn import CoGNN, Graph
from cognn.baselines.models import Baseline
from cognn.nn import checks
from cognn.nn.layers import SumLayer

X = torch.ones(4, 3)
EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])


def net(**options) -> CoGNN:
    return CoGNN(3, 4, **{"out_channels": 2, "num_layers": 2} | options)


def with_value(value: float) -> torch.Tensor:
    x = X.clone()
    x[2, 1] = value
    return x


BAD_CALLS = {
    "index out of range": ((X, torch.tensor([[0], [4]])), ValueError, "edge_index: node 4 is out of range for 4 nodes"),
    "negative index": ((X, torch.tensor([[0], [-2]])), ValueError, "edge_index: node indices start at 0, got -2"),
    "float index": ((X, EDGES.float()), TypeError, "edge_index: expected integers, got torch.float32"),
    "bool index": ((X, EDGES.bool()), TypeError, "edge_index: expected integers, got torch.bool"),
    "flat index": ((X, EDGES.flatten()), ValueError, "edge_index: expected shape (2, E), got (6,)"),
    "tall index": ((X, EDGES.t()), ValueError, "edge_index: expected shape (2, E), got (3, 2); transpose it"),
    "sparse index": (
        (X, torch.eye(4).to_sparse()),
        TypeError,
        "edge_index: expected a dense (2, E) tensor, got layout",
    ),
    "list index": (
        (X, [[0], [1]]),
        TypeError,
        "edge_index: expected an integer tensor of shape (2, E) or a Graph, got list",
    ),
    "graph size": ((X, Graph(EDGES, 5)), ValueError, "edge_index: the Graph has 5 nodes, but x has 4 rows"),
    "width": ((torch.ones(4, 5), EDGES), ValueError, "x: expected shape (N, in_channels=3), got (4, 5)"),
    "one dimension": ((torch.ones(4), EDGES), ValueError, "x: expected shape (N, in_channels=3), got (4,)"),
    "integer features": ((X.long(), EDGES), TypeError, "x: expected floats, got torch.int64; convert with x.float()"),
    "no tensor": (([[1.0]], EDGES), TypeError, "x: expected a float tensor of shape (N, 3), got list"),
    "sparse features": (
        (X.to_sparse_csc(), EDGES),
        TypeError,
        "x: expected a dense, CSR or COO tensor, got torch.sparse_csc",
    ),
    "nan": ((with_value(float("nan")), EDGES), ValueError, "x: row 2, column 1 is nan; all values must be finite"),
    "inf": ((with_value(float("-inf")), EDGES), ValueError, "x: row 2, column 1 is -inf; all values must be finite"),
    "unasked edge features": (
        (X, EDGES, torch.ones(3, 1)),
        ValueError,
        "edge_attr: this model takes none; build it with",
    ),
    "batch in the place of edge features": (
        (X, EDGES, torch.zeros(4).long()),
        TypeError,
        "edge_attr: this model takes none, and this looks like a batch; pass it as batch=",
    ),
    "mode": ((X, EDGES, None, None, "greedy"), ValueError, "actions: expected 'sample', 'argmax', 'expected' or codes"),
    "action type": (
        (X, EDGES, None, None, 3),
        TypeError,
        "actions: expected 'sample', 'argmax', 'expected' or a LongTensor",
    ),
    "action dtype": (
        (X, EDGES, None, None, torch.zeros(2, 4)),
        TypeError,
        "actions: forced actions are torch.long codes",
    ),
    "action shape": (
        (X, EDGES, None, None, torch.zeros(3, 4).long()),
        ValueError,
        "actions: expected shape (num_layers=2, N=4), got (3, 4)",
    ),
    "action code": (
        (X, EDGES, None, None, torch.full((2, 4), 4)),
        ValueError,
        "actions: codes are 0 (STANDARD) to 3 (ISOLATE), got 4",
    ),
    "negative code": (
        (X, EDGES, None, None, torch.full((2, 4), -1)),
        ValueError,
        "actions: codes are 0 (STANDARD) to 3 (ISOLATE), got -1",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_get_one_clear_line(name: str) -> None:
    arguments, kind, message = BAD_CALLS[name]
    with pytest.raises(kind, match="^" + re.escape(message)) as caught:
        net()(*arguments)
    assert "\n" not in str(caught.value)


BAD_SIZES = {
    "in_channels": (0, 4, 2, 2),
    "hidden_channels": (3, 0, 2, 2),
    "out_channels": (3, 4, -1, 2),
    "num_layers": (3, 4, 2, 0),
}


@pytest.mark.parametrize("name", BAD_SIZES)
def test_sizes_below_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected 1 or more, got"):
        CoGNN(*BAD_SIZES[name][:2], out_channels=BAD_SIZES[name][2], num_layers=BAD_SIZES[name][3])


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"env": "sage"}, ValueError, "env: unknown layer 'sage'; known are sum, mean, gcn, gin, gat"),
        ({"action": "sage"}, ValueError, "action: unknown layer 'sage'; known are sum, mean, gcn, gin, gat"),
        ({"env": 7}, TypeError, "env: expected a name (sum, mean, gcn, gin, gat) or a callable (in, out), got 7"),
        ({"action_space": "both"}, ValueError, "action_space: expected one of 'joint', 'factored', 'edge', got 'both'"),
        ({"action_channels": 0}, ValueError, "action_channels: expected 1 or more, got 0"),
        ({"action_layers": 0}, ValueError, "action_layers: expected 1 or more, got 0"),
        ({"decoder_layers": 0}, ValueError, "decoder_layers: expected 1 or more, got 0"),
        ({"decoder_layers": 1.5}, TypeError, "decoder_layers: expected a whole number, got 1.5"),
        ({"temperature": 0}, ValueError, "temperature: expected 'learned' or a number above 0, got 0"),
        ({"temperature": "hot"}, ValueError, "temperature: expected 'learned' or a number above 0, got 'hot'"),
        ({"tau0": -1}, ValueError, "tau0: expected a number of 0 or more, got -1"),
        ({"tau0": float("nan")}, ValueError, "tau0: expected a number of 0 or more, got nan"),
        ({"mean_over": "half"}, ValueError, "mean_over: expected one of 'kept', 'all', got 'half'"),
        ({"mean_over": "all", "env": "sum"}, ValueError, "mean_over: 'all' is for env='mean', but env is 'sum'"),
        ({"norm": "group"}, ValueError, "norm: expected one of 'layer', 'batch', None, got 'group'"),
        ({"residual": "yes"}, ValueError, "residual: expected one of 'identity', 'linear', None, got 'yes'"),
        ({"act": "mush"}, ValueError, "act: expected one of 'gelu', 'relu'"),
        ({"act": "glu"}, ValueError, "act: expected one of 'gelu', 'relu'"),
        ({"act": 3}, TypeError, "act: expected a name, a torch.nn.Module or a function, got 3"),
        ({"norm": "graph_norm"}, ValueError, "norm: expected one of 'layer', 'batch', None, got 'graph_norm'"),
        ({"jk": "sum"}, ValueError, "jk: expected one of None, 'last', 'cat', 'max', 'lstm', got 'sum'"),
        ({"pool": "median"}, ValueError, "pool: expected one of 'mean', 'sum', 'max', None, got 'median'"),
        ({"dropout": 1.0}, ValueError, "dropout: expected 0 <= dropout < 1, got 1.0"),
        ({"dropout": -0.1}, ValueError, "dropout: expected 0 <= dropout < 1, got -0.1"),
        ({"edge_dim": 0}, ValueError, "edge_dim: expected 1 or more, got 0"),
        ({"edge_categories": (3, 0)}, ValueError, "edge_categories: expected 1 or more, got 0"),
        ({"edge_dim": 1, "edge_categories": 2}, ValueError, "edge_categories: give either edge_dim or edge_categories"),
    ],
)
def test_bad_options(options, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match="^" + re.escape(message)) as caught:
        net(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "attr", "kind", "message"),
    [
        ({"edge_dim": 2}, None, ValueError, "edge_attr: missing, but the model was built with edge_dim=2"),
        ({"edge_dim": 2}, torch.ones(3, 1), ValueError, "edge_attr: expected shape (3, 2), got (3, 1)"),
        (
            {"edge_dim": 1},
            torch.ones(3, 1).long(),
            TypeError,
            "edge_attr: expected floats for edge_dim=1, got torch.int64",
        ),
        ({"edge_dim": 1}, torch.tensor([[1], [2], [float("nan")]]), ValueError, "edge_attr: row 2, column 0 is nan"),
        ({"edge_categories": 4}, torch.ones(3), TypeError, "edge_attr: expected torch.long for edge_categories=(4,)"),
        (
            {"edge_categories": 4},
            torch.tensor([0, 4, 1]),
            ValueError,
            "edge_attr: row 1, column 0 is 4, expected 0 to 3",
        ),
    ],
)
def test_bad_edge_features(options, attr, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match="^" + re.escape(message)):
        net(**options)(X, EDGES, attr)


def test_bad_batches_and_samples() -> None:
    pooled = net(pool="mean")
    with pytest.raises(ValueError, match=re.escape("batch: expected shape (N=4,), got (3,)")):
        pooled(X, EDGES, batch=torch.zeros(3, dtype=torch.long))
    with pytest.raises(TypeError, match="batch: expected a LongTensor"):
        pooled(X, EDGES, batch=torch.zeros(4))
    with pytest.raises(ValueError, match="batch: graph numbers start at 0, got -1"):
        pooled(X, EDGES, batch=torch.tensor([0, 0, -1, 0]))
    with pytest.raises(ValueError, match="samples: expected 1 or more, got 0"):
        net()(X, EDGES, samples=0)
    with pytest.raises(ValueError, match="samples: averages over drawn actions"):
        net()(X, EDGES, samples=2, actions="argmax")
    with pytest.raises(ValueError, match="actions: 'argmax' needs an action network"):
        net(action=None)(X, EDGES, actions="argmax")


def test_values_are_read_once_while_unchanged_and_again_when_not() -> None:
    x, model = X.clone(), net()
    model(x, EDGES)
    assert checks._seen.get(x)[0] == x._version
    x[0, 0] = float("nan")
    with pytest.raises(ValueError, match="row 0, column 0 is nan"):
        model(x, EDGES)
    x.fill_(1e38)  # finite, though its sum is not
    model(x * 3, EDGES)
    with torch.inference_mode():
        model(torch.ones(4, 3), EDGES)
        with pytest.raises(ValueError, match="row 2, column 1 is nan"):
            model(with_value(float("nan")), EDGES)


def test_what_one_model_may_take_another_may_not() -> None:
    attr = torch.full((3,), 4)
    net(edge_categories=5)(X, EDGES, attr)
    with pytest.raises(ValueError, match="edge_attr: row 0, column 0 is 4, expected 0 to 2"):
        net(edge_categories=3)(X, EDGES, attr)
    with pytest.raises(TypeError, match=r"x: is torch.float64, but the model is torch.float32"):
        net()(X.double(), EDGES)
    with pytest.raises(TypeError, match="edge_attr: expected a tensor, got list"):
        net(edge_dim=1)(X, EDGES, [1.0])
    with pytest.raises(ValueError, match=r"env: SumLayer\(4, 4\) takes no edge features"):
        net(env=lambda i, o: SumLayer(i, o), edge_dim=2)


def test_compiled_models_check_all_that_is_known_before_they_run() -> None:
    compiled = torch.compile(net(), backend="eager")
    with pytest.raises(Exception, match="actions: expected 'sample'"):
        compiled(X, Graph(EDGES, 4), actions="sampel")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_edge_features_have_the_type_of_the_model(dtype: torch.dtype) -> None:
    model, attr = net(edge_dim=2), torch.ones(3, 2, dtype=dtype)
    with pytest.raises(TypeError, match=rf"edge_attr: is {dtype}, but the model is torch.float32; convert with"):
        model(X, EDGES, attr)
    assert model(X, EDGES, attr.float()).shape == (4, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert model(X, EDGES, attr.to(torch.bfloat16)).shape == (4, 2)


@pytest.mark.parametrize("make", [net, lambda **options: Baseline("gat", 3, 4, 2, 2, **options)], ids=["cognn", "gat"])
def test_one_column_of_edge_features_may_be_flat_and_is_read_once(make, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(checks, "_finite", lambda name, value: read.append(name))
    model, attr = make(edge_dim=1).eval(), torch.tensor([0.5, -1.0, 2.0])
    options = {"actions": "argmax"} if isinstance(model, CoGNN) else {}
    flat = [model(X, EDGES, attr, **options) for _ in range(3)]
    assert torch.equal(flat[0], model(X, EDGES, attr.unsqueeze(-1), **options))
    assert read.count("edge_attr") == 2, "once flat, once not"


def test_flat_edge_features_that_are_wrong_are_named() -> None:
    with pytest.raises(ValueError, match="edge_attr: row 1, column 0 is nan"):
        net(edge_dim=1)(X, EDGES, torch.tensor([0.5, torch.nan, 2.0]))
    with pytest.raises(ValueError, match="edge_attr: row 2, column 0 is 7, expected 0 to 4"):
        net(edge_categories=5)(X, EDGES, torch.tensor([0, 1, 7]))


@pytest.mark.parametrize("make", [net, lambda **options: Baseline("gat", 3, 4, 2, 2, **options)], ids=["cognn", "gat"])
def test_models_and_baselines_check_alike(make) -> None:
    specs = (make(edge_categories=size).edge_spec for size in (5, np.int64(5)))
    assert {spec.categories for spec in specs} == {(5,)}
    for options, message in (
        ({"edge_dim": 0}, "edge_dim: expected 1 or more, got 0"),
        ({"edge_categories": (3, 0)}, "edge_categories: expected 1 or more, got 0"),
        ({"edge_dim": 1, "edge_categories": 5}, "edge_categories: give either"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**options)
    model, batch = make(pool="mean"), torch.tensor([0, 0, 1, 2])
    assert model(X, EDGES, None, batch, num_graphs=5).shape == (5, 2)
    with pytest.raises(ValueError, match="batch: graph 2 is out of range for num_graphs=2"):
        model(X, EDGES, None, batch, num_graphs=2)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert CoGNN(np.int64(3), np.int32(4), out_channels=2, num_layers=2)(X, EDGES).shape == (4, 2)
    for wrong in (3.0, True, "3"):
        with pytest.raises(TypeError, match="in_channels: expected a whole number"):
            CoGNN(wrong, 4, out_channels=2, num_layers=2)


def test_draws_need_someone_who_acts() -> None:
    with pytest.raises(ValueError, match="samples: draws actions, but the model was built with action=None"):
        net(action=None)(X, EDGES, samples=3)
