"""Kernels of our own as PyTorch operators, which compiled code calls without a break in its graph."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_library = torch.library.Library("cognn", "DEF")


def register(
    schema: str, kernel: Callable[..., Tensor], fake: Callable[..., Tensor], tags: tuple[torch.Tag, ...] = ()
) -> None:
    """Make ``kernel`` an operator; ``fake`` gives an empty tensor of the shape that it would return."""
    # torch.library.custom_op and register_fake would do the same, but look up their caller's source at import.
    name = schema.split("(")[0]
    _library.define(schema, tags=tags)
    _library.impl(name, kernel, "CompositeExplicitAutograd")
    _library.impl(name, fake, "Meta")


def operators() -> Any:
    """All that are registered, by name."""
    return torch.ops.cognn
