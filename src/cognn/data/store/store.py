"""One graph of a node task as a folder of memory-mapped arrays.

======================  ==============================================================================================
file                    content
======================  ==============================================================================================
``store.json``          format and version; type, shape, size and CRC-32 of every array; task, class names, schema;
                        a digest of all this
``x.npy``               features ``(N, F)``, float32
``in_ptr.npy``          ``(N + 1,)`` int64: the edges into node ``v`` are ``in_ptr[v]`` to ``in_ptr[v + 1]``
``in_sender.npy``       ``(E,)`` their senders, ascending; int32 if that suffices
``edge_attr.npy``       optional ``(E, k)`` in the same order: float32 amounts or int64 categories
``edge_type.npy``       optional ``(E,)`` int32 in the same order: the relation of every edge
``edge_weight.npy``     optional ``(E,)`` float32 in the same order: the weight of every edge
``y.npy``               optional targets, as in a :class:`~cognn.data.dataset.Dataset`
``split.npy``           optional ``(splits, N)`` int8: 0 none, 1 train, 2 val, 3 test, 4 train and val, 5 train and
                        test, 6 val and test, 7 all
``id_ptr.npy``,         optional ids of the nodes: bytes ``id_ptr[v]`` to ``id_ptr[v + 1]`` of ``id_text`` in UTF-8;
``id_text.npy``         by default nodes are numbered
======================  ==============================================================================================
"""

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.metrics import METRICS
from cognn.core.graph import Graph
from cognn.data.dataset import KINDS, Dataset, Split, Task
from cognn.data.tables.schema import Schema
from cognn.data.tables.targets import missing_targets
from cognn.errors import DataError
from cognn.files.mapped_arrays import mapped
from cognn.files.safe_read import data_errors

SPLIT_CODES = np.array([0, 1, 2, 4, 3, 5, 6, 7], np.int8)
"""From bits (1 train, 2 val, 4 test) to the codes of ``split.npy``, and back."""
FORMAT, VERSION, HEADER = "cognn-store", 1, "store.json"
REQUIRED = ("x", "in_ptr", "in_sender")
KNOWN = (*REQUIRED, "edge_attr", "edge_type", "edge_weight", "y", "split", "id_ptr", "id_text")
AGAIN = "copy it again, or build it again with cognn data build"
CHUNK = 1 << 24


