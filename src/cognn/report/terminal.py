"""Tables in the terminal, laid out by rich."""

import math
import re
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.table import Column, Table
from rich.text import Text

from cognn.config.options import DataConfig
from cognn.data.catalogue import ENTRIES
from cognn.data.check.files import check_files
from cognn.data.check.statistics import compare, measure
from cognn.data.check.taken import first_lines
from cognn.data.dataset import Dataset
from cognn.data.links.items import NAMES as LINK_NAMES
from cognn.data.load import load_named


def show_data(dataset: Dataset) -> None:
    """Print what the user's own data were taken as, to standard error, before a training."""
    console, (lines, warnings) = Console(stderr=True), first_lines(dataset)
    for name, value in lines.items():
        console.print(Text.assemble((f"{name}: ", "dim"), value), soft_wrap=True)
    for line in warnings:
        console.print(Text.assemble(("warning: ", "yellow"), line), soft_wrap=True)


def show_summary(summary: dict[str, Any], folder: Path) -> None:
    """Print the scores of every split, their mean and standard deviation, and the run folder."""
    title = f"{summary['dataset']}, {summary['model']}, {summary['metric']}"
    names = "split", "train", "val", "test", "best epoch", "epochs", "seconds"
    table = Table(*names, title=_title(title), title_justify="left")
    for result in summary["splits"]:
        scores = [_score(result[part]) for part in ("train", "val", "test")]
        table.add_row(str(result["split"]), *scores, *(f"{result[k]:g}" for k in ("best_epoch", "epochs", "seconds")))
    if len(summary["splits"]) > 1:
        parts = [summary[part] for part in ("train", "val", "test")]
        table.add_section()
        table.add_row("mean ± std", *(f"{_score(part['mean'])} ± {_score(part['std'])}" for part in parts))
    console = Console()
    console.print(table)
    for part, splits in summary.get("undefined", {}).items():
        which = f"split{'s' * (len(splits) > 1)} {', '.join(map(str, splits))}"
        console.print(
            Text(
                f"{summary['metric']} of {which} is undefined in {part} (no items there, or all of one class) and left"
                " out of the mean"
            ),
            soft_wrap=True,
        )
    for name in dict.fromkeys(result["only_class"] for result in summary["splits"] if "only_class" in result):
        splits = ", ".join(str(result["split"]) for result in summary["splits"] if result.get("only_class") == name)
        # As many pairs have a link as have none, so class weights are no remedy there.
        remedy = "--threshold validation chooses another probability than 0.5"
        if name not in LINK_NAMES:
            remedy = "if classes are imbalanced, try --class-weight balanced, or --metric macro_f1"
        text = f"warning: split {splits}: all test items are predicted as {name!r}; {remedy}"
        console.print(Text(text), soft_wrap=True)
    console.print(Text(f"run: {folder}"), soft_wrap=True)


def _score(value: float) -> str:
    if not math.isfinite(value):
        return "undefined"
    return f"{value:.4f}" if abs(value) < 1e4 else f"{value:,.0f}"  # errors in the units of large targets


def _title(text: str) -> Text:
    """A literal title: rich would read brackets and emoji codes in a string as markup."""
    return Text(text, "table.title")


_NUMBER = re.compile(r"-|[-+]?[\d.]+(e[-+]?\d+)?")


class _FoldedTable(TableElement):
    """Wraps the words of wide tables and keeps numbers on one line; rich's Markdown would cut cells off with ``…``."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            for column in table.columns:
                column.overflow = "fold"
                cells = [str(cell) for cell in column.cells]
                if all(_NUMBER.fullmatch(cell) for cell in cells):
                    column.width = max(map(len, (*cells, str(column.header)[:6])))
            yield table


class _Markdown(Markdown):
    elements: ClassVar = {**Markdown.elements, "table_open": _FoldedTable}


def show_markdown(text: str) -> None:
    """Print Markdown rendered in a terminal, and as plain text to a file or pipe."""
    console = Console()
    if console.is_terminal:
        console.print(_Markdown(text))
    else:
        print(text)


def show_catalogue() -> None:
    """Print the known datasets by task; in a pipe, one line each."""
    console = Console()
    shown = [entry for entry in ENTRIES.values() if entry.listed]
    wide = max(len(entry.name) for entry in shown)
    rows = [(e.name, f"{e.level} {e.kind}", e.metric, e.origin, e.description) for e in shown]
    if not console.is_terminal:
        for name, task, metric, source, description in rows:
            print(f"{name:<{wide}}  {task:<16}  {metric:<17}  {source:<9}  {description}")
        return
    for task, metric in dict.fromkeys(row[1:3] for row in rows):
        table = Table(Column(width=wide), Column(width=9), Column(), box=None, show_header=False, title_justify="left")
        table.title = Text(f"\n{task} ({metric})", "bold")
        for name, *same, source, description in rows:
            if same == [task, metric]:
                table.add_row(name, source, description)
        console.print(table)


def show_facts(name: str) -> None:
    """Print the measured statistics of a dataset and the published ones."""
    dataset = load_named(name)
    stats = measure(dataset)
    published = {row.name: row for row in compare(stats, dataset.facts)}
    table = Table("", "measured", "published", title=_title(name), title_justify="left")
    for fact, value in stats.facts().items():
        row = published.get(fact)
        differs = "" if row is None or row.agrees else " (differs)"
        table.add_row(fact, Text(_number(value)), "" if row is None else Text(_number(row.published) + differs))
    Console().print(table)


def show_check(config: DataConfig) -> int:
    """Print the findings of a check of the user's files; returns exit code 2 if training on them would fail."""
    report = check_files(config)
    Console().print(report)
    return 0 if report.ok else 2


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        shown = [(key, f"{n:,}" if isinstance(n, int) else f"{n:.1%}") for key, n in list(value.items())[:8]]
        return ", ".join(f"{key} {number}" for key, number in shown)
    if isinstance(value, list):
        return f"{len(value)} of " + " / ".join(map(str, value[0])) if value else "0"
    return f"{value:,}" if isinstance(value, int) else str(value)
