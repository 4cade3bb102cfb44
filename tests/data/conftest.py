"""A cache of its own for every test, and the mirror of published files where there is one."""

import os
from pathlib import Path

import pytest

FOUND = Path(os.environ.get("COGNN_MIRROR") or Path(__file__).parents[3] / "shared" / "data").absolute()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing a test does may touch, or profit from, the developer's own cache."""
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COGNN_MIRROR", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Path:
    if not FOUND.is_dir():
        pytest.skip(f"no mirror of published data at {FOUND}; set COGNN_MIRROR")
    monkeypatch.setenv("COGNN_MIRROR", str(FOUND))
    return FOUND


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test goes to the network, whether there is one or not."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("torch_geometric.io.fs.cp", refuse)
