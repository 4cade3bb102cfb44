import os

import numpy as np
import pytest

from cognn.files.array_cache import read_cache, write_cache


def test_round_trip_under_one_stamp(tmp_path, caplog):
    path = tmp_path / "deep" / "kept.npz"
    assert read_cache(path, "a") is None
    write_cache(path, "a", {"x": np.arange(3)})
    assert read_cache(path, "a")["x"].tolist() == [0, 1, 2]
    assert read_cache(path, "b") is None
    assert os.listdir(path.parent) == ["kept.npz"]
    assert caplog.records == []


@pytest.mark.parametrize("keep", [0, 40, -30])
def test_a_damaged_file_counts_as_none(tmp_path, caplog, keep):
    path = tmp_path / "kept.npz"
    write_cache(path, "a", {"x": np.arange(100)})
    path.write_bytes(path.read_bytes()[:keep])
    assert read_cache(path, "a") is None
    assert "damaged" in caplog.text


def test_a_pickle_is_not_run(tmp_path):
    path, ran = tmp_path / "kept.npz", tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    np.savez(path, stamp=np.array("a"), x=np.array([Evil()], dtype=object))
    assert read_cache(path, "a") is None
    assert not ran.exists()


def test_a_disk_that_takes_no_more_does_not_end_the_run(tmp_path, caplog, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    write_cache(tmp_path / "kept.npz", "a", {"x": np.arange(3)})
    assert "No space left" in caplog.text
    assert os.listdir(tmp_path) == []
