import os
from pathlib import Path

import pytest

from cognn.data.published import raw_files as sources
from cognn.errors import DataError


def make_mirror(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    raw = folder / "mirror" / "tu" / "TOY" / "raw"
    raw.mkdir(parents=True)
    (raw / "TOY_A.txt").write_text("1, 2\n")
    (raw.parent / "processed").mkdir()
    (raw.parent / "processed" / "data.pt").write_text("a pickle from elsewhere")
    monkeypatch.setenv("COGNN_MIRROR", str(folder / "mirror"))
    return raw


def test_cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "mine"))
    assert sources.cache_root() == tmp_path / "mine"
    monkeypatch.delenv("COGNN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert sources.cache_root() == tmp_path / "xdg" / "cognn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sources.cache_root() == tmp_path / ".cache" / "cognn"


def test_raw_files_are_copied_once_and_pickles_are_not(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = make_mirror(tmp_path, monkeypatch)
    assert sources.in_mirror("tu", "TOY")
    assert not sources.in_cache("tu", "TOY")
    root = sources.raw_root("tu", "TOY")
    assert root == cache / "tu"
    copied = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    assert copied == [Path("TOY/raw/TOY_A.txt")]
    assert sources.in_cache("tu", "TOY")
    (raw / "TOY_A.txt").write_text("changed later")
    sources.raw_root("tu", "TOY")
    assert (root / "TOY/raw/TOY_A.txt").read_text() == "1, 2\n"


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_mirror(tmp_path, monkeypatch)

    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", full)
        with pytest.raises(DataError, match=r"No space left.*set COGNN_CACHE"):
            sources.raw_root("tu", "TOY")
    assert not [path for path in cache.rglob("*") if path.is_file()]
    assert (sources.raw_root("tu", "TOY") / "TOY/raw/TOY_A.txt").read_text() == "1, 2\n"


def test_without_a_mirror_the_root_is_empty(cache: Path) -> None:
    assert not sources.in_mirror("tu", "TOY")
    assert not list((sources.raw_root("tu", "TOY") / "TOY").iterdir())


def test_a_mirror_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGNN_MIRROR", str(tmp_path / "typo"))
    with pytest.raises(DataError, match=r"COGNN_MIRROR: .*typo is not a folder"):
        sources.raw_root("tu", "TOY")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cannot cache datasets here .*set COGNN_CACHE"):
        sources.raw_root("tu", "TOY")


def test_a_failed_download_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError) as caught, sources.download_errors("tu", "IMDB-BINARY"):
        raise OSError("no route\nto host")
    said = str(caught.value)
    assert said.startswith("dataset imdb-binary: ")
    assert "set COGNN_MIRROR to a folder that has its raw files in tu/IMDB-BINARY/" in said
    assert "\n" not in said
    make_mirror(tmp_path, monkeypatch)
    with (
        pytest.raises(DataError, match="does not have all of tu/IMDB-BINARY/ either"),
        sources.download_errors("tu", "IMDB-BINARY"),
    ):
        raise OSError
    with pytest.raises(DataError, match=r"^as it is$"), sources.download_errors("tu", "IMDB-BINARY"):
        raise DataError("as it is")
