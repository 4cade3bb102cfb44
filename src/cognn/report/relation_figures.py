"""Matplotlib heat maps of the relations of a run, readable with ninety relations."""

from matplotlib.figure import Figure

from cognn.report.data.relation_tables import ShareTable
from cognn.report.data.relations import shortened
from cognn.report.figures import literal
from cognn.report.head_figures import numberless_map


def share_map(table: ShareTable, title: str = "") -> Figure:
    """A heat map of a table, such as the share of the edges that each relation keeps at each layer."""
    names = [shortened(name) for name in table.rows]
    rows, wide = table.values.shape
    size = 2.6 + 0.05 * max(map(len, names), default=0) + 0.22 * wide, max(1.6, 1.2 + 0.15 * rows)
    figure = numberless_map(table.values, title, table.what, table.label, "", *size, top=table.top)
    axes = figure.axes[0]
    turned = max(map(len, table.columns), default=0) > 2
    axes.set_xticks(range(wide), table.columns, rotation=90 if turned else 0)
    axes.set_yticks(range(rows), [literal(name) for name in names])
    return figure
