"""Tables and graphs read without cognn: the other opinion on what a file says."""

import csv
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch

from cognn.data.dataset import Dataset
from tests.campaign.case import Wrong

MISSING = {"", "NA", "N/A", "NaN", "nan", "null", "NULL"}
ROLES = {"id", "label", "split"}
ENDS = {"source", "target"}
Row = Mapping[str, Any]


class Unclear(Exception):
    """A file on whose meaning two readers may differ."""


class Graph(NamedTuple):
    """Rows of nodes and edges."""

    nodes: Sequence[Row]
    edges: Sequence[Row]
    directed: bool = True


def rows_of(path: Path) -> list[Row]:
    """The rows of a table, by Python's own readers where there is one."""
    suffix = path.suffix
    if suffix in (".csv", ".tsv"):
        return _csv(path.read_bytes(), suffix)
    if suffix == ".jsonl":
        found = [
            json.loads(line, object_pairs_hook=_once) for line in path.read_text("utf-8").splitlines() if line.strip()
        ]
    elif suffix == ".json":
        found = json.loads(path.read_text("utf-8"), object_pairs_hook=_once)
    else:
        found = pl.read_parquet(path).to_dicts()  # there is no second reader of Parquet here
    if not all(isinstance(row, dict) for row in found):
        raise Unclear("not rows")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise Unclear("a name twice in one object")
    return dict(pairs)


