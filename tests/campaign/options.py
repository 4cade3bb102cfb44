"""Absurd values of every option: refused in one line before time or memory is spent, or trained with as asked."""

import json
import math
import typing
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal

from cognn.cli.predict import Predict
from cognn.cli.report import Report
from cognn.config.options import DataConfig, ModelConfig, TrainConfig
from tests.campaign import sound
from tests.campaign.case import ACCEPTED, REFUSED, RIGHT, Case, Wrong
from tests.campaign.readers import copied

INTEGERS = ["0", "-1", "1", "3", "7", "1000000", "10000000", "2147483648", "9223372036854775808", "1e3", "1.5", "x", ""]
FLOATS = ["0", "-1", "1", "0.5", "1e-300", "1e300", "nan", "inf", "-inf", "1e400", "x", "", "1e39"]
WORDS = ["", " ", "0", "-1", "none", "label", "label,label", "id", "size", "x" * 300, "é", "../..", "0-300000000"]
WORDS += ["1e9", "--out", "nodes.csv", "*", "a=b", "channel", "all", "all,all", "10,0", "cognn", "mae", "1,2", "3-1"]
WORDS += ["learned", "2s", "-5m"]
ENDLESS = {"epochs", "devices", "accelerator", "compile", "max_time"}
"""Options that may well ask for years, for other processes or for a compiler."""


def _value(case: Case, kind: Any) -> list[str]:
    if isinstance(kind, UnionType):
        kind = kind.__args__[0]
    if typing.get_origin(kind) is Literal:
        return [case.draw.choice([*map(str, typing.get_args(kind)), "?"])]
    if kind is bool:
        return [case.draw.choice(["True", "False"])]
    return [case.draw.choice({int: INTEGERS, float: FLOATS}.get(kind, WORDS))]


def _option(case: Case, kinds: tuple[Any, ...]) -> list[str]:
    known = [field for kind in kinds for field in fields(kind) if field.name not in ENDLESS | {"dataset"}]
    field = case.draw.choice(known)
    return [f"--{field.name.replace('_', '-')}", *_value(case, field.type)]


def training(case: Case) -> str:
    """One to three options of a training."""
    copied(case)
    words = ["train", *sound.TABLES, *sound.SMALL, "--epochs", "1", "--out", "out"]
    for _ in range(1 + case.draw.randrange(3)):
        words += _option(case, (DataConfig, ModelConfig, TrainConfig))
    told = case.run(*words)
    if told.code:
        if Path("out").exists() and not (Path("out") / "split-0" / "last").exists():
            raise Wrong("left behind: a run that blocks the next try, after a refusal")
        return REFUSED
    result = json.loads(Path("out/result.json").read_text())
    scores = [result[part]["mean"] for part in ("train", "val", "test")]
    if not all(isinstance(score, float) for score in scores):
        raise Wrong(f"silently wrong: the scores are {scores}")
    if not math.isfinite(scores[1]) and "undefined" not in told.out:
        raise Wrong("silently wrong: an undefined score without a word")
    return ACCEPTED


def other(case: Case) -> str:
    """One or two options of the commands that read a run."""
    copied(case, "run", "store")
    kind, words = case.draw.choice(
        [
            (Predict, ["predict", "run"]),
            (Predict, ["predict", "run", "store"]),
            (Predict, ["predict", "run", "nodes.csv", "--edges", "edges.csv"]),
            (Report, ["report", "run", "--samples", "0"]),
            (None, ["data", "build", *sound.TABLES, "--out", "built"]),
            (None, ["evaluate", "run"]),
        ]
    )
    if kind is None:
        words += [
            case.draw.choice(["--memory", "--samples", "--metric", "--split", "--out", "--like"]),
            case.draw.choice(FLOATS + WORDS),
        ]
    else:
        known = [field for field in fields(kind) if field.name not in ("run", "graph", "why")]
        field = case.draw.choice(known)
        hint = typing.get_type_hints(kind)[field.name]
        words += [f"--{field.name}", *_value(case, hint)]
        if field.name == "samples" and words[-1].isdecimal() and int(words[-1]) > 1000:
            words[-1] = "1000"  # a valid wish that takes minutes
    before = _files()
    told = case.run(*words)
    changed = [name for name, content in _files().items() if before.get(name, content) != content]
    if changed and told.code:
        raise Wrong(f"touched: {changed[0]} by a command that was refused")
    if [name for name in changed if name in words and name in ("nodes.csv", "edges.csv")]:
        return ACCEPTED  # `--out nodes.csv` is a wish that is granted
    if changed:
        raise Wrong(f"touched: {changed[0]}")
    return REFUSED if told.code else RIGHT


def _files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file() and path.suffix != ".html"}
