"""Encoders of node features: embeddings of categories, and positional encodings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.nn import checks
from cognn.nn.options.pretrained import save_model

DENSE_NODES = 1000  # up to here a dense eigendecomposition is faster than an iterative one, and exact


class CategoricalEncoder(nn.Module):
    r"""Sum of one embedding per categorical column: :math:`h = \sum_j E_j[x_j] \; (+ \; W x_{\mathrm{rest}})`.

    The codes may be floats.  Continuous columns follow the categorical ones and enter by a linear map.

    Args:
        categories: Number of values of each categorical column.
        out_channels: Width of the output.
        num_continuous: Number of continuous columns, such as positional encodings.
    """

    def __init__(self, categories: Sequence[int], out_channels: int, num_continuous: int = 0) -> None:
        super().__init__()
        if not categories:
            raise ValueError("categories: expected at least one column, got none")
        for size in categories:
            checks.at_least("categories", size, 1)
        checks.at_least("out_channels", out_channels, 1)
        checks.at_least("num_continuous", num_continuous, 0)
        self.categories, self.out_channels = tuple(categories), out_channels
        self.num_continuous = num_continuous
        # One table for all columns: a single kernel looks up and adds the embeddings of a node.
        self.table = nn.EmbeddingBag(sum(self.categories), out_channels, mode="sum")
        self.linear = nn.Linear(num_continuous, out_channels) if num_continuous else None
        sizes = torch.tensor(self.categories)
        self.register_buffer("first", sizes.cumsum(0) - sizes, persistent=False)
        self.first: Tensor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise all weights; the sum over the columns has unit variance."""
        nn.init.normal_(self.table.weight, std=len(self.categories) ** -0.5)
        if self.linear is not None:
            self.linear.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Encode ``x`` ``(N, len(categories) + num_continuous)`` to ``(N, out_channels)``."""
        width = len(self.categories)
        if x.dim() != 2 or x.size(1) != width + self.num_continuous:
            raise ValueError(f"x: expected shape (N, {width + self.num_continuous}), got {tuple(x.shape)}")
        codes = x[:, :width].long()
        if not torch.compiler.is_compiling():
            # A code that is too large would silently fetch an embedding of the next column.
            checks.codes("x", codes, self.categories)
        h: Tensor = self.table(codes + self.first)
        return h if self.linear is None else h + self.linear(x[:, width:])


class SignFlip(nn.Module):
    """Random signs for Laplacian eigenvectors in training, because an eigenvector is defined only up to its sign.

    Every graph of a batch and every column draws its own sign.  In evaluation ``x`` is unchanged.

    Args:
        first: First column to flip.
        count: Number of columns to flip; by default all from ``first`` on.
    """

    def __init__(self, first: int = 0, count: int | None = None) -> None:
        super().__init__()
        checks.at_least("first", first, 0)
        if count is not None:
            checks.at_least("count", count, 0)
        self.first, self.count = first, count

    def forward(self, x: Tensor, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        """Flip columns of ``x`` ``(N, F)``; ``batch`` ``(N,)`` is the index of each node's graph, by default 0."""
        if not self.training:
            return x
        last = x.size(1) if self.count is None else self.first + self.count
        if batch is None:
            num_graphs = 1
        elif num_graphs is None:
            num_graphs = int(batch.max()) + 1 if batch.numel() else 0
        signs = torch.randint(0, 2, (num_graphs, last - self.first), device=x.device).to(x.dtype).mul_(2).sub_(1)
        flipped = x[:, self.first : last] * (signs if batch is None else signs[batch])
        return torch.cat([x[:, : self.first], flipped, x[:, last:]], dim=1)


