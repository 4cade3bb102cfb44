"""Where the commands write: links, pipes, standard output, and runs that moved, failed or were tampered with."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.config.run_folder import run_config
from cognn.report import figures
from tests.cli.test_main import SIZES, tables


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A folder with tables and a finished run that names them by relative paths."""
    folder = tmp_path_factory.mktemp("project")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["train", *tables(folder), *SIZES, "--random-splits", "2", "--out", "run"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(project, tmp_path, monkeypatch) -> Path:
    """A copy of it."""
    shutil.copytree(project, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def error_of(words: list[str], capsys) -> str:
    assert main(words) == 2
    shown = capsys.readouterr().err.strip()
    assert "\n" not in shown
    return shown


def test_standard_output_has_the_result_alone(here, capfd) -> None:
    assert main(["predict", "run", "--out", "-"]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown[0].startswith("id,prediction,p_blue")
    assert len(shown) == 41
    assert main(["evaluate", "run", "--out", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["metric"] == "accuracy"
    assert not Path("-").exists()


@pytest.mark.parametrize("words", [["predict", "run"], ["evaluate", "run"], ["report", "run"]])
def test_a_pipe_that_nothing_reads_stays_a_pipe(here, words, capsys) -> None:
    os.mkfifo("out.csv")
    assert "pipe that nothing reads" in error_of([*words, "--out", "out.csv"], capsys)
    assert stat.S_ISFIFO(os.lstat("out.csv").st_mode)


@pytest.mark.parametrize(
    "words",
    ["report run --out=", "evaluate run --out", "train --out", "train --resume", "predict", "report run --figures"],
)
def test_an_empty_path_is_not_the_current_folder(here, words, capsys) -> None:
    arguments = words.split() if words.endswith("=") else [*words.split(), ""]
    assert "expected a path, got an empty text" in error_of(arguments, capsys)


@pytest.mark.parametrize("name", ["result.json", "split-1", "split-1/metrics.jsonl", "split-1/last/state.safetensors"])
def test_a_link_in_a_run_is_refused_and_its_target_untouched(here, name, capsys) -> None:
    Path("run/split-1/result.json").unlink()
    target = Path("target")
    shutil.move(Path("run") / name, target)
    (Path("run") / name).symlink_to(target.resolve())
    before = {path: path.stat().st_mtime_ns for path in [target, *target.rglob("*")]}
    assert f"{name}: is a symbolic link" in error_of(["train", "--resume", "run", "--quiet"], capsys)
    assert {path: path.stat().st_mtime_ns for path in [target, *target.rglob("*")]} == before


def test_a_report_does_not_follow_a_link_in_the_run(here, capsys) -> None:
    Path("mine").write_text("mine")
    Path("run/report.html").symlink_to("../mine")
    assert "report.html: is a symbolic link" in error_of(["report", "run"], capsys)
    assert Path("mine").read_text() == "mine"


def test_relative_data_start_where_the_run_was_trained(here, tmp_path, monkeypatch, capsys) -> None:
    config = Path("run/config.toml")  # the copy was trained in another folder
    config.write_text(config.read_text().replace(str(run_home(config)), str(here)))
    monkeypatch.chdir(tmp_path)
    assert run_config(Path("project/run")).data.edges == str(here / "edges.parquet")
    assert main(["predict", "project/run", "--out", "there.csv"]) == 0
    assert main(["train", "--resume", "project/run", "--quiet"]) == 0
    (here / "nodes.csv").rename(here / "other.csv")
    assert f"it was trained in {here}" in error_of(["evaluate", "project/run"], capsys)


def run_home(config: Path) -> str:
    return next(line for line in config.read_text().splitlines() if line.startswith("folder")).split('"')[1]


def test_a_project_that_moved_is_read_from_the_current_folder(project, here, capsys) -> None:
    config = Path("run/config.toml")
    config.write_text(config.read_text().replace(str(project), "/nowhere/at/all"))
    assert main(["evaluate", "run"]) == 0


def test_a_run_that_fails_before_a_checkpoint_leaves_nothing(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", *tables(tmp_path), *SIZES, "--out", "run"]
    assert "not finite" in error_of([*words, "--lr", "1e300"], capsys)
    assert not Path("run").exists()
    Path("run").mkdir()
    Path("run/report.html").write_text("mine")
    assert "not finite" in error_of([*words, "--lr", "1e300"], capsys)
    assert [path.name for path in Path("run").iterdir()] == ["report.html"]
    assert main(words) == 0


def test_a_figure_that_cannot_be_written_leaves_no_half(here, monkeypatch, capsys) -> None:
    drawn = figures.Figure.savefig

    def full(self, path, **options) -> None:
        drawn(self, path, **options)
        if options["format"] == "pdf":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", full)
    assert "training.pdf: could not be written" in error_of(["report", "run", "--figures", "drawn"], capsys)
    assert [path.name for path in Path("drawn").iterdir()] == ["training.svg"]


def test_leftovers_of_killed_saves_go_with_the_next_command(here) -> None:
    from cognn.files import atomic

    left = [Path("run") / place / f"{atomic._PREFIX}999999999-abc" for place in ("", "split-0", "split-0/last")]
    for path in left:
        path.write_text("half")
    assert main(["evaluate", "run"]) == 0
    assert not any(path.exists() for path in left)


def test_formulas_in_ids_are_escaped_on_request(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    words = tables(tmp_path)
    nodes = Path("nodes.csv").read_text().replace("n7,", "=7,")
    Path("nodes.csv").write_text(nodes)
    Path("edges.csv").write_text("source,target\nn1,n2\nn2,=7\n")
    assert main(["train", words[0], "--edges", "edges.csv", *words[3:], *SIZES, "--out", "run"]) == 0
    for more, name in (([], "=7"), (["--escape-formulas"], "'=7")):
        assert main(["predict", "run", "--out", "p.csv", *more]) == 0
        assert Path("p.csv").read_text().splitlines()[8].startswith(f"{name},")
    store = ["data", "build", "nodes.csv", "edges.csv", "--like", "run", "--quiet", "--out", "store"]
    assert main(store) == 0
    assert main(["predict", "run", "store", "--out", "p.csv", "--escape-formulas"]) == 0
    assert Path("p.csv").read_text().splitlines()[8].startswith("'=7,")
    capsys.readouterr()
    assert "escape_formulas: is for CSV" in error_of(
        ["predict", "run", "--out", "p.parquet", "--escape-formulas"], capsys
    )
    assert "need a file" in error_of(["predict", "run", "store", "--out", "-"], capsys)
