"""Runs that are stopped, killed or damaged, and what goes on from them."""

import errno
import json
import shutil
import signal
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from cognn.errors import FolderGone, Interrupted, RunError
from cognn.files.locks import exclusive
from cognn.files.tensors import load_tensors
from cognn.run import train as run
from cognn.train import loop
from tests.toy_runs import batches, make_dataset, same, small, train_until_killed, weights


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_a_run_that_stops_anywhere_ends_as_if_it_had_not(level: str, kind: str, tmp_path, monkeypatch) -> None:
    # The multiplier of the budget is part of the state.
    options = {"epochs": 12, "splits": "0", "schedule": "cosine", "edge_budget": 0.3, **batches(level)}
    options |= {
        "regression": {"scale_targets": "on", "action_space": "edge"},
        "binary": {"threshold": "validation", "class_weight": "balanced"},
    }[kind]
    dataset, config = make_dataset(level, kind), small(**options)
    whole = tmp_path / "whole"
    run.create_run(config, whole, dataset)
    run.train_run(whole, dataset=dataset)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    class Stop(Exception):
        pass

    for stop_at in (1, 4, 11):
        folder = tmp_path / f"stopped-{stop_at}"
        run.create_run(config, folder, dataset)

        def stop(split, line, best, best_epoch, at=stop_at) -> None:
            if line.epoch == at:
                raise Stop

        with pytest.raises(Stop):
            run.train_run(folder, dataset=dataset, report=stop)
        torch.manual_seed(99)
        torch.rand(7)
        run.train_run(folder, dataset=dataset)
        assert same(weights(folder), weights(whole))
        lines = [(folder / "split-0" / "metrics.jsonl").read_text() for folder in (folder, whole)]
        cut = [
            [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in text.splitlines()]
            for text in lines
        ]
        assert cut[0] == cut[1]


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("split", [0, 1])
def test_a_folder_that_is_deleted_while_it_is_trained_is_missed_at_the_next_save(
    split: int, moved: bool, tmp_path
) -> None:
    dataset, folder = make_dataset("node", "binary"), tmp_path / "run"
    run.create_run(small(), folder, dataset)

    def delete(index, line, best, best_epoch) -> None:
        if (index, line.epoch) == (split, 2):
            folder.rename(tmp_path / "other") if moved else shutil.rmtree(folder)

    with pytest.raises(FolderGone, match=rf"run: was deleted or moved before epoch 6 of split {split} was saved"):
        run.train_run(folder, dataset=dataset, report=delete)
    assert not folder.exists()
    if moved:
        assert run.train_run(tmp_path / "other", dataset=dataset)["splits"][1]["epochs"] == 6


def test_a_folder_that_is_deleted_between_two_splits_is_missed(tmp_path, monkeypatch) -> None:
    dataset, folder, real = make_dataset("node", "binary"), tmp_path / "run", run.train_split

    def then_delete(*rest):
        result = real(*rest)
        shutil.rmtree(folder)
        return result

    for splits in ("0", "0-1"):
        run.create_run(small(splits=splits), folder, dataset)
        monkeypatch.setattr(run, "train_split", then_delete)
        with pytest.raises(FolderGone, match="run: was deleted or moved while it was trained"):
            run.train_run(folder, dataset=dataset)
        assert not folder.exists()


def test_the_command_says_that_its_folder_was_deleted(tmp_path, monkeypatch, capsys) -> None:
    from cognn.cli.main import main

    monkeypatch.chdir(tmp_path)
    real = run.train_split

    def delete(*rest):
        result = real(*rest)
        shutil.rmtree(tmp_path / "run")
        return result

    monkeypatch.setattr(run, "train_split", delete)
    small = ["--hidden-channels", "4", "--num-layers", "1", "--epochs", "1", "--splits", "0", "--quiet"]
    assert main(["train", "cycles", "--out", "run", *small]) == 1
    assert "cognn: run: was deleted or moved while it was trained" in capsys.readouterr().err


