"""Names of activations, norms, pools and layers, our own and those of PyG's resolvers."""

import copy
import inspect
from collections.abc import Callable
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing, conv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.resolver import activation_resolver
from torch_geometric.resolver import normalize_string

from cognn.core.random import dropout
from cognn.nn.layers import LAYERS, LayerSpec

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "gelu": nn.GELU,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "leaky_relu": nn.LeakyReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}
NORMS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
POOLS = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}

Activation = str | Callable[..., Any]
"""A name, a module, its class, or a function of a tensor."""


def activation(act: Activation, argument: str = "act") -> Callable[[Tensor], Tensor]:
    """The activation that ``act`` names or is, as PyG resolves it; a module is copied, so that no weights are shared.

    The names of :data:`ACTIVATIONS` come first.  Other names, in any spelling, are those of ``torch.nn``.
    """
    act = remembered(argument, act)
    if isinstance(act, nn.Module):
        return copy.deepcopy(act)
    if isinstance(act, str):
        try:
            if act in ACTIVATIONS:
                return ACTIVATIONS[act]()
            found = activation_resolver(act)
        except (ValueError, TypeError):  # unknown, or no activation of one input
            found = None
        if found is None or not _keeps_shape(found):
            known = ", ".join(map(repr, ACTIVATIONS))
            raise ValueError(f"{argument}: expected one of {known} or another activation of torch.nn, got {act!r}")
        return cast(Callable[[Tensor], Tensor], found)
    if not callable(act):
        raise TypeError(f"{argument}: expected a name, a torch.nn.Module or a function, got {act!r}")
    return cast(Callable[[Tensor], Tensor], act() if isinstance(act, type) else act)


def act_and_drop(h: Tensor, act: Callable[[Tensor], Tensor], rate: float, training: bool, drop_first: bool) -> Tensor:
    """Activation and dropout, in this order or dropout first."""
    return act(dropout(h, rate, training)) if drop_first else dropout(act(h), rate, training)


def _keeps_shape(act: Callable[[Tensor], Tensor]) -> bool:
    try:
        return act(torch.zeros(2, 4)).shape == (2, 4)
    except (TypeError, RuntimeError, ValueError):
        return False


def norm_name(norm: str | None) -> Literal["layer", "batch"] | None:
    """Our name of a norm: ``"batch"`` for ``"batch_norm"`` and ``"BatchNorm"``, and so on."""
    return cast(Any, _known("norm", norm, list(NORMS), "", "norm"))


def pool_name(pool: str | None) -> Literal["mean", "sum", "max"] | None:
    """Our name of a pool: ``"sum"`` for ``"add"``, ``"SumAggregation"`` and ``"global_add_pool"``, and so on."""
    name = _known("pool", pool, [*POOLS, "add"], "global", "aggregation", "pool")
    return cast(Any, "sum" if name == "add" else name)


def _known(argument: str, name: Any, known: list[str], prefix: str, *suffixes: str) -> str | None:
    short = normalize_string(name).removeprefix(prefix) if isinstance(name, str) else name
    for suffix in suffixes if isinstance(name, str) else ():
        short = short.removesuffix(suffix)
    if short not in [*known, None]:
        shown = [*(word for word in known if word != "add"), None]
        raise ValueError(f"{argument}: expected one of {', '.join(map(repr, shown))}, got {name!r}")
    return short


def layer_spec(spec: Any, edge_dim: int | None) -> Any:
    """A layer as :func:`cognn.nn.layers.make_layer` takes it; PyG's layers by class name, such as ``"GATv2Conv"``.

    A class of PyG that has an option ``edge_dim`` gets that of the model.
    """
    spec = remembered("env, action", spec)
    if isinstance(spec, str) and spec not in LAYERS:
        spec = getattr(conv, spec) if is_pyg_layer(getattr(conv, spec, None)) else spec
    if edge_dim is not None and is_pyg_layer(spec) and "edge_dim" in inspect.signature(spec).parameters:
        layer = spec
        return lambda in_channels, out_channels: layer(in_channels, out_channels, edge_dim=edge_dim)
    return spec


def is_pyg_layer(layer: Any) -> bool:
    """Whether this is a layer class that ``torch_geometric.nn`` exports, so that its name says which."""
    is_class = isinstance(layer, type) and issubclass(layer, MessagePassing)
    return is_class and getattr(conv, layer.__name__, None) is layer


def option_name(value: LayerSpec | Activation | None) -> Any:
    """The name that builds the same layer or activation again, or None where there is none."""
    if value is None or isinstance(value, str):
        return value
    if is_pyg_layer(value):
        return cast(type, value).__name__
    kind = value if isinstance(value, type) else type(value)
    if not issubclass(kind, nn.Module) or getattr(nn, kind.__name__, None) is not kind:
        return None
    try:
        usual = kind()
    except TypeError:  # no activation: it needs sizes
        return None
    if value is not kind and repr(value) != repr(usual):  # with options of its own
        return None
    return next((name for name, known in ACTIVATIONS.items() if known is kind), kind.__name__)


_IN_MEMORY: dict[str, Any] = {}


def config_name(value: LayerSpec | Activation) -> str:
    """A name for a config; a layer or activation that has none is remembered by this process under a new one."""
    name = option_name(value)
    if name is None:
        name = f"memory:{getattr(value, '__name__', type(value).__name__)}-{len(_IN_MEMORY)}"
        _IN_MEMORY[name] = value
    return str(name)


def is_remembered(name: str) -> bool:
    """Whether a name stands for a layer or activation in the memory of the process that gave it."""
    return name.startswith("memory:")


def remembered(argument: str, name: Any) -> Any:
    """What a name of :func:`config_name` stands for; any other value as it is."""
    if not isinstance(name, str) or not is_remembered(name):
        return name
    if name not in _IN_MEMORY:
        raise ValueError(
            f"{argument}: {name!r} was passed as an object and exists only in the process that trained; to open the"
            " run again, train with a class or a name such as 'GATv2Conv'"
        )
    return _IN_MEMORY[name]
