"""The tests of a comparison, and what follows from them.

The reference for the edges is the best model on features alone, and that for cooperation the best base network.  Both
are chosen by validation score; a choice by test score would favour the reference.  Every test is a corrected resampled
t-test over the splits, and all p-values of a comparison are corrected together by Holm's method.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults
from cognn.comparison.rows import CONTROLS
from cognn.statistics.formatting import format_gain, format_p
from cognn.statistics.resampled import compare_resampled, least_gain
from cognn.statistics.significance import LEVEL, holm_correction

Question = Literal["edges", "cooperation"]
Answer = Literal["yes", "no", "untested"]
FEWEST = 3
"""Splits, or seeds of the one split, below which nothing is tested."""


@dataclass
class Gain:
    """A tested difference of two models."""

    question: Question
    model: str
    over: str
    gain: float
    """Difference of the mean test scores of the splits that both have; positive is better."""
    p: float | None
    """Uncorrected; None where no test is possible."""
    holm: float | None = None
    """Corrected for all comparisons."""
    least: float | None = None
    """The smallest gain, with the same spread over splits, that would have been called real."""

    @property
    def is_real(self) -> bool:
        """Whether the model is better, beyond noise."""
        return self.gain > 0 and self.holm is not None and self.holm < LEVEL

    @property
    def is_harm(self) -> bool:
        """Whether the model is worse, beyond noise."""
        return self.gain < 0 and self.holm is not None and self.holm < LEVEL


@dataclass
class Verdict:
    """The answers of a comparison."""

    edges: Answer
    cooperation: Answer
    winner: str
    """The model to use: the best by validation score of those that the tests allow."""
    network: str | None
    """The winner if it is a network, else the best network; None if none is finished."""
    sentence: str
    gains: list[Gain]


def judge(plan: Plan, rows: Sequence[RowResults]) -> Verdict:
    """Test the finished models, and choose one."""
    known = [row for row in rows if row.failed is None and row.scores("val")]
    gains = _tests(plan, known)
    if not any(gain.holm is not None for gain in gains):
        best = _best(plan, known)
        trained = max((len(row.trainings) for row in known), default=0)
        text = f"{best.row.label} is best by validation score; {trained} trainings are too few for a test"
        return Verdict("untested", "untested", best.row.key, _network(plan, best, known), text, gains)
    real = {
        question: {g.model for g in gains if g.question == question and g.is_real}
        for question in ("edges", "cooperation")
    }
    acting = {row.row.key for row in known if row.row.level == "actions"}
    edges: Answer = "yes" if real["edges"] else "no"
    cooperation: Answer = "yes" if real["cooperation"] & real["edges"] else "no"
    if not real["edges"]:
        allowed = {row.row.key for row in known if row.row.level == "features"}
    elif cooperation == "no":
        allowed = real["edges"] - acting or real["edges"]
    else:
        allowed = (real["edges"] - acting) | (real["edges"] & real["cooperation"])
    winner = _best(plan, [row for row in known if row.row.key in allowed])
    labels = {row.row.key: row.row.label for row in known}
    parts = [
        _say(plan, gains, "edges", winner.row.key, labels),
        _say(plan, gains, "cooperation", winner.row.key, labels),
    ]
    levels = ("features", "edges", "actions")[: 1 + (edges == "yes") + (cooperation == "yes")]
    network = _network(plan, winner, [row for row in known if row.row.level in levels])
    return Verdict(edges, cooperation, winner.row.key, network, f"On this graph {', '.join(parts)}", gains)


def _best(plan: Plan, rows: Sequence[RowResults]) -> RowResults:
    sign = 1 if plan.higher_is_better else -1
    return max(rows, key=lambda row: sign * row.mean("val"))


def _network(plan: Plan, winner: RowResults, rows: Sequence[RowResults]) -> str | None:
    """The winner if it is a network, else the best network of some."""
    networks = [winner] if not winner.row.is_trees else [row for row in rows if not row.row.is_trees]
    return _best(plan, networks).row.key if networks else None


def _tests(plan: Plan, rows: Sequence[RowResults]) -> list[Gain]:
    """Every model with edges over the best without, and every Co-GNN over the best base network."""
    gains = list[Gain]()
    blind = [row for row in rows if row.row.level == "features"]
    if blind:
        over = _best(plan, blind)
        gains += [_gain(plan, "edges", row, over) for row in rows if row.row.level != "features"]
    bases = [row for row in rows if row.row.key in CONTROLS]
    if bases:
        over = _best(plan, bases)
        gains += [_gain(plan, "cooperation", row, over) for row in rows if row.row.level == "actions"]
    for gain, p in zip(gains, holm_correction([gain.p for gain in gains]), strict=True):
        gain.holm = p
    tested = sum(gain.p is not None for gain in gains)
    for gain in gains:
        gain.least = least_gain(*_pairs(rows, gain), plan.test_ratio, LEVEL / tested) if gain.p is not None else None
    return gains


def _pairs(rows: Sequence[RowResults], gain: Gain) -> tuple[list[float], list[float]]:
    """The test scores of both models of a difference on the splits that both have."""
    first, second = (next(row for row in rows if row.row.key == key).scores("test") for key in (gain.model, gain.over))
    both = sorted(first.keys() & second.keys())
    return [first[key] for key in both], [second[key] for key in both]


def _gain(plan: Plan, question: Question, row: RowResults, over: RowResults) -> Gain:
    gain = Gain(question, row.row.key, over.row.key, 0.0, None)
    ours, theirs = _pairs([row, over], gain)
    sign = 1 if plan.higher_is_better else -1
    gain.gain = sign * sum(a - b for a, b in zip(ours, theirs, strict=True)) / max(len(ours), 1)
    gain.p = compare_resampled(ours, theirs, plan.test_ratio).p if len(ours) >= FEWEST else None
    return gain


def _say(plan: Plan, gains: list[Gain], question: Question, winner: str, labels: dict[str, str]) -> str:
    """One clause: the answer, with the gain of the winner, or of the model with the strongest evidence."""
    name = "edges" if question == "edges" else "cooperation"
    verb = ("help", "add", "hurt") if question == "edges" else ("helps", "adds", "hurts")
    some = [gain for gain in gains if gain.question == question]
    if not some:
        return f"{name} could not be tested"
    real = [gain for gain in some if gain.is_real]
    if real:
        shown = next((gain for gain in real if gain.model == winner), min(real, key=lambda gain: gain.holm or 0.0))
        return f"{name} {verb[0]} ({_number(plan, shown, labels)})"
    shown = max(some, key=lambda gain: gain.gain)
    if all(gain.is_harm for gain in some):
        return f"{name} {verb[2]} (at best {_number(plan, shown, labels)})"
    return f"{name} {verb[1]} nothing that can be told from noise (at best {_number(plan, shown, labels)})"


def _number(plan: Plan, gain: Gain, labels: dict[str, str]) -> str:
    shown = format_gain(gain.gain if plan.higher_is_better else -gain.gain, plan.metric)
    p = f", p {format_p(gain.holm)}" if gain.holm is not None else ""
    return f"{labels[gain.model]} {shown} over {labels[gain.over]}{p}"
