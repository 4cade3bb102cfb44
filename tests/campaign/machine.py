"""Kills at random instants, full and read-only disks, files that may not grow, and commands as real processes."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaign import sound
from tests.campaign.case import REFUSED, RIGHT, Case, Told, Wrong, check
from tests.campaign.readers import copied
from tests.campaign.saved import same_scores

CLONE_NEWNS = 0x00020000
OUTPUTS: dict[str, tuple[tuple[str, ...], str]] = {  # commands that write to OUT, and what they must write
    "predict": (("predict", "run", "--out", "OUT"), "predictions.csv"),
    "store": (("predict", "run", "store", "--out", "OUT"), "from_store.csv"),
    "evaluate": (("evaluate", "run", "--out", "OUT"), ""),
    "train": (("train", *sound.TABLES, *sound.SMALL, "--epochs", "3", "--out", "OUT"), "run"),
    "build": (("data", "build", *sound.TABLES, "--quiet", "--out", "OUT"), "built"),
}
RESUMED = {"train": ("train", "--resume", "OUT", "--quiet")}


def in_child(words: tuple[str, ...], seconds: float | None = None, limit: int | None = None) -> Told | None:
    """Run a command in a fork, killed after some ``seconds``, or with a ``limit`` on the bytes of a file."""
    ends = os.pipe(), os.pipe()  # no files, to which the limit would apply
    child = os.fork()
    if child == 0:
        try:
            os.dup2(ends[0][1], 1)
            os.dup2(ends[1][1], 2)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
            from cognn.cli import main
            from cognn.train import loop

            loop.CHECKPOINT_SECONDS = 0.0  # so that many a kill falls into the writing of a state
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            code = main([*words])
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(70)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    texts = []
    for readable, writable in ends:
        os.close(writable)
        with os.fdopen(readable, errors="replace") as stream:
            texts.append(stream.read())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code < 0 else Told(code, *texts)


def kill(case: Case) -> str:
    """A command that is killed up to three times and then given again ends as if it had never been."""
    copied(case, "run", "store")
    kind = case.draw.choice(["train", "train", "predict", "store", "build"])
    words, expected = OUTPUTS[kind]
    out = Path("out" if kind in ("train", "build") else "out.csv")
    words = tuple(str(out) if word == "OUT" else word for word in words)
    again = tuple(str(out) if word == "OUT" else word for word in RESUMED.get(kind, words))
    kills = 1 + case.draw.randrange(3)
    for _ in range(kills):
        command = again if (out / "config.toml").exists() else words
        if out.exists() and kind == "build":
            break
        told = in_child(command, seconds=case.draw.random() * case.draw.choice([0.02, 0.1, 0.4]))
        case.said.append(f"killed: {' '.join(command)}" if told is None else f"ended: {told}")
        _whole(kind, out, "after a kill")
    if kind == "train":
        words = again if (out / "config.toml").exists() else words
    if not (kind == "build" and out.exists()):
        told = case.run(*words)
        if told.code:
            raise Wrong(f"lost: after a kill the command is refused: {told.err.strip()}")
    _compare(case, kind, out, expected)
    left = [path.name for path in Path().rglob(".*") if path.name != ".lock"]
    if left:
        raise Wrong(f"left behind: {left[0]} after a kill, and after the next command on it")
    return RIGHT


def _whole(kind: str, out: Path, when: str) -> None:
    """An output is there as a whole or not at all."""
    if (
        kind in ("predict", "store", "evaluate")
        and out.exists()
        and len(out.read_text().splitlines()) != sound.NODES + 1
    ):
        raise Wrong(f"half a file: {out} {when}")


def _compare(case: Case, kind: str, out: Path, expected: str) -> None:
    if kind == "train":
        good = sound.same(sound.end_of(out), sound.end_of(case.sound / expected))
    elif kind == "build":
        one, other = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in (out, case.sound / "store"))
        good = one == other
    elif kind == "evaluate":
        good = same_scores(out, case.sound / "scores.json")
    else:
        good = out.read_bytes() == (case.sound / expected).read_bytes()
    if not good:
        raise Wrong(f"silently wrong: {kind} differs from an undisturbed one")


_private = False


def private_mounts() -> None:
    """Give this process mounts of its own, which end with it, if it may mount at all."""
    global _private
    if os.geteuid() == 0 and shutil.which("mount") is not None and ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0:
        _private = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode == 0


def can_mount() -> bool:
    """Whether this process may mount a file system that no other sees."""
    return _private


@contextlib.contextmanager
def _disk(folder: Path, kilobytes: int) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "cognn-campaign", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def full_disk(case: Case) -> str:
    """A disk that fills: one line, the old file as it was, and the same command succeeds once there is room."""
    copied(case, "run", "store")
    kind = case.draw.choice(list(OUTPUTS))
    words, expected = OUTPUTS[kind]
    Path("disk").mkdir()
    out = Path("disk/out" if kind in ("train", "build") else "disk/out.csv")
    words = tuple(str(out) if word == "OUT" else word for word in words)
    size = int(2 ** case.draw.uniform(2, 8))  # kilobytes
    with contextlib.ExitStack() as stack:
        if can_mount():
            stack.enter_context(_disk(Path("disk"), size))
        old = b"old\n" if out.suffix and case.draw.random() < 0.7 else None
        if old:
            out.write_bytes(old)
        told = case.run(*words) if can_mount() else in_child(words, limit=size << 10)
        if told is None:
            raise Wrong("unexpected error: killed by a signal")
        check(told, words)
        if told.code == 0:
            _compare(case, kind, out, expected)
            return RIGHT
        if old and out.read_bytes() != old:
            raise Wrong(f"lost: the old {out} is not what it was")
        if not old and out.suffix and out.exists():
            raise Wrong(f"left behind: {out} of {kind} on a full disk")
        if can_mount():
            subprocess.run(["mount", "-o", "remount,size=8m", "disk"], check=True)
        again = RESUMED.get(kind, words) if out.is_dir() else words
        then = case.run(*(str(out) if word == "OUT" else word for word in again))
        if then.code:
            raise Wrong(f"lost: with room on the disk again the command is refused: {then.err.strip()}")
        _compare(case, kind, out, expected)
    return REFUSED


def read_only(case: Case) -> str:
    """A disk that cannot be written to: one line, and nothing changes."""
    copied(case, "run", "store", "half")
    kind = case.draw.choice([*OUTPUTS, "resume", "report"])
    Path("disk").mkdir()
    with contextlib.ExitStack() as stack:
        if can_mount():
            stack.enter_context(_disk(Path("disk"), 4096))
        shutil.copytree("half", "disk/half")
        shutil.copytree("run", "disk/run")
        Path("disk/old.csv").write_text("old\n")
        if can_mount():
            subprocess.run(["mount", "-o", "remount,ro", "disk"], check=True)
        else:
            os.chmod("disk", 0o555)
        out = (
            "disk/out"
            if kind in ("train", "build")
            else case.draw.choice(["disk/old.csv", "disk/new.csv", "disk/a/b.csv"])
        )
        words = {
            "resume": ("train", "--resume", "disk/half", "--quiet"),
            "report": ("report", "disk/run", "--samples", "0"),
        }.get(kind) or tuple(out if word == "OUT" else word for word in OUTPUTS[kind][0])
        try:
            told = case.run(*words)
            if told.code == 0 and os.access("disk", os.W_OK):
                raise Wrong("silently wrong: success on a disk that cannot be written to")
            if Path("disk/old.csv").read_text() != "old\n":
                raise Wrong("lost: the old file is not what it was")
        finally:
            if not can_mount():
                os.chmod("disk", 0o755)
    return REFUSED


def size_limit(case: Case) -> str:
    """A limit on the size of files, as ``ulimit -f`` sets it."""
    copied(case, "run", "store")
    kind = case.draw.choice(list(OUTPUTS))
    out = Path("out" if kind in ("train", "build") else "out.csv")
    words = tuple(str(out) if word == "OUT" else word for word in OUTPUTS[kind][0])
    told = in_child(words, limit=int(2 ** case.draw.uniform(4, 16)))
    case.said.append(f"limited: {words}: {told}")
    if told is None:
        raise Wrong("unexpected error: killed by a signal")
    check(told, words)
    if told.code == 0:
        _compare(case, kind, out, OUTPUTS[kind][1])
        return RIGHT
    if out.suffix and out.exists():
        raise Wrong(f"left behind: {out}")
    return REFUSED


def process(case: Case) -> str:
    """A command in an interpreter of its own, with its real standard output and exit code."""
    copied(case, "run")
    words: tuple[Callable[[], tuple[str, ...]], ...] = (
        lambda: ("predict", "run", "--out", "out.csv"),
        lambda: ("evaluate", "run"),
        lambda: ("predict", "nowhere"),
        lambda: ("data", "check", "edges.csv"),
    )
    command = case.draw.choice(words)()
    done = subprocess.run([sys.executable, "-m", "cognn", *command], capture_output=True, text=True, timeout=120)
    told = Told(done.returncode, done.stdout, done.stderr)
    case.said.append(str(told))
    check(told, command)
    if told.code and len(told.err.splitlines()) > 1:
        raise Wrong(f"not one line: {told.err}")
    if (
        command[:2] == ("predict", "run")
        and Path("out.csv").read_bytes() != (case.sound / "predictions.csv").read_bytes()
    ):
        raise Wrong("silently wrong: the predictions of another process")
    return REFUSED if told.code else RIGHT
