"""What `data check` and the first lines of `train` say about data that are not what they seem."""

from pathlib import Path

import numpy as np
import pytest

from cognn.cli.main import main
from tests.cli.test_main import SIZES
from tests.cli.test_outputs import error_of

ROWS = [f"{i},{i * 0.37 % 1:.3f},{i * 0.73 % 1:.3f},c{i % 3}" for i in range(30)]
TRAIN = [word for word in SIZES if word != "--quiet"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def tables(rows: list[str]) -> list[str]:
    Path("n.csv").write_text("id,a,b,label\n" + "\n".join(rows) + "\n")
    Path("e.csv").write_text("source,target\n" + "".join(f"{i},{(i * 7 + 1) % 30}\n" for i in range(30)))
    return ["n.csv", "--edges", "e.csv", "--undirected"]


def archive(**more: np.ndarray) -> list[str]:
    ends = np.stack([np.arange(30), (np.arange(30) * 7 + 1) % 30])
    np.savez("g.npz", y=np.arange(30) % 3, edge_index=ends, **more)
    return ["g.npz", "--undirected"]


def said(data: list[str], capsys) -> tuple[str, str]:
    """What the check and the first lines of a training say."""
    checked = main(["data", "check", *data]), capsys.readouterr().out
    trained = main(["train", *data, *TRAIN, "--out", "run"]), capsys.readouterr().err
    assert (checked[0], trained[0]) == (0, 0)
    return " ".join(checked[1].split()), " ".join(trained[1].split())


def test_arrays_that_are_not_used_are_named_with_what_may_be_meant(capsys) -> None:
    more = {"x": np.random.default_rng(0).normal(size=(30, 2)), "edge_weights": np.ones(30), "other": np.ones(3)}
    for text in said(archive(**more), capsys):
        assert "not used: 'edge_weights' (is it edge_weight?), 'other'; used: " in text
    assert "used x, y, edge_index" not in text  # of the training


def test_an_archive_without_x_says_what_it_has(capsys) -> None:
    for text in said(archive(X=np.ones((30, 2))), capsys):
        assert "no features: every node gets a constant 1" in text
        assert "not used: 'X' (is it x?); used: y, edge_index" in text


def test_an_archive_that_is_used_whole_has_nothing_to_name(capsys) -> None:
    for text in said(archive(x=np.random.default_rng(0).normal(size=(30, 2))), capsys):
        assert "not used" not in text


def test_a_few_short_rows_are_reported(capsys) -> None:
    rows = [row.rsplit(",", 1)[0] if i in (4, 8) else row for i, row in enumerate(ROWS)]
    for text in said(tables(rows), capsys):
        assert "rows with fewer fields than the header: 2, in row 5, 9; their last cells are taken as missing" in text


def test_empty_cells_are_no_short_rows(capsys) -> None:
    rows = [row.rsplit(",", 1)[0] + "," if i % 3 else row.replace("c", '"c\n') + '"' for i, row in enumerate(ROWS)]
    rows = [row if i % 3 else ROWS[i] for i, row in enumerate(rows)]
    rows[0] = rows[0].replace("c0", '"c\n0"')  # a quoted line break is no row of its own
    rows[3] = rows[3].replace("c0", "c1")
    for text in said(tables(rows), capsys):
        assert "fewer fields" not in text


@pytest.mark.parametrize("command", ["train", "data build"])
def test_many_short_rows_are_refused_unless_cells_may_be_missing(command, capsys) -> None:
    rows = [row if i % 5 else row.rsplit(",", 1)[0] for i, row in enumerate(ROWS)]
    nodes, _, edges, directed = tables(rows)
    words = [*command.split(), nodes, *(["--edges"] if command == "train" else []), edges, directed, "--quiet"]
    words += SIZES[:-1] if command == "train" else []
    shown = error_of([*words, "--out", "out"], capsys)
    assert "fewer fields than the header: 6, in row 1, 6, 11, 16, 21, ...; complete them, or give --fill" in shown
    assert main([*words, "--fill", "mean", "--out", "out"]) == 0


@pytest.mark.parametrize("age", ["1e39", "-1e20"])
def test_a_number_that_drowns_the_others_is_named(age, capsys) -> None:
    rows = [f"5,{age},0.3,c0" if i == 5 else row for i, row in enumerate(ROWS)]
    for text in said(tables(rows), capsys):
        assert "a number so large that the others look alike: a; correct it, or --ignore a" in text


def test_ordinary_tails_are_not_named(capsys) -> None:
    rows = [f"{i},{10 ** (i / 6):.3f},{int(i == 3)},c{i % 3}" for i in range(30)]
    for text in said(tables(rows), capsys):
        assert "look alike" not in text


def test_a_graph_without_edges_is_named(capsys) -> None:
    data = tables(ROWS)
    Path("e.csv").write_text("source,target\n")
    for text in said(data, capsys):
        assert "no edges: every node is alone" in text


def test_a_regression_of_one_value_is_refused(capsys) -> None:
    data = tables([row.rsplit(",", 1)[0] + ",0.5" for row in ROWS])
    assert "has only the value 0.5; there is nothing to learn" in error_of(["train", *data, *SIZES], capsys)
