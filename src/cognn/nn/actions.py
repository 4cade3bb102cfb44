"""What a node may do, and how it decides.

Every node picks one of four actions per layer (Finkelshtein et al., ICML 2024), or one per head, that is, per slice of
the channels.  An :class:`ActionSpace` owns their names and codes, and turns the logits of an action network into codes,
probabilities and gates.
"""

from enum import IntEnum
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor

from cognn.core.random import gumbel, gumbel_of, logistic, logistic_of
from cognn.core.straight_through import BinaryStraightThrough, StraightThrough
from cognn.nn.hearing import Gates, Hearing

ActionMode = Literal["sample", "argmax", "expected"]
ACTION_MODES: tuple[str, ...] = get_args(ActionMode)
GateKind = Literal["sampled", "continuous", "added", "random"]
GATE_KINDS: tuple[str, ...] = get_args(GateKind)


class Action(IntEnum):
    """The four actions of a node at one layer."""

    STANDARD = 0
    """Listen to the neighbours that broadcast, and broadcast to those that listen."""
    LISTEN = 1
    """Listen only."""
    BROADCAST = 2
    """Broadcast only."""
    ISOLATE = 3
    """Neither."""


Codes = TypeVar("Codes", Tensor, int)


def listens(action: Codes) -> Any:
    """True where the action is STANDARD or LISTEN; a bool for one code, a bool tensor for a tensor of codes."""
    return action < 2


def broadcasts(action: Codes) -> Any:
    """True where the action is STANDARD or BROADCAST; a bool for one code, a bool tensor for a tensor of codes."""
    return action % 2 == 0


class Decision(NamedTuple):
    """What was decided at one layer: the gates that act (:class:`Gates`), and the action codes behind them.

    Codes are ``(N,)``, or ``(N, heads)``; None if they follow from the gates (:meth:`ActionSpace.codes`).
    """

    gates: Any
    actions: Tensor | None


