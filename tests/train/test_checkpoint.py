import pytest
import torch

from cognn import Graph
from cognn.data.dataset import Split
from cognn.files.tensors import load_tensors, save_tensors
from cognn.train.checkpoint import fingerprint
from tests.toy_runs import make_dataset


def test_equal_states_are_equal_files(tmp_path) -> None:
    tensors = {"b": torch.arange(3.0), "a": torch.tensor([1, 2], dtype=torch.int32), "é": torch.ones(2, 2)}
    facts = {"epoch": 3, "scores": {"val": 0.5}}
    for i in range(8):  # the header that safetensors writes has no fixed order
        save_tensors(tmp_path / f"{i}.safetensors", tensors, facts)
    assert len({(tmp_path / f"{i}.safetensors").read_bytes() for i in range(8)}) == 1
    back, told = load_tensors(tmp_path / "0.safetensors")
    assert told == facts
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("what", ["x", "y", "edge_attr", "edges", "relations", "splits"])
def test_whatever_changes_a_dataset_is_another_one(what: str) -> None:
    one, other = (make_dataset("node", "binary", edges=True) for _ in range(2))
    assert fingerprint(one) == fingerprint(other)
    if what == "edges":
        other.graphs = [Graph(other.graphs[0].edge_index.flip(0), 60)]
    elif what == "relations":
        edge_index, types = one.graphs[0].edge_index, torch.arange(240) % 3
        one.graphs, other.graphs = ([Graph(edge_index, 60, way, 3)] for way in (types, types.flip(0)))
    elif what == "splits":  # of the same items: a run that went on would have trained on what it is tested on
        last = other.splits[1]
        other.splits[1] = Split(last.train, last.test, last.val)
    else:
        getattr(other, what)[0] += 1
    assert fingerprint(one) != fingerprint(other)
