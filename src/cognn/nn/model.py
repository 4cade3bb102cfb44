"""The model: an action network decides who listens and who broadcasts, an environment network updates the nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from cognn.config.presets import authors_options
from cognn.core.graph import Graph
from cognn.core.sparse_features import linear
from cognn.nn import checks
from cognn.nn.action_network import ActionNetwork
from cognn.nn.actions import ActionMode, GateKind, SpaceName
from cognn.nn.checkpointing import checkpointed
from cognn.nn.compiling import EAGER, compiled
from cognn.nn.edge_actions import EdgeActionNetwork
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.encoders import Encoded, behind_encoder
from cognn.nn.hearing import Hearing
from cognn.nn.layer_step import LayerOutput, Parts, enter
from cognn.nn.layers import LayerSpec, WrappedLayer, limits_of_weights, make_layer
from cognn.nn.layers.gin import GINMLP
from cognn.nn.layers.mean import MeanOver
from cognn.nn.layers.published_weights import published_weights
from cognn.nn.layers.relational import Directions, relation_spec
from cognn.nn.layers.shared_edges import share_edges
from cognn.nn.options.check_options import check_options
from cognn.nn.options.constructor import named_options
from cognn.nn.options.resolve import (
    NORMS,
    POOLS,
    Activation,
    act_and_drop,
    activation,
    layer_spec,
    norm_name,
    pool_name,
)
from cognn.nn.options.shown import shown_options
from cognn.nn.trace import Trace


class Samples(NamedTuple):
    """Mean and standard deviation of a model's output over several draws of the actions."""

    mean: Tensor
    std: Tensor


OPEN = 4.0
"""Default bias toward STANDARD with several heads: nearly open gates cost nothing on graphs that they cannot help."""


