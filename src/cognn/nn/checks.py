"""What a caller can get wrong, each said in one line before any work is done."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core.graph import Graph, as_graph
from cognn.nn.actions import ACTION_MODES, ActionSpace
from cognn.nn.edge_features import NO_EDGES, EdgeSpec

_seen = WeakTensorKeyDictionary()  # tensor -> what was checked of it; an unchanged tensor is checked once


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    """Refuse a value that is not among the known ones."""
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}")


def at_least(name: str, value: Any, low: int) -> None:
    """Refuse what is not a whole number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < low:
        raise ValueError(f"{name}: expected {low} or more, got {value}")


def share(name: str, value: float) -> None:
    """Refuse what is not a share of something that is to be left over in part."""
    if not 0 <= value < 1:
        raise ValueError(f"{name}: expected 0 <= {name} < 1, got {value}")


class Model(Protocol):
    """What the arguments of a call have to fit."""

    in_channels: int
    pool: Literal["mean", "sum", "max"] | None
    edge_spec: EdgeSpec


def arguments(
    model: Model,
    dtype: torch.dtype,
    x: Tensor,
    edge_index: Tensor | Graph,
    edge_attr: Tensor | None,
    batch: Tensor | None,
    num_graphs: int | None,
) -> tuple[Graph, Tensor | None, Tensor | None, int | None]:
    """Refuse what a model cannot be called with; the rest as it takes it: graph, edge features, batch, its size."""
    features(x, model.in_channels, dtype)
    prepared = edge_index if isinstance(edge_index, Graph) else as_graph(edge_index, x.size(0))
    graph(prepared, x)
    edge_attr = edge_features(edge_attr, prepared.num_edges, model.edge_spec, dtype)
    batch = prepared.batch if batch is None and model.pool is not None else batch
    graph_numbers(batch, model.pool, prepared.num_nodes, num_graphs)
    if num_graphs is None and batch is prepared.batch is not None:
        num_graphs = prepared.num_graphs
    return prepared, edge_attr, batch, num_graphs


