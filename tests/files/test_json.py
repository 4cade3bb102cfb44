"""JSON documents of a run say themselves if they are what was written."""

import json
import math
from pathlib import Path

import pytest

from cognn.errors import RunError
from cognn.files.json import read_json, sealed, unsealed, write_json

CONTENT = {"metric": "mae", "test": 0.25, "val": math.nan, "splits": [{"split": 0, "names": ["é", None]}], "n": 3}


def test_a_sealed_document_is_read_back_without_its_digest(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", sealed(CONTENT))
    found = read_json(tmp_path / "a.json")
    assert math.isnan(found.pop("val"))
    assert found == {key: value for key, value in CONTENT.items() if key != "val"}


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, sealed(CONTENT))
    whole, same = path.read_bytes(), json.loads(path.read_text())
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            read_json(path)
        except RunError:
            continue
        found = json.loads(damaged)
        # What is still read says the same, or has lost the name of its digest, as a document of version 0.1.
        assert found == same or "digest" not in found


def test_documents_of_version_0_1_have_no_digest() -> None:
    assert unsealed({"a": 1}) == {"a": 1}
    assert unsealed([1, 2]) == [1, 2]
    with pytest.raises(ValueError, match="its digest differs"):
        unsealed(sealed({"a": 1}) | {"a": 2})
