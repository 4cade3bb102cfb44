"""``cognn --print-completion``: the scripts in real shells; those that are not installed are skipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cognn.cli.main import main

WORDS = [
    ("tr", ["train"]),
    ("data che", ["check"]),
    ("train --ep", ["--epochs"]),
    ("train nodes.csv --und", ["--undirected"]),
    ("train nodes.csv --undirected --eval", ["--eval-every"]),
    ("train --schedule s", ["step"]),
    ("data build --mem", ["--memory"]),
    ("reproduce --budget q", ["quick"]),
]

BASH = """
source ./zz
read -ra COMP_WORDS <<< "$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p cognn | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh completes only in an interactive line editor; these stand in for its functions.
ZSH = """
_files() { print FILES }
_describe() { print -l -- ${${(P)2}%%:*} }
words=(${(s: :)1}) CURRENT=${#words}
source ./zz
"""
FISH = "source ./zz; complete --do-complete $argv[1] | string replace --regex '\\t.*' ''"


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> str:
    """A shell, with its script in the current folder."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    monkeypatch.chdir(tmp_path)
    assert main(["--print-completion", request.param]) == 0
    Path("zz").write_text(capsys.readouterr().out)
    return request.param


def complete(shell: str, line: str) -> list[str]:
    command = {
        "bash": ["bash", "--norc", "-c", BASH, "bash", line],
        "zsh": ["zsh", "-f", "-c", ZSH, "zsh", line],
        "fish": ["fish", "--no-config", "-c", FISH, line],
    }
    done = subprocess.run(command[shell], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_script_is_valid(shell: str) -> None:
    done = subprocess.run([shell, "-n", "zz"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("words", "expected"), WORDS)
def test_commands_options_and_values(shell: str, words: str, expected: list[str]) -> None:
    assert complete(shell, f"cognn {words}") == expected


@pytest.mark.parametrize("words", ["train nod", "train nodes.csv --edges nod", "predict nod"])
def test_where_nothing_fits_the_shell_completes_names_of_files(shell: str, words: str) -> None:
    Path("nodes.csv").touch()
    found = complete(shell, f"cognn {words}")
    if shell == "bash":  # by `complete -o default`, which takes over if the function offers nothing
        assert "complete -o default" in Path("zz").read_text()
    assert {"bash": not found, "zsh": found == ["FILES"], "fish": "nodes.csv" in found}[shell]


@pytest.mark.parametrize(("words", "got"), [([], "nothing"), (["ksh"], "'ksh'")])
def test_an_unknown_shell_is_refused(words: list[str], got: str, capsys) -> None:
    assert main(["--print-completion", *words]) == 2
    assert capsys.readouterr().err == f"cognn: print-completion: expected bash, zsh or fish, got {got}\n"
