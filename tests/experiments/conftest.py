"""The mirror of published data, as the tests of the data have it, and experiments run as a user runs them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cognn.cli.main import main
from tests.data.conftest import mirror

__all__ = ["Reproduce", "mirror", "reproduce"]

Reproduce = Callable[..., dict[str, Any]]


@pytest.fixture
def reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reproduce:
    """``cognn reproduce NAME --budget smoke``; the record, after a look at the table and the figures beside it."""
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "cache"))

    def run(name: str, *options: str) -> dict[str, Any]:
        out = tmp_path / "results"
        command = [
            "reproduce",
            name,
            "--budget",
            "smoke",
            "--out",
            str(out),
            "--work",
            str(tmp_path / "runs"),
            "--quiet",
        ]
        assert main([*command, *options]) == 0
        record: dict[str, Any] = json.loads((out / f"{name}-smoke.json").read_text())
        page = (out / f"{name}-smoke.md").read_text()
        assert all(f"## {title}" in page for title in record["facts"])
        assert record["figures"]
        for figure in record["figures"]:
            assert f"figures/{figure}.svg" in page
            assert all((out / "figures" / f"{figure}.{kind}").stat().st_size > 1000 for kind in ("svg", "png"))
        assert not list(tmp_path.rglob("*:*"))  # which is no name of a file on Windows
        return record

    return run