@dataclass
class Store:
    """An open store: its metadata in memory, its arrays mapped."""

    path: Path
    name: str
    task: Task | None
    """None if the store has no targets."""
    arrays: dict[str, NDArray[Any]] = field(repr=False)
    identity: str
    """Hash of the header, which holds the checksums: it changes with any byte of the store."""
    class_names: list[str] | None = None
    edge_categories: tuple[int, ...] | None = None
    node_categories: tuple[int, ...] | None = None
    sign_columns: tuple[int, int] | None = None
    relation_names: list[str] | None = None
    num_relations: int = 1
    schema: Schema | None = field(default=None, repr=False)
    checksums: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.arrays["x"].shape[0])

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return int(self.arrays["in_sender"].shape[0])

    def edge_types(self, first: int, last: int) -> Tensor | None:
        """The relations of the edges ``first`` to ``last``, excluding the latter; None if there is one relation."""
        if "edge_type" not in self.arrays:
            return None
        return self.checked_types(torch.from_numpy(np.array(self.arrays["edge_type"][first:last])))

    def checked_types(self, types: Tensor) -> Tensor:
        """The relations of some edges, after checking that they exist."""
        types = types.long()
        if len(types) and not 0 <= int(types.min()) <= int(types.max()) < self.num_relations:
            raise DataError(f"{self.path}: edge_type has relations that do not exist; {AGAIN}")
        return types

    def ids(self, first: int, last: int) -> list[str]:
        """Ids of the nodes ``first`` to ``last``, excluding the latter."""
        if "id_ptr" not in self.arrays:
            return [str(i) for i in range(first, last)]
        ends = self.arrays["id_ptr"][first : last + 1]
        text = self.arrays["id_text"][ends[0] : ends[-1]].tobytes()
        ends = (ends - ends[0]).tolist()
        with data_errors(self.path / "id_text.npy", AGAIN):
            return [text[a:b].decode() for a, b in pairwise(ends)]

    def verify(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Compare header and arrays with their checksums; ``progress`` is called with the bytes done and the total."""
        _check_header(self.path / HEADER)
        sizes = {name: (self.path / f"{name}.npy").stat().st_size for name in self.checksums}
        total, done = sum(sizes.values()), 0
        for name, expected in self.checksums.items():
            file = self.path / f"{name}.npy"
            if checksum(file) != expected:
                raise DataError(f"{file}: its content has changed since it was built; {AGAIN}")
            done += sizes[name]
            if progress is not None:
                progress(done, total)

    def blank(self, task: Task | None = None) -> Dataset:
        """A dataset without nodes, with the columns of the store, to build a model for it."""
        task = self.task or task
        if task is None:
            raise DataError(f"{self.path}: holds no targets, so the task is unknown")
        x, attr = self.arrays["x"], self.arrays.get("edge_attr")
        no_attr: Tensor | None = None if attr is None else torch.from_numpy(np.empty((0, attr.shape[1]), attr.dtype))
        graph = Graph(torch.empty(2, 0, dtype=torch.long), 0, num_relations=self.num_relations)
        return self._dataset(task, torch.empty(0, x.shape[1]), missing_targets(task, 0), graph, [], no_attr)

    def dataset(self) -> Dataset:
        """Load the whole graph into memory, after :meth:`verify`."""
        if self.task is None or "y" not in self.arrays:
            raise DataError(f"{self.path}: holds no targets; training needs them")
        self.verify()
        loaded = {name: torch.from_numpy(np.array(array)) for name, array in self.arrays.items()}
        receiver = torch.repeat_interleave(loaded["in_ptr"].diff())
        ends, types = torch.stack([loaded["in_sender"].long(), receiver]), self.edge_types(0, self.num_edges)
        graph = Graph.owning(ends, self.num_nodes, types, self.num_relations, loaded.get("edge_weight"))
        splits = [split_of(row) for row in self.arrays.get("split", [])]
        dataset = self._dataset(self.task, loaded["x"], loaded["y"], graph, splits, loaded.get("edge_attr"))
        dataset.item_ids = self.ids(0, self.num_nodes) if "id_ptr" in self.arrays else None
        return dataset

    def _dataset(
        self, task: Task, x: Tensor, y: Tensor, graph: Graph, splits: list[Split], edge_attr: Tensor | None
    ) -> Dataset:
        return Dataset(
            name=self.name,
            task=task,
            x=x,
            y=y,
            graphs=[graph],
            splits=splits,
            edge_attr=edge_attr,
            edge_categories=self.edge_categories,
            node_categories=self.node_categories,
            sign_columns=self.sign_columns,
            class_names=self.class_names,
            schema=self.schema,
            relation_names=self.relation_names,
        )


def is_store(path: str | Path) -> bool:
    """Whether a folder has the header of a store, which may still be damaged."""
    try:
        return (Path(path).expanduser() / HEADER).is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def open_store(path: str | Path) -> Store:
    """Open a store; one that is damaged, truncated, foreign or of another version is a :class:`DataError`."""
    folder = Path(path).expanduser()
    if not is_store(folder):
        raise DataError(f"{path}: not a store, it has no {HEADER}; make one with cognn data build")
    with data_errors(folder / HEADER, AGAIN):
        text = (folder / HEADER).read_text(encoding="utf-8")
        header = json.loads(text)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise DataError(f"{path}: {HEADER} is not one that cognn wrote; make a store with cognn data build")
        if header.get("version") != VERSION:
            raise DataError(
                f"{path}: a store of version {header.get('version')}, but this cognn reads version {VERSION};"
                " build it again with cognn data build"
            )
        store = _from_header(folder, header)
        store.identity = hashlib.sha256(text.encode()).hexdigest()
    _check_arrays(store)
    return store


def _from_header(folder: Path, header: dict[str, Any]) -> Store:
    facts = header["arrays"]
    lost = [name for name in REQUIRED if name not in facts]
    if lost or not set(facts) <= set(KNOWN):
        raise DataError(f"{folder}: {HEADER} lists other arrays than a store has; {AGAIN}")
    arrays = {name: _mapped(folder / f"{name}.npy", fact) for name, fact in facts.items()}
    task = None if header["task"] is None else Task(**header["task"])
    if task is not None and (task.level != "node" or task.kind not in KINDS or task.metric not in METRICS):
        raise DataError(f"{folder}: {HEADER} has an unknown task; {AGAIN}")
    schema = None if header["schema"] is None else Schema.from_json(json.dumps(header["schema"]))
    tuples = {
        name: None if header[name] is None else tuple(int(size) for size in header[name])
        for name in ("edge_categories", "node_categories", "sign_columns")
    }
    checksums = {name: int(fact["crc32"]) for name, fact in facts.items()}
    names, relations = (
        None if header.get(name) is None else [str(word) for word in header[name]]
        for name in ("class_names", "relation_names")
    )
    store = Store(folder, str(header["name"]), task, arrays, "", names, **tuples, schema=schema, checksums=checksums)  # type: ignore[arg-type]
    store.relation_names, store.num_relations = relations, int(header.get("num_relations", 1))  # not in 0.1
    return store


def _check_header(file: Path) -> None:
    """Compare a header with its digest, which stores of version 0.1 do not have."""
    with data_errors(file, AGAIN):
        header = json.loads(file.read_text(encoding="utf-8"))
        if header.pop("digest", _digest(header)) != _digest(header):
            raise DataError(f"{file}: has changed since it was written; {AGAIN}")


def _digest(header: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16).hexdigest()


def _mapped(file: Path, fact: dict[str, Any]) -> NDArray[Any]:
    if not file.is_file():
        raise DataError(f"{file}: is missing from the store; {AGAIN}")
    size = file.stat().st_size
    if size != fact["bytes"]:
        raise DataError(f"{file}: has {size:,} bytes, but {fact['bytes']:,} were written; {AGAIN}")
    with data_errors(file, AGAIN):
        array = mapped(file)
    if str(array.dtype) != fact["dtype"] or list(array.shape) != fact["shape"]:
        raise DataError(f"{file}: holds {array.dtype} {array.shape}, not what {HEADER} says; {AGAIN}")
    return array


def _check_arrays(store: Store) -> None:
    """Cheap checks against reads out of bounds; the senders are checked when they are used."""
    a, n, e = store.arrays, store.num_nodes, store.num_edges
    shapes = {"x": (n, a["x"].shape[-1]), "in_ptr": (n + 1,), "in_sender": (e,)}
    types = {"x": "float32", "in_ptr": "int64", "in_sender": f"int{a['in_sender'].dtype.itemsize * 8}"}
    if "edge_attr" in a:
        shapes["edge_attr"] = (e, a["edge_attr"].shape[-1])
        types["edge_attr"] = "float32" if store.edge_categories is None else "int64"
    if "edge_type" in a:
        shapes["edge_type"], types["edge_type"] = (e,), "int32"
    if "edge_weight" in a:
        shapes["edge_weight"], types["edge_weight"] = (e,), "float32"
    if "y" in a and store.task is not None:
        y = missing_targets(store.task, 0)
        shapes["y"], types["y"] = (n, *y.shape[1:]), str(y.dtype).removeprefix("torch.")
    if "split" in a:
        shapes["split"], types["split"] = (a["split"].shape[0], n), "int8"
    if "id_ptr" in a or "id_text" in a:
        shapes["id_ptr"], types["id_ptr"] = (n + 1,), "int64"
    for name, shape in shapes.items():
        if name not in a or a[name].shape != shape or str(a[name].dtype) != types[name]:
            raise DataError(f"{store.path}: {name} does not fit {n:,} nodes and {e:,} edges; {AGAIN}")
    for name, end in (("in_ptr", e), ("id_ptr", a["id_text"].size if "id_text" in a else 0)):
        ptr = a.get(name)
        if ptr is not None and (ptr[0] != 0 or ptr[-1] != end or _decreases(ptr)):
            raise DataError(f"{store.path / name}.npy: does not count up to {end:,}; {AGAIN}")
    if "split" in a and a["split"].size and not 0 <= a["split"].min() <= a["split"].max() < len(SPLIT_CODES):
        raise DataError(f"{store.path / 'split'}.npy: holds codes that mean no part; {AGAIN}")


def split_of(codes: NDArray[np.int8]) -> Split:
    """The split in a row of ``split.npy``."""
    bits = SPLIT_CODES[codes]
    return Split(*(torch.from_numpy(np.flatnonzero(bits & 1 << bit)) for bit in range(3)))


def _decreases(ptr: NDArray[np.int64]) -> bool:
    chunks = (ptr[start : start + CHUNK + 1] for start in range(0, len(ptr), CHUNK))
    return any(bool((chunk[1:] < chunk[:-1]).any()) for chunk in chunks)


def checksum(file: Path) -> int:
    """CRC-32 of a file."""
    value = 0
    with open(file, "rb") as handle:
        while chunk := handle.read(CHUNK):
            value = zlib.crc32(chunk, value)
    return value


def write_header(folder: Path, name: str, task: Task | None, facts: dict[str, Any], schema: Schema | None) -> None:
    """Complete a store: describe the arrays in ``folder`` in its header."""
    arrays = {}
    for file in sorted(folder.glob("*.npy")):
        array = mapped(file)
        arrays[file.stem] = {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "bytes": file.stat().st_size,
            "crc32": checksum(file),
        }
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "task": None if task is None else asdict(task),
        "class_names": None,
        "edge_categories": None,
        "node_categories": None,
        "sign_columns": None,
        "relation_names": None,
        "num_relations": 1,
        **facts,
        "schema": None if schema is None else json.loads(schema.to_json()),
        "arrays": arrays,
    }
    header["digest"] = _digest(json.loads(json.dumps(header)))
    (folder / HEADER).write_text(json.dumps(header, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
