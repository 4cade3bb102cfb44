"""The order inside ``cognn.data``: each part imports only from those before it."""

import pytest

from tests.test_architecture import EDGES

ORDER = (
    "readout",
    "linked_pairs",
    "dataset",
    "hidden_test",
    "tables",
    "stratify",
    "splitting",
    "assemble",
    "degrees",
    "published",
    "catalogue",
)
ORDER += ("sampling", "links", "readers", "synthetic", "store", "noise", "load", "defaults", "check")


@pytest.mark.parametrize("name", [name for name in EDGES if name.startswith("data.")])
def test_a_part_of_data_imports_only_from_parts_before_it(name) -> None:
    part = ORDER.index(name.split(".")[1])
    targets = [target for target in EDGES[name] if target.startswith("data.")]
    later = [target for target in targets if ORDER.index(target.split(".")[1]) > part]
    assert not later, f"cognn.{name} imports from later parts: {sorted(later)}"
