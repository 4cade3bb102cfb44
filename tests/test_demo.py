import re

import pytest

from cognn.cli.main import main
from cognn.demo import PAPER


def test_the_demo_shows_a_table_and_a_tree(capsys, tmp_path) -> None:
    picture = tmp_path / "demo.svg"
    assert main(["demo", "--epochs", "15", "--trees", "30", "--svg", str(picture)]) == 0
    shown = capsys.readouterr().out
    for name, published in PAPER.items():
        assert re.search(rf"{re.escape(name)}\s*│\s*\d\.\d{{3}} │ {published:.3f}", shown)
    assert "99.71%" in shown
    assert "what is left of it" in shown
    assert picture.read_text().startswith("<svg")


@pytest.mark.parametrize("option", ["epochs", "trees"])
def test_the_demo_refuses_nonsense(option, capsys) -> None:
    assert main(["demo", f"--{option}", "0"]) == 2
    assert capsys.readouterr().err == f"cognn: {option}: expected 1 or more, got 0\n"
