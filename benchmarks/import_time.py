"""What ``import cognn`` adds to a program that already imports torch and torch_geometric; best of fresh processes.

    python -m benchmarks.import_time

Goal: at most 50 ms.
"""

import subprocess
import sys

from benchmarks.common import show

CODE = """
import time, torch, torch_geometric
start = time.perf_counter()
import cognn
print(1e3 * (time.perf_counter() - start))
"""


def main() -> None:
    runs = [subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True) for _ in range(7)]
    show("import cognn adds", min(float(run.stdout) for run in runs), " ms", most=50)


if __name__ == "__main__":
    main()
