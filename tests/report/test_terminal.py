"""What a person sees in a terminal of any width."""

import io
import math
from pathlib import Path

import pytest

from cognn.report import progress, terminal
from cognn.report.terminal import show_markdown, show_summary

PAGE = "# A title\n\n| dataset | model |\n|---|---|\n| roman-empire-glove | Co-GNN(mean, mean) |\n"


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = terminal.Console(file=screen, width=20, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "Console", lambda: console)
    show_markdown(PAGE)
    shown = screen.getvalue()
    assert "…" not in shown
    first, second = ([line[a:b].strip() for line in shown.splitlines()] for a, b in ((0, 10), (10, 20)))
    assert "roman-empire-glove" in "".join(first)
    assert "Co-GNN(mean,mean)" in "".join(second)


def test_a_pipe_gets_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    show_markdown(PAGE)
    assert capsys.readouterr().out == PAGE + "\n"


@pytest.mark.parametrize("name", ["n[v2].csv", "x[/y]", "r5[bold]", ":car:"])
def test_a_name_is_no_markup(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = terminal.Console(file=screen, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "Console", lambda: console)
    split = {"split": 0, "train": 0.5, "val": 0.5, "test": 0.5, "best_epoch": 1, "epochs": 2, "seconds": 3.0}
    show_summary({"dataset": name, "model": "cognn", "metric": "mae", "splits": [split]}, Path("runs") / name)
    shown = screen.getvalue().splitlines()
    assert shown[0].strip() == f"{name}, cognn, mae"
    assert shown[-1] == f"run: {Path('runs') / name}"


def test_a_score_that_is_not_defined_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    split = {"split": 0, "train": 0.5, "val": 0.5, "test": math.nan, "best_epoch": 1, "epochs": 2, "seconds": 3.0}
    show_summary({"dataset": "own", "model": "cognn", "metric": "mae", "splits": [split]}, Path("run"))
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["x[/y]", "r5[bold]"])
def test_a_bar_shows_a_name_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = terminal.Console(file=screen, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    with progress.counting() as count:
        count(name, 1, 2)
    assert name in screen.getvalue()


@pytest.mark.parametrize(("name", "remedy"), [("no", "--class-weight balanced"), ("link", "--threshold validation")])
def test_one_class_for_all_comes_with_a_remedy(name: str, remedy: str, capsys: pytest.CaptureFixture[str]) -> None:
    score = {"mean": 0.6, "std": None}
    split = {"split": 0, "train": 0.6, "val": 0.6, "test": 0.6, "best_epoch": 1, "epochs": 1, "seconds": 1.0}
    summary = {"dataset": "d", "model": "m", "metric": "roc_auc", "splits": [split | {"only_class": name}]}
    show_summary(summary | dict.fromkeys(("train", "val", "test"), score), Path("run"))
    shown = capsys.readouterr().out
    assert f"all test items are predicted as '{name}'" in shown
    assert remedy in shown


def test_large_errors_fit_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    values = dict(zip(("train", "val", "test"), (276918.6612, 31846012.9414, 0.1234), strict=True))
    split = {"split": 0, **values, "best_epoch": 5, "epochs": 10, "seconds": 0.53}
    parts = {part: {"mean": value, "std": None} for part, value in values.items()}
    show_summary({"dataset": "d", "model": "m", "metric": "rmse", "splits": [split], **parts}, Path("run"))
    shown = capsys.readouterr().out
    for text in ("276,919", "31,846,013", "0.1234"):
        assert text in shown
