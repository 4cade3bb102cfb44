"""Random numbers for a whole tensor: dropout, and the Gumbel noise behind the actions.

Place ``i`` of a tensor gets the word ``mix(i, s, t)`` of two seeds that are drawn from PyTorch's generator, so a tensor
takes two numbers of the stream, whatever its size.  A word is a few integer operations, which all cores compute, and
which compiled code computes where it needs them; the generator itself hands them out one by one.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling

from cognn.core.operators import operators, register

# Odd numbers without a pattern: 2^32 over the golden ratio, and two found by a search for hashes with little bias.
_STRIDE, _FIRST, _SECOND = 0x9E3779B9 - 2**32, 0x7FEB352D, 0x846CA68B - 2**32
_BLOCK = 2**17  # values that are worked on at a time, so that what lies between stays in the cache


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout, much cheaper on a CPU than by ``bernoulli_``; ``p`` is met to 2^-32."""
    threshold = min(round(p * 2**31), 2**31 - 1)
    return _Dropout.apply(x, threshold) if training and threshold else x


def gumbel(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Standard Gumbel noise ``-log(-log(1 - v))`` shaped as ``like``, for ``v`` uniform on 31 bits.

    The upper tail decides which action wins, so it gets the fine end of the floats: ``v`` near 0 resolves
    probabilities down to 2^-32.  Much cheaper on a CPU than ``exponential_``.
    """
    if is_compiling() and generator is not None:
        raise ValueError("generator: not available in compiled code; seed with torch.manual_seed instead")
    seeds = _seeds(like, generator)
    words = mix(_places(like.numel(), like.device), seeds[0], seeds[1])
    return gumbel_of(words.bitwise_right_shift_(1).add_(2**30).view(like.shape), like.dtype)


def keyed_gumbel(key: tuple[int, ...], first: int, last: int, options: int) -> Tensor:
    """Standard Gumbel noise ``(last - first, options)`` of the nodes ``first`` to ``last``, on the CPU.

    The noise of a node depends on the key (a seed, a draw, a layer) and on its number alone, so it is the same whatever
    else is drawn, and in whatever order.
    """
    seeds = torch.zeros(2, dtype=torch.int32)
    for part in key:
        for half in (part % 2**32, part // 2**32 % 2**32):
            words = torch.tensor([half, half + 1]).to(torch.int32) * _STRIDE
            seeds = mix(words, seeds[0], seeds[1])
    place = torch.arange(options * first, options * last)
    # The places have 32 bits; what lies beyond them changes the second seed.
    words = mix(place.to(torch.int32) * _STRIDE, seeds[0], seeds[1] + (place >> 32).to(torch.int32) * _STRIDE)
    return gumbel_of(words.bitwise_right_shift_(1).add_(2**30), torch.float32).view(-1, options)


def gumbel_of(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """The Gumbel noise that words of 31 random bits stand for."""
    uniform = (bits.to(dtype) + 0.5) * 2.0**-31
    return -torch.log(-torch.log1p(-uniform.clamp(max=1 - 2.0**-24)))


class _Dropout(Function):
    """Keep a value iff its 31 bits are not below the threshold, and scale it up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        seeds, ctx.threshold = _seeds(x), threshold
        kept = _kept(x, threshold, seeds[0], seeds[1])
        ctx.save_for_backward(seeds if is_compiling() else kept)
        return _scaled(x, kept, threshold)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        if is_compiling():  # computing the mask again inside a fused kernel costs less than keeping it
            kept = _kept(grads[0], ctx.threshold, kept[0], kept[1], again=True)
        return _scaled(grads[0], kept, ctx.threshold), None


def _scaled(x: Tensor, kept: Tensor, threshold: int) -> Tensor:
    """What is kept of ``x``, scaled up, in one pass over memory, which is what this costs."""
    return torch.addcmul(x.new_zeros(()), x, kept, value=2**31 / (2**31 - threshold))


def _kept(x: Tensor, threshold: int, first: Tensor, second: Tensor, again: bool = False) -> Tensor:
    """1 where 31 random bits are not below the threshold, else 0, in the type of ``x``.

    A product of two types lays out a copy of the mask first; compiled code makes the mask as it goes, and making bytes
    of it would take longer than the mask itself.  Never bools: what PyTorch does with them on a CPU is not vectorised.
    """
    count, least = x.numel(), 2 * threshold - 2**31
    if is_compiling():
        # What is written twice in the same way the compiler computes once and keeps; a sum can be written in two.
        places = _places(count, x.device)
        words = mix(first, places, second) if again else mix(places, first, second)
        return (words >= least).to(x.dtype).view(x.shape)
    kept = x.new_empty(count)
    block = _BLOCK if x.is_cpu else max(count, 1)
    for start in range(0, count, block):
        part = kept[start : start + block]
        torch.ge(mix(_places(part.numel(), x.device, start), first, second), least, out=part)
    return kept.view(x.shape)


# Words --------------------------------------------------------------------------------------------------------------


def mix(places: Tensor, first: Tensor, second: Tensor) -> Tensor:
    r"""Words of 32 bits, the last of them 0 and the others random, from ``places`` and two random seeds.

    Two rounds of ``x ^= x >> k`` and a multiplication, the second seed between them.  The shift carries the sign along
    and so forgets one bit, and the last multiplication is by an even number: of the 31 bits that are left, every value
    is exactly as likely as every other.
    """
    words = places + first
    words.bitwise_xor_(words >> 15)
    words = torch.add(second, words, alpha=_FIRST)
    words.bitwise_xor_(words >> 13)
    return words.mul_(2 * _SECOND + 2**32)


def _places(count: int, device: torch.device, first: int = 0) -> Tensor:
    """Numbers of consecutive places, ``_STRIDE`` times each: they come out far apart."""
    if is_compiling() or count > _BLOCK or device.type != "cpu":
        return torch.arange(first, first + count, device=device).to(torch.int32) * _STRIDE
    if first == 0:
        return _table()[:count]
    offset = (first * _STRIDE + 2**31) % 2**32 - 2**31
    return _table()[:count] + offset


@cache
def _table() -> Tensor:
    with torch.inference_mode(False):
        return torch.arange(_BLOCK, dtype=torch.int32, device="cpu") * _STRIDE


def _seeds(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Two random words, drawn once ``like`` is there: so compiled code draws in the order of eager code.

    A row of it is enough for that, and the rest need not be stored to be seen.
    """
    seeds: Tensor = operators().seeds(like.detach()[:1]) if is_compiling() else _drawn(like, generator)
    return seeds


def _drawn(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    return torch.empty(2, dtype=torch.int32, device=like.device).random_(-(2**31), None, generator=generator)


register(
    "seeds(Tensor like) -> Tensor",
    _drawn,
    lambda like: like.new_empty(2, dtype=torch.int32),
    tags=(torch.Tag.nondeterministic_seeded,),
)
