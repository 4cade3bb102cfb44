"""The command line."""

from cognn.cli.main import main

__all__ = ["main"]
