"""Absurd options and damaged files of a run: one line, exit code 2, nothing left that blocks the next attempt."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cognn.files import npz_archive
from cognn.parallel import memory
from tests.cli.test_main import SIZES, tables
from tests.cli.test_outputs import error_of, here, project  # noqa: F401

ABSURD = {
    "--temperature 1e-300": "temperature: expected learned or a number above 0, at least 1e-06",
    "--temperature inf": "temperature",
    "--device tpu": "device",
    "--hidden-channels 10000000": "hidden_channels: expected 65,536 or less",
    "--hidden-channels 65536": "this machine has",
    "--hidden-channels 100000000000000": "hidden_channels",
    "--num-layers 100000": "num_layers: expected 1,000 or less",
    "--action-layers 10000000000": "action_layers: expected 100 or less",
    "--decoder-layers 100000": "decoder_layers",
    "--action-channels 60000 --action-layers 100": "this machine has",
    "--draws 100000": "draws: expected 1,000 or less",
    "--draws 1000 --num-layers 1000 --hidden-channels 512": "the outputs of the layers for 40,000 nodes",
    "--random-splits 1000000": "random_splits: expected 1,000 or less",
    "--splits 0-300000000": "splits: there are 0 to 0",
    "--splits 300000000-0": "splits: there are 0 to 0",
    "--splits 0-99999999999999999999": "splits: there are 0 to 0",
    "--neighbors 99999999999999999999": "neighbors",
    "--samples 100000000": "samples: expected 10,000 or less",
    "--epochs 100000000000000000000": "epochs",
    "--lr inf": "lr: expected a finite number",
    "--weight-decay inf": "weight_decay: expected a finite number",
    "--target label,label": "target: column 'label' is given twice",
    "--ignore label": "target, ignore: 'label' cannot be predicted and ignored",
}


@pytest.mark.parametrize("options", ABSURD)
def test_absurd_options_are_refused_before_memory_is_spent(options, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "total_memory", lambda: 16 << 30)
    words = ["train", *tables(tmp_path), *SIZES, "--out", "run", *options.split()]
    assert ABSURD[options] in error_of(words, capsys)
    assert not Path("run").exists()


def changed(**values: object) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        return unsealed_text(json.loads(content) | values)

    return change


def unsealed_text(result: dict) -> bytes:
    """As version 0.1 wrote it: without a digest, which would be what is refused."""
    return json.dumps({name: value for name, value in result.items() if name != "digest"}).encode()


def split_changed(**values: object) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        result = json.loads(content)
        result["splits"][0] |= values
        return unsealed_text(result)

    return change


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        assert old.encode() in content
        return content.replace(old.encode(), new.encode())

    return change


def odd_bytes(content: bytes) -> bytes:
    return content[:20] + b"\xff\xfe" + content[20:]


DAMAGE = [
    ("schema.json", odd_bytes, "predict run nodes.csv --edges edges.parquet"),
    ("schema.json", lambda _: b"[]", "predict run"),
    ("schema.json", odd_bytes, "data build nodes.csv edges.parquet --like run --out store"),
    ("split-0/metrics.jsonl", odd_bytes, "report run"),
    ("split-0/metrics.jsonl", lambda content: b"[]\n" + content, "report run"),
    ("split-0/metrics.jsonl", lambda content: b'{"a": 1}\n' + content, "report run"),
    ("split-0/metrics.jsonl", replaced('"loss": ', '"loss": "x", "lose": '), "report run"),
    *(
        ("result.json", lambda _, text=text: text, "predict run")
        for text in (b"[]", b"3", b"{}", b'{"splits": 3}', b"\xff", b"[" * 100_000)
    ),
    ("result.json", changed(splits=[]), "report run"),
    ("result.json", changed(splits=[3]), "evaluate run"),
    ("result.json", changed(metric="wat"), "evaluate run"),
    ("result.json", changed(test=[1]), "evaluate run"),
    *(
        ("result.json", split_changed(**{name: value}), "predict run")
        for name, value in (("split", "0"), ("split", 1.5), ("split", 1), ("val", "high"), ("seed", "x"), ("seed", -1))
    ),
    ("result.json", split_changed(seed=2**70), "report run"),
    ("result.json", split_changed(threshold="x"), "evaluate run"),
    ("split-0/result.json", changed(val="high"), "train --resume run --quiet"),
    ("split-0/result.json", changed(split=None), "train --resume run --quiet"),
    ("config.toml", replaced("\nsamples = 0", "\nsamples = -1"), "predict run"),
    ("config.toml", replaced("num_layers = 2", "num_layers = 100000"), "train --resume run --quiet"),
    ("config.toml", replaced("[model]", "[modle]"), "predict run"),
    ("config.toml", odd_bytes, "evaluate run"),
]


@pytest.mark.parametrize(("name", "change", "command"), DAMAGE)
def test_a_damaged_file_of_a_run_is_named(here, name, change, command, capsys) -> None:  # noqa: F811
    path = Path("run") / name
    path.write_bytes(change(path.read_bytes()))
    assert f"run/{name}" in error_of(command.split(), capsys)


def test_an_archive_that_grows_too_much_is_refused_by_its_headers(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(npz_archive, "UNASKED", 1 << 20)
    ends = np.zeros((2, 3), int)
    np.savez_compressed("bomb.npz", x=np.zeros((300, 1000)), y=np.arange(300) % 2, edge_index=ends)
    read = []
    monkeypatch.setattr(npz_archive, "_array", lambda *_: read.append(1))
    assert "claims to unpack to" in error_of(["train", "bomb.npz", "--undirected"], capsys)
    assert not read


def test_a_disk_that_is_full_from_the_start_is_named(tmp_path, monkeypatch, capsys) -> None:
    import polars as pl

    monkeypatch.chdir(tmp_path)
    words = tables(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError(
            "parquet: File out of specification: underlying IO error: No space left on device (os error 28)"
        )

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    shown = error_of(["data", "build", "nodes.csv", "edges.parquet", *words[3:], "--quiet", "--out", "store"], capsys)
    assert "no room left on the disk" in shown
    assert not shutil.os.path.lexists("store")
