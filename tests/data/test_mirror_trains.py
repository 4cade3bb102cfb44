"""Every published dataset from its raw files to scores, by the real command line; their statistics have tests apart."""

import json
import math
import os
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.data.catalogue import ENTRIES, Entry

SMALL = ["--splits", "0", "--epochs", "2", "--num-layers", "2", "--hidden-channels", "16", "--action-channels", "4"]
PUBLISHED = [entry for entry in ENTRIES.values() if not entry.generated]
SLOW = {
    "peptides-func": "converting its molecules takes minutes",
    "reddit-binary": "it has 0.9 million nodes, and goes the way of the smaller sets",
    "reddit-multi-5k": "it has 2.5 million nodes",
}


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry.name)
def test_trains(entry: Entry, mirror: Path, tmp_path: Path) -> None:
    if entry.origin != "mirror":
        pytest.skip(f"{'/'.join(entry.folder or ())} is not in the mirror {mirror}")
    if entry.name in SLOW and "COGNN_WHOLE" not in os.environ:
        pytest.skip(f"{SLOW[entry.name]}; set COGNN_WHOLE=1")
    run = tmp_path / "run"
    batches = ["--batch-size", "256"] if entry.level == "graph" else []
    assert main(["train", entry.name, *SMALL, *batches, "--quiet", "--out", str(run)]) == 0
    result = json.loads((run / "result.json").read_text())
    assert (result["dataset"], result["metric"]) == (entry.name, entry.metric)
    assert all(0 <= result[part]["mean"] <= 1 for part in ("train", "val", "test"))
    losses = [json.loads(line)["loss"] for line in (run / "split-0/metrics.jsonl").read_text().splitlines()]
    assert len(losses) == 2
    assert all(map(math.isfinite, losses))
    assert main(["evaluate", str(run)]) == 0
    assert main(["predict", str(run), "--samples", "0", "--out", str(tmp_path / "out.parquet")]) == 0
