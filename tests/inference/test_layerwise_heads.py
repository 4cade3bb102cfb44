"""Layer-wise inference on a store knows heads: outputs and actions are those of the model in memory."""

import pytest
import torch

from tests.inference.test_layerwise import graphs, in_blocks, make_model  # noqa: F401

KINDS = {
    "drawn": {"action_heads": 4},
    "continuous": {"action_heads": "channel", "gates": "continuous", "action_space": "factored"},
    "per layer": {"action_heads": 2, "action_space": "factored", "action_sharing": "per_layer"},
    "added": {"action_heads": 4, "gates": "added"},
}


@pytest.mark.parametrize("env", ["sum", "mean", "gcn", "gin", "gat"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["plain", "amounts", "categories"])
def test_a_store_gives_the_outputs_of_the_model(env: str, kind: str, name: str, graphs, tmp_path) -> None:  # noqa: F811
    dataset, store = graphs[name]
    model = make_model(
        env=env, edge_dim=dataset.edge_spec.dim, edge_categories=dataset.edge_spec.categories, **KINDS[kind]
    )
    with torch.no_grad():
        out, trace = model(dataset.x, dataset.graphs[0], dataset.edge_attr, return_trace=True)
    found, codes = in_blocks(model, store, tmp_path / "work", model.eval_actions)
    torch.testing.assert_close(found, out, atol=1e-5, rtol=1e-5)
    if kind != "added":  # (num_layers * heads, N)
        assert torch.equal(codes.view(3, -1, len(out)).transpose(1, 2), trace.actions)


def test_draws_depend_on_the_key_and_not_on_the_blocks(graphs, tmp_path) -> None:  # noqa: F811
    _, store = graphs["plain"]
    model = make_model(action_heads=4, action_space="factored")
    outs = [in_blocks(model, store, tmp_path / "work", "sample", key, room) for key, room in KEYS]
    assert torch.equal(outs[0][1], outs[1][1])
    torch.testing.assert_close(outs[0][0], outs[1][0])
    assert not torch.equal(outs[0][1], outs[2][1])


KEYS = [((0, 1), 6_000), ((0, 1), 60_000), ((0, 2), 6_000)]
