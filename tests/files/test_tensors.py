"""A file of tensors holds exactly what was written, or it is refused."""

import json
import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cognn import CoGNN
from cognn.errors import RunError
from cognn.files import tensors
from cognn.files.tensors import load_tensors, pack_tensors, save_tensors

TENSORS = {"b/weight": torch.randn(5, 7), "a": torch.tensor([1, 2], dtype=torch.int32), "é": torch.ones(2, 2)}
FACTS = {"epoch": 3, "scores": {"val": 0.5}, "name": "é"}


def _header(content: bytes) -> int:
    return 8 + int.from_bytes(content[:8], "little")


def _flips(content: bytes) -> list[tuple[int, int]]:
    """A bit of each of 200 bytes and more: all of the length, and many of header and tensors."""
    start = _header(content)
    spots = [*range(8), *range(8, start, max(1, (start - 8) // 120)), *range(start, len(content), 2)]
    assert len(spots) >= 200
    return [(spot, 1 << (7 * spot // 3) % 8) for spot in spots]


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    save_tensors(path, TENSORS, FACTS)
    good, refused, same = path.read_bytes(), 0, 0
    for spot, bit in _flips(good):
        path.write_bytes(good[:spot] + bytes([good[spot] ^ bit]) + good[spot + 1 :])
        try:
            back, facts = load_tensors(path)
        except RunError as error:
            lines = str(error).splitlines()
            refused += len(lines) == 1 and lines[0].startswith(f"{path}: ")
        else:
            assert facts == FACTS
            assert back.keys() == TENSORS.keys()
            assert all(torch.equal(back[name], value) for name, value in TENSORS.items())
            same += 1
    assert refused + same == len(_flips(good))
    assert same <= 2


def test_a_flipped_bit_of_a_saved_model_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    model = CoGNN(3, 8, out_channels=2, num_layers=1)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    good, refused, same = path.read_bytes(), 0, 0
    flips = _flips(good)[:: max(1, len(good) // 800)] + [(spot, 1) for spot in range(_header(good), len(good), 97)]
    for spot, bit in flips:
        path.write_bytes(good[:spot] + bytes([good[spot] ^ bit]) + good[spot + 1 :])
        try:
            again = CoGNN.from_pretrained(tmp_path)
        except RunError as error:
            refused += len(str(error).splitlines()) == 1
        else:
            for name, value in model.state_dict().items():
                assert torch.equal(again.state_dict()[name], value)
            same += 1
    assert refused + same == len(flips)
    assert same <= 0.05 * len(flips)


def test_tensors_swapped_between_names_are_refused(tmp_path: Path) -> None:
    content = pack_tensors({"a": torch.zeros(3), "b": torch.ones(3)}, {"format": "cognn-2", "facts": "{}"})
    header = json.loads(content[8 : _header(content)])
    header["a"], header["b"] = header["b"], header["a"]
    other = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(other).to_bytes(8, "little") + other + content[_header(content) :])
    with pytest.raises(RunError, match="its digest differs"):
        load_tensors(path)


def test_files_without_a_digest_are_read_and_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tensors, "_said", [])
    for name in ("one", "two"):
        save_file({"a": torch.ones(2)}, tmp_path / name, {"format": "cognn-1", "facts": "{}"})
        with caplog.at_level(logging.WARNING, "cognn"):
            assert load_tensors(tmp_path / name)[0]["a"].sum() == 2
    (record,) = caplog.records
    assert f"{tmp_path / 'one'}: has no digest" in record.message
    save_file({"a": torch.ones(2)}, tmp_path / "new", {"format": "cognn-2", "facts": "{}"})
    with pytest.raises(RunError, match="its digest is missing"):
        load_tensors(tmp_path / "new")
