"""What a person sees in a terminal of any width."""

import io

import pytest

from cognn.report import terminal
from cognn.report.terminal import show_page

PAGE = "# A title\n\n| dataset | model |\n|---|---|\n| roman-empire-glove | Co-GNN(mean, mean) |\n"


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = terminal.Console(file=screen, width=20, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "Console", lambda: console)
    show_page(PAGE)
    shown = screen.getvalue()
    assert "…" not in shown
    first, second = ([line[a:b].strip() for line in shown.splitlines()] for a, b in ((0, 10), (10, 20)))
    assert "roman-empire-glove" in "".join(first)
    assert "Co-GNN(mean,mean)" in "".join(second)


def test_a_pipe_gets_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    show_page(PAGE)
    assert capsys.readouterr().out == PAGE + "\n"
