"""``cognn data``: list the known datasets, compare their statistics, check your own files, write a store."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import Command, command_list, did_you_mean, parse
from cognn.config.options import DataConfig
from cognn.errors import ConfigError


@dataclass
class List:
    """List the known datasets."""


@dataclass
class Info:
    """Measure a known dataset and compare it with its published statistics."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the dataset (`cognn data list`)."""


@dataclass
class Check:
    """Describe your own files and report problems in them."""

    path: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Node table, .npz, .mat, .graphml, or folder."""
    data: DataConfig = field(default_factory=DataConfig)


@dataclass
class Build:
    """Write a graph as a store on disk, for `cognn predict RUN STORE`."""

    nodes: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NODES")] = ""
    """Node table, .npy of features (N, F), or folder with both tables; also a known dataset, .npz or .graphml."""
    edge_list: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[EDGES]")] = ""
    """Edge table, .txt with two ids per line, or .npy (2, E)."""
    out: Path | None = None
    """Folder of the store (required); it must not exist yet."""
    like: Path | None = None
    """Read the columns as this run did, so that its models can score the graph; targets are not needed then."""
    memory: float = 4.0
    """Memory limit in gigabytes."""
    quiet: bool = False
    """Do not show progress."""
    data: DataConfig = field(default_factory=DataConfig)


def data(arguments: list[str]) -> int:
    """Run ``cognn data COMMAND``."""
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        return COMMANDS[name].run(arguments[1:])
    if name in ("-h", "--help"):
        print(f"usage: cognn data COMMAND [OPTIONS]\n\n{command_list('cognn data', COMMANDS)}")
        print("`cognn data COMMAND --help` lists the options of a command.")
        return 0
    got, hint = repr(name) if arguments else "nothing", did_you_mean(name, COMMANDS)
    raise ConfigError(f"data: expected list, info, check or build, got {got}{hint and f'; {hint}'}")


def data_list(arguments: list[str]) -> int:
    """Run ``cognn data list``."""
    parse(List, arguments, "cognn data list")
    from cognn.report.terminal import show_catalogue  # imports torch, and `cognn --help` must not

    show_catalogue()
    return 0


def info(arguments: list[str]) -> int:
    """Run ``cognn data info NAME``."""
    options = parse(Info, arguments, "cognn data info")
    from cognn.report.terminal import show_facts  # imports torch, and `cognn --help` must not

    show_facts(options.name)
    return 0


def check(arguments: list[str]) -> int:
    """Run ``cognn data check FILES``."""
    options = parse(Check, arguments, "cognn data check")
    options.data.dataset = options.path
    # These import torch, and `cognn --help` must not.
    from cognn.data.load import check_options
    from cognn.report.terminal import show_check

    check_options(options.data)
    return show_check(options.data)


def build(arguments: list[str]) -> int:
    """Run ``cognn data build NODES EDGES --out STORE``."""
    options = parse(Build, arguments, "cognn data build")
    if options.out is None:
        raise ConfigError("out: missing; name the folder of the store with --out")
    if not options.nodes:
        raise ConfigError("nodes: missing; give a node table, an .npy of features, or the name of a dataset")
    if options.edge_list and options.data.edges:
        raise ConfigError(f"edges: both {options.edge_list!r} and {options.data.edges!r} are given; leave one out")
    options.data.dataset, options.data.edges = options.nodes, options.edge_list or options.data.edges
    # These import torch, and `cognn --help` must not.
    from cognn.report.progress import counting
    from cognn.run.build_store import build

    with counting(options.quiet) as report:
        store = build(options.data, options.out, options.memory, options.like, report)
    print(f"{options.out}: {store.num_nodes:,} nodes, {store.num_edges:,} directed edges")
    return 0


COMMANDS = {
    "list": Command("", "list the known datasets", List, data_list),
    "info": Command("NAME", "measured and published statistics of a dataset", Info, info),
    "check": Command("FILES", "describe your own files and report problems", Check, check),
    "build": Command("NODES EDGES", "write a graph larger than memory as a store", Build, build),
}
