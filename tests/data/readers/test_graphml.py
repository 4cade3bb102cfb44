"""GraphML that NetworkX would read as another graph is refused, with the culprit."""

from pathlib import Path

import pytest

from cognn.config.options import DataConfig
from cognn.data.readers.files import load_files
from tests.data.own import refused

KEYS = '<key id="k0" for="node" attr.name="size" attr.type="double"/>'
KEYS += '<key id="k1" for="node" attr.name="y" attr.type="string"/>'
ROWS = "".join(
    f'<node id="n{i}"><data key="k0">{i}.5</data><data key="k1">{"ab"[i % 2]}</data></node>' for i in range(6)
)
EDGES = "".join(f'<edge source="n{i}" target="n{(i + 1) % 6}"/>' for i in range(6))


def config(folder: Path, keys: str = KEYS, nodes: str = ROWS, edges: str = EDGES, after: str = "") -> DataConfig:
    graph = f'<graph edgedefault="directed">{nodes}{edges}</graph>{after}'
    text = f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}{graph}</graphml>'
    (folder / "g.graphml").write_text(text)
    return DataConfig(str(folder / "g.graphml"), target="y")


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    dataset = load_files(config(tmp_path))
    assert (dataset.num_nodes, dataset.num_edges, dataset.item_ids) == (6, 6, [f"n{i}" for i in range(6)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"after": f'<graph edgedefault="directed">{ROWS}</graph>'}, "holds several graphs, or a nested one"),
        ({"nodes": ROWS.replace("</node>", '<graph edgedefault="directed"/></node>', 1)}, "or a nested one"),
        (
            {"nodes": ROWS.replace("</node>", EDGES[:31] + "</node>", 1)},
            "<edge> is outside of the <graph>",
        ),
        ({"nodes": ROWS + '<node id="n2"/>'}, "<node> 7: the id 'n2' is there twice"),
        ({"nodes": ROWS + "<node/>"}, "<node> 7: the id '' is there twice, or empty"),
        ({"edges": EDGES + '<edge source="n0" target="n9"/>'}, "<edge> 7: no <node> has the id 'n9'"),
        ({"keys": KEYS.replace('"size"', '"id"')}, "a data key of a node is named 'id'; rename it"),
        ({"keys": KEYS.replace('"size"', '""')}, "a data key of a node is named ''; rename it"),
        ({"keys": KEYS.replace('"size"', '"y"')}, "two data keys of a node are named 'y'; rename one"),
        ({"keys": KEYS + '<key id="k2" for="all" attr.name="source" attr.type="string"/>'}, "key of an edge is named"),
    ],
)
def test_what_would_be_read_as_another_graph_is_refused(changes: dict[str, str], words: str, tmp_path: Path) -> None:
    refused(config(tmp_path, **changes), "g.graphml", words)
