"""Runs cases in forked workers with a time limit, counts how they end, and keeps what failed, made small."""

import ctypes
import gc
import importlib
import os
import pickle
import random
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from tests.campaign import machine, options, readers, saved, slow, sound
from tests.campaign.case import Case, Wrong, isolated

LIMIT, MEMORY = 60.0, 8 << 30
"""Seconds of a case, ten times as many for one that takes minutes, and bytes that a worker may take."""
WARM = "cognn.run.predict cognn.run.evaluate cognn.run.predict_store cognn.run.build_store cognn.report.write"
"""Imported before the forks; Polars must not run before them, because its threads do not survive a fork."""
FORKS = "kill", "full-disk", "size-limit", "compiled", "two-processes"
"""Kinds that fork, and so need a worker of their own."""
KINDS: dict[str, tuple[float, Callable[[Case], str]]] = {  # how often, and what
    "csv": (15, readers.table(".csv")),
    "tsv": (6, readers.table(".tsv")),
    "json": (5, readers.table(".json")),
    "jsonl": (6, readers.table(".jsonl")),
    "parquet": (8, readers.table(".parquet")),
    "npz": (12, readers.npz),
    "graphml": (10, readers.graphml),
    "pyg": (8, readers.pyg),
    "new-graph": (4, readers.new_graph),
    "pairs": (4, readers.pairs),
    "recipe": (5, readers.recipe),
    "flip-run": (6, saved.flips("run")),
    "flip-store": (4, saved.flips("store")),
    "flip-train-store": (2, saved.flips("run_store")),
    "flip-resume": (3, saved.flips("half")),
    "flip-model": (3, saved.pretrained),
    "kill": (1, machine.kill),
    "full-disk": (1.5, machine.full_disk),
    "read-only": (1, machine.read_only),
    "size-limit": (1, machine.size_limit),
    "options": (4, options.training),
    "other-options": (0.7, options.other),
    "process": (0.05, machine.process),
    # These take minutes and are drawn only if they are named.
    "compiled": (0, slow.compiled),
    "two-processes": (0, slow.two_processes),
}
CONTROLS = [kind for kind in KINDS if kind.startswith("flip")]
CONTROLS += ["csv", "tsv", "json", "jsonl", "parquet", "npz", "graphml", "pyg", "new-graph", "pairs", "recipe"]
HELD = ("refused", "right", "accepted")


class Result(NamedTuple):
    """How a case ended."""

    kind: str
    number: int
    outcome: str
    """One of :data:`HELD`, or what is wrong."""
    said: str
    changes: int
    seconds: float


