"""Layer-wise inference equals the model in memory for any block size, and resumes after an interruption."""

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.nn import SAGEConv

from cognn import CoGNN, Graph
from cognn.core.random import gumbel_of, keyed_bits
from cognn.data.store.build import from_dataset
from cognn.errors import ConfigError, DataError, RunError
from cognn.inference import Pass, Scratch, infer
from cognn.inference.blocks import BlockCutter
from cognn.inference.layerwise import fingerprint, run_stages
from tests.toy_runs import make_dataset

LAYERS = ["sum", "mean", "gcn", "gin", "gat"]
ROOM = 6_000
"""Bytes for a block: a few of the 60 nodes."""


def make_model(seed: int = 0, **options) -> CoGNN:
    torch.manual_seed(seed)
    model = CoGNN(
        4,
        8,
        **{"out_channels": 3, "num_layers": 3, "action_channels": 5, "action_layers": 2, "residual": "linear"}
        | options,
    )
    with torch.no_grad():  # statistics and biases that are not those of a new model
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
        for norm in model.norms:
            if isinstance(norm, torch.nn.BatchNorm1d):
                norm.running_mean.normal_(std=0.3)
                norm.running_var.uniform_(0.5, 2)
    return model.eval()


@pytest.fixture(scope="module")
def graphs(tmp_path_factory) -> dict:
    """Datasets and their stores, without and with edge features."""
    folder = tmp_path_factory.mktemp("stores")
    plain, amounts, categories = (make_dataset("node", "multiclass", edges=bool(i)) for i in range(3))
    categories.edge_attr = torch.randint(3, (240, 2), generator=torch.Generator().manual_seed(0))
    categories.edge_categories = (3, 4)
    kinds = {"plain": plain, "amounts": amounts, "categories": categories}
    return {name: (dataset, from_dataset(dataset, folder / name)) for name, dataset in kinds.items()}


def in_blocks(model, store, folder: Path, mode: str = "argmax", key=(0,), room: int = ROOM):
    """Outputs and action codes ``(num_layers, N)``."""
    out = torch.full((store.num_nodes, 3), torch.nan)
    scratch = Scratch(folder, {})

    def sink(first: int, last: int, rows: torch.Tensor) -> None:
        out[first:last] = rows

    blocks = BlockCutter(store, room, 8, 1, torch.device("cpu"))
    run_stages(model, store, scratch, [Pass(mode, key, sink, keep=model.action_network is not None)], blocks)
    codes = scratch.arrays.get("actions")
    codes = None if codes is None else torch.from_numpy(codes.astype(np.int64).T.copy())
    shutil.rmtree(folder)
    return out, codes


@torch.no_grad()
def assert_equal(model, dataset, store, folder, mode) -> None:
    out, codes = in_blocks(model, store, folder, mode)
    inputs = (dataset.x, dataset.graphs[0], dataset.edge_attr)
    if codes is None:
        expected = model(*inputs)
    elif mode == "sample":  # the draws differ from those in memory, so force them there
        expected = model(*inputs, actions=codes)
    else:
        expected, trace = model(*inputs, actions=mode, return_trace=True)
        assert torch.equal(codes, trace.actions)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


def test_blocks_cover_all_nodes_and_edges_once(graphs) -> None:
    store = graphs["plain"][1]
    blocks, first, seen = BlockCutter(store, ROOM, 8, 1, torch.device("cpu")), 0, []
    while first < store.num_nodes:
        block = blocks.with_edges(first)
        first = block.last
        seen.append(block)
    assert len(seen) > 4
    assert [block.first for block in seen] == [0, *(block.last for block in seen[:-1])]
    assert sum(block.adjacency.in_edge.numel() for block in seen) == store.num_edges
    for block in seen:
        assert block.nodes.unique().numel() == block.nodes.numel()
        assert block.nodes[: block.size].tolist() == list(range(block.first, block.last))


