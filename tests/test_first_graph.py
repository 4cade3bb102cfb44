"""The first page that a user follows: every command of it, in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.files.json import read_json

PAGE = (Path(__file__).parents[1] / "docs" / "tutorials" / "start.md").read_text(encoding="utf-8")
FASTER = {"train": ["--epochs", "60"], "compare": ["--trials", "1", "--random-splits", "5", "--epochs", "60"]}
"""Less of the same, for the time of the suite."""


def test_every_command_of_the_page_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(block, "start.md", "exec"), {})
    commands = [shlex.split(line) for line in re.findall(r"^    cognn (.*)$", PAGE, re.MULTILINE)]
    assert [words[0] for words in commands] == ["data", "train", "evaluate", "predict", "report", "compare"]
    for words in commands:
        assert main(words + FASTER.get(words[0], [])) == 0
    assert (tmp_path / "runs/first/report.html").exists()
    assert (tmp_path / "next-town.csv").read_text(encoding="utf-8").startswith("id,prediction,p_yes")
    (compared,) = (tmp_path / "runs").glob("*-compare")
    assert "edges help" in read_json(compared / "result.json")["verdict"]
    said = " ".join(capsys.readouterr().out.split())
    quoted = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in "".join(quoted).splitlines():
        assert " ".join(line.split()) in said
