"""Decoders of pairs, and the model around them."""

import pytest
import torch

from cognn import CoGNN, Graph
from cognn.nn.pairs.decoders import DECODERS
from cognn.nn.pairs.model import PairModel

PAIRS = torch.tensor([[0, 1, 2, 3], [4, 2, 0, 1]])


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_undirected_pairs_have_no_order_and_directed_ones_do(name: str, outputs: int) -> None:
    torch.manual_seed(0)
    for directed in (False, True):
        decoder = DECODERS[name](4, outputs, directed)
        z = torch.randn(5, decoder.in_channels)
        there, back = decoder(z, PAIRS), decoder(z, PAIRS.flip(0))
        assert there.shape == (4, outputs)
        assert torch.equal(there, back) != directed


def test_the_dot_product_is_divided_by_the_width_at_first() -> None:
    z = torch.randn(5, 4)
    dots = torch.stack([z[u] @ z[v] for u, v in PAIRS.T.tolist()])
    assert torch.allclose(DECODERS["dot"](4, 1, False)(z, PAIRS).view(-1), dots / 4, atol=1e-6)
    halves = torch.stack([z[u, :2] @ z[v, 2:] for u, v in PAIRS.T.tolist()])
    assert torch.allclose(DECODERS["dot"](2, 1, True)(z, PAIRS).view(-1), halves / 2, atol=1e-6)


@pytest.mark.parametrize("channels", [8, 512])
def test_no_pair_is_a_sure_link_at_first(channels: int) -> None:
    """Embeddings of normalised states that are alike, such as those of joined nodes, have large dot products."""
    z = 1 + torch.randn(5, channels, generator=torch.Generator().manual_seed(0))
    assert DECODERS["dot"](channels, 1, False)(z, PAIRS).sigmoid().max() < 0.95


def test_a_model_of_pairs_decodes_what_its_model_gives() -> None:
    torch.manual_seed(0)
    inner, decoder = CoGNN(3, 8, out_channels=4, num_layers=2), DECODERS["mlp"](4, 2, False)
    model = PairModel(inner, decoder).eval()
    x, graph = torch.randn(5, 3), Graph(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), 5)
    expected = decoder(inner(x, graph, actions="argmax"), PAIRS)
    assert torch.equal(model(x, graph, pairs=PAIRS, actions="argmax"), expected)
    out, trace = model(x, graph, pairs=PAIRS, actions="argmax", return_trace=True)
    assert torch.equal(out, expected)
    assert trace.actions.shape == (2, 5)
    samples = model(x, graph, pairs=PAIRS, samples=3)
    assert samples.mean.shape == samples.std.shape == expected.shape
    torch.manual_seed(1)
    draws = model(x, graph, pairs=PAIRS, samples=200).mean
    torch.manual_seed(2)
    one_by_one = torch.stack([model(x, graph, pairs=PAIRS, actions="sample") for _ in range(200)]).mean(0)
    assert torch.allclose(draws, one_by_one, atol=0.2)