class ActionSpace:
    """Four actions per node, drawn at once from logits ``(N, 4)``: Eq. 1 of the paper.

    With several heads a node takes one action per head, from logits ``(N, heads, 4)``.

    Attributes:
        name: The name of the space.
        site: Whether nodes or edges act.
        names: The names of the actions, in the order of their codes.
        num_networks: Number of action networks.
        width: Number of logits of each, per head.
        heads: Number of actions that a node takes at a layer, over all relations.
        relations: Number of relations with gates of their own; 1 if all share the gates of a node.
    """

    name: str = "joint"
    site: Literal["node", "edge"] = "node"
    names: tuple[str, ...] = tuple(Action.__members__)
    num_networks: int = 1
    width: int = 4

    def __init__(self, heads: int = 1, relations: int = 1) -> None:
        self.heads, self.relations = heads, relations

    @property
    def slices(self) -> int:
        """Number of slices of the channels, each with actions of its own in every relation."""
        return self.heads // self.relations

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the codes of a node: ``()``, or ``(heads,)``."""
        return () if self.heads == 1 else (self.heads,)

    @property
    def head_names(self) -> list[str]:
        """Names of the heads: ``head_0``..., or with relations ``relation_0``... and ``relation_0_head_0``..."""
        if self.heads == self.slices:
            return [f"head_{head}" for head in range(self.heads)]
        if self.slices == 1:
            return [f"relation_{relation}" for relation in range(self.heads)]
        pairs = (divmod(head, self.slices) for head in range(self.heads))
        return [f"relation_{relation}_head_{head}" for relation, head in pairs]

    def logits(self, outputs: list[Tensor], standard_bias: float = 0.0) -> Tensor:
        """The logits of all nodes from the outputs ``(N, heads * width)`` of the networks.

        ``standard_bias`` is added to the first logit of each head, which stands for taking part.
        """
        out = self._joined(outputs)
        return out + out.new_tensor([standard_bias] + [0.0] * (self.width - 1)) if standard_bias else out

    def decide(
        self,
        logits: Tensor,
        inverse_temperature: Tensor | float,
        mode: ActionMode = "sample",
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Decision:
        """Turn logits into actions.

        ``"sample"`` draws from the probabilities, ``"argmax"`` takes the most likely action; both are one-hot in the
        forward pass and straight-through in the backward pass.  ``"expected"`` gates with the probabilities of
        listening and of broadcasting themselves; its action codes are the most likely ones.  ``noise``, shaped as the
        logits, replaces the draw of ``"sample"``; see :meth:`noise_of`.
        """
        dtype = logits.dtype
        if dtype in (torch.bfloat16, torch.float16):  # too coarse to draw rare actions as rarely as they should be
            logits = logits.float()
        if mode == "expected":
            decision = self._expected(logits)
        else:
            if mode == "sample" and noise is None:
                noise = self._noise(logits, generator)
            if not isinstance(inverse_temperature, Tensor):
                inverse_temperature = logits.new_full((logits.size(0),), inverse_temperature)
            decision = self._decision(*self._chosen(logits, inverse_temperature.to(logits.dtype), noise))
        return Decision(self._in_dtype(decision.gates, dtype), decision.actions)

    def noise_of(self, bits: Tensor) -> Tensor:
        """Noise for :meth:`decide` from random integers of 31 bits: Gumbel noise, one number per logit."""
        return gumbel_of(bits, torch.float32)

    def codes(self, decision: Decision) -> Tensor:
        """The action codes of a decision: ``(N,)``, or ``(N, heads)``."""
        if decision.actions is not None:
            return decision.actions
        listen, broadcast = (gate.detach().flatten(1) > 0.5 for gate in decision.gates)
        return 2 * (~listen).long() + (~broadcast).long()

    def spread(self, logits: Tensor) -> Tensor:
        """One number per node and slice, ``(N, slices)``, from its logits: what ``gates="added"`` adds."""
        return logits.sum(-1).view(len(logits), self.heads // self.slices, self.slices).sum(1)

    def force(self, actions: Tensor, dtype: torch.dtype) -> Decision:
        """The gates of given action codes; no gradient."""
        return Decision(self._in_dtype(self._forced(actions), dtype), actions)

    def heard(self, hearing: Hearing, decision: Decision) -> Hearing:
        """What is heard under a decision."""
        return hearing._replace(gates=decision.gates)

    def at_items(self, value: Tensor | float, hearing: Hearing) -> Tensor | float:
        """A value per node, for everything that acts."""
        return value

    def listens(self, actions: Any) -> Any:
        """Where the codes of a tensor or an array listen."""
        return listens(actions)

    def broadcasts(self, actions: Any) -> Any:
        """Where the codes of a tensor or an array broadcast."""
        return broadcasts(actions)

    def shares(self, actions: Tensor) -> dict[str, Tensor]:
        """What codes ``(..., heads)`` do, as shares of the heads ``(...)``."""
        found = {"listen": self.listens(actions), "broadcast": self.broadcasts(actions)}
        return {name: does.double().mean(-1) for name, does in found.items()}

    def _forced(self, actions: Tensor) -> Gates:
        return Gates(self.listens(actions), self.broadcasts(actions))

    def _in_dtype(self, gates: Any, dtype: torch.dtype) -> Any:
        """The gates as a model of ``dtype`` uses them: ``(N, relations, heads)``, if there are several relations."""
        listen, broadcast = (gate.to(dtype) for gate in gates)
        if self.relations > 1:
            listen, broadcast = (gate.unflatten(1, (self.relations, -1)) for gate in (listen, broadcast))
        return Gates(listen, broadcast)

    def muted(self, actions: Any) -> Any:
        """The same codes without broadcasting: STANDARD becomes LISTEN, BROADCAST becomes ISOLATE."""
        return actions | 1

    def part(self, actions: Tensor, probs: Tensor, relation: int, head: int) -> tuple[Tensor, Tensor]:
        """What nodes do in one relation and slice: codes ``(...)`` of the four actions, and probabilities ``(..., 4)``.

        They come from codes ``(..., heads)`` and probabilities ``(..., heads, actions)`` of all.
        """
        column = (relation * self.slices if self.relations > 1 else 0) + head
        return actions[..., column], probs[..., column, :]

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities ``(N, actions)``, or ``(N, heads, actions)``, of the actions."""
        return logits.softmax(-1)

    def expected_gates(self, probs: Tensor) -> tuple[Tensor, ...]:
        """Probabilities of listening and of broadcasting, from those of the actions ``(..., actions)``."""
        return Gates(probs[..., :2].sum(-1), probs[..., ::2].sum(-1))

    def above(self, probs: Tensor, threshold: float) -> Tensor:
        """The action codes ``(...)`` that open exactly the gates with at least this probability."""
        listen, broadcast = (gate < threshold for gate in self.expected_gates(probs))
        return 2 * listen.long() + broadcast.long()

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        return outputs[0] if self.heads == 1 else outputs[0].unflatten(1, (self.heads, self.width))

    def _noise(self, logits: Tensor, generator: torch.Generator | None) -> Tensor:
        return gumbel(logits, generator)

    def _expected(self, logits: Tensor) -> Decision:
        return self._decision(logits.softmax(-1), logits.argmax(-1))

    def _chosen(self, logits: Tensor, inverse_temperature: Tensor, noise: Tensor | None) -> tuple[Tensor, Any]:
        return StraightThrough.apply(logits, inverse_temperature, noise)

    def _decision(self, chosen: Tensor, codes: Any) -> Decision:
        return Decision(Gates(chosen[..., 0] + chosen[..., 1], chosen[..., 0] + chosen[..., 2]), codes)


