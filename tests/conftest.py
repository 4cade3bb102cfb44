"""Random graphs of every awkward kind, and the dense picture of them."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, register_random, settings
from hypothesis import strategies as st
from torch import Tensor

# Nine nodes need no second core, and tests side by side would only fight for it; commands that they start neither.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

# One example can meet a cold cache or a busy machine; speed is for benchmarks/, not for tests.
settings.register_profile(
    "cognn", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cognn")


class _Stream:
    """PyTorch's global stream of random numbers, for Hypothesis: every example begins at the same place."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


_STREAM = _Stream()  # which Hypothesis does not keep alive
register_random(_STREAM)


def pytest_runtest_setup() -> None:
    """What a test draws from the global stream is the same alone, in any order and on any worker."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of this session share, and no other session."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


class Case(NamedTuple):
    """A directed multigraph with self-loops, isolated nodes, features and one action per layer and node."""

    edge_index: Tensor
    x: Tensor
    actions: Tensor

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)


def random_case(
    seed: int, num_nodes: int = 9, num_edges: int = 30, channels: int = 5, layers: int = 3, dtype=torch.float64
) -> Case:
    rng = torch.Generator().manual_seed(seed)
    # The last node never has an edge, so there is always an isolated one.
    edge_index = torch.randint(max(num_nodes - 1, 1), (2, num_edges), generator=rng)
    x = torch.randn(num_nodes, channels, generator=rng, dtype=dtype)
    return Case(edge_index, x, torch.randint(4, (layers, num_nodes), generator=rng))


@st.composite
def cases(draw, channels: int = 5, layers: int = 3) -> Case:
    num_nodes = draw(st.integers(1, 9))
    num_edges = draw(st.integers(0, 30))
    return random_case(draw(st.integers(0, 2**31)), num_nodes, num_edges, channels, layers)


def dense(edge_index: Tensor, num_nodes: int, dtype=torch.float64, loops: bool = True) -> Tensor:
    """Receiver-by-sender matrix of edge counts."""
    matrix = torch.zeros(num_nodes, num_nodes, dtype=dtype)
    matrix.index_put_((edge_index[1], edge_index[0]), torch.ones(edge_index.size(1), dtype=dtype), accumulate=True)
    return matrix if loops else matrix - matrix.diag().diag()


def induced(edge_index: Tensor, actions: Tensor) -> Tensor:
    """Which edges the actions ``(N,)`` keep, said edge by edge in the words of the paper."""
    standard, listen, broadcast = 0, 1, 2
    keep = [
        int(actions[u]) in (standard, broadcast) and int(actions[v]) in (standard, listen)
        for u, v in edge_index.t().tolist()
    ]
    return torch.tensor(keep, dtype=torch.bool)


@pytest.fixture(params=["node", "graph"])
def level(request) -> str:
    return request.param
