"""Checks of arguments: an invalid one raises an error with a message of one line."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core.graph import Graph, as_graph
from cognn.core.graph_checks import check_weight_type, refuse_not_finite
from cognn.core.sparse_features import LAYOUTS, as_csr, is_sparse
from cognn.nn.actions import ACTION_MODES, ActionSpace
from cognn.nn.edge_features import NO_EDGES, EdgeSpec

_seen = WeakTensorKeyDictionary()  # tensor -> the check that it passed; an unchanged tensor is checked once


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    """Reject a value that is not among the ``known`` ones."""
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}")


def at_least(name: str, value: Any, low: int) -> None:
    """Reject a value that is not an integer of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < low:
        raise ValueError(f"{name}: expected {low} or more, got {value}")


def share(name: str, value: float) -> None:
    """Reject a number outside of [0, 1), such as a dropout rate of 1."""
    if not 0 <= value < 1:
        raise ValueError(f"{name}: expected 0 <= {name} < 1, got {value}")


class Model(Protocol):
    """The attributes of a model that its arguments are checked against."""

    in_channels: int
    pool: Literal["mean", "sum", "max"] | None
    edge_spec: EdgeSpec
    unweighted: str
    divides: bool

    @property
    def num_relations(self) -> int | None:
        """Number of relations; None if it sees all edges as one."""


class Inputs(NamedTuple):
    """The arguments of a model, checked."""

    graph: Graph
    edge_attr: Tensor | None
    edge_weight: Tensor | None
    batch: Tensor | None
    num_graphs: int | None


def arguments(
    model: Model,
    dtype: torch.dtype,
    x: Tensor,
    edge_index: Tensor | Graph,
    edge_attr: Tensor | None,
    batch: Tensor | None,
    num_graphs: int | None,
    edge_type: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> "Inputs":
    """Check the arguments of a model's ``forward``."""
    features(x, model.in_channels, dtype)
    prepared = _prepared(edge_index, x.size(0), edge_type, model.num_relations)
    graph(prepared, x)
    if model.edge_spec == NO_EDGES and _numbers_nodes(edge_attr, x):
        raise TypeError("edge_attr: this model takes none, and this looks like a batch; pass it as batch=")
    edge_attr = edge_features(edge_attr, prepared.num_edges, model.edge_spec, dtype)
    weight = weights(edge_weight, prepared, model, dtype)
    if model.pool is None:  # as in PyG, a batch is then of no use
        return Inputs(prepared, edge_attr, weight, None, None)
    if batch is None:
        batch, own = prepared.batch, prepared.num_graphs
        num_graphs = own if num_graphs is None else num_graphs
    if batch is None:  # one graph
        one_graph = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
        return Inputs(prepared, edge_attr, weight, one_graph, num_graphs)
    graph_numbers(batch, prepared.num_nodes, num_graphs)
    return Inputs(prepared, edge_attr, weight, batch, num_graphs)


def _numbers_nodes(edge_attr: Any, x: Tensor) -> bool:
    return isinstance(edge_attr, Tensor) and edge_attr.dtype == torch.long and edge_attr.shape == x.shape[:1]


def _prepared(edge_index: Tensor | Graph, num_nodes: int, edge_type: Tensor | None, known: int | None) -> Graph:
    """The graph of a model with ``known`` relations."""
    if isinstance(edge_index, Graph) and edge_type is not None:
        raise ValueError("edge_type: a Graph has its own; leave it out, or pass the plain edge_index")
    if edge_type is not None and known == 1:
        raise ValueError("edge_type: this model has one relation; build it with num_relations=..., or leave it out")
    if not isinstance(edge_index, Graph):
        return as_graph(edge_index, num_nodes, edge_type, None if known == 1 else known)
    if known is not None and edge_index.num_relations != known:
        raise ValueError(
            f"edge_index: the Graph has num_relations={edge_index.num_relations}, but the model num_relations={known}"
        )
    return edge_index


def features(x: Tensor, in_channels: int, dtype: torch.dtype) -> None:
    """Reject node features of a wrong dtype or width."""
    if isinstance(x, torch.fx.Proxy):
        raise TypeError("x: is traced by torch.fx, as to_hetero does; use CoGNN.from_hetero(data, ...) instead")
    if not isinstance(x, Tensor):
        raise TypeError(f"x: expected a float tensor of shape (N, {in_channels}), got {type(x).__name__}")
    if is_sparse(x) and x.layout not in LAYOUTS:
        raise TypeError(f"x: expected a dense, CSR or COO tensor, got {x.layout}; convert with x.to_sparse_csr()")
    if is_sparse(x) and (x.requires_grad or x.dense_dim()):
        what = "requires a gradient" if x.requires_grad else "has dense dimensions"
        raise TypeError(f"x: is sparse and {what}; convert with x.to_dense()")
    if not x.is_floating_point():
        raise TypeError(f"x: expected floats, got {x.dtype}; convert with x.float()")
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"x: is {x.dtype}, but the model is {dtype}; convert with x.to({dtype}) or model.to({x.dtype})")
    if x.dim() != 2 or x.size(1) != in_channels:
        raise ValueError(f"x: expected shape (N, in_channels={in_channels}), got {tuple(x.shape)}")


