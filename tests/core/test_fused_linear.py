"""The sum of two maps: compiled, wide and by an operator of our own, it is what two layers of PyTorch give."""

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from cognn.core import fused_linear as maps
from cognn.core.fused_linear import WIDE, sum_of_maps


def _case(width: int, dtype: torch.dtype = torch.float64) -> tuple[nn.Linear, Tensor, nn.Linear, Tensor]:
    torch.manual_seed(0)
    f, g = nn.Linear(6, width, dtype=dtype), nn.Linear(4, width, bias=False, dtype=dtype)
    return f, torch.randn(9, 6, dtype=dtype, requires_grad=True), g, torch.randn(9, 4, dtype=dtype, requires_grad=True)


def _compiled(f: nn.Linear, x: Tensor, g: nn.Linear, y: Tensor) -> tuple[Tensor, bool]:
    """The sum by compiled code, and whether the operator was called."""
    torch._dynamo.reset()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        out = torch.compile(sum_of_maps, backend="aot_eager", fullgraph=True)(f, x, g, y)
    torch._dynamo.reset()
    return out, any(event.key == "cognn::sum_of_products" for event in seen.key_averages())


@pytest.mark.parametrize(("width", "many"), [(WIDE - 1, 9), (WIDE, 9), (WIDE, 10)])
def test_value_and_all_gradients_are_those_of_two_layers(
    width: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "MANY", many)
    f, x, g, y = _case(width)
    leaves = [x, y, *f.parameters(), *g.parameters()]
    plain = f(x) + g(y)
    out, by_operator = _compiled(f, x, g, y)
    assert by_operator == (width >= WIDE and many <= len(x))
    torch.testing.assert_close(out, plain)
    # x has a second use, whose gradient is added to that of the first.
    weights = torch.randn_like(plain)
    for one, other in zip(
        torch.autograd.grad((plain * weights).sum() + x.pow(2).sum(), leaves),
        torch.autograd.grad((out * weights).sum() + x.pow(2).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_under_autocast_it_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MANY", 0)
    case = _case(WIDE, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = sum_of_maps(*case)
        out, by_operator = _compiled(*case)
    assert not by_operator
    assert out.dtype == plain.dtype == torch.bfloat16
    torch.testing.assert_close(out, plain)
