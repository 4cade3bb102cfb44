import numpy as np

from cognn.report.data.heads import similar_order
from cognn.report.head_figures import head_agreement, kept_by_head
from cognn.report.write import write_figures


def test_maps_draw_what_they_are_given() -> None:
    kept = np.linspace(0, 1, 12 * 64).reshape(12, 64)
    axes = kept_by_head(kept).axes[0]
    assert np.array_equal(axes.images[0].get_array(), kept)
    assert [text.get_text() for text in axes.get_yticklabels()] == [str(layer) for layer in range(1, 13)]
    alike = np.array([[1, 0.2, 0.8], [0.2, 1, 0.3], [0.8, 0.3, 1]])
    axes, order = head_agreement(alike).axes[0], similar_order(alike)
    drawn = axes.images[0].get_array()
    assert drawn.mask.tolist() == np.eye(3, dtype=bool).tolist()
    assert drawn[0, 1] == alike[order[0], order[1]]
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(head) for head in order]


def test_the_figures_of_a_run_with_heads(heads_run, board_run, tmp_path) -> None:
    names = {path.stem: path for path in write_figures(heads_run, tmp_path / "heads", kinds=("svg",))}
    assert {"kept-by-head", "head-agreement", "kept-ratio", "minesweeper"} <= set(names)
    assert "edges kept by any of 4 heads" in names["minesweeper"].read_text(encoding="utf-8")
    assert "kept-by-head" not in {path.stem for path in write_figures(board_run, tmp_path / "one", kinds=("svg",))}