def test_kill_9_at_6_random_instants(tmp_path, monkeypatch) -> None:
    """The campaign kills at many more (``python -m tests.campaign --kinds kill``)."""
    dataset, config = make_dataset("graph", "binary"), small(epochs=150, splits="0", batch_size=8)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        run.create_run(config, folder, dataset)
    run.train_run(whole, dataset=dataset)
    rng = torch.Generator().manual_seed(0)
    log, state = killed / "split-0" / "metrics.jsonl", killed / "split-0" / "last" / "state.safetensors"
    with monkeypatch.context() as often:
        often.setattr(loop, "CHECKPOINT_SECONDS", 0.0)  # so that many a kill falls into the writing of a state
        for kill in range(6):
            wait = 0.05 * float(torch.rand((), generator=rng))
            train_until_killed(killed, dataset, state if kill % 2 else log, wait)  # with a new state, and maybe without
    assert load_tensors(state)[1]["progress"]["epoch"] > 2, "there must be something to go on from"
    run.train_run(killed, dataset=dataset)
    assert same(weights(killed), weights(whole))
    best = [load_tensors(folder / "split-0" / "best.safetensors")[0] for folder in (whole, killed)]
    assert same(*best)


@pytest.mark.parametrize("place", [3, 40])
def test_a_changed_log_is_refused(place: int, tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    def stop(split, line, best, best_epoch) -> None:
        if line.epoch == 3:
            raise KeyError

    with pytest.raises(KeyError):
        run.train_run(tmp_path, dataset=dataset, report=stop)
    log = tmp_path / "split-0" / "metrics.jsonl"
    content = bytearray(log.read_bytes())
    content[place] ^= 1
    log.write_bytes(content)
    with pytest.raises(RunError, match=r"metrics\.jsonl: is not what was written; delete"):
        run.train_run(tmp_path, dataset=dataset)


def test_ctrl_c_saves_and_goes_on(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=30, splits="0"), tmp_path / "a", dataset)
    run.train_run(tmp_path / "a", dataset=dataset)
    run.create_run(small(epochs=30, splits="0"), tmp_path / "b", dataset)

    def interrupt(split, line, best, best_epoch) -> None:
        if line.epoch == 7:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        run.train_run(tmp_path / "b", dataset=dataset, report=interrupt)
    assert json.loads((tmp_path / "b/split-0/metrics.jsonl").read_text().splitlines()[-1])["epoch"] == 7
    run.train_run(tmp_path / "b", dataset=dataset)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wish_to_stop_in_the_last_epoch_keeps_the_next_split_from_starting(number, tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=5, splits="0-1"), tmp_path, dataset)

    def interrupt(split, line, best, best_epoch) -> None:
        if line.epoch == 5:
            signal.raise_signal(number)

    with pytest.raises(Interrupted):
        run.train_run(tmp_path, dataset=dataset, report=interrupt)
    assert (tmp_path / "split-0" / "result.json").exists()
    assert not (tmp_path / "split-1").exists()
    assert len(run.train_run(tmp_path, dataset=dataset)["splits"]) == 2


