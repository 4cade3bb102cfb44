"""Checks of the tensors that make a graph."""

from typing import Any

import torch
from torch import Tensor


def check_edges(edge_index: Tensor, num_nodes: int | None) -> None:
    """Reject edges of a wrong dtype, shape or range."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index: expected an integer tensor of shape (2, E) or a Graph, got {type(edge_index).__name__}"
        )
    if edge_index.layout != torch.strided:
        raise TypeError(
            f"edge_index: expected a dense (2, E) tensor, got layout {edge_index.layout}; convert it with"
            " torch_geometric.utils.to_edge_index, and flip the rows if it is receivers by senders, as PyG's adj_t is"
        )
    if edge_index.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8):
        raise TypeError(f"edge_index: expected integers, got {edge_index.dtype}; convert with edge_index.long()")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        hint = "; transpose it with edge_index.t()" if edge_index.dim() == 2 and edge_index.size(1) == 2 else ""
        raise ValueError(f"edge_index: expected shape (2, E), got {tuple(edge_index.shape)}{hint}")
    if num_nodes is not None and num_nodes < 0:
        raise ValueError(f"num_nodes: expected 0 or more, got {num_nodes}")
    if edge_index.numel() == 0:
        return
    low, high = (int(bound) for bound in edge_index.aminmax())
    if low < 0:
        raise ValueError(f"edge_index: node indices start at 0, got {low}")
    if num_nodes is not None and high >= num_nodes:
        raise ValueError(
            f"edge_index: node {high} is out of range for {num_nodes} nodes (indices end at {num_nodes - 1})"
        )


def check_edge_type(edge_type: Any, num_relations: int | None, num_edges: int) -> None:
    """Reject types of a wrong dtype, shape or range."""
    if num_relations is not None and num_relations < 1:
        raise ValueError(f"num_relations: expected 1 or more, got {num_relations}")
    if edge_type is None:
        if num_relations is not None and num_relations > 1 and num_edges:
            raise ValueError(f"edge_type: missing, but there are num_relations={num_relations}")
        return
    if not isinstance(edge_type, Tensor) or edge_type.is_floating_point() or edge_type.is_complex():
        given = getattr(edge_type, "dtype", type(edge_type).__name__)
        raise TypeError(f"edge_type: expected a LongTensor of shape (E,), got {given}")
    if tuple(edge_type.shape) != (num_edges,):
        raise ValueError(f"edge_type: expected shape (E={num_edges},), got {tuple(edge_type.shape)}")
    if not num_edges:
        return
    low, high = (int(bound) for bound in edge_type.aminmax())
    if low < 0 or (num_relations is not None and high >= num_relations):
        last = "" if num_relations is None else f" to {num_relations - 1}"
        wrong = low if low < 0 else high
        edge = int((edge_type == wrong).nonzero()[0])
        raise ValueError(f"edge_type: edge {edge} has type {wrong}, expected 0{last or ' or more'}")


def check_edge_weight(edge_weight: Any, num_edges: int) -> None:
    """Reject weights of a wrong dtype, shape or value, and those that are learned."""
    if edge_weight is None:
        return
    check_weight_type(edge_weight, num_edges)
    if edge_weight.requires_grad:
        raise ValueError("edge_weight: requires a gradient, which a Graph does not keep; give it to forward instead")
    refuse_not_finite("edge_weight", edge_weight)


def check_weight_type(edge_weight: Any, num_edges: int) -> None:
    """Reject weights of a wrong dtype or shape."""
    if not isinstance(edge_weight, Tensor) or not edge_weight.is_floating_point():
        given = getattr(edge_weight, "dtype", type(edge_weight).__name__)
        raise TypeError(f"edge_weight: expected a float tensor of shape (E,), got {given}")
    if tuple(edge_weight.shape) != (num_edges,):
        hint = "; several numbers of an edge are features, edge_attr" if edge_weight.dim() == 2 else ""
        raise ValueError(f"edge_weight: expected shape (E={num_edges},), got {tuple(edge_weight.shape)}{hint}")


def refuse_not_finite(name: str, edge_weight: Tensor) -> None:
    """Reject weights that are nan or infinite."""
    wrong = edge_weight.detach().isfinite().logical_not()
    if bool(wrong.any()):
        edge = int(wrong.nonzero()[0])
        raise ValueError(f"{name}: edge {edge} is {edge_weight[edge].item()}; all weights must be finite")
