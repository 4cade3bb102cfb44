"""Registration of custom PyTorch operators, which ``torch.compile`` calls without a graph break."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_library = torch.library.Library("cognn", "DEF")


def register(
    schema: str, kernel: Callable[..., Tensor], fake: Callable[..., Tensor], tags: tuple[torch.Tag, ...] = ()
) -> None:
    """Register ``kernel`` as an operator; ``fake`` returns an empty tensor of the shape of its output."""
    # torch.library.custom_op and register_fake inspect the source of their caller, which slows down the import.
    name = schema.split("(")[0]
    _library.define(schema, tags=tags)
    _library.impl(name, kernel, "CompositeExplicitAutograd")
    _library.impl(name, fake, "Meta")


def operators() -> Any:
    """The namespace of the registered operators."""
    return torch.ops.cognn
