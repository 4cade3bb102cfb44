"""One bit flipped in what cognn saved itself: the answer is refused, or that of the undamaged file."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import torch

from cognn import CoGNN
from cognn.errors import CognnError
from tests.campaign import sound
from tests.campaign.case import REFUSED, RIGHT, Case, Wrong
from tests.campaign.damage import flipped
from tests.campaign.readers import copied

Question = tuple[tuple[str, ...], Callable[[Case], bool]]
"""A command, and whether its answer is that of the undamaged files."""


def _same_table(name: str) -> Callable[[Case], bool]:
    return lambda case: Path("out.csv").read_bytes() == (case.sound / name).read_bytes()


def same_scores(*paths: Path) -> bool:
    """Whether two files of scores differ in nothing but times."""
    return sound.same(*(_untimed(json.loads(path.read_text())) for path in paths))


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untimed(entry) for key, entry in value.items() if key != "seconds"}
    return [_untimed(entry) for entry in value] if isinstance(value, list) else value


def _same_rows(case: Case) -> bool:
    """A new graph that is the old one gets its predictions, up to the order of a sum."""
    one, other = pl.read_csv("out.csv"), pl.read_csv(case.sound / "predictions.csv")
    shared = [name for name in other.columns if name != "spread"]
    return bool(
        one["prediction"].to_list() == other["prediction"].to_list()
        and all(
            ((one[name] - other[name]).abs().max() or 0.0) < 1e-5 for name in shared if other[name].dtype == pl.Float64
        )
    )


QUESTIONS: dict[str, list[Question]] = {
    "run": [
        (("predict", "run", "--out", "out.csv"), _same_table("predictions.csv")),
        (("predict", "run", "nodes.csv", "--edges", "edges.csv", "--out", "out.csv"), _same_rows),
        (
            ("evaluate", "run", "--out", "out.json"),
            lambda case: same_scores(Path("out.json"), case.sound / "scores.json"),
        ),
        (("predict", "run", "nodes.jsonl", "--edges", "edges.csv", "--out", "out.csv"), _same_rows),
    ],
    "store": [(("predict", "run", "store", "--out", "out.csv"), _same_table("from_store.csv"))],
    "run_store": [
        (("train", "store", *sound.SMALL, "--epochs", "2", "--out", "again"), lambda case: _same_end(case, "again"))
    ],
    "half": [(("train", "--resume", "half", "--quiet"), lambda case: _same_end(case, "half"))],
}


def _same_end(case: Case, name: str) -> bool:
    whole = {"half": "whole", "again": "run_store"}[name]
    return sound.same(sound.end_of(Path(name)), sound.end_of(case.sound / whole))


def flips(name: str) -> Callable[[Case], str]:
    """Cases of one bit flipped in one saved folder, and one command that reads it."""

    def run(case: Case) -> str:
        copied(case, "nodes.jsonl", "run", "store", "half")
        words, right = case.draw.choice(QUESTIONS[name])
        folder = Path("store" if name == "run_store" else name)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
        path = case.draw.choice(files)
        # Half of the flips are in the digits and words of a file of text, where a change is most likely to be valid.
        path.write_bytes(case.changed(path.read_bytes(), flipped, most=1))
        told = case.run(*words)
        case.said.append(f"flipped: {path}")
        if told.code:
            return REFUSED
        if right(case):
            return RIGHT
        if re.search(r"(?i)warning|not the recorded|recorded|differs", told.err + told.out):
            return RIGHT  # it answers, and says what is odd
        raise Wrong(f"silently wrong: `cognn {' '.join(words[:2])}` after a bit of {path} was flipped")

    return run


def pretrained(case: Case) -> str:
    """One bit flipped in a model that was saved for others."""
    copied(case, "run")
    model = CoGNN.from_pretrained("run")
    model.save_pretrained("model")
    x, edge_index = torch.ones(5, model.in_channels), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    before = model(x, edge_index)
    path = case.draw.choice(sorted(path for path in Path("model").iterdir() if path.name != "schema.json"))
    path.write_bytes(case.changed(path.read_bytes(), flipped, most=1))
    case.said.append(f"flipped: {path}")
    try:
        after = CoGNN.from_pretrained("model")(x, edge_index)
    except CognnError as error:
        if len(str(error).splitlines()) != 1:
            raise Wrong(f"not one line: {error}") from None
        return REFUSED
    if not torch.equal(before, after):
        raise Wrong(f"silently wrong: the outputs of a model after a bit of {path} was flipped")
    shutil.rmtree("model")
    return RIGHT