def _csv(content: bytes, suffix: str) -> list[Row]:
    text = content.decode("utf-8-sig")
    if (
        text.count('"') % 2
        or re.search(r'[^,;\t\n"]"[^,;\t\r\n"]', text)
        or "\0" in text
        or "\r" in text.replace("\r\n", "")
    ):
        raise Unclear("quotes inside of cells")
    start = next((line for line in text.splitlines() if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", start)
    separator = "\t" if suffix == ".tsv" else max(",;\t", key=bare.count)
    lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if line]
    names = [name.strip() for name in lines[0]]
    if any(len(line) > len(names) for line in lines):
        raise Unclear("rows that are too long")
    width = len(names)
    return [
        dict(zip(names, [cell.strip() for cell in line] + [None] * (width - len(line)), strict=True))
        for line in lines[1:]
    ]


def word(value: Any) -> str | None:
    """A cell as a word; 3, 3.0 and "3" are the same."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        raise Unclear("nested values")
    text = re.sub(r"^(-?\d+)\.0+$", r"\1", str(value).strip())
    return None if text in MISSING else text


def same_word(one: str | None, other: str | None) -> bool:
    """Whether two words are equal, or the same number."""
    if one == other or one is None or other is None:
        return one == other
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def read_graphml(path: Path) -> Graph:
    """Nodes and edges of a GraphML file, wherever they stand in it."""
    root = ElementTree.fromstring(path.read_bytes())
    space = root.tag.removesuffix("graphml")
    keys = {key.get("id"): key for key in root.iter(f"{space}key")}
    graphs = list(root.iter(f"{space}graph"))
    if any(True for key in keys.values() for _ in key.iter(f"{space}default")) or not graphs:
        raise Unclear("defaults")

    def data(element: ElementTree.Element) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for entry in element.findall(f"{space}data"):
            key = keys.get(entry.get("key"))
            name = None if key is None else key.get("attr.name")
            if name is None or name in found:
                raise Unclear("an unknown key, or one twice")
            found[name] = entry.text
        return found

    nodes = [data(node) | {"id": node.get("id")} for node in root.iter(f"{space}node")]
    edges = [
        data(edge) | {"source": edge.get("source"), "target": edge.get("target")} for edge in root.iter(f"{space}edge")
    ]
    if any("directed" in edge.attrib for edge in root.iter(f"{space}edge")) or any(
        name in row for row in [*nodes] for name in ENDS
    ):
        raise Unclear("directions of single edges")
    return Graph(nodes, edges, graphs[0].get("edgedefault") == "directed")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def differences(graph: Graph, dataset: Dataset) -> None:
    """Raise :class:`Wrong` if the dataset does not say what the rows say."""
    ids = [word(row.get("id")) for row in graph.nodes]
    _expect(None not in ids and len(set(ids)) == len(ids), "a node without an id of its own")
    given = list(range(len(ids))) if dataset.item_ids is None else dataset.item_ids
    _expect(len(given) == len(ids), f"{len(ids)} nodes, not {len(given)}")
    _expect(all(same_word(word(a), b) for a, b in zip(given, ids, strict=True)), "the ids are others")
    place = {name: i for i, name in enumerate(ids)}
    ends = [(place.get(word(row.get("source"))), place.get(word(row.get("target")))) for row in graph.edges]
    if any(not row.keys() >= ENDS for row in graph.edges):
        raise Unclear("ends of other names")
    _expect(not any(None in pair for pair in ends), "an edge without a node")
    counts = Counter(ends)
    if not graph.directed and counts != Counter((b, a) for a, b in ends):
        counts += Counter((b, a) for a, b in ends if a != b)
    found = Counter(map(tuple, dataset.graphs[0].edge_index.T.tolist()))
    _expect(found == counts, f"edges: {sum((counts - found).values())} lost, {sum((found - counts).values())} new")
    names = {name for row in graph.nodes for name in row if name is not None}
    used = {column.name for column in dataset.schema.nodes}
    _expect(used == names - ROLES, f"columns {sorted(used ^ (names - ROLES))} are used or left out")
    first = 0
    x = dataset.x.to_dense() if dataset.x.layout != torch.strided else dataset.x
    for column in dataset.schema.nodes:
        block = x[:, first : first + column.width].double().numpy()
        first += column.width
        cells = [word(row.get(column.name)) for row in graph.nodes]
        if column.kind == "numeric":
            expected = np.array([_number(cell, column.fill) for cell in cells], dtype=np.float32)
            _expect(np.array_equal(expected, block[:, 0].astype(np.float32)), f"the numbers of {column.name}")
        elif column.kind == "category":
            shown = [column.values[int(row.argmax())] if row.sum() == 1 else None for row in block]
            _expect(all(map(same_word, shown, cells)), f"the words of {column.name}")
    labels = [word(row.get("label")) for row in graph.nodes]
    if dataset.task.kind in ("binary", "multiclass"):
        codes = [int(code) if code >= 0 else None for code in dataset.y.tolist()]  # nan is not
        shown = [None if code is None else dataset.class_names[code] for code in codes]
        _expect(all(map(same_word, shown, labels)), "the labels")
    if "split" in names:
        parts = [word(row.get("split")) for row in graph.nodes]
        for part, items in vars(dataset.splits[0]).items():
            rows = [
                i for i, value in enumerate(parts) if value and value.lower() in WORDS[part] and labels[i] is not None
            ]
            _expect(items.tolist() == rows, f"the split: {part}")


WORDS = {"train": ("train", "training"), "val": ("val", "valid", "validation"), "test": ("test",)}


def array_differences(arrays: dict[str, np.ndarray], dataset: Dataset) -> None:
    """Raise :class:`Wrong` if the dataset does not hold the arrays."""
    if "x" in arrays:
        x = arrays["x"].reshape(len(arrays["x"]), -1).astype(np.float32)
        _expect(np.array_equal(x, dataset.x.numpy()), "x")
    else:
        raise Unclear("no x")
    if "edge_index" in arrays and arrays["edge_index"].dtype.kind in "iu":
        given = Counter(map(tuple, arrays["edge_index"].T.tolist()))
        _expect(given == Counter(map(tuple, dataset.graphs[0].edge_index.T.tolist())), "edge_index")
    y = arrays["y"]
    if dataset.task.kind in ("binary", "multiclass"):
        known = [None if code < 0 or code != code else dataset.class_names[int(code)] for code in dataset.y.tolist()]
        y = y.astype(int) if y.dtype.kind == "b" else y
        wanted = [None if not isinstance(v, str) and (v < 0 or v != v) else word(v) for v in y.tolist()]
        signed = y.dtype.kind in "if" and (y < -1).any()
        _expect(signed or all(map(same_word, known, wanted)), "y")
    elif dataset.task.kind == "regression":
        _expect(np.array_equal(y.reshape(-1).astype(np.float32), dataset.y.reshape(-1).numpy(), equal_nan=True), "y")
    if "edge_attr" in arrays:
        _expect(dataset.edge_attr is not None, "edge_attr is left out")


def _number(cell: str | None, fill: float | None) -> float:
    if cell is None:
        return math.nan if fill is None else fill
    if cell in ("true", "false"):
        return float(cell == "true")
    lower = cell.lower()
    return float(lower == "true") if lower in ("true", "false") else float(cell)


def _expect(good: bool, what: str) -> None:
    if not good:
        raise Wrong(f"silently wrong: {what}")