def laplacian_encoding(edge_index: Tensor, num_nodes: int, k: int = 8) -> Tensor:
    r"""Eigenvectors 2 to k + 1 of :math:`L = I - D^{-1/2} A D^{-1/2}` by ascending eigenvalue, float ``(N, k)``.

    The graph is made undirected and simple; self-loops are ignored.  The first eigenvector depends only on the degrees
    and is omitted.  A graph of k nodes or fewer gets columns of zeros at the end.  The sign of an eigenvector is
    arbitrary: its largest entry is made positive here, and :class:`SignFlip` draws signs in training.

    Args:
        edge_index: Edges ``(2, E)`` of one connected graph; with several components, the first eigenvectors only
            distinguish these.
        num_nodes: Number of nodes.
        k: Number of eigenvectors.
    """
    import numpy as np
    import scipy.linalg  # slow to import
    import scipy.sparse.linalg

    checks.at_least("k", k, 1)
    out = torch.zeros(num_nodes, k)
    found = min(k, num_nodes - 1)
    if found < 1:
        return out
    sender, receiver = edge_index[:, edge_index[0] != edge_index[1]].numpy(force=True)
    matrix = scipy.sparse.csr_array((np.ones(len(sender)), (receiver, sender)), shape=(num_nodes, num_nodes))
    matrix = ((matrix + matrix.T) > 0).astype(float)
    degree = matrix.sum(axis=1)
    scale = scipy.sparse.diags_array(np.maximum(degree, 1) ** -0.5)
    # An isolated node is a component of its own and has an eigenvalue of 0, so its diagonal entry is 0.
    laplacian = scipy.sparse.diags_array((degree > 0).astype(float)) - scale @ matrix @ scale
    if num_nodes <= max(DENSE_NODES, 4 * k):
        vectors = scipy.linalg.eigh(laplacian.toarray(), subset_by_index=[1, found])[1]
    else:
        start = np.random.default_rng(0).standard_normal(num_nodes)  # SciPy's random default is not reproducible
        values, vectors = scipy.sparse.linalg.eigsh(laplacian, found + 1, which="SA", v0=start, ncv=max(4 * k, 64))
        vectors = vectors[:, values.argsort()[1:]]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(found)]
    out[:, :found] = torch.from_numpy(vectors * np.where(largest < 0, -1.0, 1.0)).float()
    return out


def random_walk_encoding(edge_index: Tensor, num_nodes: int, steps: int = 20) -> Tensor:
    r"""Return probabilities of random walks of 1 to ``steps`` steps, the diagonals of :math:`(D^{-1} A)^t`.

    Float ``(N, steps)``.  A walk follows edges from sender to receiver and ends at a node without outgoing edges.

    Args:
        edge_index: Edges ``(2, E)``; the encodings of disjoint graphs are independent of each other.
        num_nodes: Number of nodes.
        steps: Number of steps.
    """
    import numpy as np
    import scipy.sparse  # slow to import

    checks.at_least("steps", steps, 1)
    sender, receiver = edge_index.numpy(force=True)
    degree = np.bincount(sender, minlength=num_nodes)
    walk = scipy.sparse.csr_array((1 / degree[sender], (sender, receiver)), shape=(num_nodes, num_nodes))
    out = np.zeros((num_nodes, steps), dtype=np.float32)
    width = max(1, min(num_nodes, 2**22 // max(num_nodes, 1)))  # columns at a time: 32 MB of doubles
    for first in range(0, num_nodes, width):
        nodes = np.arange(first, min(first + width, num_nodes))
        reached = np.zeros((num_nodes, len(nodes)))  # column i: probability of reaching nodes[i] in t steps
        reached[nodes, nodes - first] = 1
        for step in range(steps):
            reached = walk @ reached
            out[nodes, step] = reached[nodes, nodes - first]
    return torch.from_numpy(out)


class Encoded(nn.Module):
    """A model whose node features first pass through an encoder, such as :class:`CategoricalEncoder`."""

    def __init__(self, encoder: nn.Module, model: nn.Module, flip: nn.Module | None = None) -> None:
        super().__init__()
        self.flip, self.encoder, self.model = flip, encoder, model

    schema: dict[str, Any] | None = None
    """As that of :class:`~cognn.CoGNN`."""

    def save_pretrained(self, path: str | Path) -> None:
        """As :meth:`cognn.CoGNN.save_pretrained`, the encoder included; ``CoGNN.from_pretrained`` reads it."""
        save_model(self, path)

    def encoder_options(self) -> dict[str, Any]:
        """The options of :func:`behind_encoder`."""
        encoder, flip = cast(CategoricalEncoder, self.encoder), self.flip
        options = {"categories": list(encoder.categories), "out_channels": encoder.out_channels}
        signs = [flip.first, flip.count] if isinstance(flip, SignFlip) else None
        return options | {"num_continuous": encoder.num_continuous, "sign_columns": signs}

    def forward(self, x: Tensor, edge_index: Tensor | Graph, *args: Any, **options: Any) -> Any:
        """Call the model with encoded features."""
        if self.flip is not None:
            batch, num_graphs = options.get("batch"), options.get("num_graphs")
            if batch is None and isinstance(edge_index, Graph):
                batch, num_graphs = edge_index.batch, edge_index.num_graphs
            x = self.flip(x, batch, num_graphs)
        return self.model(self.encoder(x), edge_index, *args, **options)


def behind_encoder(
    model: nn.Module,
    categories: Sequence[int],
    out_channels: int,
    num_continuous: int = 0,
    sign_columns: Sequence[int] | None = None,
) -> Encoded:
    """A model behind an encoder of categories; ``sign_columns`` are the first and number of columns to flip."""
    encoder = CategoricalEncoder(categories, out_channels, num_continuous)
    return Encoded(encoder, model, SignFlip(*sign_columns) if sign_columns else None)
