"""Temperature scaling and the reliability diagram."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cognn.train.calibration import LEAST, MOST, reliability, temperature


def truthful(count: int, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits whose probabilities are those of the classes."""
    torch.manual_seed(0)
    out = 2 * torch.randn(count, classes)
    return out, torch.multinomial(out.softmax(1), 1).view(-1)


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_temperature_undoes_the_scale_of_truthful_outputs(factor: float) -> None:
    out, y = truthful(20_000)
    assert temperature("multiclass", factor * out, y) == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
def test_temperature_minimises_the_cross_entropy(kind: str) -> None:
    torch.manual_seed(1)
    out, y = torch.randn(50, 3).double(), torch.randint(3, (50,))
    if kind != "multiclass":
        out, y = (out, torch.rand(50, 3).round().double()) if kind == "multilabel" else (out[:, :1], (y > 1).double())
        y.view(-1)[:4] = torch.nan

    def loss(t: float) -> float:
        if kind == "multiclass":
            return float(cross_entropy(out / t, y))
        known = ~y.isnan()
        return float(binary_cross_entropy_with_logits(out.view(y.shape)[known] / t, y[known]))

    best = temperature(kind, out, y)
    assert LEAST <= best <= MOST
    assert all(loss(best) <= loss(t) + 1e-12 for t in torch.logspace(-1.3, 1.3, 200).tolist())


def test_temperature_has_bounds() -> None:
    sure, y = torch.eye(3), torch.arange(3)
    assert temperature("multiclass", sure, y) == pytest.approx(LEAST)
    assert temperature("multiclass", -sure, y) == pytest.approx(MOST)
    assert temperature("multiclass", sure[:0], y[:0]) == 1


def test_reliability_counts_items_by_their_confidence() -> None:
    found = reliability(torch.tensor([0.95, 0.97, 0.55, 0.95]), torch.tensor([True, False, True, True]))
    assert found.items == [1, 3]
    assert found.confidence == pytest.approx([0.55, (0.95 + 0.97 + 0.95) / 3])
    assert found.accuracy == pytest.approx([1, 2 / 3])
    assert found.error == pytest.approx(0.45 / 4 + 3 / 4 * (2.87 / 3 - 2 / 3))


def test_truthful_outputs_have_a_small_error_and_sharper_ones_a_large() -> None:
    out, y = truthful(20_000)
    true, sharp = (reliability(p.max(1).values, p.argmax(1) == y).error for p in (out.softmax(1), (4 * out).softmax(1)))
    assert true < 0.02 < 0.1 < sharp
