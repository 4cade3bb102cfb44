"""What takes a minute each: models compiled with their wrapper in C++, and two processes that are stopped and go on."""

import copy
import os
from pathlib import Path

import torch

from cognn import CoGNN, Graph
from cognn.data.load import load_data
from cognn.files.tensors import load_tensors
from cognn.run import train as run
from cognn.run.python_options import make_config
from tests.campaign.case import RIGHT, Case, Wrong

MODELS = [{"env": env, "action": action} for env in ("mean", "sum", "gcn", "gat") for action in ("sum", "mean", "gat")]
MODELS += [{"action_heads": 2, "action_space": "factored"}, {"action_heads": "channel", "gates": "continuous"}]
MODELS += [{"norm": "batch", "norm_first": False, "residual": "linear"}, {"action": None}, {"temperature": 0.5}]


def compiled(case: Case) -> str:
    """A compiled model, whose layers are one function with a wrapper in C++, gives the numbers of the plain one."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(case.folder / "inductor")
    options = {"action_space": "factored", **case.draw.choice(MODELS)}
    seed = case.draw.randrange(1000)
    torch.manual_seed(seed)
    plain = CoGNN(5, 8, out_channels=3, num_layers=1 + case.draw.randrange(2), dropout=0.3, **options).train()
    fast = copy.deepcopy(plain)
    fast.compiled = True
    case.said.append(str(options))
    for nodes in (40, 30):
        x, edge_index = torch.randn(nodes, 5), torch.randint(nodes, (2, 4 * nodes))
        results = []
        for net in (plain, fast):
            torch.manual_seed(seed)
            out = net(x, Graph(edge_index, nodes))
            results.append([out, *torch.autograd.grad(out.pow(2).mean(), list(net.parameters()), allow_unused=True)])
        for one, other in zip(*results, strict=True):
            if one is not None and not torch.allclose(one, other, rtol=1e-4, atol=1e-5):
                raise Wrong(f"silently wrong: a compiled model differs by {float((one - other).abs().max())}")
    return RIGHT


class Stop(Exception):
    """Ends a training."""


def two_processes(case: Case) -> str:
    """A training by two processes that is stopped at a random report ends as one that ran through."""
    os.environ |= {"COGNN_CHECKPOINT_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    sizes = {"hidden_channels": 8, "num_layers": 2, "batch_size": 16, "accelerator": "cpu", "splits": "0"}
    config = make_config(dataset="cycles", devices=2, dropout=0.2, epochs=40, schedule="cosine", **sizes)
    stop_at, weights = case.draw.randrange(1, 20), []

    def stop(split: int, line: object, best: float, best_epoch: int) -> None:
        if line.epoch >= stop_at:  # type: ignore[attr-defined]
            raise Stop

    for name in ("whole", "stopped"):
        run.create_run(config, Path(name), load_data(config.data))
        if name == "stopped":
            try:
                run.train_run(Path(name), report=stop)
            except Stop:
                case.said.append(f"stopped at {stop_at}")
        run.train_run(Path(name))
        weights.append(load_tensors(Path(name) / "split-0" / "last" / "state.safetensors")[0])
    one, other = weights
    if one.keys() != other.keys() or not all(torch.equal(one[key], other[key]) for key in one):
        raise Wrong("silently wrong: two processes that were stopped end with other weights")
    return RIGHT
