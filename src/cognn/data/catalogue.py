"""Datasets that have a name: task, source and published statistics.  Imports no torch, for a quick ``data list``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cognn.config.metrics import Metric
from cognn.data.published.raw_files import in_cache, in_mirror, public_name
from cognn.errors import DataError

if TYPE_CHECKING:  # the module imports torch
    from cognn.data.dataset import Kind, Level

Origin = Literal["generated", "cache", "mirror", "network", "nowhere"]


@dataclass(frozen=True)
class Entry:
    """A dataset that has a name."""

    name: str
    level: Level
    kind: Kind
    metric: Metric
    description: str
    """One line."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """Published statistics, by the names of :meth:`cognn.data.check.statistics.Stats.facts`."""
    folder: tuple[str, str] | None = None
    """Collection and folder (or only file) of the raw files in cache and mirror; None if the dataset is generated."""
    downloadable: bool = True
    """Whether the raw files can be downloaded, or none are needed."""
    listed: bool = True
    """Whether ``cognn data list`` shows it; the description of another one names it otherwise."""

    @property
    def generated(self) -> bool:
        """Whether cognn generates it."""
        return self.folder is None

    @property
    def origin(self) -> Origin:
        """Where the dataset would be loaded from, in the order of search."""
        if self.folder is None:
            return "generated"
        if in_cache(*self.folder):
            return "cache"
        if in_mirror(*self.folder):
            return "mirror"
        return "network" if self.downloadable else "nowhere"

    @property
    def seeded(self) -> bool:
        """Whether it depends on the seed."""
        return self.generated and self.name != "cycles"


def _one_graph(nodes: int, edges: int, features: int, classes: int, homophily: float) -> dict[str, float]:
    return {"nodes": nodes, "edges": edges, "features": features, "classes": classes, "edge homophily": homophily}


def _directed(edges: int, self_loops: int = 0) -> dict[str, float]:
    return {"directed edges": edges, "self loops": self_loops, "undirected": False}


def _many_graphs(graphs: int, classes: int, nodes: float, edges: float) -> dict[str, float]:
    return {"graphs": graphs, "classes": classes, "nodes per graph": nodes, "edges per graph": edges}


def _generated(name: str, level: Level, kind: Kind, metric: Metric, description: str, **facts: float) -> Entry:
    return Entry(name, level, kind, metric, description, facts)


def _binary(name: str, description: str, facts: dict[str, float]) -> Entry:
    return Entry(name, "node", "binary", "roc_auc", description, facts, ("heterophilous", name.replace("-", "_")))


def _classes(name: str, folder: tuple[str, str], description: str, facts: dict[str, float], **more: bool) -> Entry:
    return Entry(name, "node", "multiclass", "accuracy", description, facts, folder, **more)


def _tu(name: str, description: str, facts: dict[str, float]) -> Entry:
    return Entry(name, "graph", "multiclass", "accuracy", description, facts, ("tu", name.upper()))


# Name in PyG, kind of task, nodes, undirected edges (None if the published graph is directed), what it is.
_GRAPHLAND: tuple[tuple[str, Kind, int, int | None, str], ...] = (
    ("hm-categories", "multiclass", 46_563, 10_730_995, "products bought together; which category?"),
    ("pokec-regions", "multiclass", 1_632_803, None, "users of a social network; which region?"),
    ("web-topics", "multiclass", 2_890_331, None, "websites and their links; which topic?"),
    ("tolokers-2", "binary", 11_758, 519_000, "crowd workers on shared tasks; who was banned?"),
    ("city-reviews", "binary", 148_801, 1_165_415, "reviewers of places; who is a fraud?"),
    ("artnet-exp", "binary", 50_405, 280_348, "artists; who makes explicit art?"),
    ("web-fraud", "binary", 2_890_331, None, "websites and their links; which are frauds?"),
    ("hm-prices", "regression", 46_563, 10_730_995, "products bought together; which price?"),
    ("avazu-ctr", "regression", 76_269, 10_984_077, "devices on shared sites; how many clicks?"),
    ("city-roads-M", "regression", 57_073, None, "roads of a city; which speed?"),
    ("city-roads-L", "regression", 142_257, None, "roads of a larger city; which speed?"),
    ("twitch-views", "regression", 168_114, 6_797_557, "streamers who follow each other; how many views?"),
    ("artnet-views", "regression", 50_405, 280_348, "artists; how many views?"),
    ("web-traffic", "regression", 2_890_331, None, "websites and their links; how many visits?"),
)
_NO_TIME = ("city-reviews", "city-roads-M", "city-roads-L", "web-traffic")


def _graphland(folder: str, kind: Kind, nodes: int, edges: int | None, what: str) -> Iterator[Entry]:
    """The dataset with its split RL, then with RH and TH, where it has a temporal one."""
    metrics: dict[str, Metric] = {"multiclass": "accuracy", "binary": "average_precision", "regression": "r2"}
    facts: dict[str, float] = {"nodes": nodes}
    if edges is not None:
        facts["edges"] = edges
    settings = ("", "-rh") if folder in _NO_TIME else ("", "-rh", "-th")
    for setting in settings:
        description = f"{what} (GraphLand; also {', '.join(settings[1:])})"
        name = folder.lower() + setting
        yield Entry(name, "node", kind, metrics[kind], description, facts, ("graphland", folder), listed=not setting)


# Where the paper's tables disagree with the data (pubmed's 18717 nodes, cora's 6 classes, the edges of ENZYMES), these
# are the figures of the data's own publication.
_ALL = (
    _generated(
        "root-neighbors",
        "node",
        "regression",
        "mae",
        "trees whose root averages its neighbours of degree 6",
        features=5,
    ),
    _generated(
        "directed-root-neighbors",
        "node",
        "regression",
        "mae",
        "root-neighbors, of those that point at the root",
        features=5,
        undirected=False,
    ),
    _generated(
        "relational-root-neighbors",
        "node",
        "regression",
        "mae",
        "root-neighbors, of those over one of two relations",
        features=5,
    ),
    _generated(
        "matching-neighbors",
        "node",
        "regression",
        "mae",
        "roots share neighbours; each averages those with its key",
        features=9,
        undirected=False,
    ),
    _generated(
        "cycles",
        "graph",
        "binary",
        "accuracy",
        "one cycle or two: pairs that 1-WL cannot tell apart",
        graphs=14,
        features=1,
        classes=2,
    ),
    _generated(
        "minesweeper-board",
        "node",
        "binary",
        "roc_auc",
        "a board of the game, 100 x 100, in the form of minesweeper",
        nodes=10_000,
        edges=39_402,
        features=7,
        classes=2,
    ),
    _generated(
        "long-range",
        "node",
        "regression",
        "mae",
        "copy a value from a marked node 5 hops away past distractors",
        features=3,
    ),
    _classes(
        "roman-empire",
        ("heterophilous", "roman_empire"),
        "words of an article; which syntactic role?",
        _one_graph(22_662, 32_927, 300, 18, 0.05),
    ),
    _classes(
        "amazon-ratings",
        ("heterophilous", "amazon_ratings"),
        "products bought together; which rating?",
        _one_graph(24_492, 93_050, 300, 5, 0.38),
    ),
    _binary("minesweeper", "cells of a board; which are mines?", _one_graph(10_000, 39_402, 7, 2, 0.68)),
    _binary("tolokers", "crowd workers on shared tasks; who was banned?", _one_graph(11_758, 519_000, 10, 2, 0.59)),
    _binary("questions", "users who answered each other; who stays?", _one_graph(48_921, 153_540, 301, 2, 0.84)),
    _classes(
        "roman-empire-glove",
        ("heterophilous", "roman_empire_glove"),
        "roman-empire with GloVe-50 vectors: not comparable with published scores",
        _one_graph(22_662, 32_927, 50, 18, 0.05),
        downloadable=False,
    ),
    _classes(
        "roman-empire-directed",
        ("heterophilous", "roman_empire"),
        "roman-empire with edges from earlier to later words",
        _one_graph(22_662, 32_927, 300, 18, 0.05) | _directed(32_927),
    ),
    _classes(
        "roman-empire-glove-directed",
        ("heterophilous", "roman_empire_glove"),
        "roman-empire-glove with edges from earlier to later words",
        _one_graph(22_662, 32_927, 50, 18, 0.05) | _directed(32_927),
        downloadable=False,
    ),
    _classes("cora", ("planetoid", "Cora"), "papers that cite each other", _one_graph(2_708, 5_278, 1_433, 7, 0.81)),
    _classes(
        "citeseer",
        ("planetoid", "CiteSeer"),
        "papers that cite each other",
        _one_graph(3_327, 4_552, 3_703, 6, 0.74),
    ),
    _classes(
        "pubmed", ("planetoid", "PubMed"), "papers that cite each other", _one_graph(19_717, 44_324, 500, 3, 0.80)
    ),
    _classes(
        "citeseer-directed",
        ("directed", "citeseer.npz"),
        "papers, with one edge for every citation",
        _one_graph(3_312, 4_536, 3_703, 6, 0.74) | _directed(4_715, self_loops=124),
        downloadable=False,
    ),
    _tu("imdb-binary", "casts of films; which of 2 genres?", _many_graphs(1_000, 2, 19.77, 96.53)),
    _tu("imdb-multi", "casts of films; which of 3 genres?", _many_graphs(1_500, 3, 13.00, 65.94)),
    _tu("reddit-binary", "discussion threads; which of 2 kinds?", _many_graphs(2_000, 2, 429.63, 497.75)),
    _tu("reddit-multi-5k", "discussion threads; which of 5 forums?", _many_graphs(4_999, 5, 508.52, 594.87)),
    _tu("nci1", "molecules; active against lung cancer cells?", _many_graphs(4_110, 2, 29.87, 32.30)),
    _tu("proteins", "proteins; enzyme or not?", _many_graphs(1_113, 2, 39.06, 72.82)),
    _tu("enzymes", "enzymes; which of 6 classes?", _many_graphs(600, 6, 32.63, 62.14)),
    Entry(
        "peptides-func",
        "graph",
        "multilabel",
        "average_precision",
        "peptides; which of 10 functions? (long-range graph benchmark)",
        {"graphs": 15_535, "classes": 10, "nodes": 2_344_859, "directed edges": 4_773_974},
        ("lrgb", "peptides-func"),
    ),
    _classes(
        "aifb",
        ("entities", "aifb"),
        "researchers in a knowledge graph of 45 relations; which group?",
        {"nodes": 8_285, "directed edges": 58_086, "relations": 90, "classes": 4, "undirected": False},
    ),
    *(entry for row in _GRAPHLAND for entry in _graphland(*row)),
)

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}
NAMES: tuple[str, ...] = tuple(ENTRIES)


def find_entry(name: str) -> Entry:
    """The entry of that name; an unknown one is a :class:`DataError` with the nearest names."""
    if name in ENTRIES:
        return ENTRIES[name]
    near = difflib.get_close_matches(public_name(name), NAMES, n=3, cutoff=0.5)  # PubMed, roman_empire
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise DataError(f"dataset {name!r} is not known; {hint}`cognn data list` shows all names")
