"""A counter-based random number generator, for dropout and for the Gumbel noise that samples actions.

Element ``i`` of a tensor gets the hash ``mix(i, first, second)``, a 32-bit word.  PyTorch's generator only draws the
two seeds, so every tensor advances it by two numbers, whatever its size.  PyTorch's CPU generator is sequential;
hashing runs on all cores, and compiled code fuses it into the kernel that uses the words.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling

from cognn.core.operators import operators, register

# 2^32 over the golden ratio, and the multipliers of the low-bias hash lowbias32 (hash-prospector).
_STRIDE, _FIRST, _SECOND = 0x9E3779B9 - 2**32, 0x7FEB352D, 0x846CA68B - 2**32
_BLOCK = 2**17  # elements processed at a time, so that intermediate tensors stay in the CPU cache


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout as in ``torch.nn.functional``, but much faster on a CPU; ``p`` is rounded to a multiple of 2^-31."""
    threshold = min(round(p * 2**31), 2**31 - 1)
    return _Dropout.apply(x, threshold) if training and threshold else x


def logistic(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Standard logistic noise ``log(v / (1 - v))`` of the shape of ``like``: the difference of two Gumbel variables."""
    return logistic_of(_bits(like, generator), like.dtype)


def gumbel(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Standard Gumbel noise ``-log(-log(1 - v))`` of the shape of ``like``, with ``v`` uniform on 31 bits.

    Large noise decides which action is drawn.  It comes from ``v`` near 0, where floats are densest: the upper tail is
    resolved down to probabilities of 2^-32.  Much faster on a CPU than ``exponential_``.
    """
    return gumbel_of(_bits(like, generator), like.dtype)


def _bits(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Random integers of 31 bits, of the shape of ``like``."""
    if is_compiling() and generator is not None:
        raise ValueError("generator: not available in compiled code; seed with torch.manual_seed instead")
    seeds = _seeds(like, generator)
    words = mix(_positions(like.numel(), like.device), seeds[0], seeds[1])
    return words.bitwise_right_shift_(1).add_(2**30).view(like.shape)


def keyed_bits(key: tuple[int, ...], first: int, last: int, options: int) -> Tensor:
    """Random integers of 31 bits, ``(last - first, options)``, of the nodes ``first`` to ``last - 1``, on the CPU.

    Those of a node depend only on its index and on ``key`` (seed, draw, layer), not on the order of the calls.
    """
    seeds = torch.zeros(2, dtype=torch.int32)
    for part in key:
        for half in (part % 2**32, part // 2**32 % 2**32):
            words = torch.tensor([half, half + 1]).to(torch.int32) * _STRIDE
            seeds = mix(words, seeds[0], seeds[1])
    position = torch.arange(options * first, options * last)
    # The hash takes positions of 32 bits; the higher bits change the second seed.
    words = mix(position.to(torch.int32) * _STRIDE, seeds[0], seeds[1] + (position >> 32).to(torch.int32) * _STRIDE)
    return words.bitwise_right_shift_(1).add_(2**30).view(-1, options)


def gumbel_of(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Map random integers of 31 bits to Gumbel noise."""
    uniform = (bits.to(dtype) + 0.5) * 2.0**-31
    return -torch.log(-torch.log1p(-uniform.clamp(max=1 - 2.0**-24)))


def logistic_of(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Map random integers of 31 bits to logistic noise."""
    uniform = ((bits.to(dtype) + 0.5) * 2.0**-31).clamp(max=1 - 2.0**-24)
    return torch.log(uniform) - torch.log1p(-uniform)


class _Dropout(Function):
    """Keep an element iff its 31 random bits are not below the threshold, and scale it up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        seeds, ctx.threshold = _seeds(x), threshold
        kept = _kept(x, threshold, seeds[0], seeds[1])
        ctx.save_for_backward(seeds if is_compiling() else kept)
        return _scaled(x, kept, threshold)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        if is_compiling():  # recomputing the mask inside a fused kernel is cheaper than storing it
            kept = _kept(grads[0], ctx.threshold, kept[0], kept[1], again=True)
        return _scaled(grads[0], kept, ctx.threshold), None


def _scaled(x: Tensor, kept: Tensor, threshold: int) -> Tensor:
    """``x * kept * scale`` in one pass: dropout is bound by memory bandwidth."""
    return torch.addcmul(x.new_zeros(()), x, kept, value=2**31 / (2**31 - threshold))


def _kept(x: Tensor, threshold: int, first: Tensor, second: Tensor, again: bool = False) -> Tensor:
    """The dropout mask: 1 where 31 random bits are not below the threshold, else 0.

    The mask has the dtype of ``x``, because a product of mixed dtypes first converts one operand.  It is never bool:
    PyTorch does not vectorise bool operations on a CPU.
    """
    count, least = x.numel(), 2 * threshold - 2**31
    if is_compiling():
        # The compiler would store a mask that both passes compute by the same expression.  The backward pass swaps
        # the operands of the first sum, so that it recomputes the mask instead.
        positions = _positions(count, x.device)
        words = mix(first, positions, second) if again else mix(positions, first, second)
        return (words >= least).to(x.dtype).view(x.shape)
    kept = x.new_empty(count)
    block = _BLOCK if x.is_cpu else max(count, 1)
    for start in range(0, count, block):
        part = kept[start : start + block]
        torch.ge(mix(_positions(part.numel(), x.device, start), first, second), least, out=part)
    return kept.view(x.shape)


# The hash -------------------------------------------------------------------------------------------------------------


def mix(positions: Tensor, first: Tensor, second: Tensor) -> Tensor:
    r"""Hash ``positions`` with two random seeds to int32 words: 31 random bits and a last bit of 0.

    Two rounds of ``x ^= x >> k`` and a multiplication; the second seed is added between them.  The arithmetic shift
    loses one bit, and the last multiplier is even.  The remaining 31 bits are exactly uniform over the seeds.
    """
    words = positions + first
    words.bitwise_xor_(words >> 15)
    words = torch.add(second, words, alpha=_FIRST)
    words.bitwise_xor_(words >> 13)
    return words.mul_(2 * _SECOND + 2**32)


def _positions(count: int, device: torch.device, first: int = 0) -> Tensor:
    """``count`` positions from ``first`` on, each times ``_STRIDE`` so that neighbours differ in many bits."""
    if is_compiling() or count > _BLOCK or device.type != "cpu":
        return torch.arange(first, first + count, device=device).to(torch.int32) * _STRIDE
    if first == 0:
        return _first_positions()[:count]
    offset = (first * _STRIDE + 2**31) % 2**32 - 2**31
    return _first_positions()[:count] + offset


@cache
def _first_positions() -> Tensor:
    with torch.inference_mode(False):
        return torch.arange(_BLOCK, dtype=torch.int32, device="cpu") * _STRIDE


def _seeds(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Two random words on the device of ``like``.

    In compiled code the operator depends on a row of ``like``.  This keeps the draws in the order of eager code; a
    single row suffices, so that the rest of ``like`` can be fused away.
    """
    seeds: Tensor = operators().seeds(like.detach()[:1]) if is_compiling() else _draw_seeds(like, generator)
    return seeds


def _draw_seeds(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    return torch.empty(2, dtype=torch.int32, device=like.device).random_(-(2**31), None, generator=generator)


register(
    "seeds(Tensor like) -> Tensor",
    _draw_seeds,
    lambda like: like.new_empty(2, dtype=torch.int32),
    tags=(torch.Tag.nondeterministic_seeded,),
)
