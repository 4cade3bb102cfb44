"""What the pages show runs: their Python from top to bottom in an empty folder, and every command has its options.

The first tutorial is followed to the letter in ``test_first_graph.py``, ``deploy.md`` in ``test_deploy_page.py``, the
notebooks whenever the site is built.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cognn
from cognn.cli.arguments import parse
from cognn.cli.main import COMMANDS, main
from cognn.config.toml import load_config
from cognn.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*/*.md"))]
PAGES = [page for page in PAGES if page.parent.name not in ("results", "_build")]
SEPARATE = ("start.md", "deploy.md")
BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EPOCHS = 3
"""Less of the same, for the time of the suite."""


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


WITH_CODE = [page for page in PAGES if page.name not in SEPARATE and blocks(page)]


def tables() -> None:
    """A graph of 40 nodes, and pairs of them."""
    n = 40
    pl.DataFrame({"id": range(n), "size": [float(i % 5) for i in range(n)]}).write_csv("nodes.csv")
    ends = [(i, (i + step) % n) for i in range(n) for step in (1, 2, 5)]
    pl.DataFrame(ends, schema=["source", "target"], orient="row").write_csv("edges.csv")
    pl.DataFrame(ends[:4], schema=["source", "target"], orient="row").write_csv("pairs.csv")


def board() -> None:
    assert main(["data", "build", "minesweeper-board", "--out", "board.store"]) == 0


def run_of_a_board() -> None:
    """With heads and both directions, since the page also shows what those have."""
    options: dict[str, Any] = {"action_heads": "4", "hidden_channels": 8, "num_layers": 2, "directions": "both"}
    cognn.fit("minesweeper-board", out="runs/mine", splits="0", epochs=EPOCHS, **options)


PRESUPPOSED: dict[str, Callable[[], None]] = {"links.md": tables, "big-graphs.md": board, "report.md": run_of_a_board}
"""What the user of a page has already."""


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    PRESUPPOSED.get(page.name, lambda: None)()
    fit = cognn.fit
    monkeypatch.setattr(cognn, "fit", lambda *words, **options: fit(*words, **options | {"epochs": EPOCHS}))
    names: dict[str, Any] = {}
    for kind, code in blocks(page):
        versions = [code]
        if kind == "diff":  # the script before and the script after
            lines = code.splitlines()
            versions = ["\n".join(line[1:] for line in lines if line[:1] in (sign, " ", "")) for sign in "-+"]
            assert versions[0] != versions[1]
        for version in versions:
            exec(compile(version, page.name, "exec"), names)


def commands(page: Path) -> list[list[str]]:
    """The words of every command of a page, after ``cognn``."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    lines = re.findall(
        r"^ {4,}(?:srun |torchrun .* -m )?(?:\.venv/bin/)?cognn ((?:[^\s`]| (?! *#))+)", text, re.MULTILINE
    )
    inline = re.findall(r"`cognn ([a-z]+(?: [^`]+)?)`", " ".join(text.split()))
    return [shlex.split(line) for line in [*lines, *inline] if "..." not in line]


def test_every_command_of_every_page_has_the_options_that_it_shows() -> None:
    found = dict.fromkeys(tuple(words) for page in PAGES for words in commands(page))
    assert len(found) > 80
    for name, *words in found:
        assert name in COMMANDS
        options = COMMANDS[name].options
        if isinstance(options, dict) and words:
            assert words[0] in options
            options, words = options[words[0]].options, words[1:]
        if not words or "--help" in words:
            continue
        needed = COMMANDS[name].arguments.split()[:1]
        if words[0].startswith("--") and needed and not needed[0].startswith("["):
            words = [*needed, *words]  # the option alone, in running text
        chosen = parse(options, words, f"cognn {name}")  # raises a line with the wrong word
        if name == "train" and chosen.recipe is not None and chosen.recipe.suffix != ".toml":
            load_config(chosen.recipe)
        if name == "reproduce" and chosen.name not in ("", "NAME"):
            assert chosen.name in EXPERIMENTS