def features(x: Tensor, in_channels: int, dtype: torch.dtype) -> None:
    """Refuse node features of a wrong type or width."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x: expected a float tensor of shape (N, {in_channels}), got {type(x).__name__}")
    if x.layout != torch.strided:
        raise TypeError(f"x: expected a dense tensor, got layout {x.layout}; convert with x.to_dense()")
    if not x.is_floating_point():
        raise TypeError(f"x: expected floats, got {x.dtype}; convert with x.float()")
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"x: is {x.dtype}, but the model {dtype}; convert with x.to({dtype}) or model.to({x.dtype})")
    if x.dim() != 2 or x.size(1) != in_channels:
        raise ValueError(f"x: expected shape (N, in_channels={in_channels}), got {tuple(x.shape)}")


def finite(x: Tensor, encoded: Tensor) -> None:
    """Refuse nan and infinite features; they show in the first linear map of them, which is often the narrower one."""
    narrower = encoded if encoded.size(1) < x.size(1) else x
    if torch.compiler.is_compiling() or (not x.is_inference() and _seen.get(x) == _passed(x, finite, ())):
        return
    if not bool(narrower.detach().sum().isfinite()):
        _finite("x", x)
    if not x.is_inference():
        _seen[x] = _passed(x, finite, ())


def graph(value: Graph, x: Tensor) -> None:
    """Refuse a graph of another size or place than its features."""
    if value.num_nodes != x.size(0):
        raise ValueError(f"edge_index: a Graph of {value.num_nodes} nodes does not fit x of {x.size(0)} rows")
    if value.device != x.device:
        raise ValueError(
            f"edge_index: lives on {value.device}, but x on {x.device}; move it with .to({str(x.device)!r})"
        )


def edge_features(edge_attr: Tensor | None, num_edges: int, spec: EdgeSpec, dtype: torch.dtype) -> Tensor | None:
    """Refuse edge features that do not fit the model or the graph; give continuous ones two dimensions."""
    if spec == NO_EDGES:
        if edge_attr is not None:
            raise ValueError("edge_attr: this model takes none; build it with edge_dim=... or edge_categories=...")
        return None
    if edge_attr is None:
        raise ValueError(f"edge_attr: missing, but the model was built with {spec}")
    if not isinstance(edge_attr, Tensor):
        raise TypeError(f"edge_attr: expected a tensor, got {type(edge_attr).__name__}")
    if spec.dim is not None and not edge_attr.is_floating_point():
        raise TypeError(f"edge_attr: expected floats for {spec}, got {edge_attr.dtype}")
    if spec.dim is not None and edge_attr.dtype != dtype and not torch.is_autocast_enabled(edge_attr.device.type):
        raise TypeError(f"edge_attr: is {edge_attr.dtype}, but the model {dtype}; convert with edge_attr.to({dtype})")
    if spec.categories is not None and edge_attr.dtype != torch.long:
        raise TypeError(f"edge_attr: expected torch.long for {spec}, got {edge_attr.dtype}")
    shape, width = tuple(edge_attr.shape), spec.columns
    if shape != (num_edges, width) and not (width == 1 and shape == (num_edges,)):
        raise ValueError(f"edge_attr: expected shape ({num_edges}, {width}), got {shape}")
    if spec.categories is None:
        _once("edge_attr", edge_attr, _finite)
    else:
        _once("edge_attr", edge_attr, _in_categories, spec.categories)
    return edge_attr if edge_attr.dim() == 2 else edge_attr.unsqueeze(-1)


def actions(value: Any, num_layers: int, num_nodes: int, space: ActionSpace, has_network: bool) -> None:
    """Refuse unknown ways to act and forced actions of a wrong shape or code."""
    if value is None:
        return
    modes = ", ".join(map(repr, ACTION_MODES))
    if isinstance(value, str):
        if value not in ACTION_MODES:
            raise ValueError(f"actions: expected {modes} or codes (num_layers, N), got {value!r}")
        if not has_network:
            raise ValueError(f"actions: {value!r} needs an action network, but the model was built with action=None")
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"actions: expected {modes} or a LongTensor (num_layers, N), got {type(value).__name__}")
    if value.dtype != torch.long:
        last = len(space.names) - 1
        raise TypeError(f"actions: forced actions are torch.long codes 0 to {last}, got {value.dtype}")
    if tuple(value.shape) != (num_layers, num_nodes):
        raise ValueError(f"actions: expected shape (num_layers={num_layers}, N={num_nodes}), got {tuple(value.shape)}")
    _once("actions", value, _codes, space.names)


def graph_numbers(value: Tensor | None, pool: str | None, num_nodes: int, num_graphs: int | None = None) -> None:
    """Refuse a batch without a pool, a pool without a batch, and a batch that does not fit."""
    if value is None:
        if pool is not None:
            raise ValueError(
                f"batch: missing for pool={pool!r}; for one graph pass zeros (long), for node tasks use pool=None"
            )
        return
    if pool is None:
        raise ValueError("pool: missing for a batch; build the model with pool='mean', 'sum' or 'max'")
    if not isinstance(value, Tensor) or value.dtype != torch.long:
        raise TypeError(
            f"batch: expected a LongTensor of shape (N,), got {getattr(value, 'dtype', type(value).__name__)}"
        )
    if tuple(value.shape) != (num_nodes,):
        raise ValueError(f"batch: expected shape (N={num_nodes},), got {tuple(value.shape)}")
    _once("batch", value, _known_graphs, num_graphs)


def _once(name: str, value: Tensor, check: Any, *limits: Any) -> None:
    """Run a check that reads the whole tensor, unless this very tensor passed it unchanged before."""
    if torch.compiler.is_compiling():
        return  # values are not known yet
    if value.is_inference():
        check(name, value, *limits)
        return
    if _seen.get(value) != _passed(value, check, limits):
        check(name, value, *limits)
        _seen[value] = _passed(value, check, limits)


def _passed(value: Tensor, check: Any, limits: tuple[Any, ...]) -> tuple[Any, ...]:
    return (value._version, value.data_ptr(), check, limits)


def _finite(name: str, value: Tensor) -> None:
    # A sum is one cheap pass and is finite unless something in it is not, or it overflowed: only then look closer.
    if not bool(value.detach().sum().isfinite()) and not bool(value.isfinite().all()):
        value = value.reshape(len(value), -1)
        row, column = value.isfinite().logical_not().nonzero()[0].tolist()
        raise ValueError(
            f"{name}: row {row}, column {column} is {value[row, column].item()}; all values must be finite"
        )


def _in_categories(name: str, value: Tensor, edge_categories: tuple[int, ...]) -> None:
    value = value.reshape(len(value), len(edge_categories))
    for column, size in enumerate(edge_categories):
        wrong = (value[:, column] < 0) | (value[:, column] >= size)
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise ValueError(
                f"{name}: row {row}, column {column} is {int(value[row, column])}, expected 0 to {size - 1}"
            )


def _codes(name: str, value: Tensor, names: tuple[str, ...]) -> None:
    if value.numel():
        low, high = (int(bound) for bound in value.aminmax())
        last = len(names) - 1
        if low < 0 or high > last:
            codes = f"0 ({names[0]}) to {last} ({names[-1]})"
            raise ValueError(f"{name}: codes are {codes}, got {low if low < 0 else high}")


def _known_graphs(name: str, value: Tensor, num_graphs: int | None) -> None:
    if not value.numel():
        return
    low, high = (int(bound) for bound in value.aminmax())
    if low < 0:
        raise ValueError(f"{name}: graph numbers start at 0, got {low}")
    if num_graphs is not None and high >= num_graphs:
        raise ValueError(f"{name}: graph {high} is out of range for num_graphs={num_graphs}")
