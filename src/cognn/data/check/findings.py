"""The report of a check, and the measurements that are written into it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text
from torch import Tensor

from cognn.data.check.counts import describe_balance, describe_counts, part_counts, rare_classes, scarce_classes
from cognn.data.dataset import Split, is_defined, known_items
from cognn.data.splitting import overlaps
from cognn.data.tables.targets import Targets
from cognn.files.safe_read import shorten

NO_EDGES = "no edges: every node is alone, so a model without a graph (--model mlp) does the same"


@dataclass
class CheckReport:
    """Facts about the files, problems and warnings.  Prints as plain text and with rich."""

    source: str
    facts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """What prevents training."""
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the files can be trained on."""
        return not self.problems

    def __str__(self) -> str:
        width = max((len(name) for name in self.facts), default=0)
        lines = [self.source, *(f"  {name:<{width}}  {value}" for name, value in self.facts.items())]
        lines += [f"problem: {line}" for line in self.problems] + [f"warning: {line}" for line in self.warnings]
        return "\n".join([*lines, self._verdict()])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Text objects only: words of a file may look like markup.
        grid = Table.grid(padding=(0, 2))
        for name, value in self.facts.items():
            grid.add_row(Text(name, style="dim"), Text(value))
        yield Text(self.source, style="bold")
        yield grid
        for kind, style, lines in (("problem", "bold red", self.problems), ("warning", "yellow", self.warnings)):
            for line in lines:
                yield Text.assemble((f"{kind}: ", style), line)
        yield Text(self._verdict(), style="green" if self.ok else "red")

    def _verdict(self) -> str:
        if not self.ok:
            return f"{len(self.problems)} to fix before training"
        return "ready for training" + (f", {len(self.warnings)} to look at" if self.warnings else "")


