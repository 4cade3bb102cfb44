"""``cognn data``: what there is to train on, what is wrong with it, and stores on disk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import parse
from cognn.config.options import DataConfig
from cognn.errors import ConfigError


@dataclass
class DataList:
    """List the known datasets."""


@dataclass
class DataInfo:
    """Published statistics of a dataset beside the measured ones."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the dataset."""


def data(arguments: list[str]) -> int:
    """``cognn data list|info|check|build``."""
    verbs: dict[str, Callable[[list[str]], int]] = {"list": data_list, "info": data_info, "check": data_check}
    verbs["build"] = data_build
    if not arguments or arguments[0] not in verbs:
        if arguments and arguments[0] in ("-h", "--help"):
            print("usage: cognn data list | info NAME | check PATH | build NODES EDGES --out STORE")
            return 0
        got = repr(arguments[0]) if arguments else "nothing"
        raise ConfigError(f"data: expected list, info, check or build, got {got}")
    return verbs[arguments[0]](arguments[1:])


def data_list(arguments: list[str]) -> int:
    """``cognn data list``."""
    parse(DataList, arguments, "cognn data list")
    from cognn.report.terminal import show_catalogue

    show_catalogue()
    return 0


def data_info(arguments: list[str]) -> int:
    """``cognn data info NAME``."""
    options = parse(DataInfo, arguments, "cognn data info")
    from cognn.report.terminal import show_facts

    show_facts(options.name)
    return 0


def data_check(arguments: list[str]) -> int:
    """``cognn data check PATH``."""
    default = DataConfig()
    options = parse(_Check, arguments, "cognn data check", _Check("", default))
    options.data.dataset = options.path
    from cognn.data.load import check_options
    from cognn.report.terminal import show_check

    check_options(options.data)

    return show_check(options.data)


@dataclass
class _Check:
    """Report what your own files hold, and what is wrong with them."""

    path: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Node table, .npz, .graphml, or folder."""
    data: DataConfig = field(default_factory=DataConfig)


def data_build(arguments: list[str]) -> int:
    """``cognn data build NODES EDGES --out STORE``."""
    options = parse(_Build, arguments, "cognn data build", _Build())
    if options.out is None:
        raise ConfigError("out: missing; name the folder of the store with --out")
    if not options.nodes:
        raise ConfigError("nodes: missing; give a node table, an .npy of features, or the name of a dataset")
    if options.edge_list and options.data.edges:
        raise ConfigError(f"edges: both {options.edge_list!r} and {options.data.edges!r} are given; leave one out")
    options.data.dataset, options.data.edges = options.nodes, options.edge_list or options.data.edges
    from cognn.report.progress import counting
    from cognn.run.build_store import build

    with counting(options.quiet) as report:
        store = build(options.data, options.out, options.memory, options.like, report)
    print(f"{options.out}: {store.num_nodes:,} nodes, {store.num_edges:,} directed edges")
    return 0


@dataclass
class _Build:
    """Write a graph as a store on disk, in bounded memory, to be scored by `cognn predict RUN STORE`."""

    nodes: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NODES")] = ""
    """Node table, .npy of features (N, F), or a folder with both tables; also a known dataset, .npz or .graphml."""
    edge_list: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[EDGES]")] = ""
    """Edge table, .txt of two ids a line, or .npy (2, E)."""
    out: Path | None = None
    """Folder of the store, to be given; it must not be there yet."""
    like: Path | None = None
    """Read the columns as this run did, so that its models can score the graph; targets are not needed then."""
    memory: float = 4.0
    """Gigabytes to work in."""
    quiet: bool = False
    """Do not tell how far it is."""
    data: DataConfig = field(default_factory=DataConfig)
