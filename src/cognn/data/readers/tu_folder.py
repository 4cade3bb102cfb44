"""Graphs in the files of the TU collection: ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt``."""

from pathlib import Path

import polars as pl

from cognn.data.tables.roles import Tables
from cognn.data.tables.table import Table
from cognn.errors import DataError
from cognn.files.safe_read import data_errors, quote_names

INDICATOR = "_graph_indicator.txt"
_HINT = "expected the same number of values with a comma between them on every line"


def is_tu_folder(folder: Path) -> bool:
    """Whether a folder holds the files of a dataset of the TU collection."""
    return bool(_names(folder))


def read_tu_folder(path: str) -> Tables:
    """Read the graphs in a folder as tables, so that categories and scales hold for new graphs too.

    ==================================  ==================================================================
    file                                content, a line for every node, edge or graph
    ==================================  ==================================================================
    ``NAME_graph_indicator.txt``        the graph of the node
    ``NAME_A.txt``                      the two ends of the edge, counted from 1
    ``NAME_graph_labels.txt``           optional: the class of the graph, in the column ``label``
    ``NAME_graph_attributes.txt``       optional: numbers of the graph, in columns ``attribute``, which can be targets
    ``NAME_node_labels.txt``            optional: categories ``node_label``
    ``NAME_node_attributes.txt``        optional: numbers ``node_attribute``
    ``NAME_edge_labels.txt``            optional: categories ``edge_label``
    ``NAME_edge_attributes.txt``        optional: numbers ``edge_attribute``
    ==================================  ==================================================================

    As by PyG, self-loops and repeated edges are left out.
    """
    folder, found = Path(path).expanduser(), _names(Path(path).expanduser())
    if len(found) > 1:
        raise DataError(f"{path}: holds several datasets, {quote_names(found)}; put each into a folder of its own")
    name = found[0]
    graph = _read(folder, f"{name}{INDICATOR}", ["graph_id"])
    nodes = [pl.DataFrame({"id": pl.Series(range(1, graph.height + 1), dtype=pl.Int64).cast(pl.String)}), graph]
    nodes += _features(folder, name, "node", graph.height)
    edges = _read(folder, f"{name}_A.txt", ["source", "target"])
    listed = pl.concat([edges, *_features(folder, name, "edge", edges.height)], how="horizontal")
    simple = listed.filter(pl.col("source") != pl.col("target"))
    simple = simple.unique(["source", "target"], keep="first", maintain_order=True)
    table = pl.concat(nodes, how="horizontal")
    return Tables(Table(path, table), Table(path, simple), _graphs(folder, name, path))


def _names(folder: Path) -> list[str]:
    return sorted(file.name.removesuffix(INDICATOR) for file in folder.glob(f"*{INDICATOR}"))


def _graphs(folder: Path, name: str, path: str) -> Table | None:
    """The targets of the graphs; None if there are none, as for graphs to predict."""
    parts = []
    for stem, column, category in (("graph_labels", "label", True), ("graph_attributes", "attribute", False)):
        if (folder / f"{name}_{stem}.txt").exists():
            parts.append(_numbered(_read(folder, f"{name}_{stem}.txt"), column, category))
    if not parts:
        return None
    heights = {part.height for part in parts}
    if len(heights) > 1:
        raise DataError(f"{path}: the files of graph labels and graph attributes have different numbers of lines")
    ids = pl.Series("graph_id", range(1, heights.pop() + 1), dtype=pl.Int64).cast(pl.String)
    return Table(path, pl.concat([ids.to_frame(), *parts], how="horizontal"))


def _features(folder: Path, name: str, what: str, rows: int) -> list[pl.DataFrame]:
    frames = []
    for kind in ("label", "attribute"):
        file = f"{name}_{what}_{kind}s.txt"
        if not (folder / file).exists():
            continue
        frame = _read(folder, file)
        if frame.height != rows:
            raise DataError(f"{folder / file}: has {frame.height:,} lines, but there are {rows:,} {what}s")
        frames.append(_numbered(frame, f"{what}_{kind}", kind == "label"))
    return frames


def _numbered(frame: pl.DataFrame, name: str, category: bool) -> pl.DataFrame:
    """The columns with names; categories have the type of Polars, so that codes are not read as amounts."""
    names = [name] if frame.width == 1 else [f"{name}_{place}" for place in range(frame.width)]
    out = frame.rename(dict(zip(frame.columns, names, strict=True)))
    return out.cast(pl.Categorical) if category else out


def _read(folder: Path, name: str, columns: list[str] | None = None) -> pl.DataFrame:
    """The cells of a file as text."""
    file = folder / name
    if not file.is_file():
        raise DataError(f"{file}: no such file; a folder of the TU collection needs it")
    with data_errors(file, _HINT):
        frame = pl.read_csv(file, has_header=False, infer_schema=False, glob=False).select(pl.all().str.strip_chars())
    if columns is not None and frame.width != len(columns):
        raise DataError(f"{file}: has {frame.width} values on a line; expected {len(columns)}")
    return frame if columns is None else frame.rename(dict(zip(frame.columns, columns, strict=True)))
