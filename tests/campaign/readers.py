"""Damaged inputs of every reader, judged by a second reading of the same file."""

import copy
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch_geometric.data import Data

from cognn.config.options import DataConfig
from cognn.config.toml import load_config
from cognn.data.load import from_memory, load_data
from cognn.errors import CognnError
from tests.campaign import plain, sound
from tests.campaign.case import ACCEPTED, REFUSED, RIGHT, Case, Told, Wrong, files_of
from tests.campaign.damage import damaged_arrays, damaged_bytes, damaged_rows, damaged_text, packed


def _judged(case: Case, config: DataConfig, words: list[str], judge: Callable[[], Callable[[Any], None]]) -> str:
    """Check a file by the command line; what it accepts is loaded, and compared with the second reading."""
    before = files_of(case.folder)
    told = case.run("data", "check", *words)
    if files_of(case.folder) != before:
        raise Wrong("touched: data check changed files")
    try:
        dataset = load_data(config)
    except CognnError as error:
        if len(str(error).splitlines()) != 1:
            raise Wrong(f"not one line: {error}") from None
        if told.code == 0:
            raise Wrong(f"data check accepts what loading refuses: {error}") from None
        return REFUSED
    if told.code:
        return REFUSED  # a finding that a training would meet later
    if not (dataset.x.to_dense() if dataset.x.layout != torch.strided else dataset.x).isfinite().all():
        raise Wrong("silently wrong: features that are not finite")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare = judge()
    except Wrong:
        raise
    except Exception:  # the second reader refuses the file, or does not know what it means
        return ACCEPTED
    try:
        compare(dataset)
    except (plain.Unclear, ValueError, KeyError, TypeError):
        return ACCEPTED
    return RIGHT


def table(suffix: str) -> Callable[[Case], str]:
    """Cases of node and edge tables of one format."""
    text = suffix != ".parquet"

    def run(case: Case) -> str:
        rows = dict(zip(("nodes", "edges"), sound.graph(), strict=True))
        which = case.draw.choice(["nodes", "nodes", "edges"])
        as_rows = case.draw.random() < 0.5
        if as_rows:
            rows[which] = case.changed(rows[which], damaged_rows)
        for name, content in rows.items():
            try:
                sound.write_table(content, Path(name + suffix))
            except (pl.exceptions.PolarsError, TypeError, OverflowError):  # no such file can exist
                return REFUSED
        if not as_rows:
            path = Path(which + suffix)
            path.write_bytes(case.changed(path.read_bytes(), damaged_text if text else damaged_bytes))
        files = [f"nodes{suffix}", f"edges{suffix}"]
        config = DataConfig(files[0], edges=files[1], target="label", directed=True, standardize=False, stratify=True)
        words = [files[0], "--edges", files[1], "--target", "label", "--directed", "--no-standardize"]

        def judge() -> Callable[[Any], None]:
            graph = plain.Graph(*(plain.rows_of(Path(file)) for file in files))
            return lambda dataset: plain.differences(graph, dataset)

        return _judged(case, config, words, judge)

    return run


def graphml(case: Case) -> str:
    """GraphML whose bytes, lines and elements are changed."""

    def change(rng: Any, content: bytes) -> bytes:
        if rng.random() < 0.5 or b"</graph>" not in content:
            return damaged_text(rng, content)
        cut = content.index(b"</graph>")
        node = b'<node id="%s"><data key="d0">1.5</data></node>' % rng.choice([b"n0", b"new", b""])
        nested = b'<graph edgedefault="directed"><node id="q"/></graph>'
        second = b'</graph><graph edgedefault="directed">' + node
        edge = b'<edge source="n1" target="%s"/>' % rng.choice([b"n2", b"zz"])
        odd = rng.choice([node, nested, second, edge, b"<hyperedge/>"])
        renamed = content.replace(
            b'attr.name="size"', b'attr.name="%s"' % rng.choice([b"id", b"label", b"source", b""])
        )
        return rng.choice([content[:cut] + odd + content[cut:], renamed])

    path = Path("g.graphml")
    path.write_bytes(case.changed((case.sound / "graph.graphml").read_bytes(), change))
    config = DataConfig("g.graphml", target="label", standardize=False, stratify=True, fill="zero")
    words = ["g.graphml", "--target", "label", "--no-standardize", "--fill", "zero"]

    def judge() -> Callable[[Any], None]:
        graph = plain.read_graphml(path)
        return lambda dataset: plain.differences(graph, dataset)

    return _judged(case, config, words, judge)


