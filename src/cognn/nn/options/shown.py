"""What ``repr(model)`` shows of its options."""

from typing import Any

from torch import nn


def shown_options(model: Any) -> dict[str, Any]:
    """The options of a :class:`~cognn.nn.model.CoGNN` that no sub-module shows."""
    learned = isinstance(model.temperature, nn.Linear)
    shown: dict[str, Any] = {"num_layers": model.num_layers, "norm_first": model.norm_first, "dropout": model.dropout}
    shown |= {"dropout_first": True} if model.dropout_first else {}
    shown |= {"norm_sharing": "shared"} if len(model.norms) > len(set(model.norms)) else {}
    shown |= {"input_dropout": model.input_dropout} if model.input_dropout else {}
    if model.action_network is not None:
        shown |= {"action_space": model.space.name}
        shown |= {"action_heads": model.space.slices} if model.space.slices > 1 else {}
        shown |= {"gates": model.gates} if model.gates != "sampled" else {}
        if model.gates == "sampled":
            shown |= {"temperature": "learned", "tau0": model.tau0} if learned else {"temperature": model.temperature}
        shown |= {"eval_actions": model.eval_actions}
    shown |= {"pool": model.pool} if model.pool is not None else {}
    return shown
