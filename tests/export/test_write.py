"""Exported programs give what ``cognn predict`` gives, on graphs of other sizes, in processes without cognn."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch_geometric.nn import GraphConv

import cognn
from cognn.cli.main import main
from cognn.export import formats
from cognn.export.formats import trace
from cognn.export.interface import interface_of
from cognn.export.program import Program
from cognn.export.write import EXAMPLE, _difference, _inputs
from cognn.nn.compiling import can_compile
from cognn.train.build import build_model
from tests.toy_runs import make_dataset, make_links, small, with_relations

SMALL = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "2", "--quiet"]
NODES = 30
WITHOUT = """
import json, sys
import numpy as np, torch
given = [torch.from_numpy(array) for array in np.load("given.npz").values()]
{load}
np.save("found.npy", np.asarray(run(*given).detach()))
assert "cognn" not in sys.modules and "torch_geometric" not in sys.modules
"""
LOAD = {
    "pt2": 'run = torch.export.load("run/model.pt2").module()',
    "aoti": 'run = torch._inductor.aoti_load_package("run/model.aoti.pt2")',
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_tables(nodes: int, seed: int) -> list[np.ndarray]:
    """A graph as files, and as the arrays that the description of its program asks for."""
    rng = np.random.default_rng(seed)
    age, colour = rng.normal(50, 12, nodes).astype(np.float32), rng.integers(3, size=nodes)
    ends, amount = rng.integers(nodes, size=(2, 4 * nodes)), rng.normal(100, 30, 4 * nodes).astype(np.float32)
    words = np.array(["blue", "green", "red"])[colour]
    columns = {
        "id": range(nodes),
        "age": age,
        "colour": words,
        "label": np.array(["no", "yes"])[rng.integers(2, size=nodes)],
    }
    pl.DataFrame(columns).write_csv("nodes.csv")
    pl.DataFrame({"source": ends[0], "target": ends[1], "amount": amount}).write_csv("edges.csv")
    return [np.column_stack([age, np.eye(3, dtype=np.float32)[colour]]), ends, amount[:, None]]


def predicted() -> np.ndarray:
    assert main(["predict", "run", "nodes.csv", "--edges", "edges.csv", "--samples", "0", "--out", "table.csv"]) == 0
    return pl.read_csv("table.csv")["p_yes"].to_numpy()


@pytest.mark.parametrize(
    "kind",
    ["pt2", pytest.param("aoti", marks=pytest.mark.skipif(not can_compile(), reason="there is no C++ compiler here"))],
)
def test_a_run_on_tables_is_served_without_cognn(kind: str, capsys) -> None:
    write_tables(NODES, 0)
    words = ["--edges", "edges.csv", "--target", "label", "--directed", "--encoding", "degree", *SMALL]
    layers = ["--env", "gcn", "--gates", "continuous", "--norm", "none"] if kind == "pt2" else ["--num-layers", "1"]
    assert main(["train", "nodes.csv", *words, *layers, "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["export", "run", "--format", kind]) == 0
    assert (
        f"{formats.FORMATS[kind].suffix}(x, edge_index, edge_attr) -> probability of the second class"
        in capsys.readouterr().out
    )
    description = json.loads(Path(f"run/model{formats.FORMATS[kind].suffix}.json").read_text())
    assert [each["shape"] for each in description["inputs"]] == [["nodes", 4], [2, "edges"], ["edges", 1]]
    assert description["features"] == [
        {"name": "age"},
        *({"name": "colour", "is": w} for w in ("blue", "green", "red")),
    ]
    assert description["output"]["classes"] == ["no", "yes"]
    arrays = write_tables(2 * NODES + 1, 1)
    np.savez("given.npz", *arrays)
    subprocess.run([sys.executable, "-c", WITHOUT.format(load=LOAD[kind])], check=True)
    np.testing.assert_allclose(np.load("found.npy")[:, 0], predicted(), atol=1e-5)


CASES = [
    ("node", "multiclass", {"env": "gat", "action": "mean", "action_heads": "2"}),
    ("node", "regression", {"env": "gin", "action_space": "edge", "edges": True}),
    ("node", "multilabel", {"env": "sum", "relations": 3, "directions": "both"}),
    ("node", "binary", {"model": "gt-sep", "heads": 2, "edges": True}),
    ("graph", "multiclass", {"env": "gcn", "pool": "max"}),
    ("link", "binary", {"decoder": "mlp"}),
]


@pytest.mark.parametrize(("level", "kind", "options"), CASES, ids=str)
def test_every_kind_of_model_traces_for_any_number_of_nodes_and_edges(level: str, kind: str, options: dict) -> None:
    options = dict(options)
    relations, edges = options.pop("relations", 1), options.pop("edges", False)
    dataset = make_links() if level == "link" else make_dataset(level, kind, edges)
    dataset = with_relations(dataset, relations) if relations > 1 else dataset
    model = build_model(small(**{"num_layers": 1} | options).model, dataset).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.3)
    interface = interface_of(dataset, None, 0.5)
    program = Program(model, interface, dataset, None).eval()
    shapes = [each.shape for each in interface.inputs]
    traced = trace(program, _inputs(program, interface, dataset, *EXAMPLE), shapes)
    assert not [node for node in traced.graph.nodes if "cognn" in str(node.target)]  # plain operators only
    assert _difference(program, traced.module(), interface, dataset) <= 1e-5


def test_edge_weights_are_an_argument() -> None:
    dataset = make_dataset("node", "binary")
    dataset.graphs = [
        cognn.Graph(g.edge_index, g.num_nodes, edge_weight=torch.rand(g.num_edges)) for g in dataset.graphs
    ]
    interface = interface_of(dataset, None, 0.5)
    assert interface.names == ["x", "edge_index", "edge_weight"]
    program = Program(build_model(small(env="gcn").model, dataset).eval(), interface, dataset, None)
    traced = trace(program, _inputs(program, interface, dataset, *EXAMPLE), [each.shape for each in interface.inputs])
    assert _difference(program, traced.module(), interface, dataset) <= 1e-5


def trained(**options) -> None:
    cognn.fit("minesweeper-board", "run", hidden_channels=8, num_layers=1, epochs=1, **options)


def refused(capsys, *words: str) -> str:
    capsys.readouterr()
    assert main(["export", "run", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_a_program_cannot_do_is_refused(capsys, monkeypatch) -> None:
    trained(samples=2, splits="0")
    assert "with drawn actions, which a program has not; give --actions argmax" in refused(capsys)
    assert "AOTInductor package ends in .pt2, got 'model.so'" in refused(
        capsys, "--format", "aoti", "--out", "model.so"
    )
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    assert "onnx, which is not installed; pip install 'cognn[export]'" in refused(capsys, "--format", "onnx")
    monkeypatch.setattr(formats, "can_compile", lambda: False)
    assert "format: aoti needs a C++ compiler" in refused(capsys, "--format", "aoti")
    assert not list(Path("run").glob("model*"))


def test_layers_of_pyg_are_refused_by_name(capsys) -> None:
    trained(splits="0", env=GraphConv)
    assert "GraphConv: a layer of PyG cannot be exported" in refused(capsys)


def test_a_program_that_differs_is_not_written(capsys, monkeypatch) -> None:
    trained(splits="0")
    wrong = formats.FORMATS["pt2"]._replace(load=lambda path: lambda x, edge_index: torch.rand(x.size(0), 1))
    monkeypatch.setitem(formats.FORMATS, "pt2", wrong)
    assert "format: pt2 differs from cognn by" in refused(capsys)
    assert not list(Path("run").glob("model*"))
