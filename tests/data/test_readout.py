"""Every level of a task has a readout, and models and datasets agree with it."""

import pytest
import torch

from cognn.data.dataset import LEVELS
from cognn.data.readout import READOUTS
from cognn.train.build import build_model
from tests.toy_runs import make_dataset, make_links, small


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_has_one_output_per_item(level: str) -> None:
    dataset = make_links() if level == "link" else make_dataset(level, "multiclass")
    readout = dataset.task.readout
    graph = readout.join(dataset.graphs)
    pairs = {} if dataset.links is None else {"pairs": dataset.links.ends}
    out = build_model(small().model, dataset).eval()(dataset.x, graph, **pairs)
    assert out.shape == (dataset.num_items, dataset.task.num_outputs)
    assert readout.per_node == (dataset.num_items == dataset.num_nodes)
    assert readout.one_graph == (len(dataset.graphs) == 1)
    assert readout.pools + readout.per_node + readout.pairs == 1
    assert graph.num_nodes == dataset.num_nodes
    assert torch.equal(graph.in_ptr.diff().sum(), torch.tensor(dataset.num_edges))
    assert readout.items == f"{level}s"


def test_every_level_has_a_readout() -> None:
    assert tuple(READOUTS) == LEVELS
