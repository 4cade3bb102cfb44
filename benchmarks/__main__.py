"""Run the benchmarks, each in a process of its own, and write what they printed to ``results/benchmarks.md``.

``python -m benchmarks`` runs all, ``python -m benchmarks epoch spmm`` the named ones; what the file holds of the others
stays, as long as it comes from the same machine and versions.
"""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from cognn.train.provenance import hardware, versions

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "results" / "benchmarks.md"
BENCHMARKS = (
    "epoch",
    "train_epoch",
    "enzymes",
    "base_ratio",
    "heads",
    "relations",
    "sparse_features",
    "peers",
    "scaling",
    "spmm",
    "roofline",
    "checkpointing",
    "checks_cost",
    "import_time",
    "read_parquet",
    "check_files",
    "report_page",
    "big_inference",
)


def machine() -> str:
    """The head of the report: where, and with what."""
    named = ", ".join(f"{name} {number}" for name, number in versions().items())
    threads = os.environ.get("OMP_NUM_THREADS", os.cpu_count())
    return (
        "# Benchmarks\n\n"
        "Written by `make bench`. Ratios are measured in one interleaved run, best of several.\n\n"
        f"- Machine: {hardware()}, {threads} threads\n"
        f"- Versions: {named}\n"
    )


def run(name: str) -> str | None:
    """Run one benchmark, print its lines as they come, and return its section; None if it failed."""
    print(f"== {name}", flush=True)
    command = [sys.executable, "-u", "-m", f"benchmarks.{name}"]
    lines = []
    start, ours, total = time.monotonic(), _used_by_children(), _used_by_all()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        print(f"{name}: ended with exit code {process.returncode}", file=sys.stderr)
        return None
    others = (_used_by_all() - total - _used_by_children() + ours) / (time.monotonic() - start)
    if others > 0.1:  # a core
        lines.append(f"NOISY: other processes kept {others:.1f} of {os.cpu_count()} cores busy meanwhile\n")
        print(lines[-1], end="", flush=True)
    return f"## {name}\n\n`python -m benchmarks.{name}`\n\n```text\n{''.join(lines)}```\n"


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _used_by_all() -> float:
    """CPU seconds that all processes of the machine have used; as many as our own where this is not known."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return _used_by_children()
    user, nice, system, _, _, irq, soft = map(int, stat.read_text().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def kept(head: str) -> dict[str, str]:
    """The sections of the report as it stands, if its head is the same."""
    text = REPORT.read_text() if REPORT.exists() else ""
    if not text.startswith(head):
        return {}
    sections = re.split(r"^(?=## )", text.removeprefix(head), flags=re.MULTILINE)[1:]
    return {section[3:].split("\n", 1)[0]: section.rstrip() + "\n" for section in sections}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"{unknown[0]}: no such benchmark; known are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    head, failed = machine(), False
    REPORT.parent.mkdir(exist_ok=True)
    for name in names or BENCHMARKS:
        section = run(name)
        if section is None:
            failed = True
            continue
        sections = kept(head) | {name: section}
        REPORT.write_text("\n".join([head, *(sections[name] for name in BENCHMARKS if name in sections)]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
