"""The order of the rooms: each imports only from those before it, and no modules import each other in a cycle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import cognn

ROOT = Path(cognn.__file__).parent
ROOMS = (
    "errors",
    "files",
    "config",
    "statistics",
    "core",
    "nn",
    "baselines",
    "data",
    "inference",
    "parallel",
    "train",
    "run",
    "export",
    "tune",
    "report",
    "comparison",
    "experiments",
    "demo",
    "cli",
    "__main__",
)


def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed, by its dotted name without ``cognn.``."""
    paths = {path: path.relative_to(ROOT).with_suffix("") for path in ROOT.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): ast.parse(path.read_text()) for path, name in paths.items()}


def imports(tree: ast.Module, known: set[str]) -> set[str]:
    """The modules of the package that a module imports, inside functions and for type checkers too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cognn":
            home = (node.module or "").removeprefix("cognn").removeprefix(".")
            for alias in node.names:
                inner = f"{home}.{alias.name}".lstrip(".")
                found.add(inner if inner in known else home)
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("cognn.") for a in node.names if a.name.startswith("cognn.")}
    return found - {""}


MODULES = modules()
EDGES = {name: imports(tree, set(MODULES)) for name, tree in MODULES.items() if name != "__init__"}


@pytest.mark.parametrize("name", EDGES)
def test_a_room_imports_only_from_rooms_before_it(name) -> None:
    room = ROOMS.index(name.split(".")[0])
    later = {target for target in EDGES[name] if ROOMS.index(target.split(".")[0]) > room}
    assert not later, f"cognn.{name} imports from later rooms: {sorted(later)}"


def test_no_modules_import_each_other_in_a_cycle() -> None:
    try:
        TopologicalSorter(EDGES).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_no_folder_is_crowded_and_every_room_says_what_it_is_for() -> None:
    for folder in {path.parent for path in ROOT.rglob("*.py")}:
        assert len(list(folder.glob("*.py"))) <= 14, f"{folder.name}: more than about a dozen modules"
        words = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        assert len(words.split()) >= 10, f"{folder.name}/__init__.py: say what the room is for, and where to start"
