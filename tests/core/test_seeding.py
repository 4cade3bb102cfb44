"""Seeding leaves the random numbers of the caller, of a resumed run and of other devices unchanged."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.nn import GATv2Conv

from cognn import CoGNN
from cognn.core import seeding
from cognn.core.seeding import random_state, seeded, set_random_state

CPU = torch.device("cpu")


def test_seeded_restores_the_state() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    with seeded(5, CPU):
        assert torch.equal(torch.rand(3), expected)
        with seeded(9, CPU):
            torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(KeyError), seeded(5, CPU):
        raise KeyError
    assert torch.equal(torch.get_rng_state(), before)


def test_every_generator_gets_its_own_state_back(monkeypatch: pytest.MonkeyPatch) -> None:
    other = torch.Generator().manual_seed(3)
    monkeypatch.setattr(seeding, "generators", lambda device: [torch.default_generator, other])
    state = random_state(CPU)
    expected = torch.rand(2), torch.rand(2, generator=other)
    set_random_state(CPU, state)
    assert torch.equal(torch.rand(2), expected[0])
    assert torch.equal(torch.rand(2, generator=other), expected[1])
    set_random_state(CPU, state)
    with seeded(1, CPU):
        torch.rand(2, generator=other)
    assert torch.equal(torch.rand(2, generator=other), expected[1])


def test_a_layer_of_pyg_seeds_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: pytest.fail(f"seeded with {seed}"))
    before = torch.get_rng_state()
    model = CoGNN(3, 4, out_channels=2, num_layers=1, env=lambda i, o: GATv2Conv(i, o, dropout=0.5), action="sum")
    assert not torch.equal(torch.get_rng_state(), before)  # its weights are drawn
    assert model.layers[0].estimator == "kept"


def test_defaults_during_the_import_do_not_persist() -> None:
    """The default dtype and device at the time of the import, which is the first use, must not persist."""
    script = (
        "import torch, cognn\ntorch.set_default_dtype(torch.float64)\n"
        "with torch.device('meta'):\n    cognn.CoGNN(3, 8, out_channels=2, num_layers=2)\n"
        "torch.set_default_dtype(torch.float32)\ntorch.manual_seed(0)\n"
        "model = cognn.CoGNN(3, 8, out_channels=2, num_layers=2)\n"
        "x, edge_index = torch.randn(500, 3), torch.randint(500, (2, 20_000))\n"
        "model(x, edge_index).sum().backward()\nassert model.eval()(x, edge_index).isfinite().all()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