class FactoredSpace(ActionSpace):
    """The same actions as two independent decisions, (yes, no) for listening and for broadcasting: ``(N, 2, 2)``."""

    name = "factored"
    num_networks = 2
    width = 2

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities ``(N, actions)`` of the actions."""
        p = logits.softmax(-1)
        return (p[:, 0, :, None] * p[:, 1, None, :]).flatten(1)

    def spread(self, logits: Tensor) -> Tensor:
        """One number per node, ``(N, 1)``, from its logits."""
        return logits.sum((1, 2)).unsqueeze(-1)

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        return torch.stack(outputs, dim=1)

    def _decision(self, chosen: Tensor, codes: Any) -> Decision:
        return Decision(Gates(chosen[:, 0, 0], chosen[:, 1, 0]), 2 * codes[:, 0] + codes[:, 1])


class FactoredHeads(ActionSpace):
    """The factored decisions of several heads: log-odds of listening and of broadcasting, ``(N, 2, heads)``.

    One network gives both, and one logit per decision replaces the two of :class:`FactoredSpace`, of which only the
    difference counts.
    """

    name = "factored"
    width = 2

    def logits(self, outputs: list[Tensor], standard_bias: float = 0.0) -> Tensor:
        """The log-odds from the outputs ``(N, 2 * heads)``; ``standard_bias`` is added to all."""
        return (outputs[0] + standard_bias).unflatten(1, (self.width, self.heads))

    def noise_of(self, bits: Tensor) -> Tensor:
        """Logistic noise, one number per decision."""
        return logistic_of(bits, torch.float32)

    def spread(self, logits: Tensor) -> Tensor:
        """One number per node and slice, ``(N, slices)``, from its logits."""
        return logits.sum(1).unflatten(1, (-1, self.slices)).sum(1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities ``(N, heads, actions)`` of the actions."""
        yes = logits.sigmoid().transpose(1, 2)
        both = torch.stack([yes, 1 - yes], dim=-1)  # (N, heads, 2, 2): listening and broadcasting, yes and no
        return (both[:, :, 0, :, None] * both[:, :, 1, None, :]).flatten(2)

    def _noise(self, logits: Tensor, generator: torch.Generator | None) -> Tensor:
        return logistic(logits, generator)

    def _expected(self, logits: Tensor) -> Decision:
        # One sigmoid per gate: compiled, it is fused with the product that the gate enters.
        return Decision(Gates(*(z.sigmoid() for z in logits.unbind(1))), None)

    def _chosen(self, logits: Tensor, inverse_temperature: Tensor, noise: Tensor | None) -> tuple[Tensor, Any]:
        return BinaryStraightThrough.apply(logits, inverse_temperature, noise), None

    def _decision(self, chosen: Tensor, codes: Any) -> Decision:
        return Decision(Gates(*chosen.unbind(1)), codes)


ENDS = {
    (False, False): "",
    (True, False): "{}-INC",
    (False, True): "{}-OUT",
    (True, True): "{}",
}


