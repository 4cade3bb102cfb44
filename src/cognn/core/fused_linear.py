"""The sum of two linear maps, added up where it is computed.

The compiler makes ``addmm`` of a matrix product and a sum, and ``addmm`` first copies what it adds to: in wide layers,
that is a good part of what an epoch takes beyond its limit (``benchmarks/roofline.py``).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.compiler import is_compiling

from cognn.core.operators import operators, register

WIDE, MANY = 128, 4096
"""From this width and number of nodes on a copy takes longer than the way to an operator of our own."""


def sum_of_maps(f: nn.Linear, x: Tensor, g: nn.Linear, y: Tensor) -> Tensor:
    """``f(x) + g(y)``, where ``g`` has no bias."""
    wide = f.out_features >= WIDE and x.is_cpu and not torch.is_autocast_enabled("cpu")
    if wide and is_compiling() and x.size(0) >= MANY:
        return _SumOfProducts.apply(x, f.weight, y, g.weight) + f.bias  # the compiler adds it to what comes next
    return f(x) + g(y)


class _SumOfProducts(Function):
    r""":math:`x W^\top + y V^\top`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, y: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(x, w, y, v)
        out: Tensor = operators().sum_of_products(x, w.t(), y, v.t())
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, w, y, v = ctx.saved_tensors
        (grad,) = grads
        # Other gradients of x are still to be added: to a product that the compiler knows, again by a copy.
        return operators().matrix_product(grad, w), grad.t() @ x, grad @ v, grad.t() @ y


register(
    "sum_of_products(Tensor a, Tensor b, Tensor c, Tensor d) -> Tensor",
    lambda a, b, c, d: torch.mm(a, b).addmm_(c, d),
    lambda a, b, c, d: a.new_empty((a.size(0), b.size(1))),
)
register(
    "matrix_product(Tensor a, Tensor b) -> Tensor",
    lambda a, b: torch.mm(a, b),
    lambda a, b: a.new_empty((a.size(0), b.size(1))),
)
