"""Parsing of arguments, help pages and shell completion, from the options' dataclasses.  Does not import torch."""

import io
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import field, fields, is_dataclass, make_dataclass
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, cast, get_args

import tyro

from cognn.config.edge_tables import join_tables
from cognn.config.options import RENAMED
from cognn.config.tune_options import given
from cognn.errors import ConfigError

SWITCHES = ("stratify", "standardize")
"""Options that are yes, no or unset: `--NAME` and `--no-NAME`."""
_VALUES = (["True"], ["False"], ["None"])


class Command(NamedTuple):
    """A command of ``cognn``, or of ``cognn data``."""

    arguments: str
    """Its positional arguments, for the help page."""
    summary: str
    """What it does, in at most 48 characters."""
    options: Any
    """The dataclass of its options, or a table of the commands below it."""
    run: Callable[[list[str]], int]
    """Runs it with the arguments that follow its name and returns the exit code."""


def parse(kind: Any, arguments: list[str], prog: str, default: Any = None) -> Any:
    """Parse ``arguments`` into the dataclass ``kind``; an error of tyro becomes a one-line ConfigError."""
    # `--directed`, `--undirected` and `--no-stratify` read better than `--directed True`.
    words = [_renamed(word) for word in _joined_edges(arguments)]
    for i, word in enumerate(words):
        if word == "--undirected":
            words[i : i + 1] = ["--directed", "False"]
        elif word == "--directed" and words[i + 1 : i + 2] not in (["True"], ["False"]):
            words[i : i + 1] = ["--directed", "True"]
        elif word.removeprefix("--").removeprefix("no-") in SWITCHES and words[i + 1 : i + 2] not in _VALUES:
            words[i : i + 1] = [f"--{word.removeprefix('--').removeprefix('no-')}", str(not word.startswith("--no-"))]
    _refuse_empty_paths(kind, words)
    options = {} if default is None else {"default": default}
    if {"-h", "--help"}.intersection(words):
        kind, options = _for_help(kind, default), {}
    errors = io.StringIO()
    try:
        with redirect_stderr(errors):
            return tyro.cli(kind, args=words, prog=prog, config=(tyro.conf.OmitArgPrefixes,), **options)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ConfigError(_one_line(errors.getvalue(), prog)) from None


def _renamed(word: str) -> str:
    """A flag by its name of today."""
    name, equals, value = word.removeprefix("--").partition("=")
    return f"--{RENAMED[name]}{equals}{value}" if word.startswith("--") and name in RENAMED else word


def _refuse_empty_paths(kind: Any, words: list[str]) -> None:
    """Reject an empty path, as of an unset variable in a script: it would be the current folder."""
    paths = {f"--{option.name.replace('_', '-')}": option.name for option in fields(kind) if _is_path(option.type)}
    first = next(iter(fields(kind)), None)
    if first is not None and _is_path(first.type):  # a positional argument
        paths[""] = first.name
    for before, word in pairwise(["", *words]):
        name = paths.get(before if not word else word.removesuffix("=") if word.endswith("=") else "-")
        if name is not None:
            raise ConfigError(f"{name}: expected a path, got an empty text")


def _is_path(hint: Any) -> bool:
    return hint is Path or any(_is_path(part) for part in get_args(hint))


def _joined_edges(arguments: list[str]) -> list[str]:
    """The arguments with every ``--edges NAME=FILE`` in one, because tyro keeps only the last."""
    split = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--edges=") else [word])]
    places = [i for i, word in enumerate(split[:-1]) if word == "--edges"]
    if len(places) < 2:
        return list(arguments)
    joined = join_tables([split[i + 1] for i in places])
    return [word for i, word in enumerate(split) if i not in places and i - 1 not in places] + ["--edges", joined]


def _for_help(kind: Any, default: Any = None) -> Any:
    """The dataclass with an easier help page: no `{None}|` and no `(default: '')`, which the help text explains."""
    options: list[Any] = []
    for option in fields(kind):
        name, hint = option.name, cast(Any, option.type)
        if is_dataclass(hint):
            value = cast(Any, option.default_factory)() if default is None else getattr(default, name)
            hint = _for_help(hint, value)
            options.append((name, hint, field(default_factory=hint)))
        else:
            parts = [getattr(part, "__name__", "") for part in get_args(hint)]
            metavar = parts[0].upper() if "NoneType" in parts else None
            metavar = "| --undirected" if name == "directed" else f"| --no-{name}" if name in SWITCHES else metavar
            hint = Annotated[hint, tyro.conf.arg(metavar=metavar, help_behavior_hint=_default_hint)]
            options.append((name, hint) if default is None else (name, hint, getattr(default, name)))
    return make_dataclass(kind.__name__, options, bases=(kind,), namespace={"__doc__": kind.__doc__})


