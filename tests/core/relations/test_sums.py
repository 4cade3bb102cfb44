"""Sums with a matrix per relation equal one message per edge, in chunks of any size."""

import pytest
import torch
from torch import Tensor

from cognn import Graph
from cognn.core.relations.structure import RelationStack, relation_stack
from cognn.core.relations.sums import relational_sum

N, E, TYPES = 17, 90, 4


def build(chunk: int, both: bool) -> tuple[RelationStack, Tensor, Tensor, Tensor]:
    """A stack, and its edges in the order of the stack: senders, receivers and relations."""
    rng = torch.Generator().manual_seed(1)
    edge_index = torch.randint(N - 2, (2, E), generator=rng)  # the last two nodes have no edges
    kinds = torch.randint(TYPES - 1, (E,), generator=rng)  # the last type has none
    stack = relation_stack(Graph(edge_index, N, kinds, TYPES), both, chunk)
    receiver = stack.receivers[stack.adjacency.in_receiver.long()]
    return stack, stack.adjacency.in_sender.long(), receiver, stack.edge_relation


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_one_message_per_edge(chunk: int, both: bool, blocks: int, weighted: bool) -> None:
    stack, sender, receiver, kind = build(chunk, both)
    assert (len(stack.chunks) > 5) == (chunk < 1000)
    assert len(sender) == E * (1 + both)
    rng = torch.Generator().manual_seed(2)
    x, out_weight = (torch.randn(N, width, generator=rng, dtype=torch.float64) for width in (6, 9))
    matrices = torch.randn(TYPES * (1 + both), blocks, 9 // blocks, 6 // blocks, generator=rng, dtype=torch.float64)
    weight = torch.randn(len(sender), generator=rng, dtype=torch.float64) if weighted else None
    inputs = [part.requires_grad_() for part in (x, matrices, weight) if part is not None]

    sent = torch.einsum("ekoi,eki->eko", matrices[kind], x[sender].unflatten(1, (blocks, -1))).flatten(1)
    sent = sent if weight is None else sent * weight.unsqueeze(1)
    expected = torch.zeros(N, 9, dtype=torch.float64).index_add(0, receiver, sent)
    found = relational_sum(stack, x, matrices, weight)
    torch.testing.assert_close(found, expected)
    wanted = torch.autograd.grad((expected * out_weight).sum(), inputs)
    torch.testing.assert_close(torch.autograd.grad((found * out_weight).sum(), inputs), wanted)


def test_single_precision_and_autocast_are_the_same_numbers() -> None:
    stack, *_ = build(7, False)
    x, matrices = torch.randn(N, 6), torch.randn(TYPES, 1, 5, 6)
    found = relational_sum(stack, x, matrices)
    torch.testing.assert_close(found, relational_sum(stack, x.double(), matrices.double()).float())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(relational_sum(stack, x, matrices), found)


@pytest.mark.parametrize("nodes", [0, 3])
def test_a_graph_without_edges_sums_nothing(nodes: int) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    stack = relation_stack(Graph(none, nodes, none[0], TYPES))
    x = torch.randn(nodes, 6, requires_grad=True)
    out = relational_sum(stack, x, torch.randn(TYPES, 2, 3, 3, requires_grad=True))
    out.sum().backward()
    assert torch.equal(out, torch.zeros(nodes, 6))
    assert torch.equal(x.grad, torch.zeros(nodes, 6))
