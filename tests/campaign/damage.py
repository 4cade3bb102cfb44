"""Changes to files: of bytes, of lines and cells, of tables, and of single bits."""

import io
import random
from typing import Any

import numpy as np

from tests.data.hostile import CELLS, NAMES

KEYS = ["x", "y", "edge_index", "edge_attr", "edge_type", "edge_weight", "batch", "train_mask", "val_mask", "extra"]
TYPES = ["<f4", ">f8", "f2", "i1", "<i8", "u8", "?", "U3", "S2", "c8", "M8[s]"]


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Bytes changed, cut out, put in, repeated or cut off, or one bit flipped."""
    data, place = bytearray(content), rng.randrange(len(content) + 1) if content else 0
    kind = rng.choice(["set", "flip", "flip", "cut", "insert", "end", "repeat", "zero"])
    if kind == "set" and place < len(data):
        data[place] = rng.choice([rng.randrange(32, 127), rng.randrange(256)])
    elif kind == "flip" and place < len(data):
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[place : place + rng.randrange(1, 30)]
    elif kind == "insert":
        data[place:place] = rng.randbytes(rng.randrange(1, 9))
    elif kind == "end":
        del data[place:]
    elif kind == "repeat":
        data[place:place] = data[max(0, place - rng.randrange(1, 80)) : place]
    elif kind == "zero":
        data[place : place + 8] = bytes(len(data[place : place + 8]))
    return bytes(data)


def flipped(rng: random.Random, content: bytes) -> bytes:
    """One bit flipped."""
    data = bytearray(content)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def damaged_text(rng: random.Random, content: bytes) -> bytes:
    """Lines moved, lost or repeated, line ends, marks and encodings changed, or bytes damaged."""
    kind = rng.choice(
        ["lines", "lines", "ends", "mark", "encoding", "digit", "digit", "bytes", "bytes", "cell", "cell"]
    )
    lines = content.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == "lines":
        what = rng.choice(["swap", "drop", "repeat", "blank", "half"])
        if what == "swap":
            lines[a], lines[b] = lines[b], lines[a]
        elif what == "drop":
            del lines[a]
        elif what == "repeat":
            lines.insert(b, lines[a])
        elif what == "blank":
            lines.insert(a, b"")
        else:
            lines[a] = lines[a][: len(lines[a]) // 2]
        return b"\n".join(lines)
    if kind == "ends":
        return content.replace(b"\n", rng.choice([b"\r\n", b"\n\n", b"\r"]))
    if kind == "mark":
        return rng.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"#", b" ", b"\n"]) + content
    if kind == "encoding":
        return content.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-8-sig", "cp037"]), "replace")
    if kind == "digit":
        digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
        place = rng.choice(digits or [0])
        return content[:place] + str(rng.randrange(10)).encode() + content[place + 1 :]
    if kind == "cell":
        separators = [mark for mark in (b",", b"\t", b'"', b">", b"=") if mark in lines[a]]
        cells = lines[a].split(rng.choice(separators)) if separators else [lines[a]]
        mark = next((m for m in separators if len(lines[a].split(m)) == len(cells)), b",")
        cells[rng.randrange(len(cells))] = rng.choice(CELLS).encode("utf-8", "replace")
        lines[a] = mark.join(cells)
        return b"\n".join(lines)
    return damaged_bytes(rng, content)


def damaged_rows(rng: random.Random, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells, rows and columns of a table changed."""
    rows = [dict(row) for row in rows]
    if not rows or not rows[0]:
        return rows
    names = list(rows[0])
    name, row = rng.choice(names), rng.randrange(len(rows))
    kind = rng.choice(["cell", "cell", "cell", "column", "rename", "new", "drop", "repeat", "shuffle", "order", "rows"])
    if kind == "cell":
        rows[row][name] = rng.choice([*CELLS, None, 1e39, -1, 0, True, float("nan"), float("inf"), 2**63 - 1])
    elif kind == "column":
        value = rng.choice([None, 0, 1.5, "x", True])
        rows = [r | {name: value} for r in rows]
    elif kind == "rename":
        new = rng.choice([*NAMES, name.upper(), f" {name}", "x" * 300])
        rows = [{new if key == name else key: value for key, value in r.items()} for r in rows]
    elif kind == "new":
        new = rng.choice([*NAMES, "when"])
        rows = [r | {new: rng.choice([i, i / 3, "ab"[i % 2], f"w{i}"])} for i, r in enumerate(rows)]
    elif kind == "drop":
        rows = [{key: value for key, value in r.items() if key != name} for r in rows]
    elif kind == "repeat":
        rows.append(dict(rows[row]))
    elif kind == "shuffle":
        rng.shuffle(rows)
    elif kind == "order":
        rng.shuffle(names)
        rows = [{key: r[key] for key in names if key in r} for r in rows]
    else:
        rows = rows[: rng.randrange(len(rows))]
    return rows


def damaged_arrays(rng: random.Random, members: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Members changed, renamed, lost, of another type or shape."""
    members = dict(members)
    key = rng.choice(list(members))
    kind = rng.choice(["value", "value", "type", "shape", "drop", "rename", "new", "fill"])
    array = members[key].copy()
    if kind == "value" and array.size:
        flat = array.reshape(-1)
        worst = [0, 1] if array.dtype.kind == "b" else [0, -1, 3, 99, 127]
        worst += [np.nan, np.inf, 1e39] if array.dtype.kind == "f" else []
        with np.errstate(over="ignore"):
            flat[rng.randrange(flat.size)] = rng.choice(worst)
        members[key] = flat.reshape(array.shape)
    elif kind == "type":
        with np.errstate(all="ignore"):
            members[key] = _cast(array, rng.choice(TYPES))
    elif kind == "shape":
        members[key] = rng.choice([array[:-1], array.reshape(-1), array[None], array[:0], array.T])
    elif kind == "drop":
        del members[key]
    elif kind == "rename":
        members[rng.choice([*KEYS, "X", "features", "edges", "label"])] = members.pop(key)
    elif kind == "new":
        members[rng.choice(KEYS)] = np.full(rng.choice([(24,), (60,), (24, 2), (2, 60)]), rng.choice([0, 1, 2]))
    else:
        members[key] = np.zeros_like(array)
    return members or {"x": array}


def _cast(array: np.ndarray, kind: str) -> np.ndarray:
    try:
        return array.astype(kind)
    except (TypeError, ValueError):
        return array


def packed(members: dict[str, np.ndarray], compress: bool) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(stream, **members)
    return stream.getvalue()