class CoGNN(nn.Module):
    r"""Cooperative graph neural network (Finkelshtein et al., ICML 2024).

    At every layer the action network :math:`\pi` gives each node a distribution over the actions STANDARD, LISTEN,
    BROADCAST and ISOLATE, an action is drawn, and the environment network :math:`\eta` updates the nodes along the
    edges ``u -> v`` whose sender broadcasts and whose receiver listens:

    .. math:: p_v = \pi(h_v, \{\!\{h_u\}\!\}), \quad a_v \sim p_v, \quad
              h_v' = \eta\big(h_v, \{\!\{h_u : a_v \in \{S, L\},\, a_u \in \{S, B\}\}\!\}\big)

    Args:
        in_channels: Width of the node features; -1 takes it from the first input.
        hidden_channels: Width of the environment network.
        out_channels: Number of outputs per node, or per graph with ``pool``.
        num_layers: Number of cooperative layers.
        env: Environment layer: ``"sum" "mean" "gcn" "gin" "gat"``, a layer class of PyG or its name, or a callable
            ``(in, out) -> MessagePassing``.
        action: Layer of the action network, likewise; None for no actions, which gives the base network.
        action_channels: Width of the action network.
        action_layers: Depth of the action network.
        action_space: ``"joint"`` draws one of four actions, ``"factored"`` listening and broadcasting independently,
            ``"edge"`` keeps or drops every edge by a decision of its own, in O(E x heads) memory.
        temperature: A number, or ``"learned"``: per node :math:`1/\tau = \mathrm{softplus}(w \cdot h) + \tau_0`.
        tau0: Minimum of the inverse temperature when it is learned.
        mean_over: What ``env="mean"`` divides by: the neighbours ``"kept"`` (Eq. 2) or ``"all"`` of them.
        norm: ``"layer"``, ``"batch"`` or None, or PyG's names of these; ``"layer_norm"`` normalises each node, as PyG's
            ``LayerNorm(mode="node")``.
        norm_first: True: norm, update, dropout, act, + residual.  False: update + residual, norm, act, dropout.
        residual: ``"identity"``, ``"linear"`` or None.
        dropout: Dropout probability.
        act: Activation: ``"gelu" "relu" "elu" "leaky_relu" "silu" "tanh"``, another of ``torch.nn``, or a module.
        action_act: Activation of the action network; by default ``act``.
        pool: ``"mean" "sum" "max"`` for graph tasks, None for node tasks; PyG's names are understood.
        decoder_layers: Depth of the network from the last states to the output.
        edge_dim: Number of continuous features in ``edge_attr`` (float, ``(E, edge_dim)``).
        edge_categories: Number of values of each categorical feature in ``edge_attr`` (long, ``(E, len)`` or ``(E,)``).
        standard_bias: Added to the logit of STANDARD; with about 3, most edges are kept at the start of training.  By
            default 0, and 4 with several heads.
        input_dropout: Dropout of the features; helps if they are sparse.
        compile: Compile the layers with ``torch.compile``, if there is a C++ compiler; the results are the same.
        checkpoint: Gradient checkpointing of every layer: less memory, more time, the same results.
        eval_actions: How nodes act in ``eval()``: ``"argmax"``, ``"expected"`` or ``"sample"``; by default
            ``"argmax"`` if gates are ``"sampled"``, otherwise ``"expected"``.
        jk: Jumping knowledge over all layers, as PyG's ``JumpingKnowledge``: ``"cat"``, ``"max"`` or ``"lstm"``; None
            and ``"last"`` decode the states of the last layer.
        action_heads: Number of actions that a node takes at a layer: 1 (the paper), a divisor of ``hidden_channels``,
            or ``"channel"``.  Slice ``k`` of the channels travels along the edges that the actions of head ``k`` keep.
        gates: ``"sampled"`` draws actions in training (the paper); ``"continuous"`` gates with the probabilities of
            listening and of broadcasting, with their exact gradient.  Two controls for experiments: ``"added"`` adds
            the outputs of the action network to the messages instead, ``"random"`` opens gates regardless of states.
        action_sharing: ``"shared"``: one action network for all layers (the paper); ``"per_layer"``: one for each.
        directions: ``"in"``: messages travel along the edges; ``"both"``: also against them, with weights of their own.
        direction_share: The share ``a`` of the messages against the edges, ``1 - a`` is that of the others:
            a number in [0, 1], or ``"learned"``.
        num_relations: Number of edge types; each has weights of its own, and ``forward`` takes ``edge_type``.
        num_bases: Number of matrices that the weights of all relations are combinations of; None for one per relation.
        num_blocks: Number of diagonal blocks of the weights of a relation; None for full matrices.
        relation_actions: ``"per_relation"``: a node acts once per relation and direction; ``"shared"``: it acts alike
            in all of them.
        norm_sharing: ``"per_layer"``: every layer has a norm of its own; ``"shared"``: all layers and the decoder share
            one.
        dropout_first: Whether dropout precedes the activation everywhere; by default it does so before the first layer
            and, with ``norm_first``, in the layers, but not in the action network and the decoder.
        gin_mlp: The MLP of GIN: ``"narrow"``, ``"wide"`` or ``"wide-batch"``; see
            :class:`~cognn.nn.layers.GINLayer`.
        edge_sharing: ``"per_layer"``: every layer maps edge features with weights of its own; ``"shared"``: the layers
            of a network share one map, of which GCN has none; see :func:`~cognn.nn.layers.share_edges`.
        init: ``"published"``: initial weights as the authors' script draws them; see
            :func:`~cognn.nn.layers.published_weights`.
    """

    @named_options
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        *,
        out_channels: int,
        num_layers: int,
        env: LayerSpec = "mean",
        action: LayerSpec | None = "sum",
        action_channels: int = 16,
        action_layers: int = 1,
        action_space: SpaceName = "joint",
        temperature: float | Literal["learned"] = "learned",
        tau0: float = 0.1,
        mean_over: MeanOver = "kept",
        norm: str | None = "layer",
        norm_first: bool = True,
        residual: Literal["identity", "linear"] | None = "identity",
        dropout: float = 0.2,
        act: Activation = "gelu",
        pool: str | None = None,
        decoder_layers: int = 1,
        edge_dim: int | None = None,
        edge_categories: int | Sequence[int] | None = None,
        standard_bias: float | None = None,
        input_dropout: float = 0.0,
        compile: bool = False,
        checkpoint: bool = False,
        eval_actions: ActionMode | None = None,
        jk: Literal["last", "cat", "max", "lstm"] | None = None,
        action_heads: int | Literal["channel"] = 1,
        gates: GateKind = "sampled",
        action_sharing: Literal["shared", "per_layer"] = "shared",
        directions: Directions = "in",
        direction_share: float | Literal["learned"] = 0.5,
        num_relations: int = 1,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        relation_actions: Literal["per_relation", "shared"] = "per_relation",
        action_act: Activation | None = None,
        norm_sharing: Literal["per_layer", "shared"] = "per_layer",
        dropout_first: bool = False,
        gin_mlp: GINMLP = "narrow",
        edge_sharing: Literal["per_layer", "shared"] = "per_layer",
        init: Literal["default", "published"] = "default",
    ) -> None:
        check_options(locals())
        super().__init__()
        norm, pool = norm_name(norm), pool_name(pool)
        heads = checks.heads(action_heads, hidden_channels, action is not None)
        cut = {"hidden_channels": hidden_channels} | ({} if action is None else {"action_channels": action_channels})
        relations = relation_spec(num_relations, directions, direction_share, num_bases, num_blocks, cut)
        stacks = heads == 1 and all(layer in ("sum", "mean", None) for layer in (env, action))
        # Nodes of GIN update their own state in every relation, whether they have edges in it or not.
        relations = replace(relations, stacked=stacks, compact=False if "gin" in (env, action) else None)
        network_of = EdgeActionNetwork if action_space == "edge" else ActionNetwork
        space = network_of.make_space(action_space, heads, *relations.gated(relation_actions == "per_relation"))
        if space.site == "edge":
            checks.edge_actions(action, env, relations.count, gates)
        if standard_bias is None:
            standard_bias = OPEN if space.heads > 1 or space.site == "edge" else 0.0
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.num_layers, self.norm_first, self.dropout, self.pool = num_layers, norm_first, dropout, pool
        self.input_dropout, self.dropout_first = input_dropout, dropout_first
        self.compiled, self.checkpoint, self.init = compile, checkpoint, init
        self.edge_spec, self.gates = EdgeSpec.of(edge_dim, edge_categories), gates
        self.eval_actions: ActionMode = eval_actions or ("argmax" if gates == "sampled" else "expected")

        width = hidden_channels
        decoded = width * num_layers if jk == "cat" else width
        env, action = layer_spec(env, edge_dim), layer_spec(action, edge_dim)
        self.act = activation(act)
        self.encoder = nn.LazyLinear(width) if in_channels == -1 else nn.Linear(in_channels, width)
        options: dict[str, Any] = {"mean_over": mean_over} if env == "mean" else {}
        options |= {"heads": heads} if env == "gat" else {}
        options |= {"mlp": gin_mlp} if env == "gin" else {}
        layer_edges = NO_EDGES if edge_sharing == "shared" else self.edge_spec
        self.layers = nn.ModuleList(
            make_layer("env", env, width, width, layer_edges, relations, **options) for _ in range(num_layers)
        )
        num_norms = num_layers + norm_first  # when it comes first, the states that are decoded get one more
        widths = [*[width] * num_layers, decoded][:num_norms]
        self.norms = nn.ModuleList(NORMS[norm](size) if norm else nn.Identity() for size in widths)
        if norm_sharing == "shared":
            self.norms = nn.ModuleList([self.norms[0]] * num_norms)
        skips: dict[str | None, type[nn.Module]] = {"identity": nn.Identity, "linear": nn.Linear}
        self.residuals = nn.ModuleList(skips[residual](width, width) for _ in range(num_layers)) if residual else None
        sizes = [decoded, *[width] * (decoder_layers - 1), out_channels]
        self.decoder = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))

        self.action_network: ActionNetwork | nn.ModuleList | None = None
        self.temperature: nn.Linear | float = 1.0
        if action is not None:
            make_network = partial(
                network_of,
                *(width, action_channels, action_layers, action, action_space, dropout),
                act=act if action_act is None else activation(action_act, "action_act"),
                edge_dim=layer_edges.dim,
                edge_categories=layer_edges.categories,
                standard_bias=standard_bias,
                heads=heads,
                constant=gates == "random",
                relations=relations,
                per_relation=relation_actions == "per_relation",
                dropout_first=dropout_first,
                gin_mlp=gin_mlp,
            )
            shared = action_sharing == "shared"
            self.action_network = make_network() if shared else nn.ModuleList(make_network() for _ in self.layers)
            if gates == "sampled":
                self.temperature = nn.Linear(width, 1, bias=False) if temperature == "learned" else float(temperature)
        if edge_sharing == "shared":
            share_edges(self.edge_spec, self.layers, [p for p in self.modules() if isinstance(p, ActionNetwork)])
        self.tau0, self.space, self.relations, self.num_relations = tau0, space, relations, num_relations
        self.jk = None if jk in (None, "last") else JumpingKnowledge(jk, width, num_layers)
        self.wraps = any(isinstance(part, WrappedLayer) for part in self.modules())
        self.divides, self.unweighted = limits_of_weights(self)
        if init == "published":
            published_weights(self)
        if heads > 1 and any(isinstance(layer, WrappedLayer) for layer in self.layers):
            raise ValueError("action_heads: a layer of PyG takes one action per node; use 1, or a built-in env layer")

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        actions: ActionMode | Tensor | None = None,
        *,
        edge_type: Tensor | None = None,
        edge_weight: Tensor | None = None,
        samples: int | None = None,
        generator: torch.Generator | None = None,
        num_graphs: int | None = None,
        return_trace: bool = False,
    ) -> "Tensor | tuple[Tensor, Trace] | Samples":
        """Outputs ``(N, out_channels)``, or ``(num_graphs, out_channels)`` with ``pool``.

        Args:
            x: Node features ``(N, in_channels)``, dense or a sparse CSR or COO tensor, which is never made dense.
            edge_index: Edges ``(2, E)``, senders above receivers, or a prepared :class:`Graph`.  A tensor is sorted
                once and cached; a change through ``.data`` or a shared NumPy array is not noticed.
            edge_attr: Edge features, if the model was built for them.
            batch: The graph of every node ``(N,)``, for ``pool``; a :class:`Graph` made by ``Graph.cat`` has its own.
                Without it all nodes are one graph.  A model without ``pool`` ignores it.
            actions: ``"sample"``, ``"argmax"``, ``"expected"``, or codes ``(num_layers, N)`` to force, with several
                heads also ``(num_layers, N, heads)``.  By default ``eval_actions`` in evaluation and ``"sample"`` in
                training, or ``"expected"`` if gates are continuous.
            edge_type: The relation ``(E,)`` of every edge, for a model with ``num_relations``; a :class:`Graph` has its
                own.
            edge_weight: The weight ``(E,)`` of every edge, which multiplies its message and counts in the norms: one of
                weight 2 is two parallel edges.  A :class:`Graph` may have its own.
            samples: Repeat with that many draws and return their :class:`Samples` (mean, std); one has no std (nan).
            generator: Source of the draws; by default PyTorch's own.
            num_graphs: Number of graphs in ``batch``, where its last ones may be empty.
            return_trace: Return ``(out, Trace)``.
        """
        if self.gates == "added" and (actions is not None or samples is not None):
            raise ValueError("actions, samples: with gates='added' nodes take no actions; leave them out")
        if actions is None and samples is None and self.action_network is not None:
            training: ActionMode = "expected" if self.gates == "continuous" else "sample"
            actions = training if self.training else self.eval_actions
        if self.in_channels == -1:
            self._initialise(x)
        dtype = self.encoder.weight.dtype
        given = (x, edge_index, edge_attr, batch, num_graphs, edge_type, edge_weight)
        graph, edge_attr, edge_weight, batch, num_graphs = checks.arguments(self, dtype, *given)
        acting = graph.num_edges if self.space.site == "edge" else graph.num_nodes
        checks.actions(actions, self.num_layers, acting, self.space, self.action_network is not None)
        if isinstance(actions, Tensor) and actions.dim() == 2 and self.space.heads > 1:
            actions = actions.unsqueeze(-1).expand(-1, -1, self.space.heads)
        hearing = self.relations.hearing(graph, edge_attr, edge_weight)
        if samples is not None:
            checks.at_least("samples", samples, 1)
            if self.action_network is None:
                raise ValueError("samples: draws actions, but the model was built with action=None; leave it out")
            if return_trace or (actions is not None and actions != "sample"):
                raise ValueError(
                    "samples: averages over drawn actions; it goes with neither return_trace nor other actions"
                )
            draws = torch.stack(
                [self._run(x, hearing, batch, num_graphs, "sample", generator)[0] for _ in range(samples)]
            )
            return Samples(draws.mean(0), draws.std(0) if samples > 1 else torch.full_like(draws[0], torch.nan))
        mode = "sample" if actions is None else actions
        out, steps = self._run(x, hearing, batch, num_graphs, mode, generator, return_trace)
        return (out, self._trace(graph, steps)) if return_trace else out

    def _run(
        self,
        x: Tensor,
        hearing: Hearing,
        batch: Tensor | None,
        num_graphs: int | None,
        actions: ActionMode | Tensor,
        generator: torch.Generator | None,
        keep: bool = False,
    ) -> tuple[Tensor, list[LayerOutput]]:
        """The outputs, and those of the layers if ``keep``."""
        keep = keep or self.jk is not None
        execution = compiled(self) if self.compiled and generator is None else EAGER
        run_layers, together = execution.run_layers, execution.together
        if self.checkpoint and torch.is_grad_enabled():
            run_layers, together = checkpointed(run_layers), 1
        h, kept, layers = execution.enter(self, self.lift(x)), [], list(self.parts())
        for first in range(0, self.num_layers, together):
            group = slice(first, first + together)
            codes = actions if isinstance(actions, str) else actions[group]
            outputs = run_layers(self, layers[group], h, hearing, codes, generator, keep)
            h = outputs[-1].h
            kept += outputs if keep else []
        h = h if self.jk is None else self.jk([output.h for output in kept])
        return self.decode(h, batch, num_graphs), kept

    def inference(self, loader: Iterable[Any], device: torch.device | str | None = None) -> Tensor:
        """Outputs ``(N, out_channels)`` of all nodes, layer by layer, as PyG's ``BasicGNN.inference`` computes them.

        They are those of ``model(x, edge_index)`` in evaluation mode.  Activations are those of one mini-batch at a
        time; the states of all nodes are kept on the CPU.

        Args:
            loader: A ``NeighborLoader`` of all nodes in order with ``num_neighbors=[-1]``, one hop, for any depth.
            device: Where to compute; by default where the model is.
        """
        from cognn.nn.layerwise.loader_inference import infer_from_loader  # 5 ms of `from cognn import CoGNN`

        return infer_from_loader(self, loader, device)

    schema: dict[str, Any] | None = None
    """How the tables that the model was trained on were read, of a model from the folder of such a run."""

    def save_pretrained(self, path: str | Path) -> None:
        """Write the model to a folder, as ``config.json`` and ``model.safetensors``."""
        from cognn.nn.options.pretrained import save_model  # 7 ms of `from cognn import CoGNN`

        save_model(self, path)

    @classmethod
    def from_pretrained(cls, path: str | Path, *, split: int | None = None, **options: Any) -> "CoGNN | Encoded":
        """The model that :meth:`save_pretrained` or a training wrote, in evaluation mode; it needs no training data.

        A model of categorical features, such as atoms, comes with its encoder.  If the run was trained on tables,
        ``model.schema`` describes their columns, categories and means; ``cognn.open_run(folder).predict`` applies it.

        Args:
            path: A folder, the folder of a run, or the name of a model on the Hugging Face Hub.
            split: Which split's model of a run; by default the one that did best on its validation items.
            options: Options to change that do not touch the weights, such as ``eval_actions``.
        """

        def build(encoder: dict[str, Any] | None = None, **saved: Any) -> "CoGNN | Encoded":
            return cls(**saved) if encoder is None else behind_encoder(cls(**saved), **encoder)

        from cognn.nn.options.pretrained import load_model  # as above

        model: CoGNN | Encoded = load_model(build, path, split, options)
        return model

    @classmethod
    def as_published(cls, in_channels: int, hidden_channels: int, **options: Any) -> "CoGNN":
        """The model that the authors' script computes: factored actions, one norm, drawn actions also in evaluation.

        It is a :class:`CoGNN` with other defaults; ``options`` win.  Sizes, layers, activation and dropout are left to
        you, because they differ between the paper's tables.  The documentation compares both models line by line.
        """
        env, action = options.get("env", "mean"), options.get("action", "sum")
        drawn = {} if action is None else {"eval_actions": "sample"}
        return cls(in_channels, hidden_channels, **authors_options(env, action) | drawn | options)

    @classmethod
    def from_hetero(cls, data: Any, hidden_channels: int, *, out_channels: int, num_layers: int, **options: Any) -> Any:
        """A model for PyG's ``HeteroData`` with a relation per edge type: ``model(data.x_dict, data.edge_index_dict)``.

        PyG's ``to_hetero`` would cut the joint decisions of a node into one model per edge type; this does not.

        Args:
            data: A ``HeteroData``, for the widths of its node types and for its edge types.
            hidden_channels: Width of the environment network.
            out_channels: Number of outputs per node.
            num_layers: Number of cooperative layers.
            options: All other options of :class:`CoGNN`.

        Returns:
            A :class:`~cognn.nn.hetero.HeteroCoGNN`, whose outputs are a dictionary by node type.
        """
        from cognn.nn.hetero import HeteroCoGNN, widths_of  # for heterogeneous graphs only

        def build(in_channels: int, num_relations: int) -> CoGNN:
            sizes: dict[str, Any] = {"out_channels": out_channels, "num_layers": num_layers}
            return cls(in_channels, hidden_channels, num_relations=num_relations, **sizes, **options)

        return HeteroCoGNN(build, widths_of(data), data.edge_types)

    def parts(self) -> Iterator[Parts]:
        """The modules of every layer."""
        for index, layer in enumerate(self.layers):
            residual = None if self.residuals is None else self.residuals[index]
            network = self.action_network
            action = network[index] if isinstance(network, nn.ModuleList) else network
            yield Parts(self.norms[index], layer, residual, action)

    def inverse_temperature(self, h: Tensor) -> Tensor | float:
        """``1/tau`` of every node ``(N,)``, or the one of all."""
        if not isinstance(self.temperature, nn.Linear):
            return 1 / self.temperature
        return nn.functional.softplus(self.temperature(h).squeeze(-1)) + self.tau0

    def encode(self, x: Tensor) -> Tensor:
        """The states before the first layer."""
        return enter(self, self.lift(x))

    def lift(self, x: Tensor) -> Tensor:
        """Encode the features to the width of the environment network, and check that they are finite."""
        h = linear(self.encoder, x, self.input_dropout, self.training)
        checks.finite(x, h)
        return h

    def decode(self, h: Tensor, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        """The outputs from the states after the last layer, or from those that ``jk`` joined."""
        if self.norm_first:
            h = self.norms[-1](h)
        if self.pool is not None:
            h = POOLS[self.pool](h, batch, num_graphs)
        for layer in self.decoder[:-1]:
            h = act_and_drop(layer(h), self.act, self.dropout, self.training, self.dropout_first)
        return self.decoder[-1](h)

    def _initialise(self, x: Any) -> None:
        """Take the width of a lazy model from its first input, if that is valid."""
        if isinstance(x, Tensor) and x.dim() == 2 and x.is_floating_point() and isinstance(self.encoder, nn.LazyLinear):
            if self.encoder.has_uninitialized_params():
                self.encoder.initialize_parameters(x)
            self.in_channels = self.encoder.weight.size(1)

    def _trace(self, graph: Graph, steps: list[LayerOutput]) -> Trace:
        acting = graph.num_edges if self.space.site == "edge" else graph.num_nodes
        standard = torch.zeros(acting, *self.space.shape, dtype=torch.long, device=graph.device)
        actions = torch.stack([standard if s.decision is None else self.space.codes(s.decision) for s in steps])
        probs = []
        for codes, logits in zip(actions, (s.logits for s in steps), strict=True):
            if logits is None or self.gates == "added":
                certain = nn.functional.one_hot(codes, len(self.space.names))
                probs.append(certain.to(torch.get_default_dtype()))
            else:  # in training the probabilities keep their gradient, so that a loss may ask for fewer edges
                probs.append(self.space.probabilities(logits if self.training else logits.detach()))
        # With several heads the probabilities are (num_layers, N, heads, 4).
        return Trace(graph, actions, torch.stack(probs), self.space, self.relations.directions)

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        parts = [self.encoder, *self.layers, *self.norms, *(self.residuals or []), *self.decoder]
        network = self.action_network
        parts += network if isinstance(network, nn.ModuleList) else [network]
        parts += [part for part in (self.temperature, self.jk) if isinstance(part, nn.Module)]
        for part in parts:
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
        if self.init == "published":
            published_weights(self)

    def extra_repr(self) -> str:
        """The options that no sub-module shows."""
        sizes = f"{self.in_channels}, {self.hidden_channels}, out_channels={self.out_channels}, "
        return sizes + ", ".join(f"{name}={value!r}" for name, value in shown_options(self).items())
