"""Layer-wise inference on a store knows relations and directions: outputs and actions are those of the model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cognn import Graph
from cognn.data.store.build import from_dataset
from cognn.inference import Scratch
from cognn.inference.reverse import reversed_edges
from tests.inference.test_layerwise import in_blocks, make_model
from tests.toy_runs import make_dataset

TYPES = 5


@pytest.fixture(scope="module")
def graphs(tmp_path_factory) -> dict:
    """Datasets and their stores: one type, several, and these with edge weights and with edge features."""
    folder, rng = tmp_path_factory.mktemp("stores"), torch.Generator().manual_seed(0)
    made = {}
    for name in ("one", "types", "weights", "amounts"):
        dataset = make_dataset("node", "multiclass", edges=name == "amounts")
        edge_index, nodes = dataset.graphs[0].edge_index, dataset.graphs[0].num_nodes
        kinds = torch.randint(TYPES - 1, (edge_index.size(1),), generator=rng)  # the last type has no edges
        weight = torch.rand(edge_index.size(1), generator=rng) if name == "weights" else None
        count = 1 if name == "one" else TYPES
        graph = Graph(edge_index, nodes, kinds if count > 1 else None, count, edge_weight=weight)
        dataset = replace(dataset, graphs=[graph])
        made[name] = dataset, from_dataset(dataset, folder / name)
    return made


@torch.no_grad()
def check(graphs, name: str, folder, mode: str, **options) -> None:
    dataset, store = graphs[name]
    model = make_model(num_relations=store.num_relations, edge_dim=dataset.edge_spec.dim, **options)
    for network in model.action_network.modules() if model.action_network is not None else []:
        for readout in getattr(network, "readouts", None) or ():  # all actions are taken
            torch.nn.init.normal_(readout.weight, std=2)
            torch.nn.init.zeros_(readout.bias)
    found, codes = in_blocks(model, store, folder / mode, mode)
    inputs = dataset.x, dataset.graphs[0], dataset.edge_attr
    if codes is None:
        expected = model(*inputs)
    else:
        codes = codes.view(model.num_layers, -1, store.num_nodes).transpose(1, 2)
        codes = codes if model.space.shape else codes.squeeze(2)
        assert codes.unique().numel() > 1
        # Draws differ from those in memory, so they are forced there.
        expected, trace = model(*inputs, actions=codes if mode == "sample" else mode, return_trace=True)
        assert torch.equal(codes, trace.actions)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


LAYERS = [("sum", "mean"), ("mean", "sum"), ("gcn", "gcn"), ("gin", "gat"), ("gat", "gin"), ("gcn", None)]


@pytest.mark.parametrize(("env", "action"), LAYERS)
@pytest.mark.parametrize("directions", ["in", "both"])
@pytest.mark.parametrize("name", ["one", "types", "weights", "amounts"])
def test_a_store_gives_the_outputs_of_the_model(env, action, directions, name, graphs, tmp_path) -> None:
    check(graphs, name, tmp_path, "argmax", standard_bias=0.0, env=env, action=action, directions=directions)


OPTIONS = [
    {"action_heads": 4},
    {"action_heads": 2, "env": "gcn", "action": "gcn", "action_space": "factored", "action_sharing": "per_layer"},
    {"action_heads": "channel", "gates": "continuous", "env": "gat"},
    {"relation_actions": "shared"},
    {"relation_actions": "shared", "action_heads": 2, "env": "gcn", "action": "gcn"},
    {"num_bases": 2, "mean_over": "all", "direction_share": "learned"},
    {"num_blocks": 2, "action_channels": 6, "action_space": "factored"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("mode", ["expected", "sample"])
def test_heads_and_decompositions(options, mode, graphs, tmp_path) -> None:
    if mode == "sample" and options.get("gates") == "continuous":
        return
    check(graphs, "types", tmp_path, mode, **{"directions": "both", "standard_bias": 0.0, **options})


def test_draws_belong_to_nodes_not_to_blocks(graphs, tmp_path) -> None:
    store, model = (
        graphs["types"][1],
        make_model(num_relations=TYPES, directions="both", action_heads=2, standard_bias=0.0),
    )
    one, other = (in_blocks(model, store, tmp_path / "w", "sample", (0, 1), room) for room in (6_000, 10**9))
    assert torch.equal(one[1], other[1])
    torch.testing.assert_close(one[0], other[0], rtol=1e-5, atol=1e-5)
    assert one[1].unique().numel() == 16  # every directed action


@pytest.mark.parametrize("room", [64, 1_000, 10**6])
def test_reversed_edges_are_sorted_by_sender_whatever_the_memory(room, graphs, tmp_path) -> None:
    dataset, store = graphs["one"]
    ptr, receiver, edge = reversed_edges(store, Scratch(tmp_path / "w", {}), room)
    graph = dataset.graphs[0]
    assert np.array_equal(ptr, graph.out_ptr)
    assert np.array_equal(receiver, graph.out_receiver)
    assert np.array_equal(edge, graph.out_slot)
