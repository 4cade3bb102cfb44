"""What the user's data were taken as, for ``data check`` and the first lines of ``train``."""

from torch import Tensor

from cognn.core.sparse_features import is_sparse
from cognn.data.check.counts import describe_counts, part_counts, rare_classes, scarce_classes
from cognn.data.check.findings import NO_EDGES
from cognn.data.dataset import Dataset, Task, known_items
from cognn.data.degrees import NAMES
from cognn.data.tables.columns import Column
from cognn.data.tables.looks import doubts, name_some, named_like_id
from cognn.data.tables.scale import Scale
from cognn.data.tables.schema import Schema

NO_FEATURES = (
    "no features: every node gets a constant 1, so only edges can tell nodes apart; --encoding degree adds the degrees"
)


def describe_columns(columns: list[Column]) -> str:
    """How the feature columns of a table are used."""
    flags = [column.name for column in columns if column.looks == "flag"]
    amounts = [c for c in columns if c.kind == "numeric" and c.looks != "flag"]
    scaled = [column.name for column in amounts if (column.mean, column.std) != (0.0, 1.0)]
    plain = [column.name for column in amounts if (column.mean, column.std) == (0.0, 1.0)]
    words = [f"{column.name}: {len(column.values)}" for column in columns if column.kind == "category"]
    lists = [f"{column.name}: {len(column.values):,}" for column in columns if column.kind == "multihot"]
    groups = {"standardised": scaled, "as they are": plain, "of 0 and 1": flags, "one-hot": words, "multi-hot": lists}
    return ", ".join(f"{len(names)} {how} ({name_some(names)})" for how, names in groups.items() if names) or "none"


def describe_matrix(width: int, scale: Scale | None) -> str:
    """How the features of an array are used."""
    scaled = 0 if scale is None else scale.count()
    groups = {"standardised": scaled, "of 0 and 1" if scale is not None else "as they are": width - scaled}
    return ", ".join(f"{count:,} {how}" for how, count in groups.items() if count) or "none"


def doubtful_columns(nodes: list[Column], edges: list[Column]) -> list[str]:
    """A line for columns that look like ids, and one for those that look like codes."""
    columns = [*nodes, *edges]
    ids = [column.name for column in columns if column.looks == "id" or named_like_id(column.name)]
    codes = [column.name for column in columns if column.looks == "codes" and column.name not in ids]
    outliers = [column.name for column in columns if column.looks == "outlier"]
    unique = [list(dict.fromkeys(names)) for names in (ids, codes, outliers)]
    return doubts(unique[0], unique[1], outliers=unique[2])


def describe_target(task: Task, y: Tensor, names: list[str], targets: list[str]) -> str:
    """The target, what kind of task it is, and its score."""
    what = f"{name_some(targets)}, " if targets else ""
    count = f" of {len(names)} classes" if task.kind == "multiclass" else ""
    known = f"{len(known_items(y)):,} of {len(y):,} {task.readout.items} labelled"
    return f"{what}{task.kind}{count}, scored by {task.metric}; {known}"


def first_lines(dataset: Dataset) -> tuple[dict[str, str], list[str]]:
    """What the user's own data were taken as, and warnings, before a training; nothing for a known dataset."""
    schema, task, names = dataset.schema, dataset.task, dataset.class_names or []
    if not isinstance(schema, Schema) or not dataset.splits:
        return {}, []
    counts = [part_counts(dataset.y, task, names, split) for split in dataset.splits]
    sizes = "/".join(f"{len(dataset.labelled(part)):,}" for part in vars(dataset.splits[0]).values())
    several = f" in the first of {len(dataset.splits)} splits" if len(dataset.splits) > 1 else ""
    bare = not schema.nodes and schema.node_scale is None and not is_sparse(dataset.x)
    bare = bare and bool((dataset.x[:, : schema.num_features] == 1).all())
    if schema.source == "tables":
        features = describe_columns(schema.nodes)
    else:
        features = "none" if bare else describe_matrix(schema.num_features, schema.node_scale)
        features += ", sparse" if is_sparse(dataset.x) else ""
    features += f", {' and '.join(NAMES)}" if schema.degrees else ""
    items = f"{sizes} {task.readout.items}{several}"
    lines = {
        "features": features,
        "target": describe_target(task, dataset.y, names, schema.targets),
        "train/val/test": "; ".join(filter(None, [items, describe_counts(counts[0])])),
    }
    warnings = [NO_FEATURES] if bare and not schema.degrees else []
    warnings += [] if dataset.num_edges else [NO_EDGES]
    warnings += doubtful_columns(schema.nodes, schema.edges) + dataset.remarks
    return lines, [*warnings, *filter(None, [rare_classes(dataset.y, task, names), scarce_classes(counts)])]