def finite(x: Tensor, encoded: Tensor) -> None:
    """Reject nan and infinite features.  They propagate to ``encoded``, which is checked instead if it is narrower."""
    if is_sparse(x):
        _finite_entries(x, encoded)
        return
    narrower = encoded if encoded.size(1) < x.size(1) else x
    if torch.compiler.is_compiling() or (not x.is_inference() and _seen.get(x) == _passed(x, finite, ())):
        return
    if not bool(narrower.detach().sum().isfinite()):
        _finite("x", x)
    if not x.is_inference():
        _seen[x] = _passed(x, finite, ())


def graph(value: Graph, x: Tensor) -> None:
    """Reject a graph that differs from its features in size or device."""
    if value.num_nodes != x.size(0):
        raise ValueError(f"edge_index: the Graph has {value.num_nodes} nodes, but x has {x.size(0)} rows")
    if value.device != x.device:
        raise ValueError(
            f"edge_index: is on {value.device}, but x is on {x.device}; move it with .to({str(x.device)!r})"
        )


def edge_features(edge_attr: Tensor | None, num_edges: int, spec: EdgeSpec, dtype: torch.dtype) -> Tensor | None:
    """Reject edge features that do not match the model or the graph; return them with two dimensions."""
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
        raise TypeError(f"edge_attr: is {edge_attr.dtype}, but the model is {dtype}; convert with .to({dtype})")
    if spec.categories is not None and edge_attr.dtype != torch.long:
        raise TypeError(f"edge_attr: expected torch.long for {spec}, got {edge_attr.dtype}")
    shape, width = tuple(edge_attr.shape), spec.columns
    if shape != (num_edges, width) and not (width == 1 and shape == (num_edges,)):
        raise ValueError(f"edge_attr: expected shape ({num_edges}, {width}), got {shape}")
    if spec.categories is None:
        _once("edge_attr", edge_attr, _finite)
    else:
        _once("edge_attr", edge_attr, codes, spec.categories)
    return edge_attr if edge_attr.dim() == 2 else edge_attr.unsqueeze(-1)


def weights(edge_weight: Tensor | None, graph: Graph, model: Model, dtype: torch.dtype) -> Tensor | None:
    """Reject edge weights that do not match the graph or the model; return them in the ``dtype`` of the model."""
    if edge_weight is not None and graph.edge_weight is not None:
        raise ValueError("edge_weight: the Graph has its own; leave it out, or build the Graph without")
    weight = graph.edge_weight if edge_weight is None else edge_weight
    if weight is None:
        return None
    check_weight_type(weight, graph.num_edges)
    usable_weights(weight, model)
    return weight.to(dtype)


def usable_weights(edge_weight: Tensor, model: Any) -> None:
    """Reject edge weights that the layers of a model cannot use."""
    if model.unweighted:
        raise ValueError(
            f"edge_weight: {model.unweighted} takes none; use sum, mean, gcn, gin or gat, or a layer of PyG that does,"
            " such as GraphConv"
        )
    _once("edge_weight", edge_weight, _weights, model.divides)


def actions(value: Any, num_layers: int, num_nodes: int, space: ActionSpace, has_network: bool) -> None:
    """Reject unknown action modes, and forced actions of a wrong shape or code."""
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
    if tuple(value.shape) not in ((num_layers, num_nodes), (num_layers, num_nodes, *space.shape)):
        shape = f"num_layers={num_layers}, N={num_nodes}"
        wanted = f"({shape})" if space.heads == 1 else f"({shape}) or ({shape}, heads={space.heads})"
        raise ValueError(f"actions: expected shape {wanted}, got {tuple(value.shape)}")
    _once("actions", value, _action_codes, space.names)


def heads(value: Any, hidden_channels: int, has_network: bool) -> int:
    """The number of action heads, from the argument ``action_heads``."""
    if value != "channel" and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise TypeError(f"action_heads: expected a whole number or 'channel', got {value!r}")
    number = hidden_channels if value == "channel" else int(value)
    if number < 1 or hidden_channels % number:
        raise ValueError(
            f"action_heads: expected a divisor of hidden_channels={hidden_channels}, or 'channel', got {value!r}"
        )
    if number > 1 and not has_network:
        raise ValueError("action_heads: requires an action network, but action is None; use action_heads=1")
    return number