def test_blocks_fit_into_their_room(tmp_path) -> None:
    torch.manual_seed(0)
    dataset, room, first = make_dataset("node", "multiclass"), 12_000, 0
    near = torch.arange(30).repeat_interleave(4).repeat(2, 1)  # few senders at first, then many
    far = torch.stack([torch.randint(60, (150,)), torch.randint(30, 60, (150,))])
    dataset.graphs = [Graph(torch.cat([near, far], 1), 60)]
    blocks = BlockCutter(from_dataset(dataset, tmp_path / "store"), room, 8, 1, torch.device("cpu"))
    while first < 60:
        block = blocks.with_edges(first)
        assert blocks._size(block.first, block.last, len(block.nodes) - block.size) <= 1.25 * room
        first = block.last


@pytest.mark.parametrize("action", [*LAYERS, None])
@pytest.mark.parametrize("env", LAYERS)
def test_every_pair_of_layers(graphs, tmp_path, env, action) -> None:
    dataset, store = graphs["plain"]
    for seed, mode in enumerate(("argmax", "expected", "sample")):
        assert_equal(make_model(seed, env=env, action=action), dataset, store, tmp_path / mode, mode)


@pytest.mark.parametrize("kind", ["amounts", "categories"])
@pytest.mark.parametrize("layer", LAYERS)
def test_edge_features(graphs, tmp_path, layer, kind) -> None:
    dataset, store = graphs[kind]
    options = {"edge_dim": 2} if kind == "amounts" else {"edge_categories": (3, 4)}
    assert_equal(make_model(env=layer, action=layer, **options), dataset, store, tmp_path / "w", "argmax")


