"""Mutation testing: change the library in one place, and see if a test notices.  ``python -m tests.mutation --help``.

A mutant is one change of the syntax tree.  Every mutant is run in a forked process, in a copy of the tree, against the
tests of its module; the checkout is never changed.  The record is a file of JSON lines, so that a run can be resumed.
"""

import argparse
import ast
import copy
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MODULES: dict[str, tuple[str, str]] = {  # files of src/cognn, and what tests them
    "actions": ("nn/actions.py", "nn/test_spaces.py nn/test_actions.py nn/test_model_actions.py nn/test_heads.py"),
    "core": ("core/ops.py core/kernels.py core/graph.py core/straight_through.py core/relations.py", "core nn/layers"),
    "layers": ("nn/layers/*.py nn/hearing.py nn/layer_step.py", "nn/layers nn/test_layer_step.py nn/test_relations.py"),
    "splitting": (
        "data/splitting.py data/stratify.py",
        "data/test_splitting.py data/test_stratify.py data/readers/test_files.py data/readers/test_arrays.py",
    ),
    "scoring": (
        "train/metrics.py train/calibration.py train/conformal.py train/confusion.py train/threshold.py"
        " train/batcher.py run/evaluate.py",
        "train/test_metrics.py train/test_calibration.py train/test_conformal.py train/test_confusion.py"
        " train/test_batcher.py train/test_objective.py cli/test_metrics.py",
    ),
    "checkpoints": (
        "train/checkpoint.py files/tensors.py files/atomic.py",
        "files train/test_checkpoint.py run/test_resume.py",
    ),
    "statistics": ("statistics/*.py", "statistics"),
    "inference": ("inference/*.py nn/layerwise/*.py", "inference nn/test_neighbor_inference.py"),
}
BY_HAND = {  # mutants that were seen to survive once: module, file, text and what replaces it
    "edges are dropped while scoring": (
        "scoring",
        "train/batcher.py",
        "    for batch in batcher.all_batches():\n",
        "    for batch in (drop_edges(b, 0.3) for b in batcher.all_batches()):\n",
    ),
}
LOADED = "torch torch_geometric numpy polars scipy.stats safetensors.torch lightning_fabric tyro"
NO_SHRINKING = """
from hypothesis import Phase
settings.register_profile("mutation", settings.get_profile("cognn"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("mutation")
"""
ENOUGH = 8 << 30  # bytes of data of one mutant

_PAIRS = [(ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)]
_PAIRS += [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or)]
_SWAPPED: dict[type, type] = {one: other for a, b in _PAIRS for one, other in ((a, b), (b, a))}
_SWAPPED |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult}


class Mutant(NamedTuple):
    """One change of one file."""

    key: str
    """Stays the same while the line and its function do."""
    path: str
    line: int
    kind: str
    change: str
    text: str
    """The whole changed file."""


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The changed forms of a node, and what each kind of change is called."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in _SWAPPED:
        new.ops[0] = _SWAPPED[type(new.ops[0])]()
        yield "comparison", new
    elif isinstance(new, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(new.op) in _SWAPPED:
        new.op = _SWAPPED[type(new.op)]()
        yield ("boolean" if isinstance(new, ast.BoolOp) else "arithmetic"), new
    elif isinstance(new, ast.UnaryOp):
        yield ("boolean" if isinstance(new.op, ast.Not) else "arithmetic"), new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        yield "constant", ast.Constant(not new.value)
    elif isinstance(new, ast.Constant) and isinstance(new.value, (int, float)):
        yield "constant", ast.Constant(new.value + 1)
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
        yield "condition", new
    elif isinstance(new, ast.Call):
        if len(new.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in new.args[:2]):
            new.args[:2] = reversed(new.args[:2])
            yield "swapped arguments", new
        for i, keyword in enumerate(node.keywords):  # type: ignore[attr-defined]
            if keyword.arg in ("device", "strict", "encoding"):  # of no effect on a CPU, or where nothing is wrong
                continue
            fewer = copy.deepcopy(node)
            del fewer.keywords[i]  # type: ignore[attr-defined]
            yield f"dropped {keyword.arg}", fewer
    elif isinstance(new, ast.Return) and new.value is not None:
        yield "return value", ast.Return(ast.Constant(None))
    removable = isinstance(node, (ast.Raise, ast.AugAssign)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )
    stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript))
    if removable or stored:
        yield "removed statement", ast.Pass()


