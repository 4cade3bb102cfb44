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
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cognn.nn.layer_step import CooperativeModel, LayerOutput, enter, run_layers

TOGETHER = 4
"""Models of up to this many layers are compiled as one function, which is faster on batches of small graphs.  For a
deeper model this would take minutes, so its layers share one compiled function."""


class Execution(NamedTuple):
    """The functions that run a model, compiled or not."""

    enter: Callable[[CooperativeModel, Tensor], Tensor]
    run_layers: Callable[..., list[LayerOutput]]
    together: int
    """Number of layers that one call of ``run_layers`` runs."""


EAGER = Execution(enter, run_layers, 1)
_compiled: weakref.WeakKeyDictionary[CooperativeModel, Execution] = weakref.WeakKeyDictionary()


def compiled(model: CooperativeModel) -> Execution:
    """The functions compiled for ``model``; the results are the same.

    Falls back to eager mode if there is no C++ compiler, and for wrapped PyG layers, whose hooks cannot be compiled.
    """
    if not can_compile() or model.wraps:
        return EAGER
    if model not in _compiled:
        # An attention head is a loop turn of its own, so heads count as layers do.
        size = model.num_layers * max(1, *(layer.edge_width for layer in model.layers))
        together = model.num_layers if size <= TOGETHER else 1
        _compiled[model] = Execution(_compile(enter), _compile(run_layers, cpp_wrapper=together > 1), together)
    return _compiled[model]


def _compile(function: Any, cpp_wrapper: bool = False) -> Callable[..., Any]:
    # torch.compile keeps its cache, and its limit of recompilations, per code object: a copy gives each model its own.
    own = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
    # Without this limit on inlining, the compiler recomputes an activation three times instead of storing it.
    return torch.compile(own, dynamic=True, options={"realize_opcount_threshold": 6, "cpp_wrapper": cpp_wrapper})


@cache
def can_compile() -> bool:
    """Whether a C++ compiler and the Python headers are installed."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    return shutil.which(compiler) is not None and Path(sysconfig.get_path("include"), "Python.h").exists()