class Campaign:
    """A campaign in a temporary folder, with the undamaged files in it.

    Args:
        seed: Of all cases.
        out: Folder for the cases that fail.
        kinds: The kinds to draw.
    """

    def __init__(self, seed: int, out: Path, kinds: list[str]) -> None:
        self.seed, self.out, self.kinds = seed, out, kinds
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.failed: list[Result] = []
        self.seconds: dict[str, float] = defaultdict(float)

    def __enter__(self) -> Self:
        for name in WARM.split():
            importlib.import_module(name)
        self.folder = Path(tempfile.mkdtemp(prefix="cognn-campaign-")).resolve()
        self.sound = self.folder / "sound"
        self._in_fork(lambda: sound.make(self.sound))
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _in_fork(self, work: Callable[[], None]) -> None:
        child = os.fork()
        if child == 0:
            try:
                isolated(self.folder / "making")
                with open(os.devnull, "w") as null:
                    os.dup2(null.fileno(), 1)
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, "the undamaged files cannot be made"

    def go(self, seconds: float, cases: int | None = None) -> None:
        """Draw cases until the time or their number is over."""
        end, weights = time.monotonic() + seconds, [KINDS[kind][0] for kind in self.kinds]
        weights = weights if any(weights) else [1] * len(weights)
        rng, numbers = random.Random(self.seed), Counter[str]()
        plan: list[tuple[str, int]] = []
        done = 0
        while time.monotonic() < end and (cases is None or done < cases):
            left = 200 if cases is None else min(200, cases - done)
            while len(plan) < left:
                kind = rng.choices(self.kinds, weights)[0]
                plan.append((kind, numbers[kind]))
                numbers[kind] += 1
            finished = self._work(plan, end)
            for result in finished:
                self._count(result)
            done += len(finished)
            del plan[: len(finished)]

    def controls(self) -> None:
        """Every kind that changes a file, with no change: its answer must be right, or its oracle can tell nothing."""
        for kind in self.kinds:
            if kind in CONTROLS:
                (result,) = self._work([(kind, 0)], time.monotonic() + 10 * LIMIT, frozenset())
                if result.outcome != "right":
                    print(f"{kind}: {result.outcome} without any change\n{result.said}")
                    self.failed.append(result)

    def one(self, kind: str, number: int, only: frozenset[int] | None = None) -> str:
        """Run one case again and return what it said."""
        (result,) = self._work([(kind, number)], time.monotonic() + 10 * LIMIT, only)
        self._count(result, keep=False)
        return f"{result.said}\n{kind}-{number}: {result.outcome} ({result.seconds:.1f} s)"

    def _count(self, result: Result, keep: bool = True) -> None:
        self.seconds[result.kind] += result.seconds
        self.counts[result.kind]["tried"] += 1
        if result.outcome in HELD:
            self.counts[result.kind][result.outcome] += 1
            return
        self.counts[result.kind]["failed"] += 1
        self.failed.append(result)
        if keep:
            self._keep(result)

    def _keep(self, result: Result) -> None:
        """Keep the folder of a case that failed, with as few of its changes as fail in the same way."""
        cause, chosen = result.outcome.split(":")[0], frozenset(range(result.changes))
        for change in range(result.changes if result.changes > 1 else 0):
            fewer = self._work([(result.kind, result.number)], time.monotonic() + LIMIT, chosen - {change})
            if fewer and fewer[0].outcome.split(":")[0] == cause:
                result, chosen = fewer[0], chosen - {change}
        target = self.out / f"{result.kind}-{result.number}"
        shutil.rmtree(target, ignore_errors=True)
        self._work([(result.kind, result.number)], time.monotonic() + LIMIT, chosen, target)
        (target / "what.txt").write_text(f"{result.outcome}\nseed {self.seed}\n\n{result.said}", errors="replace")
        print(f"{result.kind}-{result.number}: {result.outcome}"[:300], flush=True)

    def _work(
        self, plan: list[tuple[str, int]], end: float, only: frozenset[int] | None = None, kept: Path | None = None
    ) -> list[Result]:
        """The results of the first cases of a plan, of one worker, until it ends, hangs or dies."""
        results, buffer = [], b""
        readable, writable = os.pipe()
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            os.close(readable)
            os.setsid()
            try:
                self._worker(plan, writable, end, only, kept)
            finally:
                os._exit(0)
        os.close(writable)
        try:
            while len(results) < len(plan):
                limit = LIMIT if KINDS[plan[len(results)][0]][0] else 10 * LIMIT
                ready = select.select([readable], [], [], max(0.0, began + limit - time.monotonic()))[0]
                chunk = os.read(readable, 1 << 16) if ready else b""
                buffer += chunk
                while len(buffer) >= 8 and len(buffer) >= 8 + (size := int.from_bytes(buffer[:8], "little")):
                    results.append(pickle.loads(buffer[8 : 8 + size]))
                    buffer, began = buffer[8 + size :], time.monotonic()
                if not chunk:
                    if not ready:
                        results.append(Result(*plan[len(results)], f"hang: over {limit:.0f} s", "", 0, limit))
                    break
        finally:
            os.close(readable)
            if len(results) < len(plan) or results[-1].outcome.startswith("hang"):
                with_children = os.getpgid(child) if child == os.getpgid(child) else None
                os.killpg(with_children, signal.SIGKILL) if with_children else os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        hung = bool(results) and results[-1].outcome.startswith("hang")
        if status and not hung and len(results) < len(plan) and time.monotonic() < end:
            results.append(Result(*plan[len(results)], f"died: exit {status}", "", 0, time.monotonic() - began))
        return results

    def _worker(
        self, plan: list[tuple[str, int]], pipe: int, end: float, only: frozenset[int] | None, kept: Path | None
    ) -> None:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with its parent, also in an endless loop
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        machine.private_mounts()
        for i, (kind, number) in enumerate(plan):
            if time.monotonic() > end or (i and kind in FORKS):
                break
            began = time.monotonic()
            folder = kept or self.folder / "case"
            shutil.rmtree(folder, ignore_errors=True)
            isolated(folder)
            case = Case(kind, number, self.seed, folder, self.sound, only)
            try:
                outcome = KINDS[kind][1](case)
            except Wrong as wrong:
                outcome = str(wrong)
            except BaseException:
                outcome = f"unexpected error: {traceback.format_exc().splitlines()[-1]}"
                case.said.append(traceback.format_exc())
            os.chdir("/")
            seconds = time.monotonic() - began
            content = pickle.dumps(Result(kind, number, outcome, "\n".join(case.said), case.changes, seconds))
            os.write(pipe, len(content).to_bytes(8, "little") + content)
            if number % 50 == 0:
                gc.collect()

    def table(self) -> str:
        """Counts of every kind."""
        lines = ["| kind | tried | refused | right | accepted | failed |", "|---|---|---|---|---|---|"]
        total: Counter[str] = Counter()
        for kind in KINDS:
            if kind in self.counts:
                total += self.counts[kind]
                lines.append(self._row(kind, self.counts[kind]))
        return "\n".join([*lines, self._row("all", total)])

    def _row(self, name: str, counts: Counter[str]) -> str:
        return f"| {name} | " + " | ".join(f"{counts[what]:,}" for what in ("tried", *HELD, "failed")) + " |"