def places(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The nodes that decide what is computed, with the name of their function: no types, messages or log lines."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            log = isinstance(node, ast.Expr) and "log." in ast.unparse(node)
            types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            if log or types:
                continue
            inner = f"{function}.{node.name}" if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else function
            yield inner, node
            if not isinstance(node, ast.Raise):
                yield from places(node, inner)
            if isinstance(node, (ast.If, ast.While)):
                yield inner, node.test


def mutants(path: str, source: str) -> list[Mutant]:
    """All mutants of a file, in the order of its lines."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
    found, seen, tests = [], Counter[str](), set[int]()
    for function, node in places(ast.parse(source)):
        if not hasattr(node, "col_offset"):
            continue
        forms = list(variants(node))
        if id(node) in tests:  # the second visit of a condition
            forms = [("condition", ast.UnaryOp(ast.Not(), node))]
        tests.add(id(node)) if isinstance(node, ast.expr) else None
        first, last = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        before = b"".join(lines)[first:last].decode()
        for kind, new in forms:
            after = ast.unparse(ast.fix_missing_locations(new))
            after = f"({after})" if isinstance(node, ast.expr) else after
            change = f"{' '.join(before.split())[:90]}  ->  {after[:90]}"
            name = f"{path}{function}:{kind}:{change}"
            seen[name] += 1
            key = hashlib.sha1(f"{name}:{seen[name]}".encode()).hexdigest()[:10]
            text = (b"".join(lines)[:first] + after.encode() + b"".join(lines)[last:]).decode()
            found.append(Mutant(key, path, node.lineno, kind, change, text))
    return sorted(found, key=lambda mutant: mutant.line)


def chosen(module: str, sample: int, seed: int) -> list[Mutant]:
    """A sample of the mutants of a module, and those written by hand."""
    pool: list[Mutant] = []
    for pattern in MODULES[module][0].split():
        for path in sorted((ROOT / "src" / "cognn").glob(pattern)):
            pool += mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    some = random.Random(f"{seed} {module}").sample(pool, min(sample, len(pool)))
    for name, (home, file, before, after) in BY_HAND.items():
        path = ROOT / "src" / "cognn" / file
        if home == module:
            text = path.read_text(encoding="utf-8")
            assert before in text, f"{name}: its text is no longer in {file}"
            line = text[: text.index(before)].count("\n") + 1
            some.append(Mutant(name, str(path.relative_to(ROOT)), line, "by hand", name, text.replace(before, after)))
    return some


def in_turns(modules: list[str], sample: int, seed: int) -> list[tuple[str, Mutant]]:
    """The mutants of all modules, one of each at a time, so that a run that is stopped has some of every module."""
    turns = zip_longest(*([(module, mutant) for mutant in chosen(module, sample, seed)] for module in modules))
    return [one for turn in turns for one in turn if one is not None]


def run_tests(tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """``killed``, ``survived`` or ``timeout``, and the test that failed first; in a process of its own."""
    log = tree / "log.txt"
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (ENOUGH, ENOUGH))
            with log.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "cognn")]:
                del sys.modules[name]
            sys.path[:] = [str(tree / "src"), str(tree), *(p for p in sys.path if p not in ("", str(ROOT)))]
            os.environ |= {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tree / "tmp")}
            tempfile.tempdir = None
            sys.dont_write_bytecode = True
            os.chdir(tree)
            code = importlib.import_module("pytest").main(["-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])
            sys.stdout.flush()
            os._exit(int(code))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(99)
    end, status = time.monotonic() + limit, (0, 0)
    while status[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)
        status = os.waitpid(child, os.WNOHANG)
    if status[0] == 0:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timeout", ""
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAILED", "ERROR"))]
    code = os.waitstatus_to_exitcode(status[1])
    return ("survived" if code == 0 else "killed"), (failed[0].split(" - ")[0] if failed else f"exit {code}")


def copied_tree(folder: Path) -> Path:
    tree = folder / "tree"
    tree.mkdir()
    no_caches = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=no_caches)
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / "tmp").mkdir()
    with (tree / "tests" / "conftest.py").open("a") as file:
        file.write(NO_SHRINKING)
    return tree


def table(modules: list[str], done: dict[str, dict]) -> str:
    """The kill rate of every module, and the survivors."""
    rows, left = ["| module | mutants | killed | survived | kill rate |", "|---|---|---|---|---|"], []
    for module in modules:
        own = [line for line in done.values() if line["module"] == module]
        alive = [line for line in own if line["outcome"] == "survived"]
        rate = f"{1 - len(alive) / len(own):.0%}" if own else ""
        rows.append(f"| {module} | {len(own)} | {len(own) - len(alive)} | {len(alive)} | {rate} |")
        left += [f"{line['path']}:{line['line']}: {line['kind']}: {line['change']}" for line in alive]
    return "\n".join([*rows, "", *left])


def main(say: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(MODULES)}; by default all")
    parser.add_argument("--sample", type=int, default=30, help="mutants per module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, default=Path("mutation.jsonl"), help="continues where it ends")
    parser.add_argument("--survivors", action="store_true", help="test those again that survived")
    options = parser.parse_args()
    modules = options.modules or list(MODULES)
    done: dict[str, dict] = {}
    if options.record.exists():
        done = {line["key"]: line for line in map(json.loads, options.record.read_text().splitlines())}
    importlib.import_module("torch").set_num_threads(1)
    for name in LOADED.split():  # before the forks, so that no mutant waits for them
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        tree = copied_tree(Path(folder))
        limits: dict[str, float] = {}
        for module, mutant in in_turns(modules, options.sample, options.seed):
            tests = [f"tests/{path}" for path in MODULES[module][1].split()]
            before = done.get(mutant.key, {}).get("outcome")
            if before is not None and not (options.survivors and before == "survived"):
                continue
            if module not in limits:
                began = time.monotonic()
                outcome, test = run_tests(tree, tests, 1200)
                if outcome != "survived":
                    say((tree / "log.txt").read_text()[-3000:])
                    sys.exit(f"{module}: the tests must pass without a mutant ({outcome}: {test})")
                limits[module] = 20 + 4 * (time.monotonic() - began)
            target, began = tree / mutant.path, time.monotonic()
            whole = target.read_text(encoding="utf-8")
            target.write_text(mutant.text, encoding="utf-8")
            outcome, test = run_tests(tree, tests, limits[module])
            target.write_text(whole, encoding="utf-8")
            facts = mutant._asdict() | {"module": module, "outcome": outcome, "by": test}
            facts |= {"seconds": round(time.monotonic() - began, 1)}
            del facts["text"]
            done[mutant.key] = facts
            with options.record.open("a") as file:
                file.write(json.dumps(facts) + "\n")
            say(f"{outcome:9} {facts['seconds']:5.1f} s  {mutant.path}:{mutant.line}  {mutant.kind}: {mutant.change}")
    say("\n" + table(modules, done))


if __name__ == "__main__":
    main()
