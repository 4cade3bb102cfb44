import json
import sys
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.errors import RunError
from cognn.run import train as run
from cognn.train import loop
from tests.toy_runs import make_dataset
from tests.train.test_loop import small


def points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard reads in a folder: step and value of every point of every curve."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


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


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_every_point_is_there_once_however_the_run_went(before: bool, after: bool, tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=12, splits="0"), tmp_path, dataset)

    def stop(split, line, best, best_epoch) -> None:
        monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0 if line.epoch < 5 else 1e9)
        if line.epoch == 8:  # the last saved state is that of epoch 4
            raise Stop

    with pytest.raises(Stop):
        run.train_run(tmp_path, dataset=dataset, report=stop, tensorboard=before)
    run.train_run(tmp_path, dataset=dataset, tensorboard=after)
    if after:
        assert points(tmp_path / "tensorboard" / "split-0") == logged(tmp_path / "split-0", "roc_auc")
    # A finished run still gets its curves, or gets them right.
    run.train_run(tmp_path, dataset=dataset, tensorboard=True)
    assert points(tmp_path / "tensorboard" / "split-0") == logged(tmp_path / "split-0", "roc_auc")
    assert len(list((tmp_path / "tensorboard" / "split-0").iterdir())) == 1


def test_they_are_drawn_for_a_split_that_had_only_lost_its_result(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    run.train_run(tmp_path, dataset=dataset)
    (tmp_path / "split-0" / "result.json").unlink()
    run.train_run(tmp_path, dataset=dataset, tensorboard=True)
    assert points(tmp_path / "tensorboard" / "split-0") == logged(tmp_path / "split-0", "roc_auc")


def test_from_the_command_line_with_splits_side_by_side(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet", "--splits", "0-1"]
    assert main(["train", "minesweeper-board", *words, "--jobs", "2", "--out", "run", "--tensorboard"]) == 0
    assert [r["split"] for r in json.loads((tmp_path / "run/result.json").read_text())["splits"]] == [0, 1]
    for split in ("split-0", "split-1"):
        assert points(tmp_path / "run" / "tensorboard" / split) == logged(tmp_path / "run" / split, "roc_auc")


def test_a_missing_package_is_named_with_the_remedy(tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(RunError, match=r"tensorboard: not installed; pip install 'cognn.tensorboard.'"):
        run.train_run(tmp_path, dataset=dataset, tensorboard=True)
    assert not (tmp_path / "split-0").exists()
