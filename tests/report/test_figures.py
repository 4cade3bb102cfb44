import numpy as np
import pytest
from matplotlib.figure import Figure

from cognn.errors import RunError
from cognn.report import figures
from cognn.report.palette import FREE, MINE
from cognn.report.write import write_figures


def test_curves_draw_what_they_are_given() -> None:
    figure = figures.curves({"a": ([1, 2, 3], [0.1, 0.2, 0.4]), "b": ([1, 2], [1, 2], [0.5, 0.5])}, "depth", "score")
    (axes,) = figure.axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[0.1, 0.2, 0.4], [1, 2]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("depth", "score")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (0.5, 2.5)


def test_kept_ratio_counts_layers_from_one() -> None:
    alone = figures.kept_ratio([0.5, 0.25]).axes[0]
    assert alone.lines[0].get_xdata().tolist() == [1, 2]
    assert alone.get_legend() is None
    assert len(figures.kept_ratio({"a": [1.0], "b": [0.5]}).axes[0].lines) == 2
    (band,) = figures.kept_ratio({"a": [0.5, 0.5], "b": [1, 1]}, spreads={"a": [0.25, 0.25]}).axes[0].collections
    assert {y for _, y in band.get_paths()[0].vertices} == {0.25, 0.75}


def test_action_shares_stack_to_one() -> None:
    shares = np.array([[0.4, 0.3, 0.2, 0.1], [1, 0, 0, 0]])
    bars = figures.action_shares(shares).axes[0].patches
    assert len(bars) == 8
    tops = [bar.get_y() + bar.get_height() for bar in bars]
    assert tops[-2:] == pytest.approx([1, 1])


def test_heat_map_writes_numbers_and_leaves_gaps() -> None:
    figure = figures.heat_map([[0.5, np.nan], [1, 2]], ["a", "b"], ["c", "d"], "title", "MAE")
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.50", "1.00", "2.00"]
    with pytest.raises(ValueError, match=r"values: expected shape \(2, 1\), got \(1, 2\)"):
        figures.heat_map([[1, 2]], ["a", "b"], ["c"])


def test_dollars_in_names_are_no_formula(tmp_path) -> None:
    names, title = ["$_$", "$10-$20", r"a\$", "$"], "$^$.csv"
    drawn = [
        figures.kept_ratio({name: [0.5] for name in names}, title),
        figures.heat_map(np.ones((4, 4)), names, names, title),
        figures.score_comparison({name: [(0.5, 0.1)] * 4 for name in names}, names, "score", title),
    ]
    for number, figure in enumerate(drawn):
        (path,) = figures.save(figure, tmp_path / str(number), ("svg",))
        for text in (*names, title):
            assert f">{text}</text>" in path.read_text(encoding="utf-8")


def test_a_name_with_a_line_in_front_is_in_the_legend() -> None:
    figure = figures.kept_ratio({"_others": [0.5], "a": [0.4]})
    assert [text.get_text().strip() for text in figure.axes[0].get_legend().get_texts()] == ["_others", "a"]


def test_minesweeper_greys_out_who_cannot_reach_the_cell(board_run) -> None:
    node, hops = 40, 3
    figure = figures.minesweeper(board_run.board, board_run.trace, node, layers=[0, 2], hops=hops)
    assert len(figure.axes) == 2
    place = board_run.board.positions
    near = np.flatnonzero(np.abs(place - place[node]).max(1) <= hops)
    for axes, layer in zip(figure.axes, (0, 2), strict=True):
        reaches = board_run.trace.reaches(node)[layer].numpy()
        cells = axes.collections[0]
        assert np.array_equal(cells.get_offsets(), place[near])
        glyphs = [len(found.get_offsets()) for found in axes.collections[1:] if found.get_zorder() == 4]
        assert sum(glyphs) == len(near)  # every cell shows something
        assert len(glyphs) == len(set(board_run.board.shows[near]))
        for cell, color in zip(near, cells.get_facecolors(), strict=True):
            seen = tuple(int(255 * part + 0.5) for part in color[:3])
            name = "#000000" if cell == node else (MINE if board_run.board.mines[cell] else FREE)
            wanted = tuple(bytes.fromhex(name[1:])) if reaches[cell] else (0xE4, 0xE4, 0xE4)
            assert seen == wanted


def test_save_writes_every_kind_and_the_same_file_twice(tmp_path) -> None:
    paths = figures.save(figures.kept_ratio([0.5]), tmp_path / "new" / "kept.v1", ("svg", "pdf", "png"))
    assert [path.name for path in paths] == ["kept.v1.svg", "kept.v1.pdf", "kept.v1.png"]
    first = [path.read_bytes() for path in paths]
    assert [content[:4] for content in first[1:]] == [b"%PDF", b"\x89PNG"]
    assert b"kept edges" in first[0]  # text stays text
    figures.save(figures.kept_ratio([0.5]), tmp_path / "new" / "kept.v1", ("svg", "pdf", "png"))
    assert [path.read_bytes() for path in paths] == first
    with pytest.raises(ValueError, match="kinds: expected some of svg, pdf, png, got 'gif'"):
        figures.save(Figure(), tmp_path / "x", ("gif",))
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="could not be written"):
        figures.save(Figure(), tmp_path / "file" / "x", ("svg",))


def test_the_figures_of_a_run(board_run, graph_run, tmp_path) -> None:
    names = {path.stem for path in write_figures(board_run, tmp_path / "board", kinds=("svg",))}
    assert names == {
        "training",
        "action-shares",
        "kept-ratio",
        "kept-ratio-by-class",
        "kept-ratio-by-degree",
        "kept-ratio-by-correctness",
        "minesweeper",
        "score-by-kept",
    }
    assert "minesweeper" not in {path.stem for path in write_figures(graph_run, tmp_path / "graphs", kinds=("svg",))}
