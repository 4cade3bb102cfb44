import torch

from cognn.train.checkpoint import load_tensors, save_tensors


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
