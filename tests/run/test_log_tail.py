"""Progress of splits that other processes train."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from cognn.run.log_tail import LogTail, follow_logs
from cognn.train.loop import Epoch, _open_log, log_digest


def line(epoch: int, val: float, seconds: float = 1.0) -> str:
    return json.dumps(asdict(Epoch(epoch, 0.1, 0.1, 0.5, val, 0.5, seconds))) + "\n"


def test_lines_come_once_and_whole_with_the_best_so_far(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    up, down = LogTail(path, True), LogTail(path, False)
    assert up.read() == []
    third = line(3, 0.6)
    path.write_text(line(1, 0.5) + line(2, 0.7) + third[:9])
    assert [(told.epoch, *best) for told, *best in up.read()] == [(1, 0.5, 1), (2, 0.7, 2)]
    assert up.read() == []
    path.write_text(line(1, 0.5) + line(2, 0.7) + third)
    assert [(told.epoch, *best) for told, *best in up.read()] == [(3, 0.7, 2)]
    assert [(told.epoch, *best) for told, *best in down.read()] == [(1, 0.5, 1), (2, 0.5, 1), (3, 0.5, 1)]


@pytest.mark.parametrize("seconds", [1.0, 2.25, 123456.789012345])
@pytest.mark.parametrize("more", [20, 50])
def test_a_log_that_is_cut_back_and_written_anew_is_followed(seconds: float, more: int, tmp_path: Path) -> None:
    path, told = tmp_path / "split-4" / "metrics.jsonl", []
    path.parent.mkdir()
    path.write_text("".join(line(epoch, epoch / 100) for epoch in range(1, 41)))
    replay = follow_logs(tmp_path, [4], lambda *seen: told.append(seen), True)
    replay()
    size = len("".join(line(epoch, epoch / 100) for epoch in range(1, 11)))
    with _open_log(path, size, log_digest(path, size)) as file:
        for epoch in range(11, more + 1):
            file.write(line(epoch, epoch / 100, seconds))
        file.flush()
        replay()
        file.write(line(more + 1, 1.0, seconds))
    replay()
    assert [seen[1].epoch for seen in told] == list(range(1, max(40, more + 1) + 1))
    assert all(seen[0] == 4 and seen[3] == seen[1].epoch for seen in told)


@pytest.mark.parametrize("left", ["", line(1, 0.5), line(1, 0.5) + line(2, 0.5)[:7]])
def test_a_log_that_lost_its_end_goes_on_with_whole_lines(left: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(left)
    with _open_log(path, 1000, "of the lost log") as file:
        file.write(line(3, 0.6))
    assert [json.loads(text)["epoch"] for text in path.read_text().splitlines()] == ([1, 3] if left else [3])