def edge_actions(action: Any, env: Any, num_relations: int, gates: str) -> None:
    """Reject what edge-wise actions do not know."""
    if action is None:
        raise ValueError("action_space: 'edge' requires an action network, but action is None")
    if num_relations > 1:
        raise ValueError(
            "action_space: 'edge' knows one relation along the edges; give the type or direction of an edge as a"
            " feature (edge_categories), with both directions in the graph, or use 'factored' to decide per node and"
            " relation"
        )
    if gates not in ("sampled", "continuous"):
        raise ValueError(f"gates: {gates!r} is for actions of nodes; use 'sampled' or 'continuous' with 'edge'")
    if env not in ("sum", "mean", "gcn", "gin", "gat"):
        raise ValueError("env: a layer of PyG hears by node; use sum, mean, gcn, gin or gat with action_space='edge'")


def graph_numbers(value: Tensor, num_nodes: int, num_graphs: int | None = None) -> None:
    """Reject a batch of a wrong type, shape or range."""
    if not isinstance(value, Tensor) or value.dtype != torch.long:
        raise TypeError(
            f"batch: expected a LongTensor of shape (N,), got {getattr(value, 'dtype', type(value).__name__)}"
        )
    if tuple(value.shape) != (num_nodes,):
        raise ValueError(f"batch: expected shape (N={num_nodes},), got {tuple(value.shape)}")
    _once("batch", value, _known_graphs, num_graphs)


def _once(name: str, value: Tensor, check: Any, *limits: Any) -> None:
    """Run a check that reads all values, unless this tensor has passed it and is unchanged."""
    if torch.compiler.is_compiling():
        return  # a traced tensor has no values
    if value.is_inference():
        check(name, value, *limits)
        return
    if _seen.get(value) != _passed(value, check, limits):
        check(name, value, *limits)
        _seen[value] = _passed(value, check, limits)


def _passed(value: Tensor, check: Any, limits: tuple[Any, ...]) -> tuple[Any, ...]:
    return (value._version, value.data_ptr(), check, limits)


def _finite(name: str, value: Tensor) -> None:
    # The sum is cheap.  Look closer only if it is not finite: a value is not finite, or the sum overflowed.
    if not bool(value.detach().sum().isfinite()) and not bool(value.isfinite().all()):
        value = value.reshape(len(value), -1)
        row, column = value.isfinite().logical_not().nonzero()[0].tolist()
        raise ValueError(
            f"{name}: row {row}, column {column} is {value[row, column].item()}; all values must be finite"
        )


def _weights(name: str, value: Tensor, divides: bool) -> None:
    refuse_not_finite(name, value)
    if divides and bool((value < 0).any()):
        edge = int((value < 0).nonzero()[0])
        raise ValueError(
            f"{name}: edge {edge} is {value[edge].item():g}, but mean, gcn and gat divide by sums of weights; give"
            " weights of 0 or more, or use sum or gin for env and action"
        )


def _finite_entries(x: Tensor, encoded: Tensor) -> None:
    if torch.compiler.is_compiling() or bool(encoded.detach().sum().isfinite()):
        return
    x = as_csr(x)
    wrong = x.values().isfinite().logical_not().nonzero()
    if len(wrong):
        entry = int(wrong[0])
        row = int(torch.searchsorted(x.crow_indices(), entry, right=True)) - 1
        at = f"row {row}, column {int(x.col_indices()[entry])}"
        raise ValueError(f"x: {at} is {x.values()[entry].item()}; all values must be finite")


def codes(name: str, value: Tensor, categories: tuple[int, ...]) -> None:
    """Reject categorical codes ``(rows, columns)`` outside of the range of their column."""
    value = value.reshape(len(value), len(categories))
    wrong = (value < 0) | (value >= value.new_tensor(categories))
    if bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: row {row}, column {column} is {int(value[row, column])}, expected 0 to {categories[column] - 1}"
        )


def _action_codes(name: str, value: Tensor, names: tuple[str, ...]) -> None:
    if value.numel():
        low, high = (int(bound) for bound in value.aminmax())
        last = len(names) - 1
        if low < 0 or high > last:
            known = f"0 ({names[0]}) to {last} ({names[-1]})"
            raise ValueError(f"{name}: codes are {known}, got {low if low < 0 else high}")


def _known_graphs(name: str, value: Tensor, num_graphs: int | None) -> None:
    if not value.numel():
        return
    low, high = (int(bound) for bound in value.aminmax())
    if low < 0:
        raise ValueError(f"{name}: graph numbers start at 0, got {low}")
    if num_graphs is not None and high >= num_graphs:
        raise ValueError(f"{name}: graph {high} is out of range for num_graphs={num_graphs}")
