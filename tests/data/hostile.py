"""Files that nobody should be able to send: strategies for tables, archives and GraphML."""

import io

import networkx as nx
import numpy as np
import polars as pl
from hypothesis import strategies as st

from tests.data.own import arrays

CELLS = ["", "0", "1", "2", "-1", "1.5", "1e400", "nan", "NA", "inf", "true", "False", "a", "b", "n1", "n2", "train"]
CELLS += ["val", "test", " 3 ", '"', '"x,y"', "é", "\0", "9" * 30, "0.0", "-0", "\u202e", "1_000", "9" * 20]
NAMES = ["id", "source", "target", "y", "label", "split", "graph", "a", "b", "*", "^.*$", "", "id ", "place", "key"]
HOSTILE = st.sampled_from(CELLS) | st.text(max_size=4)


@st.composite
def csv_table(draw: st.DrawFn, usual: tuple[str, ...]) -> str:
    """Rows of hostile cells under mostly usual names, sometimes ragged."""
    names = [*usual, *draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=draw(st.integers(0, 9)) > 0))]
    names = draw(st.permutations(list(dict.fromkeys(names)) if draw(st.integers(0, 9)) else names))
    separator = draw(st.sampled_from([",", ",", ";", "\t"]))
    width = st.integers(0, 6) if draw(st.integers(0, 9)) == 0 else st.just(len(names))
    rows = [draw(st.lists(HOSTILE, min_size=n, max_size=n)) for n in draw(st.lists(width, max_size=6))]
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    return ending.join(separator.join(cells) for cells in [names, *rows])


@st.composite
def options(draw: st.DrawFn, names: list[str]) -> dict[str, object]:
    some = st.sampled_from([""] * 9 + names)
    return {
        "target": draw(some),
        "task": draw(st.sampled_from(["", "binary", "multiclass", "multilabel", "regression"] * 3 + ["?"])),
        "metric": draw(st.sampled_from([""] * 9 + ["mae", "accuracy", "?"])),
        "directed": draw(st.sampled_from([True, False] * 4 + [None])),
        "graph_column": draw(st.sampled_from(["", "", "graph"])),
        "split_column": draw(some),
        "ignore": draw(some),
        "categorical": draw(some),
        "fill": draw(st.sampled_from(["refuse", "mean", "zero"])),
        "random_splits": draw(st.sampled_from([1, 1, 1, 2, 0])),
        "data_seed": draw(st.sampled_from([0, -1, 2**62])),
    }


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A sound file with some bytes changed, cut out or repeated."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["set", "cut", "insert", "end"]))
        if kind == "set" and place < len(data):
            data[place] = draw(st.integers(32, 126) | st.integers(0, 255))
        elif kind == "cut":
            del data[place : place + draw(st.integers(1, 20))]
        elif kind == "insert":
            data[place:place] = draw(st.binary(max_size=8))
        elif kind == "end" and place > len(data) // 2:
            del data[place:]
    return bytes(data)


def packed(**members: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def parquet(text: str) -> bytes:
    stream = io.BytesIO()
    pl.read_csv(io.StringIO(text)).write_parquet(stream)
    return stream.getvalue()


def graphml() -> bytes:
    graph = nx.relabel_nodes(nx.cycle_graph(6), str)
    for i, node in enumerate(graph):
        graph.nodes[node].update(weight=i / 2, kind="pq"[i % 2], good=bool(i % 3), label=f"c{i % 3}")
    return "".join(nx.generate_graphml(graph)).encode()


@st.composite
def plausible(draw: st.DrawFn) -> tuple[str, str]:
    """Tables that are mostly sound, so that errors come late."""
    count = draw(st.integers(3, 8))
    kinds = [["0", "1"], ["0", "1", "2"], ["a", "b"], ["1.5", "-2", "0.25"], ["true", "false"], ["a", "7", "", "NA"]]
    columns = [
        draw(st.lists(st.sampled_from(draw(st.sampled_from(kinds))), min_size=count, max_size=count)) for _ in "aby"
    ]
    rows = [f"{i},{i // 2},{a},{b},{y}" for i, (a, b, y) in enumerate(zip(*columns, strict=True))]
    end = st.integers(0, count - 1) | st.integers(0, count - 1) | st.integers(-1, count)
    edges = [f"{u},{v},{w}" for u, v, w in draw(st.lists(st.tuples(end, end, st.sampled_from("0123a")), max_size=6))]
    return "\n".join(["id,graph,a,b,y", *rows]), "\n".join(["source,target,w", *edges])


KEYS = [
    "x",
    "y",
    "edge_index",
    "edges",
    "edge_attr",
    "edge_type",
    "batch",
    "train_mask",
    "val_mask",
    "test_mask",
    "val_masks",
]
TYPES = ["<f4", ">f8", "f2", "i1", "<i8", "u8", "?", "U3", "S2", "c8", "M8[s]", "O", "i4,f4"]
SHAPES = [(), (0,), (12,), (12, 2), (2, 12), (12, 1), (12, 0), (2, 0), (1, 2, 3), (4,)]


@st.composite
def members(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """Sound arrays, of which a few are replaced."""
    out = arrays(edge_attr=draw(st.sampled_from([None, np.arange(12.0), np.arange(12)])))
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3)):
        shape = draw(st.sampled_from(SHAPES + [(12,), (12, 2), (2, 12)] * 3))
        kind = draw(st.sampled_from(TYPES + ["<f4", "<i8", "?"] * 4))
        filled = np.full(shape, draw(st.sampled_from([0, 1, 3, -1])))
        out[key] = np.zeros(shape, kind) if kind == "i4,f4" else filled.astype(kind)
    for key in draw(st.lists(st.sampled_from(sorted(out)), unique=True, max_size=1)):
        del out[key]
    return out


@st.composite
def odd_graphml(draw: st.DrawFn) -> str:
    """Well-formed XML that need not make sense."""
    of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    types = ["int", "double", "string", "boolean", "long", "odd"]
    keys = "".join(
        f'<key id="k{i}" for="{of("node", "node", "edge", "all")}" attr.name="{of("y", "a", "id", "split", "a b")}" '
        f'attr.type="{draw(st.sampled_from(types))}">{of("", "", "<default>1</default>", "<default/>")}</key>'
        for i in range(draw(st.integers(0, 3)))
    )
    value = st.sampled_from(["1", "0", "2.5", "true", "x", "", "nan", "1e999", "train"])
    some = lambda: "".join(f'<data key="k{i}">{draw(value)}</data>' for i in range(draw(st.integers(0, 3))))  # noqa: E731
    nodes = "".join(f'<node id="{of("1", "2", "3", "")}">{some()}</node>' for _ in range(draw(st.integers(0, 5))))
    edges = "".join(
        f'<edge source="{of("1", "2", "9")}" {of("", "id=&quot;1&quot;".replace("&quot;", chr(34)))} '
        f'{of("", "directed=" + chr(34) + "true" + chr(34))} target="{of("1", "3")}">{some()}</edge>'
        for _ in range(draw(st.integers(0, 4)))
    )
    extra = of(
        "", "", "", "<hyperedge/>", "<port/>", '<node id="7"><graph/></node>', '<node yfiles.foldertype="group"/>'
    )
    graph = f'<graph edgedefault="{of("directed", "undirected", "odd")}">{nodes}{edges}{extra}</graph>'
    space = of("http://graphml.graphdrawing.org/xmlns", "http://graphml.graphdrawing.org/xmlns", "x:y")
    return f'<graphml xmlns="{space}">{keys}{graph}</graphml>'
