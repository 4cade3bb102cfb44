"""``CoGNN(compile=True)``: the layers compiled by ``torch.compile``."""

import os
import shutil
import sys
import sysconfig
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from cognn.nn.layer_step import Step, enter, run_layers

if TYPE_CHECKING:
    from cognn.nn.model import CoGNN

TOGETHER = 4
"""Up to so many layers are compiled as one, which is faster on batches of small graphs.  Of a deeper model one layer is
compiled, which serves all of them; to compile them as one would take minutes."""


class Execution(NamedTuple):
    """The functions that run a model, compiled or not."""

    enter: Callable[["CoGNN", Tensor], Tensor]
    run_layers: Callable[..., list[Step]]
    together: int
    """Number of layers that one call runs."""


EAGER = Execution(enter, run_layers, 1)
_compiled: "weakref.WeakKeyDictionary[CoGNN, Execution]" = weakref.WeakKeyDictionary()


def compiled(model: "CoGNN") -> Execution:
    """The functions compiled for ``model``, with the same results.

    Eager ones where there is no C++ compiler, and for wrapped layers of PyG, whose hooks cannot be compiled.
    """
    if not _can_compile() or model.wraps:
        return EAGER
    if model not in _compiled:
        together = model.num_layers if model.num_layers <= TOGETHER else 1
        _compiled[model] = Execution(_compile(enter), _compile(run_layers), together)
    return _compiled[model]


def _compile(function: Any) -> Callable[..., Any]:
    # The cache of compiled code belongs to the code object: a copy gives every model its own, with its own limit.
    own = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
    # Without a limit on what is inlined, the compiler computes an activation three times to save storing it once.
    return torch.compile(own, dynamic=True, options={"realize_opcount_threshold": 6})


@cache
def _can_compile() -> bool:
    """Whether there is a C++ compiler, and the headers of Python that it needs."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    return shutil.which(compiler) is not None and Path(sysconfig.get_path("include"), "Python.h").exists()
