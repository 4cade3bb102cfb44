"""``cognn``: finds the command in one table, runs it and turns its errors into one line and an exit code."""

import logging
import os
import platform
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from cognn import __version__
from cognn.cli.arguments import Command, command_list, completion, did_you_mean
from cognn.cli.compare import compare
from cognn.cli.data import COMMANDS as DATA_COMMANDS
from cognn.cli.data import data
from cognn.cli.demo import Demo, demo
from cognn.cli.evaluate import Evaluate, evaluate
from cognn.cli.export import Export, export
from cognn.cli.predict import Predict, predict
from cognn.cli.report import Report, report
from cognn.cli.reproduce import reproduce
from cognn.cli.train import Train, train
from cognn.cli.tune import tune
from cognn.config.compare_options import CompareOptions
from cognn.config.tune_options import TuneOptions
from cognn.errors import ConfigError, Interrupted, explain, one_line
from cognn.experiments.reproduce import Reproduce

COMMANDS = {
    "demo": Command("", "two minutes: three models, and what nodes decide", Demo, demo),
    "train": Command("[DATASET]", "train on a known dataset or on your own files", Train, train),
    "evaluate": Command("RUN", "score the models of a finished run", Evaluate, evaluate),
    "predict": Command("RUN [GRAPH]", "predict with a finished run, also on a new graph", Predict, predict),
    "export": Command("RUN", "write a model as a program without cognn", Export, export),
    "report": Command("RUN", "show on an HTML page what the nodes decided", Report, report),
    "tune": Command("[DATASET]", "search for good options by validation score", TuneOptions, tune),
    "compare": Command("[DATASET]", "does cooperation help on this graph?", CompareOptions, compare),
    "data": Command("COMMAND", "list, check and convert datasets", DATA_COMMANDS, data),
    "reproduce": Command("[NAME]", "run an experiment of the paper", Reproduce, reproduce),
}
SHELLS = "bash", "zsh", "fish"

HELP = f"""usage: cognn COMMAND [OPTIONS]

Cooperative graph neural networks: train them, and see what the nodes decide.

{command_list("cognn", COMMANDS)}
  cognn COMMAND --help         list the options of a command
  cognn --print-completion SH  print the completion script for {", ".join(SHELLS[:-1])} or {SHELLS[-1]}
  cognn --version              print the version
  --debug                      after any command: show the traceback of an error

Exit codes: 0 success, 1 the folder of a run was deleted while it was trained,
2 an error that the message explains, 70 a bug in cognn (its traceback is
saved), 130 interrupted by Ctrl-C.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest is dropped silently
        return 128 + signal.SIGPIPE


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        with _logging(quiet="--quiet" in arguments):
            return _dispatch(*arguments)
    except (KeyboardInterrupt, Interrupted):
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _reader_is_gone():
            raise
        if debug:
            traceback.print_exc()
        message = explain(error)
        print(f"cognn: {message or _bug(error)}", file=sys.stderr)
        return os.EX_SOFTWARE if message is None else getattr(error, "exit_code", 2)


def _dispatch(name: str = "--help", *arguments: str) -> int:
    if name in ("-h", "--help"):
        print(HELP, end="")
    elif name == "--version":
        print(f"cognn {__version__}")
    elif name == "--print-completion":
        if arguments[:1] not in [(shell,) for shell in SHELLS]:
            got = repr(arguments[0]) if arguments else "nothing"
            raise ConfigError(f"print-completion: expected {', '.join(SHELLS[:-1])} or {SHELLS[-1]}, got {got}")
        print(completion(arguments[0], "cognn", COMMANDS), end="")
    elif name in COMMANDS:
        return COMMANDS[name].run(list(arguments))
    else:
        hint = did_you_mean(name, COMMANDS) or f"known are {', '.join(COMMANDS)}"
        raise ConfigError(f"unknown command {name!r}; {hint}")
    return 0


def _bug(error: Exception) -> str:
    """Save the traceback of an unexpected exception, and say where."""
    text = "".join(traceback.format_exception(error))
    text = f"cognn {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n{text}"
    line = f"this is a bug in cognn ({one_line(error)})"
    try:
        handle, path = tempfile.mkstemp(prefix="cognn-bug-", suffix=".txt", text=True)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        return f"{line}; its traceback cannot be saved ({problem}), but --debug shows it"
    return f"{line}; its traceback is in {path}"


@contextmanager
def _logging(quiet: bool) -> Iterator[None]:
    """Show the library's log on standard error: warnings, and unless ``quiet`` notices of what takes long."""
    log, handler = logging.getLogger("cognn"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("cognn: %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _reader_is_gone() -> bool:
    """Whether the broken pipe is standard output, and not a pipe to a worker."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
