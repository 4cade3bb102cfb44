"""``cognn export``: the model of a finished run as a program that needs no cognn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cognn.cli.arguments import parse


@dataclass
class Export:
    """Write the model of a finished run as a program for torch.export, ONNX or AOTInductor, which needs no cognn."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    format: Literal["pt2", "onnx", "aoti"] = "pt2"
    """pt2 is loaded by torch.export.load, onnx by ONNX Runtime, aoti is compiled for this kind of machine."""
    out: Path | None = None
    """File to write; by default model.pt2, model.onnx or model.aoti.pt2 in the folder of the run."""
    split: int | None = None
    """Split whose model is exported; by default the one with the best validation score."""
    actions: Literal["auto", "argmax", "expected"] = "auto"
    """How nodes act; `auto` is as in the scores of the run, and draws cannot be exported."""


def export(arguments: list[str]) -> int:
    """Run ``cognn export``."""
    o = parse(Export, arguments, "cognn export")
    from cognn.export.write import export_run  # imports torch, and `cognn --help` must not

    made = export_run(o.run, o.format, o.out, o.split, o.actions)
    print(f"{made.path}({', '.join(made.interface.names)}) -> {made.interface.output['text']}")
    print(f"checked on graphs of other sizes: equal to cognn up to {made.difference:.1g}; {made.description} explains")
    return 0
