"""Installs cognn as a user does, into an empty environment outside the tree, and uses it; part of every release.

    python tools/try_install.py                       # this interpreter
    python tools/try_install.py python3.12 python3.13 # others

For each interpreter and for both distributions: builds, installs with its dependencies, runs ``cognn demo``, trains,
evaluates and predicts, and prints how long the installation took and how large it is.  Downloads what pip has not
cached, with CUDA unless ``PIP_CONSTRAINT`` or the index says otherwise.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
USE = (
    "cognn --version",
    "cognn data list",
    "cognn demo --epochs 20 --trees 50",
    "cognn train root-neighbors --env mean --action sum --epochs 5 --out run --quiet",
    "cognn evaluate run",
    "cognn predict run --out predictions.csv --actions",
)


def run(*words: str | Path, cwd: Path) -> None:
    """Run a command that must succeed; its output is shown only if it does not."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    ran = subprocess.run(
        [*map(str, words)], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{ran.stdout}exit code {ran.returncode}")


def size(folder: Path) -> float:
    """Megabytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def try_install(python: str, distribution: Path, extras: str, folder: Path) -> str:
    """Install a distribution into an empty environment and use it; a line about it."""
    run(python, "-m", "venv", folder / "venv", cwd=folder)
    binaries, before = folder / "venv" / "bin", size(folder / "venv")
    target = f"{distribution}[{extras}]" if extras else distribution
    start = time.perf_counter()
    run(binaries / "python", "-m", "pip", "install", "--quiet", target, cwd=folder)
    seconds = time.perf_counter() - start
    megabytes = size(folder / "venv") - before
    for line in USE:
        name, *words = line.split()
        run(binaries / name, *words, cwd=folder)
    versions = "import sys, torch; print(sys.version.split()[0], 'torch', torch.__version__)"
    used = subprocess.check_output([binaries / "python", "-c", versions], cwd=folder, text=True).strip()
    return f"{distribution.name}: Python {used}: installed in {seconds:.0f} s, {megabytes:.0f} MB; works"


def main() -> None:
    """Try both distributions with every interpreter."""
    parser = argparse.ArgumentParser(description="Install cognn into empty environments and use it.")
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--extras", default="", help="extras to install, separated by commas")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        dist = Path(temporary)
        run(sys.executable, "-m", "hatchling", "build", "-d", dist, cwd=ROOT)
        for python in options.pythons:
            for distribution in (*dist.glob("*.whl"), *dist.glob("*.tar.gz")):
                with TemporaryDirectory() as folder:
                    print(try_install(python, distribution, options.extras, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
