"""Entities of a knowledge graph in RDF (Schlichtkrull et al., "Modeling Relational Data with Graph Convolutional
Networks", ESWC 2018), read with rdflib.
"""

import csv
import gzip
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.datasets import Entities

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.published.pyg_datasets import AtomicDownload, raw_file_errors
from cognn.data.published.raw_files import raw_root
from cognn.errors import DataError

KIND = "entities"
COLUMNS = {"aifb": ("person", "label_affiliation")}
"""The columns of the tables of labels: entity and class."""
NUM_SPLITS, VAL_SHARE = 10, 0.2


def load_entities(name: str) -> Dataset:
    """Load ``aifb``: researchers, their publications and projects; which research group is a researcher from?

    Every subject and object of a triple is a node.  As in PyG, the reverse of a relation is a relation of its own: edge
    types from 0 on are the relations by descending frequency, then their reverses in the same order.  Nodes have no
    features; each is a category to embed.

    Test items are the published ones.  Each of ten splits takes another fifth of the published training items, drawn
    with the number of the split as seed, for validation.
    """
    if find_spec("rdflib") is None:
        raise DataError(f"dataset {name}: reading RDF needs rdflib; pip install 'cognn[kg]'")
    root = raw_root(KIND, name)
    with raw_file_errors(root, name):
        raw = root / name / "raw"
        if not all((raw / file).exists() for file in (f"{name}_stripped.nt.gz", "trainingSet.tsv", "testSet.tsv")):
            _Published(str(root), name)
        nodes, relations, triples = read_rdf(raw / f"{name}_stripped.nt.gz")
        tables = [_labels(raw / file, *COLUMNS[name]) for file in ("trainingSet.tsv", "testSet.tsv")]
        classes = sorted({label for table in tables for label in table.values()})
        place = {node: i for i, node in enumerate(nodes)}
        train, test = (torch.tensor([place[f"<{entity}>"] for entity in table]) for table in tables)
        y = torch.full((len(nodes),), -1)
        for items, table in zip((train, test), tables, strict=True):
            y[items] = torch.tensor([classes.index(label) for label in table.values()])
    sender, receiver, edge_type = triples
    edge_index = torch.stack([torch.cat([sender, receiver]), torch.cat([receiver, sender])])
    edge_type = torch.cat([edge_type, edge_type + len(relations)])
    return Dataset(
        name=name,
        task=Task("node", "multiclass", len(classes), "accuracy"),
        x=torch.arange(len(nodes), dtype=torch.float).unsqueeze(1),
        y=y,
        graphs=[Graph(edge_index, len(nodes), edge_type, 2 * len(relations))],
        splits=[_split(train, test, seed) for seed in range(NUM_SPLITS)],
        node_categories=(len(nodes),),
        class_names=_short(classes),
        item_ids=[node[1:-1] if node.startswith("<") else node for node in nodes],
        relation_names=_short(relations) + [f"{relation} (reverse)" for relation in _short(relations)],
    )


class _Published(AtomicDownload, Entities):
    """PyG's download; its processed files are not read, as they number nodes and classes differently every time."""

    kind = KIND

    def _process(self) -> None:
        pass

    def load(self, *_: Any, **__: Any) -> None:
        """Nothing was processed."""


def read_rdf(path: Path) -> tuple[list[str], list[str], Tensor]:
    """Nodes and relations of a gzipped N-Triples file, and its triples ``(3, E)``: sender, receiver and relation.

    Nodes are in N-Triples notation and sorted; relations are sorted by descending frequency, then by name.
    """
    import rdflib  # an optional dependency

    graph = rdflib.Graph()
    blank: dict[str, Any] = {}  # rdflib gives blank nodes random names; this maps those of the file to them
    with gzip.open(path) as file:
        graph.parse(data=file.read(), format="nt", bnode_context=blank)
    label = {node: f"_:{name}" for name, node in blank.items()}
    triples = [(label.get(s) or s.n3(), str(p), label.get(o) or o.n3()) for s, p, o in graph]
    count = Counter(relation for _, relation, _ in triples)
    relations = sorted(count, key=lambda name: (-count[name], name))
    nodes = sorted({node for sender, _, receiver in triples for node in (sender, receiver)})
    place, code = ({name: i for i, name in enumerate(names)} for names in (nodes, relations))
    edges = sorted((place[s], place[o], code[p]) for s, p, o in triples)
    return nodes, relations, torch.tensor(edges).T.contiguous()


def _short(names: list[str]) -> list[str]:
    """The names without their namespace, except for those that would be the same."""
    short = [re.split("[#/]", name)[-1] for name in names]
    return [name if short.count(own) > 1 else own or name for name, own in zip(names, short, strict=True)]


def _labels(path: Path, entity: str, label: str) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row[entity]: row[label] for row in csv.DictReader(file, delimiter="\t")}


def _split(train: Tensor, test: Tensor, seed: int) -> Split:
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    val = round(VAL_SHARE * len(train))
    return Split(*(part.sort().values for part in (train[order[val:]], train[order[:val]], test)))
