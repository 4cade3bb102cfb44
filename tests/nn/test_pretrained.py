"""Models in a folder: what ``save_pretrained`` writes and ``from_pretrained`` reads."""

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch_geometric.nn import GATv2Conv

import cognn
from cognn import CoGNN
from cognn.data.dataset import Dataset
from cognn.errors import RunError
from cognn.nn.encoders import Encoded
from tests.toy_runs import make_dataset

SMALL = {"hidden_channels": 4, "num_layers": 2, "epochs": 2}


def net(**options) -> CoGNN:
    torch.manual_seed(0)
    return CoGNN(options.pop("in_channels", 3), 8, **{"out_channels": 2, "num_layers": 2} | options).eval()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(20, 3, generator=rng), torch.randint(20, (2, 60), generator=rng)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"action": None, "env": "gcn", "norm": "batch_norm", "act": nn.ReLU(), "jk": "cat"},
        {"env": GATv2Conv, "act": "PReLU", "temperature": 0.5, "eval_actions": "expected"},
        {"in_channels": -1, "pool": "add", "decoder_layers": 2},
    ],
)
def test_a_model_comes_back_as_it_was(options: dict, tmp_path: Path) -> None:
    model, (x, edge_index) = net(**options), inputs()
    expected = model(x, edge_index)
    model.save_pretrained(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]
    state = torch.get_rng_state()
    again = CoGNN.from_pretrained(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), state)
    assert not again.training
    assert repr(again) == repr(model)
    assert torch.equal(again(x, edge_index), expected)
    again.save_pretrained(str(tmp_path / "again"))
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_the_layout_is_that_of_the_hub_mixin(tmp_path: Path) -> None:
    net(edge_categories=(2, 3)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert {
        "in_channels": 3,
        "hidden_channels": 8,
        "edge_categories": [2, 3],
        "action_layers": 1,
    }.items() <= config.items()
    model = CoGNN(**config)  # as PyTorchModelHubMixin builds it
    model.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert CoGNN.from_pretrained(tmp_path, eval_actions="sample").eval_actions == "sample"


def test_what_has_no_name_cannot_be_saved(tmp_path: Path) -> None:
    for option in ({"env": lambda i, o: GATv2Conv(i, o)}, {"act": nn.LeakyReLU(0.3)}, {"act": torch.relu}):
        model = net(**option)
        with pytest.raises(RunError, match=f"^{next(iter(option))}: .* cannot be saved"):
            model.save_pretrained(tmp_path / "model")
        assert pickle.loads(pickle.dumps(model)) is not None
    with pytest.raises(RunError, match="in_channels: is -1 until the model has seen data"):
        net(in_channels=-1).save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def _without(name: str):
    return lambda folder: (folder / name).unlink()


def _writing(name: str, content: bytes):
    return lambda folder: (folder / name).write_bytes(content)


DAMAGED = {
    "no config": (_without("config.json"), "holds neither config.json nor a run"),
    "no weights": (_without("model.safetensors"), "cannot be read as weights (there is no such file)"),
    "no JSON": (_writing("config.json", b"{"), "config.json: not a readable part"),
    "a list": (_writing("config.json", b"[]"), "config.json: expected a JSON object, got list"),
    "foreign options": (_writing("config.json", b'{"d_model": 3}'), "does not hold the options of a CoGNN"),
    "other sizes": (
        lambda folder: net(in_channels=4).save_pretrained(folder) or save_file({}, folder / "model.safetensors"),
        "the weights are those of another model",
    ),
    "a pickle": (_writing("model.safetensors", pickle.dumps({})), "cannot be read as weights"),
    "cut off": (
        lambda f: _writing("model.safetensors", (f / "model.safetensors").read_bytes()[:-9])(f),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_or_foreign_folder_is_one_line(name: str, tmp_path: Path) -> None:
    net().save_pretrained(tmp_path)
    damage, message = DAMAGED[name]
    damage(tmp_path)
    with pytest.raises(RunError) as caught:
        CoGNN.from_pretrained(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_folder_and_names_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="not there; expected the folder of a model"):
        CoGNN.from_pretrained(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="a file; expected the folder of a model"):
        CoGNN.from_pretrained(tmp_path / "file")
    monkeypatch.setattr("cognn.nn.options.pretrained.find_spec", lambda _: None)
    with pytest.raises(RunError, match="somebody/model: no such folder; a model of the Hugging Face Hub needs pip"):
        CoGNN.from_pretrained("somebody/model")
    net().save_pretrained(tmp_path / "snapshot")

    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        if name != "somebody/model":
            raise OSError("404 Client Error.\nRepository Not Found")
        assert allow_patterns == ["config.json", "model.safetensors", "schema.json"]  # no pickles
        return str(tmp_path / "snapshot")

    monkeypatch.setattr("cognn.nn.options.pretrained.find_spec", lambda _: True)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    assert repr(CoGNN.from_pretrained("somebody/model")) == repr(net())
    with pytest.raises(RunError, match=r"some/other: no such folder, nor a model .* \(404 Client Error.\)$"):
        CoGNN.from_pretrained("some/other")


def of_atoms() -> Dataset:
    """Nodes with two categories and three numbers, the last two of which may change their signs."""
    dataset = make_dataset("node", "multiclass")
    codes = torch.stack([torch.arange(dataset.num_nodes) % 4, torch.arange(dataset.num_nodes) % 5], dim=1).float()
    return replace(dataset, x=torch.cat([codes, dataset.x[:, :3]], 1), node_categories=(4, 5), sign_columns=(3, 2))


@pytest.mark.parametrize("kind", ["plain", "atoms", "graphs", "edges", "base"])
def test_the_folder_of_a_run(kind: str, tmp_path: Path) -> None:
    made = {"graphs": ("graph", "binary"), "edges": ("node", "regression")}.get(kind, ("node", "multiclass"))
    dataset = of_atoms() if kind == "atoms" else make_dataset(*made, edges=kind == "edges")
    options = (
        {"model": "meangnn"} if kind == "base" else {"actions": "expected", "action_layers": 2, "temperature": 0.7}
    )
    fitted = cognn.fit(dataset, out=tmp_path / "run", splits=[0, 1], **options, **SMALL)
    for split in (None, 0, 1):
        model = CoGNN.from_pretrained(tmp_path / "run", split=split)
        own = fitted.model(split)
        assert isinstance(model, Encoded) == (kind == "atoms")
        assert repr(model) == repr(own)
        graph = dataset.graphs[0]
        given = (dataset.x[: graph.num_nodes], graph)
        given += (dataset.edge_attr[: graph.num_edges],) if kind == "edges" else ()
        with torch.no_grad():
            assert torch.equal(model(*given), own(*given))
    model.save_pretrained(tmp_path / "model")
    again = CoGNN.from_pretrained(tmp_path / "model")
    with torch.no_grad():
        assert torch.equal(again(*given), own(*given))
    with pytest.raises(RunError, match="split: this run trained 0, 1, got 7"):
        CoGNN.from_pretrained(tmp_path / "run", split=7)
    with pytest.raises(RunError, match="split: is for the folder of a run"):
        CoGNN.from_pretrained(tmp_path / "model", split=0)
    with pytest.raises(RunError, match="is the folder of a run; choose another"):
        model.save_pretrained(tmp_path / "run")


@pytest.mark.parametrize("earlier", [False, True])
def test_a_run_on_tables_keeps_how_they_were_read(earlier: bool, tmp_path: Path) -> None:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,a,b,y\n" + "".join(f"{i},{i * 0.5},{'uvw'[i % 3]},{'pq'[i % 2]}\n" for i in range(20)))
    edges.write_text("source,target,w\n" + "".join(f"{i},{(i + 1) % 20},{i / 3}\n" for i in range(20)))
    fitted = cognn.fit(nodes, edges=edges, target="y", directed=True, out=tmp_path / "run", **SMALL)
    x, graph, attr = fitted.dataset.x, fitted.dataset.graphs[0], fitted.dataset.edge_attr
    with torch.no_grad():
        expected = fitted.model()(x, graph, attr)
    nodes.unlink()
    edges.unlink()
    if earlier:  # what cognn 0.1 wrote
        (tmp_path / "run" / "config.json").unlink()
    model = CoGNN.from_pretrained(tmp_path / "run")
    assert [column["name"] for column in model.schema["nodes"]] == ["a", "b"]
    assert model.schema["class_names"] == ["p", "q"]
    assert torch.equal(model(x, graph, attr), expected)
    model.save_pretrained(tmp_path / "model")
    assert CoGNN.from_pretrained(tmp_path / "model").schema == model.schema


def test_runs_that_have_no_such_model(tmp_path: Path) -> None:
    data = make_dataset("node", "multiclass")
    cognn.fit(data, out=tmp_path / "gcn", model="gcn", splits=0, **SMALL)
    with pytest.raises(RunError, match=r"holds a gcn, not a Co-GNN; open it with cognn\.open_run"):
        CoGNN.from_pretrained(tmp_path / "gcn")
    cognn.fit(data, out=tmp_path / "memory", env=lambda i, o: GATv2Conv(i, o), splits=0, **SMALL)
    assert not (tmp_path / "memory" / "config.json").exists()
    with pytest.raises(RunError, match=r"has neither config.json nor schema.json; use cognn.open_run"):
        CoGNN.from_pretrained(tmp_path / "memory")
    (tmp_path / "gcn" / "config.toml").write_text((tmp_path / "memory" / "config.toml").read_text())
    (tmp_path / "gcn" / "result.json").unlink()
    with pytest.raises(RunError, match="this run is not finished; resume it"):
        CoGNN.from_pretrained(tmp_path / "gcn")


def test_a_saved_model_keeps_its_type_and_refuses_other_sizes(tmp_path: Path) -> None:
    CoGNN(3, 8, out_channels=2, num_layers=1).double().save_pretrained(tmp_path)
    assert CoGNN.from_pretrained(tmp_path).encoder.weight.dtype == torch.float64
    with pytest.raises(TypeError, match=r"'eval_action' cannot be changed; only .*eval_actions"):
        CoGNN.from_pretrained(tmp_path, eval_action="sample")
