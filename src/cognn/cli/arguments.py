"""From the words of a command line to options; without torch."""

import io
import re
from contextlib import redirect_stderr
from itertools import pairwise
from typing import Any

import tyro

from cognn.errors import ConfigError


def parse(kind: Any, arguments: list[str], prog: str, default: Any = None) -> Any:
    """The options in ``arguments`` as a dataclass; what does not fit is one line, where tyro would draw a box."""
    # `--directed` and `--undirected` read better than `--directed True`.
    words = list(arguments)
    for i, word in enumerate(words):
        if word == "--undirected":
            words[i : i + 1] = ["--directed", "False"]
        elif word == "--directed" and words[i + 1 : i + 2] not in (["True"], ["False"]):
            words[i : i + 1] = ["--directed", "True"]
    options = {} if default is None else {"default": default}
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            return tyro.cli(kind, args=words, prog=prog, config=(tyro.conf.OmitArgPrefixes,), **options)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ConfigError(_one_line(told.getvalue(), prog)) from None


def value_of(arguments: list[str], flag: str) -> str:
    """The value of an option that has to be known before the others are read; empty if it is not there."""
    for word, after in pairwise([*arguments, ""]):
        if word == flag or word.startswith(f"{flag}="):
            return after if word == flag else word.removeprefix(f"{flag}=")
    return ""


def _one_line(text: str, prog: str) -> str:
    """What tyro says in a box: a title, the message, and maybe the options that have a similar name."""
    lines = [line.strip(" │╭╮╰╯") for line in text.splitlines()[1:]]
    rows = "\n".join("" if set(line) <= set("-─") else line for line in lines)
    message, *rest = [" ".join(part.split()) for part in rows.split("\n\n") if part.strip()]
    near = re.findall(r"--[a-z][\w-]*", rest[0]) if rest and "you meant" in rest[0] else []
    hint = f"did you mean {' or '.join(near)}?" if near else f"`{prog} --help` lists the options"
    return f"{message.rstrip('.')}; {hint}"
