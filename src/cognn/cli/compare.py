"""``cognn compare``: does cooperation help on my graph?"""

import sys

from cognn.cli.arguments import parse
from cognn.config.compare_options import CompareOptions
from cognn.config.tune_options import given
from cognn.errors import ConfigError, Interrupted

OWN = {"baselines", "trials", "seeds", "budget", "jobs", "out", "search_seed", "json", "quiet", "debug"}
"""Options of the comparison itself."""


def compare(arguments: list[str]) -> int:
    """Run ``cognn compare``."""
    options = parse(CompareOptions, arguments, "cognn compare")
    named = given(arguments)
    options.given = tuple(name for name in named if name not in OWN)
    if "dataset" in named:
        raise ConfigError("dataset: give it without --dataset: cognn compare DATASET")
    options.data.dataset = options.dataset
    # These import torch, and `cognn --help` must not.
    from cognn.comparison.compare import run_comparison
    from cognn.comparison.table import show, watch_table
    from cognn.files.json import to_json

    try:
        found = run_comparison(options, watch=None if options.quiet else watch_table)
    except Interrupted:
        print("stopped; the same command resumes the comparison", file=sys.stderr)
        return 130
    if options.json:
        print(to_json(found.result, indent=2))
    else:
        show(found.result, found.folder)
    return 0
