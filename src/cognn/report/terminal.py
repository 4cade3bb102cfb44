"""Progress and tables in the terminal; plain lines where it is not one."""

import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from cognn.config.options import Config, DataConfig
from cognn.data.catalogue import ENTRIES
from cognn.data.check.statistics import compare, measure
from cognn.data.load import load_named
from cognn.run.log_tail import Report
from cognn.train.loop import Epoch

PLAIN_SECONDS = 5.0  # between two lines of a log that nobody watches live


@contextmanager
def watching(config: Config, quiet: bool) -> Iterator[Report | None]:
    """Somewhere to report to: a live bar per split, or a line every few seconds."""
    if quiet:
        yield None
    elif Console().is_terminal:
        with _bars(config) as report:
            yield report
    else:
        yield _lines(config)


@contextmanager
def _bars(config: Config) -> Iterator[Report]:
    columns = TextColumn("split {task.fields[split]}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    with Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[text]}")) as progress:
        tasks: dict[int, TaskID] = {}

        def report(split: int, line: Epoch, best: float, best_epoch: int) -> None:
            if split not in tasks:
                tasks[split] = progress.add_task("", total=config.train.epochs, split=split, text="")
            progress.update(tasks[split], completed=line.epoch, text=_describe(line, best))

        yield report


def _lines(config: Config) -> Report:
    last: dict[int, float] = {}

    def report(split: int, line: Epoch, best: float, best_epoch: int) -> None:
        now = time.monotonic()
        if now - last.get(split, -PLAIN_SECONDS) >= PLAIN_SECONDS or line.epoch == config.train.epochs:
            last[split] = now
            left = line.seconds / line.epoch * (config.train.epochs - line.epoch)
            text = f"split {split} epoch {line.epoch}/{config.train.epochs} {_describe(line, best)} left {left:.0f}s"
            print(text, file=sys.stderr, flush=True)

    return report


def _describe(line: Epoch, best: float) -> str:
    text = f"loss {line.loss:.4f} train {line.train:.4f} val {line.val:.4f} test {line.test:.4f}"
    text += f" best val {best:.4f}" if best == best else ""
    return text + (f" kept {line.kept:.1%}" if line.kept is not None else "")


def show_summary(summary: dict[str, Any], folder: Path) -> None:
    """Scores per split, and their mean and spread."""
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
    console.print(Text(f"run: {folder}"), soft_wrap=True)


def _score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"  # of no items, or not defined for them


def _title(text: str) -> Text:
    """The title of a table as it stands: in a string, brackets in the name of a user's file would be markup."""
    return Text(text, "table.title")


_NUMBER = re.compile(r"-|[-+]?[\d.]+(e[-+]?\d+)?")


class _Folded(TableElement):
    """A table that is too wide breaks its words and loses none: ``Co-GNN…`` is no model.  Numbers stay whole."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            for column in table.columns:
                column.overflow = "fold"
                cells = [str(cell) for cell in column.cells]
                if all(_NUMBER.fullmatch(cell) for cell in cells):
                    column.width = max(map(len, (*cells, str(column.header)[:6])))
            yield table


class _Page(Markdown):
    elements: ClassVar = {**Markdown.elements, "table_open": _Folded}


def show_page(text: str) -> None:
    """Print Markdown, laid out for a terminal; a file or a pipe gets it as it is."""
    console = Console()
    if console.is_terminal:
        console.print(_Page(text))
    else:
        print(text)


def show_catalogue() -> None:
    """All known datasets."""
    table = Table(Column("name", no_wrap=True), "task", Column("metric", overflow="fold"), "from", "what it is")
    for name, entry in ENTRIES.items():
        table.add_row(name, f"{entry.level} {entry.kind}", entry.metric, entry.origin, entry.description)
    Console().print(table)


def show_facts(name: str) -> None:
    """Measured statistics beside published ones."""
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
    """What a check of the user's files found; exit code 2 if they cannot be trained on."""
    from cognn.data.check.files import check_files

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
        return ", ".join(f"{key} {share:.1%}" for key, share in list(value.items())[:8])
    if isinstance(value, list):
        return f"{len(value)} of " + " / ".join(map(str, value[0])) if value else "0"
    return f"{value:,}" if isinstance(value, int) else str(value)