def npz(case: Case) -> str:
    """Archives whose members or bytes are changed."""
    members, compress = sound.arrays(), case.draw.random() < 0.5
    if case.draw.random() < 0.6:
        content = packed(case.changed(members, damaged_arrays), compress)
    else:
        content = case.changed(packed(members, compress), damaged_bytes)
    Path("g.npz").write_bytes(content)
    config = DataConfig("g.npz", directed=True, standardize=False, stratify=True)

    def judge() -> Callable[[Any], None]:
        arrays = plain.read_npz(Path("g.npz"))
        return lambda dataset: plain.array_differences(arrays, dataset)

    return _judged(case, config, ["g.npz", "--directed", "--no-standardize"], judge)


def pyg(case: Case) -> str:
    """PyG data with odd attributes, which Python hands over in memory."""
    arrays = case.changed({k: v for k, v in sound.arrays().items() if k != "edge_attr"}, damaged_arrays)
    try:
        data = Data(**{name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()})
    except (TypeError, ValueError):  # no tensor holds that
        return REFUSED
    before = copy.deepcopy(data)
    try:
        dataset = from_memory(data, DataConfig("(memory)", stratify=True))
    except CognnError as error:
        if len(str(error).splitlines()) != 1:
            raise Wrong(f"not one line: {error}") from None
        return REFUSED
    if any(not torch.equal(before[key].nan_to_num(), data[key].nan_to_num()) for key in before.keys()):  # noqa: SIM118
        raise Wrong("touched: the data of the caller")
    try:
        plain.array_differences(arrays, dataset)
    except (plain.Unclear, ValueError, KeyError, TypeError):
        return ACCEPTED
    return RIGHT


def new_graph(case: Case) -> str:
    """Predictions for a new graph, whole or damaged: one for every row, and the same where only the order is other."""
    copied(case, "run")
    nodes, edges = sound.graph()
    suffix, harmless = case.draw.choice([".csv", ".tsv", ".jsonl", ".parquet"]), case.draw.random() < 0.4
    if harmless:
        case.draw.shuffle(nodes), case.draw.shuffle(edges)
        names = list(nodes[0])
        case.draw.shuffle(names)
        nodes = [{name: row[name] for name in names} for row in nodes]
    else:
        nodes = case.changed(nodes, damaged_rows)
    try:
        sound.write_table(nodes, Path(f"new{suffix}"))
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        return REFUSED
    sound.write_table(edges, Path(f"ends{suffix}"))
    told = case.run("predict", "run", f"new{suffix}", "--edges", f"ends{suffix}", "--out", "out.csv", "--samples", "0")
    if told.code:
        return _nothing_left(Path("out.csv"), harmless, told)
    out = pl.read_csv("out.csv", infer_schema=False)
    rows = plain.rows_of(Path(f"new{suffix}"))
    if [plain.word(row.get("id")) for row in rows] != out["id"].to_list():
        raise Wrong("silently wrong: the ids of the predictions")
    if not harmless and nodes != sound.graph()[0]:
        return ACCEPTED
    known = pl.read_csv(case.sound / "predictions.csv", infer_schema=False)
    probabilities = [name for name in known.columns if name.startswith("p_")]
    both = known.join(out, on="id", validate="1:1")
    for name in [*probabilities, "prediction"]:
        pairs = zip(both[name], both[f"{name}_right"], strict=True)
        if not all(a == b or abs(float(a) - float(b)) < 1e-5 for a, b in pairs):
            raise Wrong(f"silently wrong: {name} depends on the order of the rows or on the format")
    return RIGHT


