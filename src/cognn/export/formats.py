"""The formats of an exported program: how each is written, and how a server without cognn loads it."""

import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.export import ExportedProgram

from cognn.errors import RunError
from cognn.nn.compiling import can_compile

Run = Callable[..., Tensor]
"""A loaded program: called with the tensors of its arguments."""


class Format(NamedTuple):
    """One format."""

    suffix: str
    require: Callable[[], None]
    """Raises an error with the remedy if something is not installed."""
    write: Callable[[ExportedProgram, Path, list[str]], None]
    """Writes a program with the names of its arguments."""
    load: Callable[[Path], Run]


def _nothing() -> None:
    pass


def _write_pt2(program: ExportedProgram, path: Path, names: list[str]) -> None:
    torch.export.save(program, path)


def _load_pt2(path: Path) -> Run:
    return torch.export.load(path).module()


def _require_onnx() -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(package) is None:
            raise RunError(f"format: onnx needs {package}, which is not installed; pip install 'cognn[export]'")


def _write_onnx(program: ExportedProgram, path: Path, names: list[str]) -> None:
    logs = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)  # they warn of torchvision, which is not installed, and of empty lists
    try:
        options: dict[str, Any] = {"input_names": names, "output_names": ["prediction"], "external_data": False}
        torch.onnx.export(program, (), path, dynamo=True, verbose=False, **options)
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def _load_onnx(path: Path) -> Run:
    import onnxruntime  # an optional dependency

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def run(*inputs: Tensor) -> Tensor:
        given = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
        return torch.from_numpy(session.run(None, given)[0])

    return run


def _require_compiler() -> None:
    if not can_compile():
        raise RunError("format: aoti needs a C++ compiler and the headers of Python; install g++, or use pt2 or onnx")


def _write_aoti(program: ExportedProgram, path: Path, names: list[str]) -> None:
    torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def _load_aoti(path: Path) -> Run:
    return torch._inductor.aoti_load_package(str(path))


FORMATS = {
    "pt2": Format(".pt2", _nothing, _write_pt2, _load_pt2),
    "onnx": Format(".onnx", _require_onnx, _write_onnx, _load_onnx),
    "aoti": Format(".aoti.pt2", _require_compiler, _write_aoti, _load_aoti),
}


def trace(program: torch.nn.Module, example: tuple[Tensor, ...], shapes: list[list[int | str]]) -> ExportedProgram:
    """Trace a program; ``shapes`` name the sizes of its arguments that may be any number."""
    named = {size: torch.export.Dim(size) for shape in shapes for size in shape if isinstance(size, str)}
    dynamic = [{place: named[s] for place, s in enumerate(shape) if isinstance(s, str)} for shape in shapes]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return torch.export.export(program, example, dynamic_shapes=(tuple(dynamic),))
