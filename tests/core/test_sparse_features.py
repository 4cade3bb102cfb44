"""Sparse node features: the encoder is a sparse product with the results of the dense one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data

from cognn import CoGNN
from cognn.baselines.models import Baseline
from cognn.core.sparse_features import linear, repeat_rows, take_rows
from tests.nn.test_neighbor_inference import OneHop

LAYOUTS = {"csr": torch.Tensor.to_sparse_csr, "coo": torch.Tensor.to_sparse_coo}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def features(rows: int = 9, width: int = 30, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(rows, width, generator=rng, dtype=dtype)
    x[torch.rand(rows, width, generator=rng) < 0.8] = 0
    x[2] = 0  # a node without features
    return x


@every_layout
@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_and_its_gradients_are_those_of_the_dense_features(layout: str, bias: bool) -> None:
    x, layer = features(), nn.Linear(30, 4, bias=bias).double()
    sparse, factor = LAYOUTS[layout](x), torch.randn(9, 4, dtype=torch.float64)
    torch.testing.assert_close(linear(layer, sparse), layer(x))
    grads = [torch.autograd.grad((out * factor).sum(), layer.parameters()) for out in (linear(layer, sparse), layer(x))]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


@every_layout
def test_changed_features_are_noticed(layout: str) -> None:
    sparse, layer = LAYOUTS[layout](features()), nn.Linear(30, 4).double()
    before = linear(layer, sparse)
    (sparse.values() if layout == "csr" else sparse._values()).mul_(2)
    torch.testing.assert_close(linear(layer, sparse) - layer.bias, 2 * (before - layer.bias))


def test_repeated_entries_add_up() -> None:
    layer, ends = nn.Linear(30, 4), torch.tensor([[1, 1, 0], [4, 4, 7]])
    values = torch.tensor([1.0, 2.0, 3.0])
    sparse = torch.sparse_coo_tensor(ends, values, (3, 30), check_invariants=True)
    torch.testing.assert_close(linear(layer, sparse), layer(sparse.to_dense()))


@given(st.lists(st.integers(0, 8), max_size=12))
def test_rows_are_those_of_the_dense_features(rows: list[int]) -> None:
    x, index = features(), torch.tensor(rows, dtype=torch.long)
    for make in LAYOUTS.values():
        assert torch.equal(take_rows(make(x), index).to_dense(), x[index])
        assert torch.equal(repeat_rows(make(x), 3).to_dense(), x.repeat(3, 1))


def test_dropout_drops_entries_and_keeps_their_mean() -> None:
    layer = nn.Linear(2000, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1)
    sparse = torch.ones(50, 2000).to_sparse_csr()
    out = linear(layer, sparse, 0.75, True)
    assert len(out.unique()) > 5
    torch.testing.assert_close(out.mean(), torch.tensor(2000.0), rtol=0.02, atol=0)
    assert torch.equal(linear(layer, sparse, 0.75, False), linear(layer, sparse))


@every_layout
@pytest.mark.parametrize("pool", [None, "mean"])
def test_models_give_what_they_give_for_dense_features(layout: str, pool: str | None) -> None:
    x, edges = features(dtype=torch.float32), torch.randint(9, (2, 30))
    for model in (
        CoGNN(30, 8, out_channels=2, num_layers=2, pool=pool),
        CoGNN(-1, 8, out_channels=2, num_layers=2, env="gcn", pool=pool),
        Baseline("gat", 30, 8, 2, 2, pool=pool),
    ):
        model.eval()
        torch.testing.assert_close(model(LAYOUTS[layout](x), edges), model(x, edges))
        model.train()(LAYOUTS[layout](x), edges).sum().backward()


@every_layout
def test_layer_wise_inference_takes_sparse_features(layout: str) -> None:
    x, edges = features(50, dtype=torch.float32), torch.randint(50, (2, 300))
    model = CoGNN(30, 8, out_channels=2, num_layers=2).eval()
    with torch.no_grad():
        expected = model(x, edges)
    torch.testing.assert_close(
        model.inference(OneHop(Data(x=LAYOUTS[layout](x), edge_index=edges), 7)), expected, rtol=1e-4, atol=1e-5
    )


def bad(kind: str) -> torch.Tensor:
    x = features(dtype=torch.float32)
    if kind == "nan":
        x[4, 7] = torch.nan
    sparse = x.to_sparse_csr()
    return {
        "csc": lambda: x.to_sparse_csc(),
        "gradient": lambda: sparse.requires_grad_(),
        "double": lambda: sparse.double(),
        "integers": lambda: x.long().to_sparse_csr(),
        "width": lambda: x[:, :20].to_sparse_csr(),
        "nan": lambda: sparse,
    }[kind]()


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("csc", TypeError, "x: expected a dense, CSR or COO tensor, got torch.sparse_csc; convert with"),
        ("gradient", TypeError, "x: is sparse and requires a gradient; convert with x.to_dense"),
        ("double", TypeError, "x: is torch.float64, but the model is torch.float32"),
        ("integers", TypeError, "x: expected floats, got torch.int64"),
        ("width", ValueError, r"x: expected shape \(N, in_channels=30\), got \(9, 20\)"),
        ("nan", ValueError, "x: row 4, column 7 is nan; all values must be finite"),
    ],
)
def test_bad_sparse_features_are_refused_in_one_line(kind: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CoGNN(30, 8, out_channels=2, num_layers=1)(bad(kind), torch.randint(9, (2, 30)))
