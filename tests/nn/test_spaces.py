"""What the codes of every action space mean: in each relation and slice, muted, and by name."""

import pytest
import torch

from cognn import broadcasts, listens
from cognn.nn.actions import JOINT, ActionSpace, action_space

SPACES = {
    "joint": JOINT,
    "heads": action_space("joint", 3),
    "relations": action_space("joint", 1, 2),
    "relations and heads": action_space("joint", 2, 3),
    "directions": action_space("joint", 1, 2, directed=True),
    "directions and heads": action_space("joint", 2, 2, directed=True),
    "directions, relations and heads": action_space("joint", 2, 4, directed=True),
}
EVERY = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def some_codes(space: ActionSpace, nodes: int = 40) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    return torch.randint(len(space.names), (nodes, *space.shape), generator=rng)


@EVERY
def test_muted_codes_listen_as_before_and_broadcast_nowhere(space: ActionSpace) -> None:
    codes = some_codes(space)
    before, after = (space.force(actions, torch.float64).gates for actions in (codes, space.muted(codes)))
    assert torch.equal(after.listen, before.listen)
    assert before.broadcast.any()
    assert not after.broadcast.any()


@EVERY
def test_codes_listen_and_broadcast_where_their_names_say(space: ActionSpace) -> None:
    codes = torch.arange(len(space.names))
    everywhere = [name == "STANDARD" for name in space.names]
    for found, word in ((space.listens(codes), "LISTEN"), (space.broadcasts(codes), "BROADCAST")):
        assert found.tolist() == [both or word in name for both, name in zip(everywhere, space.names, strict=True)]


@EVERY
def test_a_part_is_what_nodes_do_in_one_relation_and_slice(space: ActionSpace) -> None:
    codes = some_codes(space)
    column = codes if codes.dim() == 2 else codes.unsqueeze(-1)
    probs = torch.nn.functional.one_hot(column, len(space.names)).double()
    gates = space.force(codes, torch.float64).gates
    shape = (len(codes), space.relations, -1)
    listen, broadcast = (gate.reshape(shape) for gate in gates)
    assert listen.size(2) == space.slices
    for relation in range(space.relations):
        for head in range(space.slices):
            part, chances = space.part(column, probs, relation, head)
            assert torch.equal(listens(part).double(), listen[:, relation, head])
            assert torch.equal(broadcasts(part).double(), broadcast[:, relation, head])
            assert torch.equal(chances, torch.nn.functional.one_hot(part, 4).double())


def test_heads_are_named_by_relation_and_slice() -> None:
    assert SPACES["heads"].head_names == ["head_0", "head_1", "head_2"]
    assert SPACES["relations"].head_names == ["relation_0", "relation_1"]
    names = [f"relation_{relation}_head_{head}" for relation in range(3) for head in range(2)]
    assert SPACES["relations and heads"].head_names == names


@EVERY
def test_one_node_of_certain_actions_has_the_gates_of_its_code(space: ActionSpace) -> None:
    codes = some_codes(space)
    probs = torch.nn.functional.one_hot(codes, len(space.names)).double()
    expected, forced = space.expected_gates(probs), space.force(codes, torch.float64).gates
    for one, other in zip(expected, forced, strict=True):
        assert torch.equal(one.reshape(-1), other.reshape(-1))