def edge_findings(
    report: CheckReport, edge_index: Tensor, num_nodes: int, directed: bool | None, edge_type: Tensor | None = None
) -> None:
    """Degrees, self-loops, duplicates and isolated nodes, of the edges as listed; other relations are other edges."""
    sender, receiver = edge_index.numpy()
    kind = np.zeros(1, np.int64) if edge_type is None else edge_type.numpy()
    count, kind = 1 + int(kind.max(initial=0)), np.broadcast_to(kind, sender.shape)
    loops = int((sender == receiver).sum())
    as_listed = _distinct((sender * num_nodes + receiver) * count + kind)
    one_way = sender != receiver
    low, high = np.minimum(sender, receiver)[one_way], np.maximum(sender, receiver)[one_way]
    pairs = _distinct((low * num_nodes + high) * count + kind[one_way])
    repeated = len(sender) - as_listed
    loop_kinds = _distinct((sender * count + kind)[~one_way])
    mutual = as_listed - loop_kinds - pairs
    degree = np.bincount(sender, minlength=num_nodes) + np.bincount(receiver, minlength=num_nodes)
    both = pairs > 0 and mutual == pairs
    report.facts |= {
        "edges": f"{len(sender):,} listed, {pairs:,} pairs of different nodes"
        + (" and their relation" if count > 1 else "")
        + (", each both ways" if both else ""),
        "self-loops": f"{loops:,}",
        "duplicates": f"{repeated:,} repeat an earlier edge",
        "degree": _describe(degree // 2 if both else degree),
        "isolated": f"{int((degree == 0).sum()):,} nodes without an edge",
    }
    if not len(sender):
        report.warnings.append(NO_EDGES)
    if repeated:
        report.warnings.append(
            f"{repeated:,} edges repeat an earlier one and count twice; delete them if that is not intended"
        )
    if directed is False and mutual and not both:
        report.warnings.append(f"{mutual:,} pairs are listed both ways; undirected, each of those edges counts twice")
    if directed is None:
        guess = "the edges are listed both ways, as --undirected expects" if both else "it is not guessed"
        report.warnings.append(f"training will ask for --directed or --undirected ({guess})")


def label_findings(report: CheckReport, targets: Targets, edge_index: Tensor | None) -> None:
    """The task, the distribution of the targets, and homophily."""
    y, task = targets.y, targets.task
    known = len(known_items(y))
    report.facts["task"] = f"{task.readout.item} {task.kind}, {task.num_outputs} output(s), scored by {task.metric}"
    report.facts["labelled"] = f"{known:,} of {len(y):,} {task.readout.items}"
    if task.kind == "regression":
        for name, column in zip(targets.class_names, y.unbind(1), strict=True):
            report.facts[f"target {shorten(name, 30)}"] = _describe(column[~column.isnan()].double().numpy())
        return
    report.facts["balance"] = describe_balance(y, task, targets.class_names)
    if rare := rare_classes(y, task, targets.class_names):
        report.warnings.append(rare)
    if edge_index is not None and task.readout.per_node and task.kind != "multilabel":
        sender, receiver = edge_index.numpy()
        one, other = y.numpy()[sender], y.numpy()[receiver]
        both = (one >= 0) & (other >= 0) & (sender != receiver)  # nan is not
        if both.any():
            share = float((one == other)[both].mean())
            report.facts["homophily"] = f"{share:.3f} of the edges between labelled nodes join equal labels"


def split_findings(report: CheckReport, splits: list[Split], targets: Targets, x: Tensor | None) -> None:
    """Sizes, overlaps, classes without training items, and equal features in training and test."""
    first = splits[0]
    count = f"{len(splits)} x " if len(splits) > 1 else ""
    report.facts["splits"] = f"{count}{len(first.train):,} train, {len(first.val):,} val, {len(first.test):,} test"
    counts = [part_counts(targets.y, targets.task, targets.class_names, split) for split in splits]
    if counts[0]:
        report.facts["train/val/test"] = describe_counts(counts[0])
    if scarce := scarce_classes(counts):
        report.warnings.append(scarce)
    for number, split in enumerate(splits):
        for parts, shared in overlaps(split).items():
            report.warnings.append(
                f"split {number}: {parts} share {len(shared):,} items, the first is {int(shared[0])}"
            )
        if targets.task.kind in ("binary", "multiclass"):
            seen = set(targets.y[split.train].long().unique().tolist())
            unseen = [name for code, name in enumerate(targets.class_names) if code not in seen]
            if unseen:
                report.warnings.append(f"split {number}: no training item of class {shorten(unseen[0], 60)!r}")
        for part in ("val", "test"):
            y = targets.y[getattr(split, part)]
            if len(y) and not is_defined(targets.task, y):
                line = f"split {number}: all {part} items are of one class, their {targets.task.metric} is not defined"
                if part == "val":
                    report.problems.append(f"{line}; training would fail")
                else:
                    report.warnings.append(line)
    if x is None or len(x) != len(targets.y) or x.size(1) < 2:
        return
    hashes = _row_hashes(x)
    twins = np.isin(hashes[first.test.numpy()], hashes[first.train.numpy()])
    if twins.any():
        line = f"{int(twins.sum()):,} of {len(twins):,} test items have exactly the features of a training item"
        report.facts["equal features"] = line
        # With few features rows are equal by chance; if most rows are unique, equal ones are probably copies.
        if 2 * _distinct(hashes) > len(hashes):
            report.warnings.append(f"split 0: {line}; are they copies?")


def _distinct(values: NDArray[np.int64] | NDArray[np.uint64]) -> int:
    if not len(values):
        return 0
    ordered = np.sort(values)
    return 1 + int((ordered[1:] != ordered[:-1]).sum())


def _row_hashes(x: Tensor) -> NDArray[np.uint64]:
    """A 64-bit hash of each row."""
    bits = (x + 0.0).numpy().view(np.uint32)
    factor = np.random.default_rng(0).integers(2**63, size=x.size(1), dtype=np.uint64) | np.uint64(1)
    word = np.zeros(len(bits), dtype=np.uint64)
    for column, by in zip(bits.T, factor, strict=True):
        word += column * by
        word ^= word >> np.uint64(29)
    return word


def _describe(values: NDArray[np.int64] | NDArray[np.float64]) -> str:
    if not len(values):
        return "none"
    middle = np.median(values)
    return f"mean {values.mean():.4g}, median {middle:.4g}, from {values.min():.4g} to {values.max():.4g}"
