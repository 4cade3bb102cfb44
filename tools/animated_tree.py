"""The animated picture of RootNeighbors: who speaks at each layer of a network that was trained for it.

Everything drawn comes from the trained network: its actions at every layer on one test tree, and its test error.
"""

import math
from pathlib import Path

import torch
from rich.progress import Progress

from cognn import demo
from cognn.data.synthetic.root_neighbors import DEGREE
from cognn.nn.trace import Trace
from cognn.report.palette import ACTIONS

LAYERS, WIDTH, HEIGHT, SECONDS, RADIUS = 3, 760, 420, 4, 9
Places = dict[int, tuple[float, float]]
Edges = list[tuple[int, int]]

STYLE = f"""
  .card {{ fill: #ffffff; stroke: #d0d7de }}
  text {{ font: 15px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }}
  .small {{ font-size: 13px; fill: #59636e }}
  .edge {{ stroke: #d0d7de; stroke-width: 2 }}
  .kept {{ stroke: #0072B2; stroke-width: 2.5 }}
  .head {{ fill: #0072B2 }}
  .dot {{ fill: #0072B2; animation: travel {SECONDS}s infinite ease-in-out }}
  .layer {{ opacity: 0; animation: show {LAYERS * SECONDS}s infinite step-end }}
  @keyframes show {{ 0% {{ opacity: 1 }} {100 / LAYERS:.3f}%, 100% {{ opacity: 0 }} }}
  @keyframes travel {{ 0%, 15% {{ transform: none }} 85%, 100% {{ transform: translate(var(--x), var(--y)) }} }}
  @media (prefers-reduced-motion: reduce) {{ .layer, .dot {{ animation: none }} .dot {{ display: none }}
    .layer:last-of-type {{ opacity: 1 }} }}
  @media (prefers-color-scheme: dark) {{ .card {{ fill: #161b22; stroke: #30363d }} text {{ fill: #e6edf3 }}
    .small {{ fill: #9198a1 }} .edge {{ stroke: #3d444d }}
    .kept {{ stroke: #c9d1d9 }} .head, .dot {{ fill: #c9d1d9 }} }}
"""


def draw_tree(path: Path, trees: int = 300, epochs: int = 400) -> None:
    """Train Co-GNN(sum, mean) of three layers on RootNeighbors and draw one test tree."""
    demo.MODELS["animated"] = {"env": "mean", "action": "sum", "num_layers": LAYERS, "action_layers": 1}
    splits = {name: demo.Split.make(name, trees, 0) for name in ("train", "val", "test")}
    with Progress(disable=True) as progress:
        outcome = demo.fit("animated", splits, epochs, 0, progress, progress.add_task(""))
    test, trace = splits["test"], outcome.trace
    sources, targets = test.graph.edge_index
    degree = torch.bincount(sources, minlength=test.graph.num_nodes).tolist()

    def neighbours(node: int) -> list[int]:
        return sorted(sources[targets == node].tolist(), key=lambda one: -degree[one])

    roots = (root for root in test.root.tolist() if degree[root] == 6)
    root = next(root for root in roots if sum(degree[one] == DEGREE for one in neighbours(root)) == 3)
    places = _places(root, {node: [leaf for leaf in neighbours(node) if leaf != root] for node in neighbours(root)})
    edges = [(u, v) for u, v in zip(sources.tolist(), targets.tolist(), strict=True) if {u, v} <= places.keys()]
    tree = [f'<path class="edge" d="M{_at(places[u])} L{_at(places[v])}"/>' for u, v in edges if u < v]
    tree += [f'<text class="small" x="{places[root][0] + 34:.0f}" y="{places[root][1] + 5:.0f}">root</text>']
    for node in neighbours(root):
        x, y = places[node]
        tree.append(f'<text class="small" x="{x + 20:.0f}" y="{y + 5:.0f}">{degree[node]}</text>')
    layers = [_layer(layer, places, _kept(trace, layer, edges), trace) for layer in range(LAYERS)]
    footer = f"The numbers are degrees. Test error of this network: {outcome.test_mae:.3f}."
    path.write_text(_svg([*tree, *layers, _legend()], footer), encoding="utf-8")


def _kept(trace: Trace, layer: int, edges: Edges) -> Edges:
    travels = set(map(tuple, trace.edge_index(layer).t().tolist()))
    return [edge for edge in edges if edge in travels]


def _places(root: int, leaves: dict[int, list[int]]) -> Places:
    """Root above, its neighbours below it, their leaves at the bottom, each with room for its subtree."""
    room = [max(len(some), 2) for some in leaves.values()]
    places, left, step = {root: (WIDTH / 2, 90.0)}, 30.0, (WIDTH - 60) / sum(room)
    for (node, some), width in zip(leaves.items(), room, strict=True):
        places[node] = (left + step * width / 2, 195.0)
        first = left + step * (width - len(some) + 1) / 2
        places |= {leaf: (first + step * i, 300.0) for i, leaf in enumerate(some)}
        left += step * width
    return places


def _layer(layer: int, places: Places, kept: Edges, trace: Trace) -> str:
    """The nodes in the colours of their actions, and a dot that travels along every kept edge."""
    actions = {node: int(trace.actions[layer, node]) for node in places}
    speak, listen = (sum(action in codes for action in actions.values()) for codes in ((0, 2), (0, 1)))
    words = (
        f"Layer {layer + 1} of {LAYERS}: {speak} of {len(places)} nodes speak, {listen} listen, {len(kept)} messages"
    )
    parts = [f'<text x="{WIDTH / 2:.0f}" y="42">{words}</text>']
    for u, v in kept:
        (x, y), (a, b) = places[u], places[v]
        far = math.hypot(a - x, b - y)
        ends = [(x + (a - x) * part, y + (b - y) * part) for part in (RADIUS / far, 1 - (RADIUS + 7) / far)]
        parts.append(f'<path class="kept" marker-end="url(#head)" d="M{_at(ends[0])} L{_at(ends[1])}"/>')
        parts.append(
            f'<circle class="dot" r="5" cx="{x:.0f}" cy="{y:.0f}" style="--x:{a - x:.0f}px;--y:{b - y:.0f}px"/>'
        )
    for node, (x, y) in places.items():
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS}" fill="{ACTIONS[actions[node]]}"/>')
    body = "\n".join(parts)
    return f'<g class="layer" style="animation-delay:{layer * SECONDS}s">\n{body}\n</g>'


def _legend() -> str:
    names = ("listens and speaks", "listens", "speaks", "neither")
    parts = []
    for i, (name, colour) in enumerate(zip(names, ACTIONS, strict=True)):
        x = 60 + 175 * i
        parts.append(f'<circle cx="{x}" cy="352" r="{RADIUS}" fill="{colour}"/>')
        parts.append(f'<text class="small" style="text-anchor:start" x="{x + 16}" y="357">{name}</text>')
    return "\n".join(parts)


def _svg(parts: list[str], footer: str) -> str:
    body = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>Who speaks at each layer of a network trained on RootNeighbors</title>
<style>{STYLE}</style>
<defs><marker id="head" orient="auto" markerWidth="3.2" markerHeight="3.2" viewBox="0 0 10 10" refX="5" refY="5">
<path class="head" d="M0 0 L10 5 L0 10 z"/></marker></defs>
<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10"/>
{body}
<text class="small" x="{WIDTH / 2:.0f}" y="396">{footer}</text>
</svg>
"""


def _at(place: tuple[float, float]) -> str:
    return f"{place[0]:.0f} {place[1]:.0f}"
