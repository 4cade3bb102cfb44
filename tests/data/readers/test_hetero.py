"""PyG's ``HeteroData``: one graph with a relation for every edge type."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import Data, HeteroData

import cognn
from cognn.data.readers.pyg_data import from_pyg, pyg_with_schema
from cognn.data.tables.schema import Schema
from cognn.errors import DataError

WRITES, CITES, WRITTEN = ("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "rev_writes", "author")


def library(seed: int = 0, authors: int = 8, papers: int = 12) -> HeteroData:
    rng = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["author"].x = torch.randn(authors, 2, generator=rng)
    data["paper"].x = torch.randn(papers, 3, generator=rng)
    data["venue"].num_nodes = 2
    data["paper"].y = torch.arange(papers) % 3

    def ends(one: int, other: int, count: int) -> torch.Tensor:
        return torch.stack([torch.randint(size, (count,), generator=rng) for size in (one, other)])

    data[WRITES].edge_index = ends(authors, papers, 10)
    data[CITES].edge_index = ends(papers, papers, 7)
    data[WRITTEN].edge_index = data[WRITES].edge_index.flip(0)
    return data


def one_line(call, message: str) -> None:
    with pytest.raises(DataError) as error:
        call()
    assert "\n" not in str(error.value)
    assert message in str(error.value), error.value


def test_it_is_the_homogeneous_graph_of_pyg() -> None:
    data = library()
    dataset, expected = from_pyg(data), data.to_homogeneous()
    graph = dataset.graphs[0]
    assert torch.equal(graph.edge_index, expected.edge_index)
    assert graph.edge_weight is None
    for number, kind in enumerate(data.edge_types):
        data[kind].edge_weight = torch.rand(data[kind].num_edges) + number
    assert torch.equal(from_pyg(data).graphs[0].edge_weight, data.to_homogeneous().edge_weight)
    assert torch.equal(graph.edge_type, expected.edge_type)
    assert dataset.relation_names == ["author__writes__paper", "paper__cites__paper", "paper__rev_writes__author"]
    assert dataset.relation_names == ["__".join(edge_type) for edge_type in expected._edge_type_names]
    assert (dataset.num_nodes, dataset.num_relations) == (22, 3)
    assert dataset.target_nodes == (8, 20)
    assert dataset.y.tolist() == [-1] * 8 + data["paper"].y.tolist() + [-1] * 2
    items = torch.cat([dataset.splits[0].train, dataset.splits[0].val, dataset.splits[0].test])
    assert sorted(items.tolist()) == list(range(8, 20))


def test_a_linear_encoder_is_one_for_every_node_type() -> None:
    data, dataset = library(), from_pyg(library())
    assert dataset.x.shape == (22, 2 + 3 + 0 + 3)
    encoder = nn.Linear(8, 5)
    weight, bias = encoder.weight, encoder.bias
    expected = [
        data["author"].x @ weight[:, :2].T + bias + weight[:, 5],
        data["paper"].x @ weight[:, 2:5].T + bias + weight[:, 6],
        (bias + weight[:, 7]).expand(2, 5),
    ]
    torch.testing.assert_close(encoder(dataset.x), torch.cat(expected))


def test_one_node_type_keeps_its_features() -> None:
    data = HeteroData()
    data["paper"].x, data["paper"].y = torch.randn(6, 3), torch.randn(6, 2)
    data[CITES].edge_index = torch.tensor([[0, 1], [1, 2]])
    data[CITES].edge_attr = torch.randn(2, 4)
    dataset = from_pyg(data)
    assert torch.equal(dataset.x, data["paper"].x)
    assert torch.equal(dataset.y, data["paper"].y)
    assert torch.equal(dataset.edge_attr, data[CITES].edge_attr)
    assert (dataset.num_relations, dataset.relation_names) == (1, ["paper__cites__paper"])


@pytest.mark.parametrize(
    ("y", "task", "expected"),
    [
        (torch.arange(12), "regression", torch.arange(12.0).unsqueeze(1)),
        (torch.arange(12) % 2 == 0, "", (torch.arange(12) % 2 == 0).float()),
        (torch.arange(24).view(12, 2) % 2, "multilabel", torch.arange(24).view(12, 2) % 2.0),
        (torch.arange(12) - 6.0, "", torch.arange(12).unsqueeze(1) - 6.0),
    ],
)
def test_targets_of_other_types_are_missing(y: torch.Tensor, task: str, expected: torch.Tensor) -> None:
    data = library()
    data["paper"].y = y + 0.5 if y.is_floating_point() else y
    dataset = from_pyg(data, task)
    torch.testing.assert_close(dataset.y[8:20], expected + 0.5 if y.is_floating_point() else expected)
    assert dataset.y[:8].isnan().all()
    assert dataset.y[20:].isnan().all()


def test_masks_are_those_of_the_type_with_the_target() -> None:
    data = library()
    for i, part in enumerate(("train", "val", "test")):
        data["paper"][f"{part}_mask"] = torch.arange(12) % 3 == i
        data["author"][f"{part}_mask"] = torch.ones(8, dtype=torch.bool)
    split = from_pyg(data).splits[0]
    assert split.val.tolist() == [9, 12, 15, 18]
    assert split.train.tolist() == [8, 11, 14, 17]


# Bad data -------------------------------------------------------------------------------------------------------------


def change(what: str) -> HeteroData:
    data = library()
    if what == "empty":
        return HeteroData()
    if what == "dangling":
        data["paper", "in", "journal"].edge_index = torch.tensor([[0], [0]])
    if what == "no nodes":
        data["journal"].name = "x"
    if what == "no target":
        del data["paper"].y
    if what == "two targets":
        data["author"].y = torch.arange(8)
    if what == "range":
        data[WRITES].edge_index[0, 3] = 8
    if what == "no edges":
        del data[WRITES].edge_index
        data[WRITES].edge_attr = torch.ones(10, 1)
    if what == "weights":
        data[CITES].edge_weight = torch.ones(7)
    if what == "features of some edges":
        data[CITES].edge_attr = torch.ones(7, 1)
    if what == "short features":
        data[CITES].edge_attr = torch.ones(6, 1)
    if what == "a number for features":
        data[CITES].edge_attr = torch.tensor(1.0)
    if what == "nan":
        data["author"].x[1, 1] = torch.nan
    if what == "integers":
        data["author"].x = torch.arange(16).view(8, 2)
    if what == "short target":
        data["paper"].y = torch.arange(5)
    return data


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("empty", "data: has no node types; give the nodes of one"),
        (
            "dangling",
            "data: the edges ('paper', 'in', 'journal') join nodes of type 'journal', of which there are none",
        ),
        ("no nodes", "data['journal']: has no nodes; give x or num_nodes, or leave the type out"),
        ("no target", "data: none of 'author', 'paper', 'venue' has a target y; give it to one type"),
        (
            "two targets",
            "data: 'author', 'paper' have a target y; delete that of all but one, as in del data['paper'].y",
        ),
        ("range", "data['author', 'writes', 'paper']: an edge names node 8, the type has 8 nodes"),
        ("no edges", "data['author', 'writes', 'paper']: expected an edge_index of integers (2, E), got none"),
        (
            "weights",
            "data['author', 'writes', 'paper']: has no edge_weight, unlike data['paper', 'cites', 'paper']; give all",
        ),
        ("features of some edges", "data['author', 'writes', 'paper']: has no edge_attr, unlike data['paper', 'cites'"),
        ("short features", "data['paper', 'cites', 'paper']: edge_attr has shape (6, 1), there are 7 edges"),
        ("a number for features", "data['paper', 'cites', 'paper']: edge_attr has shape (), there are 7 edges"),
        ("nan", "data['author']: 'x'[1, 1] is nan; expected finite numbers"),
        ("integers", "data['author']: x holds integers, 0 to 15"),
        ("short target", "data['paper']: y has shape (5,), there are 12 nodes"),
    ],
)
def test_bad_data_is_told_in_one_line(what: str, message: str) -> None:
    one_line(lambda: from_pyg(change(what)), message)


# New data for a trained model -----------------------------------------------------------------------------------------


def test_new_data_is_read_by_the_names_of_its_types() -> None:
    schema = Schema.from_json(from_pyg(library()).schema.to_json())
    old, new = library(1), HeteroData()
    for kind in ("paper", "author"):  # in another order, without venues, and without one edge type
        new[kind].x = old[kind].x
    new[CITES].edge_index, new[WRITES].edge_index = old[CITES].edge_index, old[WRITES].edge_index
    dataset = pyg_with_schema(schema, new)
    assert dataset.target_nodes == (8, 20)
    del old["venue"], old["paper"].y, old[WRITTEN]
    expected = pyg_with_schema(schema, old)
    found, wanted = (
        torch.cat([one.graphs[0].edge_index, one.graphs[0].edge_type.unsqueeze(0)]).T.tolist()
        for one in (dataset, expected)
    )
    assert sorted(found) == sorted(wanted)
    assert torch.equal(dataset.x, expected.x)
    assert dataset.num_relations == 3
    assert (dataset.y == -1).all()
    no_papers = HeteroData()
    no_papers["author"].x = old["author"].x
    one_line(lambda: pyg_with_schema(schema, no_papers), "data: has no nodes of type 'paper', which the model predicts")
    new["journal"].num_nodes = 3
    one_line(lambda: pyg_with_schema(schema, new), "data: the model knows no node type 'journal', but 'author'")
    del new["journal"]
    new["paper", "likes", "paper"].edge_index = new[CITES].edge_index
    one_line(lambda: pyg_with_schema(schema, new), "data['paper', 'likes', 'paper']: the model knows no such edge type")
    old["author"].x = torch.randn(8, 4)
    one_line(lambda: pyg_with_schema(schema, old), "data['author']: x has 4 features, the model was trained on 2")
    plain = Data(x=torch.randn(3, 8), edge_index=torch.tensor([[0], [1]]))
    one_line(lambda: pyg_with_schema(schema, plain), "data: the model was trained on a HeteroData; give it the same")
    other = from_pyg(Data(x=torch.randn(6, 8), edge_index=torch.tensor([[0], [1]]), y=torch.arange(6) % 2)).schema
    one_line(lambda: pyg_with_schema(other, library()), "data: the model was trained on a Data; give it the same")
    assert not schema.same_columns(replace(schema, node_types={"paper": 3}))


def test_fit_and_predict(tmp_path) -> None:
    data = library(papers=30)
    fitted = cognn.fit(data, out=tmp_path / "run", action="none", hidden_channels=8, num_layers=2, epochs=3)
    found = fitted.predict()
    assert found.value.shape == (30, 3)
    again = cognn.open_run(tmp_path / "run", library(papers=30)).predict(data)
    torch.testing.assert_close(again.value, found.value)
    assert fitted.predict(library(1, papers=5)).value.shape == (5, 3)
    known = fitted.score(data)
    values, y = found.value.argmax(1), data["paper"].y
    assert known == pytest.approx(float((values == y).double().mean()))
    data[WRITES].edge_index = data[WRITES].edge_index[:, :-1]
    with pytest.raises(cognn.errors.RunError, match="the dataset has changed since this run"):
        cognn.open_run(tmp_path / "run", data)


def test_a_bad_schema_is_refused() -> None:
    text = from_pyg(library()).schema.to_json()
    for wrong in ('"paper": "3"', '"paper": [3]'):
        with pytest.raises(DataError, match="schema: not one that cognn wrote"):
            Schema.from_json(text.replace('"paper": 3', wrong))
    with pytest.raises(DataError, match=r"^data: expected a PyG Data or a list of them, got HeteroData$"):
        from_pyg([library(), library()])
    assert Schema.from_json(text).node_types == {"author": 2, "paper": 3, "venue": 0}