def _directed_name(code: int) -> str:
    """The name of a code of :class:`DirectedSpace`, such as ``LISTEN-INC+BROADCAST``."""
    if code in (0, 15):
        return "STANDARD" if code == 0 else "ISOLATE"
    along, against = divmod(code, 4)
    parts = (
        ENDS[listens(along), listens(against)].format("LISTEN"),
        ENDS[broadcasts(against), broadcasts(along)].format("BROADCAST"),
    )
    return "+".join(part for part in parts if part)


class DirectedSpace(ActionSpace):
    """Sixteen actions per node, drawn at once from logits ``(N, 16)``: one of the four for each direction of travel.

    A code is ``4 * along + against``.  Along an edge ``u -> v``, ``v`` listens to its incoming edges (LISTEN-INC) and
    ``u`` broadcasts on its outgoing ones (BROADCAST-OUT); against it, ``u`` listens to its outgoing edges (LISTEN-OUT)
    and ``v`` broadcasts on its incoming ones (BROADCAST-INC).  LISTEN and BROADCAST stand for both directions.
    """

    names = tuple(_directed_name(code) for code in range(16))
    width = 16

    @property
    def slices(self) -> int:
        """Number of slices of the channels, each with actions of its own in every relation."""
        return 2 * self.heads // self.relations

    def listens(self, actions: Any) -> Any:
        """Where the codes listen, in at least one direction."""
        return listens(actions // 4) | listens(actions % 4)

    def broadcasts(self, actions: Any) -> Any:
        """Where the codes broadcast, in at least one direction."""
        return broadcasts(actions // 4) | broadcasts(actions % 4)

    def muted(self, actions: Any) -> Any:
        """The same codes without broadcasting, in either direction."""
        return actions | 5

    def part(self, actions: Tensor, probs: Tensor, relation: int, head: int) -> tuple[Tensor, Tensor]:
        """What nodes do in one relation and slice, which is one of the two halves of their action."""
        types = self.relations // 2
        codes, chosen = super().part(actions, probs, relation % types, head)
        pairs = chosen.unflatten(-1, (4, 4))
        return (codes // 4, pairs.sum(-1)) if relation < types else (codes % 4, pairs.sum(-2))

    def expected_gates(self, probs: Tensor) -> Gates:
        """Probabilities of listening and of broadcasting: along the edges for all heads, then against them."""
        chosen = probs.unflatten(-1, (4, 4))
        ways = chosen.sum(-1), chosen.sum(-2)  # probabilities of the four codes along and against the edges
        listen = torch.stack([p[..., 0] + p[..., 1] for p in ways], dim=-1 if self.heads == 1 else -2)
        broadcast = torch.stack([p[..., 0] + p[..., 2] for p in ways], dim=-1 if self.heads == 1 else -2)
        if self.heads > 1:  # (..., 2, heads)
            listen, broadcast = listen.flatten(-2), broadcast.flatten(-2)
        return Gates(listen, broadcast)

    def above(self, probs: Tensor, threshold: float) -> Tensor:
        """The action codes ``(...)`` that open exactly the gates with at least this probability."""
        ways = super().above(probs, threshold)
        along, against = ways.unbind(-1) if self.heads == 1 else ways.chunk(2, dim=-1)
        return 4 * along + against

    def _forced(self, actions: Tensor) -> Gates:
        codes = torch.stack([actions // 4, actions % 4], dim=1).flatten(1)
        return Gates(listens(codes), broadcasts(codes))

    def _decision(self, chosen: Tensor, codes: Any) -> Decision:
        return Decision(self.expected_gates(chosen), codes)


JOINT = ActionSpace()
SPACES: dict[str, ActionSpace] = {space.name: space for space in (JOINT, FactoredSpace())}
SpaceName = Literal["joint", "factored", "edge"]


@cache
def action_space(name: str, heads: int = 1, relations: int = 1, directed: bool = False) -> ActionSpace:
    """The action space of a name and a number of heads, each with an action per relation.

    With ``directed`` the second half of the relations are the first half against the direction of the edges, and a
    joint action is for both.
    """
    if heads * relations == 1:
        return SPACES[name]
    if name == "joint" and directed and relations > 1:
        return DirectedSpace(heads * relations // 2, relations)
    return {"joint": ActionSpace, "factored": FactoredHeads}[name](heads * relations, relations)
