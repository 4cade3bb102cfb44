"""What is exported: a model with everything between the numbers in the user's files and the predictions."""

from typing import Any

import torch
from torch import Tensor, nn

from cognn.core.edge_list import EdgeList
from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.tables.schema import Schema
from cognn.export.interface import Interface, scales
from cognn.train.build import predictions


class Program(nn.Module):
    """From the tensors of an interface to predictions; it traces for any number of nodes, edges and graphs.

    Args:
        model: The model of a run, in evaluation mode.
        interface: Its arguments.
        dataset: A dataset with the columns of the run.
        schema: How the run read the user's files, if it did.
    """

    def __init__(self, model: nn.Module, interface: Interface, dataset: Dataset, schema: Schema | None) -> None:
        super().__init__()
        self.model, self.names, self.kind = model, interface.names, dataset.task.kind
        self.num_relations = dataset.num_relations
        self.degrees = schema is not None and schema.degrees
        self.node_scale, self.edge_scale = Standardise(scales(schema, False)), Standardise(scales(schema, True))

    def forward(self, *inputs: Tensor) -> Tensor:
        """The predictions, traced on edges that are not sorted."""
        return self.predict(EdgeList, inputs)

    def predict(self, kind: type[Graph], inputs: tuple[Tensor, ...]) -> Tensor:
        """The predictions, computed on a graph of a ``kind``."""
        given: dict[str, Any] = dict(zip(self.names, inputs, strict=True))
        x, edge_index = self.node_scale(given.pop("x")), given.pop("edge_index")
        types, weight = given.pop("edge_type", None), given.pop("edge_weight", None)
        graph = kind(edge_index, x.size(0), types, self.num_relations, weight)
        if self.degrees:
            degrees = graph.in_degree, graph.reversed.in_degree
            x = torch.cat([x, torch.stack([degree.to(x.dtype).log1p() for degree in degrees], 1)], 1)
        if "edge_attr" in given:
            given["edge_attr"] = self.edge_scale(given["edge_attr"])
        if "batch" in given:
            given["num_graphs"] = number = given["batch"].max().item() + 1
            torch._check(number > 0)
        return predictions(self.kind, self.model(x, graph, **given))


class Standardise(nn.Module):
    """``(x - mean) / std`` in double precision, as the files of the training were read; a scale of None is none."""

    def __init__(self, scale: tuple[Tensor, Tensor] | None) -> None:
        super().__init__()
        self.mean: Tensor | None
        self.std: Tensor | None
        self.register_buffer("mean", None if scale is None else scale[0])
        self.register_buffer("std", None if scale is None else scale[1])

    def forward(self, x: Tensor) -> Tensor:
        """Standardise."""
        return x if self.mean is None or self.std is None else ((x.double() - self.mean) / self.std).to(x.dtype)

    def undo(self, x: Tensor) -> Tensor:
        """The numbers before it."""
        return x if self.mean is None or self.std is None else (x.double() * self.std + self.mean).to(x.dtype)
