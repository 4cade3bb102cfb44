"""What a link task hides from training, and what it draws."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cognn import Graph
from cognn.config.options import DataConfig
from cognn.data.dataset import Dataset, Task
from cognn.data.links.messages import of_split
from cognn.data.links.pairs import count_pairs, edge_pairs, free_number, pair_number, pair_of
from cognn.data.load import from_memory
from cognn.errors import DataError
from cognn.train.batcher import Batcher
from tests.toy_runs import make_links

Pairs = set[frozenset[int]]


def unordered(ends: Tensor) -> Pairs:
    return {frozenset(pair) for pair in ends.T.tolist()}


def graph_of(edges: list[tuple[int, int]], nodes: int, undirected: bool) -> Dataset:
    ends = torch.tensor(edges).T
    ends = torch.cat([ends, ends.flip(0)], dim=1) if undirected else ends
    attr = torch.arange(float(ends.size(1))).unsqueeze(1)
    task = Task("node", "regression", 1, "mae")
    return Dataset("g", task, torch.ones(nodes, 1), torch.zeros(nodes, 1), [Graph(ends, nodes)], [], edge_attr=attr)


@st.composite
def graphs(draw) -> Dataset:
    nodes = draw(st.integers(12, 16))
    end = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(end, end), min_size=8, max_size=24))  # self-loops, multi-edges, reverses
    return graph_of([*edges, (0, 1), (1, 2), (2, 3)], nodes, draw(st.booleans()))


@settings(max_examples=60)
@given(graphs(), st.integers(0, 3), st.sampled_from([0.0, 0.4]))
def test_nothing_of_validation_and_test_is_seen_in_training(graph: Dataset, seed: int, disjoint: float) -> None:
    dataset = from_memory(graph, DataConfig(dataset="g", task="link", random_splits=2, data_seed=seed))
    links, edges = dataset.links, unordered(graph.graphs[0].edge_index)
    parts = dataset.splits[1]
    every = torch.cat([parts.train, parts.val, parts.test])
    assert every.sort().values.tolist() == list(range(dataset.num_items))
    held = unordered(links.ends[:, torch.cat([parts.val, parts.test])])
    assert not held & unordered(links.ends[:, parts.train])

    seen = of_split(dataset, 1)
    messages = seen.graphs[0]
    loops = {pair for pair in edges if len(pair) == 1}
    positive = unordered(links.ends[:, parts.train[dataset.y[parts.train] == 1]])
    assert unordered(messages.edge_index) == positive | loops  # all that is not held out stays
    rows = seen.edge_attr.view(-1).long()
    assert torch.equal(graph.graphs[0].edge_index[:, rows], messages.edge_index)  # features stay with their edges

    batcher = Batcher(seen, 1, torch.device("cpu"))
    for _ in range(2):
        ((batch, chosen, _),) = batcher.train_batches(parts.train, disjoint=disjoint)
        y = dataset.y[batch.items]
        assert not unordered(batch.pairs) & held
        assert not unordered(batch.pairs[:, y == 0]) & edges
        assert not (batch.pairs[0] == batch.pairs[1]).any()
        assert unordered(batch.pairs[:, y == 1]) == positive
        learned = unordered(batch.pairs[:, chosen])
        assert len(chosen) == len(parts.train) if not disjoint else not learned & unordered(batch.graph.edge_index)
        assert unordered(batch.graph.edge_index) <= unordered(messages.edge_index)


@settings(max_examples=30)
@given(graphs(), st.integers(0, 3))
def test_pairs_without_a_link_are_as_many_and_are_no_edges(graph: Dataset, seed: int) -> None:
    dataset = from_memory(graph, DataConfig(dataset="g", task="link", data_seed=seed))
    without = dataset.links.ends[:, dataset.y == 0]
    edges = graph.graphs[0].edge_index
    assert len(unordered(without)) == without.size(1) == int((dataset.y == 1).sum())
    assert not unordered(without) & unordered(edges)
    assert not (without[0] == without[1]).any()
    again = from_memory(graph, DataConfig(dataset="g", task="link", data_seed=seed, random_splits=3))
    assert torch.equal(again.links.ends, dataset.links.ends)
    for name, part in vars(dataset.splits[0]).items():
        assert torch.equal(getattr(again.splits[0], name), part)


def test_an_epoch_draws_other_pairs_than_the_last_and_the_same_from_a_seed() -> None:
    dataset = make_links()
    batcher = Batcher(of_split(dataset, 0), 1, torch.device("cpu"))
    train = dataset.splits[0].train
    epochs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        epochs.append([next(iter(batcher.train_batches(train))).batch.pairs for _ in range(2)])
    assert torch.equal(epochs[0][0], epochs[1][0])
    assert torch.equal(epochs[0][1], epochs[1][1])
    assert not torch.equal(epochs[0][0], epochs[0][1])
    assert not torch.equal(epochs[0][0], epochs[2][0])
    assert torch.equal(batcher.all_batches()[0].pairs, dataset.links.ends)  # what is scored is fixed


def test_both_ends_of_a_drawn_pair_of_a_directed_graph_can_send() -> None:
    dataset = make_links(directed=True)
    assert dataset.links.directed
    without = dataset.links.ends[:, dataset.y == 0]
    share = (without[0] < without[1]).double().mean()
    assert 0.3 < share < 0.7
    assert (dataset.links.ends[0] < dataset.links.ends[1])[dataset.y == 1].all()


def test_copies_of_an_epoch_are_disjoint() -> None:
    dataset = of_split(make_links(), 0)
    ((batch, rows, _),) = Batcher(dataset, 1, torch.device("cpu")).train_batches(dataset.splits[0].train, draws=3)
    owner = batch.pairs // dataset.num_nodes
    assert torch.equal(owner[0], owner[1])
    assert owner.unique().tolist() == [0, 1, 2]
    assert batch.graph.num_nodes == len(batch.x) == 3 * dataset.num_nodes
    assert rows.tolist() == list(range(len(batch.items)))


@given(st.integers(2, 9), st.data())
def test_numbers_of_pairs(nodes: int, data) -> None:
    everything = torch.arange(count_pairs(nodes))
    ends = pair_of(everything)
    assert (ends[0] < ends[1]).all()
    assert int(ends.max()) == nodes - 1
    assert torch.equal(pair_number(ends), everything)
    assert torch.equal(pair_number(ends.flip(0)), everything)
    taken = torch.tensor(sorted(data.draw(st.sets(st.sampled_from(everything.tolist())))), dtype=torch.long)
    places = torch.arange(len(everything) - len(taken))
    assert free_number(places, taken).tolist() == [n for n in everything.tolist() if n not in set(taken.tolist())]
    assert edge_pairs(torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0]])).tolist() == [0]


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ([(0, 1), (1, 2)], 9, "g: 2 links; training, validation and test need at least one each"),
        ([(0, 0)], 9, "g: 0 links; training"),
        ([(a, b) for a in range(5) for b in range(a)], 5, "g: 10 links, but only 0 pairs of nodes without one"),
    ],
)
def test_a_graph_with_too_few_pairs_of_a_kind(edges, nodes, message) -> None:
    with pytest.raises(DataError, match=message):
        from_memory(graph_of(edges, nodes, True), DataConfig(dataset="g", task="link"))


def test_a_dataset_of_links_is_taken_as_it_is() -> None:
    dataset = make_links()
    assert from_memory(dataset, DataConfig(dataset="g")) is dataset
    node = replace(dataset, links=None, task=Task("node", "binary", 1, "roc_auc"))
    assert of_split(node, 0) is node