def pairs(case: Case) -> str:
    """Tables of pairs to predict: every pair gets the score it has in the whole table."""
    copied(case, "run_links")
    rows = pl.read_csv(case.sound / "pairs.csv", infer_schema=False).to_dicts()
    suffix = case.draw.choice([".csv", ".jsonl", ".parquet"])
    path = Path(f"some{suffix}")
    if case.draw.random() < 0.5:
        try:
            sound.write_table(case.changed(rows, damaged_rows), path)
        except (pl.exceptions.PolarsError, TypeError, OverflowError):
            return REFUSED
    else:
        sound.write_table(rows, path)
        path.write_bytes(case.changed(path.read_bytes(), damaged_bytes if suffix == ".parquet" else damaged_text))
    told = case.run("predict", "run_links", "--pairs", path.name, "--out", "out.csv", "--samples", "0")
    if told.code:
        return _nothing_left(Path("out.csv"), False, told)
    try:
        wanted = [(plain.word(row["source"]), plain.word(row["target"])) for row in plain.rows_of(path)]
    except Exception:
        return ACCEPTED
    out = pl.read_csv("out.csv", infer_schema=False)
    if list(zip(out["source"], out["target"], strict=True)) != wanted:
        raise Wrong("silently wrong: other pairs than the table has")
    known = {row[:2]: row[2:] for row in pl.read_csv(case.sound / "from_pairs.csv", infer_schema=False).iter_rows()}
    for row in out.iter_rows():
        before = known.get(row[:2])
        if before and any(a != b and abs(float(a) - float(b)) > 1e-5 for a, b in zip(before, row[2:], strict=True)):
            raise Wrong("silently wrong: the score of a pair depends on the others")
    return RIGHT


RECIPE = b"""[data]
dataset = "nodes.csv"
edges = "edges.csv"
target = "label"
directed = true

[model]
hidden_channels = 8
num_layers = 2
dropout = 0.1
action_space = "joint"

[train]
epochs = 1
lr = 0.01
seed = 3
schedule = "cosine"
"""


def recipe(case: Case) -> str:
    """TOML files of options: every option that is accepted is the option that the run is trained with."""

    def change(rng: Any, content: bytes) -> bytes:
        if rng.random() < 0.4:
            return damaged_text(rng, content)
        lines = content.split(b"\n")
        i = rng.choice([i for i, line in enumerate(lines) if b"=" in line] or [0])
        value = rng.choice(
            [b"-1", b"0", b"1.5", b'"x"', b"true", b"[]", b"nan", b"inf", b"1e400", b"{}", b"1979-05-27"]
        )
        lines[i] = lines[i].split(b"=")[0] + b"= " + value
        return b"\n".join(lines)

    copied(case, "nodes.csv", "edges.csv")
    content = case.changed(RECIPE, change)
    Path("r.toml").write_bytes(content)
    try:
        if tomllib.loads(content.decode()).get("train", {}).get("epochs", 0) > 5:
            return ACCEPTED  # valid, and too long to wait for
    except (ValueError, TypeError, AttributeError):
        pass
    told = case.run("train", "--recipe", "r.toml", "--out", "out", "--epochs", "1", "--quiet")
    if told.code:
        return _nothing_left(Path("out"), False, told)
    document, used = tomllib.loads(Path("r.toml").read_text("utf-8")), load_config("out/config.toml")
    for section, values in document.items():
        for name, value in {} if section == "about" else values.items():
            if (section, name) != ("train", "epochs") and getattr(getattr(used, section), name) != value:
                raise Wrong(f"silently wrong: {section}.{name} is not what the recipe says")
    return RIGHT


def _nothing_left(out: Path, harmless: bool, told: Told) -> str:
    if harmless:
        raise Wrong(f"refused without a reason: {told.err}")
    if out.exists():
        raise Wrong(f"left behind: {out} after a refusal")
    return REFUSED


def copied(case: Case, *names: str) -> None:
    """Copy sound files, and the tables that runs refer to, into the folder of the case."""
    import shutil

    for name in dict.fromkeys(["nodes.csv", "edges.csv", *names]):
        source = case.sound / name
        if source.is_dir():
            shutil.copytree(source, name)
        else:
            shutil.copy(source, name)