def test_what_does_not_belong_together_is_refused_and_nothing_is_lost(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    with pytest.raises(RunError, match="holds a run already; resume it with --resume"):
        run.create_run(small(), tmp_path, dataset)
    run.train_run(tmp_path, dataset=dataset)
    changed = make_dataset("node", "binary")
    changed.x[0, 0] += 1
    with pytest.raises(RunError, match=r"best.safetensors: the dataset has changed since this run began"):
        run.train_run(tmp_path, dataset=changed)
    text = (tmp_path / "config.toml").read_text()
    (tmp_path / "config.toml").write_text(text.replace('splits = "0"', 'splits = ""').replace("lr = 0.003", "lr = 0.5"))
    with pytest.raises(RunError, match=r"best.safetensors: this run has lr=0.003, not 0.5"):
        run.train_run(tmp_path, dataset=dataset)  # or the second split would be by other options than the first
    (tmp_path / "config.toml").write_text(text)
    (tmp_path / "split-0" / "result.json").unlink()
    state = tmp_path / "split-0" / "last" / "state.safetensors"
    good = state.read_bytes()

    with pytest.raises(RunError, match="the dataset has changed since this run began"):
        run.train_run(tmp_path, dataset=changed)
    (tmp_path / "config.toml").write_text(text.replace("num_layers = 2", "num_layers = 3"))
    with pytest.raises(RunError, match="this run has num_layers=2, not 3"):
        run.train_run(tmp_path, dataset=dataset)
    (tmp_path / "config.toml").write_text(text)
    for damage in (good[:100], b"", b"not a checkpoint at all", good[:-20]):
        state.write_bytes(damage)
        with pytest.raises(RunError, match="damaged or not a checkpoint"):
            run.train_run(tmp_path, dataset=dataset)
        assert state.read_bytes() == damage
    state.write_bytes(good)
    run.train_run(tmp_path, dataset=dataset)


@pytest.mark.parametrize("garbage", ['{"metr', "[]", "{}"])
def test_a_damaged_result_says_how_to_get_it_again(garbage: str, tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=2), tmp_path, dataset)
    whole = run.train_run(tmp_path, dataset=dataset)
    result = tmp_path / "split-0" / "result.json"
    result.write_text(garbage)
    with pytest.raises(RunError, match=r"split-0/result.json: .*remove it and continue with --resume"):
        run.train_run(tmp_path, dataset=dataset)
    result.unlink()
    assert run.train_run(tmp_path, dataset=dataset) == whole


def test_a_full_disk_keeps_the_last_good_state(tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(splits="0"), tmp_path, dataset)
    run.train_run(tmp_path, dataset=dataset)
    state = tmp_path / "split-0" / "last" / "state.safetensors"
    good = state.read_bytes()
    from cognn.files import atomic

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(RunError, match=r"could not be written .No space left on device."):
        atomic.write(state, b"half a state")
    assert state.read_bytes() == good
    assert [path.name for path in state.parent.iterdir()] == ["state.safetensors"]


def test_a_run_killed_after_its_last_epoch_stops_early_all_the_same(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    run.create_run(small(epochs=200, patience=10, splits="0", lr=0.05), tmp_path, dataset)
    first, log = run.train_run(tmp_path, dataset=dataset)["splits"][0], tmp_path / "split-0" / "metrics.jsonl"
    before = log.read_text()
    (tmp_path / "split-0" / "result.json").unlink()
    assert run.train_run(tmp_path, dataset=dataset)["splits"][0] == first
    assert log.read_text() == before


def test_two_processes_do_not_train_one_split(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(loop, "LOCK_SECONDS", 0.1)
    dataset = make_dataset("node", "multiclass")
    run.create_run(small(splits="0", epochs=2), tmp_path / "r", dataset)
    with exclusive(tmp_path / "r" / "split-0" / ".lock", ""):
        with pytest.raises(RunError, match="split-0: another process is training this split; wait for it, or end it"):
            run.train_run(tmp_path / "r", dataset=dataset)
        assert not list((tmp_path / "r").rglob("*.jsonl"))
    assert run.train_run(tmp_path / "r", dataset=dataset)["splits"]
    assert run.train_run(tmp_path / "r", dataset=dataset)["splits"]


def test_a_split_waits_for_the_orphan_of_a_killed_command(tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    run.create_run(small(splits="0", epochs=2), tmp_path / "r", dataset)
    held = ExitStack()
    held.enter_context(exclusive(tmp_path / "r" / "split-0" / ".lock", ""))
    orphan = threading.Timer(0.5, held.close)
    orphan.start()
    began = time.monotonic()
    assert run.train_run(tmp_path / "r", dataset=dataset)["splits"]
    assert time.monotonic() - began > 0.4
    orphan.join()


def test_a_file_system_without_locks_is_trained_on_all_the_same(tmp_path, monkeypatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    dataset = make_dataset("node", "multiclass")
    run.create_run(small(splits="0", epochs=2), tmp_path / "r", dataset)
    assert run.train_run(tmp_path / "r", dataset=dataset)["splits"]
