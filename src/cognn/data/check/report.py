"""What a check of the user's files found."""

from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text


@dataclass
class Report:
    """Facts about a graph, what makes it unusable, and what is only odd.  Prints as plain text and with rich."""

    source: str
    facts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """What has to be mended before training."""
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether it can be trained on."""
        return not self.problems

    def __str__(self) -> str:
        width = max((len(name) for name in self.facts), default=0)
        lines = [self.source, *(f"  {name:<{width}}  {value}" for name, value in self.facts.items())]
        lines += [f"problem: {line}" for line in self.problems] + [f"warning: {line}" for line in self.warnings]
        return "\n".join([*lines, self._verdict()])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Text objects throughout: a file's own words may look like markup.
        table = Table.grid(padding=(0, 2))
        for name, value in self.facts.items():
            table.add_row(Text(name, style="dim"), Text(value))
        yield Text(self.source, style="bold")
        yield table
        for kind, style, lines in (("problem", "bold red", self.problems), ("warning", "yellow", self.warnings)):
            for line in lines:
                yield Text.assemble((f"{kind}: ", style), line)
        yield Text(self._verdict(), style="green" if self.ok else "red")

    def _verdict(self) -> str:
        if not self.ok:
            return f"{len(self.problems)} to mend before training"
        return "ready to train on" + (f", {len(self.warnings)} to look at" if self.warnings else "")
