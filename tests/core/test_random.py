"""Dropout and Gumbel noise: correct rates, independent positions and streams, the same numbers when compiled."""

import numpy as np
import pytest
import torch

from cognn.core import random as noise


def words(count: int) -> torch.Tensor:
    return noise.mix(noise._positions(count, torch.device("cpu")), *noise._seeds(torch.empty(0)))


def test_words_are_those_of_the_formula_also_past_a_block() -> None:
    torch.manual_seed(0)
    first, second = (int(seed) % 2**32 for seed in noise._draw_seeds(torch.empty(0)))
    start, mask = 2**32 - 3, 2**32 - 1
    place = noise._positions(5, torch.device("cpu"), first=start)
    for found, i in zip(noise.mix(place, torch.tensor(first).int(), torch.tensor(second).int()), range(5), strict=True):
        word = ((start + i) * 0x9E3779B9 + first) & mask
        word ^= (word >> 15) | (0xFFFE0000 if word >> 31 else 0)
        word = (word * 0x7FEB352D + second) & mask
        word ^= (word >> 13) | (0xFFF80000 if word >> 31 else 0)
        assert int(found) % 2**32 == word * 2 * 0x846CA68B & mask


def test_every_word_is_as_likely_as_every_other_and_positions_are_independent() -> None:
    torch.manual_seed(3)
    count = 2**18
    for _ in range(3):
        bits = (words(count).numpy().astype(np.int64) + 2**31) // 2
        assert bits.min() >= 0
        assert bits.max() < 2**31
        for shift in (0, 7, 15, 23):  # 255 degrees of freedom: 340 is one in 5000
            found = np.bincount(bits >> shift & 255, minlength=256)
            assert ((found - count / 256) ** 2 / (count / 256)).sum() < 340
        for lag in (1, 2, 3, 16, 64, 128, 1000):
            pairs = np.bincount((bits[:-lag] >> 27) * 16 + (bits[lag:] >> 27), minlength=256)
            assert ((pairs - (count - lag) / 256) ** 2 / ((count - lag) / 256)).sum() < 340


def test_draws_are_independent() -> None:
    torch.manual_seed(4)
    draws = torch.stack([words(4096) for _ in range(300)]).double()
    off = torch.corrcoef(draws)[*torch.triu_indices(300, 300, 1)] * 4096**0.5
    assert abs(off.std() - 1) < 0.02
    assert off.abs().max() < 5.5


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9])
def test_dropout_keeps_the_right_share_and_the_mean(p: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, 1000, requires_grad=True)
    out = noise.dropout(x, p, training=True)
    share = (out == 0).double().mean().item()
    assert abs(share - p) < 5 * (p * (1 - p) / x.numel()) ** 0.5
    torch.testing.assert_close(out[out != 0], torch.full_like(out[out != 0], 1 / (1 - p)), rtol=1e-6, atol=0)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_dropout_is_seeded_independent_and_off_when_scoring() -> None:
    x = torch.ones(999, 3)
    torch.manual_seed(1)
    first, second = noise.dropout(x, 0.5, True), noise.dropout(x, 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(noise.dropout(x, 0.5, True), first)
    assert not torch.equal(first, second)
    kept = (first != 0).double()
    for shift in (1, 2, 3):
        assert abs(((kept.flatten()[shift:] - 0.5) * (kept.flatten()[:-shift] - 0.5)).mean().item()) < 0.03
    assert noise.dropout(x, 0.5, False) is x
    assert noise.dropout(x, 0.0, True) is x


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (300_000,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_any_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    out = noise.dropout(torch.ones(shape, dtype=dtype), 0.25, True)
    assert out.shape == shape
    assert out.dtype == dtype
    assert set(out.unique().tolist()) <= {0.0, torch.tensor(4 / 3, dtype=dtype).item()}


def test_compiled_code_draws_the_same() -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return noise.dropout(x, 0.3, True), noise.gumbel(x)

    x, found = torch.ones(2**17 + 5, 2), []
    for run in (both, torch.compile(both, backend="aot_eager", fullgraph=True)):
        torch.manual_seed(2)
        found.append(run(x))
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1])
    torch.library.opcheck(torch.ops.cognn.seeds.default, (x,), test_utils=("test_schema", "test_faketensor"))


def test_a_given_generator_leaves_the_default_one_unchanged() -> None:
    state = torch.get_rng_state()
    one, two = (noise.gumbel(torch.empty(50, 4), torch.Generator().manual_seed(9)) for _ in range(2))
    assert torch.equal(one, two)
    assert torch.equal(state, torch.get_rng_state())


def test_compiled_dropout_keeps_seeds_and_no_masks() -> None:
    def deep(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = noise.dropout((x @ weight).tanh(), 0.3, training=True)
        return x

    torch._dynamo.reset()
    kept: list[torch.Tensor] = []
    x, weight = torch.randn(50, 8), torch.randn(8, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        torch.compile(deep, backend="aot_eager_decomp_partition", dynamic=True)(x, weight)
    assert sorted(t.numel() for t in kept if not t.is_floating_point()) == [2] * 4
    torch._dynamo.reset()