@pytest.mark.parametrize(
    "options",
    [
        {"action_space": "factored"},
        {"action_space": "factored", "action_layers": 1, "standard_bias": 1.0},
        {"action_layers": 4, "action": "gcn", "env": "gcn"},
        {"norm": "batch", "norm_first": False},
        {"norm": "batch", "norm_first": True, "residual": None},
        {"norm": None, "norm_first": False, "residual": "identity", "decoder_layers": 3},
        {"mean_over": "all", "act": "relu"},
        {"temperature": 0.5, "input_dropout": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["argmax", "expected", "sample"])
def test_every_option_of_the_model(graphs, tmp_path, options, mode) -> None:
    dataset, store = graphs["plain"]
    assert_equal(make_model(**options), dataset, store, tmp_path / "w", mode)


def test_draws_belong_to_nodes_not_to_blocks(graphs, tmp_path) -> None:
    store, model = graphs["plain"][1], make_model()
    runs = {
        (room, key): in_blocks(model, store, tmp_path / "w", "sample", key, room)
        for room in (ROOM, 4 * ROOM, 10**9)
        for key in ((0, 1), (0, 2))
    }
    for key in ((0, 1), (0, 2)):
        for room in (ROOM, 4 * ROOM):
            assert torch.equal(runs[room, key][1], runs[10**9, key][1])
            torch.testing.assert_close(runs[room, key][0], runs[10**9, key][0], rtol=1e-5, atol=1e-5)
    assert not torch.equal(runs[ROOM, (0, 1)][1], runs[ROOM, (0, 2)][1])


def test_noise_is_gumbel_and_its_streams_differ() -> None:
    noise = gumbel_of(keyed_bits((3, 1), 0, 50_000, 4), torch.float32)
    assert torch.equal(noise[100:200], gumbel_of(keyed_bits((3, 1), 100, 200, 4), torch.float32))
    flat = noise.flatten().double().sort().values
    expected = torch.exp(-torch.exp(-flat))
    assert (
        expected - torch.linspace(0, 1, flat.numel(), dtype=torch.float64)
    ).abs().max() < 0.005  # Kolmogorov-Smirnov
    others = [gumbel_of(keyed_bits(key, 0, 50_000, 4), torch.float32) for key in ((3, 2), (4, 1), (1, 3), (3, 1, 0))]
    for other in others:
        pair = torch.stack([noise.flatten(), other.flatten()])
        assert abs(float(torch.corrcoef(pair)[0, 1])) < 0.02
    assert float(torch.corrcoef(noise.T).fill_diagonal_(0).abs().max()) < 0.02


# Interrupted runs and invalid arguments -------------------------------------------------------------------------------


class Killed(Exception):
    pass


def test_a_run_resumes_from_any_block(graphs, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cognn.inference.scratch.SECONDS", 0.0)  # every block is recorded
    dataset, store = graphs["plain"]
    model = make_model(action="gcn", env="gcn", action_space="factored")
    done: list[tuple[str, int]] = []
    with torch.no_grad():
        expected = model(dataset.x, dataset.graphs[0], actions="argmax")
    out = torch.full((60, 3), torch.nan)

    def sink(first: int, last: int, rows: torch.Tensor) -> None:
        out[first:last] = rows

    starts, count = 0, 0
    while True:
        scratch = Scratch(tmp_path / "w", {"model": fingerprint(model)})
        left = 7

        def report(name: str, node: int, total: int) -> None:
            nonlocal left
            done.append((name, node))
            left -= 1
            if not left:
                raise Killed

        try:
            blocks = BlockCutter(store, ROOM, 8, 1, torch.device("cpu"))
            run_stages(model, store, scratch, [Pass("argmax", (0,), sink)], blocks, report)
            break
        except Killed:
            starts += 1
        count += 1
        assert count < 100
    assert starts > 5
    assert len(done) == len(set(done))  # no block was computed twice
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


def test_a_run_resumes_from_an_old_record(graphs, tmp_path, monkeypatch) -> None:
    """Later stages overwrite the input of earlier ones: a run must not resume from before such a stage."""
    dataset, store = graphs["plain"]
    model = make_model(action="gcn", env="gcn", action_layers=1)
    with torch.no_grad():
        expected = model(dataset.x, dataset.graphs[0], actions="argmax")

    def attempt(folder: Path, out: torch.Tensor, recorded: int = 0, killed: int = 0) -> int:
        """Record only the block number ``recorded``; return the number of blocks."""
        count = 0

        def sink(first: int, last: int, rows: torch.Tensor) -> None:
            out[first:last] = rows

        def report(name: str, node: int, total: int) -> None:
            nonlocal count
            count += 1
            monkeypatch.setattr("cognn.inference.scratch.SECONDS", 0.0 if count == recorded else math.inf)
            if count == killed:
                raise Killed

        blocks = BlockCutter(store, ROOM, 8, 1, torch.device("cpu"))
        run_stages(model, store, Scratch(folder, {}), [Pass("argmax", (0,), sink)], blocks, report)
        return count

    blocks = attempt(tmp_path / "complete", torch.empty(60, 3))
    assert blocks > 60
    for killed in range(20, blocks, 13):
        folder, out = tmp_path / str(killed), torch.full((60, 3), torch.nan)
        with pytest.raises(Killed):
            attempt(folder, out, killed - 12, killed)
        attempt(folder, out)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


def test_another_model_or_store_is_refused(graphs, tmp_path) -> None:
    Scratch(tmp_path / "w", {"model": "a", "store": "b"}).array("x", np.float32, (3, 1))
    with pytest.raises(RunError, match=r"x.npy: has another size"):
        Scratch(tmp_path / "w", {"model": "a", "store": "b"}).array("x", np.float32, (4, 1))
    with pytest.raises(RunError, match="was started with another store; delete it"):
        Scratch(tmp_path / "w", {"model": "a", "store": "c"})
    assert fingerprint(make_model(0)) != fingerprint(make_model(1))
    assert fingerprint(make_model(0)) == fingerprint(make_model(0))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(RunError, match="is needed for temporary files, but exists already; move or delete it"):
        Scratch(tmp_path / "other", {})


def test_a_used_folder_gives_the_outputs_of_this_model_and_no_other(graphs, tmp_path) -> None:
    """As a page shows it: the rows go to memory, so nothing of an earlier call may be left out."""
    dataset, store = graphs["plain"]
    done = 0

    def outputs(model, most: int = 60) -> torch.Tensor:
        nonlocal done
        out, done = torch.full((60, 3), torch.nan), 0

        def sink(first: int, last: int, rows: torch.Tensor) -> None:
            nonlocal done
            out[first:last], done = rows, last
            if done > most:
                raise Killed

        infer(model, store, Scratch(tmp_path / "work", {}), [Pass("argmax", (0,), sink)], 4 << 30)
        return out

    for model in (make_model(0), make_model(1), make_model(1)):
        with torch.no_grad():
            expected = model(dataset.x, dataset.graphs[0], actions="argmax")
        torch.testing.assert_close(outputs(model), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(Killed):
        outputs(model, 0)
    torch.testing.assert_close(outputs(model), expected, rtol=1e-5, atol=1e-5)


def test_resuming_another_computation_is_refused(graphs, tmp_path) -> None:
    store = graphs["plain"][1]
    model, passes = make_model(), [Pass("argmax", (0,), lambda *_: None)]
    infer(model, store, Scratch(tmp_path / "w", {}), passes, 4 << 30, resume=True)

    def resumes(model=model, store=store, passes=passes) -> None:
        infer(model, store, Scratch(tmp_path / "w", {}), passes, 4 << 30, resume=True)

    resumes()
    with pytest.raises(RunError, match="was started with another model; delete it"):
        resumes(make_model(1))
    with pytest.raises(RunError, match="was started with other passes; delete it"):
        resumes(passes=[Pass("sample", (0,), lambda *_: None)])
    with pytest.raises(RunError, match="was started with another store; delete it"):
        resumes(store=replace(store, identity="other"))
    (tmp_path / "w" / "progress.json").write_text('{"identity": {}, "step": 9, "node": 0}')
    with pytest.raises(RunError, match="does not say its model; delete it"):
        resumes()
    one, two = (fingerprint(make_model(mean_over=over)) for over in ("kept", "all"))
    assert one != two  # their weights and modules are equal


def test_models_and_stores_that_cannot_be_run_in_blocks(graphs, tmp_path) -> None:
    store = graphs["plain"][1]
    scratch = Scratch(tmp_path / "w", {})

    def attempt(model, kind: str = "plain", memory: int = 4 << 30) -> None:
        infer(model, graphs[kind][1], scratch, [], memory)

    with pytest.raises(RunError, match="a layer of PyG"):
        attempt(make_model(env=lambda i, o: SAGEConv(i, o)))
    with pytest.raises(RunError, match="in training mode"):
        attempt(make_model().train())
    with pytest.raises(RunError, match="for cognn models of node tasks"):
        attempt(torch.nn.Linear(4, 3))
    with pytest.raises(RunError, match="jk: layer-wise inference keeps the states of one layer at a time"):
        attempt(make_model(jk="cat"))
    with pytest.raises(RunError, match="in_channels: is -1 until the model has seen data"):
        attempt(CoGNN(-1, 8, out_channels=3, num_layers=2).eval())
    with pytest.raises(DataError, match="has 4 features, the model takes 5"):
        attempt(CoGNN(5, 8, out_channels=3, num_layers=2).eval())
    with pytest.raises(DataError, match="has 2 edge features, the model takes none"):
        attempt(make_model(), "amounts")
    with pytest.raises(ConfigError, match=r"memory: 0.25 GB are too little"):
        attempt(make_model(), memory=1 << 28)
    with pytest.raises(ConfigError, match="edges of node 0 alone take"):
        BlockCutter(store, 100, 8, 1, torch.device("cpu")).with_edges(0)
