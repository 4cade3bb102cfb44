"""What the page says of the relations of a run."""

from html import escape

from cognn.report.data.run_view import RunView
from cognn.report.data.selection import heads_on_page, parts_on_page, relations_with_charts

ONE = (
    "At every layer each node takes one of four actions: STANDARD (listen and broadcast), LISTEN, BROADCAST or ISOLATE."
    " An edge is kept\n  if its sender broadcasts and its receiver listens. The kept edges of a group are those into"
    " its nodes."
)


def what_nodes_do(view: RunView) -> str:
    """The paragraph above the charts, as HTML."""
    if view.edges_act:
        return escape(_what_edges_do(view))
    if view.trace is None or view.relations == 1:
        return ONE
    alike = view.trace.space.relations == 1
    parts = [
        f"Messages travel along {view.relations} relations. At every layer each node takes one of four actions"
        f" {'for all of them' if alike else 'in each'}: STANDARD (listen and broadcast), LISTEN, BROADCAST or ISOLATE.",
        "An edge is kept in a relation if its sender broadcasts and its receiver listens there.",
    ]
    if view.trace.directions == "both":
        parts.append(
            "Every edge counts twice: along the edge, its source sends and its target listens; against it, its target"
            " sends and its source listens. So nodes listen to incoming and broadcast on outgoing edges in a relation"
            " along the edges, and listen to outgoing and broadcast on incoming edges in one against them."
        )
    parts.append("The kept edges of a group are those on which its nodes can hear.")
    return escape(" ".join(parts))


def _what_edges_do(view: RunView) -> str:
    text = (
        "At every layer each edge is kept or dropped by a decision of its own, and carries a message if it is kept."
        " Groups have the edges into their nodes."
    )
    if view.relations > 1:
        text += f" Messages travel along {view.relations} relations, with a decision in each."
    if len(view.groupings) > 4:
        text += f" By {view.groupings[-1].name}: edges between nodes of the same class, and of different ones."
    return text


def everywhere(view: RunView) -> str:
    """Where a decision is changed to explain a prediction."""
    places = ["relations"] * (view.relations > 1) + ["heads"] * (view.heads > 1)
    return f"in all {' and '.join(places)}" if places else ""


def all_together(view: RunView) -> str:
    """What the charts show by default."""
    several = {"relations": view.relations, "heads": view.heads}
    return "all " + " and ".join(f"{number} {name}" for name, number in several.items() if number > 1)


def relation_note(view: RunView) -> str:
    """How the charts combine relations, and which of them can be chosen."""
    parts = []
    if view.relations > 1:
        parts.append(
            f"The charts show shares of the edges of all relations, and the mean over the {view.relations} relations of"
            " what nodes do. The maps show every relation."
        )
    if view.heads > 1 and view.edges_act:
        parts.append(
            f"An edge is decided in {view.heads} heads; head k has slice k of the channels (counted from 0). The charts"
            " are means over the heads; the graph shows what is heard in any."
        )
    elif view.heads > 1:
        parts.append(
            f"A node acts in {view.heads} heads; head k has slice k of the channels (counted from 0). The maps by"
            " relation are means over the heads."
        )
    if view.expected:
        parts.append(
            "The gates are probabilities: kept edges in charts and maps are expected shares; the graph, the other"
            " charts and maps and the selected node show the likeliest actions."
        )
    charted, shown = relations_with_charts(view), heads_on_page(view)
    if len(charted) < view.relations:
        parts.append(f"The {len(charted)} relations with the most edges have charts of their own.")
    if shown and len(shown) < view.heads:
        parts.append(f"The page has room for {len(shown)} of the heads one by one: {', '.join(map(str, shown))}.")
    if view.relations > 1 and len(parts_on_page(view)) < (view.relations + 1) * (len(shown) + 1):
        parts.append("Above the graph, choose one relation or one head; the page has no room for every pair of them.")
    return " ".join(parts)
