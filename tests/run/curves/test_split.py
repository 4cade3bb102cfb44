import json
import struct
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.errors import RunError
from cognn.run import train as run
from cognn.run.curves import split as module
from cognn.train import loop
from tests.toy_runs import make_dataset
from tests.train.test_loop import small


def points_of_tensorboard(folder: Path) -> dict[str, list[tuple[int, float]]]:
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert len(list(folder.iterdir())) == 1
    events = module.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def pieces(data: bytes) -> Iterator[bytes]:
    """The records of a file of wandb: LevelDB's log, of blocks of 32 KB, after 7 bytes."""
    place, record = 7, b""
    while place + 7 <= len(data):
        if 2**15 - place % 2**15 < 7:
            place += 2**15 - place % 2**15  # the rest of a block is empty
        _, size, kind = struct.unpack_from("<IHB", data, place)
        record += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # complete, or the last part
            yield record
            record = b""


def points_of_wandb(folder: Path) -> dict[str, list[tuple[int, float]]]:
    records = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    found: dict[str, list[tuple[int, float]]] = {}
    for data in pieces(file.read_bytes()):
        record = records.Record()
        record.ParseFromString(data)
        items = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for name, value in items.items():
            if not name.startswith("_"):
                found.setdefault(name, []).append((int(items["_step"]), value))
    return found


def points_of_mlflow(folder: Path) -> dict[str, list[tuple[int, float]]]:
    client = pytest.importorskip("mlflow").MlflowClient((folder / "mlruns").resolve().as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("cognn").experiment_id])
    assert run.info.status == "FINISHED"
    curves = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    return {name: sorted((point.step, point.value) for point in curve) for name, curve in curves.items()}


READ = {"tensorboard": points_of_tensorboard, "wandb": points_of_wandb, "mlflow": points_of_mlflow}
"""What a program reads in its folder: step and value of every point of every curve."""
PROGRAMS = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed"))
    for name in READ
]


@pytest.fixture(autouse=True)
def _offline(monkeypatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def logged(folder: Path, metric: str) -> dict[str, list[tuple[int, float]]]:
    """The same from the log."""
    names = {"loss": "loss", "lr": "lr", "kept": "kept"} | {
        part: f"{metric}/{part}" for part in ("train", "val", "test")
    }
    curves: dict[str, list[tuple[int, float]]] = {}
    for line in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()):
        for key, name in names.items():
            if line[key] is not None:
                curves.setdefault(name, []).append((line["epoch"], pytest.approx(line[key])))
    return curves


class Stop(Exception):
    pass


@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_point_is_there_once_however_the_run_went(name: str, before, after, tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=12, splits="0"), tmp_path, dataset)

    def stop(split, line, best, best_epoch) -> None:
        monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0 if line.epoch < 5 else 1e9)
        if line.epoch == 8:  # the last saved state is that of epoch 4
            raise Stop

    with pytest.raises(Stop):
        run.train_run(tmp_path, dataset=dataset, report=stop, log=name * before)
    run.train_run(tmp_path, dataset=dataset, log=name * after)
    if after:
        assert READ[name](tmp_path / name / "split-0") == logged(tmp_path / "split-0", "roc_auc")
    # A finished run still gets its curves, or gets them right.
    run.train_run(tmp_path, dataset=dataset, log=name)
    assert READ[name](tmp_path / name / "split-0") == logged(tmp_path / "split-0", "roc_auc")


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_drawn_for_a_split_that_had_only_lost_its_result(name: str, tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    run.train_run(tmp_path, dataset=dataset)
    (tmp_path / "split-0" / "result.json").unlink()
    run.train_run(tmp_path, dataset=dataset, log=name)
    assert READ[name](tmp_path / name / "split-0") == logged(tmp_path / "split-0", "roc_auc")


def test_from_the_command_line_with_splits_side_by_side(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet", "--splits", "0-1"]
    assert main(["train", "minesweeper-board", *words, "--jobs", "2", "--out", "run", "--tensorboard"]) == 0
    assert [r["split"] for r in json.loads((tmp_path / "run/result.json").read_text())["splits"]] == [0, 1]
    for split in ("split-0", "split-1"):
        assert points_of_tensorboard(tmp_path / "run" / "tensorboard" / split) == logged(
            tmp_path / "run" / split, "roc_auc"
        )


@pytest.mark.parametrize("name", READ)
def test_a_missing_package_is_named_with_the_remedy(name: str, tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(RunError, match=rf"{name}: not installed; pip install 'cognn\[{name}\]', or train without"):
        run.train_run(tmp_path, dataset=dataset, log=name)
    assert not (tmp_path / "split-0").exists()


def test_an_unknown_program_is_refused(tmp_path, capsys) -> None:
    assert main(["train", "cycles", "--log", "tensorboard,comet", "--out", str(tmp_path / "run")]) == 2
    message = "cognn: log: expected tensorboard, wandb, mlflow, or several with commas, got 'comet'\n"
    assert capsys.readouterr().err == message
    assert not (tmp_path / "run").exists()
