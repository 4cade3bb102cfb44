"""Layer-wise inference: all nodes pass through one stage of the model before the next, block by block.

A stage is a layer of the action network or an update of the environment network.  It reads the node states that the
previous stage wrote for all nodes, runs the layer's own code on one block at a time, and writes the new states.  The
result is exact, every node is updated once per stage, and only one block is in memory.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from cognn.data.store.store import CHUNK, Store
from cognn.errors import ConfigError, DataError, RunError
from cognn.files.mapped_arrays import release
from cognn.inference.blocks import BlockCutter
from cognn.inference.reverse import reversed_edges
from cognn.inference.scratch import Scratch
from cognn.nn.checks import usable_weights
from cognn.nn.encoders import Encoded
from cognn.nn.layers import CooperativeLayer
from cognn.nn.layerwise.stages import LayerwiseStages, NodeBlock, Pass, check_model
from cognn.nn.model import CoGNN

Report = Callable[[str, int, int], None]
"""Called with the name of the stage, and the number of finished and of all (node, stage) pairs."""
PROCESS_BYTES = 1 << 29
"""Memory of a Python process with PyTorch."""


@torch.no_grad()
def infer(
    model: nn.Module,
    store: Store,
    scratch: Scratch,
    passes: Sequence[Pass],
    memory: int,
    report: Report | None = None,
    resume: bool = False,
) -> None:
    """Run every pass on all nodes of a store.

    Args:
        model: A :class:`~cognn.CoGNN` for node tasks with built-in layers, in evaluation mode; it may be
            :class:`~cognn.nn.encoders.Encoded`.
        store: The graph.
        scratch: The folder for node states and progress.
        passes: The passes to run.
        memory: Memory limit of the process in bytes.
        report: Called after every block.
        resume: Whether to go on from the progress in ``scratch``, which must be of the same model, store and passes.
            Use it only if the sinks have kept the rows that they got before.  By default all is computed anew.
    """
    network = checked_network(model, store)
    room = memory - PROCESS_BYTES - 16 * store.num_nodes
    if room < 1 << 24:
        least = (PROCESS_BYTES + 16 * store.num_nodes) / 2**30 + 0.1
        raise ConfigError(f"memory: {memory / 2**30:.2g} GB are too little for this graph; give {least:.1f} or more")
    calls = [[each.actions, list(each.key), each.keep] for each in passes]
    scratch.begin({"model": fingerprint(model), "store": store.identity, "passes": calls}, resume)
    scratch.room = room // 4
    # With several heads or relations a node has gates and counts besides its states, and its logits.
    heads = network.space.heads if network.space.heads > 1 else 0
    heads += network.relations.count if network.relations.count > 1 else 0
    width = max(store.arrays["x"].shape[1], network.hidden_channels + heads, network.space.width * heads, 16)
    edge_width = max(layer.edge_width for layer in network.modules() if isinstance(layer, CooperativeLayer))
    blocks = BlockCutter(store, room // 2, width, edge_width, network.encoder.weight.device)
    run_stages(model, store, scratch, passes, blocks, report)


@torch.no_grad()
def run_stages(
    model: nn.Module,
    store: Store,
    scratch: Scratch,
    passes: Sequence[Pass],
    blocks: BlockCutter,
    report: Report | None = None,
) -> None:
    """:func:`infer` with given blocks."""
    network = checked_network(model, store)
    if network.relations.directions == "both":
        blocks.reverse = reversed_edges(store, scratch, blocks.room)
    encode = partial(_encode, model, store)
    stages = [
        stage for each in passes for stage in LayerwiseStages(network, encode, store.num_nodes, scratch, each).stages()
    ]
    size = sum(array.nbytes for array in store.arrays.values())
    while scratch.stage < len(stages):
        stage = stages[scratch.stage]
        while scratch.node < store.num_nodes:
            block = (blocks.with_edges if stage.needs_edges else blocks.without_edges)(scratch.node)
            stage.run(block)
            scratch.record(scratch.stage, block.last)
            if size > scratch.room:
                for array in store.arrays.values():
                    release(array)
            if report is not None:
                report(stage.name, scratch.stage * store.num_nodes + block.last, len(stages) * store.num_nodes)
        scratch.record(scratch.stage + 1, 0, force=True)  # the next stage may overwrite the input of this one


def checked_network(model: nn.Module, store: Store) -> CoGNN:
    """The :class:`CoGNN` in a model, after checking that it can run layer by layer on the store."""
    network = model.model if isinstance(model, Encoded) else model
    if not isinstance(network, CoGNN):
        raise RunError(f"{type(network).__name__}: layer-wise inference is for cognn models of node tasks")
    check_model(network)
    width, attr = store.arrays["x"].shape[1], store.arrays.get("edge_attr")
    known = store.node_categories is not None
    if isinstance(model, Encoded) != known or (not known and width != network.in_channels):
        raise DataError(f"{store.path}: has {width} features, the model takes {network.in_channels}")
    if store.num_relations != network.num_relations:
        raise DataError(f"{store.path}: has {store.num_relations} relations, the model takes {network.num_relations}")
    weights = store.arrays.get("edge_weight", np.empty(0))
    for first in range(0, len(weights), CHUNK):
        try:
            usable_weights(torch.from_numpy(np.array(weights[first : first + CHUNK])), network)
        except ValueError as error:
            raise DataError(f"{store.path}: {error}") from None
    columns, spec = 0 if attr is None else attr.shape[1], network.edge_spec
    if columns != spec.columns:
        raise DataError(f"{store.path}: has {columns or 'no'} edge features, the model takes {spec.columns or 'none'}")
    if spec.categories != store.edge_categories:
        raise DataError(f"{store.path}: has edge categories {store.edge_categories}, the model takes {spec.categories}")
    return network


def fingerprint(model: nn.Module) -> str:
    """A hash of a model's architecture, options and weights."""
    options = getattr(getattr(model, "model", model), "options", {})  # repr does not show all of them
    digest = hashlib.sha256((repr(model) + repr(sorted(options.items()))).encode())
    for name, value in sorted(model.state_dict().items()):
        digest.update(repr((name, value.dtype, tuple(value.shape))).encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _encode(model: nn.Module, store: Store, block: NodeBlock) -> Tensor:
    """The states before the first layer, of the nodes of a block."""
    x = torch.from_numpy(np.array(store.arrays["x"][block.first : block.last])).to(block.adjacency.device)
    if not bool(x.isfinite().all()):
        row = int(x.isfinite().all(1).logical_not().nonzero()[0])
        raise DataError(f"{store.path}: the features of node {block.first + row} are not all finite")
    network = model.model if isinstance(model, Encoded) else model
    assert isinstance(network, CoGNN)
    x = model.encoder(x) if isinstance(model, Encoded) else x
    return network.encode(x.to(network.encoder.weight.dtype))
