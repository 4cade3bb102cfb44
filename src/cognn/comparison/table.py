"""The table of a comparison in the terminal, live and at the end."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults
from cognn.statistics.formatting import format_gain, format_p, format_score, without_unit

PAGE = "report.html"
"""The page of a comparison, in its folder."""
LEVELS = {"features": "no graph", "edges": "edges", "actions": "actions"}
"""What the models of a level see, in tables."""


@contextmanager
def watch_table(plan: Plan, folder: Path, collect: Callable[[], list[RowResults]]) -> Iterator[Callable[[], None]]:
    """A table on standard error that grows while the models train; in a pipe a line for every finished training."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(plan, collect)
        return

    def table() -> Table:
        return live_table(plan, collect())

    with Live(console=console, get_renderable=table, refresh_per_second=1):
        yield lambda: None


def live_table(plan: Plan, rows: Sequence[RowResults]) -> Table:
    """How far every model is, and its validation score so far; test scores are for the end."""
    title = Text(f"{plan.dataset}, {plan.metric.replace('_', ' ')}", "table.title")
    table = Table("model", "search", "trained", "validation", "time", title=title, title_justify="left")
    table.box = SIMPLE_HEAD
    for row in rows:
        search = "-" if plan.trials == 1 else f"{row.trials}/{plan.trials}"
        state = "failed" if row.failed else f"{len(row.trainings)}/{plan.trainings}"
        table.add_row(Text(row.row.label), search, state, _score(row.mean("val"), plan), f"{row.seconds:.0f} s")
    return table


class _Lines:
    """Prints what has finished since the last call, at most every second."""

    def __init__(self, plan: Plan, collect: Callable[[], list[RowResults]]) -> None:
        self.plan, self.collect, self.last = plan, collect, time.monotonic()
        self.seen = {row.row.key: (row.trials, len(row.trainings)) for row in collect()}

    def __call__(self) -> None:
        if time.monotonic() - self.last < 1:
            return
        self.last = time.monotonic()
        for row in self.collect():
            done = row.trials, len(row.trainings)
            if done != self.seen[row.row.key]:
                self.seen[row.row.key] = done
                search = f"search {done[0]}/{self.plan.trials}, " if self.plan.trials > 1 else ""
                score = f", val {_score(row.mean('val'), self.plan)}" if done[1] else ""
                text = f"{row.row.label}: {search}trained {done[1]}/{self.plan.trainings}{score}"
                print(text, file=sys.stderr, flush=True)


def show(result: dict[str, Any], folder: Path) -> None:
    """Print the table, the verdict and what to run next."""
    console, metric = Console(), result["metric"]
    names = "model", "test", "edges", "p", "actions", "p", "time"
    # A narrow terminal wraps the names of the models; it must not cut numbers.
    columns = [Column(name, no_wrap=place > 0) for place, name in enumerate(names)]
    title = Text(f"{result['dataset']}, {metric.replace('_', ' ')}", "table.title")
    table = Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    level = ""
    for row in result["rows"]:
        if row["level"] != level:
            level = row["level"]
            table.add_row(Text(LEVELS[level], "dim"))
        cells = [cell for question in ("edges", "cooperation") for cell in gain_cells(row[question], result)]
        label = Text(f" {row['model']}", "bold" if row["key"] == result["winner"]["key"] else "")
        table.add_row(label, test_cell(row, metric), *cells, f"{row['seconds']:.0f} s")
    lines = [f"note: {note}" for note in result["notes"]]
    lines += ["", result["verdict"], "", *commands(result)]
    if (folder / PAGE).exists():
        lines.append(f"page: {folder / PAGE}")
    console.print(table)
    console.print(Text(caption(result), "dim"))
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def commands(result: dict[str, Any]) -> list[str]:
    """How to train the chosen model again and to predict with it, one line each."""
    network, lines = result["network"], []
    if result["winner"]["train"] is None:
        lines.append(f"trees: {result['winner']['run']}/split-*/trees-0.txt")
        lines += [f"best network: {network['model']}"] if network else []
    return lines + [f"{what}: {network[what]}" for what in ("train", "predict") if network]


def caption(result: dict[str, Any]) -> str:
    """What the columns of the table are."""
    labels = {row["key"]: row["model"] for row in result["rows"]}
    over = {q: {labels[row[q]["over"]] for row in result["rows"] if row[q]} for q in ("edges", "cooperation")}
    text = f"test: mean ± standard deviation over {count(result)}"
    for name, kind, references in (
        ("edges", "without them", over["edges"]),
        ("actions", "base network", over["cooperation"]),
    ):
        text += "".join(f"; {name}: gain over {label}, the best {kind} by validation" for label in references)
    return f"{text}; p: corrected resampled t-test, after Holm"


def count(result: dict[str, Any]) -> str:
    """``10 splits``, or ``5 seeds of one split``."""
    splits, seeds = len(result["splits"]), result["seeds"]
    if splits == 1:
        return f"{seeds} seeds of one split" if seeds > 1 else "one split"
    return f"{splits} splits" + (f" and {seeds} seeds" if seeds > 1 else "")


def test_cell(row: dict[str, Any], metric: str) -> str:
    """Mean and standard deviation."""
    if row["failed"] or row["test"] is None:
        return "failed" if row["failed"] else "-"
    return format_score(row["test"], metric) + ("" if row["std"] is None else f" ± {format_score(row['std'], metric)}")


def gain_cells(gain: dict[str, Any] | None, result: dict[str, Any]) -> tuple[str, str]:
    """A difference and its p-value."""
    if gain is None:
        return "", ""
    sign = 1 if result["higher_is_better"] else -1
    return without_unit(format_gain(sign * gain["gain"], result["metric"])), format_p(gain["p"]) or "-"


def _score(value: float, plan: Plan) -> str:
    return format_score(value, plan.metric) if math.isfinite(value) else "-"
