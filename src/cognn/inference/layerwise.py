"""Layer-wise inference: all nodes through one layer before any goes through the next, block by block.

A layer of the action network, the decision and the update of the environment are steps of their own.  Each reads the
states that the step before it left for all nodes and writes its own for one block at a time, by the layers' own code:
nothing is approximated, nothing computed twice but what senders bring along, and memory holds one block.
"""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from cognn.data.store.store import Store
from cognn.errors import ConfigError, DataError, RunError
from cognn.files.mapped_arrays import release
from cognn.inference.blocks import Blocks
from cognn.inference.scratch import Scratch
from cognn.nn.encoders import Encoded
from cognn.nn.layers import GATLayer
from cognn.nn.model import CoGNN
from cognn.nn.plan import Block, Pass, Plan, check_model

Report = Callable[[str, int, int], None]
"""Told what is computed, and how many of all (node, step) pairs are done."""
BASE = 1 << 29
"""Bytes of the process itself, with PyTorch in it."""


@torch.no_grad()
def infer(
    model: nn.Module,
    store: Store,
    scratch: Scratch,
    passes: Sequence[Pass],
    memory: int,
    report: Report | None = None,
) -> None:
    """Run every pass on all nodes of a store; what the scratch has from before is not computed again.

    Args:
        model: A :class:`~cognn.CoGNN` for nodes, with the named layers and in evaluation mode, maybe behind an encoder.
        store: The graph.
        scratch: Where states are kept.
        passes: What to compute.
        memory: Bytes to work in.
        report: Told how far it is.
    """
    network = checked(model, store)
    room = memory - BASE - 16 * store.num_nodes
    if room < 1 << 24:
        least = (BASE + 16 * store.num_nodes) / 2**30 + 0.1
        raise ConfigError(f"memory: {memory / 2**30:.2g} GB are too little for this graph; give {least:.1f} or more")
    scratch.room = room // 4
    width = max(store.arrays["x"].shape[1], network.hidden_channels, 16)
    heads = max((layer.heads for layer in network.modules() if isinstance(layer, GATLayer)), default=0)
    blocks = Blocks(store, room // 2, width, heads, network.encoder.weight.device)
    run(model, store, scratch, passes, blocks, report)


@torch.no_grad()
def run(
    model: nn.Module,
    store: Store,
    scratch: Scratch,
    passes: Sequence[Pass],
    blocks: Blocks,
    report: Report | None = None,
) -> None:
    """The same with given blocks."""
    network = checked(model, store)
    plans = [Plan(network, lambda block: _encoded(model, store, block), store.num_nodes, scratch, p) for p in passes]
    steps = [step for plan in plans for step in plan.steps()]
    size = sum(array.nbytes for array in store.arrays.values())
    while scratch.step < len(steps):
        step = steps[scratch.step]
        while scratch.node < store.num_nodes:
            block = (blocks.alone if step.alone else blocks.take)(scratch.node)
            step.run(block)
            scratch.record(scratch.step, block.last)
            if size > scratch.room:
                for array in store.arrays.values():
                    release(array)
            if report is not None:
                report(step.name, scratch.step * store.num_nodes + block.last, len(steps) * store.num_nodes)
        scratch.record(scratch.step + 1, 0, force=True)  # the next step may overwrite what this one has read


def checked(model: nn.Module, store: Store) -> CoGNN:
    """The network in a model, if it can be run layer by layer on this store."""
    network = model.model if isinstance(model, Encoded) else model
    if not isinstance(network, CoGNN):
        raise RunError(f"{type(network).__name__}: layer-wise inference is for cognn models of node tasks")
    check_model(network)
    width, attr = store.arrays["x"].shape[1], store.arrays.get("edge_attr")
    known = store.node_categories is not None
    if isinstance(model, Encoded) != known or (not known and width != network.in_channels):
        raise DataError(f"{store.path}: has {width} features, the model takes {network.in_channels}")
    columns = None if attr is None else attr.shape[1]
    categories = network.edge_categories
    if columns != (network.edge_dim or (len(categories) if categories else None)):
        raise DataError(f"{store.path}: has {columns or 'no'} edge features, the model was built for others")
    if categories != store.edge_categories:
        raise DataError(f"{store.path}: has edge categories {store.edge_categories}, the model {categories}")
    return network


def identity(model: nn.Module) -> str:
    """A hash of a model's shape and weights."""
    digest = hashlib.sha256(repr(model).encode())
    for name, value in sorted(model.state_dict().items()):
        digest.update(repr((name, value.dtype, tuple(value.shape))).encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _encoded(model: nn.Module, store: Store, block: Block) -> Tensor:
    x = torch.from_numpy(np.array(store.arrays["x"][block.first : block.last])).to(block.graph.device)
    if not bool(x.isfinite().all()):
        row = int(x.isfinite().all(1).logical_not().nonzero()[0])
        raise DataError(f"{store.path}: the features of node {block.first + row} are not all finite")
    network = model.model if isinstance(model, Encoded) else model
    assert isinstance(network, CoGNN)
    x = model.encoder(x) if isinstance(model, Encoded) else x
    return network.encode(x.to(network.encoder.weight.dtype))
