"""What users install: the wheel and the source distribution, built and run outside the tree.

The dependencies are those of the tests' environment; ``tools/try_install.py`` installs into an empty one.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from filelock import FileLock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
EXTRAS = (
    "captum",
    "lightgbm",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "optuna",
    "pandas",
    "plotly",
    "pymetis",
    "rdflib",
    "rdkit",
    "sklearn",
    "tensorboard",
)
WITHOUT_EXTRAS = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS})); from cognn.cli.main import main; "


def command(*words: str | Path, cwd: Path, path: Path | None = None) -> str:
    """What a command prints; it finds cognn in the folder ``path``, or not at all."""
    env = os.environ | {"PYTHONPATH": str(path or "")}
    ran = subprocess.run([*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="session")
def dist(session_folder: Path) -> Path:
    """The folder of both distributions; workers of one test session share it."""
    folder = session_folder / "cognn-dist"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            command(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def installed(dist: Path, session_folder: Path) -> Path:
    """A folder into which the wheel is installed."""
    folder = session_folder / "cognn-installed"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            (wheel,) = dist.glob("*.whl")
            install = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
            command(*install, "--target", folder, wheel, cwd=dist)
    return folder


def test_the_source_distribution_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    command(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    first, second = (next(folder.glob("*.whl")) for folder in (dist, tmp_path))
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        assert {i.filename: i.CRC for i in one.infolist()} == {i.filename: i.CRC for i in other.infolist()}


def test_the_wheel_has_every_file_of_the_package(installed: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "src/cognn"], cwd=ROOT, capture_output=True, text=True, check=True)
    missing = [line for line in tracked.stdout.split() if not (installed / line.removeprefix("src/")).exists()]
    assert tracked.stdout
    assert not missing


def test_the_installed_command_shows_the_demo(installed: Path, tmp_path: Path) -> None:
    where = command(sys.executable, "-c", "import cognn; print(cognn.__file__)", cwd=tmp_path, path=installed)
    assert Path(where.strip()) == installed / "cognn" / "__init__.py"
    shown = command(installed / "bin" / "cognn", "demo", "--epochs", "2", "--trees", "20", cwd=tmp_path, path=installed)
    assert "what is left of it" in shown


def test_extras_are_not_needed_to_train_and_predict(installed: Path, tmp_path: Path) -> None:
    code = WITHOUT_EXTRAS + (
        "assert main('train cycles --epochs 2 --hidden-channels 8 --out run --quiet'.split()) == 0; "
        "assert main('evaluate run'.split()) == 0; "
        "assert main('predict run --out predictions.csv'.split()) == 0"
    )
    assert "cycles" in command(sys.executable, "-c", code, cwd=tmp_path, path=installed)
    assert (tmp_path / "predictions.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("report run", "the report needs plotly, which is not installed; pip install 'cognn[report]'"),
        ("reproduce cycles", "cognn reproduce cycles needs matplotlib, which is not installed; pip install 'cogn"),
        ("tune cycles", "tune needs optuna, which is not installed; pip install 'cognn[tune]'"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(words: str, message: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + f"raise SystemExit(main({words.split()}))"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"cognn: {message}")
    assert ran.stderr.count("\n") == 1


def _required(found: Distribution) -> set[str]:
    plain = [Requirement(line) for line in found.requires or []]
    return {canonicalize_name(r.name) for r in plain if r.marker is None or r.marker.evaluate({"extra": ""})}


def test_the_main_install_has_no_library_that_only_an_extra_needs(installed: Path) -> None:
    (wheel,) = Distribution.discover(name="cognn", path=[str(installed)])
    names, seen = _required(wheel), set[str]()
    assert "torch" in names
    while names - seen:
        name = (names - seen).pop()
        seen.add(name)
        names |= _required(distribution(name))
    distributions = set(EXTRAS) - {"sklearn"} | {"scikit-learn"}
    assert not distributions & seen
