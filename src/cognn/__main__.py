"""``python -m cognn``: the command line, for launchers such as torchrun that start a module."""

import sys

from cognn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