def _default_hint(value: str) -> str:
    return "" if value in ("", "''", "None") else f"(default: {value})"


def value_of(arguments: list[str], flag: str) -> str:
    """The value of an option that is needed before the others are parsed; empty if it is not given."""
    for word, after in pairwise([*arguments, ""]):
        if word == flag or word.startswith(f"{flag}="):
            return after if word == flag else word.removeprefix(f"{flag}=")
    return ""


def refuse_changes(arguments: list[str], dataset: str, *allowed: str) -> None:
    """Reject options beside ``--resume`` or ``--join`` that would change the run or the study."""
    wrong = [name for name in given(arguments) if name not in allowed] + ["dataset"] * bool(dataset)
    if wrong:
        raise ConfigError(f"{wrong[0]}: a resumed run or study keeps its own options; leave it out, or start a new one")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A hint for a mistyped word; empty if no name is similar."""
    near = get_close_matches(word, names)
    return f"did you mean {' or '.join(near)}?" if near else ""


def command_list(prog: str, commands: Mapping[str, Command]) -> str:
    """A line of help for every command."""
    lines = []
    for name, command in commands.items():
        nested = isinstance(command.options, dict)
        line = f"  {f'{prog} {name} {command.arguments}':<28} {command.summary}\n"
        lines.append(command_list(f"{prog} {name}", command.options) if nested else line)
    return "".join(lines)


def completion(shell: str, prog: str, commands: Mapping[str, Command]) -> str:
    """The script that completes the commands and their options in bash, zsh or fish."""

    def union(commands: Mapping[str, Command]) -> Any:
        kinds = (union(c.options) if isinstance(c.options, dict) else _for_help(c.options) for c in commands.values())
        named = zip(commands, kinds, strict=True)
        return Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in named)]  # noqa: UP007

    printed = io.StringIO()
    words = ["--tyro-write-completion", shell, "-"]
    with redirect_stdout(printed), suppress(SystemExit):
        tyro.cli(union(commands), args=words, prog=prog, config=(tyro.conf.OmitArgPrefixes,))
    script = printed.getvalue()
    for theirs, ours in _CHANGES:
        script = re.sub(theirs, ours, script)
    return script


_CHANGES = (  # to the scripts of tyro: patterns and what replaces them
    # Where tyro has nothing to offer, the shell completes the names of files.
    (r'\[\[ (?="\$completions" == "__TYRO_COMPLETE_FILES__")', r'[[ -z "$completions" || '),
    (r"complete --no-files", r"complete"),
    (r"__fish_complete_path \(commandline -ct\)", r"return"),
    (r'COMPREPLY=\(\$\(compgen -f -- "\$cur"\)\)', r"COMPREPLY=()"),
    (r"complete -F", r"complete -o default -F"),
    # zsh counts words from 1 and tyro's completer from 0, so that it offered no values of options.
    (r'"\$CURRENT"', r'"$((CURRENT - 1))"'),
    # `parse` makes two flags of this option.
    (r"\['--directed'\](.*?)'type': 'choice'.*?\}", r"['--directed', '--undirected']\1'type': 'flag'}"),
)


def _one_line(text: str, prog: str) -> str:
    """The message of an error box of tyro: a title, the message, and perhaps options with a similar name."""
    lines = [line.strip(" │╭╮╰╯") for line in text.splitlines()[1:]]
    rows = "\n".join("" if set(line) <= set("-─") else line for line in lines)
    message, *rest = [" ".join(part.split()) for part in rows.split("\n\n") if part.strip()]
    near = re.findall(r"--[a-z][\w-]*", rest[0]) if rest and "you meant" in rest[0] else []
    hint = f"did you mean {' or '.join(near)}?" if near else f"`{prog} --help` lists the options"
    message = re.sub(r"^(Missing from [^:]+: \S+) .*", r"\1", message)  # without the help text of the option
    return f"{message.rstrip('.')}; {hint}"
