import csv
import gzip
import hashlib
import io
import os
import pickle
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from cognn.data.catalogue import ENTRIES
from cognn.data.check.statistics import compare, measure
from cognn.data.published import peptides
from cognn.errors import DataError
from cognn.nn.encoders import CategoricalEncoder, laplacian_encoding, random_walk_encoding

rdkit = pytest.mark.skipif(find_spec("rdkit") is None, reason="rdkit is not installed (pip install 'cognn[mol]')")
GLYCINE, ALANINE, SALT = "NCC(=O)O", "C[C@H](N)C(=O)O", "[Na+].[Cl-]"


def table(rows: list[tuple[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["", "smiles", "peptide_seq", "labels", "identifier"])
    for number, (smiles, labels) in enumerate(rows):
        writer.writerow([number, smiles, "", labels, number])
    return gzip.compress(text.getvalue().encode(), mtime=0)


def labels(*on: int) -> str:
    return str([int(number in on) for number in range(10)])


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """A mirror of three molecules."""
    raw = tmp_path / "mirror" / "lrgb" / "peptides-func" / "raw"
    raw.mkdir(parents=True)
    (raw / peptides.TABLE).write_bytes(table([(GLYCINE, labels(0)), (ALANINE, labels(4, 9)), (SALT, labels())]))
    np.savez(raw / peptides.SPLITS, train=np.array([2], dtype=np.int32), val=np.array([0]), test=np.array([1]))
    monkeypatch.setenv("COGNN_MIRROR", str(tmp_path / "mirror"))
    return raw


@rdkit
def test_molecules_become_graphs(small):
    dataset = peptides.load_peptides()
    assert [(graph.num_nodes, graph.num_edges) for graph in dataset.graphs] == [(5, 8), (6, 10), (2, 0)]
    assert dataset.x[:5, 0].tolist() == [7, 6, 6, 8, 8]  # atomic numbers of glycine
    assert dataset.x.dtype == torch.float32
    assert dataset.node_categories == (119, 9, 11, 12, 9, 5, 8, 2, 2)
    assert dataset.edge_categories == (22, 6, 2)
    double = dataset.edge_attr[:8, 0] == 2
    assert dataset.graphs[0].edge_index[:, double].tolist() == [[2, 3], [3, 2]]
    assert dataset.y.tolist() == [[1.0] + [0.0] * 9, [0.0] * 4 + [1.0] + [0.0] * 4 + [1.0], [0.0] * 10]
    assert [part.tolist() for part in vars(dataset.splits[0]).values()] == [[2], [0], [1]]
    assert dataset.task.metric == "average_precision"
    assert CategoricalEncoder(dataset.node_categories, 8)(dataset.x).shape == (13, 8)


@rdkit
@pytest.mark.parametrize(("encoding", "width"), [("laplacian", 8), ("random-walk", 20)])
def test_encodings_follow_the_atoms(small, encoding, width):
    dataset = peptides.load_peptides(encoding)
    assert dataset.x.shape == (13, 9 + width)
    graph = dataset.graphs[1]
    compute = laplacian_encoding if encoding == "laplacian" else random_walk_encoding
    assert torch.equal(dataset.x[5:11, 9:], compute(graph.edge_index, 6, width))
    assert torch.equal(dataset.x, peptides.load_peptides(encoding).x)


@rdkit
def test_what_is_kept_needs_no_rdkit_and_follows_the_raw_file(small, cache, monkeypatch):
    first = peptides.load_peptides("laplacian")
    kept = cache / "lrgb" / "peptides-func" / "converted"
    assert sorted(os.listdir(kept)) == ["graphs.npz", "laplacian.npz"]
    monkeypatch.setattr(peptides, "find_spec", lambda name: None)
    assert torch.equal(peptides.load_peptides("laplacian").x, first.x)

    raw = kept.parent / "raw" / peptides.TABLE
    raw.write_bytes(table([(ALANINE, labels())] * 3))
    with pytest.raises(DataError, match=r"needs rdkit; pip install 'cognn\[mol\]'"):
        peptides.load_peptides()


@rdkit
def test_a_damaged_copy_is_made_anew(small, cache):
    first = peptides.load_peptides()
    path = cache / "lrgb" / "peptides-func" / "converted" / "graphs.npz"
    path.write_bytes(b"PK\x03\x04 not an archive")
    assert torch.equal(peptides.load_peptides().x, first.x)


@rdkit
def test_what_is_no_molecule_is_named(small):
    (small / peptides.TABLE).write_bytes(table([(GLYCINE, labels())] * 2 + [("C1CC", labels())]))
    with pytest.raises(DataError, match="molecule 2 is not a SMILES that rdkit reads: 'C1CC'"):
        peptides.load_peptides()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not gzip",
        gzip.compress(b"\xff\xfe", mtime=0),
        gzip.compress(b"", mtime=0),
        gzip.compress(b"a,b\n1,2\n", mtime=0),
        table([(GLYCINE, labels())])[:60],
        table([(GLYCINE, "[1, 0]")]),
        table([(GLYCINE, str([2] * 10))]),
        table([(GLYCINE, "__import__('os').abort()")]),
    ],
    ids=["empty", "text", "bytes", "nothing", "columns", "cut", "short", "range", "code"],
)
def test_damaged_tables_are_one_line(small, content):
    (small / peptides.TABLE).write_bytes(content)
    with pytest.raises(DataError, match=peptides.TABLE) as error:
        peptides.load_peptides()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("parts", [{"train": [0]}, {"train": [0], "val": [0], "test": [1]}, {"train": ["a"]}])
