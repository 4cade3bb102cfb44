"""Small finished runs: a board, with one head and several, graphs, and tables whose names attack a web page."""

from pathlib import Path

import polars as pl
import pytest

import cognn
from cognn.data.dataset import Dataset
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.report.data.run_view import RunView, collect
from cognn.run.fit import Fitted
from tests.toy_runs import make_dataset, with_relations

SMALL = {"hidden_channels": 8, "num_layers": 3, "epochs": 4, "device": "cpu"}
ROWS, COLUMNS = 9, 12
EVIL = ('<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "{{data}} & 'q' \"x\"")


def fitted(dataset: Dataset | str, folder: Path, **options) -> Fitted:
    return cognn.fit(dataset, folder, **{**SMALL, "splits": "0", **options})


@pytest.fixture(scope="session")
def board_run(tmp_path_factory) -> RunView:
    folder = tmp_path_factory.mktemp("board") / "run"
    run = fitted(minesweeper_board(ROWS, COLUMNS, num_splits=2), folder, splits="0-1", actions="sample")
    return collect(run, samples=3)


@pytest.fixture(scope="session")
def heads_run(tmp_path_factory) -> RunView:
    """A board whose nodes draw four actions per layer, as often open as shut."""
    folder = tmp_path_factory.mktemp("heads") / "run"
    options = {"action_heads": "4", "standard_bias": 0.0, "actions": "sample"}
    return collect(fitted(minesweeper_board(ROWS, COLUMNS), folder, **options), samples=3)


@pytest.fixture(scope="session")
def soft_run(tmp_path_factory) -> RunView:
    """A board whose channels have a head each, with gates that are probabilities."""
    folder = tmp_path_factory.mktemp("soft") / "run"
    options = {"action_heads": "channel", "gates": "continuous", "action_space": "factored", "standard_bias": 0.0}
    return collect(fitted(minesweeper_board(ROWS, COLUMNS), folder, **options), samples=0)


RELATIONAL = {
    "types": (3, {}),
    "directed": (1, {"directions": "both"}),
    "heads": (2, {"directions": "both", "action_heads": "2"}),
    "factored": (2, {"directions": "both", "action_heads": "2", "action_space": "factored"}),
    "shared": (3, {"relation_actions": "shared", "action_heads": "2"}),
    "soft": (3, {"gates": "continuous", "action_space": "factored", "actions": "auto"}),
}
"""Kinds of runs with several relations: the number of edge types, and options."""


def relational(kind: str, folder: Path, level: str = "node", names: list[str] | None = None) -> RunView:
    """A run with several relations whose nodes are as often open as shut."""
    types, options = RELATIONAL[kind]
    dataset = make_dataset(level, "multiclass")
    dataset = with_relations(dataset, types, names) if types > 1 else dataset
    return collect(fitted(dataset, folder, **{"standard_bias": 0.0, "actions": "sample"} | options), samples=2)


@pytest.fixture(scope="session", params=RELATIONAL)
def relations_run(request, tmp_path_factory) -> RunView:
    return relational(request.param, tmp_path_factory.mktemp(request.param) / "run")


def messages(view: RunView, layer: int, relation: int, head: int) -> list[tuple[int, int]]:
    """Who sent to whom in a relation and a head, edge by edge, from the words of the documentation."""
    trace, types, heads = view.trace, view.graph.num_relations, view.heads
    directed = len(trace.space.names) == 16
    column = {1: head}.get(trace.space.relations, (relation % types if directed else relation) * heads + head)
    names = [trace.space.names[code] for code in trace.actions[layer].reshape(view.graph.num_nodes, -1)[:, column]]
    along = relation < types

    def gate(node: int, word: str, end: str) -> bool:
        """Whether a node has a gate open; ``end`` is which of its edges, incoming or outgoing."""
        name = {"STANDARD": "LISTEN+BROADCAST"}.get(names[node], names[node])
        return bool({word, f"{word}-{end}"} & set(name.split("+")))

    kinds = view.graph.edge_type
    found = []
    for number, (source, target) in enumerate(view.graph.edge_index.T.tolist()):
        if kinds is not None and int(kinds[number]) != relation % types:
            continue
        if along and gate(source, "BROADCAST", "OUT") and gate(target, "LISTEN", "INC"):
            found.append((source, target))
        if not along and gate(target, "BROADCAST", "INC") and gate(source, "LISTEN", "OUT"):
            found.append((target, source))
    return sorted(found)


EDGE_WISE = {
    "one": {},
    "heads": {"action_heads": "4"},
    "soft": {"action_heads": "2", "gates": "continuous", "actions": "auto"},
}
"""Options of runs whose edges act."""


def edge_wise(kind: str, folder: Path, dataset: Dataset | None = None, **options) -> RunView:
    """A run whose edges act and are as often kept as dropped."""
    chosen = {"action_space": "edge", "standard_bias": 0.0, "actions": "sample"} | EDGE_WISE[kind] | options
    return collect(fitted(dataset or make_dataset("node", "multiclass"), folder, **chosen), samples=2)


@pytest.fixture(scope="session", params=EDGE_WISE)
def edges_run(request, tmp_path_factory) -> RunView:
    return edge_wise(request.param, tmp_path_factory.mktemp(request.param) / "run")


@pytest.fixture(scope="session")
def graph_run(tmp_path_factory) -> RunView:
    folder = tmp_path_factory.mktemp("graphs") / "run"
    run = fitted(make_dataset("graph", "multiclass", edges=True), folder, actions="sample", batch_size=8)
    return collect(run, samples=3)


@pytest.fixture(scope="session")
def awkward_folder(tmp_path_factory) -> Path:
    """The folder of a run on tables with HTML and script in ids, labels, columns, words and the file's name."""
    folder = tmp_path_factory.mktemp("awkward")
    count = 30
    ids = [f"{EVIL[i % 3]}{i}" for i in range(count)]
    nodes = {
        "id": ids,
        "<i>size</i>": [float(i % 7) for i in range(count)],
        "kind": [EVIL[i % 2] for i in range(count)],
        "label": [(*EVIL[:2], "=1+1")[i % 3] for i in range(count)],
    }
    pl.DataFrame(nodes).write_csv(folder / "<b>nodes.csv")
    ring = {"source": ids, "target": [ids[(i + 1) % count] for i in range(count)]}
    pl.DataFrame(ring).write_csv(folder / "edges.csv")
    options = {"edges": str(folder / "edges.csv"), "target": "label", "directed": False}
    return fitted(str(folder / "<b>nodes.csv"), folder / "<u>run", **options).folder
