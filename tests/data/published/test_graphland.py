from pathlib import Path

import numpy as np
import pytest
import torch

from cognn.cli.main import main
from cognn.data.catalogue import ENTRIES
from cognn.data.load import load_named
from cognn.data.published import graphland
from cognn.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore:n_quantiles:UserWarning")
NODES, EDGES = 60, 120
SETTINGS = {"": "RL", "-rh": "RH", "-th": "TH"}


def column(name: str, values) -> str:
    return "".join(f"{i},{value}\n" for i, value in [("node_id", name), *enumerate(values)])


def write(root: Path, name: str, task: str, settings=("RL", "RH", "TH"), unlabelled=()) -> dict[str, np.ndarray]:
    """The files of a dataset in the layout of GraphLand; a number is missing, and one feature is a fraction."""
    raw = root / "graphland" / name / "raw" / name
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    size, share, kind = rng.normal(size=NODES), rng.random(NODES), rng.integers(0, 3, NODES)
    rows = [f"{i},{'' if i == 7 else size[i]},{share[i]},{kind[i]}\n" for i in range(NODES)]
    (raw / "features.csv").write_text("node_id,size,share,kind\n" + "".join(rows))
    (raw / "info.yaml").write_text(
        f"dataset_name: {name}\ntask: {task}\ntarget_name: target\nnumerical_features_names: [size, share]\n"
        "fraction_features_names: [share]\ncategorical_features_names: [kind]\n"
    )
    y = {"regression": 1e6 * size, "binary_classification": kind > 0}.get(task, kind).astype(float)
    known = y.copy()
    known[list(unlabelled)] = np.nan
    (raw / "targets.csv").write_text(column("target", ["" if np.isnan(value) else value for value in known]))
    for number, setting in enumerate(settings):
        part = np.random.default_rng(number).permutation(np.arange(NODES) % 3)
        masks = [f"{i},{code == 0},{code == 1},{code == 2}\n" for i, code in enumerate(part)]
        (raw / f"split_masks_{setting}.csv").write_text("node_id,train,val,test\n" + "".join(masks))
    edges = np.array([(i, (i + step) % NODES) for i in range(NODES) for step in (1, 5)])
    (raw / "edgelist.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in edges))
    return {"y": known, "edges": edges, "share": share, "kind": kind}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_graph_is_undirected_and_has_the_split_of_its_name(cache: Path, setting) -> None:
    raw = write(cache, "tolokers-2", "binary_classification", unlabelled=[3])
    dataset = load_named("tolokers-2" + setting)
    number = list(SETTINGS).index(setting)
    part = np.random.default_rng(number).permutation(np.arange(NODES) % 3)
    (split,) = dataset.splits
    for code, items in enumerate((split.train, split.val, split.test)):
        assert items.tolist() == [i for i in np.flatnonzero(part == code) if i != 3]
    found = set(zip(*dataset.graphs[0].edge_index.tolist(), strict=True))
    assert found == {(u, v) for u, v in raw["edges"]} | {(v, u) for u, v in raw["edges"]}
    assert np.array_equal(dataset.y.numpy(), raw["y"].astype(np.float32), equal_nan=True)
    assert (dataset.task.kind, dataset.task.metric) == ("binary", "average_precision")
    assert dataset.x.shape == (NODES, 1 + 1 + 3)
    assert np.allclose(dataset.x[:, 1], raw["share"])
    assert np.array_equal(dataset.x[:, 2:].argmax(1), raw["kind"])
    assert torch.isfinite(dataset.x).all()
    assert not list(cache.rglob("*.pt"))  # no processed pickle


@pytest.mark.parametrize(
    ("name", "task", "kind", "metric"),
    [
        ("city-roads-M", "regression", "regression", "r2"),
        ("hm-categories", "multiclass_classification", "multiclass", "accuracy"),
        ("tolokers-2", "binary_classification", "binary", "average_precision"),
    ],
)
def test_trains_and_predicts(cache: Path, tmp_path: Path, capsys, name, task, kind, metric) -> None:
    write(cache, name, task, settings=["RL"], unlabelled=[1, 2])
    run = tmp_path / "run"
    small = ["--epochs", "2", "--num-layers", "1", "--hidden-channels", "8", "--quiet", "--out", str(run)]
    assert main(["train", name.lower(), *small]) == 0
    assert main(["predict", str(run), "--samples", "0", "--out", str(tmp_path / "out.csv")]) == 0
    dataset = load_named(name.lower())
    assert (dataset.task.kind, dataset.task.metric) == (kind, metric)
    assert len(dataset.labelled(torch.arange(NODES))) == NODES - 2
    capsys.readouterr()
    assert main(["data", "info", name.lower()]) == 0
    assert "nodes" in capsys.readouterr().out


def test_the_list_shows_base_names_and_says_which_splits_there_are(cache: Path, capsys) -> None:
    assert main(["data", "list"]) == 0
    shown = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "also -rh, -th)" in shown["tolokers-2"]
    assert "also -rh)" in shown["web-traffic"]
    assert {"city-roads-m", "hm-prices"} <= set(shown)
    assert "tolokers-2-rh" not in shown
    assert "web-traffic-th" not in ENTRIES


def test_every_name_is_one_of_pyg() -> None:
    kinds = {
        entry.folder[1]: entry.kind for entry in ENTRIES.values() if entry.folder and entry.folder[0] == graphland.KIND
    }
    assert kinds == {
        name: task.removesuffix("_classification") for name, task in graphland._PyG.GRAPHLAND_DATASETS.items()
    }


def test_without_mirror_and_network(offline, monkeypatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("network is unreachable")

    monkeypatch.setattr("torch_geometric.datasets.graphland.download_url", refuse)
    with pytest.raises(DataError, match=r"^dataset tolokers-2: .*set COGNN_MIRROR .*graphland/tolokers-2/$"):
        load_named("tolokers-2")


@pytest.mark.parametrize("module", ["pandas", "sklearn", "yaml"])
def test_a_missing_package_is_named(cache, monkeypatch, capsys, tmp_path, module) -> None:
    monkeypatch.setattr(graphland, "find_spec", lambda name: None if name == module else True)
    assert main(["train", "tolokers-2", "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err.strip()
    assert message.endswith(f"needs {graphland._NEEDED[module]}; pip install 'cognn[graphland]'")


@pytest.mark.parametrize("lost", ["features.csv", "info.yaml", "split_masks_RL.csv"])
def test_an_incomplete_folder_is_an_error_with_a_remedy(cache: Path, lost) -> None:
    write(cache, "artnet-exp", "binary_classification")
    (cache / "graphland" / "artnet-exp" / "raw" / "artnet-exp" / lost).unlink()
    with pytest.raises(DataError, match=r"artnet-exp.*; delete that folder to get it again"):
        load_named("artnet-exp")
