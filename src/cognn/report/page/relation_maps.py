"""Heat maps of the relations: which of them are heard at which layer, and who listens and broadcasts in them."""

from typing import Any

from cognn.report.data.relation_tables import ShareTable, relation_tables
from cognn.report.data.relations import shortened
from cognn.report.data.run_view import RunView
from cognn.report.page.charts import CellValue, Chart, plain_text
from cognn.report.page.heat_map import heat_map, rounded, span

ROW, FEWEST = 15, 8


def relation_maps(view: RunView) -> list[Chart]:
    """The heat maps of a run with several relations; none for one."""
    return [_map(table) for table in relation_tables(view)]


def _map(table: ShareTable) -> Chart:
    rows, columns = list(range(len(table.rows))), list(range(len(table.columns)))
    # Names may be long, equal, or markup: the axes count, and the words are labels and hover texts.
    figure = heat_map(table.values, columns, rows, table.label, "", "%{text}: %{z:.1%}")
    words = [[f"{plain_text(name)}<br>{table.label} {column}" for column in table.columns] for name in table.rows]
    figure["data"][0] |= {"text": words, "ygap": 1, "hoverongaps": False, "zmin": 0, "zmax": table.top}
    figure["data"][0]["colorbar"] |= {"tickformat": ".0%"}
    shown = [plain_text(shortened(name)) for name in table.rows]
    layout: dict[str, Any] = figure["layout"]
    layout["yaxis"] |= {"tickvals": rows, "ticktext": shown, "automargin": True, "tickfont": {"size": 11}}
    layout["xaxis"] |= {"tickvals": columns, "ticktext": table.columns}
    layout["height"] = ROW * max(len(rows), FEWEST) + 110
    low, high = span(table.values)
    alt = f"Heat map of the {table.what} by {table.kind} and {table.label}, from {low:.3f} to {high:.3f}"
    cells: list[list[CellValue]] = [
        [name, column, rounded(value)]
        for name, row in zip(table.rows, table.values, strict=True)
        for column, value in zip(table.columns, row, strict=True)
    ]
    title = f"{table.what.capitalize()} by {table.kind} and {table.label}"
    return Chart(table.key, title, alt, figure, [table.kind, table.label, table.what], cells)
