"""``python -m tests.campaign``: draws cases until the time is over, counts them, and keeps those that failed."""

import argparse
import sys
from pathlib import Path

from tests.campaign.campaign import KINDS, Campaign


def main() -> int:
    """Run a campaign and return 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--cases", type=int, help="stop after this many cases, whatever the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help=f"only these, separated by commas: {', '.join(KINDS)}")
    parser.add_argument("--case", default="", help="run one case again, such as csv-17, and show what it did")
    parser.add_argument("--out", type=Path, default=Path("campaign"), help="folder for the cases that fail")
    options = parser.parse_args()
    kinds = [kind for kind in options.kinds.split(",") if kind] or list(KINDS)
    with Campaign(options.seed, options.out.resolve(), kinds) as campaign:
        if options.case:
            kind, _, number = options.case.rpartition("-")
            print(campaign.one(kind, int(number)))
        else:
            campaign.controls()
            campaign.go(60 * options.minutes, options.cases)
        print(campaign.table())
        return int(bool(campaign.failed))


if __name__ == "__main__":
    sys.exit(main())
