"""``cognn tune``: search for good options, or resume a search."""

import sys

from cognn.cli.arguments import parse, refuse_changes
from cognn.config.tune_options import SEARCH, TuneOptions, given
from cognn.errors import Interrupted


def tune(arguments: list[str]) -> int:
    """Run ``cognn tune``."""
    options = parse(TuneOptions, arguments, "cognn tune")
    options.given = given(arguments)
    if options.resume is not None:
        refuse_changes(arguments, options.dataset, "resume", "quiet", "workers", "storage", "study", *SEARCH)
    if options.join:
        refuse_changes(arguments, options.dataset, "join", "out", "quiet", "workers", "storage", "study")
    # These import torch, and `cognn --help` must not.
    from cognn.tune.report import show
    from cognn.tune.search import tune

    try:
        result = tune(options, None if options.quiet else lambda line: print(line, file=sys.stderr, flush=True))
    except Interrupted:
        print("stopped; the same command resumes the search", file=sys.stderr)
        return 130
    show(result)
    return 0