def test_damaged_splits_are_one_line(small, parts):
    np.savez(small / peptides.SPLITS, **{name: np.array(part) for name, part in parts.items()})
    with pytest.raises(DataError, match=peptides.SPLITS):
        peptides.load_peptides()


def test_an_unknown_encoding_is_refused():
    with pytest.raises(DataError, match="encoding: expected one of laplacian, random-walk, got 'lap'"):
        peptides.load_peptides("lap")


def test_without_files_and_network(offline):
    with pytest.raises(DataError, match=r"peptides-func.*COGNN_MIRROR") as error:
        peptides.load_peptides()
    assert "\n" not in str(error.value)


def test_downloads_are_checked_and_their_pickle_is_read_as_arrays(cache, monkeypatch):
    splits = pickle.dumps({"train": np.array([1]), "val": np.array([0]), "test": [2]}, protocol=4)
    served = {peptides.TABLE_AT[0]: table([(GLYCINE, labels())] * 3), peptides.SPLITS_AT[0]: splits}
    monkeypatch.setattr("urllib.request.urlopen", lambda url, context: io.BytesIO(served[url]))
    with pytest.raises(DataError, match="is not the published file"):
        peptides.raw_folder()

    for name in ("TABLE_AT", "SPLITS_AT"):
        url = getattr(peptides, name)[0]
        monkeypatch.setattr(peptides, name, (url, hashlib.md5(served[url]).hexdigest()))
    raw = peptides.raw_folder()
    assert sorted(os.listdir(raw)) == [peptides.TABLE, peptides.SPLITS]
    assert peptides.read_split(raw / peptides.SPLITS, 3).train.tolist() == [1]


def counted(smiles: str) -> tuple[int, int]:
    """Atoms and directed edges, from the letters alone: a bond for every atom but the first, and one for every ring."""
    plain = re.sub(r"\[[^\]]*\]|Cl|Br", "X", smiles)
    atoms = len(re.findall(r"[A-Zcnos]", plain))
    rings = len(re.findall(r"%\d\d|\d", plain)) // 2
    return atoms, 2 * (atoms - 1 - plain.count(".") + rings)


def test_the_published_files(mirror):
    raw = peptides.raw_folder()
    smiles, y, _ = peptides.read_molecules(raw / peptides.TABLE)
    split = peptides.read_split(raw / peptides.SPLITS, 15535)
    assert (len(split.train), len(split.val), len(split.test)) == (10873, 2331, 2331)
    assert y.shape == (15535, 10)
    facts = ENTRIES["peptides-func"].facts
    assert tuple(np.array([counted(text) for text in smiles]).sum(0)) == (facts["nodes"], facts["directed edges"])


@rdkit
def test_the_published_molecules(mirror):
    smiles = peptides.read_molecules(peptides.raw_folder() / peptides.TABLE).smiles[::400]
    arrays = peptides.convert(smiles)
    assert list(zip(arrays["num_nodes"], arrays["num_edges"], strict=True)) == [counted(text) for text in smiles]
    assert (arrays["x"] < np.array(peptides.NODE_CATEGORIES)).all()
    assert (arrays["edge_attr"] < np.array(peptides.EDGE_CATEGORIES)).all()


@rdkit
@pytest.mark.skipif("COGNN_WHOLE" not in os.environ, reason="converting all molecules takes minutes; set COGNN_WHOLE=1")
def test_the_whole_set(mirror):
    dataset = peptides.load_peptides()
    assert [row for row in compare(measure(dataset), ENTRIES["peptides-func"].facts) if not row.agrees] == []
