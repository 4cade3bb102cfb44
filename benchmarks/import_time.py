"""What cognn adds to a program that already imports torch and torch_geometric; best of fresh processes.

``import cognn`` alone loads nothing, names are found when they are first used; so the goal is held against
``from cognn import CoGNN``, which brings the model and all its layers.

    python -m benchmarks.import_time

Goal: at most 50 ms.
"""

import subprocess
import sys

from benchmarks.common import show

CODE = """
import time, torch, torch_geometric
start = time.perf_counter()
{statement}
print(1e3 * (time.perf_counter() - start))
"""


def milliseconds(statement: str, runs: int = 7) -> float:
    command = [sys.executable, "-c", CODE.format(statement=statement)]
    return min(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(runs))


def main() -> None:
    show("import cognn", milliseconds("import cognn"), " ms")
    show("from cognn import CoGNN", milliseconds("from cognn import CoGNN"), " ms", most=50)


if __name__ == "__main__":
    main()
