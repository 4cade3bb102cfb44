"""A short campaign with a fixed seed, and proof that a campaign would notice."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLANTED = """
import sys
from cognn.data.readers import resolve_ids as module

real = module.resolve_ids
module.resolve_ids = lambda *given: (found := real(*given))._replace(edge_index=found.edge_index[:, :-1])
sys.modules["cognn.data.readers.files"].resolve_ids = module.resolve_ids
from tests.campaign.__main__ import main

sys.exit(main())
"""


def campaign(tmp_path: Path, *start: str, words: str) -> subprocess.CompletedProcess[str]:
    """In an interpreter of its own, because Polars does not survive the fork of a process in which it ran."""
    command = [sys.executable, "-W", "ignore", *start, *words.split(), "--out", str(tmp_path / "failed")]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_a_short_campaign_holds(tmp_path: Path) -> None:
    done = campaign(tmp_path, "-m", "tests.campaign", words="--seed 7 --cases 150 --minutes 10")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| all | 150 |" in done.stdout
    assert not (tmp_path / "failed").exists()


def test_an_edge_that_is_lost_without_a_word_is_found_kept_and_repeated(tmp_path: Path) -> None:
    start = ["-c", "from cognn.data.readers import files\n" + PLANTED]
    done = campaign(tmp_path, *start, words="--kinds csv --cases 6 --minutes 10")
    assert done.returncode == 1
    assert "csv: silently wrong: edges: 1 lost, 0 new without any change" in done.stdout
    kept = sorted((tmp_path / "failed").iterdir())
    assert "silently wrong: edges: 1 lost" in (kept[0] / "what.txt").read_text()
    assert (kept[0] / "nodes.csv").exists()
    again = campaign(tmp_path, *start, words=f"--case {kept[0].name}")
    assert "silently wrong: edges: 1 lost" in again.stdout
