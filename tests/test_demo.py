import re
import sys

import pytest

from cognn import demo


def test_the_demo_shows_a_table_and_a_tree(monkeypatch, capsys, tmp_path) -> None:
    picture = tmp_path / "demo.svg"
    monkeypatch.setattr(sys, "argv", ["demo", "--epochs", "15", "--trees", "30", "--svg", str(picture)])
    demo.main()
    shown = capsys.readouterr().out
    for name, published in demo.PAPER.items():
        assert re.search(rf"{re.escape(name)}\s*│\s*\d\.\d{{3}} │ {published:.3f}", shown)
    assert "99.71%" in shown
    assert "what is left of it" in shown
    assert picture.read_text().startswith("<svg")


def test_the_demo_refuses_nonsense(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["demo", "--epochs", "0"])
    with pytest.raises(SystemExit) as stopped:
        demo.main()
    assert stopped.value.code == 2
    assert "--epochs: expected 1 or more, got 0" in capsys.readouterr().err
