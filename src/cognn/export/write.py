"""``cognn export``: the model of a finished run as one file that needs no cognn."""

import tempfile
import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset
from cognn.data.links.items import to_predict
from cognn.data.tables.schema import Schema
from cognn.data.tables.targets import missing_targets
from cognn.errors import RunError
from cognn.export.formats import FORMATS, Run, trace
from cognn.export.interface import Interface, interface_of
from cognn.export.program import Program
from cognn.files.atomic import write
from cognn.files.json import write_json
from cognn.nn.layers import WrappedLayer
from cognn.run.fit import Fitted, open_run
from cognn.run.train import run_schema
from cognn.train.build import cooperative

EXAMPLE, CHECKS = (7, 13), ((40, 160), (23, 5), (1, 1))
"""Nodes and edges of the graph that is traced, and of those that the written program is checked on."""
TOLERANCE = 1e-5


class Exported(NamedTuple):
    """A written program."""

    path: Path
    description: Path
    """A JSON file with its arguments and its result."""
    interface: Interface
    difference: float
    """How far its predictions are from those of cognn, on graphs of other sizes than the one that was traced."""


def export_run(
    folder: Path,
    kind: str = "pt2",
    out: Path | None = None,
    split: int | None = None,
    actions: Literal["auto", "argmax", "expected"] = "auto",
) -> Exported:
    """Write the model of a run as a program, check it against cognn, and describe it in a JSON file.

    Args:
        folder: Folder of a finished run.
        kind: ``"pt2"``, ``"onnx"`` or ``"aoti"``.
        out: The file to write; by default ``model`` with the suffix of the format in the folder of the run.
        split: Which split's model; by default the one with the best validation score.
        actions: How nodes act; by default as in the scores of the run.
    """
    target, fitted = FORMATS[kind], open_run(folder)
    target.require()
    out = folder / f"model{target.suffix}" if out is None else out
    if kind == "aoti" and out.suffix != ".pt2":
        raise RunError(f"out: the name of an AOTInductor package ends in .pt2, got {out.name!r}")
    schema = run_schema(folder)
    dataset = fitted.dataset if schema is None else _blank(schema)
    model = _model(fitted, split, dataset, actions)
    interface = interface_of(dataset, schema, fitted.threshold(split))
    program = Program(model, interface, dataset, schema).eval()
    shapes = [each.shape for each in interface.inputs]
    with seeded(0, torch.device("cpu")), tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = trace(program, _inputs(program, interface, dataset, *EXAMPLE), shapes)
        path = Path(scratch) / f"model{target.suffix}"
        target.write(traced, path, interface.names)
        difference = _difference(program, target.load(path), interface, dataset)
        if not difference <= TOLERANCE:
            raise RunError(f"format: {kind} differs from cognn by {difference:.2g}, so nothing is written; use another")
        write(out, path.read_bytes())
    description = out.with_name(f"{out.name}.json")
    model_of = fitted.best_split if split is None else split
    write_json(description, interface.as_json() | {"format": kind, "split": model_of})
    return Exported(out, description, interface, difference)


def _model(fitted: Fitted, split: int | None, dataset: Dataset, actions: str) -> nn.Module:
    """The model of a split, with deterministic actions."""
    model = fitted.model(split, dataset)
    wrapped = [part for part in model.modules() if isinstance(part, WrappedLayer)]
    if wrapped:
        name = type(wrapped[0].conv).__name__
        raise RunError(f"{name}: a layer of PyG cannot be exported; train with sum, mean, gcn, gin or gat")
    inner = cooperative(model)
    if inner is None:
        return model
    if actions != "auto":
        inner.eval_actions = actions  # type: ignore[assignment]
    elif inner.eval_actions == "sample" or fitted.config.train.samples:
        raise RunError("actions: this run is scored with drawn actions, which a program has not; give --actions argmax")
    return model


def _blank(schema: Schema) -> Dataset:
    """A dataset without nodes that has the columns of a run, to build its model without the training data."""
    width, categories = schema.edge_dim or 0, schema.edge_categories
    attr = torch.empty(0, width) if categories is None else torch.empty(0, len(categories), dtype=torch.long)
    graph = Graph(torch.empty(2, 0, dtype=torch.long), 0, num_relations=len(schema.relations or [None]))
    graph.edge_weight = torch.empty(0) if schema.edge_weight else None
    dataset = Dataset(
        name="",
        task=schema.task,
        x=torch.empty(0, schema.width),
        y=missing_targets(schema.task, 0),
        graphs=[graph],
        splits=[],
        edge_attr=attr if attr.size(1) else None,
        edge_categories=None if categories is None else tuple(categories),
        class_names=schema.class_names,
        schema=schema,
        relation_names=schema.relations,
    )
    return to_predict(dataset) if schema.task.readout.pairs else dataset


def _difference(program: Program, run: Run, interface: Interface, dataset: Dataset) -> float:
    """The largest difference to cognn on several graphs, relative to the largest prediction.

    It leaves out the graph with the largest one: an action whose two best logits differ by less than rounding may be
    another in another order of summation.
    """
    found = []
    for size in CHECKS:
        inputs = _inputs(program, interface, dataset, *size)
        with torch.no_grad():
            expected, given = program.predict(Graph, inputs), run(*inputs)
        if given.shape != expected.shape:
            raise RunError(f"format: gives {tuple(given.shape)} predictions where cognn gives {tuple(expected.shape)}")
        found.append(float((given - expected).abs().max() / expected.abs().max().clamp(min=1e-12)))
    return sorted(found)[-2]


def _inputs(program: Program, interface: Interface, dataset: Dataset, nodes: int, edges: int) -> tuple[Tensor, ...]:
    """Random arguments of a program."""
    sizes = {"nodes": nodes, "edges": edges, "pairs": 3 if nodes > 1 else 1}
    made: dict[str, Any] = {
        "edge_index": lambda shape: torch.randint(nodes, shape),
        "edge_type": lambda shape: torch.randint(dataset.num_relations, shape),
        "edge_weight": torch.rand,
        "batch": lambda shape: torch.arange(nodes) * 2 // nodes,
        "pairs": lambda shape: torch.randint(nodes, shape),
        "x": lambda shape: program.node_scale.undo(_mixed(shape, dataset.node_categories or ())),
    }
    categories = dataset.edge_spec.categories
    if categories is None:
        made["edge_attr"] = lambda shape: program.edge_scale.undo(torch.randn(shape))
    else:
        made["edge_attr"] = lambda shape: _mixed(shape, categories).long()
    shapes = [[sizes[size] if isinstance(size, str) else size for size in each.shape] for each in interface.inputs]
    return tuple(made[name](shape) for name, shape in zip(interface.names, shapes, strict=True))


def _mixed(shape: list[int], categories: tuple[int, ...]) -> Tensor:
    """A matrix whose first columns are codes of categories, and the others are normal."""
    out = torch.randn(shape)
    for place, count in enumerate(categories):
        out[:, place] = torch.randint(count, (shape[0],)).float()
    return out
