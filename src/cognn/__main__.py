"""``python -m cognn``: the command line, for starters of processes such as torchrun that want a module."""

import sys

from cognn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
