import polars as pl
import pytest

from cognn.data.tables import targets
from cognn.data.tables.table import Table
from cognn.errors import DataError


def test_more_classes_than_can_be_scored_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(targets, "MOST_CLASSES", 5)
    table = Table("n.csv", pl.DataFrame({"label": [f"c{i % 6}" for i in range(30)]}))
    with pytest.raises(DataError, match="has 6 classes, at most 5 can be learned"):
        targets.read_targets(table, ["label"], "node", "multiclass")
